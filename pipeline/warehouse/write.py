"""Writing: the rows of one slice become exactly these, in one commit, or nothing changes.

A frame is refused before anything is written if a row breaks the contract, lies outside the slice or has the key of
another. A lost race is `errors.Retry`: the caller's retry reads and writes anew. So is a commit of an attempt that a
later attempt at the same task has overtaken: a task whose worker was lost may live on and come late, with what it read
before its retry began.
"""

import json
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import date
from functools import reduce
from operator import and_
from typing import Any, cast

import polars as pl
from dataframely.exc import ValidationError
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, ValidationException
from pyiceberg.expressions import AlwaysTrue, And, EqualTo
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import AddSnapshotUpdate

from pipeline import settings
from pipeline.errors import BadInput, Retry
from pipeline.slices import Staged, parse_day
from pipeline.tables import TABLES, empty
from pipeline.warehouse import catalog, written

ROW_GROUP = 50_000  # rows; small groups keep the streaming sink's buffers, and so its memory, flat

Slice = dict[str, str | date]


def slice_of(**columns: str | date | None) -> Slice:
    """A slice by its column values; `day` may be an ISO date; None leaves a column open."""
    found = {name: value for name, value in columns.items() if value is not None}
    if isinstance(day := found.get("day"), str):
        found["day"] = parse_day(day)
    return found


def condition(where: Slice) -> pl.Expr:
    """The slice as a polars predicate."""
    return reduce(and_, (pl.col(name) == pl.lit(value) for name, value in where.items()))


def overwrite(name: str, where: Slice, frame: pl.DataFrame | pl.LazyFrame, run_id: str = "cli") -> int:
    """Make the rows of the slice exactly `frame`; return their count. An empty frame empties the slice."""
    return _write(catalog.table(name), name, where, frame.lazy(), run_id)


def replace(
    name: str, where: Slice, rows: Callable[[pl.LazyFrame], pl.DataFrame | pl.LazyFrame], run_id: str = "cli"
) -> int:
    """Overwrite the slice with `rows(its present rows)`, both taken from one state of the table.

    If another writer changed the slice in between, the commit fails with Retry: no update is lost.
    """
    handle = catalog.table(name)
    present = catalog.frame_of(handle, condition(where))
    return _write(handle, name, where, rows(present).lazy(), run_id)


def commit(name: str, where: Slice, staged: Sequence[Staged], run_id: str = "cli") -> int:
    """Overwrite the slice with the rows of the staged files, all checked together; none given empties the slice."""
    return overwrite(name, where, staged_rows(name, staged) if staged else empty(name), run_id)


def staged_rows(name: str, staged: Sequence[Staged]) -> pl.LazyFrame:
    """The rows of staged files, all there and each file once; a swept file or a lost row is Retry."""
    paths = [s["path"] for s in staged]
    if len(set(paths)) < len(paths):  # the key would not tell in a table that has none
        raise BadInput(f"{name}: a staged file was given twice; nothing was written")
    frame = pl.scan_parquet(paths, storage_options=catalog.STORE)
    try:
        expected, found = sum(s["rows"] for s in staged), frame.select(pl.len()).collect().item()
    except (OSError, pl.exceptions.ComputeError) as why:
        raise Retry(f"{name}: a staged file is gone, swept perhaps: run the shards again") from why
    if found != expected:
        raise Retry(f"{name}: {expected} rows were staged and {found} read back; nothing was written")
    return frame


def _write(handle: Table, name: str, where: Slice, frame: pl.LazyFrame, run_id: str) -> int:
    began = time.monotonic()
    frame = _typed(name, frame)
    count = _refuse(name, where, frame)
    # polars commits beside the sink: when reading or writing the rows fails, it may publish those it has, or none
    whole = _Whole(handle.catalog, count, where)
    guarded = Table(
        handle.name(), handle.metadata, handle.metadata_location, handle.io, cast("Catalog", whole), handle.config
    )  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Delete operation did not match any records")
            frame.sink_iceberg(
                guarded,
                mode="overwrite",
                overwrite_filter=And(AlwaysTrue(), AlwaysTrue(), *(EqualTo(c, v) for c, v in where.items())),
                snapshot_properties={"undertone.run_id": run_id, **_signed(where)},
                row_group_size=ROW_GROUP,
                storage_options=catalog.STORE,
            )
    except (CommitFailedException, ValidationException) as why:
        raise Retry(f"another writer changed {name} meanwhile; this attempt changed nothing") from why
    except CommitStateUnknownException as why:  # done again, the slice is the same either way
        raise Retry(f"{name}: the catalog went away, and nobody knows whether the rows were published") from why
    except (OSError, pl.exceptions.ComputeError) as why:
        raise Retry(f"{name}: the rows could not be read or written, nothing was published: {why}") from why
    written.tell(name, where, count, whole.byte_count, time.monotonic() - began, run_id)
    return count


class _Whole:
    """The catalog, but a commit that adds other than `rows` rows, or comes from a ghost, is refused with Retry."""

    def __init__(self, catalog: Catalog, rows: int, where: Slice) -> None:
        self._catalog, self._rows, self._where = catalog, rows, where
        self.byte_count = 0  # of the files that were added

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit_table(self, table: Table, requirements: Any, updates: tuple[Any, ...]) -> CommitTableResponse:
        """Commit, if the appended rows are all there."""
        summaries = [u.snapshot.summary for u in updates if isinstance(u, AddSnapshotUpdate)]
        added = sum(int(s["added-records"] or 0) for s in summaries if s and s.operation is Operation.APPEND)
        if added != self._rows:
            raise Retry(f"{added} of {self._rows} rows were ready to be published; nothing was")
        if _is_overtaken(table, self._where):  # of the very state that the commit requires, so nobody slips between
            raise Retry("a later attempt at this task has written the slice; this one changed nothing")
        done = self._catalog.commit_table(table, requirements, updates)
        self.byte_count = sum(int(s["added-files-size"] or 0) for s in summaries if s)
        return done


def _signed(where: Slice) -> dict[str, str]:
    """What a snapshot tells of the attempt that wrote it; nothing outside Airflow."""
    attempt = settings.attempt()
    if attempt is None:
        return {}
    of = json.dumps({name: str(value) for name, value in where.items()})
    return {"undertone.task": attempt.task, "undertone.began": attempt.began, "undertone.slice": of}


def _is_overtaken(table: Table, where: Slice) -> bool:
    """Whether an attempt at our task that began after us has written rows of the slice."""
    attempt = settings.attempt()
    for snapshot in table.metadata.snapshots if attempt else ():
        told = snapshot.summary.additional_properties if snapshot.summary else {}
        if attempt and told.get("undertone.task") == attempt.task and told["undertone.began"] > attempt.began:
            theirs = json.loads(told["undertone.slice"])
            if all(theirs.get(name, str(value)) == str(value) for name, value in where.items()):
                return True
    return False


def _typed(name: str, frame: pl.LazyFrame) -> pl.LazyFrame:
    """The frame with the contract's columns in their order; another type or a missing column is refused."""
    wanted, given = TABLES[name].schema.create_empty().schema, frame.collect_schema()
    wrong = [f"{c} should be {t}, is {given.get(c) or 'absent'}" for c, t in wanted.items() if given.get(c) != t]
    if wrong:
        raise BadInput(f"{name}: columns are not those of the contract, nothing was written: {'; '.join(wrong)}")
    return frame.select(list(wanted))


def _refuse(name: str, where: Slice, frame: pl.LazyFrame) -> int:
    """Count the rows; refuse those outside the slice or with a key met before, and a slice that names no column.

    Rows that break the contract are refused here too: before the sink, so that it has no reason to fail but the disk.
    Keys are compared by 64-bit hash first, which needs 8 bytes a row; only if two hashes agree are the keys looked at.
    """
    if not where or set(where) - set(TABLES[name].schema.column_names()):
        raise BadInput(f"{name}: the slice {where} must name columns of the table, and at least one")
    key = TABLES[name].key
    looked_at = (
        TABLES[name]
        .schema.validate(frame)
        .select(
            outside=~condition(where), key=pl.struct(key).hash() if key else pl.int_range(pl.len(), dtype=pl.UInt64)
        )
    )
    try:
        hashes = looked_at.collect(engine="streaming")
    except (ValidationError, pl.exceptions.ComputeError) as why:
        raise BadInput(f"{name}: rows break the contract, nothing was written: {_told(name, frame, why)}") from why
    if outside := int(hashes["outside"].sum()):
        raise BadInput(f"{name}: {outside} rows lie outside the slice {where}; nothing was written")
    ordered = hashes["key"].sort()
    if key and (ordered == ordered.shift(1)).any():
        twice = frame.group_by(key).len().filter(pl.col("len") > 1).head(3).collect().rows()
        if twice:
            raise BadInput(f"{name}: the key {key} occurs more than once, nothing was written; first: {twice}")
    return hashes.height


def _told(name: str, frame: pl.LazyFrame, why: Exception) -> str:
    """The rules that were broken and how often, read off the rows themselves."""
    try:
        _, failures = TABLES[name].schema.filter(frame.collect())
    except (pl.exceptions.PolarsError, OSError):  # the rows cannot be had again: the first message must do
        return str(why).splitlines()[0]
    counts = failures.counts()
    return ", ".join(f"{rule} ({count} rows)" for rule, count in counts.items()) or str(why).splitlines()[0]
