"""The Iceberg catalog and its tables: opened, created once, scanned."""

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.exceptions import ValidationError as InvalidMetadata
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from sqlalchemy import insert, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from pipeline import settings
from pipeline.errors import BadInput, Missing, Retry
from pipeline.private import make_folder
from pipeline.tables import TABLES
from pipeline.warehouse import checksums
from pipeline.warehouse.files import list_folder, open_store, path_of

log = logging.getLogger(__name__)

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


class Catalog(SqlCatalog):
    """A catalog whose commits record the checksums of the files they add, and leave no metadata of a lost race."""

    def __init__(self, name: str, **properties: str) -> None:
        self._staged = threading.local()  # the metadata file that a commit of this thread has written
        super().__init__(name, **properties)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        """Commit; then record the checksums, which were computed before."""
        fresh = checksums.added(table.io, updates)
        self._staged.location = None
        try:
            response = super().commit_table(table, requirements, updates)
        except (CommitFailedException, TableAlreadyExistsError):  # it is certain that it was not published
            if self._staged.location:
                table.io.delete(self._staged.location)
            raise
        if self._staged.location:
            fresh[path_of(self._staged.location)] = self._staged.checksum
            try:
                checksums.record(response.metadata.location, fresh)
            except OSError as error:  # the rows are published
                log.warning("%s: no checksums of this commit, the next upkeep adds them: %s", table.name()[-1], error)
        return response

    def _write_metadata(self, metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:  # type: ignore[override]
        super()._write_metadata(metadata, io, metadata_path)
        self._staged.location = metadata_path
        self._staged.checksum = checksums.compute(*open_store(metadata_path))

    def set_states(self, states: Mapping[str, tuple[str | None, str]]) -> None:
        """Make the catalog name these metadata files, in one transaction.

        Args:
            states: of each table the address that the catalog has, None for a table it does not know, and the new one.
        """
        with Session(self.engine) as session, session.begin():
            for name, (before, after) in states.items():
                if before is None:
                    session.execute(insert(IcebergTables).values(**self._create_table_row(NAMESPACE, name, after)))
                    continue
                change = update(IcebergTables).where(
                    IcebergTables.catalog_name == self.name, IcebergTables.table_namespace == NAMESPACE,
                    IcebergTables.table_name == name, IcebergTables.metadata_location == before,
                )  # fmt: skip
                result: Any = session.execute(change.values(metadata_location=after))
                if result.rowcount < 1:
                    raise Retry(f"another writer changed {name} meanwhile; nothing was changed")

    @staticmethod
    def _delete_old_metadata(io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:
        """Delete the metadata files that fell off the log; upkeep or a purge may have been faster."""
        for location in {e.metadata_file for e in base.metadata_log} - {e.metadata_file for e in metadata.metadata_log}:
            with suppress(FileNotFoundError):
                io.delete(location)


_OPEN: dict[tuple[str, str, bool], tuple[int, Catalog]] = {}  # one a process: opening costs a connection pool


def catalog(*, create_tables: bool = False) -> Catalog:
    """The catalog in force. Only `create` may make its tables: several tasks doing so at once would race.

    A SQLite file that is another one than before is opened anew; one that is not there is not made.
    """
    key = (settings.catalog_uri(), _location(), create_tables)
    if not (inode := _inode()) and not create_tables:
        raise Missing(f"there is no catalog at {_shown()}; {_advice()}")
    before, opened = _OPEN.get(key, (None, None))
    if opened is not None and before == inode:
        return opened
    if opened is not None:
        opened.engine.dispose()
    props = {"uri": key[0], "warehouse": key[1], "init_catalog_tables": str(create_tables).lower()}
    opened = Catalog("undertone", **props, **properties())
    _OPEN[key] = (_inode(), opened)
    return opened


def _inode() -> int:
    """What tells the catalog's SQLite file from another of its name: 0 if there is none, -1 for a server."""
    file = sqlite_file()
    if file is None:
        return -1
    return file.stat().st_ino if file.exists() else 0


def properties() -> dict[str, str]:
    """How pyiceberg reaches the object store."""
    # without a region each process asks the public cloud for it first, which behind a firewall takes seconds
    given = {"s3.endpoint": settings.aws_endpoint(), "s3.region": settings.aws_region()}
    return _SILENCE | {name: value for name, value in given.items() if value}


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
    for _, opened in _OPEN.values():
        opened.engine.dispose()
    _OPEN.clear()


def create() -> list[str]:
    """Create the catalog and every table of `tables.TABLES` that is absent; return the names created.

    Tables of an earlier version get the columns they lack, empty in their old rows.

    Raises:
        BadInput: the catalog is damaged, or lacks tables whose files are there; nothing was created.
    """
    _location()  # refused before a folder is made
    present = registered()
    if orphaned := [name for name in TABLES if name not in present and _holds_rows(name)]:
        raise BadInput(
            f"the catalog at {_shown()} does not know {len(orphaned)} tables whose files are in {settings.warehouse()} "
            f"({', '.join(orphaned[:5])}{', …' if len(orphaned) > 5 else ''}); nothing was created. Run `undertone "
            "recover-catalog` to get them back, or set UNDERTONE_WAREHOUSE to another place"
        )
    make_folder(settings.home())
    if "://" not in settings.warehouse():
        make_folder(Path(settings.warehouse()))
    cat = catalog(create_tables=True)
    cat.create_namespace_if_not_exists(NAMESPACE)
    for name in present.keys() & TABLES.keys():
        _widen(table(name), _columns(name))
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


def widen() -> None:
    """Give tables of an earlier version the columns they lack, empty in their old rows."""
    for name in TABLES:
        _widen(table(name), _columns(name))


def names() -> list[str]:
    """The tables, in the order of `tables.TABLES`."""
    return list(TABLES)


def table(name: str) -> Table:
    """The table's newest state; load it anew for every attempt."""
    if name not in TABLES:
        raise Missing(f"no table {name!r}; there are {', '.join(TABLES)}")
    try:
        return _load(name)
    except NoSuchTableError as why:
        raise Missing(f"the catalog at {_shown()} has no table {name}; {_advice()}") from why
    except SQLAlchemyError as why:
        raise _translate(why) from None  # its text may hold a password
    except FileNotFoundError as why:  # damage, which asking again does not mend
        raise BadInput(f"{name}: the catalog names a metadata file that is not there: {why}; {RECOVER}") from why
    except (InvalidMetadata, ValueError) as why:
        at = metadata_location(name)
        raise BadInput(f"{name}: the metadata file {at} is damaged ({type(why).__name__}); {RECOVER}") from why
    except OSError as why:
        raise Retry(f"{name}: the object store does not answer: {why}") from why


RECOVER = "run `undertone recover-catalog`"


def _load(name: str) -> Table:
    """Load the table; once more if a commit or an upkeep removed the metadata file between its look-up and its read."""
    try:
        return catalog().load_table(f"{NAMESPACE}.{name}")
    except FileNotFoundError:
        return catalog().load_table(f"{NAMESPACE}.{name}")


def _translate(error: SQLAlchemyError) -> BadInput | Missing | Retry:
    """A fault of the catalog's database as what one does about it."""
    if any(sign in str(error) for sign in ("no such table", "unable to open database", "UndefinedTable")):
        return Missing(f"there is no catalog at {settings.home()}; {_advice()}")
    if any(sign in str(error) for sign in ("not a database", "malformed", "disk I/O error")):
        return BadInput(f"the catalog at {_shown()} is damaged; {RECOVER}")
    return Retry(f"the catalog does not answer: {type(error).__name__}")


def _advice() -> str:
    """What to do where the catalog lacks a table: get it back if its files are there, else create it."""
    return RECOVER if any(map(_holds_rows, TABLES)) else "run `undertone init`"


def sqlite_file() -> Path | None:
    """The file of the catalog; None for a database server."""
    url = make_url(settings.catalog_uri())
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def _shown() -> str:
    """The catalog's address, without its password."""
    return str(sqlite_file() or make_url(settings.catalog_uri()).render_as_string())


def _rows() -> Any:
    return select(IcebergTables.table_name, IcebergTables.metadata_location).where(
        IcebergTables.catalog_name == "undertone", IcebergTables.table_namespace == NAMESPACE
    )


def registered() -> dict[str, str]:
    """The metadata file of each table that the catalog knows; none where there is no catalog, and none is made."""
    file = sqlite_file()
    if file is not None and (not file.exists() or not file.stat().st_size):
        return {}
    try:
        with Session(catalog().engine) as session:
            return {name: str(location) for name, location in session.execute(_rows())}
    except SQLAlchemyError as why:
        if isinstance(error := _translate(why), Missing):
            return {}
        raise error from None


def metadata_location(name: str) -> str:
    """Address of the table's metadata file as the catalog has it; the file is not read."""
    return registered()[name]


def table_location(name: str) -> str:
    """Address of the folder in which `create` makes a table."""
    return f"{_location()}/{NAMESPACE}/{name}"


def _holds_rows(name: str) -> bool:
    """Whether files of rows lie where the table would be made. Metadata alone may be of a creation in progress."""
    system, root = open_store(table_location(name))
    try:
        return any(True for _ in list_folder(system, f"{root}/data"))
    except OSError as why:
        raise Retry(f"{name}: the object store does not answer: {why}") from why


def snapshot(name: str) -> int | None:
    """Id of the table's current snapshot, or None for a table never written."""
    current = table(name).current_snapshot()
    return current.snapshot_id if current else None


def scan(name: str, where: pl.Expr | None = None, snapshot_id: int | None = None) -> pl.LazyFrame:
    """The rows of a table (of one snapshot, if given) that fulfil `where`, as a lazy frame."""
    return frame_of(table(name), where, snapshot_id)


def scan_widened(name: str) -> pl.LazyFrame:
    """The rows of a table; columns that a table of an earlier version lacks are empty."""
    handle, contract = table(name), TABLES[name].schema.create_empty().schema
    lacking = [pl.lit(None, contract[column]).alias(column) for column in contract if column not in
               handle.schema().column_names]  # fmt: skip
    return frame_of(handle).with_columns(lacking) if lacking else frame_of(handle)


def frame_of(handle: Table, where: pl.Expr | None = None, snapshot_id: int | None = None) -> pl.LazyFrame:
    """The rows of one loaded state of a table."""
    if snapshot_id is not None and handle.snapshot_by_id(snapshot_id) is None:
        name = handle.name()[-1]
        raise Missing(f"{name}: the state that this run began with is gone, by an erasure perhaps: do the day anew")
    frame = pl.scan_iceberg(handle, snapshot_id=snapshot_id, storage_options=STORE)
    return frame if where is None else frame.filter(where)
