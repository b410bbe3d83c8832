"""Erasing: rows that go for good, with every old state of their table that still holds them.

pyiceberg deletes rows and forgets snapshots but leaves the bytes on disk. What is here removes them at once, in an
order in which a run that was killed can be repeated: a file is found again as long as it is there.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import reduce
from operator import and_
from typing import Any

import polars as pl
from pyarrow import fs
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.manifest import ManifestFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from pipeline.errors import BadInput, Retry
from pipeline.tables import TABLES
from pipeline.warehouse import catalog, scratch
from pipeline.warehouse.upkeep import GRACE, _opened, _path, _referenced, expire, sweep, sweep_scratch
from pipeline.warehouse.write import replace, slice_of

log = logging.getLogger(__name__)


def erase(name: str, values: Mapping[str, Sequence[Any]], grace: timedelta = GRACE, run_id: str = "cli") -> int:
    """Delete the rows whose columns hold one of the given values, and their bytes; return how many rows went.

    Old snapshots and tags of the table go too, as they would keep the rows readable. Data files that held the rows
    are removed at once; orphans and scratch files, which may hold copies, once they are older than `grace`.
    """
    if not values or set(values) - set(TABLES[name].schema.column_names()):
        raise BadInput(f"{name}: to erase rows, name columns of the table and the values to look for")
    is_meant = reduce(and_, (pl.col(column).is_in(list(wanted)) for column, wanted in values.items()))
    count = sum(rewrite(name, is_meant, lambda rows: rows.filter(~is_meant), run_id))
    purge(name, grace)
    sweep_scratch(grace)
    return count


def rewrite(
    name: str, is_meant: pl.Expr, mended: Callable[[pl.LazyFrame], pl.LazyFrame], run_id: str = "cli"
) -> Iterator[int]:  # fmt: skip
    """Write anew each partition that has rows which are meant, as `mended` makes it; yield how many, once it is done.

    Each partition is one transaction. Its old files stay until `purge`.
    """
    partitions = list(TABLES[name].partitions)
    found = met(catalog.scan(name), is_meant).select(partitions).collect(engine="streaming")
    for *where, count in found.group_by(partitions).len().sort(partitions).iter_rows():
        replace(name, slice_of(**dict(zip(partitions, where, strict=True))), mended, run_id)
        yield count


def met(rows: pl.LazyFrame, is_meant: pl.Expr) -> pl.LazyFrame:
    """Rows that are meant. A plain filter would be asked of the statistics of files too, which cut texts at 64 bytes.

    A function of Python's own in it would see texts that are none, and what it says of them would skip rows.
    """
    return rows.with_columns(_is_met=is_meant).filter("_is_met").drop("_is_met")


def purge(name: str, grace: timedelta = GRACE) -> int:
    """Make the table's present state the only one: its other states, tags and branches go with their files.

    Files that no state refers to go too, once they are older than `grace`: before, a write may be in flight.

    Returns:
        How many files were removed.

    Raises:
        Retry: another writer changed the table meanwhile.
    """
    handle = catalog.table(name)
    ever = _ever(handle)
    try:
        for ref, about in handle.refs().items():
            if ref != "main":
                with handle.manage_snapshots() as change:
                    change.remove_tag(ref) if about.snapshot_ref_type == "tag" else change.remove_branch(ref)
        expire(name, timedelta(0))
    except (CommitFailedException, ValidationException) as why:
        raise Retry(f"another writer changed {name} meanwhile; its old states are not all gone") from why
    handle = catalog.table(name)
    kept = _referenced(handle)
    system, _ = _opened(handle.location())
    removed = 0
    for path in ever:  # data first: a run that is killed here is repeated with the help of the lists that tell of it
        if path not in kept and system.get_file_info(path).type is fs.FileType.File:
            with suppress(FileNotFoundError):  # a sweep was faster
                system.delete_file(path)
                removed += 1
    if removed:
        log.info("%s: removed %d files of its old states", name, removed)
    return removed + sweep(name, grace)


def history(name: str) -> pl.LazyFrame:
    """Rows of all files that the table's present and former states have and that are still there."""
    handle = catalog.table(name)
    system, _ = _opened(handle.location())
    schema = TABLES[name].schema.create_empty()
    there = [
        path
        for path in _ever(handle)
        if path.endswith(".parquet") and system.get_file_info(path).type is fs.FileType.File
    ]
    if not there:
        return schema.lazy()
    head = handle.location().partition("://")[0] + "://" if "://" in handle.location() else ""
    paths = there if head in ("", "file://") else [f"{head}{path}" for path in there]
    return pl.scan_parquet(
        paths, schema=schema.schema, missing_columns="insert", extra_columns="ignore", glob=False,
        storage_options=catalog.STORE,
    )  # fmt: skip


def strays(name: str) -> set[str]:
    """Paths of files below the table that no state of it refers to: of writes in flight, or of killed ones."""
    handle = catalog.table(name)
    system, root = _opened(handle.location())
    there = system.get_file_info(fs.FileSelector(f"{root}/data", recursive=True, allow_not_found=True))
    return {info.path for info in there if info.type is fs.FileType.File} - set(_ever(catalog.table(name)))


def _ever(handle: Table) -> list[str]:
    """Paths of files of the table's present and former states: data, then manifests, then lists of these."""
    data: dict[str, None] = {}
    manifests: dict[str, None] = {}
    lists: dict[str, None] = {}
    metadata = [handle.metadata]
    for entry in handle.metadata.metadata_log:
        with _unless_gone(handle, entry.metadata_file):  # older ones are removed by and by
            metadata.append(_metadata(handle, entry.metadata_file))
    for snapshot in {s.snapshot_id: s for each in metadata for s in each.snapshots}.values():
        found: list[ManifestFile] = []
        lists[_path(snapshot.manifest_list)] = None
        with _unless_gone(handle, snapshot.manifest_list):
            found = snapshot.manifests(handle.io)
        for manifest in found:
            if (path := _path(manifest.manifest_path)) not in manifests:
                manifests[path] = None
                with _unless_gone(handle, path):
                    entries = manifest.fetch_manifest_entry(handle.io, discard_deleted=False)
                    data.update(dict.fromkeys(_path(entry.data_file.file_path) for entry in entries))
    return [*data, *manifests, *lists]


def _metadata(handle: Table, location: str) -> TableMetadata:
    return FromInputFile.table_metadata(handle.io.new_input(location))


@contextmanager
def _unless_gone(handle: Table, location: str) -> Iterator[None]:
    """Pass over a file that went before. Any other fault is Retry: of what the file leads to, nothing is known.

    A store has words of its own for an object that is not there, so it is asked.
    """
    try:
        yield
    except OSError as why:
        with suppress(OSError):
            system, path = _opened(handle.location())[0], _path(location)
            if system.get_file_info(path).type is fs.FileType.NotFound:
                return
        raise Retry(f"{location} cannot be read, and tells where more is: {why}") from why


def discard(paths: Sequence[str]) -> int:
    """Remove files by their paths in the warehouse's file system, such as scratch; return how many were there."""
    system, _ = _opened(scratch.root())
    there = [path for path in paths if system.get_file_info(path).type is fs.FileType.File]
    for path in there:
        system.delete_file(path)
    return len(there)
