"""Rank: does a model's implicitness rise with the level of graded groups, and more than surface cues do?"""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from pipeline.examples import groups
from pipeline.metrics.ranking import kendall_tau, spearman_rho
from pipeline.tasks import impscore, score

# What a model must beat to have learnt more than the surface.
BASELINES = {
    "length": pl.col("text").str.len_chars().cast(pl.Float64),
    "punctuation": pl.col("text").str.count_matches(r"[?？!！…]|\.\.\.").cast(pl.Float64),
}


def rank(path: Path, model_id: str | None = None, done: Callable[[int], None] = lambda _: None) -> pl.DataFrame:
    """Mean rank correlations over the groups of a file, a row for the model and one for each baseline.

    Columns: by, groups, kendall_tau (equation 11), spearman_rho; the model stands first.
    """
    sentences = groups.read(path)
    scored = score.frame(sentences, "text", model_id or impscore.model_for(None), done)
    scored = scored.with_columns(model="implicitness", **BASELINES)
    rows = []
    for by in ("model", *BASELINES):
        parts = scored.select("level", by).with_columns(scored["group"]).partition_by("group", maintain_order=True)
        lists = [(part["level"].to_list(), part[by].to_list()) for part in parts]
        taus, rhos = ([measure(*both) for both in lists] for measure in (kendall_tau, spearman_rho))
        rows.append((by, len(lists), round(sum(taus) / len(taus), 6), round(sum(rhos) / len(rhos), 6)))
    columns = {"by": pl.String, "groups": pl.Int64, "kendall_tau": pl.Float64, "spearman_rho": pl.Float64}
    return pl.DataFrame(rows, schema=columns, orient="row")
