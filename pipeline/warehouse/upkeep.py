"""Upkeep: checking what the metadata names, compacting small files, expiring old snapshots, sweeping orphans.

pyiceberg forgets snapshots but leaves the bytes on disk; the sweeper here removes them. Nothing of a write in flight
goes: files are listed before the references are read, a file younger than the grace time by the store's own clock is
left alone, and a snapshot expires only a week after it stopped being the current one. A damaged table is not touched.
Nor does a file go that any state refers to, whether the catalog knows the state or not (`lineage`).
"""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

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
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.table import FileScanTask, Table
from pyiceberg.transforms import IdentityTransform

from pipeline import settings
from pipeline.errors import BadInput, Retry
from pipeline.tables import TABLES
from pipeline.warehouse import catalog, checksums, scratch
from pipeline.warehouse.check import check, describe, partition_of
from pipeline.warehouse.files import list_folder, list_table, open_store, path_of, remove, store_time
from pipeline.warehouse.lineage import head_of, read_states, referenced, sort_states
from pipeline.warehouse.write import ROW_GROUP

log = logging.getLogger(__name__)

GRACE = timedelta(hours=24)  # longer than the longest task, or files of a write in flight would go
KEEP = timedelta(days=7)  # longer than the longest run, whose shards read a pinned snapshot
MANY = {"snapshots": 10_000, "manifests": 1_000, "metadata_files": 100}  # each scan reads the first two


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
        weeks: in which the checksums of all data files are compared, a share of them a week; 1 all, 0 none.
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
    weeks: int = 4


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
        Retry: another writer was faster than the expiry, or another upkeep removed what this one reads.
    """
    found = check(name, footers=limits.footers, weeks=limits.weeks)
    if found.problems:
        raise BadInput(f"{name} is damaged, nothing was changed: {describe(name, found.problems)}")
    if found.other_problems:
        log.warning("%s: %s", name, describe(name, found.other_problems))
    for what, many in MANY.items():
        if getattr(found, what) > many:
            log.warning("%s has %d %s, more than %d", name, getattr(found, what), what, many)
    counts = {field: getattr(found, field) for field in _COUNTS} | {"checksums_added": len(found.unrecorded)}
    if dry_run:
        superseded, orphans = len(_superseded(catalog.table(name), limits.keep)), _orphans(name, limits.grace)
        return counts | {"snapshots_expired": superseded, **_sizes(orphans)}
    try:
        add_checksums(name, [*found.unrecorded, *_unrecorded_states(name)])
        compacted = compact(name, limits)
        merged = merge_manifests(name, limits.manifests)
        expired = expire(name, limits.keep)
        removed = remove(open_store(catalog.table(name).location())[0], _orphans(name, limits.grace))
        _merge_checksums(name, limits.grace)
    except FileNotFoundError as error:
        raise Retry(f"{name}: another upkeep or an erasure was faster: {error}") from error
    if broken := check(name).problems:
        raise BadInput(f"{name} was damaged during its upkeep: {describe(name, broken)}")
    return counts | {
        "partitions_compacted": compacted.partitions, "files_compacted": compacted.files,
        "partitions_lost": compacted.lost, "manifests_merged": merged, "snapshots_expired": expired, **_sizes(removed),
    }  # fmt: skip


_COUNTS = ("rows", "files", "bytes", "snapshots", "manifests", "metadata_files", "files_verified")


def _sizes(files: Sequence[fs.FileInfo]) -> dict[str, int]:
    return {"files_removed": len(files), "bytes_freed": sum(info.size or 0 for info in files)}


def add_checksums(name: str, paths: Sequence[str]) -> None:
    """Record the checksums of files that have none: of an earlier version, another engine or a killed process."""
    if paths:
        location = catalog.table(name).location()
        system, _ = open_store(location)
        there = [info.path for info in system.get_file_info(list(paths)) if info.type is fs.FileType.File]
        checksums.record(location, {path: checksums.compute(system, path) for path in there})
        log.info("%s: recorded the checksums of %d files that had none", name, len(there))


def _unrecorded_states(name: str) -> list[str]:
    """Paths of unknown states without a checksum, which shows that they were published once the others have theirs."""
    handle = catalog.table(name)
    system, root = open_store(handle.location())
    states = read_states(system, list_table(system, root), handle.io, head_of(handle.location()))
    return [state.path for state in sort_states(handle, states).unknown if not state.is_published]


def _merge_checksums(name: str, grace: timedelta) -> None:
    location = catalog.table(name).location()
    system, root = open_store(location)
    before = store_time(system, f"{root}/metadata") - grace
    checksums.merge(location, {info.path for info in list_table(system, root)}, before)


def written() -> list[str]:
    """The tables that have ever been written: those that need upkeep. A damaged one is among them."""
    return [name for name in TABLES if _is_written(name)]


def _is_written(name: str) -> bool:
    try:
        return catalog.snapshot(name) is not None
    except BadInput:  # its check names the file
        return True


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
            log.info("%s: a writer was faster in %s; left for the next time", name, partition_of(handle, small[0]))
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
    return len(remove(open_store(catalog.table(name).location())[0], orphans))


def _orphans(name: str, grace: timedelta) -> list[fs.FileInfo]:
    """What `sweep` would remove, metadata files first: a kill in between leaves none whose files are gone.

    Listed first, compared second: what is committed in between is among the references.
    """
    handle = catalog.table(name)
    system, root = open_store(handle.location())
    before = store_time(system, f"{root}/metadata") - grace
    listed = list_table(system, root)
    states = read_states(system, listed, handle.io, head_of(handle.location()))
    handle = catalog.table(name)
    metadata = handle.metadata
    lineage = sort_states(handle, states)
    # a state that the current one came from goes with the snapshots that it has and the current one has no more
    old = {s.path for s in lineage.replaced if not s.snapshot_ids <= {x.snapshot_id for x in metadata.snapshots}}
    old |= {s.path for s in lineage.unpublished if s.written_at < before}
    others = [s for s in (*lineage.pending, *lineage.unpublished, *lineage.unknown) if s.path not in old]
    if unread := [state.path for state in others if state.metadata is None and state.is_published]:
        raise BadInput(
            f"{name}: nobody knows which files the damaged {unread[0]} refers to, so nothing was swept; bring it back "
            "from a copy, or move it away if its rows are not needed"
        )
    if lineage.unknown:
        log.warning(
            "%s: the catalog does not know %d states that were published, such as %s; their files are kept. `undertone "
            "recover-catalog --dry-run` shows them", name, len(lineage.unknown), lineage.unknown[-1].path,
        )  # fmt: skip
    keep = {path_of(handle.metadata_location)} | referenced(handle.io, metadata)
    if handle.current_snapshot() and not keep.intersection(info.path for info in listed):
        raise BadInput(f"{name}: nothing that the table refers to was found below {root}; nothing was swept")
    keep |= {state.path for state in (*lineage.replaced, *others)}
    keep |= referenced(handle.io, metadata, others)
    gone = [info for info in listed if info.path in old]
    keep |= old
    return gone + [info for info in listed if info.path not in keep and info.mtime < before]


def sweep_scratch(grace: timedelta = GRACE) -> int:
    """Remove the folders of attempts that have written nothing for `grace`; return the count of their files."""
    return len(remove(open_store(scratch.root())[0], _abandoned(grace)))


def _abandoned(grace: timedelta) -> list[fs.FileInfo]:
    """Scratch files of attempts whose newest file is older than `grace`: a long attempt keeps its first files."""
    system, root = open_store(scratch.root())
    if system.get_file_info(root).type is fs.FileType.NotFound:
        return []
    before = store_time(system, root) - grace
    attempts = defaultdict(list)
    for info in list_folder(system, root):
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
        remove(open_store(scratch.root())[0], files)
        sweep_home(grace)
    return {"files_removed": len(files) + len(paths), "bytes_freed": size}
