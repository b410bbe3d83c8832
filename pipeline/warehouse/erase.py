"""Erasing: rows that go for good, with every old state of their table that still holds them, and their bytes.

The order is such that a run that was killed can be repeated: a file is found again as long as it is there.
"""

import fcntl
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import polars as pl
from pyarrow import fs
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Table

from pipeline import settings
from pipeline.errors import BadInput, Retry
from pipeline.private import make_folder
from pipeline.tables import TABLES, empty
from pipeline.warehouse import catalog
from pipeline.warehouse.files import get_path, get_scheme, get_version, is_file, open_store, remove
from pipeline.warehouse.lineage import Inventory, State, list_files, list_references, take_inventory
from pipeline.warehouse.upkeep.limits import GRACE
from pipeline.warehouse.upkeep.sweep import expire, maintain_scratch, sweep
from pipeline.warehouse.write import locate_scratch, make_slice, replace

log = logging.getLogger(__name__)


@contextmanager
def lock_erasures() -> Iterator[None]:
    """Allow one erasure or copy of comments at a time, on all machines: two erasures would keep each other's texts."""
    make_folder(settings.home())
    with (settings.home() / "forget.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("waiting for the end of another erasure")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def erase(name: str, values: Mapping[str, Sequence[Any]]) -> int:
    """Delete the rows whose columns hold one of the given values, and their bytes; return how many rows went.

    Old snapshots and tags of the table go too, as they would keep the rows readable. Data files that held the rows
    are removed at once; orphans and scratch files, which may hold copies, once they are a day old.
    """
    if not values or set(values) - set(TABLES[name].schema.column_names()):
        raise BadInput(f"{name}: to erase rows, name columns of the table and the values to look for")
    condition = pl.all_horizontal(pl.col(column).is_in(list(erased)) for column, erased in values.items())
    count = sum(rewrite(name, condition, lambda rows: rows.remove(condition)))
    purge(name)
    maintain_scratch()
    return count


def rewrite(
    name: str, condition: pl.Expr, update: Callable[[pl.LazyFrame], pl.LazyFrame], run_id: str = "cli"
) -> Iterator[int]:
    """Update each partition that has rows which fulfil a condition, a transaction each; yield how many after each."""
    columns = list(TABLES[name].partitions)
    matches = filter_exactly(catalog.scan(name), condition).select(columns).collect(engine="streaming")
    for *values, count in matches.group_by(columns).len().sort(columns).iter_rows():
        replace(name, make_slice(**dict(zip(columns, values, strict=True))), update, run_id)
        yield count


def filter_exactly(rows: pl.LazyFrame, condition: pl.Expr) -> pl.LazyFrame:
    """Filter rows, not by the statistics of files, which cut texts at 64 bytes, so that rows would be skipped."""
    return rows.with_columns(_is_match=condition).filter("_is_match").drop("_is_match")


def purge(name: str, grace: timedelta = GRACE) -> int:
    """Make the table's present state the only one; return how many files of other states, tags and branches went.

    Files that no state refers to go too, once they are older than `grace`: before, a write may be in flight.

    Raises:
        BadInput: the catalog does not know a state that was published; nothing was removed.
        Retry: another writer changed the table meanwhile.
    """
    inventory, old_states, _ = _read_states(name, grace)
    paths, handle = _list_paths(inventory.handle, old_states), inventory.handle
    try:
        for ref, target in handle.refs().items():
            if ref != "main":
                with handle.manage_snapshots() as change:
                    change.remove_tag(ref) if target.snapshot_ref_type == "tag" else change.remove_branch(ref)
        expire(name, timedelta(0))
    except (CommitFailedException, ValidationException) as error:
        raise Retry(f"another writer changed {name} meanwhile; its old states are not all gone") from error
    inventory, old_states, other_states = _read_states(name, grace)
    references = list_references(inventory.handle.io, inventory.handle.metadata, other_states)
    # data first: a run that is killed here is repeated with the help of the lists and metadata that lead to it
    paths = [*(path for path in paths if path not in references), *(state.path for state in old_states)]
    infos = inventory.system.get_file_info(paths)
    removed = remove(inventory.system, [info for info in infos if info.type is fs.FileType.File])
    return len(removed) + sweep(name, grace)


def refuse_unknown_states(names: Iterable[str]) -> None:
    """Raise BadInput where a table's folder has states that an erasure does not reach: of another table, or unknown."""
    for name in names:
        inventory, _, other_states = _read_states(name)
        if rest := [state for state in other_states if state.snapshot_ids and not inventory.is_own(state)]:
            raise BadInput(
                f"{name}: rows of another table lie in the same folder, and would stay; nothing was erased. "
                f"`undertone recover-catalog --dry-run` counts them. Delete the metadata files of that table, the "
                f"newest is {rest[-1].path}, run `undertone maintain` a day later, then erase again"
            )


def _read_states(name: str, grace: timedelta | None = None) -> tuple[Inventory, list[State], list[State]]:
    """Take an inventory; find the table's former states, unpublished ones older than `grace` too, and all others."""
    inventory = take_inventory(name, grace)
    handle, lineage = inventory.handle, inventory.lineage
    if unknown := [state for state in lineage.unknown if inventory.is_own(state)]:
        cause = f"the catalog does not know {len(unknown)} states that were published"
        if any(state.version > get_version(get_path(handle.metadata_location)) for state in unknown):
            newest = unknown[-1].path
            cause = f"the catalog is older than the table: {newest} was published after the state that it names"
        raise BadInput(
            f"{name}: {cause}, which an erasure does not reach. `undertone recover-catalog` moves an old catalog on, "
            "or shows the states, and `--take` takes one. Then delete the metadata files of those that are not wanted, "
            f"and erase again: {', '.join(sorted(state.path for state in unknown))}"
        )
    old_states, other_states = [*lineage.replaced], [*lineage.unknown]
    for state in (*lineage.pending, *lineage.unpublished):
        is_former = state.written_at < inventory.before and inventory.is_own(state)
        (old_states if is_former else other_states).append(state)
    return inventory, old_states, other_states


def _list_paths(handle: Table, old_states: Iterable[State]) -> list[str]:
    metadatas = [handle.metadata, *(state.metadata for state in old_states if state.metadata)]
    return list_files(handle.io, metadatas, with_removed=True)


def scan_history(name: str) -> pl.LazyFrame:
    """Rows of all files that the table's present and former states have and that are still there."""
    inventory, old_states, _ = _read_states(name)
    paths = [path for path in _list_paths(inventory.handle, old_states) if path.endswith(".parquet")]
    paths = [path for path in paths if is_file(inventory.system, path)]
    if not paths:
        return empty(name).lazy()
    scheme = get_scheme(inventory.handle.location()).replace("file://", "")
    options: dict[str, Any] = {"missing_columns": "insert", "extra_columns": "ignore", "glob": False}
    addresses, schema = [scheme + path for path in paths], empty(name).schema
    return pl.scan_parquet(addresses, schema=schema, storage_options=catalog.STORE, **options)


def find_strays(name: str) -> set[str]:
    """Paths of files below the table that no state of it refers to: of writes in flight, or of killed ones."""
    inventory, old_states, _ = _read_states(name)
    folder = f"{get_path(inventory.handle.location())}/data/"
    paths = {info.path for info in inventory.files if info.path.startswith(folder)}
    return paths - set(_list_paths(inventory.handle, old_states))


def discard(path: str) -> None:
    """Remove a file by its path in the warehouse's file system, such as one of scratch."""
    with suppress(FileNotFoundError):
        open_store(locate_scratch())[0].delete_file(path)
