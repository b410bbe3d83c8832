"""The check: whether every file that a table's metadata names is there, whole, readable, unchanged, and adds up."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar
from urllib.parse import unquote_plus
from zlib import crc32

import pyarrow.parquet as pq
from pyarrow import fs
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, read_manifest_list
from pyiceberg.table import Table

from pipeline.errors import BadInput
from pipeline.warehouse import catalog, checksums
from pipeline.warehouse.files import get_path, list_table, open_store

T = TypeVar("T")
METADATA_ONLY = 1 << 40  # weeks in which the data files are due: their checksums are not compared now
_REPLACED = " (in a replaced state: no row of the table is concerned, and it goes when the state expires)"
_SHOWN = 5  # damaged files in a message


class Checked:
    """What a table consists of, and what is wrong with it.

    Attributes:
        rows, files, bytes: of the current snapshot.
        problems: `partition, file: what`, empty for a sound table.
        other_problems: the same of replaced states and of the checksums themselves: no present row is concerned.
        unrecorded: paths of files that have no checksum.
        verified: paths of files whose checksum was compared.
    """

    def __init__(self, metadata_location: str, weeks: int) -> None:
        location = metadata_location.rpartition("/metadata/")[0] or metadata_location
        self.system, self.root = open_store(location)
        self.sizes = {info.path: info.size for info in list_table(self.system, self.root)}
        self.weeks = weeks
        self.rows = self.files = self.bytes = self.snapshots = self.manifests = 0
        self.metadata_files = sum(path.endswith(".metadata.json") for path in self.sizes)
        records = checksums.read(location) if weeks else checksums.Records({}, [], None)
        self.checksums = records.checksums
        self.problems: list[str] = []
        self.other_problems = [f"checksums, {path}: its content is not what it was" for path in records.damaged]
        self.unrecorded: dict[str, None] = {}
        self.verified: set[str] = set()

    def read(
        self, place: str, location: str, size: int | None, reader: Callable[[], Iterable[T]], *, is_current: bool = True
    ) -> list[T]:
        """Compare a file with what is recorded and read it; nothing, and a problem, if it is damaged."""
        path = get_path(location)
        if path not in self.sizes:  # some files may lie elsewhere
            info = self.system.get_file_info(path)
            self.sizes[path] = info.size if info.type is fs.FileType.File else None
        problem = self._compare(path, size)
        try:
            if problem is None:
                return list(reader())
        except Exception as error:  # noqa: BLE001 - a damaged file makes its reader raise anything
            problem = f"not readable: {error}"
        problems, end = (self.problems, "") if is_current else (self.other_problems, _REPLACED)
        problems.append(f"{place}, {path}: {problem}{end}")
        return []

    def _compare(self, path: str, size: int | None) -> str | None:
        actual, expected = self.sizes[path], self.checksums.get(path)
        if actual is None:
            return "missing"
        if size is None and expected is not None:
            size = expected.size
        if size not in (None, actual):
            return f"{actual} bytes, not the {size} recorded"
        if self.weeks and expected is None:
            self.unrecorded[path] = None
        week = datetime.now(UTC).date().toordinal() // 7
        is_due = not path.startswith(f"{self.root}/data/") or not (crc32(path.encode()) - week) % max(self.weeks, 1)
        if expected is not None and is_due and path not in self.verified:
            self.verified.add(path)
            if (current := checksums.compute(self.system, path)) != expected:
                return f"bytes have changed: SHA-256 {current.sha256[:16]}…, not the {expected.sha256[:16]}… recorded"
        return None

    def read_table(self, handle: Table, footers: bool) -> None:
        """Read all files of a state of the table."""
        current, metadata = handle.current_snapshot(), handle.metadata
        self.snapshots = len(metadata.snapshots)
        manifest_paths: set[str] = set()
        # the current snapshot first, so that its manifests are not passed over
        for snapshot in sorted(metadata.snapshots, key=lambda s: s != current):
            is_current = snapshot == current
            reader = partial(read_manifest_list, handle.io.new_input(snapshot.manifest_list))
            for manifest in self.read("manifest list", snapshot.manifest_list, None, reader, is_current=is_current):
                path, size = manifest.manifest_path, manifest.manifest_length
                if path in manifest_paths:
                    continue
                manifest_paths.add(path)
                self.manifests += is_current
                entries = partial(manifest.fetch_manifest_entry, handle.io)
                for entry in self.read("manifest", path, size, entries, is_current=is_current):
                    file, place = entry.data_file, name_partition(handle, entry.data_file)
                    rows = partial(_check_rows, self.system, file) if footers and is_current else list
                    self.read(place, file.file_path, file.file_size_in_bytes, rows, is_current=is_current)
                    if is_current:
                        self.files += 1
                        self.bytes += file.file_size_in_bytes
                        self.rows += file.record_count if file.content is DataFileContent.DATA else 0
        for earlier in metadata.metadata_log if self.weeks else ():
            if get_path(earlier.metadata_file) in self.sizes:  # older ones are removed by and by
                self.read("metadata", earlier.metadata_file, None, list, is_current=False)
        total = current.summary["total-records"] if current and current.summary else None
        if not self.problems and total is not None and int(total) != self.rows:
            sums = f"{total} rows by the snapshot, {self.rows} by its manifests"
            self.problems.append(f"all, {get_path(handle.metadata_location)}: {sums}")


def check(name: str, *, footers: bool = False, weeks: int = 0) -> Checked:
    """Check that everything the metadata names is there, in its size, readable, and adds up.

    `footers` also opens each data file of the current snapshot and counts its rows. With `weeks`, checksums are
    compared: those of all metadata, and of the data files that are due this week, so that all are in so many weeks.
    """
    location = catalog.list_registered().get(name)
    checked = Checked(location or catalog.locate_table(name), weeks)
    if location is not None:  # before it is parsed: a changed byte may parse
        checked.read("metadata", location, None, list)
    try:
        handle = catalog.load_table(name)
    except BadInput as error:
        checked.problems = checked.problems or [f"metadata: {error}"]
        return checked
    if checked.problems and location != handle.metadata_location:
        return check(name, footers=footers, weeks=weeks)  # an erasure replaced the state and removed its file
    checked.read_table(handle, footers)
    is_damaged = bool(checked.problems or checked.other_problems)
    if is_damaged and catalog.load_table(name).metadata_location != handle.metadata_location:
        return check(name, footers=footers, weeks=weeks)  # what an erasure removed meanwhile is not missing
    return checked


def examine(handle: Table) -> Sequence[str]:
    """List what is wrong with one state of a table: its metadata unchanged, all files of its current snapshot there."""
    checked = Checked(handle.metadata_location, METADATA_ONLY)
    checked.read("metadata", handle.metadata_location, None, list)
    checked.read_table(handle, footers=False)
    return checked.problems


def describe(name: str, problems: Sequence[str]) -> str:
    """Describe the first problems, and the remedy: which slices to write again, or which state to go back to."""
    places = sorted({problem.partition(", ")[0] for problem in problems if not problem.endswith(_REPLACED)})
    slices = [unquote_plus(place).replace("/", " ") for place in places if "=" in place or place == "all"]
    advice = []
    if slices:
        advice.append(f"import, collect or build these slices of {name} again: {_join_first(slices, ', ')}")
    if {"metadata", "manifest", "manifest list"}.intersection(places):
        state = "the newest whole state by `undertone recover-catalog --force`"
        advice.append(f"restore the file from a copy, or return to {state}, and import again what was written since")
    if "checksums" in places:
        advice.append("remove that file, and `undertone maintain` computes its checksums again")
    summary = _join_first(problems, "; ")
    return f"{summary}. What to do: {'; '.join(advice)}" if advice else summary


def _join_first(texts: Sequence[str], separator: str) -> str:
    return separator.join(texts[:_SHOWN]) + (f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else "")


def _check_rows(system: fs.FileSystem, file: DataFile) -> list[int]:
    if file.file_format != FileFormat.PARQUET:
        return []
    rows = pq.read_metadata(get_path(file.file_path), filesystem=system).num_rows
    if rows != file.record_count:
        raise ValueError(f"{rows} rows, not the {file.record_count} recorded")
    return [rows]


def name_partition(handle: Table, file: DataFile) -> str:
    """The partition of a data file, as in its path; `all` for a table that has none."""
    spec = handle.specs()[file.spec_id]
    return spec.partition_to_path(file.partition, handle.schema()) if spec.fields else "all"
