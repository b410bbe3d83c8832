"""Decide whether a trained model is promoted: on held-out rows it must be as good as each rival, within an interval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.errors import Retry, UndertoneError
from pipeline.metrics import resample
from pipeline.metrics.resample import Floats

if TYPE_CHECKING:
    from pipeline.training.registry import Model

DRAWS = 2000
MIN_ROWS = 10  # of fewer rows an interval tells nothing
SEED = 42
IN_FORCE = "model in force"  # how a comparison names it
SCHEMA = {
    "metric": pl.String, "rival": pl.String, "new": pl.Float64, "other": pl.Float64, "difference": pl.Float64,
    "low": pl.Float64, "high": pl.Float64, "rows": pl.Int64,
}  # fmt: skip


def compute_share(sums: Floats) -> Floats:
    """Compute the share of two sums: [..., 2] -> [...]."""
    return np.asarray(sums[..., 0] / np.maximum(sums[..., 1], 1))


def count_shares(values: Any) -> Floats:
    """Make the statistics of `compute_share` from a value in [0, 1] for each row: [n] -> [n, 2]."""
    return np.column_stack([np.asarray(values, np.float64), np.ones(len(values))])


def count_products(values: Floats, gold: Floats) -> Floats:
    """Make the statistics of `compute_correlation` from two values for each row: [n] -> [n, 6]."""
    return np.column_stack((np.ones(len(values)), values, gold, values**2, gold**2, values * gold))


def rank_against(target: Any) -> Callable[[Any], Floats]:
    """Make what computes the statistics of Spearman's rho with a target, by ranks among all n: [n] -> [n, 6]."""

    def rank(values: Any) -> Floats:
        numbers = pl.Series(values, dtype=pl.Float64)
        return np.asarray(numbers.rank().to_numpy() / len(numbers) - 0.5)

    ranks = rank(target)
    return lambda values: count_products(rank(values), ranks)


def compute_correlation(sums: Floats) -> Floats:
    """Compute Pearson's r of summed products; 0 of a constant: [..., 6] -> [...]."""
    n, first, second, first_square, second_square, product = np.moveaxis(sums, -1, 0)
    spread = (first_square - first**2 / n) * (second_square - second**2 / n)
    return np.asarray(np.where(spread > 1e-12, product - first * second / n, 0) / np.sqrt(np.maximum(spread, 1e-12)))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Held-out rows of a kind of model; the metric is of sums of a row's statistics, and a larger one is better."""

    metric: str
    answer: "Callable[[Model], Floats]"  # the statistics of a model: [n, k]
    baselines: Mapping[str, Floats] = field(default_factory=dict)  # the same of each baseline
    measure: Callable[[Floats], Floats] = compute_share  # sums [..., k] -> [...]
    units: pl.Series | None = None  # what rows depend on, such as articles [n]; whole units are drawn
    texts: pl.Series | None = None  # [n], where splits change with the data: another model may have learned from them


def select_held_out(rows: pl.DataFrame) -> pl.DataFrame:
    """Select the rows of the split test; without any, those of validation."""
    test = rows.filter(pl.col("split") == "test")
    return test if test.height else rows.filter(pl.col("split") == "validation")


def compare(
    held_out: Sequence[HeldOut],
    model: "Model",
    rival: "Model | None",
    is_unseen: Callable[[pl.Series], pl.Series] = lambda texts: texts.is_not_null(),
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Compare a model with baselines and, on rows that it has not seen, its rival; also return why rivals have none."""
    comparisons: list[dict[str, Any]] = []
    problems: dict[str, str] = {}
    for rows in held_out:
        statistics = rows.answer(model)
        mask = np.ones(len(statistics), bool)
        if (count := _count_units(rows, mask)) >= MIN_ROWS:
            comparisons += [_compare_pair(rows, statistics, *other, mask) for other in rows.baselines.items()]
        else:
            problems |= dict.fromkeys(rows.baselines, f"{count} held-out rows or articles, fewer than {MIN_ROWS}")
        if rival is None:
            continue
        if rows.texts is not None:
            mask = is_unseen(rows.texts).to_numpy()
        if (count := _count_units(rows, mask)) < MIN_ROWS:
            problems[IN_FORCE] = f"{count} held-out rows or articles are new to it, fewer than {MIN_ROWS}"
            continue
        try:
            comparisons.append(_compare_pair(rows, statistics, IN_FORCE, rows.answer(rival), mask))
        except Retry:
            raise
        except (UndertoneError, ValueError, KeyError) as error:  # of another schema, or its encoder is absent
            problems[IN_FORCE] = f"{error}"
    return comparisons, problems


def _count_units(rows: HeldOut, mask: "np.ndarray[Any, Any]") -> int:
    return int(mask.sum() if rows.units is None else rows.units.filter(pl.Series(mask)).n_unique())


def _compare_pair(rows: HeldOut, new: Floats, name: str, other: Floats, mask: "np.ndarray[Any, Any]") -> dict[str, Any]:
    statistics = np.hstack([new, other])[mask]
    count = len(statistics)
    if rows.units is not None:
        numbers = resample.number_units(rows.units.filter(pl.Series(mask)), count)
        statistics = resample.sum_units(statistics, numbers)
    distinct, copies = np.unique(statistics, axis=0, return_counts=True)  # rows that are alike are drawn as one
    samples = resample.sum_samples(distinct, resample.draw_counts(copies, DRAWS, SEED))
    width = new.shape[1]
    differences = rows.measure(samples[:, :width]) - rows.measure(samples[:, width:])
    low, high = resample.bounds(differences)
    values = [float(rows.measure(part.sum(axis=0))) for part in (statistics[:, :width], statistics[:, width:])]
    rounded = (round(number, 6) + 0.0 for number in (*values, values[0] - values[1], low, high))
    return dict(zip(SCHEMA, (rows.metric, name, *rounded, count), strict=True))


def decide(
    comparisons: Sequence[Mapping[str, Any]], doubt: str | None, bar: str | None, *, is_forced: bool
) -> tuple[bool, bool, str]:
    """Decide whether a model is promoted, is worse than a rival, and why; force overrides a doubt, nothing a bar."""
    worse = [f"{row['rival']} in {row['metric']}" for row in comparisons if row["high"] < 0]
    reason = f"worse than {', '.join(worse)}" if worse else doubt or ""
    if bar:
        return False, bool(worse), bar
    if is_forced:
        return True, bool(worse), f"promoted by request{f', although {reason}' if reason else ''}"
    if reason:
        return False, bool(worse), reason
    rivals = ", ".join(dict.fromkeys(str(row["rival"]) for row in comparisons))
    return True, False, f"as good as {rivals}, within an interval" if rivals else "there is nothing to compare with"
