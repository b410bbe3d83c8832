"""Intake: batches of records on their way into the tables of one source, day and origin.

Rows are anonymised and cleaned batch by batch, then deduplicated and put under their context by buckets of whole
threads, and last written. Nothing reaches a table before the whole input has been read without fault; killed between
two tables, the next try writes them all again.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict

import polars as pl

from pipeline import left_out, warehouse
from pipeline.collect.clean import clean, normalised
from pipeline.collect.dedupe import deduplicate
from pipeline.collect.importers import Batch, page_id
from pipeline.collect.privacy import anonymise
from pipeline.collect.sites.record import article_frame, comment_frame
from pipeline.collect.threads import refuse_circles, with_context
from pipeline.private import make_folder
from pipeline.slices import parse_day
from pipeline.tables import TABLES
from pipeline.tasks.record import runs
from pipeline.text.language import detect_language

BUCKET_ROWS = 50_000  # comments of whole threads deduplicated at a time: what bounds the memory of an import


class Collected(TypedDict):
    """What a collection came to. `stopped` says why a site was left before its end, if it was."""

    source: str
    articles: int
    read: int  # comments, as are the next two
    kept: int
    dropped: int
    stopped: str | None
    reasons: dict[str, dict[str, int]]  # how many rows each step dropped for which reason
    bad_rows: list[str]  # messages about the first rows that could not be read
    ignored: list[str]  # files and parts of files that were left out, and why


def write_tables(
    batches: Iterable[Batch], day: str, origin: str, config: Mapping[str, object], key: bytes | None, run_id: str
) -> list[Collected]:
    """Batches of records to tables."""
    parse_day(day)
    started = runs.start()
    scratch = warehouse.attempt("collect")
    sources: dict[str, _Intake] = {}
    for batch in batches:
        if batch.source not in sources:
            sources[batch.source] = _Intake(f"{scratch}/{batch.source}", batch.source, day, origin)
        sources[batch.source].add_batch(batch, key)
    return [intake.write(config, run_id, started) for intake in sources.values()]


class _Intake:
    """One source's rows on their way: scratch Parquet after cleaning, counts of what was read."""

    def __init__(self, folder: str, source: str, day: str, origin: str) -> None:
        self.folder, self.source, self.day, self.origin = folder, source, day, origin
        self.read = self.parts = 0
        self.scrubbed: Counter[str] = Counter()
        self.stamp = {"source": pl.lit(source), "day": pl.lit(parse_day(day)), "origin": pl.lit(origin)}
        if "://" not in folder:
            make_folder(Path(folder))

    def add_batch(self, batch: Batch, key: bytes | None) -> None:
        """Clean and anonymise a batch into scratch."""
        page, number = batch.page, self.parts
        comments = comment_frame(page.comments).with_columns(adapter=pl.lit(batch.adapter))
        if not batch.hashed:
            comments = comments.with_columns(anonymise.surrogates(comments["user"], self.source, key))
        comments = self._scrub_ids(comments, key)
        comments_kept, unclean = clean(comments, self.scrubbed)
        skipped = pl.DataFrame(page.skipped, schema={"reason": pl.String, "row_key": pl.String}, orient="row")
        articles = article_frame(page.articles)
        articles = articles.with_columns(
            normalised(articles[name], self.scrubbed) for name in ("title", "text", "summary", "category")
        ).with_columns(pl.col("summary", "category").replace("", None))
        skipped, articles = (self._scrub_ids(frame, key) for frame in (skipped, articles))
        raw_rows = [
            (
                anonymise.scrub_address(raw_page.url, self.source, key),
                raw_page.fetched_at,
                json.dumps(raw_page.body, ensure_ascii=False, sort_keys=True),
            )
            for raw_page in batch.raw
        ]
        pages = pl.DataFrame(
            raw_rows, schema={"url": pl.String, "fetched_at": pl.Datetime("us", "UTC"), "body": pl.String}, orient="row"
        )
        self._stage("kept", number, comments_kept)
        self._stage("articles", number, articles)
        self._stage("pages", number, pages)
        self._stage(
            "dropped", number, pl.concat([_select_dropped("parse", skipped), _select_dropped("clean", unclean)])
        )
        self.read += len(page.comments) + len(page.skipped)
        self.parts += 1

    def _scrub_ids(self, rows: pl.DataFrame, key: bytes | None) -> pl.DataFrame:
        id_columns = {"thread_id", "comment_id", "parent_id", "root_id", "row_key"} & set(rows.columns)
        return rows.with_columns(anonymise.scrub_ids(rows[name], self.source, key) for name in sorted(id_columns))

    def write(self, config: Mapping[str, object], run_id: str, started: runs.Start) -> Collected:
        """Deduplicate and find contexts bucket by bucket, then write the tables."""
        started = started._replace(byte_count=warehouse.bytes_written())  # those of this source alone
        articles = self._scan("articles").unique("thread_id", keep="last", maintain_order=True).collect()
        comment_count = int(self._scan("kept").select(pl.len()).collect().item())
        bucket_count = max(1, -(-comment_count // BUCKET_ROWS))
        for bucket in range(bucket_count):
            in_bucket = pl.col("thread_id").hash(seed=0) % bucket_count == bucket
            comments = self._scan("kept").filter(in_bucket).collect(engine="streaming")
            unique, copies = deduplicate(comments)
            refuse_circles(unique)
            self._stage("unique", bucket, with_context(unique, articles))
            self._stage("dropped", self.parts + bucket, _select_dropped("deduplicate", copies))
        partition = warehouse.slice_of(source=self.source, day=self.day, origin=self.origin)
        kept_count, already_collected = self._write_comments(run_id)
        dropped = pl.concat([self._scan("dropped"), _select_dropped("merge", already_collected).lazy()])
        warehouse.overwrite("raw_pages", partition, self._scan_pages(), run_id)
        warehouse.overwrite("articles", partition, articles.with_columns(**self.stamp, lang=detect_language()), run_id)
        dropped_count = warehouse.overwrite("dropped", partition, dropped.with_columns(**self.stamp), run_id)
        reasons: dict[str, dict[str, int]] = {}
        for step, reason, count in (
            dropped.group_by("step", "reason").len().sort("step", "reason").collect().iter_rows()
        ):
            reasons.setdefault(step, {})[reason] = count
        for step, counts_of_step in reasons.items():
            left_out.record_rows(step, counts_of_step, self.source, self.day, self.origin)
        counts = pl.DataFrame(
            {
                "source": [self.source],
                "read_count": [self.read],
                "kept_count": [kept_count],
                "dropped_count": [dropped_count],
            }
        )
        run_config = {**config, "scrubbed": dict(sorted(self.scrubbed.items()))}
        runs.record_counts(counts, self.day, self.origin, "collect", run_config, run_id, started, source=self.source)
        return Collected(
            source=self.source,
            articles=articles.height,
            read=self.read,
            kept=kept_count,
            dropped=dropped_count,
            stopped=None,
            reasons=reasons,
            bad_rows=[],
            ignored=[],
        )

    def _write_comments(self, run_id: str) -> tuple[int, pl.DataFrame]:
        """Write the comments; return how many of ours are in, and those another origin had already brought."""
        own_rows = self._scan("unique").with_columns(**self.stamp).rename({"user": "user_id"})
        key = ["thread_id", "comment_id"]
        other_keys: list[pl.DataFrame] = []

        def merge(present: pl.LazyFrame) -> pl.LazyFrame:
            other_rows = present.filter(pl.col("origin") != self.origin)
            other_keys[:] = [other_rows.select(key).collect()]
            columns = TABLES["comments"].schema.column_names()
            return pl.concat(
                [other_rows.select(columns), own_rows.join(other_keys[0].lazy(), on=key, how="anti").select(columns)]
            )

        partition = warehouse.slice_of(source=self.source, day=self.day)
        total = warehouse.replace("comments", partition, merge, run_id)
        already_collected = own_rows.join(other_keys[0].lazy(), on=key, how="semi").select(
            reason=pl.lit("already_collected"), row_key="row_key"
        )
        return total - other_keys[0].height, already_collected.collect(engine="streaming")

    def _scan_pages(self) -> pl.LazyFrame:
        pages = self._scan("pages").unique(["url", "body"], maintain_order=True)
        digest = pl.struct("url", "body").map_elements(page_id, return_dtype=pl.String)
        return pages.with_columns(**self.stamp, page_id=digest)

    def _stage(self, kind: str, part: int, frame: pl.DataFrame) -> None:
        frame.write_parquet(f"{self.folder}/{kind}-{part:05}.parquet", storage_options=warehouse.STORE)

    def _scan(self, kind: str) -> pl.LazyFrame:
        return pl.scan_parquet(f"{self.folder}/{kind}-*.parquet", storage_options=warehouse.STORE)


def _select_dropped(step: str, dropped: pl.DataFrame) -> pl.DataFrame:
    return dropped.select(step=pl.lit(step), reason="reason", row_key="row_key")
