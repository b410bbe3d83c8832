"""What the frame `studies` says, runs put together.

In: rows of one day and model: study, setting (JSON), metric, subset, run, value, low, high, row_count, effective_count.
"""

from typing import Any

import polars as pl

IMPLICIT = ":implicit"  # ends the subset that is the implicit part of a data set

_FIELDS: dict[str, dict[str, Any]] = {
    "ablation": dict.fromkeys(("implicitness", "pragmatics", "space"), pl.String),
    "sensitivity": dict.fromkeys(("gamma_implicitness", "gamma_pragmatics", "alpha"), pl.Float64),
    "detection": {"by": pl.String, "source": pl.String},
}


def average_runs(studies: pl.DataFrame, study: str) -> pl.DataFrame:
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
    averages = rows.group_by(keys).agg(means, counts, sd=pl.col("value").std(), run_count=pl.col("run").n_unique())
    return averages.sort(keys)


def pivot_metrics(studies: pl.DataFrame, study: str) -> pl.DataFrame:
    """A row a subset: subset, row_count and its metrics as columns."""
    return average_runs(studies, study).pivot("metric", index=["subset", "row_count"], values="value").sort("subset")
