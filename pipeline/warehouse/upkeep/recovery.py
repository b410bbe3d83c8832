"""A catalog that was lost or damaged: its copies, and making it again from the metadata files of the tables.

A process that still has the old SQLite file open commits into that; then recover again.
"""

import logging
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from pyarrow import fs
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import Table

from pipeline import settings
from pipeline.errors import BadInput, Retry
from pipeline.private import make_folder
from pipeline.warehouse import catalog
from pipeline.warehouse.files import get_path, get_scheme, list_table, open_store
from pipeline.warehouse.lineage import State, list_ancestors, read_states, sort_states
from pipeline.warehouse.upkeep.check import examine

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table.metadata import TableMetadata

log = logging.getLogger(__name__)
COPIES = 8
_ROWS = f"select table_name, metadata_location from iceberg_tables where table_namespace = '{catalog.NAMESPACE}'"  # noqa: S608


class Other(NamedTuple):
    """A state that is not the one which the catalog names, and that none of the same folder came from."""

    table: str  # name of the folder it lies in
    state: str  # name of its metadata file
    written_at: datetime  # by the store's clock
    snapshot: int | None  # None before the first rows, or if the file cannot be read
    rows: int
    note: str  # what it is to the state that the catalog names


class Recovered(NamedTuple):
    """What became of a table."""

    table: str
    action: str  # `kept` as the catalog had it, `registered`, `replaced` by another state, or `lost`: none is whole
    rows: int  # in the state that the catalog names now
    state: str  # name of its metadata file
    note: str  # what was passed over, and why
    others: tuple[Other, ...] = ()  # kept states that the catalog does not know; `recover` takes one by its name


def back_up() -> Path | None:
    """Copy the SQLite catalog to `<home>/backups` and keep the last copies: BadInput if damaged, None for a server."""
    file = catalog.locate_sqlite()
    if file is None or not file.exists():
        return None
    if problem := find_damage():
        raise BadInput(f"{problem}; {catalog.RECOVER}")
    folder = make_folder(settings.home() / "backups")
    path = folder / f"catalog-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.db"
    part = path.with_suffix(f".{os.getpid()}.part")
    part.touch(mode=0o600)
    with closing(_connect(file)) as source, closing(sqlite3.connect(part)) as target:
        source.backup(target)
    part.replace(path)
    for old in sorted(folder.glob("catalog-*.db"))[:-COPIES]:
        old.unlink(missing_ok=True)
    return path


def _connect(file: Path) -> sqlite3.Connection:
    """Open a SQLite file that is there. Not read-only: what a killed writer left has to be rolled back."""
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=60)


def find_damage() -> str | None:
    """Describe what is wrong with the SQLite catalog as a file; None if nothing is, or if it is on a server."""
    file = catalog.locate_sqlite()
    if file is None:
        return None
    if not file.exists():
        return f"there is no catalog at {file}"
    try:
        with closing(_connect(file)) as connection:
            messages = [row[0] for row in connection.execute("pragma integrity_check(3)")]
            connection.execute(_ROWS).fetchall()
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise Retry(f"the catalog at {file} is in use: {error}") from error
        return f"the catalog at {file} is damaged ({error})"
    return None if messages == ["ok"] else f"the catalog at {file} is damaged ({'; '.join(messages)})"


def _read_copies() -> dict[str, set[str]]:
    paths: dict[str, set[str]] = {}
    for path in (settings.home() / "backups").glob("catalog-*.db"):
        with suppress(sqlite3.Error), closing(_connect(path)) as connection:
            for name, location in connection.execute(_ROWS):
                paths.setdefault(name, set()).add(get_path(location))
    return paths


def recover(*, dry_run: bool = False, force: bool = False, take: Collection[str] = ()) -> list[Recovered]:
    """Make the catalog name the newest whole state of every table whose files are there.

    A table that the catalog knows is left as it is, unless its metadata file cannot be read or a newer state came from
    it. A damaged SQLite catalog is moved aside. Every step can be repeated after a kill.

    Args:
        dry_run: change nothing.
        force: take the newest whole state also where the catalog names another that can be read.
        take: names of metadata files, one of a table at most, whose states the catalog is to name.

    Raises:
        BadInput: a file in `take` is not there or its state is not whole, or two are of one table; nothing was changed.
    """
    damage = find_damage()
    registered = {} if damage else catalog.list_registered()
    copied = _read_copies()
    system, root = open_store(catalog.locate_table("").rstrip("/"))
    infos = system.get_file_info(fs.FileSelector(root, allow_not_found=True))
    plans: list[Recovered] = []
    changes: dict[str, tuple[str | None, str]] = {}
    for name in sorted(info.base_name for info in infos if info.type is fs.FileType.Directory):
        folder = _read_folder(name, registered.get(name))
        plan, state = _plan(folder, copied.get(name, set()), force, take)
        plans.append(plan)
        if state and plan.action in ("registered", "replaced"):
            changes[name] = (folder.registered, folder.scheme + state.path)
    if absent := sorted(set(take) - {plan.state for plan in plans}):
        problem = f"no table has the metadata file {absent[0]}, or another file of its table was named too"
        raise BadInput(f"{problem}; nothing was changed. `undertone recover-catalog --dry-run` names the files")
    if changes and not dry_run:
        if damage:
            _move_aside()
        else:
            back_up()
        catalog.close()
        make_folder(settings.home())
        target = catalog.open_catalog(create_tables=True)
        target.create_namespace_if_not_exists(catalog.NAMESPACE)
        target.set_states(changes)
    return plans


def _move_aside() -> None:
    """Rename the damaged catalog, and what SQLite keeps beside it, so that a person can still look at it."""
    file = catalog.locate_sqlite()
    stamp = f"damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    catalog.close()
    for suffix in ("-journal", "-wal", "-shm", ""):  # the file last: until then a killed rescue finds it damaged
        if file is not None and (part := file.with_name(file.name + suffix)).exists():
            part.rename(file.with_name(f"{file.name}.{stamp}{suffix}"))
            log.warning("moved %s aside, to %s.%s%s", part, file.name, stamp, suffix)


@dataclass(frozen=True)
class _Folder:
    name: str
    registered: str | None  # address of the metadata file that the catalog names
    scheme: str
    io: FileIO
    states: dict[str, State]  # by path

    def open(self, state: State) -> Table:
        metadata, address = cast("TableMetadata", state.metadata), (catalog.NAMESPACE, self.name)
        return Table(address, metadata, self.scheme + state.path, self.io, cast("Catalog", None))

    def examine(self, state: State) -> Sequence[str]:
        """List what is missing or damaged of a state."""
        return ["its metadata cannot be read"] if state.metadata is None else examine(self.open(state))


def _read_folder(name: str, registered: str | None) -> _Folder:
    location = catalog.locate_table(name) if registered is None else registered.rpartition("/metadata/")[0]
    system, root = open_store(location)
    scheme, io = get_scheme(location), load_file_io(catalog.build_properties(), location)
    states = read_states(system, list_table(system, root), io, scheme)
    return _Folder(name, registered, scheme, io, {state.path: state for state in states})


def _plan(folder: _Folder, copied: set[str], force: bool, take: Collection[str]) -> tuple[Recovered, State | None]:
    name, states = folder.name, folder.states
    current = states.get(get_path(folder.registered)) if folder.registered else None
    newest = next((state for state in states.values() if state.name in take), None)
    notes: list[str] = []
    is_named = newest is not None
    if newest and (problems := folder.examine(newest)):
        raise BadInput(f"{name}: {newest.name} is not whole, {problems[0]}; nothing was changed")
    for state in [] if is_named else _rank(states.values(), copied | ({current.path} if current else set())):
        problems = folder.examine(state)
        if notes and not state.snapshot_ids:
            break  # before the first row was written: no state to return to
        if not problems:
            newest = state
            break
        notes.append(f"not taken: {state.name} of {state.row_count} rows, {problems[0]}")
    notes += _describe_tables(states.values(), newest)
    if current and current.metadata is not None and current != newest and not is_named:
        is_newer = newest is not None and current.path in list_ancestors(newest.parents, states)
        if not (newest and (force or is_newer)):
            notes += [f"--force takes {newest.name} of {newest.row_count} rows"] if newest else []
            newest = current
    if newest is None:
        return Recovered(name, "lost", 0, "", "; ".join(notes) or "no metadata file can be read"), None
    action = "kept" if newest == current else "replaced" if folder.registered else "registered"
    other_states = tuple(_list_others(folder, folder.open(newest)))
    return Recovered(name, action, newest.row_count, newest.name, "; ".join(notes), other_states), newest


def _rank(states: Iterable[State], named_paths: Collection[str]) -> list[State]:
    """Rank the states that may be the one last published, newest first, without those that lost their race."""
    readable = [(state, state.metadata) for state in states if state.metadata is not None]
    parents = {path for state, _ in readable for path in state.parents}
    published = {s.path: s for s, _ in readable if s.is_published or s.path in parents or s.path in named_paths}
    ranks = {}
    for state, metadata in readable:
        has_lost = any(
            other.version >= state.version and other.table_uuid == state.table_uuid and state.path not in other.parents
            for other in published.values()
        )
        if state.path in published or not has_lost:
            sequence = getattr(metadata, "last_sequence_number", 0)
            ranks[sequence, state.version, metadata.last_updated_ms, state.path] = state
    return [ranks[rank] for rank in sorted(ranks, reverse=True)]


def _describe_tables(states: Iterable[State], newest: State | None) -> list[str]:
    if newest is None:
        return []
    other_states = (state for state in states if state.snapshot_ids and state.table_uuid != newest.table_uuid)
    last = {state.table_uuid: state for state in sorted(other_states, key=lambda state: state.version)}
    return [f"another table of {s.row_count} rows lies there, {s.name}; its files are kept" for s in last.values()]


def _list_others(folder: _Folder, current: Table) -> Iterator[Other]:
    """List states with rows that the current one did not come from, without those that another of them came from."""
    lineage = sort_states(current, folder.states.values())
    groups = {
        "published": lineage.unknown,
        "newer, perhaps not published": lineage.pending,
        "not published; upkeep removes it": lineage.unpublished,
    }
    parents = {path for state in folder.states.values() for path in state.parents}
    for note, group in groups.items():
        for state in (s for s in group if s.path not in parents and (s.metadata is None or s.snapshot_ids)):
            is_own = state.table_uuid == current.metadata.table_uuid
            detail = "; cannot be read" if state.metadata is None else "" if is_own else "; of another table"
            snapshot_id = state.metadata.current_snapshot_id if state.metadata else None
            yield Other(folder.name, state.name, state.written_at, snapshot_id, state.row_count, note + detail)
