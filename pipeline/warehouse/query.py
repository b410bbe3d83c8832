"""SQL over the tables: DuckDB in process, with the views of `sql/views/` and the checks of `sql/checks/`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import polars as pl

from pipeline import settings
from pipeline.errors import BadInput, Missing
from pipeline.slices import parse_day
from pipeline.tables import TABLES
from pipeline.warehouse import catalog

MEMORY = "2GB"
_CATALOG = {"show", "information_schema", "pg_catalog", "sqlite_master"}


def _folder() -> Path:
    """The `sql` folder: beside the package in a checkout, inside it in an installed wheel."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package.parent / "sql", package / "sql"):
        if (folder / "views").is_dir():
            return folder
    raise Missing("the folder sql/ was not installed with the package; reinstall undertone")


def connect(sql: str = "") -> duckdb.DuckDBPyConnection:
    """A connection that sees every table by name, as of now, and every view. Use it alone: cursors do not see them.

    Args:
        sql: what will be asked. Loading a table costs reads of the catalog and the store; if this names some tables or
            views, those and what they are made of are all that is loaded.
    """
    spill = settings.scratch("duckdb") / uuid4().hex  # by default below the folder that the process stands in
    spill.parent.mkdir(parents=True, exist_ok=True)
    con = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(spill)})
    # named NN_name.sql, so that each comes after those it reads
    paths = sorted((_folder() / "views").glob("*.sql"))
    views = {path.stem.partition("_")[2]: path.read_text(encoding="utf-8") for path in paths}
    needed = _needed(sql, views)
    for name in TABLES:
        if name in needed:
            # a LazyFrame pushes filters and columns down, and stays right after renames, unlike read_parquet over files
            con.register(name, catalog.scan(name))
    for name, made in views.items():
        if name in needed:
            con.execute(made)
    return con


def _needed(sql: str, views: dict[str, str]) -> set[str]:
    """Tables and views whose names are words of the SQL, and of the views among them; all if it names none or asks for
    what there is.
    """
    known, words = {*TABLES, *views}, _words(sql)
    if words & _CATALOG or any(word.startswith("duckdb_") for word in words):
        return known
    for name in reversed(views):
        if name in words:
            words |= _words(views[name])
    return words & known or known


def _words(sql: str) -> set[str]:
    return set(re.findall(r"\w+", sql.lower()))


def query(sql: str, values: Sequence[Any] = ()) -> pl.DataFrame:
    """The rows of a SQL query over tables and views; `?` in it stand for `values`."""
    try:
        found = connect(sql).sql(sql, params=list(values))
        if found is None:  # a statement that gives no rows
            raise BadInput("the query gives no rows; write a select")
        rows = found.to_arrow_table()
    except duckdb.Error as why:
        raise BadInput(f"the query failed: {why}") from why
    frame = pl.from_arrow(rows)
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def checks() -> list[str]:
    """Names of the data checks, one SQL file each."""
    return sorted(path.stem for path in (_folder() / "checks").glob("*.sql"))


def run_check(name: str, day: str | None = None, limit: int = 5) -> list[dict[str, Any]]:
    """Rows that violate the check, of one day or of all, at most `limit`; none means it holds."""
    if name not in checks():
        raise BadInput(f"no check {name!r}; there are {', '.join(checks())}")
    sql = (_folder() / "checks" / f"{name}.sql").read_text(encoding="utf-8")
    found = query(sql)
    if day is not None and "day" in found.columns:  # some checks are about no day
        found = found.filter(pl.col("day") == parse_day(day))
    return found.head(limit).to_dicts()
