"""The documented DDL says what the contracts say, and all SQL is portable."""

from pathlib import Path

import polars as pl
import pytest
import sqlglot
from sqlglot import exp

from pipeline.tables import TABLES

SQL = Path(__file__).parents[2] / "sql"
ALL = sorted(SQL.rglob("*.sql"))
TYPES = {
    "VARCHAR": pl.String(),
    "DATE": pl.Date(),
    "BIGINT": pl.Int64(),
    "DOUBLE": pl.Float64(),
    "BOOLEAN": pl.Boolean(),
    "TIMESTAMP WITH TIME ZONE": pl.Datetime("us", "UTC"),
    "ARRAY(VARCHAR)": pl.List(pl.String()),
    "ARRAY(BIGINT)": pl.List(pl.Int64()),
    "ARRAY(DOUBLE)": pl.List(pl.Float64()),
}


def ddl(name: str) -> exp.Create:
    """The parsed statement of a table's file."""
    (statement,) = sqlglot.parse((SQL / "tables" / f"{name}.sql").read_text(encoding="utf-8"), read="duckdb")
    assert isinstance(statement, exp.Create)
    return statement


def test_there_is_one_file_a_table() -> None:
    """Every table is documented and nothing else is."""
    assert sorted(p.stem for p in (SQL / "tables").glob("*.sql")) == sorted(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_the_ddl_equals_the_contract(name: str) -> None:
    """Names, order, types and nullability of the columns are those of `pipeline.tables`."""
    statement = ddl(name)
    assert statement.this.this.name == name
    documented = [
        (c.name, TYPES[c.kind.sql("trino")], c.find(exp.NotNullColumnConstraint) is None)
        for c in statement.find_all(exp.ColumnDef)
    ]
    columns = TABLES[name].schema.columns()
    schema = TABLES[name].schema.create_empty().schema
    assert documented == [(c, schema[c], column.nullable) for c, column in columns.items()]


@pytest.mark.parametrize("name", TABLES)
def test_the_comments_equal_the_contract(name: str) -> None:
    """The file's first lines give the contract's docstring, key and partitions, and each column its description."""
    lines = (SQL / "tables" / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    table = TABLES[name]
    key = ", ".join(table.key) or "none"
    assert lines[0] == f"-- {(table.schema.__doc__ or '').splitlines()[0]}"
    assert lines[1] == f"-- Key: {key}. Partitioned by {', '.join(table.partitions)}."
    told = {line.split()[0]: line.split(" -- ")[1] for line in lines[3:-1]}
    assert told == {c: column.description for c, column in table.schema.columns().items()}


@pytest.mark.parametrize("path", ALL, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_all_sql_transpiles_to_trino(path: Path) -> None:
    """A team's Trino can run each statement: sqlglot knows how to write it, and what it wrote parses as Trino's."""
    for statement in sqlglot.parse(path.read_text(encoding="utf-8"), read="duckdb"):
        assert statement is not None
        written = statement.sql("trino", unsupported_level=sqlglot.ErrorLevel.RAISE)
        assert sqlglot.parse_one(written, read="trino") is not None
        assert not statement.find(exp.Command), "sqlglot did not understand the statement"


@pytest.mark.parametrize("path", ALL, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_nothing_is_grouped_by_all(path: Path) -> None:
    """`group by all` passes through sqlglot as it is, and Trino does not know it."""
    for statement in sqlglot.parse(path.read_text(encoding="utf-8"), read="duckdb"):
        assert statement is not None
        assert not [g for g in statement.find_all(exp.Group) if g.args.get("all")]


@pytest.mark.parametrize("path", ALL, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_each_file_begins_with_what_it_is_for(path: Path) -> None:
    """The first line of every SQL file is a comment in whole words."""
    assert path.read_text(encoding="utf-8").startswith("-- ")
