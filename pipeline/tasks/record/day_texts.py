"""A day's comments, their distinct texts cut into shards by hash, and articles."""

import polars as pl

from pipeline import warehouse
from pipeline.slices import Shard, parse_day
from pipeline.tables import empty


def scan_comments(day: str, snapshot: int | None, *columns: str) -> pl.LazyFrame:
    """Columns of the day's comments at a snapshot of `comments`; None is the table before its first row."""
    if snapshot is None:
        return empty("comments").lazy().select(*columns)
    return warehouse.scan("comments", pl.col("day") == parse_day(day), snapshot).select(*columns)


def scan_texts(day: str, snapshot: int | None) -> pl.LazyFrame:
    """One row a text: text_hash, text, lang."""
    return scan_comments(day, snapshot, "text_hash", "text", "lang").unique("text_hash", keep="any")


def is_in_shard(shard: Shard) -> pl.Expr:
    """The rows of a shard, by text hash, so that a text is always in the same part."""
    number = pl.col("text_hash").str.slice(0, 8).str.to_integer(base=16, dtype=pl.Int64)
    return number % shard["parts"] == shard["part"]


def scan_articles(condition: pl.Expr, snapshot: int | None = None) -> pl.LazyFrame:
    """Articles of all days, each once: as it was collected last, and of several files of a day by the longest."""
    rows = warehouse.scan("articles", condition, snapshot)
    return rows.sort("day", "origin", pl.col("text").str.len_chars()).unique(["source", "thread_id"], keep="last")
