"""A catalog that was lost or damaged: its copies, and making it again from the metadata files of the tables.

Nothing may write meanwhile: a process that still has the old SQLite file open would commit into that. Its commits are
not lost even so, as the metadata files tell of them: recover again.
"""

import logging
import os
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import UUID

from pyarrow import fs
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import Table

from pipeline import settings
from pipeline.errors import BadInput, Retry
from pipeline.private import make_folder
from pipeline.warehouse import catalog
from pipeline.warehouse.files import list_table, open_store, path_of
from pipeline.warehouse.lineage import State, head_of, read_states, sort_states
from pipeline.warehouse.upkeep.check import examine

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table.metadata import TableMetadata

log = logging.getLogger(__name__)

COPIES = 8
_ROWS = f"select table_name, metadata_location from iceberg_tables where table_namespace = '{catalog.NAMESPACE}'"  # noqa: S608


class Other(NamedTuple):
    """A state that is not the one which the catalog names, and that none of the same folder came from.

    Attributes:
        table: name of the folder it lies in.
        state: name of its metadata file.
        written_at: when, by the store's clock.
        snapshot: id of its snapshot; None before the first rows, or if the file cannot be read.
        rows: in it.
        note: what it is to the state that the catalog names.
    """

    table: str
    state: str
    written_at: datetime
    snapshot: int | None
    rows: int
    note: str


class Recovered(NamedTuple):
    """What became of a table.

    Attributes:
        table: its name.
        action: `kept` as the catalog had it, `registered`, `replaced` by another state, or `lost`: none is whole.
        rows: in the state that the catalog names now.
        state: name of its metadata file.
        note: what was passed over, and why.
        others: states that are kept and that the catalog does not know; `recover` takes one by its name.
    """

    table: str
    action: str
    rows: int
    state: str
    note: str
    others: tuple[Other, ...] = ()


def backup() -> Path | None:
    """Copy the SQLite catalog to `<home>/backups` if it is sound, and keep the last copies; None for a server's.

    Raises:
        BadInput: it is damaged; the copies stay as they are.
    """
    file = catalog.sqlite_file()
    if file is None or not file.exists():
        return None
    if problem := find_damage():
        raise BadInput(f"{problem}; {catalog.RECOVER}")
    folder = settings.home() / "backups"
    make_folder(folder)
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
    """What is wrong with the SQLite catalog as a file; None if nothing is, or if the catalog is on a server."""
    file = catalog.sqlite_file()
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


def _copied() -> dict[str, set[str]]:
    """Paths of the metadata files that the readable copies of the catalog name, by table."""
    paths: dict[str, set[str]] = {}
    for path in (settings.home() / "backups").glob("catalog-*.db"):
        with suppress(sqlite3.Error), closing(_connect(path)) as connection:
            for name, location in connection.execute(_ROWS):
                paths.setdefault(name, set()).add(path_of(location))
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
    registered = {} if damage else catalog.registered()
    copied = _copied()
    plans = [_plan(name, registered.get(name), copied.get(name, set()), force=force, take=take) for name in _folders()]
    if absent := sorted(set(take) - {plan.state for plan, _ in plans}):
        raise BadInput(
            f"no table has the metadata file {absent[0]}, or another file of its table was named too; nothing was "
            "changed. `undertone recover-catalog --dry-run` names the files"
        )
    changes = {p.table: (registered.get(p.table), location) for p, location in plans if p.action in _CHANGING}
    if changes and not dry_run:
        if damage:
            _move_aside()
        else:
            backup()
        catalog.close()
        make_folder(settings.home())
        target = catalog.catalog(create_tables=True)
        target.create_namespace_if_not_exists(catalog.NAMESPACE)
        target.set_states(changes)
    return [plan for plan, _ in plans]


_CHANGING = ("registered", "replaced")


def _move_aside() -> None:
    """Rename the damaged catalog, and what SQLite keeps beside it, so that a person can still look at it."""
    file = catalog.sqlite_file()
    stamp = f"damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    catalog.close()
    for suffix in ("-journal", "-wal", "-shm", ""):  # the file last: until then a killed rescue finds it damaged
        if file is not None and (part := file.with_name(file.name + suffix)).exists():
            part.rename(file.with_name(f"{file.name}.{stamp}{suffix}"))
            log.warning("moved %s aside, to %s.%s%s", part, file.name, stamp, suffix)


def _folders() -> list[str]:
    """Names of the folders in which tables lie."""
    system, root = open_store(catalog.table_location("").rstrip("/"))
    infos = system.get_file_info(fs.FileSelector(root, allow_not_found=True))
    return sorted(info.base_name for info in infos if info.type is fs.FileType.Directory)


def _plan(
    name: str, registered: str | None, copied: set[str], *, force: bool, take: Collection[str]
) -> tuple[Recovered, str]:
    """What to do with a table, and the address of the metadata file to name."""
    location = catalog.table_location(name) if registered is None else registered.rpartition("/metadata/")[0]
    system, root = open_store(location)
    head, io = head_of(location), load_file_io(catalog.properties(), location)
    states = {state.path: state for state in read_states(system, list_table(system, root), io, head)}
    current = states.get(path_of(registered)) if registered else None
    notes: list[str] = []
    newest = next((state for state in states.values() if _name(state) in take), None)
    is_named = newest is not None
    if newest is not None and (problems := _examine(name, newest, io, head)):
        raise BadInput(f"{name}: {_name(newest)} is not whole, {problems[0]}; nothing was changed")
    ranked = [] if is_named else _rank(list(states.values()), copied | ({current.path} if current else set()))
    for state in ranked:
        problems = _examine(name, state, io, head)
        if notes and not state.snapshot_ids:
            break  # before the first row was written: no state to return to
        if not problems:
            newest = state
            break
        notes.append(f"not taken: {_name(state)} of {_count(state)} rows, {problems[0]}")
    notes += _others(states.values(), newest)
    if current is not None and current.metadata is not None and current != newest and not is_named:
        is_newer = newest is not None and current.path in _ancestors(newest, states)
        if not (newest is not None and (force or is_newer)):
            notes += [f"--force takes {_name(newest)} of {_count(newest)} rows"] if newest else []
            newest = current
    if newest is None:
        return Recovered(name, "lost", 0, "", "; ".join(notes) or "no metadata file can be read"), ""
    action = "kept" if newest == current else "replaced" if registered else "registered"
    others = _list_others(name, _open_state(name, newest, io, head), states.values())
    return Recovered(name, action, _count(newest), _name(newest), "; ".join(notes), others), head + newest.path


def _rank(states: list[State], named: Collection[str]) -> list[State]:
    """The states that may be the one last published, newest first.

    One that was never published, as far as is known, is left out where a published one of the same table is as far on
    and did not come from it: it lost its race. Published are those that have a checksum, that a copy of the catalog
    names (`named`), or that another came from.
    """
    readable = [(state, state.metadata) for state in states if state.metadata is not None]
    parents = {path for state, _ in readable for path in state.parents}
    published = [(s, m) for s, m in readable if s.is_published or s.path in parents or s.path in named]
    ranked = [
        (getattr(metadata, "last_sequence_number", 0), state.version, metadata.last_updated_ms, state.path, state)
        for state, metadata in readable
        if (state, metadata) in published or not any(
            other.version >= state.version and m.table_uuid == metadata.table_uuid and state.path not in other.parents
            for other, m in published
        )
    ]  # fmt: skip
    return [state for *_, state in sorted(ranked, key=lambda row: row[:4], reverse=True)]


def _ancestors(state: State, states: Mapping[str, State]) -> set[str]:
    """Paths of the states that it came from, as far as the logs in the folder go back."""
    paths, pending = set(state.parents), list(state.parents)
    while pending:
        parent = states.get(pending.pop())
        more = parent.parents - paths if parent else set()
        paths |= more
        pending += more
    return paths


def _others(states: Iterable[State], newest: State | None) -> list[str]:
    """What to say of other tables that lie in the folder: of each the state with most commits."""
    if newest is None or newest.metadata is None:
        return []
    uuid = newest.metadata.table_uuid
    last: dict[UUID, State] = {}
    for state in sorted(states, key=lambda s: s.version):
        if state.metadata and state.snapshot_ids and state.metadata.table_uuid != uuid:
            last[state.metadata.table_uuid] = state
    return [f"another table of {_count(s)} rows lies there, {_name(s)}; its files are kept" for s in last.values()]


def _list_others(name: str, current: Table, states: Collection[State]) -> tuple[Other, ...]:
    """States with rows that the current one did not come from, without those that another of them came from."""
    lineage = sort_states(current, states)
    kinds = (
        (lineage.unknown, "published"), (lineage.pending, "newer, perhaps not published"),
        (lineage.unpublished, "not published; upkeep removes it"),
    )  # fmt: skip
    parents = {path for state in states for path in state.parents}
    return tuple(
        Other(
            name, _name(state), state.written_at, state.metadata.current_snapshot_id if state.metadata else None,
            _count(state), _describe(state, current, kind),
        )
        for group, kind in kinds for state in group
        if state.path not in parents and (state.metadata is None or state.snapshot_ids)
    )  # fmt: skip


def _describe(state: State, current: Table, kind: str) -> str:
    if state.metadata is None:
        return f"{kind}; cannot be read"
    return kind if state.metadata.table_uuid == current.metadata.table_uuid else f"{kind}; of another table"


def _examine(name: str, state: State, io: FileIO, head: str) -> Sequence[str]:
    """What is missing or damaged of a state."""
    return ["its metadata cannot be read"] if state.metadata is None else examine(_open_state(name, state, io, head))


def _open_state(name: str, state: State, io: FileIO, head: str) -> Table:
    metadata = cast("TableMetadata", state.metadata)
    return Table((catalog.NAMESPACE, name), metadata, head + state.path, io, cast("Catalog", None))


def _name(state: State) -> str:
    return state.path.rpartition("/")[2]


def _count(state: State) -> int:
    """Rows of a state, as its snapshot has it."""
    snapshot = state.metadata.current_snapshot() if state.metadata else None
    return int(snapshot.summary["total-records"] or 0) if snapshot and snapshot.summary else 0
