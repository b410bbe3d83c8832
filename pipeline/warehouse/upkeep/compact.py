"""Compacting: small data files of a partition become large ones, small manifests one."""

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

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
from pipeline.tables import TABLES
from pipeline.warehouse import catalog
from pipeline.warehouse.upkeep.check import name_partition
from pipeline.warehouse.upkeep.limits import Limits

log = logging.getLogger(__name__)


def compact(name: str, limits: Limits = Limits()) -> tuple[int, int, int]:  # noqa: B008
    """Rewrite the small files of partitions that have many; return counts of partitions, of files and of lost ones.

    A partition is one commit, and one small file is held in memory at a time. Where a writer was faster, the partition
    is lost: it is left for the next time.
    """
    handle = catalog.load_table(name)
    partitions = files = lost = 0
    budget = limits.budget
    for small in _list_crowded(handle, limits):
        groups = [group for group in _group(small, limits.target, budget) if len(group) > 1]  # one file gains nothing
        if partitions + lost >= limits.partitions or not groups:
            break
        budget -= sum(file.file_size_in_bytes for group in groups for file in group)
        try:
            _replace_files(catalog.load_table(name), groups)
        except (CommitFailedException, ValidationException):
            log.info("%s: a writer was faster in %s; left for the next time", name, name_partition(handle, small[0]))
            lost += 1
            continue
        partitions, files = partitions + 1, files + sum(map(len, groups))
    return partitions, files, lost


def _list_crowded(handle: Table, limits: Limits) -> list[list[DataFile]]:
    """List the small files of each partition at rest that has more of them than it may; most files first."""
    current, spec = handle.current_snapshot(), handle.spec()
    if current is None or any(not isinstance(field.transform, IdentityTransform) for field in spec.fields):
        return []
    rest_ms = (datetime.now(UTC) - limits.quiet).timestamp() * 1000
    written_ms = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in handle.snapshots()}
    busy: set[Any] = set()
    small = defaultdict(list)
    for manifest in current.manifests(handle.io):
        if manifest.content is not ManifestContent.DATA:
            log.info("%s has row deletes in files of another engine; compact it with that engine", handle.name())
            return []
        for entry in manifest.fetch_manifest_entry(handle.io):
            file = entry.data_file
            if file.spec_id != spec.spec_id or file.file_format != FileFormat.PARQUET:
                continue
            if written_ms.get(entry.snapshot_id or 0, 0) > rest_ms:
                busy.add(file.partition)
            elif file.file_size_in_bytes < limits.target // 4:
                small[file.partition].append(file)
    crowded = [files for partition, files in small.items() if partition not in busy and len(files) > limits.files]
    return sorted(crowded, key=len, reverse=True)


def _group(files: Iterable[DataFile], target: int, budget: int) -> Iterator[list[DataFile]]:
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


def _replace_files(handle: Table, groups: Sequence[Sequence[DataFile]]) -> None:
    partition = groups[0][0].partition
    columns = [handle.schema().find_column_name(field.source_id) for field in handle.spec().fields]
    condition = And(AlwaysTrue(), AlwaysTrue(), *(EqualTo(c, partition[n]) for n, c in enumerate(columns)))
    fresh: list[DataFile] = []
    try:
        try:
            for group in groups:
                fresh += [_join_files(handle, group)]
        except FileNotFoundError as error:
            raise ValidationException("an erasure has removed a file meanwhile") from error
        with handle.transaction() as tx, tx.update_snapshot({"undertone.run_id": "compact"}).overwrite() as swap:
            swap.delete_by_predicate(condition)  # no other writer may have changed this partition meanwhile
            for group, file in zip(groups, fresh, strict=True):
                for old in group:
                    swap.delete_data_file(old)
                swap.append_data_file(file)
    except (CommitFailedException, ValidationException):  # it is certain that nothing was committed
        for file in fresh:  # they may hold what an erasure, being the faster one, has erased
            handle.io.delete(file.file_path)
        raise


def _join_files(handle: Table, files: Sequence[DataFile]) -> DataFile:
    metadata, schema = handle.metadata, handle.schema()
    columns = schema_to_pyarrow(schema, include_field_ids=True)
    reader = ArrowScan(metadata, handle.io, schema, AlwaysTrue())
    output = handle.io.new_output(handle.location_provider().new_data_location(f"compact-{uuid.uuid4()}.parquet"))
    footers: list[pq.FileMetaData] = []
    row_group = TABLES[handle.name()[-1]].row_group
    batches = (batch for file in files for batch in reader.to_record_batches([FileScanTask(file)]))
    options: dict[str, Any] = {"compression": "zstd", "metadata_collector": footers}
    with output.create() as stream, pq.ParquetWriter(stream, columns, **options) as writer:
        for table in _join_batches(batches, row_group):
            writer.write_table(table.cast(columns), row_group_size=row_group)
    plan, ids = compute_statistics_plan(schema, metadata.properties), parquet_path_to_id_mapping(schema)
    statistics = data_file_statistics_from_parquet_metadata(footers[0], plan, ids)
    if statistics.record_count != sum(file.record_count for file in files):
        raise Retry(f"{statistics.record_count} rows were read of files that hold another number; nothing was changed")
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=output.location,
        file_format=FileFormat.PARQUET,
        partition=files[0].partition,
        file_size_in_bytes=len(output),
        spec_id=files[0].spec_id,
        **statistics.to_serialized_dict(),
    )


def _join_batches(batches: Iterable[pa.RecordBatch], row_group: int) -> Iterator[pa.Table]:
    """Join batches until they make a row group, or many small files would make many small groups."""
    tables, rows = list[pa.Table](), 0
    for batch in batches:
        tables.append(pa.Table.from_batches([batch]))
        rows += batch.num_rows
        if rows >= row_group:
            yield pa.concat_tables(tables, promote_options="permissive")
            tables, rows = [], 0
    if tables:
        yield pa.concat_tables(tables, promote_options="permissive")


def merge_manifests(name: str, most: int = 100) -> int:
    """Merge the small manifests of a table that has more than `most`, as each scan reads them; return how many went."""
    handle = catalog.load_table(name)
    current = handle.current_snapshot()
    before = current.manifests(handle.io) if current else []
    size = int(handle.properties.get("commit.manifest.target-size-bytes", 8 << 20))
    least = int(handle.properties.get("commit.manifest.min-count-to-merge", 100))
    if sum(manifest.manifest_length < size // 2 for manifest in before) <= max(most, least - 1):
        return 0
    with handle.transaction() as tx, tx.update_snapshot({"undertone.run_id": "merge"}).merge_append():
        pass  # an append of nothing merges what is there; polars appends a manifest a commit and never merges any
    after = handle.current_snapshot()
    return len(before) - len(after.manifests(handle.io) if after else [])
