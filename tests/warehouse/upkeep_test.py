"""Upkeep: erased rows are gone to the last byte, files are few, and nothing that is in use is swept."""

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO

from filled import DAY, NEXT, filled
from pipeline import settings, warehouse
from pipeline.errors import BadInput
from pipeline.tables import TABLES
from pipeline.warehouse import upkeep

SECRET = "zq-the-erased-words"
NOW = timedelta(0)


def write(name: str, frame: pl.DataFrame, **where: str) -> None:
    """Overwrite the slice, of the one day if no other is said."""
    warehouse.overwrite(name, {"day": DAY, **where}, frame)


def held(name: str) -> pl.DataFrame:
    """The table's rows in order."""
    return warehouse.scan(name).collect().sort(pl.all().exclude(pl.List))


def plain(path: Path) -> bytes:
    """What a file says once it is unpacked: Parquet and Avro are compressed."""
    if path.suffix == ".parquet":
        return repr(pq.read_table(path).to_pylist()).encode() + path.read_bytes()
    if path.suffix == ".avro":
        with AvroFile(PyArrowFileIO().new_input(f"file://{path}")) as records:
            return repr(list(records)).encode() + path.read_bytes()
    return path.read_bytes()


def holders(home: Path, text: str) -> list[str]:
    """Files below the home that hold the text, or the prefix of it that statistics keep."""
    marks = (text.encode(), text[:12].encode())
    return sorted(
        str(p.relative_to(home)) for p in home.rglob("*") if p.is_file() and any(m in plain(p) for m in marks)
    )


def age(home: Path, hours: float = 48) -> None:
    """Make every file below the home look that old."""
    then = time.time() - hours * 3600
    for path in home.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def data_files(name: str) -> Iterator[Path]:
    """Data files that the table's current state reads."""
    for location in warehouse.table(name).inspect.files()["file_path"].to_pylist():
        yield Path(location.removeprefix("file://"))


def test_the_search_for_bytes_finds_what_is_there(tables: Path) -> None:
    """Before an erasure the search sees the text in a data file, packed as it is, and other texts nowhere."""
    write("comments", filled("comments", {"text": SECRET}), source="weibo")
    assert {Path(p).suffix for p in holders(tables, SECRET)} == {".parquet"}
    assert {Path(p).suffix for p in holders(tables, "weibo")} == {".parquet", ".avro"}
    assert holders(tables, "never written") == []


def test_erasing_removes_rows_and_bytes(tables: Path) -> None:
    """No file holds the erased text: old states, a tagged one and a branch included; other rows stay."""
    gone = {"text": SECRET, "user_id": "a" * 32, "comment_id": "gone"}
    stay = {"text": "stays", "user_id": "b" * 32, "comment_id": "stay"}
    write("comments", filled("comments", gone, stay), source="weibo")
    first = warehouse.snapshot("comments")
    assert first is not None
    warehouse.table("comments").manage_snapshots().create_tag(first, "paper").create_branch(first, "try").commit()
    write("comments", filled("comments", stay, gone), source="weibo")
    write("comments", filled("comments", {**gone, "source": "zhihu"}), source="zhihu")
    write("comments", filled("comments", {**stay, "source": "netease"}), source="netease")
    assert warehouse.erase("comments", {"user_id": ["a" * 32]}) == 2
    assert_frame_equal(held("comments"), pl.concat([filled("comments", {**stay, "source": s}, {}).head(1)
                                                    for s in ("netease", "weibo")]))  # fmt: skip
    assert holders(tables, SECRET) == []
    assert set(warehouse.table("comments").refs()) == {"main"}
    assert warehouse.erase("comments", {"user_id": ["a" * 32]}) == 0


def test_erasing_needs_all_given_columns_to_fit(tables: Path) -> None:
    """Several values of a column are any of them, several columns all of them."""
    rows = filled("comments", *({"thread_id": t, "comment_id": c} for t in "xy" for c in "123"))
    write("comments", rows)
    assert warehouse.erase("comments", {"day": [DAY], "thread_id": ["x"], "comment_id": ["1", "3"]}) == 2
    assert held("comments").select("thread_id", "comment_id").rows() == [
        ("x", "2"), ("y", "1"), ("y", "2"), ("y", "3")
    ]  # fmt: skip


@pytest.mark.parametrize("values", [{}, {"user": ["a"]}])
def test_erasing_without_a_column_is_refused(tables: Path, values: dict[str, list[str]]) -> None:
    """Naming no column, or one there is not, is BadInput and erases nothing."""
    write("comments", filled("comments", {}))
    with pytest.raises(BadInput, match="name columns"):
        warehouse.erase("comments", values)
    assert held("comments").height == 1


def test_erasing_what_is_not_there_changes_no_row(tables: Path) -> None:
    """No match, no values, and an empty table erase nothing, without a warning."""
    assert warehouse.erase("comments", {"user_id": ["a" * 32]}) == 0
    write("comments", filled("comments", {}))
    assert warehouse.erase("comments", {"user_id": ["a" * 32]}) == 0
    assert warehouse.erase("comments", {"user_id": []}) == 0
    assert_frame_equal(held("comments"), filled("comments", {}))


def test_erasing_takes_scratch_and_orphans_once_they_are_old(tables: Path) -> None:
    """Copies in scratch and in files of a failed write go when older than the grace time, not before."""
    staged = warehouse.stage("comments", filled("comments", {"text": SECRET}))
    warehouse.commit("comments", {"day": DAY}, [staged])
    orphan = next(data_files("comments")).with_name("lost.parquet")
    filled("comments", {"text": SECRET}).write_parquet(orphan)
    warehouse.erase("comments", {"text": [SECRET]})
    assert len(holders(tables, SECRET)) == 2
    age(tables)
    warehouse.erase("comments", {"text": [SECRET]})
    assert holders(tables, SECRET) == []


def test_compacting_makes_one_file_a_partition(tables: Path) -> None:
    """Three origins of a day are three files; compacted they are one with the same rows, and other days stay."""
    for origin in ("a", "b", "c"):
        write("articles", filled("articles", {"origin": origin, "thread_id": origin}), source="weibo", origin=origin)
    warehouse.overwrite("articles", {"day": NEXT}, filled("articles", {"day": NEXT}))
    rows = held("articles")
    other = set(data_files("articles"))
    assert len(other) == 4
    assert warehouse.compact("articles") == 1
    assert len(list(data_files("articles"))) == 2
    assert len(other & set(data_files("articles"))) == 1
    assert_frame_equal(held("articles"), rows)
    assert warehouse.compact("articles") == 0


def test_runs_of_all_sources_are_compacted_by_day(tables: Path) -> None:
    """Each collection adds a file to `runs`, which is partitioned by day alone."""
    for source in ("weibo", "zhihu"):
        write("runs", filled("runs", {"source": source}), source=source, origin="test", step="collect")
    rows = held("runs")
    assert warehouse.compact("runs") == 1
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
    assert upkeep.sweep("comments") == 2
    assert before - {p for p in (tables / "warehouse").rglob("*") if p.is_file()} == set(orphans)
    assert held("comments")["text"].to_list() == ["three"]
    assert warehouse.scan("comments", snapshot_id=pinned).collect()["text"].to_list() == ["two"]


def test_expired_states_are_swept_away(tables: Path) -> None:
    """After expiry only the files of the present state remain."""
    for text in ("one", "two", "three"):
        write("comments", filled("comments", {"text": text}))
    upkeep.expire("comments", NOW)
    upkeep.sweep("comments", -timedelta(seconds=5))
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
    assert upkeep.sweep_scratch() == 1
    assert not Path(old["path"]).exists()
    assert Path(young["path"]).exists()


def test_embeddings_and_training_states_are_swept_by_age(home: Path) -> None:
    """Files that nobody has used for the grace time go, younger ones, folders and what lies elsewhere stay."""
    assert upkeep.sweep_home() == 0  # there may be none yet
    old = [settings.scratch(name) / "old.bin" for name in ("embeddings", "training")]
    kept = [settings.scratch("training") / "deeper" / "old.bin", home / "models" / "old.bin", home / "scratch" / "old"]
    for path in (*old, *kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"0")
    age(home, 25)
    young = [settings.scratch(name) / "young.bin" for name in ("embeddings", "training")]
    for path in young:
        path.write_bytes(b"0")
    assert upkeep.sweep_home(timedelta(hours=26)) == 0
    assert upkeep.sweep_home() == 2
    assert [path.exists() for path in (*old, *kept, *young)] == [False] * 2 + [True] * 5


def test_upkeep_sweeps_the_home_too(tables: Path) -> None:
    """What is swept of the home is counted among the scratch files."""
    path = settings.scratch("training") / "old.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"0")
    age(tables)
    assert warehouse.maintain()["_scratch"]["files removed"] == 1
    assert not path.exists()


def test_maintaining_empty_tables_does_nothing(tables: Path) -> None:
    """Tables that were never written, and a scratch folder that is not there, need no upkeep."""
    done = warehouse.maintain()
    assert set(done) == {*TABLES, "_scratch"}
    assert all(set(d.values()) == {0} for d in done.values())


@pytest.mark.parametrize("folder", ["home", "my hömé 主页"])
def test_maintaining_filled_tables_keeps_every_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """All tables have their rows after upkeep of files that are all old, wherever the home lies."""
    monkeypatch.setenv("UNDERTONE_HOME", str(tmp_path / folder))
    warehouse.create()
    for name, table in TABLES.items():
        frame = filled(name, {})
        where = {c: frame[c][0] for c in table.partitions}
        for _ in range(2):
            warehouse.commit(name, where, [warehouse.stage(name, frame)])
    age(tmp_path)
    done = warehouse.maintain(keep=NOW)
    assert done["_scratch"] == {"partitions compacted": 0, "files removed": 2 * len(TABLES)}
    assert all(done[name]["files removed"] > 0 for name in TABLES)
    assert all(held(name).equals(filled(name, {})) for name in TABLES)
    assert all(set(d.values()) == {0} for d in warehouse.maintain(keep=NOW).values())
    assert warehouse.erase("comments", {"comment_id": ["c1"]}) == 1
    warehouse.close()
