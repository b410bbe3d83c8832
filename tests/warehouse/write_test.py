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

from pipeline import warehouse
from pipeline.errors import BadInput, Retry
from pipeline.tables import TABLES, empty
from tests.support.filled import DAY, NEXT, filled

WEIBO = warehouse.slice_of(source="weibo", day=DAY)
ZHIHU = warehouse.slice_of(source="zhihu", day=DAY)


def held(name: str = "comments") -> pl.DataFrame:
    """The table's rows in the order of its key."""
    return warehouse.scan(name).collect().sort(TABLES[name].key)


def texts(*given_texts: str, **columns: Any) -> pl.DataFrame:
    """Comments with these texts."""
    return filled("comments", *({"text": text, **columns} for text in given_texts))


def test_writing_twice_gives_identical_rows(tables: Path) -> None:
    """A second run of the same write changes no row."""
    frame = texts("a", "b", "c")
    assert warehouse.overwrite("comments", WEIBO, frame) == 3
    assert warehouse.overwrite("comments", WEIBO, frame) == 3
    assert_frame_equal(held(), frame)


def test_an_empty_frame_empties_the_slice(tables: Path) -> None:
    """A run that finds nothing takes the old rows away, here and nowhere else."""
    warehouse.overwrite("comments", WEIBO, texts("a"))
    warehouse.overwrite("comments", ZHIHU, texts("b", source="zhihu"))
    assert warehouse.overwrite("comments", WEIBO, empty("comments")) == 0
    assert_frame_equal(held(), texts("b", source="zhihu"))


def test_an_empty_frame_on_an_empty_table_is_fine(tables: Path) -> None:
    """Nothing into nothing gives nothing, without a warning."""
    assert warehouse.overwrite("comments", WEIBO, empty("comments")) == 0
    assert held().height == 0


def test_other_slices_are_left_alone(tables: Path) -> None:
    """Another source and another day keep their rows when a slice is written."""
    other = [texts("b", source="zhihu"), texts("c", day=NEXT)]
    warehouse.overwrite("comments", ZHIHU, other[0])
    warehouse.overwrite("comments", {"source": "weibo", "day": NEXT}, other[1])
    warehouse.overwrite("comments", WEIBO, texts("a"))
    warehouse.overwrite("comments", WEIBO, texts("a2"))
    assert_frame_equal(held(), pl.concat([texts("a2"), *other]).sort(TABLES["comments"].key))


def test_a_slice_may_be_smaller_than_a_partition(tables: Path) -> None:
    """Two origins of one source and day are two slices."""
    both = [filled("articles", {"thread_id": origin, "origin": origin}) for origin in ("one", "two")]
    for origin, frame in zip(("one", "two"), both, strict=True):
        warehouse.overwrite("articles", {**WEIBO, "origin": origin}, frame)
    warehouse.overwrite("articles", {**WEIBO, "origin": "one"}, empty("articles"))
    assert_frame_equal(held("articles"), both[1])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), unique=True, max_size=20))
def test_what_is_written_is_read_back(tables: Path, given_texts: list[str]) -> None:
    """Any texts, empty lists included, come back as they were, with nothing left of the write before."""
    frame = filled("comments", *({"text": t, "comment_id": f"c{i:03}"} for i, t in enumerate(given_texts)))
    warehouse.overwrite("comments", WEIBO, frame)
    assert_frame_equal(held(), frame)


@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (texts("a", "b", source="zhihu"), r"comments: 2 rows lie outside the slice"),
        (texts("a", day=NEXT), r"comments: 1 rows lie outside the slice"),
        (texts("a", " "), r"comments: .*text_is_not_blank \(1 rows\)"),
        (texts("a", like_count=-1), r"comments: .*like_count\|min \(1 rows\)"),
        (filled("comments", {"adapter": None}, {}), r"comments: .*adapter\|nullability \(1 rows\)"),
        (texts("a", "b", comment_id="c1"), r"comments: the key .*comment_id.* occurs more than once.*'c1', 2"),
        (texts("a").cast({"like_count": pl.Int32}), r"comments: .*like_count should be Int64, is Int32"),
        (texts("a").cast({"day": pl.String}), r"comments: .*day should be Date, is String"),
        (texts("a").drop("lang"), r"comments: .*lang should be String, is absent"),
    ],
    ids=["source outside", "day outside", "rule", "range", "null", "doubled key", "type", "type of day", "no column"],
)
def test_a_bad_frame_is_refused_and_changes_nothing(tables: Path, frame: pl.DataFrame, told: str, lazy: bool) -> None:
    """BadInput names the table and what is wrong; the table keeps its snapshot and its rows."""
    warehouse.overwrite("comments", WEIBO, texts("kept"))
    before = warehouse.snapshot("comments")
    with pytest.raises(BadInput, match=told):
        warehouse.overwrite("comments", WEIBO, frame.lazy() if lazy else frame)
    assert warehouse.snapshot("comments") == before
    assert_frame_equal(held(), texts("kept"))


@pytest.mark.parametrize("fails", [False, True], ids=["rows gone", "error"])
def test_rows_that_cannot_be_read_again_are_not_half_published(tables: Path, fails: bool) -> None:
    """A source that breaks off under the sink changes nothing, then or later: polars commits beside the sink."""
    kept = texts("kept")
    for _ in range(12):  # one in ten was published before the guard
        warehouse.overwrite("comments", WEIBO, kept)
        before, asked = warehouse.snapshot("comments"), []

        def source(frame: pl.DataFrame, asked: list[int] = asked) -> pl.DataFrame:
            asked.append(1)
            if len(asked) > 1 and fails:
                raise OSError("the disk is gone")
            return frame if len(asked) == 1 else frame.clear()

        with pytest.raises(Retry):
            warehouse.overwrite("comments", WEIBO, texts("a", "b").lazy().map_batches(source))
        time.sleep(0.1)
        assert warehouse.snapshot("comments") == before
    assert_frame_equal(held(), kept)


def test_columns_that_the_contract_does_not_know_are_left_out(tables: Path) -> None:
    """Extra columns and another order of columns do not matter."""
    frame = texts("a").with_columns(extra=1)
    warehouse.overwrite("comments", WEIBO, frame.select(reversed(frame.columns)))
    assert_frame_equal(held(), texts("a"))


def test_dropped_rows_may_be_alike(tables: Path) -> None:
    """The table without a key takes the same row twice."""
    rows = filled("dropped", {}, {})
    assert warehouse.overwrite("dropped", WEIBO, rows) == 2
    assert_frame_equal(warehouse.scan("dropped").collect(), rows)


def test_a_slice_without_columns_is_refused(tables: Path) -> None:
    """An overwrite that named no slice would empty the table."""
    warehouse.overwrite("comments", WEIBO, texts("kept"))
    with pytest.raises(BadInput, match="slice"):
        warehouse.overwrite("comments", {}, empty("comments"))
    with pytest.raises(BadInput, match="slice"):
        warehouse.overwrite("comments", {"sauce": "weibo"}, empty("comments"))
    assert held().height == 1


def test_a_slice_takes_iso_days_and_leaves_out_none() -> None:
    """A day may be given as text, and a column that is None is open."""
    assert warehouse.slice_of(source="weibo", day="2026-11-19", origin=None) == {"source": "weibo", "day": DAY}
    assert warehouse.slice_of(day=date(2026, 1, 2)) == {"day": date(2026, 1, 2)}
    with pytest.raises(BadInput, match="YYYY-MM-DD"):
        warehouse.slice_of(day="20261119")


def test_replace_is_given_the_present_rows_of_its_slice(tables: Path) -> None:
    """The callback sees the slice and nothing of another one, and what it returns takes its place."""
    warehouse.overwrite("comments", WEIBO, texts("a", "b"))
    warehouse.overwrite("comments", ZHIHU, texts("z", source="zhihu"))
    seen = []

    def rows(present: pl.LazyFrame) -> pl.LazyFrame:
        seen.extend(present.collect()["text"].to_list())
        return present.with_columns(like_count=pl.lit(7, pl.Int64))

    assert warehouse.replace("comments", WEIBO, rows) == 2
    assert sorted(seen) == ["a", "b"]
    assert held()["like_count"].to_list() == [7, 7, None]


@pytest.mark.parametrize(
    ("before", "between"),
    [([], ["theirs"]), (["old"], ["theirs"]), (["old"], [])],
    ids=["into an empty slice", "over a filled slice", "rows go"],
)
def test_a_lost_race_is_retry_and_loses_no_update(tables: Path, before: list[str], between: list[str]) -> None:
    """If another handle writes the slice after we read it, our write is refused and theirs stands; again, it lands."""
    warehouse.overwrite("comments", WEIBO, texts(*before))

    def rows(present: pl.LazyFrame) -> pl.DataFrame:
        mine = present.collect()
        warehouse.overwrite("comments", WEIBO, texts(*between))
        return pl.concat([mine, filled("comments", {"text": "mine", "comment_id": "m"})])

    with pytest.raises(Retry, match="another writer changed comments"):
        warehouse.replace("comments", WEIBO, rows)
    assert_frame_equal(held(), texts(*between))
    assert warehouse.replace("comments", WEIBO, lambda present: present) == len(between)
    assert_frame_equal(held(), texts(*between))


def test_a_write_to_another_slice_in_between_is_no_conflict(tables: Path) -> None:
    """Two handles that write different slices both land."""

    def rows(present: pl.LazyFrame) -> pl.DataFrame:
        warehouse.overwrite("comments", ZHIHU, texts("theirs", source="zhihu"))
        return pl.concat([present.collect(), texts("mine")])

    assert warehouse.replace("comments", WEIBO, rows) == 1
    assert held()["text"].to_list() == ["mine", "theirs"]


def test_the_run_is_noted_in_the_snapshot(tables: Path) -> None:
    """Each snapshot says which run made it."""
    warehouse.overwrite("comments", WEIBO, texts("a"), run_id="scheduled__1")
    current = warehouse.table("comments").current_snapshot()
    assert current is not None
    assert current.summary is not None
    assert current.summary["undertone.run_id"] == "scheduled__1"


def test_partitions_may_be_written_at_once_by_one_frame(tables: Path) -> None:
    """A slice that spans several partitions is one commit."""
    frame = pl.concat([texts("a"), texts("b", source="zhihu")])
    warehouse.overwrite("comments", {"day": DAY}, frame)
    warehouse.overwrite("comments", {"day": DAY}, frame)
    assert_frame_equal(held(), frame)
