"""Correlation of metrics with human grades: against scipy, by hand, by properties."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.metrics.commenting import correlation
from pipeline.metrics.commenting.correlation import compare, correlate, normalise_scores, split_half, tabulate

numbers = st.integers(-5, 5).map(lambda number: number / 4)
pairs = st.lists(st.tuples(numbers, st.integers(1, 5), st.integers(0, 6)), min_size=3, max_size=40)


def graded(count: int = 300, noise: float = 1.0, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores that follow grades of 1 to 5 with noise, and articles of six comments."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=count)
    grades = np.clip(np.round(3 + quality + 0.5 * rng.normal(size=count)), 1, 5)
    return quality + noise * rng.normal(size=count), grades, np.arange(count) // 6


def ratings(grades: list[list[float]]) -> pl.DataFrame:
    """Each item's grades as rows."""
    rows = [(f"c{i}", f"r{j}", float(grade)) for i, row in enumerate(grades) for j, grade in enumerate(row)]
    return pl.DataFrame(rows, schema=["item_id", "rater_id", "grade"], orient="row")


@given(pairs)
def test_coefficients_are_scipys(items: list[tuple[float, int, int]]) -> None:
    """Both coefficients and their p, or null where one side is constant; the bounds stand in order in [-1, 1]."""
    scores, grades, groups = map(list, zip(*items, strict=True))
    actual = correlate(scores, grades, groups, draws=20)
    if len(set(scores)) < 2 or len(set(grades)) < 2:
        assert actual == (*[None] * 8, len(items))
        return
    for coefficient, name in ((stats.spearmanr, "spearman"), (stats.pearsonr, "pearson")):
        expected = coefficient(scores, grades)
        assert getattr(actual, name) == pytest.approx(expected.statistic, abs=1e-12)
        assert getattr(actual, f"{name}_p") == pytest.approx(expected.pvalue, abs=1e-9)
        low, high = getattr(actual, f"{name}_low"), getattr(actual, f"{name}_high")
        assert low is None or -1 - 1e-9 <= low <= high <= 1 + 1e-9


@settings(max_examples=30)
@given(pairs, st.integers(0, 1000))
def test_a_sample_is_what_its_articles_give(items: list[tuple[float, int, int]], seed: int) -> None:
    """The coefficients of each bootstrap sample are scipy's of all comments of the articles drawn, ties and all."""
    scores, grades, groups = (np.array(column, float) for column in zip(*items, strict=True))
    unit = np.unique(groups, return_inverse=True)[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correlation, "SEED", seed)
        actual = correlation._resample([scores], grades, unit, 8)[:, 0]
    picked = np.random.default_rng(seed).integers(unit.max() + 1, size=(8, unit.max() + 1))
    for coefficients, units in zip(actual, picked, strict=True):
        rows = np.concatenate([np.flatnonzero(unit == number) for number in units])
        if np.ptp(scores[rows]) and np.ptp(grades[rows]):
            expected = [c(scores[rows], grades[rows]).statistic for c in (stats.spearmanr, stats.pearsonr)]
            assert coefficients == pytest.approx(expected, abs=1e-9)
        else:
            assert np.isnan(coefficients).all()


def test_a_metric_is_told_from_another() -> None:
    """Less noise correlates more, with an interval above 0 and a small p; the other way round all signs change."""
    scores, grades, groups = graded(noise=2)
    better = graded(noise=0.3)[0]
    actual, back = compare(better, scores, grades, groups), compare(scores, better, grades, groups)
    first, second = correlate(better, grades, groups), correlate(scores, grades, groups)
    assert actual.spearman == pytest.approx(first.spearman - second.spearman)
    assert actual.pearson == pytest.approx(first.pearson - second.pearson)
    assert 0 < actual.spearman_low < actual.spearman < actual.spearman_high
    assert actual.spearman_p == actual.pearson_p == pytest.approx(2 / 1001)
    assert (back.pearson, back.pearson_low, back.pearson_high) == pytest.approx(
        (-actual.pearson, -actual.pearson_high, -actual.pearson_low)
    )
    assert back.pearson_p == actual.pearson_p


@pytest.mark.parametrize(
    ("scores", "grades"),
    [([], []), ([1, 2], [1, 2]), ([3, 3, 3], [1, 2, 3]), ([1, 2, 3], [4, 4, 4]), ([0.1 + 0.2, 0.3, 0.3], [1, 2, 3])],
)
def test_no_correlation_is_null(scores: list[float], grades: list[float]) -> None:
    """Fewer than three items and a side that is constant, but for rounding, have none, and raise no warning."""
    assert correlate(scores, grades) == (*[None] * 8, len(scores))
    assert compare(scores, scores, grades) == (*[None] * 8, len(scores))
    with pytest.raises(ValueError, match="at least one score"):
        normalise_scores([], [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2, 3], [1, 2]), "as many scores as grades, got 3, 2"),
        (([1, 2, None], [1, 2, 3]), "finite"),
        (([1, 2, float("inf")], [1, 2, 3]), "finite"),
        (([1, 2, 3], [1, 2, 3], ["a", "b"]), "a group for each of 3 items, got 2"),
        (([1, 2, 3], [1, 2, 3], ["a", "b", None]), "a group for each of 3 items, got 2"),
    ],
)
def test_what_cannot_be_correlated_is_an_error(arguments: tuple[object, ...], message: str) -> None:
    """Lengths that differ, and scores, grades or articles that are not there."""
    with pytest.raises(ValueError, match=message):
        correlate(*arguments)  # type: ignore[arg-type]


def test_two_grades_are_held_against_each_other() -> None:
    """With two grades an item only the order is random: raters who agree give 1, and a mean over draws the expected."""
    agreed = split_half(ratings([[g, g] for g in (1, 2, 3, 4, 5)]), draws=20)
    assert agreed == pytest.approx((*[1] * 6, 5, 0))
    grades = [[1, 2], [2, 2], [3, 5], [4, 3], [5, 4], [1, 1]]
    divisions = [[row[bit >> i & 1] for i, row in enumerate(grades)] for bit in range(64)]
    other = [[row[1 - (bit >> i & 1)] for i, row in enumerate(grades)] for bit in range(64)]
    actual = split_half(ratings(grades), draws=4000)
    assert split_half(ratings(grades)[::-1], draws=4000) == actual  # whatever the order of the rows
    for coefficient, numbers in ((stats.spearmanr, actual[:3]), (stats.pearsonr, actual[3:6])):
        values = [coefficient(a, b).statistic for a, b in zip(divisions, other, strict=True)]
        assert numbers[0] == pytest.approx(np.mean(values), abs=0.005)
        assert numbers[1:] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.02)


def test_halves_of_many_grades() -> None:
    """Means of more raters agree better, as Spearman and Brown foretell; grades may be odd in number."""
    rng = np.random.default_rng(3)
    quality = rng.normal(size=800)
    two, ten, eleven = ((quality[:, None] + rng.normal(size=(800, n))).tolist() for n in (2, 10, 11))
    first = split_half(ratings(two), draws=20)
    assert first.pearson == pytest.approx(0.5, abs=0.05)
    many = split_half(ratings(ten), draws=20)
    assert many.pearson == pytest.approx(5 * 0.5 / (1 + 4 * 0.5), abs=0.03)
    assert split_half(ratings(eleven), draws=20).pearson == pytest.approx(many.pearson, abs=0.03)


def test_items_with_one_grade_are_counted() -> None:
    """They cannot be divided; with fewer than three others there is no correlation, as where halves are constant."""
    assert split_half(ratings([[1, 2], [2, 3], [3]]), draws=5) == (*[None] * 6, 2, 1)
    assert split_half(ratings([[2, 2], [2, 2], [2, 2]]), draws=5) == (*[None] * 6, 3, 0)
    assert split_half(ratings([]).cast({"grade": pl.Float64}), draws=5) == (*[None] * 6, 0, 0)


@given(st.lists(st.tuples(numbers, st.integers(1, 5)), min_size=1, max_size=40))
def test_normalised_scores_have_the_grades_mean_and_variance(items: list[tuple[float, int]]) -> None:
    """They are the standard scores on the grades' scale, within 1 to 5, in the order of the scores (AAC-29)."""
    scores, grades = (np.array(column, float) for column in zip(*items, strict=True))
    standard = stats.zscore(scores) if np.ptp(scores) else np.zeros(len(scores))
    clipped = normalise_scores(scores * 7 - 3, grades)
    assert clipped == pytest.approx(np.clip(grades.mean() + standard * grades.std(), 1, 5))
    assert all(first <= second for first, second in pairwise(clipped[np.argsort(scores)]))


def long(count: int = 60) -> pl.DataFrame:
    """Rows of three metrics on the same comments, one of them constant."""
    scores, grades, groups = graded(count)
    frame = pl.DataFrame({"item_id": range(count), "group": groups, "grade": grades})
    values = {"w_meteor": graded(count, 0.2)[0], "meteor": scores, "bleu_4": np.zeros(count)}
    return pl.concat([frame.with_columns(metric=pl.lit(name), value=value) for name, value in values.items()])


def test_a_row_a_metric() -> None:
    """The table has what `correlate` has of each metric, in their order, and null for a constant one."""
    rows = long()
    actual = tabulate(rows, draws=30)
    assert actual["metric"].to_list() == ["w_meteor", "meteor", "bleu_4"]
    for row, (_, part) in zip(actual.iter_rows(), rows.group_by("metric", maintain_order=True), strict=True):
        assert row[1:] == correlate(part["value"], part["grade"], part["group"], draws=30)
    assert actual["spearman"].null_count() == 1
    shuffled = tabulate(rows.sample(fraction=1, shuffle=True, seed=2), draws=30)
    ordered, other = (table.sort("metric").select("metric", "spearman", "pearson_p") for table in (actual, shuffled))
    assert other.to_dicts() == [pytest.approx(row) for row in ordered.to_dicts()]
    assert tabulate(rows.clear()).schema == actual.schema


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.head(100), "as many scores as grades, got 60, 40, 60"),
        (lambda rows: pl.concat([rows, rows.head(1)]), "as many scores as grades, got 61, 60, 60, 60"),
        (lambda rows: rows.with_columns(value=pl.lit(float("nan"))), "finite"),
    ],
)
def test_tables_of_different_items_are_errors(change: object, message: str) -> None:
    """Metrics are compared on the same comments or not at all."""
    with pytest.raises(ValueError, match=message):
        tabulate(change(long()))  # type: ignore[operator]
