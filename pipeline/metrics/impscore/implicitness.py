"""How well a model separates implicit from explicit (ImpScore, section 5.1), and the numbers of figure 3."""

from collections.abc import Sequence

import polars as pl

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def tabulate_figure_3(triples: pl.DataFrame, *group_columns: str) -> pl.DataFrame:
    """Compute both accuracies and the means of figure 3 (IMP-25 to IMP-27), overall or by columns.

    The triples have i1, i2, i3 (implicitness of the implicit, explicit and foreign sentence), near and far (ΔP of the
    positive and the negative pair). Returns the group columns, metric, value, pair_count.
    """
    i1, i2, i3, near, far = map(pl.col, ("i1", "i2", "i3", "near", "far"))
    numbers = {
        "implicitness_accuracy": ((i1 > i2).mean() + (i1 > i3).mean()) / 2,
        "pragmatics_accuracy": (near < far).mean(),
        "implicitness_of_implicit": i1.mean(),
        "implicitness_of_explicit": (i2.mean() + i3.mean()) / 2,
        "pragmatic_distance_positive": near.mean(),
        "pragmatic_distance_negative": far.mean(),
    }
    aggregates = {**numbers, "pair_count": pl.len().cast(pl.Int64)}
    groups = triples.group_by(*group_columns, maintain_order=True) if group_columns else None
    wide = groups.agg(**aggregates) if groups else triples.select(**aggregates)
    rows = wide.unpivot(index=[*group_columns, "pair_count"], on=list(numbers), variable_name="metric")
    return rows.select(*group_columns, "metric", "value", "pair_count")


def compute_quantiles(values: pl.Series, levels: Sequence[float] = QUANTILES) -> list[float]:
    """Compute linearly interpolated quantiles, the numbers behind a violin of figure 3 (IMP-28)."""
    return [float(values.quantile(level, interpolation="linear") or 0.0) for level in levels]
