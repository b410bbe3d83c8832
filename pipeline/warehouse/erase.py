"""Erasing: rows that go for good, with every old state of their table that still holds them.

pyiceberg deletes rows and forgets snapshots but leaves the bytes on disk. What is here removes them at once, in an
order in which a run that was killed can be repeated: a file is found again as long as it is there.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import reduce
from operator import and_
from typing import Any

import polars as pl
from pyarrow import fs
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from pipeline.errors import BadInput, Retry
from pipeline.tables import TABLES
from pipeline.warehouse import catalog, scratch
from pipeline.warehouse.files import list_table, open_store, path_of, store_time, version_of
from pipeline.warehouse.lineage import (
    State,
    head_of,
    read_entries,
    read_manifests,
    read_states,
    referenced,
    sort_states,
)  # fmt: skip
from pipeline.warehouse.upkeep.limits import GRACE
from pipeline.warehouse.upkeep.sweep import expire, sweep, sweep_scratch
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
        BadInput: the catalog does not know a state that was published; nothing was removed.
        Retry: another writer changed the table meanwhile.
    """
    handle, old, _ = _states(name, grace)
    ever = _ever(handle, old)
    try:
        for ref, about in handle.refs().items():
            if ref != "main":
                with handle.manage_snapshots() as change:
                    change.remove_tag(ref) if about.snapshot_ref_type == "tag" else change.remove_branch(ref)
        expire(name, timedelta(0))
    except (CommitFailedException, ValidationException) as why:
        raise Retry(f"another writer changed {name} meanwhile; its old states are not all gone") from why
    handle, old, others = _states(name, grace)
    kept = referenced(handle.io, handle.metadata, others)
    system, _ = open_store(handle.location())
    removed = 0
    # data first: a run that is killed here is repeated with the help of the lists and metadata that tell of it
    for path in [*(path for path in ever if path not in kept), *(state.path for state in old)]:
        if system.get_file_info(path).type is fs.FileType.File:
            with suppress(FileNotFoundError):  # a sweep was faster
                system.delete_file(path)
                removed += 1
    if removed:
        log.info("%s: removed %d files of its old states", name, removed)
    return removed + sweep(name, grace)


def refuse_unknown_states(names: Iterable[str]) -> None:
    """Raise BadInput where states lie in the folder of a table that an erasure would not reach: of another table, or
    published ones that the catalog does not know.
    """
    for name in names:
        handle, _, others = _states(name)
        for state in others:
            if state.metadata and state.snapshot_ids and state.metadata.table_uuid != handle.metadata.table_uuid:
                raise BadInput(
                    f"{name}: rows of another table lie in the same folder, and would stay; nothing was erased. "
                    f"`undertone recover-catalog --dry-run` counts them. Delete the metadata files of that table, the "
                    f"newest is {state.path}, run `undertone maintain` a day later, then erase again"
                )


def _states(name: str, grace: timedelta | None = None) -> tuple[Table, list[State], list[State]]:
    """The table as it is now; its former states; and those of other tables in its folder, or of writes in flight.

    A state that was never published is a former one if it is older than `grace`.

    Raises:
        BadInput: a published state of the table is neither: its rows may be wanted, and only a person can tell.
    """
    handle = catalog.table(name)
    system, root = open_store(handle.location())
    before = None if grace is None else store_time(system, f"{root}/metadata") - grace
    states = read_states(system, list_table(system, root), handle.io, head_of(handle.location()))
    handle = catalog.table(name)  # after the listing: what is published in between is among its states
    lineage = sort_states(handle, states)
    old, others = list(lineage.replaced), [state for state in lineage.unknown if not _is_own(state, handle)]
    if unknown := [state for state in lineage.unknown if _is_own(state, handle)]:
        if any(state.version > version_of(path_of(handle.metadata_location)) for state in unknown):
            what = (
                f"the catalog is older than the table: {unknown[-1].path} was published after the state that it names"
            )
        else:
            what = f"the catalog does not know {len(unknown)} states that were published"
        raise BadInput(
            f"{name}: {what}, which an erasure does not reach. `undertone recover-catalog` moves an old catalog on, or "
            "shows the states, and `--take` takes one. Then delete the metadata files of those that are not wanted, "
            f"and erase again: {', '.join(sorted(state.path for state in unknown))}"
        )
    for state in (*lineage.pending, *lineage.unpublished):
        is_over = before is not None and state.written_at < before
        (old if is_over and _is_own(state, handle) else others).append(state)
    return handle, old, others


def _is_own(state: State, handle: Table) -> bool:
    """Whether a state is of this table and no other in its folder."""
    return state.metadata is not None and state.metadata.table_uuid == handle.metadata.table_uuid


def history(name: str) -> pl.LazyFrame:
    """Rows of all files that the table's present and former states have and that are still there."""
    handle, old, _ = _states(name)
    system, _ = open_store(handle.location())
    schema = TABLES[name].schema.create_empty()
    there = [
        path
        for path in _ever(handle, old)
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
    system, root = open_store(handle.location())
    there = system.get_file_info(fs.FileSelector(f"{root}/data", recursive=True, allow_not_found=True))
    handle, old, _ = _states(name)
    return {info.path for info in there if info.type is fs.FileType.File} - set(_ever(handle, old))


def _ever(handle: Table, old: Iterable[State]) -> list[str]:
    """Paths of files of the table's present and former states: data, then manifests, then lists of these."""
    data: dict[str, None] = {}
    manifests: dict[str, None] = {}
    lists: dict[str, None] = {}
    metadata: list[TableMetadata] = [handle.metadata, *(state.metadata for state in old if state.metadata)]
    for snapshot in {s.snapshot_id: s for each in metadata for s in each.snapshots}.values():
        lists[path_of(snapshot.manifest_list)] = None
        for manifest in read_manifests(handle.io, snapshot):
            if (path := path_of(manifest.manifest_path)) not in manifests:
                manifests[path] = None
                data.update(dict.fromkeys(read_entries(handle.io, manifest, with_removed=True)))
    return [*data, *manifests, *lists]


def discard(paths: Sequence[str]) -> int:
    """Remove files by their paths in the warehouse's file system, such as scratch; return how many were there."""
    system, _ = open_store(scratch.root())
    there = [path for path in paths if system.get_file_info(path).type is fs.FileType.File]
    for path in there:
        system.delete_file(path)
    return len(there)
