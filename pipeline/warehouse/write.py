"""Writing: the rows of one slice become exactly these, in one commit, or nothing changes.

A lost race is Retry, and so is a commit of an attempt that a later attempt at the same task has overtaken.
"""

import copy
import json
import logging
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import date
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import tenacity
from dataframely.exc import ValidationError
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, ValidationException
from pyiceberg.expressions import AlwaysTrue, And, EqualTo
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER_ID
from pyiceberg.table.update import AddSnapshotUpdate

from pipeline import logs, settings
from pipeline.errors import BadInput, Retry
from pipeline.private import make_folder
from pipeline.slices import Staged, parse_day
from pipeline.tables import TABLES, empty
from pipeline.warehouse import catalog

log = logging.getLogger(__name__)
WRITTEN: deque[dict[str, object]] = deque(maxlen=1000)
"""The last slices that this process has written: table, rows, bytes, and dag, task and run, for `pipeline.lineage`."""
_BYTES: ContextVar[int] = ContextVar("bytes_written", default=0)
Slice = dict[str, str | date]
# pyiceberg 0.12 looks for files to rewrite in threads that share one evaluator: now and then it misses one and refuses
_retry_missed_file = tenacity.Retrying(
    retry=tenacity.retry_if_exception_message(match="Missing required files to delete"),
    stop=tenacity.stop_after_attempt(3),
    reraise=True,
)


def make_slice(**columns: str | date | None) -> Slice:
    """A slice by its column values; `day` may be an ISO date; None leaves a column open."""
    partition = {name: value for name, value in columns.items() if value is not None}
    if isinstance(day := partition.get("day"), str):
        partition["day"] = parse_day(day)
    return partition


def overwrite(name: str, partition: Slice, frame: pl.DataFrame | pl.LazyFrame, run_id: str = "cli") -> int:
    """Make the rows of the slice exactly `frame`; return their count. An empty frame empties the slice."""
    return _write(catalog.load_table(name), name, partition, frame.lazy(), run_id)


def replace(
    name: str, partition: Slice, update: Callable[[pl.LazyFrame], pl.DataFrame | pl.LazyFrame], run_id: str = "cli"
) -> int:
    """Overwrite the slice with `update(its current rows)`, both of one state: Retry if another writer was faster."""
    handle = catalog.load_table(name)
    return _write(handle, name, partition, update(catalog.scan_state(handle).filter(**partition)).lazy(), run_id)


def append(name: str, partition: Slice, update: Callable[[pl.LazyFrame], pl.LazyFrame], run_id: str = "cli") -> int:
    """Add `update(current rows of the slice)` and rewrite no row; Retry if another writer changed the table meanwhile.

    The commit holds for that state of the table alone, so rows that `update` compares with the current ones stay
    single. Without rows to add there is no commit.
    """
    handle = catalog.load_table(name)
    added = update(catalog.scan_state(handle).filter(**partition))
    return _write(handle, name, partition, added, run_id, is_append=True)


def locate_scratch() -> str:
    """Folder (or object prefix) of all scratch files, which every worker sees."""
    return f"{settings.warehouse()}/_scratch"


def create_attempt(name: str) -> str:
    """A fresh scratch folder that belongs to this attempt alone: a lost one may still be writing beside its retry."""
    path = f"{locate_scratch()}/{name}/{uuid.uuid4().hex}"
    if "://" not in path:
        make_folder(Path(path))
    return path


def stage(name: str, frame: pl.DataFrame | pl.LazyFrame) -> Staged:
    """Write rows meant for table `name` to a scratch file, which the sweeper removes by age; lazy frames stream."""
    path = f"{create_attempt(name)}/rows.parquet"
    frame.lazy().sink_parquet(path, storage_options=catalog.STORE)
    count = pl.scan_parquet(path, storage_options=catalog.STORE).select(pl.len()).collect().item()
    return Staged(path=path, rows=count)


def scan_staged(name: str, staged: Sequence[Staged]) -> pl.LazyFrame:
    """The rows of staged files, all there and each file once; a swept file or a lost row is Retry."""
    paths = [file["path"] for file in staged]
    if len(set(paths)) < len(paths):  # the key would not show it in a table that has none
        raise BadInput(f"{name}: a staged file was given twice; nothing was written")
    frame = pl.scan_parquet(paths, storage_options=catalog.STORE)
    try:
        expected, count = sum(file["rows"] for file in staged), frame.select(pl.len()).collect().item()
    except (OSError, pl.exceptions.ComputeError) as error:
        raise Retry(f"{name}: a staged file is gone, swept perhaps: run the shards again") from error
    if count != expected:
        raise Retry(f"{name}: {expected} rows were staged and {count} read back; nothing was written")
    return frame


def _write(
    handle: Table, name: str, partition: Slice, frame: pl.LazyFrame, run_id: str, *, is_append: bool = False
) -> int:
    timer = time.monotonic()
    frame = _select_columns(name, frame)
    count = _check_rows(name, partition, frame)
    if is_append and not count:
        return 0
    # polars commits beside the sink: when reading or writing the rows fails, it may publish those it has, or none
    guard = _GuardedCatalog(handle.catalog, count, partition)
    guarded = copy.copy(handle)
    guarded.catalog = cast("Catalog", guard)
    # of a table with a sort order polars would sort all rows in memory; ours stay in their order
    changes: dict[str, Any] = {"default_sort_order_id": UNSORTED_SORT_ORDER_ID}
    is_inside = And(AlwaysTrue(), AlwaysTrue(), *(EqualTo(c, v) for c, v in partition.items()))
    options: dict[str, Any] = {"mode": "overwrite", "overwrite_filter": is_inside}
    if is_append:  # pyiceberg would repeat an append after the commit of another writer
        options = {"mode": "append"}
        changes["properties"] = handle.metadata.properties | {"commit.retry.num-retries": "0"}
    guarded.metadata = handle.metadata.model_copy(update=changes)
    options |= {"row_group_size": TABLES[name].row_group, "storage_options": catalog.STORE}
    options["snapshot_properties"] = {"undertone.run_id": run_id, **_sign(partition)}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Delete operation did not match any records")
            _retry_missed_file(frame.sink_iceberg, guarded, **options)
    except (CommitFailedException, ValidationException) as error:
        raise Retry(f"another writer changed {name} meanwhile; this attempt changed nothing") from error
    except CommitStateUnknownException as error:  # if it runs again, the slice is the same either way
        raise Retry(f"{name}: the catalog went away; it is unknown whether the rows were published") from error
    except (OSError, pl.exceptions.ComputeError) as error:
        raise Retry(f"{name}: the rows could not be read or written, nothing was published: {error}") from error
    record_write(name, partition, count, guard.byte_count, round(time.monotonic() - timer, 3), run_id)
    return count


class _GuardedCatalog:
    """The catalog, but a commit that adds other than `rows` rows, or comes from a ghost, is refused with Retry."""

    def __init__(self, catalog: Catalog, rows: int, partition: Slice) -> None:
        self._catalog, self._rows, self._partition = catalog, rows, partition
        self.byte_count = 0  # of the files that were added

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit_table(self, table: Table, requirements: Any, updates: tuple[Any, ...]) -> CommitTableResponse:
        """Commit, if the appended rows are all there."""
        summaries = [u.snapshot.summary for u in updates if isinstance(u, AddSnapshotUpdate)]
        added = sum(int(s["added-records"] or 0) for s in summaries if s and s.operation is Operation.APPEND)
        if added != self._rows:
            raise Retry(f"{added} of {self._rows} rows were ready to be published; nothing was published")
        if _is_overtaken(table, self._partition):  # of the very state that the commit requires: nobody slips between
            raise Retry("a later attempt at this task has written the slice; this one changed nothing")
        response = self._catalog.commit_table(table, requirements, updates)
        self.byte_count = sum(int(s["added-files-size"] or 0) for s in summaries if s)
        return response


def _sign(partition: Slice) -> dict[str, str]:
    """Properties of a snapshot by which the attempt that wrote it is known; none outside Airflow."""
    attempt = settings.attempt()
    if attempt is None:
        return {}
    columns = json.dumps({name: str(value) for name, value in partition.items()})
    return {"undertone.task": attempt.task, "undertone.began": attempt.began, "undertone.slice": columns}


def _is_overtaken(table: Table, partition: Slice) -> bool:
    if not (attempt := settings.attempt()):
        return False
    for snapshot in table.metadata.snapshots:
        properties = snapshot.summary.additional_properties if snapshot.summary else {}
        if properties.get("undertone.task") == attempt.task and properties["undertone.began"] > attempt.began:
            other = json.loads(properties["undertone.slice"])
            if all(other.get(name, str(value)) == str(value) for name, value in partition.items()):
                return True
    return False


def _select_columns(name: str, frame: pl.LazyFrame) -> pl.LazyFrame:
    contract, actual = empty(name).schema, frame.collect_schema()
    wrong = [f"{c} should be {t}, is {actual.get(c) or 'absent'}" for c, t in contract.items() if actual.get(c) != t]
    if wrong:
        raise BadInput(f"{name}: columns are not those of the contract, nothing was written: {'; '.join(wrong)}")
    return frame.select(contract.names())


def _check_rows(name: str, partition: Slice, frame: pl.LazyFrame) -> int:
    """Count the rows; refuse those that break the contract, lie outside the slice or have the key of another."""
    schema, key = TABLES[name].schema, TABLES[name].key
    if not partition or set(partition) - set(schema.column_names()):
        raise BadInput(f"{name}: the slice {partition} must name columns of the table, and at least one")
    is_inside = pl.all_horizontal(pl.col(column) == pl.lit(value) for column, value in partition.items())
    # by 64-bit hash first, which needs 8 bytes a row; only if two hashes agree are the keys compared
    key_hash = pl.struct(key).hash() if key else pl.int_range(pl.len(), dtype=pl.UInt64)
    hashes, outside_count = bytearray(), 0  # it grows in place
    try:
        rows = schema.validate(frame).select(outside=~is_inside, key=key_hash)
        for batch in rows.collect_batches(maintain_order=False):
            outside_count += int(batch["outside"].sum())
            hashes += batch["key"].to_numpy().tobytes()
    except (ValidationError, pl.exceptions.ComputeError) as error:
        faults = _describe_faults(name, frame, error)
        raise BadInput(f"{name}: rows break the contract, nothing was written: {faults}") from error
    if outside_count:
        raise BadInput(f"{name}: {outside_count} rows lie outside the slice {partition}; nothing was written")
    keys = np.frombuffer(hashes, np.uint64)
    keys.sort()
    if key and (keys[1:] == keys[:-1]).any():
        doubled = frame.group_by(key).len().filter(pl.col("len") > 1).head(3).collect().rows()
        if doubled:
            raise BadInput(f"{name}: the key {key} occurs more than once, nothing was written; first: {doubled}")
    return len(keys)


def _describe_faults(name: str, frame: pl.LazyFrame, error: Exception) -> str:
    counts: dict[str, int] = {}
    with suppress(pl.exceptions.PolarsError, OSError):  # the rows cannot be had again: the first message must do
        counts = TABLES[name].schema.filter(frame.collect())[1].counts()
    return ", ".join(f"{rule} ({count} rows)" for rule, count in counts.items()) or str(error).splitlines()[0]


def record_write(
    name: str, partition: Mapping[str, object], rows: int, byte_count: int, seconds: float, run_id: str
) -> None:
    """Log and count that a slice was written."""
    _BYTES.set(_BYTES.get() + byte_count)
    WRITTEN.append({"table": name, "rows": rows, "bytes": byte_count, **settings.airflow_task()})
    columns = {column: str(value) for column, value in partition.items()}
    fields = {"table": name, "slice": columns, "rows": rows, "bytes": byte_count, "seconds": seconds, "run": run_id}
    logs.log_event(log, f"{name}: {rows} rows in {columns}", **fields)


def describe_writes(name: str) -> dict[str, int | str | None]:
    """Sum the rows of a table that this task of Airflow has written; and the table's snapshot, as text."""
    task = settings.airflow_task()
    rows = [int(str(write["rows"])) for write in WRITTEN if write["table"] == name and task.items() <= write.items()]
    snapshot = catalog.get_snapshot_id(name)
    return {"rows": sum(rows) if rows else None, "snapshot": snapshot and str(snapshot)}


def count_bytes_written() -> int:
    """Bytes of the files that this thread has written into tables so far."""
    return _BYTES.get()
