"""A catalog that is lost, damaged or older than its tables: no published row is lost, nothing is swept by mistake."""

import shutil
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
from pipeline.warehouse import catalog, checksums
from pipeline.warehouse.upkeep import check, recovery, sweep
from pipeline.warehouse.upkeep.limits import Limits
from tests.support.filled import DAY, filled
from tests.support.held import age

EAGER = Limits(keep=timedelta(0), grace=timedelta(seconds=-5), quiet=timedelta(0), files=1)


def write(*texts: str, source: str = "weibo") -> None:
    """Make the slice a comment a text."""
    rows = filled("comments", *({"text": text, "source": source} for text in texts))
    warehouse.overwrite("comments", {"day": DAY, "source": source}, rows)


def texts() -> list[str]:
    """The texts in the table."""
    return sorted(warehouse.scan("comments").collect()["text"])


def actions(**options: Any) -> dict[str, str]:
    """What a recovery did with the tables that it did not leave as they were."""
    return {row.table: row.action for row in warehouse.recover(**options) if row.action != "kept"}


def files(home: Path) -> set[Path]:
    """Files of the warehouse."""
    return {path for path in (home / "warehouse").rglob("*") if path.is_file()}


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
    """Nothing is created over tables that the catalog lacks; a recovery has every row, a dry run changes nothing, and
    upkeep without any grace takes none of it.
    """
    write("one", "two")
    write("other", source="zhihu")
    harm(tables / "catalog.db")
    before = (files(tables), (tables / "catalog.db").exists())
    with pytest.raises(BadInput, match="recover-catalog"):
        warehouse.create()
    with pytest.raises((BadInput, Missing), match="recover-catalog"):
        warehouse.scan("comments")
    assert actions(dry_run=True)["comments"] == "registered"
    assert (files(tables), (tables / "catalog.db").exists()) == before
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
    harmed = (tables / "catalog.db").read_bytes()
    with pytest.raises(BadInput, match="damaged"):
        warehouse.backup()
    warehouse.recover()
    (aside,) = tables.glob("catalog.db.damaged-*")
    assert aside.read_bytes() == harmed
    assert warehouse.find_damage() is None


@pytest.mark.parametrize("step", ["_move_aside", "set_states", "backup"])
@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("harm", [garble, forget_tables])
def test_a_recovery_that_was_killed_is_repeated(
    tables: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None], step: str, is_after: bool
) -> None:
    """Ended before or after a step, the next recovery does the rest."""
    write("one")
    harm(tables / "catalog.db")
    owner: Any = catalog.Catalog if step == "set_states" else recovery
    true = getattr(owner, step)

    def killed(*given: Any) -> None:
        if is_after:
            true(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, killed)
        try:
            warehouse.recover()
        except KeyboardInterrupt:
            warehouse.close()
    warehouse.recover()
    assert texts() == ["one"]


def test_a_race_that_was_lost_leaves_no_metadata(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata file of a commit that another was faster than is removed at once."""
    write("one")
    before = {path for path in files(tables) if path.name.endswith(".metadata.json")}
    true = catalog.SqlCatalog.commit_table

    def fail(*given: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(catalog.Session, "commit", lambda _: (_ for _ in ()).throw(CommitFailedException()))
            return true(*given)

    with monkeypatch.context() as patch:
        patch.setattr(catalog.SqlCatalog, "commit_table", fail)
        with pytest.raises(CommitFailedException):
            warehouse.table("comments").transaction().set_properties({"a": "b"}).commit_transaction()
    assert {path for path in files(tables) if path.name.endswith(".metadata.json")} == before


def die(*_: Any) -> None:
    """End here."""
    raise KeyboardInterrupt


def test_a_commit_that_was_never_published_is_not_recovered(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that died with its metadata written, and was overtaken, is passed over and swept; the rows stay."""
    write("one")
    before = files(tables)
    with monkeypatch.context() as patch:
        patch.setattr(catalog.Session, "commit", die)
        with pytest.raises(KeyboardInterrupt):
            write("never", source="zhihu")
    never = files(tables) - before
    assert {path.suffix for path in never} == {".parquet", ".avro", ".json"}
    assert texts() == ["one"]
    write("two")
    write("three", source="netease")
    (tables / "catalog.db").unlink()
    warehouse.recover()
    assert texts() == ["three", "two"]
    age(tables)
    warehouse.maintain("comments", EAGER)
    assert not never & files(tables)
    assert texts() == ["three", "two"]


@pytest.mark.parametrize("newer_count", [1, 3])
def test_a_catalog_older_than_its_tables_loses_nothing(
    tables: Path, caplog: pytest.LogCaptureFixture, newer_count: int
) -> None:
    """With an old copy in the catalog's place: upkeep keeps the newer files and says so, an erasure is refused, and
    a recovery returns to the newest state.
    """
    write("one")
    shutil.copy(tables / "catalog.db", tables / "old.db")
    for number in range(newer_count):
        write("one", f"new {number}")
    (tables / "old.db").replace(tables / "catalog.db")
    age(tables)
    assert texts() == ["one"]
    warehouse.maintain("comments", EAGER)
    assert f"does not know {newer_count} states" in caplog.text
    with pytest.raises(BadInput, match="older than the table"):
        warehouse.purge("comments")
    assert actions()["comments"] == "replaced"
    assert texts() == ["new 0", "one"] if newer_count == 1 else ["new 2", "one"]
    assert check.check("comments", footers=True).problems == []


def test_states_that_parted_are_both_kept(tables: Path) -> None:
    """An old copy in the catalog's place that is then written to: upkeep keeps the files of both, and a recovery says
    what --force would take.
    """
    write("one")
    shutil.copy(tables / "catalog.db", tables / "old.db")
    write("a", "b", source="zhihu")
    write("c", source="netease")
    (tables / "old.db").replace(tables / "catalog.db")
    write("d", source="netease")
    age(tables)
    warehouse.maintain("comments", EAGER._replace(files=9))
    assert texts() == ["d", "one"]
    assert actions() == {}
    (note,) = [row.note for row in warehouse.recover() if row.table == "comments"]
    assert "--force takes" in note
    assert "of 4 rows" in note
    assert actions(force=True) == {"comments": "replaced"}
    assert texts() == ["a", "b", "c", "one"]


def part(home: Path) -> None:
    """Leave two states of one table: a catalog that was brought back from a copy was written to."""
    write("one")
    shutil.copy(home / "catalog.db", home / "old.db")
    write("a", "b", source="zhihu")
    (home / "old.db").replace(home / "catalog.db")
    write("d", source="netease")
    write("e", source="netease")


def others() -> list[recovery.Other]:
    """States of the comments that the catalog does not know."""
    (row,) = [row for row in warehouse.recover(dry_run=True) if row.table == "comments"]
    return list(row.others)


def test_a_state_that_the_catalog_does_not_know_is_shown_and_taken(tables: Path) -> None:
    """Of two states of one table each is shown while the other is in force, and can be taken; both stay whole."""
    part(tables)
    age(tables)
    (other,) = others()
    assert (other.rows, other.note) == (3, "published")
    assert actions(take=[other.state]) == {"comments": "replaced"}
    assert texts() == ["a", "b", "one"]
    warehouse.maintain("comments", EAGER)
    (other,) = others()
    assert other.rows == 2
    assert actions(take=[other.state]) == {"comments": "replaced"}
    assert texts() == ["e", "one"]
    assert check.check("comments", footers=True).problems == []


def test_no_erasure_removes_a_state_that_the_catalog_does_not_know(tables: Path) -> None:
    """A purge refuses and removes nothing while another published state lies there; without it, it goes on."""
    part(tables)
    age(tables)
    before = files(tables)
    (other,) = others()
    with pytest.raises(BadInput, match=f"does not know . states that were published.*{other.state}") as refusal:
        warehouse.purge("comments", timedelta(0))
    assert files(tables) == before
    with pytest.raises(BadInput, match="--take"):
        warehouse.refuse_unknown_states(["comments"])
    for path in str(refusal.value).rpartition("again: ")[2].split(", "):
        Path(path).unlink()
    warehouse.purge("comments", timedelta(0))
    assert others() == []
    assert texts() == ["e", "one"]


def test_a_commit_of_which_nobody_knows_the_end_is_shown(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its metadata file is shown with its rows once another commit took its place, and can be taken while it lies
    there.
    """
    write("one")
    with monkeypatch.context() as patch:
        patch.setattr(catalog.Session, "commit", die)
        with pytest.raises(KeyboardInterrupt):
            write("uncertain", source="zhihu")
    write("two")
    (other,) = others()
    assert (other.rows, other.note) == (2, "not published; upkeep removes it")
    assert actions(take=[other.state]) == {"comments": "replaced"}
    assert texts() == ["one", "uncertain"]
    assert [other.note for other in others()] == ["published"]


def test_a_state_that_cannot_be_taken_changes_nothing(tables: Path) -> None:
    """A name that no table has, two of one table, and a state that lacks a file are refused."""
    part(tables)
    (other,) = others()
    current = warehouse.table("comments").metadata_location.rpartition("/")[2]
    for names in (["00001-x.metadata.json"], [other.state, current]):
        with pytest.raises(BadInput, match="nothing was changed"):
            warehouse.recover(take=names)
    for path in tables.rglob(f"comments/metadata/snap-{other.snapshot}-*.avro"):
        path.unlink()
    with pytest.raises(BadInput, match=r"is not whole, .*nothing was changed"):
        warehouse.recover(take=[other.state])
    assert texts() == ["e", "one"]


@pytest.mark.parametrize("newer_count", [1, 5])
def test_a_state_without_a_record_is_kept_where_it_may_be_published(
    home: Path, monkeypatch: pytest.MonkeyPatch, newer_count: int
) -> None:
    """Upkeep keeps the states that an earlier version published and that an old copy of the catalog does not know."""
    with monkeypatch.context() as patch:
        patch.setattr(checksums, "record", lambda *_: None)
        warehouse.create()
        write("one")
        shutil.copy(home / "catalog.db", home / "old.db")
        for number in range(3):
            write(f"new {number}", source=f"site{number}")
    newest = Path(warehouse.table("comments").metadata_location.removeprefix("file://"))
    before = {path for path in files(home) if path.suffix == ".parquet"}
    (home / "old.db").replace(home / "catalog.db")
    for number in range(newer_count):
        write(f"other {number}", source="zhihu")
    for _ in range(2):
        warehouse.maintain("comments", EAGER._replace(files=9))
        assert newest.exists()
        assert before <= files(home)


def test_tables_made_over_others_do_not_sweep_them(
    tables: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A catalog that an earlier version made anew over a full warehouse: upkeep keeps the files of the first tables,
    and a forced recovery brings them back.
    """
    write("one", "two")
    write("three", source="zhihu")
    (tables / "catalog.db").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(catalog, "_holds_rows", lambda _: False)
        warehouse.create()
    write("only", source="netease")
    age(tables)
    warehouse.maintain("comments", EAGER)
    assert "does not know" in caplog.text
    (note,) = [row.note for row in warehouse.recover(dry_run=True) if row.table == "comments"]
    assert "--force takes" in note
    warehouse.recover(force=True)
    assert texts() == ["one", "three", "two"]


def test_without_a_record_of_what_was_published_copies_decide(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two states of one age, in a warehouse of an earlier version, the one that a copy of the catalog names wins."""
    write("one")
    with monkeypatch.context() as patch:
        patch.setattr(catalog.Session, "commit", die)
        with pytest.raises(KeyboardInterrupt):
            write("never", source="zhihu")
    monkeypatch.setattr(checksums, "record", lambda *_: None)
    write("two")
    for path in tables.rglob("checksums/*"):
        path.unlink()
    warehouse.backup()
    (tables / "catalog.db").unlink()
    warehouse.recover()
    assert texts() == ["two"]


def test_the_newest_whole_state_is_taken(tables: Path) -> None:
    """Where the newest state lacks a file, the one before it is taken, and what was passed over is said; where none is
    whole the table is lost, and nothing of it is registered.
    """
    write("one")
    lists = set(tables.rglob("comments/metadata/snap-*.avro"))
    write("two", source="zhihu")
    for path in set(tables.rglob("comments/metadata/snap-*.avro")) - lists:
        path.unlink()
    (tables / "catalog.db").unlink()
    (row,) = [row for row in warehouse.recover() if row.table == "comments"]
    assert (row.action, row.rows) == ("registered", 1)
    assert "of 2 rows, manifest list" in row.note
    assert texts() == ["one"]
    for path in lists:
        path.unlink()
    (tables / "catalog.db").unlink()
    (row,) = [row for row in warehouse.recover() if row.table == "comments"]
    assert row.action == "lost"
    assert "another table" not in row.note
    with pytest.raises(Missing, match="has no table comments"):
        warehouse.scan("comments")


def test_copies_of_the_catalog_are_private_and_few(tables: Path) -> None:
    """The last eight stay, readable by their owner alone; each opens as a catalog."""
    for _ in range(10):
        path = warehouse.backup()
    copies = sorted((tables / "backups").iterdir())
    assert len(copies) == 8
    assert copies[-1] == path
    assert {stat.S_IMODE(copy.stat().st_mode) for copy in copies} == {0o600}
    assert stat.S_IMODE((tables / "backups").stat().st_mode) == 0o700
    with closing(sqlite3.connect(copies[0])) as connection:
        assert connection.execute("select count(*) from iceberg_tables").fetchone()[0] == len(warehouse.names())


def test_a_reader_outlives_the_removal_of_metadata(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metadata file that upkeep removes between its look-up and its read is looked up again."""
    write("one")
    true = catalog.Catalog.load_table
    tries = []

    def load(self: Any, name: Any) -> Any:
        tries.append(name)
        if len(tries) == 1:
            raise FileNotFoundError
        return true(self, name)

    monkeypatch.setattr(catalog.Catalog, "load_table", load)
    assert texts() == ["one"]


def test_a_sweep_that_another_overtook_takes_nothing(tables: Path) -> None:
    """Where a manifest that it is about to read is gone, rewritten and swept by another, it is not known here what
    refers to the data files: none of them is taken, and the sweep is tried again.
    """
    for number in range(3):
        write(f"text {number}", source=f"site{number}")
    stale = warehouse.table("comments")
    age(tables)
    current = stale.current_snapshot()
    assert current is not None
    Path(current.manifests(stale.io)[0].manifest_path.removeprefix("file://")).unlink()
    data = set(tables.rglob("comments/data/**/*.parquet"))
    with pytest.raises(Retry, match="cannot be read"):
        sweep.sweep("comments", timedelta(seconds=-5))
    assert set(tables.rglob("comments/data/**/*.parquet")) == data


def test_kills_around_a_commit_and_in_an_erasure_leave_no_state_in_doubt(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that died unpublished is no state of an earlier version, whatever records and states are gone."""
    write("one")
    with monkeypatch.context() as patch:
        patch.setattr(catalog.Session, "commit", die)
        with pytest.raises(KeyboardInterrupt):
            write("never", source="zhihu")
    with monkeypatch.context() as patch:
        patch.setattr(checksums, "record", die)  # killed after it was published
        with pytest.raises(KeyboardInterrupt):
            write("two", source="netease")
    records = checksums.read(warehouse.table("comments").location()).checksums
    write("three", source="bilibili")
    for path in map(Path, records):  # an erasure that was killed had removed these
        if path.name.endswith(".metadata.json"):
            path.unlink()
    warehouse.maintain("comments", EAGER)  # merges the records
    warehouse.purge("comments", timedelta(0))
    assert texts() == ["one", "three", "two"]
    assert (
        len([path for path in files(tables) if path.name.endswith(".metadata.json") and "comments" in path.parts]) == 1
    )


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_state_that_a_killed_commit_left_is_no_stranger(
    tables: Path, monkeypatch: pytest.MonkeyPatch, is_recorded: bool
) -> None:
    """Killed before it deletes the state that fell off its log, a commit leaves one that no log names for long."""
    with monkeypatch.context() as patch:
        if not is_recorded:
            patch.setattr(checksums, "record", lambda *_: None)
        write("old")
    for number in range(20):
        write(f"old {number}")
    with monkeypatch.context() as patch:
        patch.setattr(catalog.Catalog, "_delete_old_metadata", die)
        with pytest.raises(KeyboardInterrupt):
            write("killed")
    with monkeypatch.context() as patch:
        patch.setattr(catalog.Catalog, "_delete_old_metadata", die)  # its child stays too, and names it
        with pytest.raises(KeyboardInterrupt):
            write("killed")
    for number in range(45):  # more than twice what a log holds
        write(f"new {number}")
    (left,) = [path for path in files(tables) if path.name.startswith("00001-") and "comments" in path.parts]
    warehouse.purge("comments", timedelta(0))
    assert not left.exists()
    assert texts() == ["new 44"]
