"""Rows derived from comments, which go when their comment goes or has another text."""

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
