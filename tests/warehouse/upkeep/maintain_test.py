"""Upkeep: files are few, and nothing that is in use is swept."""

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import settings, warehouse
from pipeline.tables import TABLES
from pipeline.warehouse.upkeep import maintain, sweep
from pipeline.warehouse.upkeep.limits import Limits
from tests.support.filled import DAY, NEXT, filled
from tests.support.held import age, data_files, held

NOW = timedelta(0)
EAGER = Limits(keep=NOW, quiet=NOW, files=1)


def write(name: str, frame: pl.DataFrame, **where: str) -> None:
    """Overwrite the slice, of the one day if no other is said."""
    warehouse.overwrite(name, {"day": DAY, **where}, frame)


def test_compacting_makes_one_file_a_partition(tables: Path) -> None:
    """Three origins of a day are three files; compacted they are one with the same rows, and other days stay.

    A slice that is written later is replaced as ever.
    """
    for origin in ("a", "b", "c"):
        write("articles", filled("articles", {"origin": origin, "thread_id": origin}), source="weibo", origin=origin)
    warehouse.overwrite("articles", {"day": NEXT}, filled("articles", {"day": NEXT}))
    rows = held("articles")
    other = set(data_files("articles"))
    assert len(other) == 4
    assert warehouse.compact("articles", EAGER) == (1, 3, 0)
    assert len(list(data_files("articles"))) == 2
    assert len(other & set(data_files("articles"))) == 1
    assert_frame_equal(held("articles"), rows)
    assert warehouse.compact("articles", EAGER) == (0, 0, 0)
    write("articles", rows.filter(pl.col("origin") == "b").with_columns(title=pl.lit("anew")), origin="b")
    assert held("articles").filter(title="anew").select("origin", "thread_id").rows() == [("b", "b")]
    assert held("articles").height == rows.height


def test_runs_of_all_sources_are_compacted_by_day(tables: Path) -> None:
    """Each collection adds a file to `runs`, which is partitioned by day alone."""
    for source in ("weibo", "zhihu"):
        write("runs", filled("runs", {"source": source}), source=source, origin="test", step="collect")
    rows = held("runs")
    assert warehouse.compact("runs", EAGER) == (1, 2, 0)
    assert len(list(data_files("runs"))) == 1
    assert_frame_equal(held("runs"), rows)


def test_sweeping_takes_old_orphans_alone(tables: Path) -> None:
    """Old files that no state refers to go; young ones, and old ones in use, stay."""
    write("comments", filled("comments", {"text": "one"}))
    write("comments", filled("comments", {"text": "two"}))
    pinned = warehouse.snapshot("comments")
    write("comments", filled("comments", {"text": "three"}))
    folder = next(data_files("comments")).parent
    orphans = [folder / "old.parquet", folder.parent.parent / "metadata" / "old.avro"]
    for path in orphans:
        path.write_bytes(b"left by a killed write")
    age(tables)
    young = folder / "young.parquet"
    young.write_bytes(b"a write in flight")
    before = {p for p in (tables / "warehouse").rglob("*") if p.is_file()}
    assert sweep.sweep("comments") == 2
    assert before - {p for p in (tables / "warehouse").rglob("*") if p.is_file()} == set(orphans)
    assert held("comments")["text"].to_list() == ["three"]
    assert warehouse.scan("comments", snapshot_id=pinned).collect()["text"].to_list() == ["two"]


def test_expired_states_are_swept_away(tables: Path) -> None:
    """After expiry only the files of the present state remain."""
    for text in ("one", "two", "three"):
        write("comments", filled("comments", {"text": text}))
    sweep.expire("comments", NOW)
    sweep.sweep("comments", -timedelta(seconds=5))
    folder = tables / "warehouse" / "undertone" / "comments" / "data"
    assert {p for p in folder.rglob("*") if p.is_file()} == set(data_files("comments"))
    assert held("comments")["text"].to_list() == ["three"]
    write("comments", filled("comments", {"text": "four"}))
    assert held("comments")["text"].to_list() == ["four"]


def test_scratch_is_swept_by_age(tables: Path) -> None:
    """Old staged files go, young ones stay."""
    old = warehouse.stage("scores", filled("scores", {}))
    age(tables)
    young = warehouse.stage("scores", filled("scores", {}))
    assert sweep.sweep_scratch() == 1
    assert not Path(old["path"]).exists()
    assert Path(young["path"]).exists()


def test_embeddings_and_training_states_are_swept_by_age(home: Path) -> None:
    """Files that nobody has used for the grace time go, younger ones, folders and what lies elsewhere stay."""
    assert sweep.sweep_home() == 0  # there may be none yet
    old = [settings.scratch(name) / "old.bin" for name in ("embeddings", "training", "duckdb/of-a-killed-query")]
    kept = [settings.scratch("training") / "deeper" / "old.bin", home / "models" / "old.bin", home / "scratch" / "old"]
    for path in (*old, *kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"0")
    age(home, 25)
    young = [settings.scratch(name) / "young.bin" for name in ("embeddings", "training")]
    for path in young:
        path.write_bytes(b"0")
    assert sweep.sweep_home(timedelta(hours=26)) == 0
    assert sweep.sweep_home() == 3
    assert [path.exists() for path in (*old, *kept, *young)] == [False] * 3 + [True] * 5


def test_upkeep_sweeps_the_home_too(tables: Path) -> None:
    """What is swept of the home is counted among the scratch files."""
    path = settings.scratch("training") / "old.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"0")
    age(tables)
    assert sweep.maintain_scratch(dry_run=True) == {"files_removed": 1, "bytes_freed": 1}
    assert path.exists()
    assert sweep.maintain_scratch() == {"files_removed": 1, "bytes_freed": 1}
    assert not path.exists()


def test_maintaining_empty_tables_does_nothing(tables: Path) -> None:
    """Tables that were never written, and a scratch folder that is not there, need no upkeep."""
    assert maintain.written() == []
    done = warehouse.maintain("comments")
    assert done.pop("metadata_files") == done.pop("checksums_added") == 1
    assert set(done.values()) == {0}
    assert set(sweep.maintain_scratch().values()) == {0}


@pytest.mark.parametrize(("folder", "names"), [("home", list(TABLES)), ("my hömé 主页", ["comments", "tokens"])])
def test_maintaining_filled_tables_keeps_every_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, names: list[str]
) -> None:
    """All tables have their rows after upkeep of files that are all old, wherever the home lies."""
    monkeypatch.setenv("UNDERTONE_HOME", str(tmp_path / folder))
    warehouse.create()
    for name in names:
        frame = filled(name, {})
        where = {c: frame[c][0] for c in TABLES[name].partitions}
        for _ in range(2):
            warehouse.commit(name, where, [warehouse.stage(name, frame)])
    age(tmp_path)
    assert maintain.written() == names
    assert all(warehouse.maintain(name, EAGER)["files_removed"] > 0 for name in names)
    assert sweep.maintain_scratch()["files_removed"] == 2 * len(names)
    assert all(held(name).equals(filled(name, {})) for name in names)
    assert all(warehouse.maintain(name, EAGER)["files_removed"] == 0 for name in names)
    assert warehouse.erase("comments", {"comment_id": ["c1"]}) == 1
    warehouse.close()
