"""Accuracy of a detector of problematic texts, by implicitness (ImpScore, section 7.2, figure 7; IMP-42, IMP-43).

Intervals count near duplicates once: one template in 500 variants is not 500 texts.
"""

from collections.abc import Sequence

import polars as pl

from pipeline.errors import BadInput
from pipeline.metrics.resample import wilson

WIDTH = 0.25
BINS = tuple(WIDTH * i for i in range(9))  # edges of eight bins on [0, 2], half-open but the last
LABELS = tuple(f"{low:.2f}-{low + WIDTH:.2f}" for low in BINS[:-1])
_SLACK = 1e-5  # 1 - cos in single precision may leave [0, 2] by a rounding


def label_bins(values: pl.Series | Sequence[float]) -> pl.Series:
    """Label bins such as `0.25-0.50`, which has 0.25, not 0.50; the last has 2 as well. BadInput outside of [0, 2]."""
    numbers = pl.Series("bin", values, dtype=pl.Float64)
    outside = numbers.filter(numbers.is_null() | ~numbers.is_between(-_SLACK, BINS[-1] + _SLACK))
    if len(outside):
        raise BadInput(
            f"implicitness should be between 0 and {BINS[-1]:g}, not {outside[0]}; "
            f"{len(outside)} of {len(numbers)} texts fit no bin: use a model whose I is a cosine"
        )
    place = (numbers / WIDTH).floor().clip(0, len(LABELS) - 1).cast(pl.Int64)
    return place.replace_strict(dict(enumerate(LABELS)), return_dtype=pl.String)


def measure_bins(rows: pl.DataFrame) -> pl.DataFrame:
    """Measure the accuracy of one detector in each bin, including empty bins.

    Accuracy is the share of all rows that are detected, as in the paper. Its 95 % interval is Wilson's on the
    *effective* count, the number of near-duplicate clusters in the bin: rows of one cluster count as one answer.

    The rows have implicitness; is_detected (null for an answer other than yes and no, which counts as not detected);
    cluster (of `examples.impscore.clusters`). Returns eight rows in order: subset (label of the bin), accuracy, low,
    high (all null in an empty bin), row_count, effective_count, other_count.
    """
    counts = {
        "row_count": pl.len().cast(pl.Int64),
        "effective_count": pl.col("cluster").n_unique().cast(pl.Int64),
        "other_count": pl.col("is_detected").null_count().cast(pl.Int64),
    }
    accuracy = pl.col("is_detected").cast(pl.Boolean).fill_null(value=False).mean()
    bin_rows = rows.with_columns(subset=label_bins(rows["implicitness"])).group_by("subset")
    bins = pl.DataFrame({"subset": LABELS})
    bins = bins.join(bin_rows.agg(accuracy=accuracy, **counts), on="subset", how="left", maintain_order="left")
    bins = bins.with_columns(pl.col(*counts).fill_null(0))
    low, high = wilson(bins["accuracy"].cast(pl.Float64).to_numpy(), bins["effective_count"].to_numpy())
    bounds = {name: pl.Series(values).fill_nan(None).round(6) for name, values in (("low", low), ("high", high))}
    return bins.select("subset", pl.col("accuracy").round(6), **bounds, **{name: name for name in counts})
