"""The documented DDL says what the contracts say, and all SQL is portable."""

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from pipeline import warehouse
from pipeline.tables import TABLES, empty
from tests.sql import SQL

each_file = pytest.mark.parametrize("path", sorted(SQL.rglob("*.sql")), ids=lambda p: f"{p.parent.name}/{p.stem}")


def test_there_is_one_file_a_table() -> None:
    """Every table is documented and nothing else is."""
    assert sorted(p.stem for p in (SQL / "tables").glob("*.sql")) == sorted(TABLES)


def test_contract_ddl_and_iceberg_metadata_agree(tables: Path) -> None:
    """Names, types, nullability and descriptions of columns, docstring, key, partitions and sort order."""
    assert warehouse.compare_contracts() == []


def test_the_ddl_has_the_columns_in_the_order_of_the_contract() -> None:
    """Which a comparison by name does not show."""
    for name in TABLES:
        (statement,) = sqlglot.parse((SQL / "tables" / f"{name}.sql").read_text(encoding="utf-8"), read="duckdb")
        assert statement is not None
        assert [column.name for column in statement.find_all(exp.ColumnDef)] == empty(name).columns


@each_file
def test_all_sql_transpiles_to_trino(path: Path) -> None:
    """A team's Trino can run each statement: sqlglot knows how to write it, and what it wrote parses as Trino's.

    `group by all` passes through sqlglot as it is, and Trino does not know it. The first line of every file is a
    comment in whole words.
    """
    text = path.read_text(encoding="utf-8")
    assert text.startswith("-- ")
    for statement in sqlglot.parse(text, read="duckdb"):
        assert statement is not None
        sql = statement.sql("trino", unsupported_level=sqlglot.ErrorLevel.RAISE)
        assert sqlglot.parse_one(sql, read="trino") is not None
        assert not statement.find(exp.Command), "sqlglot did not understand the statement"
        assert not [group for group in statement.find_all(exp.Group) if group.args.get("all")]
