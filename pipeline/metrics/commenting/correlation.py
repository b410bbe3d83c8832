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

from pipeline.metrics.resample import Floats, Ints, Names, block_sizes, bounds, draw_picks, number_units, p_value

Numbers = npt.NDArray[np.number] | pl.Series | Sequence[float]

DRAWS = 1000
SEED = 42


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
    """Correlation of one half of the raters with the other, the mean over draws."""

    spearman: float | None
    pearson: float | None
    n: int  # items with two grades or more
    left_out: int  # items with one


def correlate(
    scores: Numbers, grades: Numbers, groups: Names | None = None, *, draws: int = DRAWS, seed: int = SEED
) -> Correlation:
    """Compute Spearman's and Pearson's correlation of scores with grades.

    p is scipy's and assumes independent items; the interval does not.

    Args:
        scores: of each item, [n].
        grades: the same.
        groups: the article of each item, [n]: whole articles are drawn. By default single items.
        draws: samples of the bootstrap.
        seed: of the draws.

    Raises:
        ValueError: lengths that differ, or a value that is not finite.
    """
    score_arrays, grade_values, units = _check_inputs([scores], grades, groups)
    return _build_correlation(
        score_arrays[0], grade_values, _resample(score_arrays, grade_values, units, draws, seed)[:, 0]
    )


def compare(
    first: Numbers,
    second: Numbers,
    grades: Numbers,
    groups: Names | None = None,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Correlation:
    """Measure how much more `first` correlates with the grades than `second`, e.g. a weighted metric and the plain one.

    By a paired bootstrap: both are measured on the same samples, and p is that of `resample.p_value`. Arguments and
    errors as of `correlate`.
    """
    score_arrays, grade_values, units = _check_inputs([first, second], grades, groups)
    samples = _resample(score_arrays, grade_values, units, draws, seed)
    fields: list[float | None] = []
    for coefficient, differences in zip((_spearman, _pearson), (samples[:, 0] - samples[:, 1]).T, strict=True):
        (first_value, _), (second_value, _) = (coefficient(score_values, grade_values) for score_values in score_arrays)
        if first_value is None or second_value is None:
            fields += [None] * 4
            continue
        fields += [first_value - second_value, p_value(differences), *_bounds_or_none(differences)]
    return Correlation._make([*fields, len(grade_values)])


def split_half(
    ratings: pl.DataFrame, *, draws: int = DRAWS, seed: int = SEED, spearman_brown: bool = False
) -> SplitHalf:
    """Correlate human grades with human grades: the "Human" row of tables 3 and 4 (AAC-27).

    The grades of each item are randomly divided into two halves, of which one has a grade more where they are odd; the
    halves' means are correlated over items, and the coefficients averaged over draws. With two grades an item it is one
    against the other in random order. The paper divides once, it seems, and gives .7803 and .7804.

    Args:
        ratings: item_id, rater_id, grade.
        draws: random divisions.
        seed: of the divisions.
        spearman_brown: raise both to what twice as many grades would give, 2 r / (1 + r), as a half has half of them.

    Raises:
        ValueError: a null, or a rater who graded an item twice.
    """
    rows = ratings.select("item_id", "rater_id", pl.col("grade").cast(pl.Float64))
    if rows.null_count().sum_horizontal().item() or not rows["grade"].is_finite().all():
        raise ValueError("expected item_id, rater_id and grade in every row")
    if rows.select("item_id", "rater_id").is_duplicated().any():
        raise ValueError("expected a rater to grade an item once")
    sized = rows.with_columns(count=pl.len().over("item_id")).sort("item_id", "rater_id")
    left_out = sized.filter(pl.col("count") < 2).height
    regraded = sized.filter(pl.col("count") > 1)
    sizes = regraded.group_by("item_id", maintain_order=True).len()["len"].cast(pl.Int64).to_numpy()
    coefficients = _correlate_halves(regraded["grade"].to_numpy(), sizes, draws, seed)
    spearman, pearson = (_average_draws(column, spearman_brown=spearman_brown) for column in coefficients.T)
    return SplitHalf(spearman, pearson, len(sizes), left_out)


def normalise_scores(scores: Numbers, grades: Numbers, low: float = 1, high: float = 5) -> Floats:
    """Scale scores to the mean and variance of the grades, then clip them (tables 5 and 6; AAC-29): [n].

    Constant scores all become the mean. Only what is normalised against the same grades may be compared.

    Raises:
        ValueError: nothing at all, lengths that differ, or a value that is not finite.
    """
    (score,), grade_values, _ = _check_inputs([scores], grades, None)
    if not len(score):
        raise ValueError("expected at least one score")
    spread = 0.0 if _is_constant(score) else grade_values.std() / score.std()
    clipped: Floats = np.clip(grade_values.mean() + (score - score.mean()) * spread, low, high)
    return clipped


def tabulate(rows: pl.DataFrame, *, draws: int = DRAWS, seed: int = SEED) -> pl.DataFrame:
    """Correlate each metric with the grades of the same items, with intervals (tables 3 and 4).

    Args:
        rows: item_id, group (the article), grade, metric, value; each item once for each metric.
        draws: samples of the bootstrap, the same for all metrics.
        seed: of the draws.

    Returns:
        metric and the fields of `Correlation`, in the order in which metrics first come.

    Raises:
        ValueError: a null, an item without a value of some metric or with several, with two grades or two groups.
    """
    names = ["item_id", "group", "grade", "metric", "value"]
    if nulls := [name for name in names if rows[name].null_count()]:
        raise ValueError(f"expected no nulls, found some in {', '.join(nulls)}")
    metrics = rows["metric"].unique(maintain_order=True).to_list()
    items = rows.select("item_id", "group", "grade").unique(maintain_order=True)
    if items["item_id"].is_duplicated().any():
        raise ValueError(
            f"item {items.filter(pl.col('item_id').is_duplicated())['item_id'][0]!r} has two grades or groups"
        )
    if rows.select("item_id", "metric").is_duplicated().any() or rows.height != items.height * len(metrics):
        raise ValueError(f"expected each of {items.height} items once for each of {', '.join(map(str, metrics))}")
    values = [
        rows.filter(pl.col("metric") == metric).join(items, on="item_id", maintain_order="right")["value"]
        for metric in metrics
    ]
    score_arrays, grade_values, units = _check_inputs(values, items["grade"], items["group"])
    samples = _resample(score_arrays, grade_values, units, draws, seed)
    correlations = [
        _build_correlation(value, grade_values, samples[:, i])._asdict() for i, value in enumerate(score_arrays)
    ]
    schema = dict.fromkeys(Correlation._fields[:-1], pl.Float64) | {"n": pl.Int64}
    return pl.DataFrame(correlations, schema=schema).insert_column(
        0, pl.Series("metric", metrics, rows["metric"].dtype)
    )


def _check_inputs(
    scores: Sequence[Numbers], grades: Numbers, groups: Names | None
) -> tuple[list[Floats], Floats, Ints]:
    """Convert scores, grades and groups to numbers and check them."""
    arrays = [np.array(pl.Series(column, dtype=pl.Float64, strict=False).to_numpy()) for column in (*scores, grades)]
    if len({len(array) for array in arrays}) > 1:
        raise ValueError(f"expected as many scores as grades, got {', '.join(str(len(array)) for array in arrays)}")
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("expected finite numbers; leave out what has no score or no grade")
    count = len(arrays[0])
    if groups is None:
        return arrays[:-1], arrays[-1], np.arange(count)
    return arrays[:-1], arrays[-1], number_units(groups, count)


def _is_constant(values: Floats) -> bool:
    """Check whether all values are equal, up to the rounding error from which scipy warns."""
    if not np.ptp(values):
        return True
    return bool(np.linalg.norm(values - values.mean()) < 1e-13 * abs(values.mean()))


def _spearman(scores: Floats, grades: Floats) -> tuple[float | None, float | None]:
    """Compute Spearman's coefficient and its p; None where they are undefined."""
    return _correlate_or_none(stats.spearmanr, scores, grades)


def _pearson(scores: Floats, grades: Floats) -> tuple[float | None, float | None]:
    return _correlate_or_none(stats.pearsonr, scores, grades)


def _correlate_or_none(
    coefficient: Callable[[Floats, Floats], Any], scores: Floats, grades: Floats
) -> tuple[float | None, float | None]:
    if len(scores) < 3 or _is_constant(scores) or _is_constant(grades):
        return None, None
    result = coefficient(scores, grades)
    return float(result.statistic), float(result.pvalue)


def _build_correlation(scores: Floats, grades: Floats, samples: Floats) -> Correlation:
    """Build a row from scores, grades and the coefficients of the samples, [draws, 2]."""
    spearman, pearson = _spearman(scores, grades), _pearson(scores, grades)
    if spearman[0] is None:
        return Correlation._make([*[None] * 8, len(grades)])
    spearman_bounds, pearson_bounds = (_bounds_or_none(column) for column in samples.T)
    return Correlation(*spearman, *spearman_bounds, *pearson, *pearson_bounds, len(grades))


def _bounds_or_none(samples: Floats) -> tuple[float | None, float | None]:
    low, high = bounds(samples)
    return (None, None) if np.isnan(low) else (low, high)


def _resample(scores: Sequence[Floats], grades: Floats, units: Ints, draws: int, seed: int) -> Floats:
    """Compute Spearman and Pearson of each metric in samples of groups: [draws, metrics, 2], NaN where undefined.

    A sample is how often each group, hence each item is drawn. The mean rank of a value in it follows from how many
    items have lower ones, so that nothing is sorted again.
    """
    if len(grades) < 3:
        return np.full((draws, len(scores), 2), np.nan)
    blocks = [np.empty((0, len(scores), 2))]
    centred_grades, grade_levels = grades - grades.mean(), _index_levels(grades)
    metrics = [(score - score.mean(), _index_levels(score)) for score in scores]
    for unit_counts in draw_picks(int(units.max()) + 1, draws, seed, width=len(grades)):
        item_counts = unit_counts[:, units].astype(np.float64)
        block = np.full((len(item_counts), len(scores), 2), np.nan)
        grade_ranks, is_graded = _rank_samples(item_counts, *grade_levels)
        for i, (values, levels) in enumerate(metrics):
            ranks, is_varied = _rank_samples(item_counts, *levels)
            coefficients = np.column_stack(
                [
                    _weighted_pearson(item_counts, ranks, grade_ranks),
                    _weighted_pearson(item_counts, values, centred_grades),
                ]
            )
            block[:, i] = np.where((is_varied & is_graded)[:, None], coefficients, np.nan)
        blocks.append(block)
    return np.concatenate(blocks)


def _index_levels(values: Floats) -> tuple[Ints, Ints, Ints]:
    """Return the order of items by value, where each value starts in it, and each item's value number."""
    order = np.argsort(values, kind="stable")
    _, starts, level = np.unique(values[order], return_index=True, return_inverse=True)
    levels = np.empty_like(order)
    levels[order] = level
    return order, starts, levels


def _rank_samples(item_counts: Floats, order: Ints, starts: Ints, levels: Ints) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Compute each item's mean rank less the mean of all ranks, [draws, n], and whether ranks differ, [draws]."""
    count = np.add.reduceat(item_counts[:, order], starts, axis=1)
    ranks = np.cumsum(count, axis=1) - count / 2
    return (ranks - item_counts.sum(axis=1, keepdims=True) / 2)[:, levels], (count > 0).sum(axis=1) > 1


def _weighted_pearson(weights: Floats, first: Floats, second: Floats) -> Floats:
    """Compute Pearson's coefficient of each sample, [draws], from weights [draws, n] and values [draws, n] or [n]."""
    total = weights.sum(axis=1)
    mean_first, mean_second, squares_first, squares_second, products = (
        (weights * values).sum(axis=1) / total
        for values in (first, second, first * first, second * second, first * second)
    )
    spread = np.sqrt((squares_first - mean_first**2).clip(0) * (squares_second - mean_second**2).clip(0))
    coefficients: Floats = np.full(len(total), np.nan)
    np.divide(products - mean_first * mean_second, spread, out=coefficients, where=spread > 0)
    return coefficients


def _average_draws(coefficients: Floats, *, spearman_brown: bool) -> float | None:
    """Average the coefficients of the draws where they are defined."""
    defined = coefficients[np.isfinite(coefficients)]
    if not len(defined):
        return None
    mean = float(defined.mean())
    if not spearman_brown:
        return mean
    return 2 * mean / (1 + mean) if mean > -1 else None


def _correlate_halves(grades: Floats, sizes: Ints, draws: int, seed: int) -> Floats:
    """Correlate random halves of the grades, sorted by item: [draws, 2], NaN where undefined."""
    if len(sizes) < 3:
        return np.full((draws, 2), np.nan)
    blocks = [np.empty((0, 2))]
    rng, starts = np.random.default_rng(seed), np.cumsum(sizes) - sizes
    item_index = np.repeat(np.arange(len(sizes)), sizes)
    position = np.arange(len(item_index)) - starts[item_index]
    for rows in block_sizes(draws, len(item_index)):
        order = np.argsort(item_index + rng.random((rows, len(item_index))), axis=1)  # within items
        # every other one, from the first or the second on
        is_first = (position + rng.integers(2, size=(rows, len(sizes)))[:, item_index]) % 2 == 0
        halves = [
            np.add.reduceat(grades[order] * half, starts, axis=1)
            / np.add.reduceat(half, starts, axis=1, dtype=np.int64)
            for half in (is_first, ~is_first)
        ]
        first_means, second_means = (
            half.round(12) for half in halves
        )  # equal means are equal, however they were added up
        weights = np.ones_like(first_means)
        is_varied = (np.ptp(first_means, axis=1) > 0) & (np.ptp(second_means, axis=1) > 0)
        ranked = (stats.rankdata(half, axis=1) - (len(sizes) + 1) / 2 for half in (first_means, second_means))
        centred = (half - half.mean(axis=1, keepdims=True) for half in (first_means, second_means))
        coefficients = np.column_stack([_weighted_pearson(weights, *ranked), _weighted_pearson(weights, *centred)])
        blocks.append(np.where(is_varied[:, None], coefficients, np.nan))
    return np.concatenate(blocks)
