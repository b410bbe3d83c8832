"""The states of a table that its folder holds: which the catalog's came from, and which it does not know.

Every commit writes a metadata file, then names it in the catalog. So the folder may also hold files that were never
published (of a commit that lost its race or was killed), that are newer than what the catalog names (a catalog brought
back from an old copy), or of another table (a catalog that was lost and made anew over the same folder).
"""

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import NamedTuple

from pyarrow import fs
from pyiceberg.exceptions import ValidationError as InvalidMetadata
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntry, ManifestFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from pipeline.errors import BadInput, Retry
from pipeline.warehouse import checksums
from pipeline.warehouse.files import open_store, path_of, version_of


class State(NamedTuple):
    """A metadata file.

    Attributes:
        path: in its file system.
        written_at: by the store's clock.
        metadata: its content; None if it cannot be read.
        is_published: it has a checksum, which a commit records once it is published.
        is_earlier: it is older than all records, so an earlier version may have published it.
        rivals: paths of the other states of its version that have a checksum.
    """

    path: str
    written_at: datetime
    metadata: TableMetadata | None
    is_published: bool
    is_earlier: bool
    rivals: frozenset[str]

    @property
    def version(self) -> int:
        """Number of commits up to this state, which begins its file's name."""
        return version_of(self.path)

    @property
    def parents(self) -> set[str]:
        """Paths of the states it came from, as far as its log goes back."""
        return {path_of(entry.metadata_file) for entry in self.metadata.metadata_log} if self.metadata else set()

    @property
    def snapshot_ids(self) -> set[int]:
        return {snapshot.snapshot_id for snapshot in self.metadata.snapshots} if self.metadata else set()


class Lineage(NamedTuple):
    """The states beside the current one, by what they are to it.

    Attributes:
        replaced: it came from these.
        pending: unpublished and newer: of a commit in flight, or of one that was killed before it was published.
        unpublished: never published, and never will be: another commit took the place.
        unknown: published states that it did not come from: of this table (the catalog is behind, or was), or of
            another table in the same folder.
    """

    replaced: list[State]
    pending: list[State]
    unpublished: list[State]
    unknown: list[State]


def read_states(system: fs.FileSystem, listed: Iterable[fs.FileInfo], io: FileIO, head: str) -> list[State]:
    """The metadata files among those listed, oldest first; one that went meanwhile is left out.

    Args:
        system: their file system.
        listed: files of a table.
        io: reads them.
        head: what makes a path an address, such as `s3://`.
    """
    files = sorted((info for info in listed if info.path.endswith(".metadata.json")), key=lambda info: info.mtime)
    if not files:
        return []
    records = checksums.read(head + files[0].path.rpartition("/metadata/")[0])
    published: defaultdict[int, set[str]] = defaultdict(set)
    for path in records.checksums:
        published[version_of(path)].add(path)
    states = []
    for info in files:
        try:
            metadata = FromInputFile.table_metadata(io.new_input(head + info.path))
        except (InvalidMetadata, ValueError):
            metadata = None
        except OSError as error:
            if system.get_file_info(info.path).type is fs.FileType.NotFound:
                continue
            raise Retry(f"{info.path} cannot be read: {error}") from error
        is_earlier = records.began_at is None or info.mtime < records.began_at
        rivals = frozenset(published[version_of(info.path)] - {info.path})
        states.append(State(info.path, info.mtime, metadata, info.path in records.checksums, is_earlier, rivals))
    return states


def sort_states(current: Table, states: Iterable[State]) -> Lineage:
    """Sort all states of a table's folder by what they are to the current one."""
    by_path = {state.path: state for state in states}
    current_path = path_of(current.metadata_location)
    replaced = {path_of(entry.metadata_file) for entry in current.metadata.metadata_log}
    pending = [by_path[path] for path in replaced if path in by_path]
    while pending:  # their logs go further back
        more = pending.pop().parents - replaced - {current_path}
        replaced |= more
        pending += [by_path[path] for path in more if path in by_path]
    lineage = Lineage([], [], [], [])
    parents = {path for state in by_path.values() for path in state.parents}  # only a published state has successors
    is_upgraded = any(not state.is_published for state in by_path.values() if state.path in replaced)
    for state in by_path.values():
        is_other = state.metadata is not None and state.metadata.table_uuid != current.metadata.table_uuid
        if state.path == current_path:
            continue
        is_published = state.is_published or state.path in parents
        is_parent = state.path in replaced or (is_published and _is_only(state, current_path, replaced))
        if is_parent and not is_other:
            lineage.replaced.append(state)
        elif state.snapshot_ids if is_other else is_published:
            lineage.unknown.append(state)
        elif is_upgraded and state.is_earlier:
            # an earlier version recorded no checksums, so it may have published this state
            lineage.unknown.append(state)
        elif not is_other and state.metadata and state.version > version_of(current_path):
            lineage.pending.append(state)
        else:
            lineage.unpublished.append(state)
    return lineage


def _is_only(state: State, current_path: str, replaced: Collection[str]) -> bool:
    """Check if no other state of its version was published: then the current one came from it.

    The logs do not go back to it where a commit was killed before it deleted the states that fell off its log.
    """
    versions = {version_of(path) for path in replaced if path != state.path}
    return not state.rivals and state.version not in versions and state.version < version_of(current_path)


def head_of(location: str) -> str:
    """What makes a path of the location's file system an address."""
    return location.partition("://")[0] + "://" if "://" in location else ""


def referenced(io: FileIO, current: TableMetadata, others: Iterable[State] = ()) -> set[str]:
    """Paths of every file that snapshots, logs or statistics in the metadata refer to.

    What a list or a manifest of other states that is gone had referred to is left out: nobody can read it by these.

    Raises:
        Retry: a list or manifest of the current state is gone: another upkeep was faster, and what it is now that
            refers to the data files is not known here.
    """
    metadatas = [current, *(state.metadata for state in others if state.metadata)]
    paths: set[str] = set()
    for metadata in metadatas:
        paths |= {path_of(entry.metadata_file) for entry in metadata.metadata_log}
        paths |= {path_of(file.statistics_path) for file in (*metadata.statistics, *metadata.partition_statistics)}
        for snapshot in metadata.snapshots:
            path = path_of(snapshot.manifest_list)
            if path in paths:
                continue
            paths.add(path)
            for manifest in read_manifests(io, snapshot, is_needed=metadata is current):
                if (path := path_of(manifest.manifest_path)) not in paths:
                    paths.add(path)
                    paths |= set(read_entries(io, manifest, is_needed=metadata is current))
    return paths


def read_manifests(io: FileIO, snapshot: Snapshot, *, is_needed: bool = False) -> list[ManifestFile]:
    """The manifests of a snapshot; none if its list is gone, or Retry if it is needed."""
    manifests: list[ManifestFile] = []
    with ignore_missing(snapshot.manifest_list, is_needed=is_needed):
        manifests += snapshot.manifests(io)
    return manifests


def read_entries(
    io: FileIO, manifest: ManifestFile, *, with_removed: bool = False, is_needed: bool = False
) -> list[str]:
    """Paths of the data files that a manifest adds, keeps or, if asked for, removes; none, or Retry, if it is gone."""
    entries: list[ManifestEntry] = []
    with ignore_missing(manifest.manifest_path, is_needed=is_needed):
        entries += manifest.fetch_manifest_entry(io, discard_deleted=not with_removed)
    return [path_of(entry.data_file.file_path) for entry in entries]


@contextmanager
def ignore_missing(location: str, *, is_needed: bool = False) -> Iterator[None]:
    """Pass over a file that went before; a store has words of its own for that, so it is asked.

    Raises:
        Retry: the store has another fault, or the file is needed: of what the file leads to, nothing is known.
        BadInput: the file is damaged; the same.
    """
    try:
        yield
    except OSError as error:
        with suppress(OSError):
            system, path = open_store(location)
            if system.get_file_info(path).type is fs.FileType.NotFound and not is_needed:
                return
        raise Retry(f"{location} cannot be read, and tells where more is: {error}") from error
    except (ValueError, EOFError, LookupError, TypeError, AssertionError, zlib.error) as error:
        raise BadInput(f"{location} is damaged, so nobody knows which files it refers to: {error!r}") from error
