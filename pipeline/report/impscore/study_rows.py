"""What the frame `studies` says, runs put together, and the paper's numbers to hold beside it.

In: rows of one day and model: study, setting (JSON), metric, subset, run, value, low, high, row_count, effective_count.
"""

from itertools import product
from typing import Any

import polars as pl

IMPLICIT = ":implicit"  # ends the subset that is the implicit part of a data set

METRICS = (("cosine", "euclidean"), ("cosine", "cosine"), ("euclidean", "cosine"), ("euclidean", "euclidean"))
SPACES = {"p2s": "pragmatic → semantic", "s2p": "semantic → pragmatic", "third": "both → a third"}
_PRINTED = [
    (0.953, 0.962), (0.947, 0.962), (0.946, 0.963), (0.952, 0.973), (0.953, 0.967), (0.947, 0.971),
    (0.927, 0.964), (0.928, 0.974), (0.929, 0.974), (0.926, 0.963), (0.927, 0.962), (0.924, 0.963),
]  # fmt: skip
TABLE_2 = dict(zip(((*both, space) for both, space in product(METRICS, SPACES)), _PRINTED, strict=True))
"""Implicitness and pragmatics accuracy by metric of I, metric of ΔP and space, as the paper has them (IMP-29)."""

_FIELDS: dict[str, dict[str, Any]] = {
    "ablation": dict.fromkeys(("implicitness", "pragmatics", "space"), pl.String),
    "sensitivity": dict.fromkeys(("gamma_implicitness", "gamma_pragmatics", "alpha"), pl.Float64),
    "detection": {"by": pl.String, "source": pl.String},
}


def over_runs(studies: pl.DataFrame, study: str) -> pl.DataFrame:
    """Rows of one study, its setting as columns, runs put together.

    Returns:
        The setting's fields (`by` says the source too where there are several), subset, metric, value (mean), sd (null
        for one run), run_count, low, high, row_count, effective_count; sorted.
    """
    fields = _FIELDS.get(study, {})
    rows = studies.filter(pl.col("study") == study)
    if fields:
        rows = rows.with_columns(pl.col("setting").str.json_decode(pl.Struct(fields))).unnest("setting")
    if study == "detection" and rows["source"].n_unique() > 1:
        rows = rows.with_columns(by=pl.format("{} on {}", "by", pl.col("source").fill_null("the rest")))
    keys = [*fields, "subset", "metric"]
    means = pl.col("value", "low", "high").mean()
    counts = pl.col("row_count", "effective_count").max()
    found = rows.group_by(keys).agg(means, counts, sd=pl.col("value").std(), run_count=pl.col("run").n_unique())
    return found.sort(keys)


def by_metric(studies: pl.DataFrame, study: str) -> pl.DataFrame:
    """A row a subset: subset, row_count and its metrics as columns."""
    return over_runs(studies, study).pivot("metric", index=["subset", "row_count"], values="value").sort("subset")
