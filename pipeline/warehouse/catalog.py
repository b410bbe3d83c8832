"""The Iceberg catalog and its tables: opened, created once, scanned."""

from contextlib import suppress

import polars as pl
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import Table
from sqlalchemy.exc import SQLAlchemyError

from pipeline import settings
from pipeline.errors import BadInput, Missing, Retry
from pipeline.tables import TABLES

NAMESPACE = "undertone"

# Isolation stays serializable (the default): under snapshot isolation two attempts on an empty slice both land.
PROPERTIES = {
    "commit.retry.num-retries": "20",
    "commit.retry.min-wait-ms": "50",
    "commit.retry.max-wait-ms": "2000",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    # The manifest of a deletion keeps the bounds of the files it removed: the first letters of what was erased. So
    # there are none, but for the columns by which slices are cut: with theirs, writers of two slices do not collide.
    "write.metadata.metrics.default": "counts",
    **{
        f"write.metadata.metrics.column.{c}": "truncate(16)"
        for c in ("source", "day", "origin", "step", "kind", "study")
    },
}


# of a store that keeps the line open and says nothing; polars' own limit is none, and a retry needs an end to begin
STORE = {"connect_timeout": "10s", "timeout": "120s"}
_SILENCE = {"s3.connect-timeout": "10", "s3.request-timeout": "120"}  # the same as pyiceberg says it


_OPEN: dict[tuple[str, str, bool], SqlCatalog] = {}  # one a process and setting: opening costs a connection pool


def catalog(*, create_tables: bool = False) -> SqlCatalog:
    """The catalog in force. Only `create` may make its tables: several tasks doing so at once would race."""
    key = (settings.catalog_uri(), _location(), create_tables)
    if key not in _OPEN:
        props = {"uri": key[0], "warehouse": key[1], "init_catalog_tables": str(create_tables).lower()}
        # without a region each process asks the public cloud for it first, which behind a firewall takes seconds
        given = {"s3.endpoint": settings.aws_endpoint(), "s3.region": settings.aws_region()}
        props |= _SILENCE | {name: value for name, value in given.items() if value}
        _OPEN[key] = SqlCatalog("undertone", **props)
    return _OPEN[key]


def _location() -> str:
    """The warehouse as an address. Iceberg does not escape paths, so some characters would cut or change them."""
    location = settings.warehouse()
    if "://" in location:
        return location
    if bad := sorted(set(location) & set("#?%")):
        raise BadInput(f"{location}: a path with {' '.join(bad)} cannot be an address; choose another UNDERTONE_HOME")
    return f"file://{location}"


def close() -> None:
    """Let go of the catalog's connections."""
    for opened in _OPEN.values():
        opened.engine.dispose()
    _OPEN.clear()


def create() -> list[str]:
    """Create the catalog and every table of `tables.TABLES` that is absent; return the names created.

    Tables of an earlier version get the columns they lack, empty in their old rows.
    """
    _location()  # refused before a folder is made
    settings.home().mkdir(parents=True, exist_ok=True)
    cat = catalog(create_tables=True)
    cat.create_namespace_if_not_exists(NAMESPACE)
    present = {name for _, name in cat.list_tables(NAMESPACE)}
    for name in present.intersection(TABLES):
        _widen(cat.load_table(f"{NAMESPACE}.{name}"), _columns(name))
    created = [name for name in TABLES if name not in present]
    for name in created:
        columns = _columns(name)
        with (
            suppress(TableAlreadyExistsError, CommitFailedException),  # another process was faster
            cat.create_table_transaction(f"{NAMESPACE}.{name}", schema=columns, properties=PROPERTIES) as tx,
            tx.update_spec() as spec,
        ):
            for column in TABLES[name].partitions:
                spec.add_identity(column)
    return created


def _columns(name: str) -> pa.Schema:
    return TABLES[name].schema.create_empty().to_arrow().schema


def _widen(handle: Table, columns: pa.Schema) -> None:
    if set(columns.names) - set(handle.schema().column_names):
        with suppress(CommitFailedException), handle.update_schema() as update:
            update.union_by_name(columns)


def names() -> list[str]:
    """The tables, in the order of `tables.TABLES`."""
    return list(TABLES)


def table(name: str) -> Table:
    """The table's newest state; load it anew for every attempt."""
    if name not in TABLES:
        raise Missing(f"no table {name!r}; there are {', '.join(TABLES)}")
    try:
        return catalog().load_table(f"{NAMESPACE}.{name}")
    except NoSuchTableError as why:
        raise Missing(f"the warehouse at {settings.warehouse()} is not set up; run `undertone init`") from why
    except SQLAlchemyError as why:
        if any(sign in str(why) for sign in ("no such table", "unable to open database", "UndefinedTable")):
            raise Missing(f"there is no catalog at {settings.home()}; run `undertone init`") from why
        raise Retry(f"the catalog does not answer: {type(why).__name__}") from None  # its text may hold a password
    except FileNotFoundError:
        raise  # damage, which asking again does not mend
    except OSError as why:
        raise Retry(f"{name}: the object store does not answer: {why}") from why


def snapshot(name: str) -> int | None:
    """Id of the table's current snapshot, or None for a table never written."""
    current = table(name).current_snapshot()
    return current.snapshot_id if current else None


def scan(name: str, where: pl.Expr | None = None, snapshot_id: int | None = None) -> pl.LazyFrame:
    """The rows of a table (of one snapshot, if given) that fulfil `where`, as a lazy frame."""
    return frame_of(table(name), where, snapshot_id)


def frame_of(handle: Table, where: pl.Expr | None = None, snapshot_id: int | None = None) -> pl.LazyFrame:
    """The rows of one loaded state of a table."""
    if snapshot_id is not None and handle.snapshot_by_id(snapshot_id) is None:
        name = handle.name()[-1]
        raise Missing(f"{name}: the state that this run began with is gone, by an erasure perhaps: do the day anew")
    frame = pl.scan_iceberg(handle, snapshot_id=snapshot_id, storage_options=STORE)
    return frame if where is None else frame.filter(where)
