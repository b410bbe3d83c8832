"""The comments of a day, their distinct texts, the shards of these, and articles."""

from collections.abc import Callable, Sequence
from typing import TypedDict

import numpy as np
import polars as pl

from pipeline import warehouse
from pipeline.errors import Missing, Retry
from pipeline.slices import Shard, Staged, parse_day
from pipeline.tables import empty
from pipeline.warehouse import buckets

_NUMBERS = 1 << 26  # bytes in memory; with 10 million texts of a day, one in seven rows of others has the number of one


def scan_comments(day: str, snapshot: int | None, *columns: str) -> pl.LazyFrame:
    """Select columns of a day's comments at a snapshot of `comments`; None is the table before its first row."""
    if snapshot is None:
        return empty("comments").lazy().select(*columns)
    return warehouse.scan("comments", pl.col("day") == parse_day(day), snapshot).select(*columns)


def number_texts() -> pl.Expr:
    """Number texts by their hash, so that a text always has the same number."""
    return pl.col("text_hash").str.slice(0, 8).str.to_integer(base=16, dtype=pl.Int64)


def plan_shards(
    day: str,
    texts: pl.LazyFrame,
    key: Sequence[str],
    existing: pl.LazyFrame,
    rows_per_shard: int,
    largest_count: int | None = None,
) -> list[Shard]:
    """Stage the distinct texts of a day without an existing row, in shards; none if all have one.

    `texts` have text_hash, text, lang and the columns of `key`. With a `largest_count` of shards, a power of two, each
    is made of all texts with some numbers modulo it, so it may be larger than `rows_per_shard`.
    """
    count = buckets.count_buckets(texts)
    if largest_count:
        count = min(largest_count, 1 << (buckets.count_buckets(texts, rows=rows_per_shard) - 1).bit_length())
    existing_rows = _filter_by_number(existing.select(key), texts)
    new_texts, shards = pl.DataFrame(schema=texts.collect_schema()), list[Shard]()
    with (
        buckets.divide(texts, number_texts(), count) as parts,
        buckets.divide(existing_rows, number_texts(), count) as existing_parts,
    ):
        for part, existing_part in zip(parts, existing_parts, strict=True):
            distinct_texts = part.unique(key, keep="any").join(existing_part, on=key, how="anti")
            new_texts = pl.concat([new_texts, distinct_texts.sort("text_hash").collect()])
            while new_texts.height >= rows_per_shard:
                size = new_texts.height if largest_count else rows_per_shard
                shards.append(Shard(day=day, **warehouse.stage("comments", new_texts.head(size))))
                new_texts = new_texts.slice(size)
    return [*shards, *([Shard(day=day, **warehouse.stage("comments", new_texts))] if new_texts.height else [])]


def read_shard(shard: Shard) -> pl.DataFrame:
    """Read the texts of a shard: text_hash, text, lang."""
    return warehouse.scan_staged("comments", [shard]).collect()


def _filter_by_number(existing: pl.LazyFrame, texts: pl.LazyFrame) -> pl.LazyFrame:
    """Select the existing rows of some texts, and the few of others with the same number: memory stays the same."""
    number, is_taken = number_texts() % _NUMBERS, np.zeros(_NUMBERS, bool)
    for batch in texts.select(number).collect_batches():
        is_taken[batch.to_series().to_numpy()] = True

    def look_up(numbers: pl.Series) -> pl.Series:
        return pl.Series(is_taken[numbers.to_numpy()])

    return warehouse.filter_exactly(existing, number.map_batches(look_up, pl.Boolean, is_elementwise=True))


def join_staged(
    table: str, items: pl.LazyFrame, key: Sequence[str], existing: pl.LazyFrame, staged: Sequence[Staged], noun: str
) -> pl.LazyFrame:
    """Join the distinct items of a day with their rows, existing or staged for a table; Retry if some have none."""
    results = _filter_by_number(existing, items)
    if staged:
        results = pl.concat([results, warehouse.scan_staged(table, staged)])

    def join(items: pl.LazyFrame, results: pl.LazyFrame) -> pl.LazyFrame:
        distinct_items = items.unique().collect()
        rows = distinct_items.lazy().join(results.unique(key, keep="any"), on=key).collect()
        if rows.height != distinct_items.height:
            raise Retry(f"{table} of {distinct_items.height - rows.height} {noun} are missing: run the shards again")
        return rows.lazy()

    return buckets.join_buckets([items, results], number_texts(), buckets.count_buckets(items), join)


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
