"""Rows of the tables of a SQLite file. The file is a stranger's: nothing in it is run."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pipeline.errors import BadInput
from pipeline.io.formats.chunk import Chunk, Row, Source, check_header, chunk_rows
from pipeline.io.lines import LIMITS, Limits

ENDINGS = (".db", ".sqlite", ".sqlite3")
_VIRTUAL = 2  # a column that is computed when it is read
_ROW_BYTES = 64


def list_tables(path: Path) -> dict[str, set[str]]:
    """Tables of a SQLite file with their columns; empty for a file of another kind."""
    if path.suffix.lower() not in ENDINGS or not path.is_file() or not path.stat().st_size:
        return {}
    with _open_database(path, LIMITS) as connection:
        tables = [name for name, kind in _query_tables(connection) if kind == "table"]
        columns = {table: _query_columns(connection, table).items() for table in tables}
    return {table: {name for name, is_stored in flags if is_stored} for table, flags in columns.items()}


def read(source: Source) -> Iterator[Chunk]:
    """Chunks of each table; views, virtual tables and computed columns are left out."""
    with _open_database(source.path, source.limits) as connection:
        for table, kind in _query_tables(connection):
            if kind in ("view", "virtual"):
                source.ignore(f"the {kind} {'table ' * (kind == 'virtual')}{table!r:.60}")
            if kind != "table":
                continue
            columns = _query_columns(connection, table)
            names = [name for name, is_stored in columns.items() if is_stored]
            for name in columns.keys() - names:
                source.ignore(f"the computed column {name!r:.60} of table {table!r:.60}")
            if names:
                check_header(names, f"{source.path}, table {table!r:.60}")
                yield from chunk_rows(source, table, _query_rows(source, connection, table, names), names)


def _query_tables(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    listing = connection.execute("select name, type from pragma_table_list where schema = 'main' order by name")
    return [(str(name), kind) for name, kind in listing.fetchall() if not str(name).startswith("sqlite_")]


def _query_columns(connection: sqlite3.Connection, table: str) -> dict[str, bool]:
    columns = connection.execute(f"pragma table_xinfo({escape_name(table)})")
    return {str(name): hidden != _VIRTUAL for _, name, _, _, _, _, hidden in columns}


def _query_rows(source: Source, connection: sqlite3.Connection, table: str, names: list[str]) -> Iterator[Row]:
    columns = ", ".join(map(escape_name, names))
    cursor = connection.execute(f"select {columns} from {escape_name(table)}")  # noqa: S608  # names of its own, quoted
    for number, values in enumerate(cursor, 1):
        byte_count = sum(len(value) for value in values if isinstance(value, str | bytes))
        source.count_unpacked(byte_count + _ROW_BYTES)
        yield (number, dict(zip(names, values, strict=True)), byte_count)


@contextmanager
def _open_database(path: Path, limits: Limits) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.line)  # of a value or a row, in bytes
        try:
            # its schema may call functions, and its pages may be broken
            connection.executescript("pragma trusted_schema = off; pragma cell_size_check = on; pragma mmap_size = 0")
            yield connection
        except (sqlite3.Error, UnicodeDecodeError) as why:  # names in its schema may be no UTF-8
            raise BadInput(f"{path}: not a readable SQLite file: {why}") from why


def escape_name(name: str) -> str:
    """Escape the name of a table or column by quotation marks."""
    return '"' + name.replace('"', '""') + '"'
