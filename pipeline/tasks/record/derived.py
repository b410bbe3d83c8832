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
    """Remove the rows of a slice of comments, or of all with `{}`, that have no comment now; return their count."""
    return sum(_remove(name, partition, run_id) for name in KEYS)


def _remove(name: str, partition: Slice, run_id: str) -> int:
    rows = warehouse.scan(name).filter(**partition)
    if not rows.head(1).collect().height:
        return 0
    stale = _join(name, rows, partition, "anti").group_by("source", "day").len().collect(engine="streaming")
    for source, day, _ in stale.sort("source", "day").iter_rows():
        part = warehouse.make_slice(source=source, day=day)
        warehouse.replace(name, part, partial(_join, name, partition=part, how="semi"), run_id)
    return int(stale["len"].sum())


def _join(name: str, rows: pl.LazyFrame, partition: Slice, how: Literal["semi", "anti"]) -> pl.LazyFrame:
    key = ["source", "day", *KEYS[name]]
    comments = warehouse.scan("comments").filter(**partition).select(key)

    def join(rows: pl.LazyFrame, comments: pl.LazyFrame) -> pl.LazyFrame:
        return rows.join(comments, on=key, how=how, maintain_order="left")

    return buckets.join_buckets([rows, comments], number_texts(), buckets.count_buckets(rows, comments), join)
