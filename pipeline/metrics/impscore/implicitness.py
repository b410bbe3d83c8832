"""How well a model tells implicit from explicit (ImpScore, section 5.1), and the numbers of figure 3."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.floating]


def figure_3(triples: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Both accuracies and the means of figure 3 (IMP-25 to IMP-27), over all rows or by some columns.

    Args:
        triples: a row a triple: i1, i2, i3 (implicitness of the implicit, explicit and foreign sentence), near and far
            (ΔP of the positive and the negative pair).
        by: columns to part the rows by.

    Returns:
        The columns of `by`, metric, value, pair_count.
    """
    i1, i2, i3, near, far = (pl.col(name) for name in ("i1", "i2", "i3", "near", "far"))
    numbers = {
        "implicitness_accuracy": ((i1 > i2).mean() + (i1 > i3).mean()) / 2,
        "pragmatics_accuracy": (near < far).mean(),
        "implicitness_of_implicit": i1.mean(),
        "implicitness_of_explicit": (i2.mean() + i3.mean()) / 2,
        "pragmatic_distance_positive": near.mean(),
        "pragmatic_distance_negative": far.mean(),
    }
    counted = {**numbers, "pair_count": pl.len().cast(pl.Int64)}
    found = triples.group_by(*by, maintain_order=True).agg(**counted) if by else triples.select(**counted)
    return found.unpivot(index=[*by, "pair_count"], on=list(numbers), variable_name="metric").select(
        *by, "metric", "value", "pair_count"
    )


QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def quantiles(values: pl.Series, at: Sequence[float] = QUANTILES) -> list[float]:
    """Linearly interpolated quantiles: what a violin of figure 3 is drawn from, as a table (IMP-28)."""
    return [float(values.quantile(q, interpolation="linear") or 0.0) for q in at]
