"""The states of a table that its folder holds: which the catalog's came from, and which it does not know.

Others were never published, are newer than what an old catalog names, or are of another table of a lost catalog.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple, TypeVar
from uuid import UUID

from pyarrow import fs
from pyiceberg.exceptions import ValidationError as InvalidMetadata
from pyiceberg.io import FileIO
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from pipeline.errors import BadInput, Retry
from pipeline.warehouse import catalog, checksums
from pipeline.warehouse.files import get_path, get_scheme, get_version, list_table, open_store, store_time

T = TypeVar("T")


class State(NamedTuple):
    """A metadata file."""

    path: str
    written_at: datetime  # by the store's clock
    metadata: TableMetadata | None  # its content; None if it cannot be read
    is_published: bool  # it has a checksum, which a commit records once it is published
    is_earlier: bool  # it is older than all records, so an earlier version may have published it
    has_rival: bool  # another state of its version has a checksum

    @property
    def version(self) -> int:
        """Number of commits up to this state, which begins its file's name."""
        return get_version(self.path)

    @property
    def parents(self) -> set[str]:
        """Paths of the states it came from, as far as its log goes back."""
        return {get_path(entry.metadata_file) for entry in self.metadata.metadata_log} if self.metadata else set()

    @property
    def snapshot_ids(self) -> set[int]:
        return {snapshot.snapshot_id for snapshot in self.metadata.snapshots} if self.metadata else set()

    @property
    def name(self) -> str:
        """The name of its file."""
        return self.path.rpartition("/")[2]

    @property
    def table_uuid(self) -> UUID | None:
        return self.metadata.table_uuid if self.metadata else None

    @property
    def row_count(self) -> int:
        """Rows as its snapshot has them."""
        snapshot = self.metadata.current_snapshot() if self.metadata else None
        return int(snapshot.summary["total-records"] or 0) if snapshot and snapshot.summary else 0


class Lineage(NamedTuple):
    """The states beside the current one, by what they are to it."""

    replaced: list[State]  # it came from these
    pending: list[State]  # unpublished and newer: of a commit in flight, or of one killed before it was published
    unpublished: list[State]  # never published, and never will be: another commit took the place
    unknown: list[State]  # published states that it did not come from: the catalog is behind, or another table's


class Inventory(NamedTuple):
    """A table, and what was in its folder just before it was loaded."""

    handle: Table
    system: fs.FileSystem
    files: list[fs.FileInfo]
    before: datetime  # older files are out of the grace time; without one, none is
    lineage: Lineage

    def is_own(self, state: State) -> bool:
        """Test if a state is of this table and no other in its folder."""
        return state.table_uuid == self.handle.metadata.table_uuid


def take_inventory(name: str, grace: timedelta | None = None) -> Inventory:
    """List the files of a table, then load it: what is published in between is among its states."""
    handle = catalog.load_table(name)
    system, root = open_store(handle.location())
    before = store_time(system, f"{root}/metadata") - grace if grace is not None else datetime.min.replace(tzinfo=UTC)
    files = list_table(system, root)
    states = read_states(system, files, handle.io, get_scheme(handle.location()))
    handle = catalog.load_table(name)
    return Inventory(handle, system, files, before, sort_states(handle, states))


def read_states(system: fs.FileSystem, files: Iterable[fs.FileInfo], io: FileIO, scheme: str) -> list[State]:
    """Read the metadata files among the files of a table, oldest first; one that went meanwhile is left out."""
    files = sorted((info for info in files if info.path.endswith(".metadata.json")), key=lambda info: info.mtime)
    if not files:
        return []
    records = checksums.read(scheme + files[0].path.rpartition("/metadata/")[0])
    published = Counter(map(get_version, records.checksums))
    states = []
    for info in files:
        try:
            metadata = FromInputFile.table_metadata(io.new_input(scheme + info.path))
        except (InvalidMetadata, ValueError):
            metadata = None
        except OSError as error:
            if system.get_file_info(info.path).type is fs.FileType.NotFound:
                continue
            raise Retry(f"{info.path} cannot be read: {error}") from error
        is_published = info.path in records.checksums
        is_earlier = records.first_at is None or info.mtime < records.first_at
        has_rival = published[get_version(info.path)] > is_published
        states.append(State(info.path, info.mtime, metadata, is_published, is_earlier, has_rival))
    return states


def sort_states(current: Table, states: Iterable[State]) -> Lineage:
    """Sort all states of a table's folder by what they are to the current one."""
    by_path = {state.path: state for state in states}
    current_path = get_path(current.metadata_location)
    replaced = list_ancestors((get_path(entry.metadata_file) for entry in current.metadata.metadata_log), by_path)
    parents = {path for state in by_path.values() for path in state.parents}  # only a published state has successors
    is_upgraded = any(not state.is_published for state in by_path.values() if state.path in replaced)
    lineage = Lineage([], [], [], [])
    for state in by_path.values():
        is_other = state.table_uuid not in (None, current.metadata.table_uuid)
        if state.path == current_path:
            continue
        is_published = state.is_published or state.path in parents
        # no other state of its version was published: then the current one came from it, whatever logs name
        versions = {get_version(path) for path in replaced if path != state.path}
        is_only = not state.has_rival and state.version < get_version(current_path) and state.version not in versions
        is_parent = state.path in replaced or (is_published and is_only)
        if is_parent and not is_other:
            lineage.replaced.append(state)
        elif state.snapshot_ids if is_other else is_published:
            lineage.unknown.append(state)
        elif is_upgraded and state.is_earlier:
            # an earlier version recorded no checksums, so it may have published this state
            lineage.unknown.append(state)
        elif not is_other and state.metadata and state.version > get_version(current_path):
            lineage.pending.append(state)
        else:
            lineage.unpublished.append(state)
    return lineage


def list_ancestors(parents: Iterable[str], states: Mapping[str, State]) -> set[str]:
    """List the paths of a state's parents, and of the states that these came from, as far as the logs go back."""
    paths = set(parents)
    pending = [*paths]
    while pending:
        state = states.get(pending.pop())
        more = state.parents - paths if state else set()
        paths |= more
        pending += more
    return paths


def list_references(io: FileIO, current: TableMetadata, other_states: Iterable[State] = ()) -> set[str]:
    """List the paths of every file that snapshots, logs or statistics in the metadata refer to.

    What a removed list or manifest of other states had referred to is left out: nobody can read it by these. If one of
    the current state is gone (Retry), another upkeep was faster, and it is not known here what refers to the data now.
    """
    metadatas = [current, *(state.metadata for state in other_states if state.metadata)]
    paths: set[str] = set()
    for metadata in metadatas:
        paths |= {get_path(entry.metadata_file) for entry in metadata.metadata_log}
        paths |= {get_path(file.statistics_path) for file in (*metadata.statistics, *metadata.partition_statistics)}
    return paths.union(list_files(io, metadatas, needed=current))


def list_files(
    io: FileIO, metadatas: Iterable[TableMetadata], *, needed: TableMetadata | None = None, with_removed: bool = False
) -> list[str]:
    """List data (`with_removed`: all), then manifests, then lists of all snapshots; those of `needed` must be there."""
    lists: dict[str, None] = {}
    manifests: dict[str, None] = {}
    data: dict[str, None] = {}
    snapshots = [(snapshot, metadata is needed) for metadata in metadatas for snapshot in metadata.snapshots]
    for snapshot, is_needed in snapshots:
        if (path := get_path(snapshot.manifest_list)) in lists:
            continue
        lists[path] = None
        for manifest in _read(snapshot.manifest_list, partial(snapshot.manifests, io), is_needed):
            if (path := get_path(manifest.manifest_path)) in manifests:
                continue
            manifests[path] = None
            read_entries = partial(manifest.fetch_manifest_entry, io, discard_deleted=not with_removed)
            entries = _read(manifest.manifest_path, read_entries, is_needed)
            data |= {get_path(entry.data_file.file_path): None for entry in entries}
    return [*data, *manifests, *lists]


def _read(location: str, reader: Callable[[], list[T]], is_needed: bool) -> list[T]:
    """Read a list or manifest; nothing if it was removed before and is not needed."""
    try:
        return reader()
    except OSError as error:
        with suppress(OSError):  # a store has words of its own for a file that is gone, so it is asked
            system, path = open_store(location)
            if system.get_file_info(path).type is fs.FileType.NotFound and not is_needed:
                return []
        raise Retry(f"{location}, which leads to other files, cannot be read: {error}") from error
    except (ValueError, EOFError, LookupError, TypeError, AssertionError, zlib.error) as error:
        raise BadInput(f"{location} is damaged, so the files that it refers to are unknown: {error!r}") from error
