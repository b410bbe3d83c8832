"""The change of a mean between two weeks, by source and language, with an interval over threads.

Comments of a thread depend on each other, so a sample draws whole threads, with their comments of both weeks.
"""

from typing import Any

import numpy as np
import polars as pl

from pipeline.metrics import resample
from pipeline.metrics.calibration.comparison import LEAST_THREADS
from pipeline.metrics.resample import DRAWS, SEED, Floats, Interval

GROUP = ("source", "lang")


def measure_changes(threads: pl.DataFrame) -> pl.DataFrame:
    """Measure the change of each group from sums over threads of both weeks.

    In: source, lang, thread_id, is_now, comment_count, total (of the scores), low_count and high_count (of comments
    below the first and above the last quarter of the scores of the week before). Out: source, lang; thread_count,
    comment_count, mean, low_share and high_share, of now and with `_before`; change with low and high, NaN where a week
    has fewer than ten threads.
    """
    rows = []
    for key, part in sorted(threads.partition_by(*GROUP, as_dict=True).items()):
        row: dict[str, Any] = dict(zip(GROUP, key, strict=True))
        for suffix, is_now in (("", True), ("_before", False)):
            week = part.filter(is_now=is_now)
            row |= {f"thread_count{suffix}": week.height, f"comment_count{suffix}": week["comment_count"].sum()}
            for name, column in (("mean", "total"), ("low_share", "low_count"), ("high_share", "high_count")):
                row[name + suffix] = week[column].sum() / row[f"comment_count{suffix}"]
        rows.append(row | measure_change(part)._asdict())
    return pl.DataFrame(rows).rename({"value": "change"})


def measure_change(threads: pl.DataFrame) -> Interval:
    """Measure how far the mean of now lies above that of before, from sums over threads (is_now, comment_count, total).

    The interval of 95 % is a percentile bootstrap over threads.
    """
    is_now = threads["is_now"].to_numpy()[:, None]
    sums = threads.select("comment_count", "total").cast(pl.Float64).to_numpy()
    units = resample.number_units(threads["thread_id"], threads.height)
    stats = resample.sum_units(np.hstack([sums * is_now, sums * ~is_now]), units)
    low = high = np.nan
    if min(is_now.sum(), (~is_now).sum()) >= LEAST_THREADS:
        samples = resample.sum_samples(stats, resample.draw_counts(len(stats), DRAWS, SEED))
        low, high = resample.bounds(_subtract_means(samples))
    return Interval(float(_subtract_means(stats.sum(axis=0, keepdims=True))[0]), low, high)


def _subtract_means(sums: Floats) -> Floats:
    """Subtract the mean before from the mean now: [draws, 4] -> [draws], NaN without comments in a week."""
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[:, 1] / sums[:, 0] - sums[:, 3] / sums[:, 2])


def combine_corrected(days: pl.DataFrame) -> pl.DataFrame:
    """Combine means that a judge corrected day by day to the change of each group, if all days have one judge.

    Each day has a sample of its own, so errors are independent. Intervals are about these comments, not other threads.
    In: source, lang, is_now, comment_count, corrected_mean, corrected_low, corrected_high, judge. Out: source, lang,
    judge, corrected (a change), corrected_low, corrected_high.
    """
    weight = pl.col("comment_count") / pl.col("comment_count").sum().over(*GROUP, "is_now")
    half = (pl.col("corrected_high") - pl.col("corrected_low")) / 2
    is_whole = (pl.col("corrected_mean").is_not_null().all() & (pl.col("judge").n_unique() == 1)).over(GROUP)
    part = pl.when("is_now").then(weight).otherwise(-weight) * pl.col("corrected_mean")
    parts = days.with_columns(part=part, square=(weight * half) ** 2).filter(is_whole)
    sums = parts.group_by(GROUP).agg(pl.col("part", "square").sum(), pl.col("judge").first())
    value, error = pl.col("part"), pl.col("square").sqrt()
    return sums.select(*GROUP, "judge", corrected=value, corrected_low=value - error, corrected_high=value + error)
