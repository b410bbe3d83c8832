"""Replace rows: some of a partition, or those that a model or tokenizer made of a day; remove those of no comment."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import polars as pl

from pipeline import warehouse
from pipeline.tasks.record.day_texts import number_texts
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
