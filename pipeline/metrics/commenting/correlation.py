"""How far an automatic metric agrees with human grades: correlations with intervals, the difference of two metrics',
the "Human" row, normalised scores (Automatic Article Commenting, section 5, appendix C.2; AAC-26, 27, 29).

In: a score and a grade of each comment. Comments on one article are not independent: give the articles as groups where
they are known; the bootstrap draws whole groups. A correlation is null for fewer than three items or a constant side.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from pipeline.metrics import resample
from pipeline.metrics.resample import DRAWS, SEED, Floats, Ints, Names, bounds, p_value

Numbers = npt.NDArray[np.number] | pl.Series | Sequence[float]
Coefficient = Callable[[Floats, Floats], Any]
_COEFFICIENTS: tuple[Coefficient, ...] = (stats.spearmanr, stats.pearsonr)


class Correlation(NamedTuple):
    """Both coefficients, or how much larger those of one metric are than another's; with two-sided p, and the bounds of
    a bootstrap interval of 95 %.
    """

    spearman: float | None
    spearman_p: float | None
    spearman_low: float | None
    spearman_high: float | None
    pearson: float | None
    pearson_p: float | None
    pearson_low: float | None
    pearson_high: float | None
    n: int  # items


class SplitHalf(NamedTuple):
    """Correlation of one half of the raters with the other: the mean over draws, and the bounds of 95 % of them."""

    spearman: float | None
    spearman_low: float | None
    spearman_high: float | None
    pearson: float | None
    pearson_low: float | None
    pearson_high: float | None
    n: int  # items with two grades or more
    dropped: int  # items with one


def correlate(scores: Numbers, grades: Numbers, groups: Names | None = None, *, draws: int = DRAWS) -> Correlation:
    """Compute Spearman's and Pearson's correlation of scores [n] with grades [n].

    `groups` are the articles of the items, [n], which are drawn whole; by default items are drawn. p is scipy's and
    assumes independent items; the interval does not. ValueError for lengths that differ, or a value that is not finite.
    """
    (values,), grade_values, units = _check_inputs([scores], grades, groups)
    return _build_correlation(values, grade_values, _resample([values], grade_values, units, draws)[:, 0])


def compare(
    first: Numbers, second: Numbers, grades: Numbers, groups: Names | None = None, *, draws: int = DRAWS
) -> Correlation:
    """Measure how much more `first` correlates with the grades than `second`, by a paired bootstrap.

    p is that of `resample.p_value`. Arguments and errors as of `correlate`.
    """
    score_arrays, grade_values, units = _check_inputs([first, second], grades, groups)
    samples = _resample(score_arrays, grade_values, units, draws)
    differences = samples[:, 0] - samples[:, 1]
    values: list[tuple[float | None, float | None]] = []
    for coefficient, column in zip(_COEFFICIENTS, differences.T, strict=True):
        (value, _), (baseline, _) = (_correlate(coefficient, array, grade_values) for array in score_arrays)
        values.append((None, None) if value is None or baseline is None else (value - baseline, p_value(column)))
    return _add_bounds(values, differences, len(grade_values))


def split_half(ratings: pl.DataFrame, *, draws: int = DRAWS) -> SplitHalf:
    """Correlate human grades with human grades: the "Human" row of tables 3 and 4 (AAC-27).

    The grades of each item (item_id, rater_id, grade) are randomly divided into two halves, of which one has a grade
    more where they are odd; the halves' means are correlated over items, and the coefficients averaged over draws. With
    two grades an item it is one against the other in random order. The paper divides once, it seems, and gives .7803
    and .7804.
    """
    rows = ratings.select("item_id", "rater_id", pl.col("grade").cast(pl.Float64))
    regraded = rows.sort("item_id", "rater_id").filter(pl.len().over("item_id") > 1)
    sizes = regraded.group_by("item_id", maintain_order=True).len()["len"].cast(pl.Int64).to_numpy()
    coefficients = _correlate_halves(regraded["grade"].to_numpy(), sizes, draws)
    numbers: list[float | None] = []
    for column in coefficients.T:
        defined = column[np.isfinite(column)]
        numbers += [float(defined.mean()), *bounds(defined)] if len(defined) else [None] * 3
    return SplitHalf._make([*numbers, len(sizes), rows.height - regraded.height])


def normalise_scores(scores: Numbers, grades: Numbers) -> Floats:
    """Scale scores to the mean and variance of the grades, then clip them to 1 to 5 (tables 5 and 6; AAC-29): [n].

    Constant scores all become the mean. Only what is normalised against the same grades may be compared. ValueError for
    nothing at all, lengths that differ, or a value that is not finite.
    """
    (score,), grade_values, _ = _check_inputs([scores], grades, None)
    if not len(score):
        raise ValueError("expected at least one score")
    spread = 0.0 if _is_constant(score) else grade_values.std() / score.std()
    return np.asarray(np.clip(grade_values.mean() + (score - score.mean()) * spread, 1, 5))


def tabulate(rows: pl.DataFrame, *, draws: int = DRAWS) -> pl.DataFrame:
    """Correlate each metric with the grades of the same items, with intervals (tables 3 and 4).

    Rows have item_id, group (the article), grade, metric and value; each item has one for each metric. The samples of
    the bootstrap are the same for all metrics.

    Returns metric and the fields of `Correlation`, in the order in which metrics first come. ValueError for a metric
    that has not one value of each item.
    """
    metrics = rows["metric"].unique(maintain_order=True).to_list()
    items = rows.select("item_id", "group", "grade").unique(maintain_order=True)
    parts = (rows.filter(pl.col("metric") == metric) for metric in metrics)
    values = [part.join(items, on="item_id", maintain_order="right")["value"] for part in parts]
    score_arrays, grade_values, units = _check_inputs(values, items["grade"], items["group"])
    samples = _resample(score_arrays, grade_values, units, draws)
    correlations = [_build_correlation(value, grade_values, samples[:, i]) for i, value in enumerate(score_arrays)]
    schema = dict.fromkeys(Correlation._fields[:-1], pl.Float64) | {"n": pl.Int64}
    columns = pl.DataFrame(correlations, schema=schema, orient="row")
    return columns.insert_column(0, pl.Series("metric", metrics, rows["metric"].dtype))


def _check_inputs(
    scores: Sequence[Numbers], grades: Numbers, groups: Names | None
) -> tuple[list[Floats], Floats, Ints]:
    arrays = [np.array(pl.Series(column, dtype=pl.Float64, strict=False).to_numpy()) for column in (*scores, grades)]
    if len({len(array) for array in arrays}) > 1:
        raise ValueError(f"expected as many scores as grades, got {', '.join(str(len(array)) for array in arrays)}")
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("expected finite numbers; leave out what has no score or no grade")
    count = len(arrays[0])
    return arrays[:-1], arrays[-1], np.arange(count) if groups is None else resample.number_units(groups, count)


def _is_constant(values: Floats) -> bool:
    """Check whether all values are equal, up to the rounding error from which scipy warns."""
    return bool(not np.ptp(values) or np.linalg.norm(values - values.mean()) < 1e-13 * abs(values.mean()))


def _correlate(coefficient: Coefficient, scores: Floats, grades: Floats) -> tuple[float | None, float | None]:
    """Compute a coefficient and its p; None where they are undefined."""
    if len(scores) < 3 or _is_constant(scores) or _is_constant(grades):
        return None, None
    result = coefficient(scores, grades)
    return float(result.statistic), float(result.pvalue)


def _build_correlation(scores: Floats, grades: Floats, samples: Floats) -> Correlation:
    """Build a row from scores, grades and the coefficients of the samples, [draws, 2]."""
    return _add_bounds([_correlate(each, scores, grades) for each in _COEFFICIENTS], samples, len(grades))


def _add_bounds(values: Sequence[tuple[float | None, float | None]], samples: Floats, count: int) -> Correlation:
    """Add the intervals of the samples, [draws, 2], to coefficients and their p."""
    fields: list[float | None] = []
    for (value, p), column in zip(values, samples.T, strict=True):
        low, high = (None, None) if value is None else bounds(column)
        is_bounded = low is not None and not np.isnan(low)
        fields += [value, p, *((low, high) if is_bounded else (None, None))]
    return Correlation._make([*fields, count])


def _resample(scores: Sequence[Floats], grades: Floats, units: Ints, draws: int) -> Floats:
    """Compute Spearman and Pearson of each metric in samples of groups: [draws, metrics, 2], NaN where undefined."""
    if len(grades) < 3:
        return np.full((draws, len(scores), 2), np.nan)
    blocks = [np.empty((0, len(scores), 2))]
    centred_grades, grade_levels = grades - grades.mean(), _index_levels(grades)
    metrics = [(score - score.mean(), _index_levels(score)) for score in scores]
    for unit_counts in resample.draw_picks(int(units.max()) + 1, draws, SEED, width=len(grades)):
        item_counts = unit_counts[:, units].astype(np.float64)
        block = np.full((len(item_counts), len(scores), 2), np.nan)
        grade_ranks, is_graded = _rank_samples(item_counts, *grade_levels)
        for i, (values, levels) in enumerate(metrics):
            ranks, is_varied = _rank_samples(item_counts, *levels)
            pairs = ((ranks, grade_ranks), (values, centred_grades))
            coefficients = np.column_stack([_weighted_pearson(item_counts, *pair) for pair in pairs])
            block[:, i] = np.where((is_varied & is_graded)[:, None], coefficients, np.nan)
        blocks.append(block)
    return np.concatenate(blocks)


def _index_levels(values: Floats) -> tuple[Ints, Ints, Ints]:
    """Return the order of items by value, where each value starts in it, and each item's value number."""
    order = np.argsort(values, kind="stable")
    distinct, levels = np.unique(values, return_inverse=True)
    return order, np.searchsorted(values[order], distinct), levels


def _rank_samples(item_counts: Floats, order: Ints, starts: Ints, levels: Ints) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Compute each item's mean rank less the mean of all ranks, [draws, n], and whether ranks differ, [draws]."""
    count = np.add.reduceat(item_counts[:, order], starts, axis=1)
    ranks = np.cumsum(count, axis=1) - count / 2
    return (ranks - item_counts.sum(axis=1, keepdims=True) / 2)[:, levels], (count > 0).sum(axis=1) > 1


def _weighted_pearson(weights: Floats, first: Floats, second: Floats) -> Floats:
    """Compute Pearson's coefficient of each sample, [draws], from weights [draws, n] and values [draws, n] or [n]."""
    total = weights.sum(axis=1)
    moments = first, second, first * first, second * second, first * second
    means = ((weights * values).sum(axis=1) / total for values in moments)
    mean_first, mean_second, squares_first, squares_second, products = means
    spread = np.sqrt((squares_first - mean_first**2).clip(0) * (squares_second - mean_second**2).clip(0))
    undefined = np.full(len(total), np.nan)
    return np.asarray(np.divide(products - mean_first * mean_second, spread, out=undefined, where=spread > 0))


def _correlate_halves(grades: Floats, sizes: Ints, draws: int) -> Floats:
    """Correlate random halves of the grades, sorted by item: [draws, 2], NaN where undefined."""
    if len(sizes) < 3:
        return np.full((draws, 2), np.nan)
    blocks = [np.empty((0, 2))]
    rng, starts = np.random.default_rng(SEED), np.cumsum(sizes) - sizes
    item_index = np.repeat(np.arange(len(sizes)), sizes)
    position = np.arange(len(item_index)) - starts[item_index]
    for rows in resample.block_sizes(draws, len(item_index)):
        order = np.argsort(item_index + rng.random((rows, len(item_index))), axis=1)  # within items
        # every other one, from the first or the second on
        is_first = (position + rng.integers(2, size=(rows, len(sizes)))[:, item_index]) % 2 == 0
        sums = [np.add.reduceat(grades[order] * half, starts, axis=1) for half in (is_first, ~is_first)]
        counts = [np.add.reduceat(half, starts, axis=1, dtype=np.int64) for half in (is_first, ~is_first)]
        halves = [(total / count).round(12) for total, count in zip(sums, counts, strict=True)]  # equal means are equal
        weights = np.ones_like(halves[0])
        is_varied = (np.ptp(halves[0], axis=1) > 0) & (np.ptp(halves[1], axis=1) > 0)
        ranked = (stats.rankdata(half, axis=1) - (len(sizes) + 1) / 2 for half in halves)
        centred = (half - half.mean(axis=1, keepdims=True) for half in halves)
        coefficients = np.column_stack([_weighted_pearson(weights, *ranked), _weighted_pearson(weights, *centred)])
        blocks.append(np.where(is_varied[:, None], coefficients, np.nan))
    return np.concatenate(blocks)
