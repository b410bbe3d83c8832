"""DuckDB over registered frames: the SQL alone, without Iceberg, so that rows may break a contract."""

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import polars as pl
import pytest

from pipeline.score.reference import tabulate
from pipeline.tables import TABLES, empty
from tests.sql import SQL
from tests.support.rows.filled import filled

Rows = pl.DataFrame | list[dict[str, Any]]
Select = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture(scope="session")
def select() -> Iterator[Select]:
    """Queries a database with these rows in its tables, none in the others, and every view."""
    with duckdb.connect() as con:

        def register(tables: dict[str, Rows]) -> None:
            for name in TABLES:
                rows = tables.get(name, empty(name))
                con.register(name, filled(name, *rows) if isinstance(rows, list) else rows)
            con.register("reference_scales", tables.get("reference_scales", tabulate([])))

        def run(sql: str, **tables: Rows) -> list[tuple[Any, ...]]:
            register(tables)
            return con.execute(sql).fetchall()

        register({})
        for path in sorted((SQL / "views").glob("*.sql")):
            con.execute(path.read_text(encoding="utf-8"))
        yield run
