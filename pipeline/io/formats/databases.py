"""Rows of the tables of a SQLite file. The file is a stranger's: nothing in it is run."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import BadInput
from pipeline.io.formats.chunk import Chunk, Row, Source, check_header, chunk_rows
from pipeline.io.lines import LIMITS, Limits

ENDINGS = (".db", ".sqlite", ".sqlite3")
_VIRTUAL = 2  # a column that is computed when it is read
_ROW_BYTES = 64


_LISTING = "select name, type from pragma_table_list where schema = 'main' order by name"


def list_tables(path: Path) -> dict[str, set[str]]:
    """Tables of a SQLite file with their columns; empty for a file of another kind."""
    if path.suffix.lower() not in ENDINGS or not path.is_file() or not path.stat().st_size:
        return {}
    with _open_database(path) as connection:
        return {
            name: {column for column, is_stored in _query_columns(connection, name).items() if is_stored}
            for name, kind in _query_tables(connection)
            if kind == "table"
        }


def read(source: Source) -> Iterator[Chunk]:
    """Chunks of each table; views, virtual tables and computed columns are left out."""
    with _open_database(source.path, source.limits) as connection:
        for table, kind in _query_tables(connection):
            if kind in ("view", "virtual"):
                source.ignore(f"the {kind} {'table ' * (kind == 'virtual')}{table!r:.60}")
            elif kind == "table":
                yield from _read_table(source, connection, table)


def _read_table(source: Source, connection: sqlite3.Connection, table: str) -> Iterator[Chunk]:
    columns = _query_columns(connection, table)
    names = [name for name, is_stored in columns.items() if is_stored]
    for name in columns.keys() - names:
        source.ignore(f"the computed column {name!r:.60} of table {table!r:.60}")
    if names:
        check_header(names, f"{source.path}, table {table!r:.60}")
        yield from chunk_rows(source, table, _query_rows(source, connection, table, names), names)


def _query_tables(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Name and kind of each table, SQLite's own aside."""
    rows = connection.execute(_LISTING).fetchall()
    return [(str(row["name"]), row["type"]) for row in rows if not str(row["name"]).startswith("sqlite_")]


def _query_columns(connection: sqlite3.Connection, table: str) -> dict[str, bool]:
    """The columns of a table, and whether they are stored."""
    rows = connection.execute(f"pragma table_xinfo({_quote(table)})")
    return {str(row["name"]): row["hidden"] != _VIRTUAL for row in rows}


def _query_rows(source: Source, connection: sqlite3.Connection, table: str, names: list[str]) -> Iterator[Row]:
    columns = ", ".join(map(_quote, names))
    cursor = connection.execute(f"select {columns} from {_quote(table)}")  # noqa: S608  # names of its own, quoted
    cursor.row_factory = None
    for number, values in enumerate(cursor, 1):
        byte_count = sum(len(value) for value in values if isinstance(value, str | bytes))
        source.count_unpacked(byte_count + _ROW_BYTES)
        yield Row(number, dict(zip(names, values, strict=True)), byte_count)


@contextmanager
def _open_database(path: Path, limits: Limits = LIMITS) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.line)  # of a value or a row, in bytes
    try:
        # its schema may call functions, and its pages may be broken
        connection.executescript("pragma trusted_schema = off; pragma cell_size_check = on; pragma mmap_size = 0")
        yield connection
    except (sqlite3.Error, UnicodeDecodeError) as why:  # names in its schema may be no UTF-8
        raise BadInput(f"{path}: not a readable SQLite file: {why}") from why
    finally:
        connection.close()


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
