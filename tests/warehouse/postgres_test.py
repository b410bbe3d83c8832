"""The catalog on PostgreSQL, by one setting. Skipped where PostgreSQL's programs are not installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from pipeline import warehouse
from pipeline.errors import BadInput, Missing
from tests.support.rows.filled import DAY, filled
from tests.support.rows.held import texts, write
from tests.support.servers.postgres import server

__all__ = ["server"]  # a fixture

pytest.importorskip("psycopg2", reason="the extra `distributed` is not installed")


def drop_tables(address: str) -> None:
    """Drop the catalog's own tables."""
    engine = sa.create_engine(address)
    with engine.begin() as connection:
        connection.execute(sa.text("drop table iceberg_tables, iceberg_namespace_properties"))
    engine.dispose()


@pytest.fixture
def on_postgres(server: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A warehouse whose catalog lies in PostgreSQL."""
    monkeypatch.setenv("UNDERTONE_CATALOG", server)
    warehouse.create()
    yield
    warehouse.close()
    drop_tables(server)


def test_one_setting_is_enough(on_postgres: None, home: Path) -> None:
    """Created, written twice, read and queried, with no SQLite catalog in the home."""
    rows = filled("comments", {"comment_id": "1"}, {"comment_id": "2"})
    for _ in range(2):
        assert warehouse.overwrite("comments", warehouse.make_slice(day=DAY), rows) == 2
    assert warehouse.query("select count(*) as n from comments")["n"][0] == 2
    assert warehouse.maintain("comments")["rows"] == 2
    assert warehouse.create() == []
    assert not (home / "catalog.db").exists()


def test_tables_that_the_server_lost_are_recovered(on_postgres: None, server: str) -> None:
    """With the catalog's own tables dropped nothing is created over the files, and a recovery has every row."""
    write("one")
    drop_tables(server)
    with pytest.raises(BadInput, match="recover-catalog"):
        warehouse.create()
    with pytest.raises(Missing, match="recover-catalog"):
        warehouse.scan("comments")
    assert {row.action for row in warehouse.recover()} == {"registered"}
    assert texts() == ["one"]
    assert warehouse.back_up() is None
