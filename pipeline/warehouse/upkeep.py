"""Upkeep: checking what the metadata names, compacting small files, expiring old snapshots, sweeping orphans.

pyiceberg forgets snapshots but leaves the bytes on disk; the sweeper here removes them. Nothing of a write in flight
goes: files are listed before the references are read, a file younger than the grace time by the store's own clock is
left alone, and a snapshot expires only a week after it stopped being the current one. A damaged table is not touched.
"""

import logging
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue, And, EqualTo
from pyiceberg.io.pyarrow import (
    ArrowScan,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, read_manifest_list
from pyiceberg.table import FileScanTask, Table
from pyiceberg.transforms import IdentityTransform

from pipeline import settings
from pipeline.errors import BadInput, Retry
from pipeline.tables import TABLES
from pipeline.warehouse import catalog, scratch
from pipeline.warehouse.write import ROW_GROUP

log = logging.getLogger(__name__)

T = TypeVar("T")

GRACE = timedelta(hours=24)  # longer than the longest task, or files of a write in flight would go
KEEP = timedelta(days=7)  # longer than the longest run, whose shards read a pinned snapshot
MANY = {"snapshots": 10_000, "manifests": 1_000, "metadata_files": 100}  # each scan reads the first two
_SHOWN = 5  # damaged files in a message


class Limits(NamedTuple):
    """How far upkeep goes.

    Attributes:
        keep: how long a snapshot stays after another took its place.
        grace: age under which no file is removed.
        quiet: how long a partition rests before it is compacted, so that its writers are not disturbed.
        files: small files that a partition may have; with more it is compacted.
        target: bytes of a compacted file; a file under a quarter of that is small.
        partitions: compacted in one run at most.
        budget: bytes rewritten in one run at most.
        manifests: small manifests that a table may have; with more they are merged.
        footers: whether the check opens every data file, not only looks whether it is there in its size.
    """

    keep: timedelta = KEEP
    grace: timedelta = GRACE
    quiet: timedelta = timedelta(hours=1)
    files: int = 4
    target: int = 256 << 20
    partitions: int = 1_000
    budget: int = 20 << 30
    manifests: int = 100
    footers: bool = True


class Checked(NamedTuple):
    """What a table consists of, and what is wrong with it."""

    rows: int
    files: int
    bytes: int
    snapshots: int
    manifests: int
    metadata_files: int
    problems: list[str]  # `partition, file: what`, empty for a sound table


class Compacted(NamedTuple):
    """What a compaction came to; a partition is lost when its writer was faster, and is done the next time."""

    partitions: int
    files: int
    lost: int


def refuse_hasty(limits: Limits) -> None:
    """BadInput for limits under which files of a write in flight or snapshots of a run could go."""
    for name, given, least in (("grace", limits.grace, GRACE), ("keep", limits.keep, KEEP)):
        if given < least:
            raise BadInput(
                f"{name} of {given} is shorter than {least}, the longest that a task or run may last: what it still "
                "needs would be removed; force it only while nothing else runs"
            )


def maintain(name: str, limits: Limits = Limits(), *, dry_run: bool = False) -> dict[str, int]:  # noqa: B008
    """Check, compact, expire and sweep one table; each step is a commit or a deletion of its own.

    Args:
        name: of the table.
        limits: how far to go.
        dry_run: only check and count.

    Returns:
        Counts: rows, files, bytes, snapshots and manifests there are, and what was done.

    Raises:
        BadInput: something the metadata names is missing or damaged; then nothing is changed, as older snapshots
            may hold what is needed to mend it.
        Retry: another writer was faster than the expiry.
    """
    found = check(name, footers=limits.footers)
    if found.problems:
        more = f" and {len(found.problems) - _SHOWN} more" if len(found.problems) > _SHOWN else ""
        raise BadInput(f"{name} is damaged, nothing was changed: {'; '.join(found.problems[:_SHOWN])}{more}")
    compacted = Compacted(0, 0, 0) if dry_run else compact(name, limits)
    merged = 0 if dry_run else merge_manifests(name, limits.manifests)
    expired = len(_superseded(catalog.table(name), limits.keep)) if dry_run else expire(name, limits.keep)
    orphans = _orphans(name, limits.grace)
    system, _ = _opened(catalog.table(name).location())
    gone = orphans if dry_run else _removed(system, orphans)
    if not dry_run and (broken := check(name).problems):
        raise BadInput(f"{name} was damaged during its upkeep: {'; '.join(broken[:_SHOWN])}")
    for what, many in MANY.items():
        if getattr(found, what) > many:
            log.warning("%s has %d %s, more than %d", name, getattr(found, what), what, many)
    return {
        **{field: getattr(found, field) for field in Checked._fields if field != "problems"},
        "partitions_compacted": compacted.partitions, "files_compacted": compacted.files,
        "partitions_lost": compacted.lost, "manifests_merged": merged, "snapshots_expired": expired,
        "files_removed": len(gone), "bytes_freed": sum(info.size or 0 for info in gone),
    }  # fmt: skip


def written() -> list[str]:
    """The tables that have ever been written: those that need upkeep."""
    return [name for name in TABLES if catalog.snapshot(name) is not None]


def check(name: str, *, footers: bool = False) -> Checked:
    """Look whether everything the metadata names is there, in its size, readable, and adds up.

    Args:
        name: of the table.
        footers: also open each data file of the current snapshot and count its rows.
    """
    try:
        handle = catalog.table(name)
        found = _checked(handle, footers)
        if found.problems and catalog.table(name).metadata_location != handle.metadata_location:
            return _checked(catalog.table(name), footers)  # what an erasure removed meanwhile is not missing
    except FileNotFoundError as why:
        return Checked(0, 0, 0, 0, 0, 0, [f"metadata: the catalog names a file that is not there: {why}"])
    return found


def _checked(handle: Table, footers: bool) -> Checked:
    system, root = _opened(handle.location())
    sizes = {info.path: info.size for info in _listed(system, root)}
    problems: list[str] = []

    def read(where: str, location: str, size: int | None, reader: Callable[[], Iterable[T]]) -> list[T]:
        path = _path(location)
        if path not in sizes:  # some files may lie elsewhere
            info = system.get_file_info(path)
            sizes[path] = info.size if info.type is fs.FileType.File else None
        try:
            if sizes[path] is not None and size in (None, sizes[path]):
                return list(reader())
            what = "missing" if sizes[path] is None else f"{sizes[path]} bytes, not the {size} recorded"
        except Exception as why:  # noqa: BLE001 - a damaged file makes its reader say anything
            what = f"not readable: {why}"
        problems.append(f"{where}, {path}: {what}")
        return []

    current, metadata = handle.current_snapshot(), handle.metadata
    seen: set[str] = set()
    live: list[DataFile] = []
    manifests = 0
    # the current snapshot first, so that its manifests are not taken for seen
    for snapshot in sorted(metadata.snapshots, key=lambda s: s != current):
        at = snapshot.manifest_list
        for manifest in read("manifest list", at, None, partial(read_manifest_list, handle.io.new_input(at))):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            manifests += snapshot == current
            at, size = manifest.manifest_path, manifest.manifest_length
            for entry in read("manifest", at, size, partial(manifest.fetch_manifest_entry, handle.io)):
                file = entry.data_file
                opened = partial(_rows_of, system, file) if footers and snapshot == current else list
                read(_partition(handle, file), file.file_path, file.file_size_in_bytes, opened)
                if snapshot == current:
                    live.append(file)
    rows = sum(file.record_count for file in live if file.content is DataFileContent.DATA)
    told = current.summary["total-records"] if current and current.summary else None
    if not problems and told is not None and int(told) != rows:
        problems.append(f"all, {_path(handle.metadata_location)}: {told} rows by the snapshot, {rows} by its manifests")
    others = sum(path.endswith(".metadata.json") for path in sizes)
    size = sum(file.file_size_in_bytes for file in live)
    return Checked(rows, len(live), size, len(metadata.snapshots), manifests, others, problems)


def _rows_of(system: fs.FileSystem, file: DataFile) -> list[int]:
    """The rows that a data file's footer tells, which must be those recorded."""
    if file.file_format != FileFormat.PARQUET:
        return []
    rows = pq.read_metadata(_path(file.file_path), filesystem=system).num_rows
    if rows != file.record_count:
        raise ValueError(f"{rows} rows, not the {file.record_count} recorded")
    return [rows]


def _partition(handle: Table, file: DataFile) -> str:
    spec = handle.specs()[file.spec_id]
    return spec.partition_to_path(file.partition, handle.schema()) if spec.fields else "all"


def compact(name: str, limits: Limits = Limits()) -> Compacted:  # noqa: B008
    """Rewrite the small files of partitions that have many; large files stay as they are.

    A partition is one commit, and one small file is held in memory at a time. Where a writer was faster, the partition
    is left for the next time.
    """
    handle = catalog.table(name)
    partitions = files = lost = spent = 0
    for small in _crowded(handle, limits):
        bins = [
            one for one in _binned(small, limits.target, limits.budget - spent) if len(one) > 1
        ]  # a file alone gains nothing
        if partitions + lost >= limits.partitions or not bins:
            break
        spent += sum(file.file_size_in_bytes for one in bins for file in one)
        try:
            _replace_files(catalog.table(name), bins)
        except (CommitFailedException, ValidationException):
            log.info("%s: a writer was faster in %s; left for the next time", name, _partition(handle, small[0]))
            lost += 1
            continue
        partitions, files = partitions + 1, files + sum(map(len, bins))
    return Compacted(partitions, files, lost)


def _crowded(handle: Table, limits: Limits) -> list[list[DataFile]]:
    """Small files of each partition at rest that has more of them than it may; most files first."""
    current, now = handle.current_snapshot(), datetime.now(UTC)
    spec = handle.spec()
    if current is None or any(not isinstance(field.transform, IdentityTransform) for field in spec.fields):
        return []
    written_at = {s.snapshot_id: datetime.fromtimestamp(s.timestamp_ms / 1000, UTC) for s in handle.snapshots()}
    busy: set[Any] = set()
    small = defaultdict(list)
    for manifest in current.manifests(handle.io):
        if manifest.content is not ManifestContent.DATA:
            log.info(
                "%s has rows deleted beside the files by another engine; let that engine compact it", handle.name()
            )
            return []
        for entry in manifest.fetch_manifest_entry(handle.io):
            file = entry.data_file
            if file.spec_id != spec.spec_id or file.file_format != FileFormat.PARQUET:
                continue
            at = written_at.get(entry.snapshot_id or 0)
            if at is not None and at > now - limits.quiet:
                busy.add(file.partition)
            elif file.file_size_in_bytes < limits.target // 4:
                small[file.partition].append(file)
    found = [files for partition, files in small.items() if partition not in busy and len(files) > limits.files]
    return sorted(found, key=len, reverse=True)


def _binned(files: Iterable[DataFile], target: int, budget: int) -> Iterator[list[DataFile]]:
    """Files in groups of at most `target` bytes, as far as `budget` bytes go."""
    group: list[DataFile] = []
    size = 0
    for file in sorted(files, key=lambda f: f.file_path):
        budget -= file.file_size_in_bytes
        if budget < 0:
            break
        if group and size + file.file_size_in_bytes > target:
            yield group
            group, size = [], 0
        group.append(file)
        size += file.file_size_in_bytes
    if group:
        yield group


def _replace_files(handle: Table, bins: Sequence[Sequence[DataFile]]) -> None:
    """Put one file in the place of each group of files of one partition, in one commit."""
    first = bins[0][0]
    columns = [handle.schema().find_column_name(field.source_id) for field in handle.spec().fields]
    where = And(AlwaysTrue(), AlwaysTrue(), *(EqualTo(c, first.partition[n]) for n, c in enumerate(columns)))
    fresh: list[DataFile] = []
    try:
        try:
            for group in bins:
                fresh += [_joined(handle, group)]
        except FileNotFoundError as why:
            raise ValidationException("an erasure has removed a file meanwhile") from why
        with handle.transaction() as tx, tx.update_snapshot({"undertone.run_id": "compact"}).overwrite() as swap:
            swap.delete_by_predicate(where)  # what no other writer may have changed meanwhile: this partition alone
            for group, file in zip(bins, fresh, strict=True):
                for old in group:
                    swap.delete_data_file(old)
                swap.append_data_file(file)
    except (CommitFailedException, ValidationException):  # it is certain that nothing was committed
        for file in fresh:  # they may hold what an erasure, being the faster one, has erased
            handle.io.delete(file.file_path)
        raise


def _joined(handle: Table, files: Sequence[DataFile]) -> DataFile:
    """One new data file with the rows of several; they are counted."""
    metadata, schema = handle.metadata, handle.schema()
    columns = schema_to_pyarrow(schema, include_field_ids=True)
    reader = ArrowScan(metadata, handle.io, schema, AlwaysTrue())
    output = handle.io.new_output(handle.location_provider().new_data_location(f"compact-{uuid.uuid4()}.parquet"))
    footers: list[pq.FileMetaData] = []
    with output.create() as stream, pq.ParquetWriter(
        stream, columns, compression="zstd", metadata_collector=footers
    ) as writer:  # fmt: skip
        for table in _chunks(batch for file in files for batch in reader.to_record_batches([FileScanTask(file)])):
            writer.write_table(table.cast(columns), row_group_size=ROW_GROUP)
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=footers[0],
        stats_columns=compute_statistics_plan(schema, metadata.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(schema),
    )
    if statistics.record_count != sum(file.record_count for file in files):
        raise Retry(f"{statistics.record_count} rows were read of files that hold another number; nothing was changed")
    return DataFile.from_args(
        content=DataFileContent.DATA, file_path=output.location, file_format=FileFormat.PARQUET,
        partition=files[0].partition, file_size_in_bytes=len(output), sort_order_id=None, spec_id=files[0].spec_id,
        equality_ids=None, key_metadata=None, **statistics.to_serialized_dict(),
    )  # fmt: skip


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined until they make a row group, or many small files would make many small groups."""
    held: list[pa.Table] = []
    rows = 0
    for batch in batches:
        held.append(pa.Table.from_batches([batch]))
        rows += batch.num_rows
        if rows >= ROW_GROUP:
            yield pa.concat_tables(held, promote_options="permissive")
            held, rows = [], 0
    if held:
        yield pa.concat_tables(held, promote_options="permissive")


def merge_manifests(name: str, most: int = 100) -> int:
    """Merge the small manifests of a table that has more than `most`, as every scan reads them; return how many went.

    polars appends a manifest a commit and never merges any.
    """
    handle = catalog.table(name)
    current = handle.current_snapshot()
    before = current.manifests(handle.io) if current else []
    size = int(handle.properties.get("commit.manifest.target-size-bytes", 8 << 20))
    least = int(handle.properties.get("commit.manifest.min-count-to-merge", 100))
    if sum(manifest.manifest_length < size // 2 for manifest in before) <= max(most, least - 1):
        return 0
    with handle.transaction() as tx, tx.update_snapshot({"undertone.run_id": "merge"}).merge_append():
        pass  # an append of nothing merges what is there
    after = handle.current_snapshot()
    return len(before) - len(after.manifests(handle.io) if after else [])


def expire(name: str, keep: timedelta = KEEP) -> int:
    """Forget snapshots that stopped being current longer than `keep` ago; return how many.

    The current one and tagged ones stay. With no time to keep, all others go, whatever their writers' clocks said.
    """
    handle = catalog.table(name)
    old = _superseded(handle, keep)
    try:
        if old:
            handle.maintenance.expire_snapshots().by_ids(old).commit()
    except (CommitFailedException, ValidationException, ValueError) as why:  # ValueError: another has expired them
        raise Retry(f"another writer changed {name} meanwhile; nothing was expired") from why
    return len(old)


def _superseded(handle: Table, keep: timedelta) -> list[int]:
    """Snapshots that another took the place of longer than `keep` ago.

    Their own age is not asked: what was current for a month may have been pinned by a run a minute before it was
    replaced. A snapshot that never was current, such as the first half of an overwrite, is as old as itself.
    """
    metadata = handle.metadata
    before = (datetime.now(UTC) - keep).timestamp() * 1000
    until = {s.snapshot_id: s.timestamp_ms for s in metadata.snapshots}
    for one, following in pairwise(metadata.snapshot_log):
        until[one.snapshot_id] = following.timestamp_ms
    held = {ref.snapshot_id for ref in metadata.refs.values()}
    return [s for s, at in until.items() if s not in held and (at < before or keep <= timedelta(0))]


def sweep(name: str, grace: timedelta = GRACE) -> int:
    """Remove files below the table that no snapshot refers to and that are older than `grace`; return their count."""
    orphans = _orphans(name, grace)
    return len(_removed(_opened(catalog.table(name).location())[0], orphans))


def _orphans(name: str, grace: timedelta) -> list[fs.FileInfo]:
    """What `sweep` would remove.

    Listed first, compared second: what is committed in between is among the references.
    """
    system, root = _opened(catalog.table(name).location())
    before = _now(system, f"{root}/metadata") - grace
    listed = _listed(system, root)
    handle = catalog.table(name)
    keep = _referenced(handle)
    if handle.current_snapshot() and not keep.intersection(info.path for info in listed):
        raise BadInput(f"{name}: nothing that the table refers to was found below {root}; nothing was swept")
    return [info for info in listed if info.path not in keep and info.mtime < before]


def sweep_scratch(grace: timedelta = GRACE) -> int:
    """Remove the folders of attempts that have written nothing for `grace`; return the count of their files."""
    return len(_removed(_opened(scratch.root())[0], _abandoned(grace)))


def _abandoned(grace: timedelta) -> list[fs.FileInfo]:
    """Scratch files of attempts whose newest file is older than `grace`: a long attempt keeps its first files."""
    system, root = _opened(scratch.root())
    if system.get_file_info(root).type is fs.FileType.NotFound:
        return []
    before = _now(system, root) - grace
    attempts = defaultdict(list)
    for info in _inside(system, root):
        attempts[tuple(info.path.removeprefix(f"{root}/").split("/")[:2])].append(info)
    return [info for files in attempts.values() if max(f.mtime for f in files) < before for info in files]


def sweep_home(grace: timedelta = GRACE) -> int:
    """Remove embeddings, training states and what a killed query spilt that nobody used for `grace`; their count."""
    old = _unused(grace)
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _unused(grace: timedelta) -> list[Path]:
    before = (datetime.now(UTC) - grace).timestamp()
    return [
        path
        for name in ("embeddings/*", "training/*", "duckdb/*/*")
        for path in settings.scratch("").glob(name)
        if path.is_file() and path.stat().st_mtime < before
    ]


def maintain_scratch(grace: timedelta = GRACE, *, dry_run: bool = False) -> dict[str, int]:
    """Sweep what is not a table: scratch files, embeddings, training states; return files and bytes."""
    files = _abandoned(grace)
    paths = _unused(grace)
    size = sum(info.size or 0 for info in files) + sum(path.stat().st_size for path in paths)
    if not dry_run:
        _removed(_opened(scratch.root())[0], files)
        sweep_home(grace)
    return {"files_removed": len(files) + len(paths), "bytes_freed": size}


def _path(location: str) -> str:
    """An address as its file system writes it: no scheme."""
    return location.partition("://")[2] or location.removeprefix("file:")  # other engines write file:/folder


def _opened(location: str) -> tuple[fs.FileSystem, str]:
    """The file system of an address and the path in it. pyarrow cannot parse a local address with a blank."""
    local = location.startswith("file:") or "://" not in location
    return fs.LocalFileSystem() if local else fs.FileSystem.from_uri(location)[0], _path(location)


def _referenced(handle: Table) -> set[str]:
    """Paths of every file that a snapshot of the table, its metadata log or its statistics refer to."""
    metadata = handle.metadata
    found = {handle.metadata_location} | {entry.metadata_file for entry in metadata.metadata_log}
    found |= {one.statistics_path for one in (*metadata.statistics, *metadata.partition_statistics)}
    for snapshot in metadata.snapshots:
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(handle.io):
            if manifest.manifest_path not in found:
                found.add(manifest.manifest_path)
                found |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(handle.io)}
    return {_path(location) for location in found if location}


def _listed(system: fs.FileSystem, root: str) -> list[fs.FileInfo]:
    """The files of a table: those below its folders for data and metadata, nothing else that lies there."""
    return [info for folder in ("data", "metadata") for info in _inside(system, f"{root}/{folder}")]


def _inside(system: fs.FileSystem, folder: str) -> list[fs.FileInfo]:
    """All files below a folder; a link that leads out of it is not followed."""
    found = system.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    files = [info for info in found if info.type is fs.FileType.File]
    if not isinstance(system, fs.LocalFileSystem):
        return files
    true = Path(folder).resolve()
    homes = {parent: parent.resolve().is_relative_to(true) for parent in {Path(info.path).parent for info in files}}
    return [info for info in files if homes[Path(info.path).parent]]


def _now(system: fs.FileSystem, folder: str) -> datetime:
    """The time by the clock that dates the files: that of the store, not ours."""
    path = f"{folder}/clock-{uuid.uuid4()}"
    with system.open_output_stream(path) as stream:
        stream.write(b"0")
    now = system.get_file_info(path).mtime
    system.delete_file(path)
    return now  # type: ignore[no-any-return]


def _removed(system: fs.FileSystem, files: list[fs.FileInfo]) -> list[fs.FileInfo]:
    """Delete the files; return those that were still there."""
    gone = []
    for info in files:
        with suppress(FileNotFoundError):  # another sweep was faster
            system.delete_file(info.path)
            gone.append(info)
    log.info("removed %d files", len(gone))
    return gone
