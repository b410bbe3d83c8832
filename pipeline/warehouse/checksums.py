"""Checksums: size and SHA-256 of every file of a table, in small JSON files beside it (`<table>/checksums/`).

A commit computes those of the files it adds and writes them once it is published, so a metadata file that is recorded
here was published; one that is not may belong to a commit that lost its race or was killed. Each JSON file is named
for the SHA-256 of its own content. `maintain` records files that have none and merges the small JSON files.
"""

import hashlib
import json
import logging
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from pyarrow import fs
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table.update import AddSnapshotUpdate

from pipeline.warehouse.files import list_folder, open_store, path_of, version_of

log = logging.getLogger(__name__)

FOLDER = "checksums"
_MARK = f"{FOLDER}/began"  # an empty file that stays: every state published after it has a record
PART = 10_000  # files recorded in one JSON file
_CHUNK = 8 << 20  # bytes a request to an object store


class Checksum(NamedTuple):
    """Of one file."""

    size: int
    sha256: str


class Records(NamedTuple):
    """What the JSON files of a table hold.

    Attributes:
        checksums: by path.
        damaged: paths of JSON files that are damaged themselves.
        began_at: when the first record was written; None if there is none.
    """

    checksums: dict[str, Checksum]
    damaged: list[str]
    began_at: datetime | None


def compute(system: fs.FileSystem, path: str) -> Checksum:
    """Checksum of a file as it lies there."""
    digest, size = hashlib.sha256(), 0
    with system.open_input_stream(path) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return Checksum(size, digest.hexdigest())


@lru_cache(maxsize=1_000)
def _compute_added(location: str) -> Checksum:
    """Checksum of a file that a commit adds: a retry of the commit does not read it again."""
    return compute(*open_store(location))


def added(io: FileIO, updates: Iterable[Any]) -> dict[str, Checksum]:
    """Checksums of the manifest lists, manifests and data files that the updates of a commit add."""
    locations: list[str] = []
    for snapshot in (update.snapshot for update in updates if isinstance(update, AddSnapshotUpdate)):
        locations.append(snapshot.manifest_list)
        for manifest in snapshot.manifests(io):
            if manifest.added_snapshot_id == snapshot.snapshot_id:
                entries = manifest.fetch_manifest_entry(io)
                locations.append(manifest.manifest_path)
                locations += [e.data_file.file_path for e in entries if e.status == ManifestEntryStatus.ADDED]
    return {path_of(location): _compute_added(location) for location in locations}


def record(location: str, checksums: Mapping[str, Checksum]) -> None:
    """Write the checksums of files, by path, beside the table at `location`; whole or not at all."""
    system, root = open_store(location)
    system.create_dir(f"{root}/{FOLDER}")
    if system.get_file_info(f"{root}/{_MARK}").type is fs.FileType.NotFound:
        system.open_output_stream(f"{root}/{_MARK}").close()
    for part in _parts(checksums):
        content = _encode(root, part)
        path = f"{root}/{FOLDER}/{hashlib.sha256(content).hexdigest()}.json"
        is_local = isinstance(system, fs.LocalFileSystem)
        target = f"{path}.{uuid.uuid4().hex}.part" if is_local else path  # an object appears whole
        with system.open_output_stream(target) as stream:
            stream.write(content)
        if is_local:
            system.move(target, path)


def _parts(checksums: Mapping[str, Checksum]) -> Iterator[dict[str, Checksum]]:
    ordered = sorted(checksums.items())
    for start in range(0, len(ordered), PART):
        yield dict(ordered[start : start + PART])


def _encode(root: str, checksums: Mapping[str, Checksum]) -> bytes:
    """JSON with paths from the table's folder; those of files elsewhere, by another engine, begin with //."""
    below = f"{root}/"
    names = {path: path[len(below) :] if path.startswith(below) else f"//{path}" for path in checksums}
    return json.dumps({names[path]: checksum for path, checksum in checksums.items()}, indent=0).encode()


def _decode(root: str, content: bytes) -> dict[str, Checksum]:
    rows = json.loads(content).items()
    return {name[2:] if name.startswith("//") else f"{root}/{name}": Checksum(*row) for name, row in rows}


def read(location: str) -> Records:
    """All checksums of the table at `location`."""
    system, root = open_store(location)
    checksums: dict[str, Checksum] = {}
    damaged = []
    files = list_folder(system, f"{root}/{FOLDER}")
    for info in files:
        if info.path.endswith(".json"):
            entries = _read_one(system, root, info.path)
            damaged += [] if entries is not None else [info.path]
            checksums.update(entries or {})
    return Records(checksums, damaged, min((info.mtime for info in files), default=None))


def _read_one(system: fs.FileSystem, root: str, path: str) -> dict[str, Checksum] | None:
    """Its entries; None if its content is not what it was named for, empty if it was merged meanwhile."""
    try:
        with system.open_input_stream(path) as stream:
            content = stream.read()
    except FileNotFoundError:
        return {}
    is_whole = hashlib.sha256(content).hexdigest() == path.rpartition("/")[2].removesuffix(".json")
    return _decode(root, content) if is_whole else None


def merge(location: str, existing: Collection[str], before: datetime) -> int:
    """Merge the JSON files older than `before`, without the files that are no longer there; return how many went.

    Records of metadata files stay as long as a state of their version or an older one is there: `lineage` needs them.

    Args:
        location: of the table.
        existing: paths below the table's data and metadata that are there; listed after the commits of `before`.
        before: younger JSON files stay as they are.
    """
    system, root = open_store(location)
    files = list_folder(system, f"{root}/{FOLDER}")
    old = [info for info in files if info.mtime < before and info.path != f"{root}/{_MARK}"]
    merged: dict[str, Checksum] = {}
    replaced = []
    oldest = min((version_of(path) for path in existing if version_of(path) >= 0), default=0)
    for info in old:
        entries = _read_one(system, root, info.path) if info.path.endswith(".json") else {}  # else of a killed write
        if entries is not None:  # a damaged one stays for `check` to name
            replaced.append(info.path)
            merged |= {
                path: checksum for path, checksum in entries.items()
                if path in existing or not path.startswith(f"{root}/") or version_of(path) >= oldest
            }  # fmt: skip
    names = {f"{root}/{FOLDER}/{hashlib.sha256(_encode(root, p)).hexdigest()}.json" for p in _parts(merged)}
    removed = [path for path in replaced if path not in names]
    if removed:
        record(location, merged)  # before the others go: a kill in between leaves both
    for path in removed:
        if system.get_file_info(path).type is fs.FileType.File:  # another upkeep was faster
            system.delete_file(path)
    return len(removed)
