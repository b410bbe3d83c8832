"""Whether a model is promoted: paired comparisons by hand, and what is decided on them."""

from typing import Any

import polars as pl
import pytest

from pipeline.errors import BadInput, Retry
from pipeline.tasks.record.promotion import IN_FORCE, HeldOut, compare, count_shares, decide
from pipeline.training.registry import Model

NEW, OLD, OTHER_SCHEMA = (Model(name, {}, b"") for name in ("new", "old", "other"))
RIGHT = {"new": [1] * 30 + [0] * 10, "old": [1] * 36 + [0] * 4}


def answer(model: Model) -> Any:
    if model.model_id == "other":
        raise BadInput("it knows other labels")
    return count_shares(RIGHT[model.model_id])


def test_a_comparison_equals_hand_arithmetic() -> None:
    """Right on 30 and 36 of the same 40 rows: .75, .9, and a difference that never rises above 0 in a sample.

    The interval is that of a binomial: 6 of 40 rows differ, sd = sqrt(.15 * .85 / 40) = .056.
    """
    rows = HeldOut(metric="accuracy", answer=answer, baselines={"majority": count_shares([0.5] * 40)})
    (by_majority, by_old), problem = compare([rows], NEW, OLD)
    assert (by_old["rival"], by_old["new"], by_old["other"], by_old["rows"]) == (IN_FORCE, 0.75, 0.9, 40)
    assert by_old["low"] == pytest.approx(-0.15 - 1.96 * 0.056, abs=0.02)
    assert by_old["high"] == pytest.approx(-0.15 + 1.96 * 0.056, abs=0.02)
    assert (by_majority["rival"], by_majority["difference"], problem) == ("majority", 0.25, {})


def test_units_are_drawn_as_a_whole() -> None:
    """The interval is that of ten units of four rows; two units decide nothing, however many rows they have.

    Seven units are right, one in half, two wrong: sd = sqrt(.725 - .75 ** 2) / sqrt(10) = .1275.
    """
    baselines = {"none": count_shares([0.8] * 40)}
    units = pl.Series([str(row // 4) for row in range(40)])
    (comparison,), _ = compare([HeldOut(metric="accuracy", answer=answer, baselines=baselines, units=units)], NEW, None)
    expected = (-0.05 - 1.96 * 0.1275, -0.05 + 1.96 * 0.1275)
    assert (comparison["low"], comparison["high"]) == pytest.approx(expected, abs=0.05)
    few = HeldOut(metric="accuracy", answer=answer, baselines=baselines, units=pl.Series(["a"] * 36 + ["b"] * 4))
    problems = {
        "none": "2 held-out rows or articles, fewer than 10",
        IN_FORCE: "2 held-out rows or articles are new to it, fewer than 10",
    }
    assert compare([few], NEW, OLD) == ([], problems)


def test_a_rival_that_may_answer_later_is_waited_for() -> None:
    """A fault that passes, such as a hub that is down, stops the comparison: it is no reason to promote."""

    def fail_on_the_rival(model: Model) -> Any:
        if model is OLD:
            raise Retry("the hub is down")
        return answer(model)

    with pytest.raises(Retry):
        compare([HeldOut(metric="accuracy", answer=fail_on_the_rival)], NEW, OLD)


@pytest.mark.parametrize(
    ("rival", "new_count", "problem"),
    [
        (OTHER_SCHEMA, 40, "it knows other labels"),
        (OLD, 3, "3 held-out rows or articles are new to it, fewer than 10"), (None, 40, None), (OLD, 12, None),
    ],
)  # fmt: skip
def test_a_rival_that_cannot_be_asked(rival: Model | None, new_count: int, problem: str | None) -> None:
    """A model of other labels, or one that learned from the rows, is not compared; the reason is returned."""
    rows = HeldOut(metric="accuracy", answer=answer, texts=pl.Series(map(str, range(40))))
    comparisons, problems = compare([rows], NEW, rival, lambda texts: texts.is_in([str(n) for n in range(new_count)]))
    assert problems == ({IN_FORCE: problem} if problem else {})
    assert [row["rows"] for row in comparisons] == ([] if rival is None or problem else [new_count])


WORSE, EQUAL = ({"rival": "words", "metric": "accuracy", "high": high} for high in (-0.01, 0.0))


@pytest.mark.parametrize(
    ("comparisons", "doubt", "bar", "is_forced", "expected"),
    [
        ([EQUAL, EQUAL], None, None, False, (True, False, "as good as words, within an interval")),
        ([], None, None, False, (True, False, "there is nothing to compare with")),
        ([EQUAL, WORSE], None, None, False, (False, True, "worse than words in accuracy")),
        ([WORSE], None, None, True, (True, True, "promoted by request, although worse than words in accuracy")),
        ([EQUAL], "a trial", None, False, (False, False, "a trial")),
        ([EQUAL], "a trial", None, True, (True, False, "promoted by request, although a trial")),
        ([EQUAL], None, "no bound", True, (False, False, "no bound")),
    ],
)
def test_what_is_decided(comparisons: Any, doubt: Any, bar: Any, is_forced: bool, expected: object) -> None:
    """A model is promoted unless an interval is below 0; a request overrides that and a doubt, but no bar."""
    assert decide(comparisons, doubt, bar, is_forced=is_forced) == expected
