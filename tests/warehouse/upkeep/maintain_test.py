"""Upkeep: what is old goes, nothing that is in use is swept, and what is damaged is named."""

import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyiceberg.table.statistics import StatisticsFile

from pipeline import settings, warehouse
from pipeline.errors import BadInput
from pipeline.tables import TABLES
from pipeline.tasks import upkeep as runs
from pipeline.warehouse import lineage
from pipeline.warehouse.files import get_path
from pipeline.warehouse.upkeep import check, maintain, sweep
from pipeline.warehouse.upkeep.limits import Limits
from tests.support.rows.filled import DAY, NEXT, filled
from tests.support.rows.held import age, data_files, held, list_files, texts, write

EAGER = Limits(keep=timedelta(0), quiet=timedelta(0), files=1, manifests=2)
BEFORE = timedelta(seconds=-5)  # a grace that protects nothing


def make(path: Path, content: bytes = b"0") -> Path:
    """Make a file and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_sweeping_takes_old_orphans_alone(tables: Path) -> None:
    """Old files that no state refers to go; young ones, and old ones in use, stay; after expiry those of one state."""
    write("one")
    write("two")
    pinned = warehouse.get_snapshot_id("comments")
    write("three")
    folder = data_files("comments")[0].parent
    orphans = {make(folder / "old.parquet"), make(folder.parents[1] / "metadata" / "old.avro")}
    age(tables)
    make(folder / "young.parquet", b"a write in flight")
    before = list_files()
    assert sweep.sweep("comments") == 2
    assert before - list_files() == orphans
    assert texts() == ["three"]
    assert warehouse.scan("comments", snapshot_id=pinned).collect()["text"].to_list() == ["two"]
    sweep.expire("comments", timedelta(0))
    sweep.sweep("comments", BEFORE)
    assert {path for path in list_files() if "data" in path.parts} == set(data_files("comments"))
    write("four")
    assert texts() == ["four"]


def test_a_snapshot_is_kept_from_its_replacement_on(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was current for long and was just replaced may be pinned by a run: its own age does not expire it."""
    write("one")
    pinned = warehouse.get_snapshot_id("comments")
    time.sleep(0.05)
    write("two")
    first, last, _ = (entry.timestamp_ms for entry in warehouse.load_table("comments").metadata.snapshot_log)
    keep = timedelta(milliseconds=(last - first) / 2)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.fromtimestamp(last / 1000, tz) + later

    monkeypatch.setattr(sweep, "datetime", Clock)
    later = timedelta(milliseconds=1)
    sweep.expire("comments", keep)
    assert warehouse.scan("comments", snapshot_id=pinned).collect()["text"].to_list() == ["one"]
    later = keep + timedelta(milliseconds=2)
    assert sweep.expire("comments", keep) > 0
    assert pinned not in {snapshot.snapshot_id for snapshot in warehouse.load_table("comments").snapshots()}


def test_scratch_is_swept_by_age(tables: Path) -> None:
    """Old staged files go, young ones stay; an old file stays as long as its attempt still writes beside it."""
    old = warehouse.stage("scores", filled("scores", {}))
    age(tables)
    young = warehouse.stage("scores", filled("scores", {}))
    assert sweep.maintain_scratch()["files_removed"] == 1
    assert not Path(old["path"]).exists()
    assert Path(young["path"]).exists()
    Path(young["path"]).unlink()
    folder = Path(warehouse.create_attempt("collect"))
    make(folder / "first")
    age(tables)
    make(folder / "last")
    assert sweep.maintain_scratch()["files_removed"] == 0
    age(tables)
    assert sweep.maintain_scratch()["files_removed"] == 2


def test_embeddings_and_training_states_are_swept_by_age(home: Path) -> None:
    """Files that nobody has used for the grace time go, younger ones, folders and what lies elsewhere stay."""
    assert set(sweep.maintain_scratch().values()) == {0}  # there may be none yet
    names = ("embeddings", "training", "duckdb/of-a-killed-query")
    old = [make(settings.scratch(name) / "old.bin") for name in names]
    others = [
        settings.scratch("training") / "deeper" / "old.bin", home / "models" / "old.bin", home / "scratch" / "old",
    ]  # fmt: skip
    for path in others:
        make(path)
    age(home, 25)
    young = [make(settings.scratch(name) / "young.bin") for name in names[:2]]
    assert sweep.maintain_scratch(timedelta(hours=26))["files_removed"] == 0
    assert sweep.maintain_scratch(dry_run=True) == {"files_removed": 3, "bytes_freed": 3}
    assert all(path.exists() for path in old)
    assert sweep.maintain_scratch() == {"files_removed": 3, "bytes_freed": 3}
    assert [path.exists() for path in (*old, *others, *young)] == [False] * 3 + [True] * 5


def test_files_of_other_engines_are_kept(tables: Path) -> None:
    """Statistics that another engine put beside the table are in use, and what lies beside its folders is not ours."""
    write("one")
    handle = warehouse.load_table("comments")
    folder = Path(get_path(handle.location()))
    make(folder / "metadata" / "some.stats", b"puffin")
    make(folder / "notes.txt")
    statistics = {
        "snapshot-id": warehouse.get_snapshot_id("comments"), "statistics-path": f"file://{folder}/metadata/some.stats",
        "file-size-in-bytes": 6, "file-footer-size-in-bytes": 2, "blob-metadata": [],
    }  # fmt: skip
    with handle.update_statistics() as update:
        update.set_statistics(StatisticsFile.model_validate(statistics))
    age(tables)
    assert sweep.sweep("comments") == 0
    assert {"some.stats", "notes.txt"} <= {path.name for path in list_files()}


def test_links_are_not_followed_out_of_the_table(tables: Path, tmp_path: Path) -> None:
    """Old files behind a link that leads out of the table stay."""
    write("one")
    other = make(tmp_path / "elsewhere" / "precious.parquet")
    (data_files("comments")[0].parent / "link").symlink_to(other.parent)
    age(tables)
    age(other.parent)
    assert sweep.sweep("comments", BEFORE) == 0
    assert other.exists()


def test_nothing_found_is_nothing_swept(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no file of the table is among those listed, the addresses do not fit, and nothing is swept."""
    write("one")
    age(tables)
    for module in (sweep, lineage):
        monkeypatch.setattr(module, "get_path", lambda location: location)
    with pytest.raises(BadInput, match="nothing was swept"):
        sweep.sweep("comments")


def test_age_is_by_the_stores_clock(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store whose clock is a day behind ours: its files of this minute are young."""
    write("one")
    young = make(data_files("comments")[0].with_name("young.parquet"))
    age(tables)  # the store dates everything two days back, the clock file included

    class Slow:
        """The local file system, two days behind."""

        def __init__(self) -> None:
            self.system = lineage.fs.LocalFileSystem()

        def get_file_info(self, selection: Any) -> Any:
            if isinstance(selection, str) and "clock-" in selection:
                os.utime(selection, (time.time() - 48 * 3600,) * 2)
            return self.system.get_file_info(selection)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.system, name)

    monkeypatch.setattr(lineage, "open_store", lambda location: (Slow(), get_path(location)))
    assert sweep.sweep("comments") == 0
    assert young.exists()


def shorten(path: Path) -> None:
    """Cut a file's end off."""
    path.write_bytes(path.read_bytes()[:-7])


def garble(path: Path) -> None:
    """Leave a file its size and no sense."""
    path.write_bytes(b"\x01" * path.stat().st_size)


each_harm = pytest.mark.parametrize(
    ("harm", "message"),
    [(Path.unlink, "missing"), (shorten, "bytes, not the"), (garble, "not readable|bytes have changed")],
)


@each_harm
def test_a_damaged_file_is_named(tables: Path, harm: Callable[[Path], None], message: str) -> None:
    """A missing, cut or garbled file, of data or metadata, is named with table and partition; nothing is changed."""
    write("one")
    write("two")
    write("other", day=NEXT)
    (bad,) = [path for path in data_files("comments") if pl.read_parquet(path)["text"].to_list() == ["two"]]
    harm(bad)
    before, snapshot = list_files(), warehouse.get_snapshot_id("comments")
    with pytest.raises(BadInput, match=f"comments is damaged.*source=weibo/day={DAY}, {bad}: .*({message})"):
        warehouse.maintain("comments", EAGER)
    assert (list_files(), warehouse.get_snapshot_id("comments")) == (before, snapshot)
    assert len(check.check("comments", footers=True).problems) == 1
    # without footers only presence and size are checked
    assert len(check.check("comments").problems) == (harm is not garble)
    handle = warehouse.load_table("comments")
    current = handle.current_snapshot()
    assert current is not None
    manifest = current.manifests(handle.io)[0].manifest_path
    places = {"manifest": manifest, "manifest list": current.manifest_list, "metadata": handle.metadata_location}
    for kind, location in places.items():
        harm(Path(get_path(location)))
        with pytest.raises(BadInput, match=f"comments is damaged.*{kind}, {get_path(location)}: .*({message})"):
            warehouse.maintain("comments", EAGER)


DEFAULTS = {
    "keep_days": 7, "grace_hours": 24, "quiet_hours": 1, "small_files": 4, "target_megabytes": 256, "gigabytes": 20,
    "footers": True, "verify_weeks": 4, "force": False, "dry_run": False,
}  # fmt: skip


@pytest.mark.parametrize("hasty", [{"grace_hours": 23}, {"keep_days": 6.9}])  # at least 24 hours, 7 days
def test_hasty_limits_are_refused(tables: Path, hasty: Any) -> None:
    """Limits shorter than the longest task or run are BadInput, unless forced; unknown tables too."""
    params: Any = {**DEFAULTS, **hasty}
    with pytest.raises(
        BadInput, match=r"^(grace_hours: expected 24|keep_days: expected 7) or more, found (23|6.9); .* force it only"
    ):
        runs.list_tables([], params)
    assert runs.parse_limits({**params, "force": True}) != runs.parse_limits(DEFAULTS)
    assert runs.parse_limits(DEFAULTS) == Limits()
    with pytest.raises(BadInput, match="no table words"):
        runs.list_tables(["words"], DEFAULTS)
    write("one")
    assert runs.list_tables([], DEFAULTS) == ["comments"]
    assert runs.maintain_table("comments", DEFAULTS)["rows"] == 1
    assert runs.maintain_scratch(DEFAULTS)["files_removed"] == 0


def test_maintaining_filled_tables_keeps_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables have their rows after upkeep of old files, wherever the home lies; a dry run before changes nothing."""
    monkeypatch.setenv("UNDERTONE_HOME", str(tmp_path / "my hömé 主页"))
    warehouse.create()
    names = [name for number, name in enumerate(TABLES) if name in ("comments", "tokens") or not number % 5]
    for name in names:
        frame = filled(name, {})
        partition = {column: frame[column][0] for column in TABLES[name].partitions}
        for _ in range(2):
            staged = [warehouse.stage(name, frame)]
            warehouse.overwrite(name, partition, warehouse.scan_staged(name, staged))
    age(tmp_path)
    assert maintain.list_written() == names
    before = list_files()
    assert warehouse.maintain("comments", EAGER, dry_run=True)["snapshots_expired"] > 0
    assert list_files() == before
    assert all(warehouse.maintain(name, EAGER)["bytes_freed"] > 0 for name in names)
    assert sweep.maintain_scratch()["files_removed"] == 2 * len(names)
    assert all(held(name).equals(filled(name, {})) for name in names)
    assert all(warehouse.maintain(name, EAGER)["files_removed"] == 0 for name in names)
    assert warehouse.erase("comments", {"comment_id": ["c1"]}) == 1
    warehouse.close()
