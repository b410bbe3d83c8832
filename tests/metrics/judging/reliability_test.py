"""A judge that does not look at the texts is named, and an honest one is not."""

import numpy as np
import pytest

from pipeline.metrics.judging import reliability
from pipeline.metrics.judging.bradley_terry import estimate
from pipeline.metrics.judging.reliability import check_comparisons, check_grades, is_useless
from tests.metrics.judging.simulated import Compare, collect, compare_adaptively, draw_truth, make_judge

TRUTH = draw_truth(60, 1.5, 3)


def make_coin() -> Compare:
    rng = np.random.default_rng(5)
    return lambda *_: int(rng.choice([1, -1]))


@pytest.mark.parametrize(
    ("compare", "fault", "useless"),
    [
        (make_judge(TRUTH, 1), None, False), (make_judge(TRUTH, 1, tie=1.0), None, False),
        (make_judge(TRUTH, 1, bias=2.0), reliability.POSITION, False), (make_coin(), reliability.RANDOM, True),
        (lambda *_: 1, "always chooses the first text", True), (lambda *_: -1, "always chooses the second text", True),
        (lambda *_: 0, "always answers with a tie", True),
    ],
)  # fmt: skip
def test_judges_that_compare(compare: Compare, fault: str | None, useless: bool) -> None:
    """A judge that guesses, or always gives one answer, is named; a bias that balanced orders cancel is only noted."""
    comparisons = compare_adaptively(60, compare, 1)
    checks = check_comparisons(comparisons, estimate(comparisons, 60).p_equal)
    assert checks["fault"].drop_nulls().to_list() == ([fault] if fault else [])
    assert is_useless(checks) == useless


def test_counts_by_hand() -> None:
    """Choices by place and by order are counted by hand; ICC(1) of Shrout and Fleiss's table 2 is .17."""
    checks = check_comparisons(collect([(0, 1), (1, 0), (2, 3), (4, 5), (6, 7)], [1, -1, 1, 1, 0]), 1.0)
    assert checks.select("check", "value", "n").rows() == [
        ("first text chosen", 0.75, 4), ("ties", 0.2, 5), ("same choice in both orders", 1.0, 1),
    ]  # fmt: skip
    assert checks["fault"].null_count() == 3  # too few to conclude anything
    assert check_comparisons(collect([], []), 1.0)["value"].null_count() == 3
    table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    row = check_grades(np.repeat(np.arange(6), 4), np.array(table, float).ravel()).row(1, named=True)
    assert round(row["value"], 2) == 0.17
    assert row["low"] < 0 < row["value"] < row["high"]


@pytest.mark.parametrize(
    ("grade", "fault"),
    [
        (lambda item, rng: round(np.clip(TRUTH[item] + 2 + rng.normal(0, 0.7), 0, 4)), None),
        (lambda _, rng: int(rng.integers(5)), reliability.RANDOM),
        (lambda *_: 2, "always answers 2"),
    ],
)
@pytest.mark.parametrize("repeats", [1, 3])
def test_judges_that_grade(grade, fault: str | None, repeats: int) -> None:
    """Three answers to each text show a judge that guesses; one answer shows only that it is always the same."""
    rng = np.random.default_rng(2)
    items = np.repeat(np.arange(60), repeats)
    checks = check_grades(items, np.array([grade(item, rng) for item in items], float))
    expected = None if fault == reliability.RANDOM and repeats == 1 else fault
    assert checks["fault"].drop_nulls().to_list() == ([expected] if expected else [])
    assert is_useless(checks) == bool(expected)


def test_distributions_that_do_not_depend_on_the_text() -> None:
    """Of weighted means, the share of the variance between texts counts: none where all distributions are alike."""
    rng = np.random.default_rng(0)
    means, variances = np.array([1.6, 2.4] * 30) + rng.normal(0, 0.01, 60), np.full(60, 2.0)
    assert check_grades(np.arange(60), np.linspace(0, 4, 60), variances)["fault"].null_count() == 2
    flat = check_grades(np.arange(60), np.round(means * 0 + rng.choice([1.9, 2.6], 60), 1), variances * 3)
    assert flat["fault"].drop_nulls().to_list() == [reliability.RANDOM]
