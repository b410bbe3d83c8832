"""Intake: clean records in batches, deduplicate them in buckets of whole threads, then write them once all are read."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypedDict

import polars as pl

from pipeline import left_out, settings, warehouse
from pipeline.collect.clean import clean, normalise
from pipeline.collect.importers import Batch, hash_page
from pipeline.collect.privacy import anonymise
from pipeline.collect.sites.record import ARTICLE_SCHEMA, COMMENT_SCHEMA, build_frame
from pipeline.collect.threads import add_context, add_roots, deduplicate, refuse_circles
from pipeline.errors import BadInput
from pipeline.private import make_folder
from pipeline.slices import parse_day, parse_window
from pipeline.tables import TABLES
from pipeline.tasks.record import replace, runs
from pipeline.text.language import detect_language
from pipeline.warehouse import buckets

_THREAD_ROWS = 800  # comments of one thread for each megabyte that an import may take: a thread is compared in memory
_ROWS = 100_000  # comments that are compared at a time
_KEY = ["thread_id", "comment_id"]
_CONTENT = [*_KEY, "text_hash"]
_ID_COLUMNS = ("comment_id", "parent_id", "root_id", "row_key", "thread_id")
_PAGE_SCHEMA = {"url": pl.String(), "fetched_at": pl.Datetime("us", "UTC"), "body": pl.String()}


class Collected(TypedDict):
    """Counts of comments of a collection."""

    read: int
    kept: int
    dropped: int
    source: str
    articles: int
    stopped: str | None  # why a site was not read to its end
    reasons: dict[str, dict[str, int]]  # count of dropped rows by step and reason
    bad_rows: list[str]  # messages about the first rows that could not be read
    ignored: list[str]  # files and parts of files that were not read, and why


class Selection(NamedTuple):
    """Which comments are kept: of which days (AAC-02), undated ones by the day of the run; with or without copies."""

    keep_duplicates: bool = False
    first_day: str | None = None
    last_day: str | None = None


def write_tables(
    batches: Iterable[Batch],
    day: str,
    origin: str,
    config: Mapping[str, object],
    key: bytes | None,
    run_id: str,
    selection: Selection = Selection(),  # noqa: B008 - immutable
) -> list[Collected]:
    """Write batches of records to the tables; return the counts of each source."""
    window = parse_window(selection.first_day, selection.last_day)
    config = {**config, **{name: value for name, value in selection._asdict().items() if value}}
    started = runs.start()
    scratch = warehouse.create_attempt("collect")
    intakes: dict[str, _Intake] = {}
    for batch in batches:
        if batch.source not in intakes:
            folder = f"{scratch}/{batch.source}"
            intakes[batch.source] = _Intake(folder, batch.source, day, origin, window, selection.keep_duplicates)
        intakes[batch.source].add_batch(batch, key)
    return [intake.write(config, run_id, started) for intake in intakes.values()]


class _Intake:
    def __init__(
        self, folder: str, source: str, day: str, origin: str, window: tuple[date, date], keep_duplicates: bool
    ) -> None:
        self.folder, self.source, self.day, self.origin = folder, source, day, origin
        self.window, self.keep_duplicates = window, keep_duplicates
        self.read_count = self.batch_count = self.orphan_count = self.replaced_count = 0
        self.scrubbed: Counter[str] = Counter()
        self.thread_sizes: Counter[str] = Counter()
        self.stamp = {"source": pl.lit(source), "day": pl.lit(parse_day(day)), "origin": pl.lit(origin)}
        if "://" not in folder:
            make_folder(Path(folder))

    def add_batch(self, batch: Batch, key: bytes | None) -> None:
        """Clean and anonymise a batch into scratch."""
        page, number = batch.page, self.batch_count
        comments = build_frame(page.comments, COMMENT_SCHEMA).with_columns(adapter=pl.lit(batch.adapter))
        if not batch.hashed:
            comments = comments.with_columns(anonymise.hash_users(comments["user"], self.source, key))
        comments, unclean = clean(self._scrub_ids(comments, key), self.scrubbed)
        self._check_threads(comments["thread_id"])
        skipped = pl.DataFrame(page.skipped, schema={"reason": pl.String, "row_key": pl.String}, orient="row")
        dropped = pl.concat([_add_step("parse", self._scrub_ids(skipped, key)), _add_step("clean", unclean)])
        articles = build_frame(page.articles, ARTICLE_SCHEMA)
        for name in ("title", "text", "summary", "category"):
            articles = articles.with_columns(normalise(articles[name], self.scrubbed))
        scrub = partial(anonymise.scrub_address, source=self.source, key=key)
        raw_pages = [
            (scrub(url), fetched_at, json.dumps(body, ensure_ascii=False, sort_keys=True))
            for url, fetched_at, body in batch.raw
        ]
        pages = pl.DataFrame(raw_pages, schema=_PAGE_SCHEMA, orient="row")
        rows = {"comments": comments, "articles": self._scrub_ids(articles, key), "pages": pages, "dropped": dropped}
        for kind, frame in rows.items():
            self._stage(kind, number, frame)
        self.read_count += len(page.comments) + len(page.skipped)
        self.batch_count += 1

    def _check_threads(self, threads: pl.Series) -> None:
        """Refuse a thread that will not fit in memory before the rest of it is read."""
        sizes = dict(threads.value_counts().iter_rows())
        self.thread_sizes.update(sizes)
        limit = _THREAD_ROWS * settings.import_memory()
        if thread := next((name for name in sizes if self.thread_sizes[name] > limit), None):
            problem = f"the thread {thread!r:.60} has more than {limit:,} comments, which are compared in memory"
            advice = "name the column of threads (--map thread_id=COLUMN), cut the file into parts, or set"
            setting = f"UNDERTONE_IMPORT_MEMORY={2 * settings.import_memory()} (megabytes)"
            raise BadInput(f"{problem}; {advice} {setting}")

    def _scrub_ids(self, rows: pl.DataFrame, key: bytes | None) -> pl.DataFrame:
        names = [name for name in _ID_COLUMNS if name in rows.columns]
        return rows.with_columns(anonymise.scrub_ids(rows[name], self.source, key) for name in names)

    def write(self, config: Mapping[str, object], run_id: str, started: runs.Start) -> Collected:
        """Deduplicate and find contexts bucket by bucket, then write the tables."""
        content = pl.exclude("thread_id").replace("", None).drop_nulls().last()  # often one row of a thread has it
        articles = self._scan("articles").group_by("thread_id", maintain_order=True).agg(content).collect()
        articles = articles.with_columns(pl.col("text").fill_null(""))
        self._deduplicate(articles)
        partition = warehouse.make_slice(source=self.source, day=self.day, origin=self.origin)
        kept_count, copies = self._write_comments(run_id)
        if self.replaced_count:
            note = f"{self.source}: comments of an earlier import of {self.origin!r} that changed or are gone"
            left_out.record_note(f"{note}: {self.replaced_count:,}; rows of another origin (--origin) stay")
        if stale_count := replace.remove_stale(warehouse.make_slice(source=self.source, day=self.day), run_id):
            subject = f"{self.source}: removed tokens and scores of comments that changed or are gone"
            left_out.record_note(f"{subject}: {stale_count:,} rows; tokenize and score {self.day} again")
        dropped = pl.concat([self._scan("dropped"), _add_step("merge", copies).lazy()])
        digest = pl.struct("url", "body").map_elements(hash_page, return_dtype=pl.String)
        pages = self._scan("pages").unique(["url", "body"], maintain_order=True)
        warehouse.overwrite("raw_pages", partition, pages.with_columns(**self.stamp, page_id=digest), run_id)
        warehouse.overwrite("articles", partition, articles.with_columns(**self.stamp, lang=detect_language()), run_id)
        dropped_count = warehouse.overwrite("dropped", partition, dropped.with_columns(**self.stamp), run_id)
        reasons: dict[str, dict[str, int]] = {}
        reason_counts = dropped.group_by("step", "reason").len().sort("step", "reason").collect()
        for step, reason, count in reason_counts.iter_rows():
            reasons.setdefault(step, {})[reason] = count
        for step, step_counts in reasons.items():
            left_out.record_rows(step, step_counts, self.source, self.day, self.origin)
        counts = {"read_count": self.read_count, "kept_count": kept_count, "dropped_count": dropped_count}
        if self.orphan_count:
            note = f"{self.source}: comments that answer absent or dropped ones: {self.orphan_count:,}"
            left_out.record_note(f"{note}; their context is what the site or file gives, if anything")
        config = {**config, "scrubbed": dict(sorted(self.scrubbed.items()))}
        rows = pl.DataFrame([{"source": self.source, **counts}])
        runs.record_counts(rows, self.day, self.origin, "collect", config, run_id, started, source=self.source)
        return Collected(
            read=self.read_count,
            kept=kept_count,
            dropped=dropped_count,
            source=self.source,
            articles=len(articles),
            stopped=None,
            reasons=reasons,
            bad_rows=[],
            ignored=[],
        )

    def _deduplicate(self, articles: pl.DataFrame) -> None:
        """Stage the distinct comments with their context, and their copies as dropped, bucket by bucket."""
        rows = self._scan("comments")
        with buckets.divide(rows, pl.col("thread_id").hash(seed=0), buckets.count_buckets(rows, rows=_ROWS)) as parts:
            for number, part in enumerate(parts):
                self._deduplicate_part(number, part.collect(), articles)

    def _deduplicate_part(self, number: int, comments: pl.DataFrame, articles: pl.DataFrame) -> None:
        day_written = pl.coalesce(pl.col("created_at").dt.date(), pl.lit(parse_day(self.day)))
        is_inside = day_written.is_between(*self.window)
        outside = comments.filter(~is_inside).select(reason=pl.lit("outside_window"), row_key="row_key")
        unique, copies = deduplicate(comments.filter(is_inside), keep_copies=self.keep_duplicates)
        refuse_circles(unique)
        answers, keys = unique.drop_nulls("parent_id"), comments.select("thread_id", parent_id="comment_id")
        self.orphan_count += answers.join(keys, on=["thread_id", "parent_id"], how="anti").height
        self._stage("unique", number, add_context(add_roots(unique), articles, comments))
        dropped = pl.concat([_add_step("clean", outside), _add_step("deduplicate", copies)])
        self._stage("dropped", self.batch_count + number, dropped)

    def _write_comments(self, run_id: str) -> tuple[int, pl.DataFrame]:
        """Write the comments; return their count, and the comments that another origin of the day already has."""
        comments = self._scan("unique").with_columns(**self.stamp).rename({"user": "user_id"})
        other_keys: list[pl.DataFrame] = []

        def merge(current: pl.LazyFrame) -> pl.LazyFrame:
            other_comments = current.filter(pl.col("origin") != self.origin)
            self.replaced_count = _count_missing(current.filter(pl.col("origin") == self.origin), comments)
            other_keys[:] = [other_comments.select(_KEY).collect()]
            columns = TABLES["comments"].schema.column_names()
            if other_keys[0].is_empty():
                return comments.select(columns)
            new_comments = comments.join(other_keys[0].lazy(), on=_KEY, how="anti")
            return pl.concat([other_comments.select(columns), new_comments.select(columns)])

        row_count = warehouse.replace("comments", warehouse.make_slice(source=self.source, day=self.day), merge, run_id)
        copies = comments.join(other_keys[0].lazy(), on=_KEY, how="semi")
        copies = copies.select(reason=pl.lit("already_collected"), row_key="row_key")
        return row_count - other_keys[0].height, copies.collect(engine="streaming")

    def _stage(self, kind: str, number: int, rows: pl.DataFrame) -> None:
        path = f"{self.folder}/{kind}-{number:05}.parquet"
        rows.write_parquet(path, compression=buckets.SCRATCH, storage_options=warehouse.STORE)

    def _scan(self, kind: str) -> pl.LazyFrame:
        return pl.scan_parquet(f"{self.folder}/{kind}-*.parquet", storage_options=warehouse.STORE)


def _count_missing(earlier: pl.LazyFrame, comments: pl.LazyFrame) -> int:
    """Count the earlier comments that are not among the new ones with the same text."""
    if earlier.head(1).collect().is_empty():
        return 0
    frames = [rows.select(_CONTENT) for rows in (earlier, comments)]
    count = buckets.count_buckets(*frames)
    key, subtract = pl.col("thread_id").hash(seed=0), partial(pl.LazyFrame.join, on=_CONTENT, how="anti")
    missing = buckets.join_buckets(frames, key, count, subtract)
    return int(missing.select(pl.len()).collect().item())


def _add_step(step: str, dropped: pl.DataFrame) -> pl.DataFrame:
    return dropped.select(step=pl.lit(step), reason="reason", row_key="row_key")
