"""Collect: files or a site's pages in, `raw_pages`, `articles`, `comments`, `dropped` and `runs` of one day out.

Rows go through in batches: read, anonymise, clean, then by buckets of whole threads: deduplicate, find each comment's
context, and last into the tables. Nothing reaches a table before the whole input has been read without fault; killed
between two tables, the next try writes them all again.
"""

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypedDict

import polars as pl

from pipeline import __version__, settings, warehouse
from pipeline.collect import anonymise, fetch, importers
from pipeline.collect.adapters import ADAPTERS, adapter
from pipeline.collect.clean import clean, normalised
from pipeline.collect.columns import checked, parse
from pipeline.collect.dedupe import deduplicate
from pipeline.collect.importers import Batch, page_id
from pipeline.collect.record import Page, article_frame, comment_frame
from pipeline.collect.rows import ENDINGS
from pipeline.collect.threads import refuse_circles, with_context
from pipeline.errors import BadInput, Refused, SchemaDrift
from pipeline.sample import pages_of
from pipeline.sample import sources as sample_sources
from pipeline.slices import Staged, parse_day
from pipeline.tables import SOURCE, TABLES
from pipeline.text.language import language

log = logging.getLogger(__name__)

BUCKET_ROWS = 100_000  # comments of whole threads deduplicated at a time: what bounds the memory of an import
SAMPLE = "sample"  # the path that means the corpus shipped with Undertone


class Collected(TypedDict):
    """What a collection came to. `stopped` says why a site was left before its end, if it was."""

    source: str
    read: int
    kept: int
    dropped: int
    stopped: str | None


def sources(source: str, path: str | None) -> list[str | None]:
    """The sources of a run, one task each; None means: what the file itself names.

    All, without a path, are the sites we have adapters for and whatever else has a folder in the inbox.
    """
    if source != "all":
        return [source]
    if path not in (None, SAMPLE):
        return [None]
    inbox = settings.inbox() if path is None else Path()
    own = {folder.name for folder in inbox.iterdir() if folder.is_dir()} if path is None and inbox.is_dir() else set()
    if wrong := sorted(name for name in own if not re.match(SOURCE, name)):
        raise BadInput(f"{inbox / wrong[0]}: not a source name; use small letters, digits and _, a letter first")
    return [*ADAPTERS, *sorted(own - set(ADAPTERS))]


def run(
    source: str | None,
    day: str,
    *,
    path: str | None = None,
    mapping: str | None = None,
    encoding: str = "utf-8-sig",
    live: bool = False,
    threads: Sequence[str] = (),
    key: str | None = None,
    cookie: str | None = None,
    run_id: str = "cli",
    done: Callable[[int], None] = lambda _: None,
) -> list[Collected]:
    """Collect one source as the DAG's parameters say: from the site if `live`, else from a path or the inbox."""
    secret = key.encode() if key else None
    if live:
        if source is None or not threads:
            raise BadInput("to ask a site, name the source and the threads to fetch")
        return fetch_threads(source, threads, day, cookie=cookie, key=secret, run_id=run_id)
    found = files(path, source, day)
    columns = parse(mapping)
    if not found and path is None and source and _has_rows(source, day, origin_of(path)):
        return settle([Batch(source, "table/1", Page())], day, origin_of(path), {"files": []}, secret, run_id)
    return import_files(
        found,
        source,
        day,
        mapping=columns,
        origin=origin_of(path),
        encoding=encoding,
        key=secret,
        run_id=run_id,
        done=done,
    )


def _has_rows(source: str, day: str, origin: str) -> bool:
    """Whether an earlier run of the day brought something that is no longer there to be read."""
    rows = warehouse.scan("runs", (pl.col("source") == source) & (pl.col("day") == parse_day(day)))
    return bool(rows.filter(origin=origin, step="collect").select(pl.len()).collect().item())


def origin_of(path: str | None) -> str:
    """What a run's rows are filed under: `sample`, `inbox`, or the name of the file or folder."""
    return "inbox" if path is None else path if path == SAMPLE else Path(path).expanduser().resolve().name


def _together(paths: Sequence[Path]) -> str:
    """What several files imported together are filed under: their names, shortened where there are many."""
    names = sorted({path.name for path in paths})
    if len(names) <= 3:
        return "+".join(names)
    digest = hashlib.blake2b("\n".join(names).encode(), digest_size=4).hexdigest()
    return f"{names[0]}+{len(names) - 1} more ({digest})"


def _labels(paths: Sequence[Path]) -> list[str]:
    """A name for each file that no other file of the import has."""
    names = [path.name for path in paths]
    return [
        n if names.count(n) == 1 else f"{path.resolve().parent.name}/{n}" for n, path in zip(names, paths, strict=True)
    ]


def total(collected: Iterable[Iterable[Collected] | None]) -> dict[str, int]:
    """Rows read, kept and dropped over all sources; a skipped source gave None."""
    done = [one for several in collected for one in several or []]
    return {name: sum(int(one[name]) for one in done) for name in ("read", "kept", "dropped")}


def files(path: str | None, source: str | None, day: str) -> list[Path]:
    """The files a run reads: the sample's, a file, a folder's, or, without a path, the day's inbox."""
    if path == SAMPLE:
        return [page for name in ([source] if source else sample_sources()) for page in pages_of(name)]
    if path is None:
        source = source or "all"
        folder = settings.inbox() / source / day
        return _readable(folder) if folder.is_dir() else []
    given = Path(path).expanduser()
    if given.is_dir():
        return _readable(given)
    if not given.is_file():
        raise BadInput(f"{given}: there is no such file or folder")
    return [given]


def _readable(folder: Path) -> list[Path]:
    """A folder's files that can be imported; hidden files, uploads in progress and the like are told and left."""
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    readable = [p for p in files if p.suffix.lower() in ENDINGS]
    if left := [p.name for p in files if p not in readable]:
        log.warning("%s: left out %s, which cannot be read", folder, ", ".join(left))
    return readable


def import_files(
    paths: Sequence[Path],
    source: str | None,
    day: str,
    *,
    mapping: Mapping[str, str] | None = None,
    origin: str | None = None,
    encoding: str = "utf-8-sig",
    key: bytes | None = None,
    run_id: str = "cli",
    done: Callable[[int], None] = lambda _: None,
) -> list[Collected]:
    """Import files as one slice a source: (source, day, origin). Running it again gives the same tables.

    `origin` is the files' names unless given; the slice of another origin is left alone, but a comment that another
    origin of the day already brought is dropped as `already_collected`. Whoever corrects a file so that it no longer
    holds such a comment should import the other file again too.
    """
    if not paths:
        return []
    if source is not None and not re.match(SOURCE, source):
        raise BadInput(f"{source!r} is no source name; use small letters, digits and _, a letter first")
    key = key or settings.user_key()
    mapping = checked(mapping or {})
    origin = origin or _together(paths)
    config = {"files": [p.name for p in paths], "mapping": mapping, "encoding": encoding}

    def batches() -> Iterator[Batch]:
        for path, label in zip(paths, _labels(paths), strict=True):
            for batch in importers.read(path, source, mapping, key, encoding, label=label):
                yield batch
                done(len(batch.page.comments))

    collected = settle(batches(), day, origin, config, key, run_id)
    if not collected:
        raise BadInput(f"{', '.join(p.name for p in paths)}: no rows of source {source!r}")
    return collected


def fetch_threads(
    source: str,
    threads: Sequence[str],
    day: str,
    *,
    cookie: str | None = None,
    key: bytes | None = None,
    limits: fetch.Limits | None = None,
    run_id: str = "cli",
) -> list[Collected]:
    """Fetch threads of a site politely into the spool, then settle what the spool holds for the day.

    Killed anywhere, or after a fault of the site, a second call goes on from the last committed cursor. If the site
    refuses, what was fetched before is settled and `stopped` says why; if nothing was fetched, Refused is raised.
    SchemaDrift is raised after what could be read is settled.
    """
    parse_day(day)
    key = key or settings.user_key()
    settings.home().mkdir(parents=True, exist_ok=True)
    spool = fetch.Spool(settings.spool_uri())
    stopped: Refused | SchemaDrift | None = None
    with closing(spool), fetch.Fetcher(limits or fetch.Limits(), contact=settings.contact(), cookie=cookie) as fetcher:
        try:
            for thread in threads:
                fetch.thread(fetcher, spool, source, thread, day, redact=lambda b: anonymise.redact(b, source, key))
        except (Refused, SchemaDrift) as why:
            stopped = why
            log.warning("%s is left alone: %s", source, why)
        batch = Batch(source, adapter(source).ADAPTER, Page(), hashed=True)
        for url, fetched_at, body in spool.pages(source, day):
            importers.add_page(batch, url, fetched_at, body, url)
    if stopped and not batch.raw:
        raise stopped
    done = settle([batch], day, "live", {"threads": sorted(threads)}, key, run_id) if batch.raw else []
    if isinstance(stopped, SchemaDrift):
        raise stopped
    return [Collected(**{**one, "stopped": str(stopped) if stopped else None}) for one in done]


def settle(
    batches: Iterable[Batch], day: str, origin: str, config: Mapping[str, object], key: bytes | None, run_id: str
) -> list[Collected]:
    """Batches of records to tables."""
    parse_day(day)
    scratch = warehouse.attempt("collect")
    sources: dict[str, _Intake] = {}
    for batch in batches:
        if batch.source not in sources:
            sources[batch.source] = _Intake(f"{scratch}/{batch.source}", batch.source, day, origin)
        sources[batch.source].take(batch, key)
    return [intake.settle(config, run_id) for intake in sources.values()]


class _Intake:
    """One source's rows on their way: scratch Parquet after cleaning, counts of what was read."""

    def __init__(self, folder: str, source: str, day: str, origin: str) -> None:
        self.folder, self.source, self.day, self.origin = folder, source, day, origin
        self.read = self.parts = 0
        self.scrubbed: Counter[str] = Counter()
        self.stamp = {"source": pl.lit(source), "day": pl.lit(parse_day(day)), "origin": pl.lit(origin)}
        if "://" not in folder:
            Path(folder).mkdir(parents=True)

    def take(self, batch: Batch, key: bytes | None) -> None:
        """Clean and anonymise a batch into scratch."""
        page, part = batch.page, self.parts
        comments = comment_frame(page.comments).with_columns(adapter=pl.lit(batch.adapter))
        if not batch.hashed:
            comments = comments.with_columns(anonymise.surrogates(comments["user"], self.source, key))
        kept, unclean = clean(comments, self.scrubbed)
        gone = pl.DataFrame(page.skipped, schema={"reason": pl.String, "row_key": pl.String}, orient="row")
        articles = article_frame(page.articles)
        articles = articles.with_columns(normalised(articles["title"]), normalised(articles["text"]))
        raw = [(p.url, p.fetched_at, json.dumps(p.body, ensure_ascii=False, sort_keys=True)) for p in batch.raw]
        pages = pl.DataFrame(
            raw, schema={"url": pl.String, "fetched_at": pl.Datetime("us", "UTC"), "body": pl.String}, orient="row"
        )
        self._put("kept", part, kept)
        self._put("articles", part, articles)
        self._put("pages", part, pages)
        self._put("dropped", part, pl.concat([_because("parse", gone), _because("clean", unclean)]))
        self.read += len(page.comments) + len(page.skipped)
        self.parts += 1

    def settle(self, config: Mapping[str, object], run_id: str) -> Collected:
        """Deduplicate and find contexts bucket by bucket, then write the tables, `comments` last."""
        articles = self._scan("articles").unique("thread_id", keep="last", maintain_order=True).collect()
        rows = int(self._scan("kept").select(pl.len()).collect().item())
        buckets = max(1, -(-rows // BUCKET_ROWS))
        for bucket in range(buckets):
            in_bucket = pl.col("thread_id").hash(seed=0) % buckets == bucket
            comments = self._scan("kept").filter(in_bucket).collect()
            unique, copies = deduplicate(comments)
            refuse_circles(unique)
            self._put("unique", bucket, with_context(unique, articles))
            self._put("dropped", self.parts + bucket, _because("deduplicate", copies))
        where = warehouse.slice_of(source=self.source, day=self.day, origin=self.origin)
        kept, already = self._comments(run_id)
        dropped = pl.concat([self._scan("dropped"), _because("merge", already).lazy()])
        warehouse.overwrite("raw_pages", where, self._raw(), run_id)
        warehouse.overwrite("articles", where, articles.with_columns(**self.stamp, lang=language()), run_id)
        lost = warehouse.overwrite("dropped", where, dropped.with_columns(**self.stamp), run_id)
        run = pl.DataFrame(
            {"step": ["collect"], "read_count": [self.read], "kept_count": [kept], "dropped_count": [lost],
             "config": [json.dumps({**config, "scrubbed": dict(sorted(self.scrubbed.items()))}, ensure_ascii=False)],
             "run_id": [run_id], "code_version": [__version__]}
        ).with_columns(**self.stamp)  # fmt: skip
        warehouse.overwrite("runs", {**where, "step": "collect"}, run, run_id)
        log.info("%s %s: read %d, kept %d, dropped %d", self.source, self.day, self.read, kept, lost)
        return Collected(source=self.source, read=self.read, kept=kept, dropped=lost, stopped=None)

    def _comments(self, run_id: str) -> tuple[int, pl.DataFrame]:
        """Write the comments; return how many of ours are in, and those another origin had already brought."""
        mine = self._scan("unique").with_columns(**self.stamp).rename({"user": "user_id"})
        key = ["thread_id", "comment_id"]
        theirs: list[pl.DataFrame] = []

        def rows(present: pl.LazyFrame) -> pl.LazyFrame:
            others = present.filter(pl.col("origin") != self.origin)
            theirs[:] = [others.select(key).collect()]
            columns = TABLES["comments"].schema.column_names()
            return pl.concat([others.select(columns), mine.join(theirs[0].lazy(), on=key, how="anti").select(columns)])

        where = warehouse.slice_of(source=self.source, day=self.day)
        total = warehouse.replace("comments", where, rows, run_id)
        already = mine.join(theirs[0].lazy(), on=key, how="semi").select(
            reason=pl.lit("already_collected"), row_key="row_key"
        )
        return total - theirs[0].height, already.collect()

    def _raw(self) -> pl.LazyFrame:
        pages = self._scan("pages").unique(["url", "body"], maintain_order=True)
        digest = pl.struct("url", "body").map_elements(page_id, return_dtype=pl.String)
        return pages.with_columns(**self.stamp, page_id=digest)

    def _put(self, kind: str, part: int, frame: pl.DataFrame) -> Staged:
        path = f"{self.folder}/{kind}-{part:05}.parquet"
        frame.write_parquet(path)
        return Staged(path=path, rows=frame.height)

    def _scan(self, kind: str) -> pl.LazyFrame:
        return pl.scan_parquet(f"{self.folder}/{kind}-*.parquet")


def _because(step: str, dropped: pl.DataFrame) -> pl.DataFrame:
    return dropped.select(step=pl.lit(step), reason="reason", row_key="row_key")


def _page_id(page: dict[str, str]) -> str:
    import hashlib

    return hashlib.sha256(f"{page['url']}\n{page['body']}".encode()).hexdigest()
