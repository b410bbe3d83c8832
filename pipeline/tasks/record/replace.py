"""Replace rows: some of a partition, or those that a model or tokenizer made of a day; remove those of no comment."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
import polars as pl

from pipeline import warehouse
from pipeline.io.visible import BLANK
from pipeline.metrics.resample import Floats
from pipeline.score import signature
from pipeline.tables import TABLES
from pipeline.tasks.record import runs
from pipeline.tasks.record.day_texts import number_texts
from pipeline.training.registry import Model
from pipeline.warehouse import buckets
from pipeline.warehouse.write import Slice

_COMMENT = ("thread_id", "comment_id", "text_hash")
KEYS = {"tokens": ("text_hash",), "projections": ("text_hash",), "scores": _COMMENT, "scores_explained": _COMMENT}
"""Table -> the columns, beside source and day, by which a row belongs to a comment."""


def replace_rows(
    table: str, partition: Slice, rows: pl.DataFrame, replaced: pl.Expr | Sequence[str], run_id: str
) -> int:
    """Replace some rows of a partition and keep the others; return the row count of the partition.

    `rows` have all columns of the table. `replaced` are the current rows to remove: a condition, or the columns in
    which they equal one of `rows`.
    """

    def merge(current: pl.LazyFrame) -> pl.LazyFrame:
        if isinstance(replaced, pl.Expr):
            remaining = current.filter(~replaced)
        else:
            remaining = current.join(rows.lazy(), on=replaced, how="anti")
        return pl.concat([remaining.select(rows.columns), rows.lazy()])

    return warehouse.replace(table, partition, merge, run_id)


def replace_day(
    table: str,
    day: str,
    rows: pl.LazyFrame,
    makers: pl.DataFrame,
    list_items: Callable[[], pl.LazyFrame],
    key: Sequence[str],
    maker_key: Sequence[str],
    run_id: str,
) -> None:
    """Replace the rows that some models or tokenizers made of a day; keep rows of other makers if their item exists.

    The day may have changed since the run read it, and a later run may have published. Therefore rows of items that the
    day no longer has are dropped, and rows of the later run for other items stay.

    `rows` have all columns of the table, and `makers` the columns that name the models or tokenizers of `rows`.
    `list_items` returns the comments or texts that the day has when the rows are written. A row belongs to an item by
    the columns `maker_key`, and by `key` if another maker made it.
    """

    def merge(current: pl.LazyFrame) -> pl.LazyFrame:
        current = current.select(rows.collect_schema().names())
        count = buckets.count_buckets(rows, current)
        # whole threads of comments, or texts
        return buckets.join_buckets([rows, current, list_items()], pl.col(key[1]).hash(seed=0), count, merge_bucket)

    def merge_bucket(rows: pl.LazyFrame, current: pl.LazyFrame, items: pl.LazyFrame) -> pl.LazyFrame:
        by_other_makers = current.join(makers.lazy(), on=makers.columns, how="anti").join(items, on=key, how="semi")
        by_makers = pl.concat([rows, current.join(makers.lazy(), on=makers.columns, how="semi")])
        by_makers = by_makers.join(items, on=maker_key, how="semi", maintain_order="left")
        by_makers = by_makers.unique(maker_key, keep="first", maintain_order=True)
        return pl.concat([by_other_makers, by_makers]).sort(key, maintain_order=True)

    warehouse.replace(table, warehouse.make_slice(day=day), merge, run_id)


def remove_stale(partition: Slice, run_id: str) -> int:
    """Remove the rows of a slice (source, day) that have no comment now; return their count."""
    total = 0
    for name in KEYS:
        rows = warehouse.scan(name).filter(**partition)
        if not rows.head(1).collect().height:  # as at each first import, which then reads no comments
            continue
        stale = _join(name, rows, partition, "anti")
        if count := int(stale.select(pl.len()).collect(engine="streaming").item()):
            warehouse.replace(name, partition, partial(_join, name, partition=partition, how="semi"), run_id)
            total += count
    return total


def _join(name: str, rows: pl.LazyFrame, partition: Slice, how: Literal["semi", "anti"]) -> pl.LazyFrame:
    key = KEYS[name]
    comments = warehouse.scan("comments").filter(**partition).select(key)

    def join(rows: pl.LazyFrame, comments: pl.LazyFrame) -> pl.LazyFrame:
        return rows.join(comments, on=key, how=how, maintain_order="left")

    return buckets.join_buckets([rows, comments], number_texts(), buckets.count_buckets(rows, comments), join)


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


def write_scores(rows: pl.DataFrame, metric: str, day: str, model_id: str, run_id: str, timer: runs.Start) -> int:
    """Write the comments of a day that have a score, in place of those by the same model; return the row count."""
    scores = rows.drop_nulls(metric).with_columns(metric=pl.lit(metric), model_id=pl.lit(model_id), value=metric)
    scores = scores.select(TABLES["scores"].schema.column_names())
    partition = warehouse.make_slice(day=day, metric=metric, model_id=model_id)
    count = warehouse.overwrite("scores", partition, scores, run_id)
    runs.record_scores(scores, day, f"score_{metric}", metric, [model_id], run_id, timer)
    return count
