"""The check: whether every file that a table's metadata names is there, whole, readable, unchanged, and adds up."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, TypeVar
from urllib.parse import unquote_plus
from zlib import crc32

import pyarrow.parquet as pq
from pyarrow import fs
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, read_manifest_list
from pyiceberg.table import Table

from pipeline.errors import BadInput
from pipeline.warehouse import catalog, checksums
from pipeline.warehouse.files import list_table, open_store, path_of

T = TypeVar("T")

METADATA_ONLY = 1 << 40  # weeks in which the data files are due: their checksums are not compared now
_REPLACED = " (in a replaced state: no row of the table is concerned, and it goes when the state expires)"
_SHOWN = 5  # damaged files in a message


class Checked(NamedTuple):
    """What a table consists of, and what is wrong with it.

    Attributes:
        rows, files, bytes, snapshots, manifests, metadata_files: counts; the first three of the current snapshot.
        files_verified: files whose checksum was compared.
        problems: `partition, file: what`, empty for a sound table.
        other_problems: the same of replaced states and of the checksums themselves: no present row is concerned.
        unrecorded: paths of files that have no checksum.
    """

    rows: int = 0
    files: int = 0
    bytes: int = 0
    snapshots: int = 0
    manifests: int = 0
    metadata_files: int = 0
    files_verified: int = 0
    problems: Sequence[str] = ()
    other_problems: Sequence[str] = ()
    unrecorded: Sequence[str] = ()


def check(name: str, *, footers: bool = False, weeks: int = 0) -> Checked:
    """Look whether everything the metadata names is there, in its size, readable, and adds up.

    Args:
        name: of the table.
        footers: also open each data file of the current snapshot and count its rows.
        weeks: also compare checksums: those of all metadata, and of the data files that are due this week, so that
            all are in so many weeks. 1 compares all, 0 none.
    """
    location = catalog.registered().get(name)
    inspection = _Inspection(catalog.table_location(name) if location is None else location, weeks)
    if location is not None:  # before it is parsed: a changed byte may parse
        inspection.read("metadata", location, None, list)
    try:
        handle = catalog.table(name)
    except BadInput as error:
        return Checked(problems=inspection.problems or [f"metadata: {error}"])
    if inspection.problems and location != handle.metadata_location:
        return check(name, footers=footers, weeks=weeks)  # an erasure replaced the state and removed its file
    checked = _check(handle, inspection, footers)
    is_damaged = bool(checked.problems or checked.other_problems)
    if is_damaged and catalog.table(name).metadata_location != handle.metadata_location:
        return check(name, footers=footers, weeks=weeks)  # what an erasure removed meanwhile is not missing
    return checked


def examine(handle: Table) -> Sequence[str]:
    """What is wrong with one state of a table: its metadata unchanged, all files of its current snapshot there."""
    inspection = _Inspection(handle.metadata_location, METADATA_ONLY)
    inspection.read("metadata", handle.metadata_location, None, list)
    return _check(handle, inspection, footers=False).problems


def describe(name: str, problems: Sequence[str]) -> str:
    """The first problems, and what to do about them: which slices to write again, or which state to go back to."""
    shown = "; ".join(problems[:_SHOWN]) + (f" and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else "")
    places = sorted({problem.partition(", ")[0] for problem in problems if not problem.endswith(_REPLACED)})
    slices = [unquote_plus(place).replace("/", " ") for place in places if "=" in place or place == "all"]
    advice = []
    if slices:
        more = f" and {len(slices) - _SHOWN} more" if len(slices) > _SHOWN else ""
        advice.append(f"import, collect or build these slices of {name} again: {', '.join(slices[:_SHOWN])}{more}")
    if {"metadata", "manifest", "manifest list"}.intersection(places):
        advice.append(
            "bring the file back from a copy, or return to the newest whole state by `undertone recover-catalog "
            "--force`, and import again what was written since"
        )
    if "checksums" in places:
        advice.append("remove that file, and `undertone maintain` computes its checksums again")
    return f"{shown}. What to do: {'; '.join(advice)}" if advice else shown


class _Inspection:
    """Reads the files of a table, each looked at before, and keeps what is wrong with them."""

    def __init__(self, metadata_location: str, weeks: int) -> None:
        self.table_location = metadata_location.rpartition("/metadata/")[0] or metadata_location
        self.system, self.root = open_store(self.table_location)
        self.sizes = {info.path: info.size for info in list_table(self.system, self.root)}
        self.weeks = weeks
        records = checksums.read(self.table_location) if weeks else checksums.Records({}, [], None)
        self.checksums = records.checksums
        self.problems: list[str] = []
        self.other_problems = [f"checksums, {path}: its content is not what it was" for path in records.damaged]
        self.unrecorded: dict[str, None] = {}
        self.verified: set[str] = set()

    def read(
        self, place: str, location: str, size: int | None, reader: Callable[[], Iterable[T]], *, is_current: bool = True
    ) -> list[T]:
        """What the reader gives; nothing if the file is damaged."""
        path = path_of(location)
        if path not in self.sizes:  # some files may lie elsewhere
            info = self.system.get_file_info(path)
            self.sizes[path] = info.size if info.type is fs.FileType.File else None
        problem = self._compare(path, size)
        try:
            if problem is None:
                return list(reader())
        except Exception as why:  # noqa: BLE001 - a damaged file makes its reader say anything
            problem = f"not readable: {why}"
        if is_current:
            self.problems.append(f"{place}, {path}: {problem}")
        else:
            self.other_problems.append(f"{place}, {path}: {problem}{_REPLACED}")
        return []

    def _compare(self, path: str, size: int | None) -> str | None:
        """What is wrong with a file's size or checksum; None if nothing is."""
        actual, expected = self.sizes[path], self.checksums.get(path)
        if actual is None:
            return "missing"
        if size is None and expected is not None:
            size = expected.size
        if size not in (None, actual):
            return f"{actual} bytes, not the {size} recorded"
        if self.weeks and expected is None:
            self.unrecorded[path] = None
        elif expected is not None and path not in self.verified and self._is_due(path):
            self.verified.add(path)
            if (found := checksums.compute(self.system, path)) != expected:
                return f"bytes have changed: SHA-256 {found.sha256[:16]}…, not the {expected.sha256[:16]}… recorded"
        return None

    def _is_due(self, path: str) -> bool:
        week = datetime.now(UTC).date().toordinal() // 7
        return not path.startswith(f"{self.root}/data/") or crc32(path.encode()) % self.weeks == week % self.weeks


def _check(handle: Table, inspection: _Inspection, footers: bool) -> Checked:
    current, metadata, io = handle.current_snapshot(), handle.metadata, handle.io
    seen: set[str] = set()
    live: list[DataFile] = []
    manifests = 0
    # the current snapshot first, so that its manifests are not taken for seen
    for snapshot in sorted(metadata.snapshots, key=lambda s: s != current):
        is_current, at = snapshot == current, snapshot.manifest_list
        reader = partial(read_manifest_list, io.new_input(at))
        for manifest in inspection.read("manifest list", at, None, reader, is_current=is_current):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            manifests += is_current
            at, size = manifest.manifest_path, manifest.manifest_length
            entries = partial(manifest.fetch_manifest_entry, io)
            for entry in inspection.read("manifest", at, size, entries, is_current=is_current):
                file = entry.data_file
                opened = partial(_rows_of, inspection.system, file) if footers and is_current else list
                place, size = partition_of(handle, file), file.file_size_in_bytes
                inspection.read(place, file.file_path, size, opened, is_current=is_current)
                if is_current:
                    live.append(file)
    for earlier in metadata.metadata_log if inspection.weeks else ():
        if path_of(earlier.metadata_file) in inspection.sizes:  # older ones are removed by and by
            inspection.read("metadata", earlier.metadata_file, None, list, is_current=False)
    rows = sum(file.record_count for file in live if file.content is DataFileContent.DATA)
    told = current.summary["total-records"] if current and current.summary else None
    if not inspection.problems and told is not None and int(told) != rows:
        inspection.problems.append(
            f"all, {path_of(handle.metadata_location)}: {told} rows by the snapshot, {rows} by its manifests"
        )
    return Checked(
        rows=rows, files=len(live), bytes=sum(file.file_size_in_bytes for file in live),
        snapshots=len(metadata.snapshots), manifests=manifests,
        metadata_files=sum(path.endswith(".metadata.json") for path in inspection.sizes),
        files_verified=len(inspection.verified), problems=inspection.problems,
        other_problems=inspection.other_problems, unrecorded=list(inspection.unrecorded),
    )  # fmt: skip


def _rows_of(system: fs.FileSystem, file: DataFile) -> list[int]:
    """The rows that a data file's footer tells, which must be those recorded."""
    if file.file_format != FileFormat.PARQUET:
        return []
    rows = pq.read_metadata(path_of(file.file_path), filesystem=system).num_rows
    if rows != file.record_count:
        raise ValueError(f"{rows} rows, not the {file.record_count} recorded")
    return [rows]


def partition_of(handle: Table, file: DataFile) -> str:
    """The partition of a data file, as in its path; `all` for a table that has none."""
    spec = handle.specs()[file.spec_id]
    return spec.partition_to_path(file.partition, handle.schema()) if spec.fields else "all"
