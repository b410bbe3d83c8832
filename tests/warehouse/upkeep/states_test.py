"""States of a table that its catalog does not know: none is lost, and each can be taken."""

from datetime import timedelta
from pathlib import Path

import pytest

from pipeline import warehouse
from pipeline.errors import BadInput, Retry
from pipeline.tables import TABLES
from pipeline.warehouse import catalog, checksums, lineage
from pipeline.warehouse.files import get_path
from pipeline.warehouse.upkeep import check, recovery
from tests.support.rows.catalogs import EAGER, actions, copy_catalog, list_states, recover_comments, write_dying
from tests.support.rows.held import age, list_files, texts, write


def part(home: Path) -> None:
    """Leave two states of one table: a catalog that was restored from a copy was written to."""
    write("one")
    restore = copy_catalog(home)
    write("a", "b", source="zhihu")
    restore()
    write("d", source="netease")
    write("e", source="netease")


def others() -> tuple[recovery.Other, ...]:
    """States of the comments that the catalog does not know."""
    return recover_comments(dry_run=True).others


def test_states_that_parted_are_both_kept(tables: Path) -> None:
    """After an old copy was written to, upkeep keeps the files of both, and a recovery names what --force takes."""
    write("one")
    restore = copy_catalog(tables)
    write("a", "b", source="zhihu")
    write("c", source="netease")
    restore()
    write("d", source="netease")
    age(tables)
    warehouse.maintain("comments", EAGER._replace(files=9))
    assert texts() == ["d", "one"]
    assert actions() == {}
    note = recover_comments().note
    assert "--force takes" in note
    assert "of 4 rows" in note
    assert actions(force=True) == {"comments": "replaced"}
    assert texts() == ["a", "b", "c", "one"]


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
    before = list_files()
    (other,) = others()
    with pytest.raises(BadInput, match=f"does not know . states that were published.*{other.state}") as refusal:
        warehouse.purge("comments", timedelta(0))
    assert list_files() == before
    with pytest.raises(BadInput, match="--take"):
        warehouse.refuse_unknown_states(["comments"])
    for path in str(refusal.value).rpartition("again: ")[2].split(", "):
        Path(path).unlink()
    warehouse.purge("comments", timedelta(0))
    assert others() == ()
    assert texts() == ["e", "one"]


def test_a_commit_of_which_nobody_knows_the_end_is_shown(tables: Path) -> None:
    """Its metadata file is shown once another commit took its place, and can be taken while it lies there."""
    write("one")
    write_dying("uncertain")
    assert [state.is_published for state in lineage.take_inventory("comments").lineage.pending] == [False]
    write("two")
    (other,) = others()
    assert (other.rows, other.note) == (2, "not published; upkeep removes it")
    assert actions(take=[other.state]) == {"comments": "replaced"}
    assert texts() == ["one", "uncertain"]
    assert [other.note for other in others()] == ["published"]


def test_files_are_not_listed_without_the_lists_of_the_table(tables: Path) -> None:
    """Where a list of the current table is missing, its files are unknown: an error, or upkeep would remove them."""
    write("one")
    table = warehouse.load_table("comments")
    for path in tables.rglob("comments/metadata/snap-*.avro"):
        path.unlink()
    assert [Path(path).suffix for path in lineage.list_files(table.io, [table.metadata])] == [".avro"]
    with pytest.raises(Retry, match="which leads to other files, cannot be read"):
        lineage.list_files(table.io, [table.metadata], needed=table.metadata)


def test_a_state_that_cannot_be_taken_changes_nothing(tables: Path) -> None:
    """A name that no table has, two of one table, and a state that lacks a file are refused."""
    part(tables)
    (other,) = others()
    current = Path(warehouse.load_table("comments").metadata_location).name
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
        restore = copy_catalog(home)
        for number in range(3):
            write(f"new {number}", source=f"site{number}")
    newest = Path(get_path(warehouse.load_table("comments").metadata_location))
    before = {path for path in list_files() if path.suffix == ".parquet"}
    restore()
    for number in range(newer_count):
        write(f"other {number}", source="zhihu")
    for _ in range(2):
        warehouse.maintain("comments", EAGER._replace(files=9))
        assert newest.exists()
        assert before <= list_files()


def test_tables_made_over_others_do_not_sweep_them(
    tables: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Under a catalog made again over a full warehouse the first tables stay, and a forced recovery takes them."""
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
    assert "--force takes" in recover_comments(dry_run=True).note
    warehouse.recover(force=True)
    assert texts() == ["one", "three", "two"]


def test_without_a_record_of_what_was_published_copies_decide(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two states of one age, in a warehouse of an earlier version, the one that a copy of the catalog names wins."""
    write("one")
    write_dying("never")
    monkeypatch.setattr(checksums, "record", lambda *_: None)
    write("two")
    for path in tables.rglob("checksums/*"):
        path.unlink()
    warehouse.back_up()
    (tables / "catalog.db").unlink()
    warehouse.recover()
    assert texts() == ["two"]


def test_kills_around_a_commit_and_in_an_erasure_leave_no_state_in_doubt(tables: Path) -> None:
    """A commit that died unpublished is no state of an earlier version, whatever records and states are gone."""
    write("one")
    write_dying("never")
    write_dying("two", "netease", checksums, "record")  # killed after it was published
    records = checksums.read(warehouse.load_table("comments").location()).checksums
    write("three", source="bilibili")
    for path in map(Path, records):  # an erasure that was killed had removed these
        if path.name.endswith(".metadata.json"):
            path.unlink()
    warehouse.maintain("comments", EAGER)  # merges the records
    warehouse.purge("comments", timedelta(0))
    assert texts() == ["one", "three", "two"]
    assert len(list_states()) == 1


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_state_that_a_killed_commit_left_is_no_stranger(
    home: Path, monkeypatch: pytest.MonkeyPatch, is_recorded: bool
) -> None:
    """Killed before it deletes the state that fell off its log, a commit leaves one that no log names for long."""
    monkeypatch.setattr(catalog, "TABLES", {"comments": TABLES["comments"]})
    monkeypatch.setitem(catalog.PROPERTIES, "write.metadata.previous-versions-max", "3")
    warehouse.create()
    with monkeypatch.context() as patch:
        if not is_recorded:
            patch.setattr(checksums, "record", lambda *_: None)
        write("old")
    for number in range(3):
        write(f"old {number}")
    for _ in range(2):  # its child stays too, and names it
        write_dying("killed", "weibo", catalog.Catalog, "_delete_old_metadata")
    for number in range(11):  # more than twice what a log holds
        write(f"new {number}")
    (remaining,) = [path for path in list_states() if path.name.startswith("00001-")]
    warehouse.purge("comments", timedelta(0))
    assert not remaining.exists()
    assert texts() == ["new 10"]
    warehouse.close()
