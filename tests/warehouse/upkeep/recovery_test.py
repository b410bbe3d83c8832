"""A catalog that is lost, damaged or older than its tables: no published row is lost, nothing is swept by mistake."""

import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException

from pipeline import warehouse
from pipeline.errors import BadInput, Missing, Retry
from pipeline.tables import TABLES
from pipeline.warehouse import catalog
from pipeline.warehouse.files import get_path
from pipeline.warehouse.upkeep import check, recovery, sweep
from tests.support.rows.catalogs import EAGER, actions, copy_catalog, list_states, recover_comments, write_dying
from tests.support.rows.held import age, list_files, texts, write


def empty(path: Path) -> None:
    """Leave nothing in the file."""
    path.write_bytes(b"")


def garble(path: Path) -> None:
    """Leave no SQLite file."""
    path.write_bytes(bytes(range(256)) * 40)


def cut(path: Path) -> None:
    """Leave the first half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def forget_tables(path: Path) -> None:
    """Leave a sound catalog that knows one table less."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("delete from iceberg_tables where table_name = 'comments'")


@pytest.mark.parametrize("harm", [Path.unlink, empty, garble, cut, forget_tables])
def test_a_lost_catalog_is_refused_and_made_again(tables: Path, harm: Callable[[Path], None]) -> None:
    """Nothing is created over lost tables; a recovery has every row, and upkeep without grace takes none of it."""
    write("one", "two")
    write("other", source="zhihu")
    harm(tables / "catalog.db")
    before = (list_files(), (tables / "catalog.db").exists())
    with pytest.raises(BadInput, match="recover-catalog"):
        warehouse.create()
    with pytest.raises((BadInput, Missing), match="recover-catalog"):
        warehouse.scan("comments")
    assert actions(dry_run=True)["comments"] == "registered"
    assert (list_files(), (tables / "catalog.db").exists()) == before
    assert actions()["comments"] == "registered"
    assert actions() == {}
    assert warehouse.create() == []
    age(tables)
    warehouse.maintain("comments", EAGER)
    assert texts() == ["one", "other", "two"]
    write("three", source="zhihu")
    assert texts() == ["one", "three", "two"]


def test_a_damaged_catalog_is_moved_aside(tables: Path) -> None:
    """Its bytes stay beside the new one; the new one and its copies are sound."""
    write("one")
    garble(tables / "catalog.db")
    content = (tables / "catalog.db").read_bytes()
    with pytest.raises(BadInput, match="damaged"):
        warehouse.back_up()
    warehouse.recover()
    (aside,) = tables.glob("catalog.db.damaged-*")
    assert aside.read_bytes() == content
    assert warehouse.find_damage() is None


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize(
    ("harm", "step"), [(garble, "_move_aside"), (forget_tables, "back_up"), (garble, "set_states")]
)
def test_a_recovery_that_was_killed_is_repeated(
    tables: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None], step: str, is_after: bool
) -> None:
    """Ended before or after a step, the next recovery does the rest."""
    write("one")
    harm(tables / "catalog.db")
    owner: Any = catalog.Catalog if step == "set_states" else recovery
    work = getattr(owner, step)

    def kill(*given: Any) -> None:
        if is_after:
            work(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, kill)
        with pytest.raises(KeyboardInterrupt):
            warehouse.recover()
    warehouse.close()
    warehouse.recover()
    assert texts() == ["one"]


def test_a_race_that_was_lost_leaves_no_metadata(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata file of a commit that another was faster than is removed at once."""
    write("one")
    before = list_states()
    commit_table = catalog.SqlCatalog.commit_table

    def fail(*_: Any) -> None:
        raise CommitFailedException

    def commit_and_fail(*given: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(catalog.Session, "commit", fail)
            return commit_table(*given)

    with monkeypatch.context() as patch:
        patch.setattr(catalog.SqlCatalog, "commit_table", commit_and_fail)
        with pytest.raises(CommitFailedException):
            warehouse.load_table("comments").transaction().set_properties({"a": "b"}).commit_transaction()
    assert list_states() == before


def test_a_commit_that_was_never_published_is_not_recovered(tables: Path) -> None:
    """A writer that died with its metadata written, and was overtaken, is passed over and swept; the rows stay."""
    write("one")
    before = list_files()
    write_dying("never")
    unpublished = list_files() - before
    assert {path.suffix for path in unpublished} == {".parquet", ".avro", ".json"}
    assert texts() == ["one"]
    write("two")
    write("three", source="netease")
    (tables / "catalog.db").unlink()
    warehouse.recover()
    assert texts() == ["three", "two"]
    age(tables)
    warehouse.maintain("comments", EAGER)
    assert not unpublished & list_files()
    assert texts() == ["three", "two"]


@pytest.mark.parametrize("newer_count", [1, 3])
def test_a_catalog_older_than_its_tables_loses_nothing(
    tables: Path, caplog: pytest.LogCaptureFixture, newer_count: int
) -> None:
    """With an old copy upkeep keeps newer files, an erasure is refused, and a recovery takes the newest state."""
    write("one")
    restore = copy_catalog(tables)
    for number in range(newer_count):
        write("one", f"new {number}")
    restore()
    age(tables)
    assert texts() == ["one"]
    warehouse.maintain("comments", EAGER)
    assert f"does not know {newer_count} states" in caplog.text
    with pytest.raises(BadInput, match="older than the table"):
        warehouse.purge("comments")
    assert actions()["comments"] == "replaced"
    assert texts() == [f"new {newer_count - 1}", "one"]
    assert check.check("comments", footers=True).problems == []


def test_the_newest_whole_state_is_taken(tables: Path) -> None:
    """Where the newest state lacks a file, the one before is taken and that is noted; where none is whole, none."""
    write("one")
    lists = set(tables.rglob("comments/metadata/snap-*.avro"))
    write("two", source="zhihu")
    for path in set(tables.rglob("comments/metadata/snap-*.avro")) - lists:
        path.unlink()
    (tables / "catalog.db").unlink()
    row = recover_comments()
    assert (row.action, row.rows) == ("registered", 1)
    assert "of 2 rows, manifest list" in row.note
    assert texts() == ["one"]
    for path in lists:
        path.unlink()
    (tables / "catalog.db").unlink()
    row = recover_comments()
    assert row.action == "lost"
    assert "another table" not in row.note
    with pytest.raises(Missing, match="has no table comments"):
        warehouse.scan("comments")


def test_copies_of_the_catalog_are_private_and_few(tables: Path) -> None:
    """The last eight stay, readable by their owner alone; each opens as a catalog."""
    for _ in range(10):
        path = warehouse.back_up()
    copies = sorted((tables / "backups").iterdir())
    assert len(copies) == 8
    assert copies[-1] == path
    assert {stat.S_IMODE(copy.stat().st_mode) for copy in copies} == {0o600}
    assert stat.S_IMODE((tables / "backups").stat().st_mode) == 0o700
    with closing(sqlite3.connect(copies[0])) as connection:
        assert connection.execute("select count(*) from iceberg_tables").fetchone()[0] == len(TABLES)


def test_a_reader_outlives_the_removal_of_metadata(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metadata file that upkeep removes between its look-up and its read is looked up again."""
    write("one")
    load_table, names = catalog.Catalog.load_table, []

    def load(self: Any, name: Any) -> Any:
        names.append(name)
        if len(names) == 1:
            raise FileNotFoundError
        return load_table(self, name)

    monkeypatch.setattr(catalog.Catalog, "load_table", load)
    assert texts() == ["one"]


def test_a_sweep_that_another_overtook_takes_nothing(tables: Path) -> None:
    """Where a manifest is gone, what refers to the data is not known: none is taken, and the sweep is tried again."""
    for number in range(3):
        write(f"text {number}", source=f"site{number}")
    handle = warehouse.load_table("comments")
    age(tables)
    current = handle.current_snapshot()
    assert current is not None
    Path(get_path(current.manifests(handle.io)[0].manifest_path)).unlink()
    data = {path for path in list_files() if path.suffix == ".parquet"}
    with pytest.raises(Retry, match="cannot be read"):
        sweep.sweep("comments", timedelta(seconds=-5))
    assert data <= list_files()
