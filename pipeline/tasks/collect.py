"""Collect: files or a site's pages in, `raw_pages`, `articles`, `comments`, `dropped` and `runs` of one day out.

Here is what is read, from where; how the rows reach the tables is `intake`.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import polars as pl

from pipeline import settings, warehouse
from pipeline.collect import anonymise, fetch, importers
from pipeline.collect.adapters import ADAPTERS, adapter
from pipeline.collect.columns import checked, parse
from pipeline.collect.importers import Batch
from pipeline.collect.record import Page
from pipeline.collect.rows import ENDINGS
from pipeline.errors import BadInput, Refused, SchemaDrift
from pipeline.sample import pages_of
from pipeline.sample import sources as sample_sources
from pipeline.slices import parse_day
from pipeline.tables import SOURCE
from pipeline.tasks.intake import Collected, settle
from pipeline.text.lines import Limits

log = logging.getLogger(__name__)

SAMPLE = "sample"  # the path that means the corpus shipped with Undertone


def sources(source: str, path: str | None) -> list[str | None]:
    """The sources of a run, one task each; None means: what the file itself names.

    All, without a path, are the sites we have adapters for and whatever else has a folder in the inbox.

    Raises:
        BadInput: a source that has neither, or a folder of the inbox that is no name of a source.
    """
    if path not in (None, SAMPLE):
        return [None if source == "all" else source]
    inbox = settings.inbox() if path is None else Path()
    own = {folder.name for folder in inbox.iterdir() if folder.is_dir()} if path is None and inbox.is_dir() else set()
    if wrong := sorted(name for name in own if not re.match(SOURCE, name)):
        raise BadInput(f"{inbox / wrong[0]}: not a source name; use small letters, digits and _, a letter first")
    if source not in {"all", *ADAPTERS, *own}:
        raise BadInput(f"no source {source!r}: neither {', '.join(ADAPTERS)} nor a folder of {settings.inbox()}")
    return [*ADAPTERS, *sorted(own - set(ADAPTERS))] if source == "all" else [source]


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
    if source is not None and not re.fullmatch(SOURCE, source):
        raise BadInput(f"{source!r} is no source name; use small letters, digits and _, a letter first")
    key = key or settings.user_key()
    mapping = checked(mapping or {})
    origin = origin or _together(paths)
    config = {"files": [p.name for p in paths], "mapping": mapping, "encoding": encoding}
    limits = Limits(*settings.import_limits())

    def batches() -> Iterator[Batch]:
        for path, label in zip(paths, _labels(paths), strict=True):
            for batch in importers.read(path, source, mapping, key, encoding, label=label, limits=limits):
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
