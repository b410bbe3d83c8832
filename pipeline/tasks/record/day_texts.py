"""The comments of a day, their distinct texts, the shards of these, and articles."""

from collections.abc import Callable, Sequence
from typing import TypedDict

import polars as pl

from pipeline import warehouse
from pipeline.errors import Missing, Retry
from pipeline.slices import Shard, Staged, parse_day
from pipeline.tables import empty


def scan_comments(day: str, snapshot: int | None, *columns: str) -> pl.LazyFrame:
    """Select columns of a day's comments at a snapshot of `comments`; None is the table before its first row."""
    if snapshot is None:
        return empty("comments").lazy().select(*columns)
    return warehouse.scan("comments", pl.col("day") == parse_day(day), snapshot).select(*columns)


def scan_texts(day: str, snapshot: int | None) -> pl.LazyFrame:
    """Select the distinct texts of a day: text_hash, text, lang."""
    return scan_comments(day, snapshot, "text_hash", "text", "lang").unique("text_hash", keep="any")


def is_in_shard(shard: Shard) -> pl.Expr:
    """Test whether a row belongs to a shard: the text hash decides, so that a text always has the same shard."""
    return divide_texts(shard["parts"]) == shard["part"]


def divide_texts(parts: int) -> pl.Expr:
    """Divide texts into parts by their hash: the number of each row's part."""
    return pl.col("text_hash").str.slice(0, 8).str.to_integer(base=16, dtype=pl.Int64) % parts


def join_staged(
    table: str, items: pl.DataFrame, key: Sequence[str], existing: pl.LazyFrame, staged: Sequence[Staged], noun: str
) -> pl.DataFrame:
    """Join the items of a day with their rows, existing or staged for a table; Retry if some have none."""
    of_day = existing.join(items.lazy().select(key).unique(), on=key, how="semi")
    results = pl.concat([of_day, *([warehouse.scan_staged(table, staged)] if staged else [])]).unique(key, keep="any")
    rows = items.join(results.collect(), on=key, how="inner", maintain_order="left")
    if rows.height != items.height:
        raise Retry(f"{table} of {items.height - rows.height} {noun} are missing: run the shards again")
    return rows


def scan_articles(condition: pl.Expr, snapshot: int | None = None) -> pl.LazyFrame:
    """Select articles of all days, each in its newest version; of several files of one day, the longest text."""
    rows = warehouse.scan("articles", condition, snapshot)
    return rows.sort("day", "origin", pl.col("text").str.len_chars()).unique(["source", "thread_id"], keep="last")


class ArticlePart(TypedDict):
    """One mapped task's part of a source's articles, at one snapshot of the table."""

    source: str
    part: int
    parts: int
    snapshot: int | None


def plan_articles(
    scan: Callable[[str | None, int | None], pl.LazyFrame], rows_per_shard: int, only: str | None, missing: str
) -> list[ArticlePart]:
    """Divide the articles of all sources, or of one, into parts of about `rows_per_shard`.

    `scan` gives the articles of a source, or of all, at a snapshot. Without any the message says what is Missing; its
    `{}` is for the source.
    """
    plan, snapshot = [], warehouse.get_snapshot_id("articles")
    articles = scan(only, snapshot)
    for source, count in articles.group_by("source").len().sort("source").collect().iter_rows():
        parts = -(-count // rows_per_shard)
        plan += [ArticlePart(source=source, part=part, parts=parts, snapshot=snapshot) for part in range(parts)]
    if not plan:
        raise Missing(missing.format(f" of {only}" if only else ""))
    return plan


def read_part(articles: pl.LazyFrame, part: ArticlePart) -> pl.DataFrame:
    """Read the articles of a part, in the order of their ids; a part may be empty."""
    number = pl.col("thread_id").hash(seed=0) % part["parts"]
    return articles.filter(number == part["part"]).collect().sort("thread_id")
