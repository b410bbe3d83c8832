"""Writing a slice: exactly these rows in one commit, or nothing changes."""

import time
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from pyiceberg.table.update.snapshot import _OverwriteFiles

from pipeline import warehouse
from pipeline.errors import BadInput, Retry
from pipeline.tables import TABLES, empty
from tests.support.rows.filled import DAY, NEXT, filled
from tests.support.rows.held import held

WEIBO = warehouse.make_slice(source="weibo", day=DAY)
ZHIHU = warehouse.make_slice(source="zhihu", day=DAY)


def build(*texts: str, **columns: Any) -> pl.DataFrame:
    """Comments with these texts."""
    return filled("comments", *({"text": text, **columns} for text in texts))


def test_other_slices_are_left_alone(tables: Path) -> None:
    """Another source and another day keep their rows when a slice is written or emptied, as an empty table may be."""
    assert warehouse.overwrite("comments", WEIBO, empty("comments")) == 0
    others = [build("b", source="zhihu"), build("c", day=NEXT)]
    warehouse.overwrite("comments", ZHIHU, others[0])
    warehouse.overwrite("comments", {"source": "weibo", "day": NEXT}, others[1])
    warehouse.overwrite("comments", WEIBO, build("a"))
    warehouse.overwrite("comments", WEIBO, build("a2"))
    assert_frame_equal(held("comments"), pl.concat([build("a2"), *others]).sort(TABLES["comments"].key))
    assert warehouse.overwrite("comments", WEIBO, empty("comments")) == 0
    assert_frame_equal(held("comments"), pl.concat(others).sort(TABLES["comments"].key))


def test_a_slice_may_be_smaller_than_a_partition(tables: Path) -> None:
    """Two origins of one source and day are two slices."""
    frames = {origin: filled("articles", {"thread_id": origin, "origin": origin}) for origin in ("one", "two")}
    for origin, frame in frames.items():
        warehouse.overwrite("articles", {**WEIBO, "origin": origin}, frame)
    warehouse.overwrite("articles", {**WEIBO, "origin": "one"}, empty("articles"))
    assert_frame_equal(held("articles"), frames["two"])
    handle = warehouse.load_table("articles")  # pyiceberg would copy all states some twenty times a write
    assert handle.transaction().table_metadata.snapshots is handle.metadata.snapshots


def test_a_file_that_pyiceberg_misses_is_looked_for_again(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its threads share one evaluator of manifests, whose answer for another manifest refuses a write for no reason."""
    rows = filled("articles", *({"thread_id": origin, "origin": origin} for origin in ("one", "two")))
    warehouse.overwrite("articles", WEIBO, rows)  # in one file
    find, answers = _OverwriteFiles._deleted_entries, iter([[], []])

    def miss(producer: Any) -> list[Any]:
        if (entries := next(answers, None)) is not None:
            producer._validate_required_deletes(entries)
        return find(producer)

    monkeypatch.setattr(_OverwriteFiles, "_deleted_entries", miss)
    warehouse.overwrite("articles", {**WEIBO, "origin": "one"}, empty("articles"))
    assert_frame_equal(held("articles"), rows.filter(origin="two"))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), unique=True, max_size=20))
def test_what_is_written_is_read_back(tables: Path, texts: list[str]) -> None:
    """Any texts, empty lists included, come back as they were, with nothing left of the write before."""
    frame = filled("comments", *({"text": t, "comment_id": f"c{i:03}"} for i, t in enumerate(texts)))
    warehouse.overwrite("comments", WEIBO, frame)
    assert_frame_equal(held("comments"), frame)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (build("a", "b", source="zhihu"), r"comments: 2 rows lie outside the slice"),
        (build("a", day=NEXT), r"comments: 1 rows lie outside the slice"),
        (build("a", " "), r"comments: .*text_is_not_blank \(1 rows\)"),
        (build("a", like_count=-1), r"comments: .*like_count\|min \(1 rows\)"),
        (filled("comments", {"adapter": None}, {}), r"comments: .*adapter\|nullability \(1 rows\)"),
        (build("a", "b", comment_id="c1"), r"comments: the key .*comment_id.* occurs more than once.*'c1', 2"),
        (build("a").cast({"like_count": pl.Int32}), r"comments: .*like_count should be Int64, is Int32"),
        (build("a").cast({"day": pl.String}), r"comments: .*day should be Date, is String"),
        (build("a").drop("lang"), r"comments: .*lang should be String, is absent"),
    ],
    ids=["source outside", "day outside", "rule", "range", "null", "doubled key", "type", "type of day", "no column"],
)
def test_a_bad_frame_is_refused_and_changes_nothing(tables: Path, frame: pl.DataFrame, message: str) -> None:
    """BadInput names the table and what is wrong; the table keeps its snapshot and its rows."""
    warehouse.overwrite("comments", WEIBO, build("before"))
    before = warehouse.get_snapshot_id("comments")
    for rows in (frame, frame.lazy()):
        with pytest.raises(BadInput, match=message):
            warehouse.overwrite("comments", WEIBO, rows)
    assert warehouse.get_snapshot_id("comments") == before
    assert_frame_equal(held("comments"), build("before"))


@pytest.mark.parametrize("fails", [False, True], ids=["rows gone", "error"])
def test_rows_that_cannot_be_read_again_are_not_half_published(tables: Path, fails: bool) -> None:
    """A source that breaks off under the sink changes nothing, then or later: polars commits beside the sink."""
    for _ in range(3):  # one in ten was published before the guard
        warehouse.overwrite("comments", WEIBO, build("before"))
        before, reads = warehouse.get_snapshot_id("comments"), []

        def read(frame: pl.DataFrame, reads: list[int] = reads) -> pl.DataFrame:
            reads.append(1)
            if len(reads) > 1 and fails:
                raise OSError("the disk is gone")
            return frame if len(reads) == 1 else frame.clear()

        with pytest.raises(Retry):
            warehouse.overwrite("comments", WEIBO, build("a", "b").lazy().map_batches(read))
        time.sleep(0.1)
        assert warehouse.get_snapshot_id("comments") == before
    assert_frame_equal(held("comments"), build("before"))


def test_columns_that_the_contract_does_not_know_are_left_out(tables: Path) -> None:
    """Extra columns and another order do not matter; a slice takes ISO days and leaves out None."""
    frame = build("a").with_columns(extra=1)
    warehouse.overwrite("comments", WEIBO, frame.select(reversed(frame.columns)))
    assert_frame_equal(held("comments"), build("a"))
    rows = filled("dropped", {}, {})
    assert warehouse.overwrite("dropped", WEIBO, rows) == 2
    assert_frame_equal(warehouse.scan("dropped").collect(), rows)
    for partition in ({}, {"sauce": "weibo"}):
        with pytest.raises(BadInput, match="must name columns of the table"):
            warehouse.overwrite("comments", {**partition}, empty("comments"))
    assert warehouse.make_slice(source="weibo", day="2026-11-19", origin=None) == {"source": "weibo", "day": DAY}
    assert warehouse.make_slice(day=date(2026, 1, 2)) == {"day": date(2026, 1, 2)}
    with pytest.raises(BadInput, match="YYYY-MM-DD"):
        warehouse.make_slice(day="20261119")


def test_replace_is_given_the_present_rows_of_its_slice(tables: Path) -> None:
    """The callback sees the slice and nothing of another one, and what it returns takes its place."""
    warehouse.overwrite("comments", WEIBO, build("a", "b"))
    warehouse.overwrite("comments", ZHIHU, build("z", source="zhihu"))
    rows = []

    def update(current: pl.LazyFrame) -> pl.LazyFrame:
        rows.extend(current.collect()["text"])
        return current.with_columns(like_count=pl.lit(7, pl.Int64))

    assert warehouse.replace("comments", WEIBO, update) == 2
    assert sorted(rows) == ["a", "b"]
    assert held("comments")["like_count"].to_list() == [7, 7, None]


@pytest.mark.parametrize(
    ("before", "between"),
    [([], ["theirs"]), (["old"], ["theirs"]), (["old"], [])],
    ids=["into an empty slice", "over a filled slice", "rows go"],
)
def test_a_lost_race_is_retry_and_loses_no_update(tables: Path, before: list[str], between: list[str]) -> None:
    """If another handle writes the slice after we read it, our write is refused and theirs stands; again, it lands."""
    warehouse.overwrite("comments", WEIBO, build(*before))

    def update(current: pl.LazyFrame) -> pl.DataFrame:
        rows = current.collect()
        warehouse.overwrite("comments", WEIBO, build(*between))
        return pl.concat([rows, filled("comments", {"text": "ours", "comment_id": "m"})])

    with pytest.raises(Retry, match="another writer changed comments"):
        warehouse.replace("comments", WEIBO, update)
    assert_frame_equal(held("comments"), build(*between))
    assert warehouse.replace("comments", WEIBO, lambda current: current) == len(between)
    assert_frame_equal(held("comments"), build(*between))


def test_an_append_adds_to_the_state_that_it_read(tables: Path) -> None:
    """Rows are added without a rewrite; a write of any slice in between makes it Retry; no rows, no commit."""
    assert warehouse.append("comments", WEIBO, lambda _: build("a").lazy()) == 1

    def update(current: pl.LazyFrame) -> pl.LazyFrame:
        assert current.collect()["text"].to_list() == ["a"]
        warehouse.append("comments", ZHIHU, lambda _: build("z", source="zhihu").lazy())
        return build("b", comment_id="c2").lazy()

    with pytest.raises(Retry, match="another writer changed comments"):
        warehouse.append("comments", WEIBO, update)
    assert held("comments")["text"].to_list() == ["a", "z"]
    before = warehouse.load_table("comments").snapshots()
    assert [snapshot.summary.operation.value for snapshot in before if snapshot.summary] == ["append"] * 2
    assert warehouse.append("comments", WEIBO, lambda current: current.clear()) == 0
    assert warehouse.load_table("comments").snapshots() == before


def test_a_write_to_another_slice_in_between_is_no_conflict(tables: Path) -> None:
    """Two handles that write different slices both land."""

    def update(current: pl.LazyFrame) -> pl.DataFrame:
        warehouse.overwrite("comments", ZHIHU, build("theirs", source="zhihu"))
        return pl.concat([current.collect(), build("ours")])

    assert warehouse.replace("comments", WEIBO, update) == 1
    assert held("comments")["text"].to_list() == ["ours", "theirs"]


def test_partitions_may_be_written_at_once_by_one_frame(tables: Path) -> None:
    """A slice that spans several partitions is one commit, and each snapshot says which run made it."""
    frame = pl.concat([build("a"), build("b", source="zhihu")])
    for _ in range(2):
        warehouse.overwrite("comments", {"day": DAY}, frame, run_id="scheduled__1")
    assert_frame_equal(held("comments"), frame)
    current = warehouse.load_table("comments").current_snapshot()
    assert current is not None
    assert current.summary is not None
    assert current.summary["undertone.run_id"] == "scheduled__1"
