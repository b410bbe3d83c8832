"""The Iceberg catalog and its tables: open, create once, scan."""

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.exceptions import ValidationError as InvalidMetadata
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataV2
from sqlalchemy import insert, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from pipeline import settings
from pipeline.errors import BadInput, Missing, Retry
from pipeline.private import make_folder
from pipeline.tables import TABLES, empty
from pipeline.warehouse import alignment, checksums
from pipeline.warehouse.files import get_path, list_folder, open_store

log = logging.getLogger(__name__)
NAMESPACE = "undertone"
RECOVER = "run `undertone recover-catalog`"
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
}
for _column in ("source", "day", "origin", "step", "kind", "study"):
    PROPERTIES[f"write.metadata.metrics.column.{_column}"] = "truncate(16)"
# of a store that keeps the line open and sends nothing; polars' own limit is none, and a retry needs an end to begin
STORE = {"connect_timeout": "10s", "timeout": "120s"}
_SILENCE = {"s3.connect-timeout": "10", "s3.request-timeout": "120"}  # the same for pyiceberg
_IS_OURS = (IcebergTables.catalog_name == "undertone", IcebergTables.table_namespace == NAMESPACE)


class _Metadata(TableMetadataV2):
    """The metadata of a table, of which a deep copy is a shallow one, as nothing changes it in place.

    A transaction makes some twenty deep copies, with all states of the table: three quarters of the time of a write.
    """

    def __deepcopy__(self, memo: Any = None) -> "_Metadata":
        return self.model_copy()


class Catalog(SqlCatalog):
    """A catalog whose commits record the checksums of the files they add, and leave no metadata of a lost race."""

    def __init__(self, name: str, **properties: str) -> None:
        self._staged = threading.local()  # the metadata file that a commit of this thread has written
        super().__init__(name, **properties)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        """Commit; then record the checksums, which were computed before."""
        fresh = checksums.compute_added(table.io, updates)
        self._staged.location = None
        try:
            response = super().commit_table(table, requirements, updates)
        except (CommitFailedException, TableAlreadyExistsError):  # it is certain that it was not published
            if self._staged.location:
                table.io.delete(self._staged.location)
            raise
        if self._staged.location:
            fresh[get_path(self._staged.location)] = self._staged.checksum
            try:
                checksums.record(response.metadata.location, fresh)
            except OSError as error:  # the rows are published
                log.warning("%s: no checksums of this commit, the next upkeep adds them: %s", table.name()[-1], error)
        return response

    def load_table(self, identifier: Any) -> Table:
        """Load a table with metadata that are cheap to copy."""
        table = super().load_table(identifier)
        if type(table.metadata) is TableMetadataV2:
            table.metadata = _Metadata.model_construct(table.metadata.model_fields_set, **dict(table.metadata))
        return table

    def _write_metadata(self, metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:  # type: ignore[override]
        super()._write_metadata(metadata, io, metadata_path)
        self._staged.location = metadata_path
        self._staged.checksum = checksums.compute(*open_store(metadata_path))

    def set_states(self, states: Mapping[str, tuple[str | None, str]]) -> None:
        """Make the catalog name other metadata files, in one transaction: by table the present address and a new."""
        with Session(self.engine) as session, session.begin():
            for name, (before, after) in states.items():
                if before is None:
                    session.execute(insert(IcebergTables).values(**self._create_table_row(NAMESPACE, name, after)))
                    continue
                is_unchanged = (IcebergTables.table_name == name, IcebergTables.metadata_location == before)
                change = update(IcebergTables).where(*_IS_OURS, *is_unchanged).values(metadata_location=after)
                result: Any = session.execute(change)
                if result.rowcount < 1:
                    raise Retry(f"another writer changed {name} meanwhile; nothing was changed")

    @staticmethod
    def _delete_old_metadata(io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:
        """Delete the metadata files that fell off the log; upkeep or a purge may have been faster."""
        for location in {e.metadata_file for e in base.metadata_log} - {e.metadata_file for e in metadata.metadata_log}:
            with suppress(FileNotFoundError):
                io.delete(location)


_OPEN: dict[tuple[str, str, bool], tuple[int, Catalog]] = {}  # one a process: opening costs a connection pool


def open_catalog(*, create_tables: bool = False) -> Catalog:
    """Open the catalog, again if its SQLite file is another; only `create` makes its tables: others would race."""
    uri, location = settings.catalog_uri(), _location()
    if not (inode := _inode()) and not create_tables:
        raise Missing(f"there is no catalog at {_format_address()}; {_advise()}")
    before, current = _OPEN.get((uri, location, create_tables), (0, None))
    if current is not None:
        if before == inode:
            return current
        current.engine.dispose()
    props = {"uri": uri, "warehouse": location, "init_catalog_tables": str(create_tables).lower()}
    current = Catalog("undertone", **props, **build_properties())
    _OPEN[uri, location, create_tables] = (_inode(), current)
    return current


def _inode() -> int:
    """Identify the catalog's SQLite file among others of its name: 0 if there is none, -1 for a server."""
    file = locate_sqlite()
    if file is None:
        return -1
    return file.stat().st_ino if file.exists() else 0


def build_properties() -> dict[str, str]:
    """How pyiceberg reaches the object store."""
    # without a region each process asks the public cloud for it first, which behind a firewall takes seconds
    options = {"s3.endpoint": settings.aws_endpoint(), "s3.region": settings.aws_region()}
    return _SILENCE | {name: value for name, value in options.items() if value}


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
    for _, current in _OPEN.values():
        current.engine.dispose()
    _OPEN.clear()


def create() -> list[str]:
    """Create the catalog and each table of `TABLES` that is absent, and align the others; return the names created.

    Raises:
        BadInput: the catalog is damaged, or lacks tables whose files are there; nothing was created.
    """
    _location()  # refused before a folder is made
    existing = list_registered()
    absent = [name for name in TABLES if name not in existing]
    if orphaned := [name for name in absent if _holds_rows(name)]:
        raise BadInput(
            f"the catalog at {_format_address()} does not know {len(orphaned)} tables whose files are in "
            f"{settings.warehouse()} ({', '.join(orphaned[:5])}{', …' if len(orphaned) > 5 else ''}); nothing was "
            "created. Run `undertone recover-catalog` to get them back, or set UNDERTONE_WAREHOUSE to another place"
        )
    make_folder(settings.home())
    if "://" not in settings.warehouse():
        make_folder(Path(settings.warehouse()))
    current = open_catalog(create_tables=True)
    current.create_namespace_if_not_exists(NAMESPACE)
    align()
    for name in absent:
        columns = empty(name).to_arrow().schema
        with (
            suppress(TableAlreadyExistsError, CommitFailedException),  # another process was faster
            current.create_table_transaction(f"{NAMESPACE}.{name}", schema=columns, properties=PROPERTIES) as tx,
        ):
            with tx.update_spec() as spec:
                for column in TABLES[name].partitions:
                    spec.add_identity(column)
            alignment.align(tx, name)
    return absent


def align() -> list[str]:
    """Align tables with their contracts, but for columns that hold nulls or cannot be read; return messages."""
    messages, aligned = list[str](), list[str]()
    for name in sorted(list_registered().keys() & TABLES.keys()):
        handle = load_table(name)
        if not (differences := alignment.compare(handle)):
            continue
        nullable = alignment.find_nulls(handle, scan_state(handle))
        with suppress(CommitFailedException), handle.transaction() as change:
            alignment.align(change, name, nullable)
        if added := [f"{name}.{row['part']}" for row in differences if row["iceberg"] == "absent"]:
            messages.append(f"added the columns {', '.join(added)}")
        if alignment.compare(handle) != differences:
            aligned.append(name)
        if nullable:
            problem = f"{name}: {', '.join(nullable)}: some rows have no value or cannot be read, so it stays optional"
            messages.append(f"{problem}; import or build these rows again, then run `undertone init`")
    if aligned:
        messages += [f"documentation, required columns, key and order are as in the contracts: {', '.join(aligned)}"]
    return messages


def load_table(name: str) -> Table:
    """Load the table's newest state; do it again for every attempt."""
    if name not in TABLES:
        raise Missing(f"no table {name!r}; there are {', '.join(TABLES)}")
    try:
        with suppress(FileNotFoundError):  # a commit or an upkeep may remove the file between its look-up and its read
            return open_catalog().load_table(f"{NAMESPACE}.{name}")
        return open_catalog().load_table(f"{NAMESPACE}.{name}")
    except NoSuchTableError as error:
        raise Missing(f"the catalog at {_format_address()} has no table {name}; {_advise()}") from error
    except SQLAlchemyError as error:
        raise _translate(error) from None  # its text may hold a password
    except FileNotFoundError as error:  # damage, which asking again does not mend
        raise BadInput(f"{name}: the catalog names a metadata file that is not there: {error}; {RECOVER}") from error
    except (InvalidMetadata, ValueError) as error:
        place = list_registered()[name]
        raise BadInput(f"{name}: the metadata file {place} is damaged ({type(error).__name__}); {RECOVER}") from error
    except OSError as error:
        raise Retry(f"{name}: the object store does not answer: {error}") from error


def _translate(error: SQLAlchemyError) -> BadInput | Missing | Retry:
    if any(sign in str(error) for sign in ("no such table", "unable to open database", "UndefinedTable")):
        return Missing(f"there is no catalog at {settings.home()}; {_advise()}")
    if any(sign in str(error) for sign in ("not a database", "malformed", "disk I/O error")):
        return BadInput(f"the catalog at {_format_address()} is damaged; {RECOVER}")
    return Retry(f"the catalog does not answer: {type(error).__name__}")


def _advise() -> str:
    return RECOVER if any(map(_holds_rows, TABLES)) else "run `undertone init`"


def locate_sqlite() -> Path | None:
    """The file of the catalog; None for a database server."""
    url = make_url(settings.catalog_uri())
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def _format_address() -> str:
    return str(locate_sqlite() or make_url(settings.catalog_uri()).render_as_string())


def locate(name: str) -> dict[str, Any]:
    """Locate catalog, store and current state of a table for other programs, without a password."""
    url = make_url(settings.catalog_uri())._replace(password=None).difference_update_query(["password", "sslpassword"])
    server = url._replace(drivername=url.get_backend_name(), username=None).render_as_string()
    return {
        "uri": url.render_as_string(),
        "jdbc": f"jdbc:sqlite:{locate_sqlite()}" if locate_sqlite() else f"jdbc:{server}",
        "user": url.username,
        "warehouse": _location(),
        "state": load_table(name).metadata_location,
        "store": {option: value for option, value in build_properties().items() if option not in _SILENCE},
    }


def list_registered() -> dict[str, str]:
    """The metadata file of each table that the catalog knows; none where there is no catalog, and none is made."""
    file = locate_sqlite()
    if file is not None and (not file.exists() or not file.stat().st_size):
        return {}
    rows = select(IcebergTables.table_name, IcebergTables.metadata_location).where(*_IS_OURS)
    try:
        with Session(open_catalog().engine) as session:
            return {name: str(location) for name, location in session.execute(rows)}
    except SQLAlchemyError as fault:
        if isinstance(error := _translate(fault), Missing):
            return {}
        raise error from None


def locate_table(name: str) -> str:
    """Address of the folder in which `create` makes a table."""
    return f"{_location()}/{NAMESPACE}/{name}"


def _holds_rows(name: str) -> bool:
    """Test if files of rows lie where the table would be made. Metadata alone may be of a creation in progress."""
    system, root = open_store(locate_table(name))
    try:
        return bool(list_folder(system, f"{root}/data"))
    except OSError as error:
        raise Retry(f"{name}: the object store does not answer: {error}") from error


def get_snapshot_id(name: str) -> int | None:
    """Id of the table's current snapshot, or None for a table never written."""
    current = load_table(name).current_snapshot()
    return current.snapshot_id if current else None


def scan(name: str, condition: pl.Expr | None = None, snapshot_id: int | None = None) -> pl.LazyFrame:
    """The rows of a table (of one snapshot, if given) that fulfil a condition, as a lazy frame."""
    return scan_state(load_table(name), condition, snapshot_id)


def scan_widened(name: str) -> pl.LazyFrame:
    """The rows of a table; columns that a table of an earlier version lacks are empty."""
    handle = load_table(name)
    columns = handle.schema().column_names
    lacking = [pl.lit(None, kind).alias(column) for column, kind in empty(name).schema.items() if column not in columns]
    return scan_state(handle).with_columns(lacking)


def scan_state(handle: Table, condition: pl.Expr | None = None, snapshot_id: int | None = None) -> pl.LazyFrame:
    """The rows of one loaded state of a table."""
    if snapshot_id is not None and handle.snapshot_by_id(snapshot_id) is None:
        cause = "the state that this run began with is gone, perhaps by an erasure"
        raise Missing(f"{handle.name()[-1]}: {cause}: run the day again")
    frame = pl.scan_iceberg(handle, snapshot_id=snapshot_id, storage_options=STORE)
    return frame if condition is None else frame.filter(condition)
