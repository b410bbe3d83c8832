"""Collect: choose and read files or a site's pages, which `intake` writes to the tables."""

import gc
import hashlib
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import left_out, settings, warehouse
from pipeline.collect import fetch, importers
from pipeline.collect.columns import check_mapping, parse
from pipeline.collect.privacy import anonymise
from pipeline.collect.sites.adapters import ADAPTERS, get_adapter
from pipeline.collect.sites.record import Page
from pipeline.errors import BadInput, Refused, SchemaDrift
from pipeline.io.lines import Limits
from pipeline.io.rows import Inputs, list_inputs
from pipeline.private import make_folder
from pipeline.sample import list_pages, list_sites
from pipeline.slices import parse_day
from pipeline.tables import SOURCE
from pipeline.tasks.daily.bounded import Bounds, run_bounded
from pipeline.tasks.daily.intake import Collected, Selection, write_tables

log = logging.getLogger(__name__)
_LOGGED = 20  # dropped rows that a log names
SAMPLE = "sample"  # the text, in place of a path, that means the corpus shipped with Undertone


def list_sources(source: str, path: str | None, *, live: bool = False, threads: Sequence[str] = ()) -> list[str | None]:
    """List the sources of a run, one for each task; None means the sources that the file itself names.

    Without a path, `all` means the sites that have an adapter and the sources that have a folder in the inbox; any
    other name must be one of them. To ask a site, a run needs `live`, the site and its threads, and no path.
    """
    if (live or threads) and (not live or not threads or path or source not in ADAPTERS):
        sites = ", ".join(ADAPTERS)
        raise BadInput(f"to fetch from a site: set live, name one of {sites} and its threads, and no path")
    if path not in (None, SAMPLE):
        return [None if source == "all" else source]
    inbox = settings.inbox()
    folders = [folder.name for folder in inbox.iterdir() if folder.is_dir()] if path is None and inbox.is_dir() else []
    for name in sorted(folders):
        if not re.match(SOURCE, name):
            raise BadInput(f"{inbox / name}: not a source name; use small letters, digits and _, a letter first")
    if source not in {"all", *ADAPTERS, *folders}:
        raise BadInput(f"no source {source!r}: neither {', '.join(ADAPTERS)} nor a folder of {inbox}")
    return [*ADAPTERS, *sorted(set(folders) - set(ADAPTERS))] if source == "all" else [source]


def run(
    source: str | None,
    day: str,
    *,
    path: str | None = None,
    mapping: str | None = None,
    live: bool = False,
    threads: Sequence[str] = (),
    key: str | None = None,
    cookie: str | None = None,
    run_id: str = "cli",
    selection: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[Collected]:
    """Collect one source by the parameters of the DAG: from the site if `live`, else with `import_files`."""
    if live and source:
        return fetch_threads(source, threads, day, cookie=cookie, key=key, run_id=run_id, selection=selection)
    files, ignored = list_files(path, source, day)
    columns, origin = parse(mapping), name_origin(path)
    if not files and path is None and source:
        is_run = (pl.col("source") == source) & (pl.col("day") == parse_day(day))
        runs = warehouse.scan("runs", is_run).filter(origin=origin, step="collect").collect()
        if runs.height:  # of files that are no longer in the inbox
            return write_tables([importers.Batch(source, "table/1", Page())], day, origin, {"files": []}, None, run_id)
    options |= {"mapping": columns, "origin": origin, "ignored": ignored, "key": key, "run_id": run_id}
    import_function = import_files if path == SAMPLE else import_bounded
    return import_function(files, source, day, selection=selection, **options)


def name_origin(path: str | Path | None) -> str:
    """Name the origin of a run's rows: `sample`, `inbox`, or the name of the file or folder."""
    return "inbox" if path is None else SAMPLE if path == SAMPLE else Path(path).expanduser().resolve().name


def _join_names(labels: Mapping[str, str]) -> str:
    """Join file names by label. Files of one name have a digest too, or one of them alone would replace them all."""
    names = [labels[label] for label in sorted(labels)]
    if len(names) <= 3 and len(set(names)) == len(names):
        return "+".join(names)
    digest = hashlib.blake2b("\n".join(sorted(labels)).encode(), digest_size=4).hexdigest()
    return f"{names[0]}+{len(names) - 1} more ({digest})"


def _label_files(files: Sequence[Path], key: bytes | None) -> list[str]:
    """Label each file by the end of its path, with as many folders as tell it from the others; a repeated one alike."""
    paths = [(*path.resolve().parent.parts[1:], path.name) for path in files]
    parts = {path: [anonymise.scrub_file_name(part, key) for part in path] for path in paths}
    labels = {path: parts[path][-1] for path in paths}
    for depth in range(2, max(map(len, paths)) + 1):
        counts = Counter(labels.values())
        labels = {
            path: label if counts[label] == 1 else "/".join(parts[path][-depth:]) for path, label in labels.items()
        }
    return [labels[path] for path in paths]


def sum_counts(collected: Iterable[Iterable[Collected] | None]) -> dict[str, int]:
    """Sum rows read, kept and dropped over all sources; None is a skipped source."""
    parts = list(chain.from_iterable(filter(None, collected)))
    return {name: sum(int(part[name]) for part in parts) for name in ("read", "kept", "dropped")}


def list_files(path: str | Path | None, source: str | None, day: str) -> Inputs:
    """List the files that a run reads: the sample's, a file, a folder's, or without a path the day's inbox, if any."""
    if path == SAMPLE:
        sites = [source] if source else list_sites()
        return Inputs(list(chain.from_iterable(map(list_pages, sites))), [])
    if path is None:
        folder = settings.inbox() / (source or "all") / day
        return list_inputs(folder, may_be_empty=True) if folder.is_dir() else Inputs([], [])
    root = Path(path).expanduser()
    if root.is_dir():
        return list_inputs(root)
    if root.is_file():
        return Inputs([root], [])
    fault = "is no regular file; import a file or a folder" if root.exists() else "there is no such file or folder"
    raise BadInput(f"{root}: {fault}")


def import_bounded(paths: Sequence[Path], source: str | None, day: str, **options: Any) -> list[Collected]:
    """Call `import_files` in a child process, whose memory and time are limited by the settings."""
    if not paths:
        return []
    on_progress = options.pop("on_progress", lambda _: None)
    options |= {"paths": list(map(str, paths)), "source": source, "day": day}
    bounds = Bounds(settings.import_memory(), settings.import_seconds())
    collected: list[Collected] = run_bounded("pipeline.tasks.daily.collect:import_files", options, bounds, on_progress)
    return collected


def import_files(
    paths: Sequence[Path | str],
    source: str | None,
    day: str,
    *,
    mapping: Mapping[str, str] | None = None,
    origin: str | None = None,
    encoding: str = "utf-8-sig",
    skip_bad_rows: bool = False,
    ignored: Sequence[str] = (),
    key: bytes | str | None = None,
    run_id: str = "cli",
    selection: Mapping[str, Any] | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
    on_file: Callable[[str, int], None] = lambda _name, _size: None,
) -> list[Collected]:
    """Import files as one slice for each source: (source, day, origin). Running it again gives the same tables.

    `origin` is the names of the files by default. The slices of other origins stay, but a comment that another origin
    of the day already has is dropped as `already_collected`. After a correction that removes such a comment from a
    file, import the other file again too. `on_file` gets the name and size of each file. A row that cannot be read
    stops the import; with `skip_bad_rows` it is dropped with a reason. The result names the dropped rows and parts of
    the files, and the files that were not read (`ignored`).
    """
    if not paths:
        return []
    files = [Path(path) for path in paths]
    if source is not None and not re.fullmatch(SOURCE, source):
        raise BadInput(f"{source!r} is no source name; use small letters, digits and _, a letter first")
    key = (key.encode() if isinstance(key, str) else key) or settings.user_key()
    mapping = check_mapping(mapping or {})
    names = [anonymise.scrub_file_name(path.name, key) for path in files]
    labels = _label_files(files, key)
    origin = anonymise.scrub_file_name(origin, key) if origin else _join_names(dict(zip(labels, names, strict=True)))
    notes = importers.LeftOut(ignored=list(ignored))
    config = {"files": names, "mapping": mapping, "encoding": encoding, "skip_bad_rows": skip_bad_rows}
    limits = Limits(*settings.import_limits())
    sizes = [path.stat().st_size if path.is_file() else 0 for path in files]

    def read_batches() -> Iterator[importers.Batch]:
        logged_count = 0
        read = partial(importers.read, limits=limits, skip_bad_rows=skip_bad_rows)
        for path, label, size in zip(files, labels, sizes, strict=True):
            on_file(str(path), size)
            file_notes = importers.LeftOut(bad_rows=notes.bad_rows)
            for batch in read(path, source, mapping, key, encoding, label=label, left_out=file_notes):
                for reason, row_key in batch.page.skipped[: _LOGGED - logged_count]:
                    if row_key.startswith((f"{label}-", f"{label}/")):  # a place in a file; the key of a page is an id
                        log.info("left out %s: %s", row_key, reason)
                        logged_count += 1
                yield batch
                on_progress(len(batch.page.comments))
            notes.ignored += [f"{path.name}: {part}" for part in file_notes.ignored]
        on_file(origin, sum(sizes))  # the next steps work on the rows of all files

    gc.disable()  # rows refer to no other: to look for circles took a tenth of the time
    try:
        collected = write_tables(read_batches(), day, origin, config, key, run_id, Selection(**selection or {}))
    finally:
        gc.enable()
    if not collected:
        raise BadInput(f"{', '.join(path.name for path in files)}: no rows of source {source!r}")
    if source is None:
        _note_other_sources(day, origin, [part["source"] for part in collected])
    for message in notes.ignored:
        log.info("left out %s", message)
    for message in [*notes.bad_rows, *notes.ignored]:  # bad rows are quoted: on the terminal, never in a log
        left_out.record_note(f"left out {message}")
    collected[0]["bad_rows"], collected[0]["ignored"] = notes.bad_rows, notes.ignored
    return collected


def _note_other_sources(day: str, origin: str, sources: Sequence[str]) -> None:
    """Note the rows that an earlier import of the same files gave sources that they have no more."""
    is_other = (pl.col("day") == parse_day(day)) & ~pl.col("source").is_in(sources) & (pl.col("kept_count") > 0)
    earlier = warehouse.scan("runs", is_other).filter(origin=origin, step="collect")
    for source, count in earlier.select("source", "kept_count").sort("source").collect().iter_rows():
        left_out.record_note(f"{source}: not in {origin!r} any more; comments of its earlier import stay: {count:,}")


def fetch_threads(
    source: str,
    threads: Sequence[str],
    day: str,
    *,
    cookie: str | None = None,
    key: bytes | str | None = None,
    limits: fetch.Limits | None = None,
    run_id: str = "cli",
    selection: Mapping[str, Any] | None = None,
) -> list[Collected]:
    """Fetch threads of a site politely into the spool, then write the spool's pages of the day to the tables.

    After a kill or a fault of the site, a second call continues from the last committed cursor. If the site refuses,
    the pages fetched before are written and `stopped` is the reason; without any such page, Refused is raised.
    SchemaDrift is raised after the readable pages are written.
    """
    key = (key.encode() if isinstance(key, str) else key) or settings.user_key()
    make_folder(settings.home())
    spool = fetch.Spool(settings.spool_uri())
    stopped: Refused | SchemaDrift | None = None
    with closing(spool), fetch.Fetcher(limits or fetch.Limits(), contact=settings.contact(), cookie=cookie) as fetcher:
        try:
            redact = partial(anonymise.redact, source=source, key=key)
            for start in [start for thread in threads for start in fetch.list_starts(source, thread)]:
                fetch.fetch_pages(fetcher, spool, source, start, day, redact=redact)
        except (Refused, SchemaDrift) as error:
            stopped = error
            log.warning("%s: no more requests are sent: %s", source, error)
        batch = importers.Batch(source, get_adapter(source).ADAPTER, Page(), hashed=True)
        for url, fetched_at, body in spool.pages(source, day):
            importers.add_page(batch, url, fetched_at, body, url)
    if stopped and not batch.raw:
        raise stopped
    config = {"threads": sorted(threads)}
    rules = Selection(**selection or {})
    collected = write_tables([batch], day, "live", config, key, run_id, rules) if batch.raw else []
    if isinstance(stopped, SchemaDrift):
        raise stopped
    return [Collected(**{**part, "stopped": str(stopped) if stopped else None}) for part in collected]
