"""Compacting: small data files of a partition become large ones, small manifests one."""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
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

from pipeline.errors import Retry
from pipeline.warehouse import catalog
from pipeline.warehouse.upkeep.check import partition_of
from pipeline.warehouse.upkeep.limits import Limits
from pipeline.warehouse.write import ROW_GROUP

log = logging.getLogger(__name__)


class Compacted(NamedTuple):
    """What a compaction came to; a partition is lost when its writer was faster, and is done the next time."""

    partitions: int
    files: int
    lost: int


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
