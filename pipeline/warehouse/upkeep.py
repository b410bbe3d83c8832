"""Upkeep: compacting small files, expiring old snapshots, sweeping files nobody refers to, erasing rows for good.

pyiceberg deletes rows and forgets snapshots but leaves the bytes on disk; the sweeper here removes them. A file
younger than the grace time may belong to a write in flight and is left alone.
"""

import logging
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyarrow import fs
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, In
from pyiceberg.table import Table

from pipeline import settings
from pipeline.errors import BadInput, Retry
from pipeline.tables import TABLES
from pipeline.warehouse import catalog, scratch
from pipeline.warehouse.write import replace, slice_of

log = logging.getLogger(__name__)

GRACE = timedelta(hours=24)  # longer than the longest write, or files of a write in flight would go
KEEP = timedelta(days=7)  # longer than the longest run, whose shards read a pinned snapshot


def compact(name: str) -> int:
    """Rewrite every partition that has more than one data file as one; return how many were rewritten."""
    columns = TABLES[name].partitions
    handle = catalog.table(name)
    partitions = handle.inspect.partitions().to_pylist() if handle.current_snapshot() else []
    todo = [row for row in partitions if row["file_count"] > 1]
    for row in todo:
        replace(name, slice_of(**{c: row["partition"][c] for c in columns}), lambda rows: rows, "compact")
    return len(todo)


def expire(name: str, keep: timedelta = KEEP) -> None:
    """Forget snapshots older than `keep`; the current one and tagged ones stay."""
    before = datetime.now(UTC).replace(tzinfo=None) - keep
    catalog.table(name).maintenance.expire_snapshots().older_than(before).commit()


def sweep(name: str, grace: timedelta = GRACE) -> int:
    """Remove files below the table that no snapshot refers to and that are older than `grace`; return their count."""
    handle = catalog.table(name)
    system, root = _opened(handle.location())
    return _remove(system, root, _referenced(handle), grace)


def sweep_scratch(grace: timedelta = GRACE) -> int:
    """Remove scratch files older than `grace`; return their count."""
    system, root = _opened(scratch.root())
    return _remove(system, root, set(), grace)


def sweep_home(grace: timedelta = GRACE) -> int:
    """Remove embeddings and training states that nobody has used for `grace`; return their count."""
    before = (datetime.now(UTC) - grace).timestamp()
    old = [
        path
        for name in ("embeddings", "training")
        for path in settings.scratch(name).glob("*")
        if path.is_file() and path.stat().st_mtime < before
    ]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def maintain(keep: timedelta = KEEP, grace: timedelta = GRACE) -> dict[str, dict[str, int]]:
    """Compact, expire and sweep every table and the scratch folder; return what was done to each."""
    done: dict[str, dict[str, int]] = {}
    for name in TABLES:
        compacted = compact(name)
        expire(name, keep)
        done[name] = {"partitions compacted": compacted, "files removed": sweep(name, grace)}
    done["_scratch"] = {"partitions compacted": 0, "files removed": sweep_scratch(grace) + sweep_home(grace)}
    return done


def erase(name: str, values: dict[str, Sequence[Any]], grace: timedelta = GRACE) -> int:
    """Delete the rows whose columns hold one of the given values, and their bytes; return how many rows went.

    Old snapshots and tags of the table go too, as they would keep the rows readable. Data files that held the rows
    are removed at once; orphans and scratch files, which may hold copies, once they are older than `grace`.
    """
    handle = catalog.table(name)
    if not values or set(values) - set(TABLES[name].schema.column_names()):
        raise BadInput(f"{name}: to erase rows, name columns of the table and the values to look for")
    before = _referenced(handle)
    rows_before = handle.scan().count()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Delete operation did not match any records")
        try:
            handle.delete(_predicate(values))
        except (CommitFailedException, ValidationException) as why:
            raise Retry(f"another writer changed {name} meanwhile; nothing was erased") from why
    handle = catalog.table(name)
    for ref in [r for r in handle.refs() if r != "main"]:
        with handle.manage_snapshots() as snapshots:
            snapshots.remove_tag(ref) if handle.refs()[ref].snapshot_ref_type == "tag" else snapshots.remove_branch(ref)
    expire(name, timedelta(0))
    handle = catalog.table(name)
    system, _ = _opened(handle.location())
    for path in before - _referenced(handle):
        if system.get_file_info(path).type is fs.FileType.File:
            system.delete_file(path)
    sweep(name, grace)
    sweep_scratch(grace)
    return int(rows_before - handle.scan().count())


def _predicate(values: dict[str, Sequence[Any]]) -> BooleanExpression:
    parts: list[BooleanExpression] = [
        EqualTo(column, wanted[0]) if len(wanted) == 1 else In(column, tuple(wanted))
        for column, wanted in values.items()
    ]
    return And(AlwaysTrue(), AlwaysTrue(), *parts)


def _path(location: str) -> str:
    """An address as its file system writes it: no scheme."""
    return location.partition("://")[2] or location


def _opened(location: str) -> tuple[fs.FileSystem, str]:
    """The file system of an address and the path in it. pyarrow cannot parse a local address with a blank."""
    local = location.startswith("file://") or "://" not in location
    return fs.LocalFileSystem() if local else fs.FileSystem.from_uri(location)[0], _path(location)


def _referenced(handle: Table) -> set[str]:
    """Paths of every file that a snapshot of the table, or its metadata log, refers to."""
    metadata = handle.metadata
    found = {handle.metadata_location} | {entry.metadata_file for entry in metadata.metadata_log}
    found |= {snapshot.manifest_list for snapshot in metadata.snapshots}
    if metadata.snapshots:
        found |= set(handle.inspect.all_manifests()["path"].to_pylist())
        found |= set(handle.inspect.all_files()["file_path"].to_pylist())
    return {_path(location) for location in found if location}


def _remove(system: fs.FileSystem, root: str, keep: set[str], grace: timedelta) -> int:
    before = datetime.now(UTC) - grace
    removed = 0
    for info in system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True)):
        if info.type is fs.FileType.File and info.path not in keep and info.mtime < before:
            system.delete_file(info.path)
            removed += 1
    log.info("swept %d files below %s", removed, root)
    return removed
