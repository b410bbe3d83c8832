"""Erasing: rows are gone to the last byte with every state that held them, and a search finds what is left."""

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pyiceberg.manifest import ManifestFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.snapshots import Snapshot

from pipeline import warehouse
from pipeline.errors import BadInput, Retry
from tests.support.rows.filled import DAY, filled
from tests.support.rows.held import age, data_files, die, held, texts, write

SECRET = "zq-the-erased-words"
erasing = sys.modules["pipeline.warehouse.erase"]  # the package has a function of this name


def holders(home: Path, text: str) -> list[str]:
    """Files below the home that hold the text, or the prefix of it that statistics keep."""
    return sorted({str(Path(place.path).relative_to(home)) for place in warehouse.search([text, text[:12]])})


def test_erasing_removes_rows_and_bytes(tables: Path) -> None:
    """No file holds the erased text: old states, a tagged one and a branch included; other rows stay."""

    def put(source: str, *rows: dict[str, str]) -> None:
        frame = filled("comments", *({**row, "source": source} for row in rows))
        warehouse.overwrite("comments", {"day": DAY, "source": source}, frame)

    erased = {"text": SECRET, "user_id": "a" * 32, "comment_id": "erased"}
    other = {"text": "stays", "user_id": None, "comment_id": "stay"}
    put("weibo", erased, other)
    first = warehouse.get_snapshot_id("comments")
    assert first is not None
    warehouse.load_table("comments").manage_snapshots().create_tag(first, "paper").create_branch(first, "try").commit()
    put("weibo", other, erased)
    put("zhihu", erased)
    put("netease", other)
    assert {Path(p).suffix for p in holders(tables, SECRET)} == {".parquet"}
    assert {Path(p).suffix for p in holders(tables, "netease")} == {".parquet", ".avro"}
    assert holders(tables, "never written") == []
    assert warehouse.erase("comments", {"user_id": ["a" * 32]}) == 2
    rows = [filled("comments", {**other, "source": source}) for source in ("netease", "weibo")]
    assert_frame_equal(held("comments"), pl.concat(rows))
    assert holders(tables, SECRET) == []
    assert set(warehouse.load_table("comments").refs()) == {"main"}
    assert warehouse.erase("comments", {"user_id": ["a" * 32]}) == 0


def test_erasing_needs_all_given_columns_to_fit(tables: Path) -> None:
    """Several values of a column are any of them, several columns all of them, no value none, no column BadInput."""
    assert warehouse.erase("comments", {"user_id": ["a" * 32]}) == 0  # of an empty table
    rows = filled("comments", *({"thread_id": t, "comment_id": c} for t in "xy" for c in "123"))
    warehouse.overwrite("comments", {"day": DAY}, rows)
    assert warehouse.erase("comments", {"day": [DAY], "thread_id": ["x"], "comment_id": ["1", "3"]}) == 2
    for values in ({"user_id": ["a" * 32]}, {"user_id": []}):
        assert warehouse.erase("comments", values) == 0
    for wrong in ({}, {"user": ["a"]}):
        with pytest.raises(BadInput, match="name columns"):
            warehouse.erase("comments", wrong)
    keys = held("comments").select("thread_id", "comment_id").rows()
    assert keys == [("x", "2"), ("y", "1"), ("y", "2"), ("y", "3")]


def test_erasing_takes_scratch_and_orphans_once_they_are_old(tables: Path) -> None:
    """Copies in scratch and in files of a failed write go when older than the grace time, not before."""
    staged = warehouse.stage("comments", filled("comments", {"text": SECRET}))
    warehouse.overwrite("comments", {"day": DAY}, warehouse.scan_staged("comments", [staged]))
    assert warehouse.find_strays("comments") == set()
    orphan = data_files("comments")[0].with_name("lost.parquet")
    filled("comments", {"text": SECRET}).write_parquet(orphan)
    assert warehouse.find_strays("comments") == {str(orphan)}  # no state of the table has it
    warehouse.erase("comments", {"text": [SECRET]})
    assert len(holders(tables, SECRET)) == 2
    age(tables)
    warehouse.erase("comments", {"text": [SECRET]})
    assert holders(tables, SECRET) == []


def test_a_purge_that_was_killed_finds_its_files_again(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead after the old states are forgotten and before their files are removed: the next purge removes them."""
    write(SECRET)
    write("stays")
    with monkeypatch.context() as patch:
        patch.setattr(erasing, "list_references", die)
        with pytest.raises(KeyboardInterrupt):
            warehouse.purge("comments")
    assert len(warehouse.load_table("comments").snapshots()) == 1
    assert holders(tables, SECRET)
    assert SECRET in warehouse.scan_history("comments").collect()["text"]
    assert warehouse.purge("comments") > 0
    assert holders(tables, SECRET) == []
    assert warehouse.purge("comments") == 0
    assert texts() == ["stays"]


@pytest.mark.parametrize(
    ("owner", "name"),
    [(FromInputFile, "table_metadata"), (Snapshot, "manifests"), (ManifestFile, "fetch_manifest_entry")],
)
def test_a_store_that_does_not_answer_is_no_file_that_is_gone(
    tables: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    """A fault of the store while old states are looked for is Retry; a file that is gone hides no other."""
    for text in (SECRET, "second", "third"):
        write(text)
    purged = warehouse.load_table("comments").metadata.metadata_log[0].metadata_file
    read = getattr(owner, name)

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("AWS Error NETWORK_CONNECTION during GetObject operation")

    def lack(*args: Any, **options: Any) -> Any:
        try:
            return read(*args, **options)
        except FileNotFoundError:
            raise OSError("Path does not exist") from None

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        with pytest.raises(Retry, match=r"cannot be read|does not answer"):
            warehouse.scan_history("comments")
    Path(purged.removeprefix("file://")).unlink()
    monkeypatch.setattr(owner, name, lack)
    assert set(warehouse.scan_history("comments").collect()["text"]) == {SECRET, "second", "third"}


def test_rows_are_updated_in_their_partitions_alone(tables: Path) -> None:
    """Partitions without a matching row keep their files; in the others all rows go through."""
    for source in ("weibo", "zhihu"):
        contexts = (SECRET[:3] * 40 + source, "fine")
        rows = filled("comments", *({"source": source, "context": context} for context in contexts))
        warehouse.overwrite("comments", {"day": DAY, "source": source}, rows)
    before = set(data_files("comments"))
    condition = pl.col("context").str.ends_with("weibo")
    context = pl.when(condition).then(None).otherwise("context").alias("context")
    assert list(warehouse.rewrite("comments", condition, lambda rows: rows.with_columns(context))) == [1]
    assert len(before & set(data_files("comments"))) == 1
    assert held("comments").filter(source="weibo")["context"].to_list() == [None, "fine"]
