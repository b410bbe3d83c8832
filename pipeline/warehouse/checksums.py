"""Checksums: size and SHA-256 of every file of a table, in JSON files beside it, each named for its own SHA-256.

A commit writes those of the files it adds once it is published: a metadata file that is recorded here was published.
"""

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from pyarrow import fs
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table.update import AddSnapshotUpdate

from pipeline.warehouse.files import get_path, get_version, is_file, list_folder, list_table, open_store, store_time

FOLDER = "checksums"
_MARK = f"{FOLDER}/began"  # an empty file that stays: every state published after it has a record
PART = 10_000  # files recorded in one JSON file
_CHUNK = 8 << 20  # bytes a request to an object store


class Checksum(NamedTuple):
    """Of one file."""

    size: int
    sha256: str


class Records(NamedTuple):
    """What the JSON files of a table hold."""

    checksums: dict[str, Checksum]  # by path
    damaged: list[str]  # paths of JSON files that are damaged themselves
    first_at: datetime | None  # when the first record was written


def compute(system: fs.FileSystem, path: str) -> Checksum:
    """Compute the checksum of a file as it lies there."""
    digest, size = hashlib.sha256(), 0
    with system.open_input_stream(path) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return Checksum(size, digest.hexdigest())


@lru_cache(maxsize=1_000)
def _compute_once(location: str) -> Checksum:
    """Compute the checksum of a file that a commit adds: a retry of the commit does not read it again."""
    return compute(*open_store(location))


def compute_added(io: FileIO, updates: Iterable[Any]) -> dict[str, Checksum]:
    """Compute the checksums of the manifest lists, manifests and data files that the updates of a commit add."""
    locations: list[str] = []
    for snapshot in (update.snapshot for update in updates if isinstance(update, AddSnapshotUpdate)):
        locations.append(snapshot.manifest_list)
        for manifest in snapshot.manifests(io):
            if manifest.added_snapshot_id == snapshot.snapshot_id:
                entries = manifest.fetch_manifest_entry(io)
                locations.append(manifest.manifest_path)
                locations += [e.data_file.file_path for e in entries if e.status == ManifestEntryStatus.ADDED]
    return {get_path(location): _compute_once(location) for location in locations}


def record(location: str, checksums: Mapping[str, Checksum]) -> None:
    """Write the checksums of files, by path, beside the table at `location`; whole or not at all."""
    system, root = open_store(location)
    system.create_dir(f"{root}/{FOLDER}")
    if not is_file(system, f"{root}/{_MARK}"):
        system.open_output_stream(f"{root}/{_MARK}").close()
    is_local = isinstance(system, fs.LocalFileSystem)
    for path, content in _encode(root, checksums):
        target = f"{path}.{uuid.uuid4().hex}.part" if is_local else path  # an object appears whole
        with system.open_output_stream(target) as stream:
            stream.write(content)
        if is_local:
            system.move(target, path)


def _encode(root: str, checksums: Mapping[str, Checksum]) -> Iterator[tuple[str, bytes]]:
    """Make JSON files, path and content, with paths from the table's folder; // before those of files elsewhere."""
    rows = sorted(checksums.items())
    for start in range(0, len(rows), PART):
        part = {
            path.removeprefix(f"{root}/") if path.startswith(f"{root}/") else f"//{path}": checksum
            for path, checksum in rows[start : start + PART]
        }
        content = json.dumps(part, indent=0).encode()
        yield f"{root}/{FOLDER}/{hashlib.sha256(content).hexdigest()}.json", content


def read(location: str) -> Records:
    """Read all checksums of the table at `location`."""
    system, root = open_store(location)
    files = list_folder(system, f"{root}/{FOLDER}")
    records = Records({}, [], min((info.mtime for info in files), default=None))
    for info in files:
        entries = _read_entries(system, root, info.path)
        if entries is None:
            records.damaged.append(info.path)
        records.checksums.update(entries or {})
    return records


def _read_entries(system: fs.FileSystem, root: str, path: str) -> dict[str, Checksum] | None:
    """Read a JSON file; None if its content is not what it was named for, empty if it was merged meanwhile."""
    if not path.endswith(".json"):  # the mark, or of a killed write
        return {}
    try:
        with system.open_input_stream(path) as stream:
            content = stream.read()
    except FileNotFoundError:
        return {}
    if hashlib.sha256(content).hexdigest() != path.rpartition("/")[2].removesuffix(".json"):
        return None
    rows = json.loads(content).items()
    return {name[2:] if name.startswith("//") else f"{root}/{name}": Checksum(*row) for name, row in rows}


def merge(location: str, grace: timedelta) -> None:
    """Merge the JSON files older than `grace`, without the files that are no longer there.

    Records of metadata files stay as long as a state of their version or an older one is there: `lineage` needs them.
    """
    system, root = open_store(location)
    before = store_time(system, f"{root}/metadata") - grace
    existing = {info.path for info in list_table(system, root)}  # after the commits before that
    merged: dict[str, Checksum] = {}
    replaced = []
    oldest = min((get_version(path) for path in existing if get_version(path) >= 0), default=0)
    for info in list_folder(system, f"{root}/{FOLDER}"):
        if info.mtime >= before or info.path == f"{root}/{_MARK}":
            continue
        entries = _read_entries(system, root, info.path)
        if entries is None:  # damaged; it stays for `check` to name
            continue
        replaced.append(info.path)
        merged |= {
            path: checksum
            for path, checksum in entries.items()
            if path in existing or not path.startswith(f"{root}/") or get_version(path) >= oldest
        }
    names = {path for path, _ in _encode(root, merged)}
    removed = [path for path in replaced if path not in names]
    if removed:
        record(location, merged)  # before the others go: a kill in between leaves both
    for path in removed:
        if is_file(system, path):  # else another upkeep was faster
            system.delete_file(path)
