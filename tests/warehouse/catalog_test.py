"""The catalog: set up once, absent before, pinned when asked."""

from copy import copy
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl
import pytest

from pipeline import tables as contracts
from pipeline import warehouse
from pipeline.commands import data
from pipeline.errors import BadInput, Missing
from pipeline.tables import TABLES, empty
from pipeline.warehouse import alignment, catalog
from pipeline.warehouse.files import get_version
from tests.support.rows.filled import DAY, digest, filled
from tests.support.rows.held import data_files, texts, write


def test_a_table_comes_back_with_the_types_of_its_contract(tables: Path) -> None:
    """What was written to a fresh table is read back with the same columns, types and values."""
    for name in TABLES:
        frame = filled(name, {})
        warehouse.overwrite(name, {c: frame[c][0] for c in TABLES[name].partitions}, frame)
        assert warehouse.scan(name).collect().equals(frame), name
        assert warehouse.scan(name).collect_schema() == empty(name).schema
    assert warehouse.compare_contracts() == []


def test_create_makes_every_table_once(home: Path) -> None:
    """Before it all is Missing and `init` named; the first call creates all tables, a second none, and rows stay."""
    with pytest.raises(Missing, match="undertone init"):
        warehouse.scan("comments")
    with pytest.raises(Missing, match="undertone init"):
        warehouse.overwrite("comments", {"source": "weibo"}, empty("comments"))
    assert not home.exists()
    home.mkdir()
    with pytest.raises(Missing, match="undertone init"):
        warehouse.get_snapshot_id("comments")
    assert warehouse.create() == list(TABLES)
    assert warehouse.get_snapshot_id("comments") is None
    write("one")
    assert warehouse.create() == []
    assert texts() == ["one"]
    warehouse.close()


def test_a_table_that_is_not_there_is_named(tables: Path) -> None:
    """A catalog that lacks a table is Missing, and the message of an unknown table lists those there are."""
    catalog.open_catalog().drop_table("undertone.pairs")
    with pytest.raises(Missing, match="undertone init"):
        warehouse.query("select 1")
    assert warehouse.create() == ["pairs"]
    with pytest.raises(Missing, match=r"no table 'coments'; there are .*comments"):
        warehouse.scan("coments")


def test_a_snapshot_pins_what_is_read(tables: Path) -> None:
    """A scan of an earlier snapshot sees the rows of then, a plain scan those of now."""
    assert warehouse.get_snapshot_id("comments") is None
    write("before")
    pinned = warehouse.get_snapshot_id("comments")
    frame = warehouse.scan("comments", snapshot_id=pinned)
    write("after", "more")
    assert frame.collect()["text"].to_list() == ["before"]
    assert warehouse.scan("comments", snapshot_id=pinned).collect()["text"].to_list() == ["before"]
    assert texts() == ["after", "more"]
    assert warehouse.scan("comments", pl.col("text") == "more").collect().height == 1
    warehouse.purge("comments")
    with pytest.raises(Missing, match="comments: the state that this run began with is gone"):
        warehouse.scan("comments", snapshot_id=pinned)


def test_a_home_that_addresses_cannot_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iceberg keeps files as URIs, so a path with #, ? or % would be cut or read as another one: it is BadInput."""
    for sign in ("#", "?", "%41"):
        monkeypatch.setenv("UNDERTONE_HOME", str(tmp_path / f"a{sign}b"))
        with pytest.raises(BadInput, match="UNDERTONE_HOME"):
            warehouse.create()
    assert list(tmp_path.iterdir()) == []


def make_earlier(monkeypatch: pytest.MonkeyPatch, name: str, frame: pl.DataFrame, *new: str) -> None:
    """Create tables as earlier versions did, this one with these rows, without metadata and without the new columns."""
    earlier: Any = {n: copy(c) for n, c in TABLES[name].schema.columns().items() if n not in new}
    for column in earlier.values():
        column.nullable = True
    with monkeypatch.context() as patch:
        patch.setitem(contracts.TABLES, name, TABLES[name]._replace(schema=type("Earlier", (dy.Schema,), earlier)))
        patch.setattr(alignment, "align", lambda *_: None)
        patch.setattr(alignment, "compare", lambda _: [])
        warehouse.create()
        warehouse.overwrite(name, {c: frame[c][0] for c in TABLES[name].partitions}, frame.drop(new))


def test_tables_of_an_earlier_version_are_aligned(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`init` adds columns, empty in old rows, and metadata in one commit; new rows have them, and keep their order."""
    new = ["revision", "input_tokens", "output_tokens", "finish_reason"]
    row = filled("completions", {"response": "old"})
    make_earlier(monkeypatch, "completions", row, *new)
    before, parts = warehouse.load_table("completions"), [row["part"] for row in warehouse.compare_contracts()]
    assert {"response", "revision", "(documentation)", "(key)", "(sort order)"} <= {*parts}
    data.init()
    message = " ".join(capsys.readouterr().err.split())
    assert f"added the columns {', '.join(f'completions.{name}' for name in new)}" in message
    assert warehouse.scan("completions").collect().equals(row)
    after = warehouse.load_table("completions")
    assert after.metadata.snapshots == before.metadata.snapshots
    assert get_version(after.metadata_location) == get_version(before.metadata_location) + 1
    assert [field.name for field in after.schema().fields if field.optional] == new
    assert warehouse.compare_contracts() == warehouse.create() == []
    assert warehouse.load_table("completions").metadata_location == after.metadata_location  # aligned once
    more = filled("completions", *({"completion_id": digest(n, 64), "revision": n, "source": "zhihu"} for n in "3142"))
    warehouse.overwrite("completions", {"source": "zhihu"}, more)
    assert warehouse.scan("completions", pl.col("source") == "zhihu").collect().equals(more)
    assert warehouse.query("select count(revision) as n from completions")["n"].to_list() == [4]
    warehouse.close()


@pytest.mark.parametrize("damage", ["null", "no file"])
def test_a_column_with_nulls_stays_optional(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    """`init` names it, aligns all else, and makes it required once the rows are whole."""
    rows = filled("tokens", {}, {"text_hash": digest("b", 32)})
    uncertain = ["tokens", "tokenizer"]
    make_earlier(
        monkeypatch, "tokens", rows.with_columns(pl.when(text_hash=rows["text_hash"][0]).then(pl.col(uncertain)))
    )
    if damage == "no file":
        data_files("tokens")[0].unlink()
        uncertain = rows.columns
    data.init()
    assert f"tokens: {', '.join(uncertain)}: some rows have no value" in " ".join(capsys.readouterr().err.split())
    assert [row["part"] for row in warehouse.compare_contracts()] == [*uncertain, "(key)"]
    warehouse.overwrite("tokens", {"day": DAY}, rows)
    data.init()
    assert warehouse.compare_contracts() == []
    warehouse.close()
