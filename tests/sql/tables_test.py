"""The documented DDL says what the contracts say, and all SQL is portable."""

from pathlib import Path

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from pipeline.tables import TABLES, empty
from tests.sql import SQL

each_file = pytest.mark.parametrize("path", sorted(SQL.rglob("*.sql")), ids=lambda p: f"{p.parent.name}/{p.stem}")


def test_there_is_one_file_a_table() -> None:
    """Every table is documented and nothing else is."""
    assert sorted(p.stem for p in (SQL / "tables").glob("*.sql")) == sorted(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_the_ddl_equals_the_contract(name: str) -> None:
    """Columns, types, nullability, key, partitions and descriptions of the file are those of `pipeline.tables`."""
    table, text = TABLES[name], (SQL / "tables" / f"{name}.sql").read_text(encoding="utf-8")
    columns = table.schema.columns()
    with duckdb.connect() as con:
        con.execute(text)
        con.register("contract", empty(name))
        documented, types = (con.execute(f"describe {table}").fetchall() for table in (name, "contract"))
    expected = [(c, kind, "YES" if columns[c].nullable else "NO") for c, kind, *_ in types]
    assert [row[:3] for row in documented] == expected
    lines = text.splitlines()
    key = ", ".join(table.key) or "none"
    assert lines[0] == f"-- {(table.schema.__doc__ or '').splitlines()[0]}"
    assert lines[1] == f"-- Key: {key}. Partitioned by {', '.join(table.partitions)}."
    descriptions = {line.split()[0].strip('"'): line.split(" -- ")[1] for line in lines[3:-1]}
    assert descriptions == {c: column.description for c, column in columns.items()}


@each_file
def test_all_sql_transpiles_to_trino(path: Path) -> None:
    """Each statement parses as Trino's, which does not know `group by all`; a comment begins the file."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("-- ")
    for statement in sqlglot.parse(text, read="duckdb"):
        assert statement is not None
        sql = statement.sql("trino", unsupported_level=sqlglot.ErrorLevel.RAISE)
        assert sqlglot.parse_one(sql, read="trino") is not None
        assert not statement.find(exp.Command), "sqlglot did not understand the statement"
        assert not [group for group in statement.find_all(exp.Group) if group.args.get("all")]
