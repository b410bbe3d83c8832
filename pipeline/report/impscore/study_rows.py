"""Rows of the frame `studies`, of one day and model, with runs averaged; and rows as cells of a table."""

from typing import Any

import polars as pl

from pipeline.papers.impscore import BENCHMARKS
from pipeline.report.sections import format_value

IMPLICIT = ":implicit"  # ends the subset that is the implicit part of a data set

_FIELDS: dict[str, dict[str, Any]] = {
    "ablation": dict.fromkeys(("implicitness", "pragmatics", "space"), pl.String),
    "sensitivity": dict.fromkeys(("gamma_implicitness", "gamma_pragmatics", "alpha"), pl.Float64),
    "detection": {"by": pl.String, "source": pl.String},
    "validation": {"by": pl.String, "lang": pl.String},
    "people": {"by": pl.String, "set": pl.Int64, "raters": pl.Int64},
}


def average_runs(studies: pl.DataFrame, study: str) -> pl.DataFrame:
    """Average the runs of one study, sorted, with its setting as columns.

    Returns the setting's fields (`by` names the source too if there are several), subset, metric, value (mean), sd
    (null for one run), run_count, low, high, row_count, effective_count.
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


def read_calibrations(studies: pl.DataFrame) -> pl.DataFrame:
    """Read the rows of the study `calibration`, with the names of both measures as `a` and `b`."""
    rows = studies.filter(pl.col("study") == "calibration")
    return rows.with_columns(pl.col("setting").str.json_path_match(f"$.{name}").alias(name) for name in "ab")


def pivot_metrics(studies: pl.DataFrame, study: str) -> pl.DataFrame:
    """Return a row for each subset: subset, row_count and its metrics as columns."""
    return average_runs(studies, study).pivot("metric", index=["subset", "row_count"], values="value").sort("subset")


def find_paper_count() -> pl.Expr:
    """Find the paper's count of a subset: a source's problematic texts, or its implicit ones; null if it has none."""
    counts = {f"{source}{IMPLICIT * part}": sizes[part] for source, sizes in BENCHMARKS.items() for part in (0, 1)}
    return pl.col("subset").replace_strict(counts, default=None, return_dtype=pl.Int64)


def format_cells(rows: pl.DataFrame) -> list[list[str]]:
    """Format rows as cells; a null is a dash."""
    return [[format_value(value) for value in row] for row in rows.iter_rows()]
