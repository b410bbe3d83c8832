"""DuckDB over registered frames: the SQL alone, without Iceberg, so that rows may break a contract."""

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest

from pipeline.tables import TABLES, empty

SQL = Path(__file__).parents[2] / "sql"

Open = Callable[..., duckdb.DuckDBPyConnection]


@pytest.fixture
def database() -> Iterator[Open]:
    """Opens a database with these frames as tables, the other tables empty, and every view."""
    opened = []

    def connect(**frames: pl.DataFrame) -> duckdb.DuckDBPyConnection:
        con = duckdb.connect()
        opened.append(con)
        for name in TABLES:
            con.register(name, frames.get(name, empty(name)))
        for path in sorted((SQL / "views").glob("*.sql")):
            con.execute(path.read_text(encoding="utf-8"))
        return con

    yield connect
    for con in opened:
        con.close()
