"""Erasing: rows are gone to the last byte with every state that held them, and a search finds what is left."""

import gzip
import sqlite3
import sys
import zipfile
from contextlib import closing
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
from tests.support.filled import DAY, filled
from tests.support.held import age, data_files, held

SECRET = "zq-the-erased-words"
erasing = sys.modules["pipeline.warehouse.erase"]  # the package has a function of this name


def write(name: str, frame: pl.DataFrame, **where: str) -> None:
    """Overwrite the slice, of the one day if no other is said."""
    warehouse.overwrite(name, {"day": DAY, **where}, frame)


def holders(home: Path, text: str) -> list[str]:
    """Files below the home that hold the text, or the prefix of it that statistics keep."""
    return sorted({str(Path(place.path).relative_to(home)) for place in warehouse.search([text, text[:12]])})


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


def killed(*_: object) -> None:
    """Die here."""
    raise KeyboardInterrupt


def test_a_purge_that_was_killed_finds_its_files_again(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead after the old states are forgotten and before their files are removed: the next purge removes them."""
    write("comments", filled("comments", {"text": SECRET}))
    write("comments", filled("comments", {"text": "stays"}))
    with monkeypatch.context() as patch:
        patch.setattr(erasing, "referenced", killed)
        with pytest.raises(KeyboardInterrupt):
            warehouse.purge("comments")
    assert len(warehouse.table("comments").snapshots()) == 1
    assert holders(tables, SECRET)
    assert SECRET in warehouse.history("comments").collect()["text"]
    assert warehouse.purge("comments") > 0
    assert holders(tables, SECRET) == []
    assert warehouse.purge("comments") == 0
    assert_frame_equal(held("comments"), filled("comments", {"text": "stays"}))


@pytest.mark.parametrize(
    ("owner", "name"),
    [(FromInputFile, "table_metadata"), (Snapshot, "manifests"), (ManifestFile, "fetch_manifest_entry")],
)
def test_a_store_that_does_not_answer_is_no_file_that_is_gone(
    tables: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    """A fault of the store while old states are looked for is Retry, as nothing is known of what they hold; of a file
    that went before it has its own words, and the others are still found.
    """
    for text in (SECRET, "second", "third"):
        write("comments", filled("comments", {"text": text}))
    purged = warehouse.table("comments").metadata.metadata_log[0].metadata_file
    read = getattr(owner, name)

    def fails(*args: Any, **named: Any) -> Any:
        raise OSError("AWS Error NETWORK_CONNECTION during GetObject operation")

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fails)
        with pytest.raises(Retry, match=r"cannot be read|does not answer"):
            warehouse.history("comments")
    Path(purged.removeprefix("file://")).unlink()

    def lacks(*args: Any, **named: Any) -> Any:
        try:
            return read(*args, **named)
        except FileNotFoundError:
            raise OSError("Path does not exist") from None

    monkeypatch.setattr(owner, name, lacks)
    assert set(warehouse.history("comments").collect()["text"]) == {SECRET, "second", "third"}


def test_rows_are_mended_in_their_partitions_alone(tables: Path) -> None:
    """Partitions without a row that is meant keep their files; in the others all rows go through."""
    for source in ("weibo", "zhihu"):
        rows = filled("comments", *({"source": source, "context": text} for text in (SECRET[:3] * 40 + source, "fine")))
        write("comments", rows, source=source)
    before = set(data_files("comments"))
    is_meant = pl.col("context").str.ends_with("weibo")
    bare = pl.when(is_meant).then(None).otherwise("context").alias("context")
    assert list(warehouse.rewrite("comments", is_meant, lambda rows: rows.with_columns(bare))) == [1]
    assert len(before & set(data_files("comments"))) == 1
    assert held("comments").filter(source="weibo")["context"].to_list() == [None, "fine"]


def test_a_file_of_no_state_is_a_stray(tables: Path) -> None:
    """What a killed writer left is told apart from what the table's states have."""
    write("comments", filled("comments", {}))
    write("comments", filled("comments", {"text": "second"}))
    assert warehouse.strays("comments") == set()
    orphan = next(data_files("comments")).with_name("lost.parquet")
    filled("comments", {"text": SECRET}).write_parquet(orphan)
    assert warehouse.strays("comments") == {str(orphan)}


def test_packed_words_are_found(home: Path) -> None:
    """The search opens zip, gzip, SQLite and lists of words, and meets JSON's, HTML's and older encodings' spelling."""
    home.mkdir()
    with zipfile.ZipFile(home / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner", SECRET * 100)
    (home / "b.gz").write_bytes(gzip.compress(SECRET.encode()))
    with closing(sqlite3.connect(home / "c.sqlite")) as con:
        con.execute("create table t (x)")
        con.execute("insert into t values (?)", ["-" * 9_000 + SECRET])
        con.commit()
    pl.DataFrame({"words": [["zq-the", "erased", "words"]]}).write_parquet(home / "d.parquet")
    (home / "e.csv").write_text("别人没有说过的话，一个人说的", encoding="gb18030")
    (home / "f.html").write_text("a &lt;b&gt; &amp; c\\u4e00")
    (home / "none.txt").write_text("others")
    found = {Path(place.path).name for place in warehouse.search([SECRET, "zq-the erased words"])}
    assert found == {"a.zip", "b.gz", "c.sqlite", "d.parquet"}
    assert [Path(place.path).name for place in warehouse.search(["没有说过的话"])] == ["e.csv"]
    assert [Path(place.path).name for place in warehouse.search(warehouse.spellings("a <b> & c"))] == ["f.html"]
    assert warehouse.search([]) == []
