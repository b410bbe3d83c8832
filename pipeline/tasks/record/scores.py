"""Add the scores of one model to rows of comments, and write those of a day."""

from collections.abc import Callable

import numpy as np
import polars as pl

from pipeline import warehouse
from pipeline.io.visible import BLANK
from pipeline.metrics.resample import Floats
from pipeline.score import signature
from pipeline.tables import TABLES
from pipeline.tasks.record import runs
from pipeline.training.registry import Model

DECIMALS = 6
ITEM = ["source", "day", "thread_id", "comment_id", "text_hash"]
"""The columns of a comment in `scores`."""


def add_scores(
    rows: pl.DataFrame,
    metric: str,
    texts: pl.DataFrame,
    model: Model,
    score: Callable[[pl.DataFrame], Floats],
    without_encoder: str,
) -> pl.DataFrame:
    """Add a metric and its `signature`, null without a text; `without_encoder` names what such a model reads."""
    other_columns = signature.drop_earlier_scores(rows, metric, (metric, "signature"))
    texts = texts.with_columns(pl.col("text").fill_null("").str.strip_chars())
    has_text = ~texts["text"].str.contains(BLANK)
    values = np.full(rows.height, np.nan)
    if has_text.any():
        values[has_text.to_numpy()] = score(texts.filter(has_text))
    scores = pl.Series(metric, values.round(DECIMALS)).fill_nan(None)
    text = signature.with_encoder(metric, model.model_id, model.config, without_encoder)
    return other_columns.hstack([scores]).with_columns(signature=pl.when(has_text).then(pl.lit(text)))


def write_day(rows: pl.DataFrame, metric: str, day: str, model_id: str, run_id: str, timer: runs.Start) -> int:
    """Write the comments of a day that have a score, in place of those by the same model; return the row count."""
    scores = rows.drop_nulls(metric).with_columns(metric=pl.lit(metric), model_id=pl.lit(model_id), value=metric)
    scores = scores.select(TABLES["scores"].schema.column_names())
    partition = warehouse.make_slice(day=day, metric=metric, model_id=model_id)
    count = warehouse.overwrite("scores", partition, scores, run_id)
    runs.record_scores(scores, day, f"score_{metric}", metric, [model_id], run_id, timer)
    return count
