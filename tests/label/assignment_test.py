"""Who rates what: even from rater to rater and from pair to pair, and what was given stays (AAC-08)."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipeline.errors import BadInput
from pipeline.label.grading import assign

FIVE = ["r1", "r2", "r3", "r4", "r5"]


def build_ids(count: int, first: int = 0) -> list[str]:
    return [f"t{number:05}" for number in range(first, first + count)]


def count_tasks(rows: pl.DataFrame, raters: list[str]) -> list[int]:
    """Count the tasks of each rater."""
    return [rows.filter(rater_id=rater).height for rater in raters]


def count_shared(rows: pl.DataFrame, raters: list[str]) -> list[int]:
    """Count the tasks of each pair of raters."""
    tasks = {rater: set(rows.filter(rater_id=rater)["task_id"]) for rater in raters}
    return [len(tasks[first] & tasks[second]) for first, second in combinations(raters, 2)]


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 60), st.integers(1, 9), st.data())
def test_tasks_are_dealt_evenly(count: int, rater_count: int, data: st.DataObject) -> None:
    """Each task has as many raters as asked for, all different, and raters differ by one task at most."""
    raters = [f"r{number}" for number in range(rater_count)]
    per_task = data.draw(st.integers(1, rater_count))
    rows = assign(build_ids(count), raters, per_task, seed=data.draw(st.integers(0, 9)))
    assert rows.equals(rows.unique().sort("task_id", "rater_id"))
    assert rows.group_by("task_id").len().sort("task_id").rows() == [(task, per_task) for task in build_ids(count)]
    assert np.ptp(count_tasks(rows, raters)) <= 1
    if per_task == 2:
        assert np.ptp(count_shared(rows, raters)) <= 2


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 23), min_size=1, max_size=5), st.integers(0, 9))
def test_tasks_come_in_batches(sizes: list[int], seed: int) -> None:
    """What was assigned stays, and all of it together is as even from rater to rater, and nearly so by pairs."""
    rows = assign([], FIVE)
    for count in np.cumsum(sizes):
        before, rows = rows, assign(build_ids(count), FIVE, seed=seed, assigned=rows)
        assert_frame_equal(rows.join(before, on=["task_id", "rater_id"], how="semi"), before)
        assert rows.filter(pl.col("task_id").is_in(before["task_id"].implode())).height == before.height
        assert np.ptp(count_tasks(rows, FIVE)) <= 1
        assert np.ptp(count_shared(rows, FIVE)) <= 2
    assert rows.height == 2 * sum(sizes)


def test_ten_pairs_of_five_raters() -> None:
    """Each of ten pairs has 4,347 of 43,470 comments (AAC-07); the order makes no difference, the seed does."""
    rows = assign(build_ids(43_470), FIVE)
    assert count_tasks(rows, FIVE) == [17_388] * 5
    assert count_shared(rows, FIVE) == [4_347] * 10
    first = rows.filter(pl.col("task_id") < "t10000")  # 1,000 of each pair expected; 4 standard errors are 120
    assert all(abs(count - 1000) < 120 for count in count_shared(first, FIVE))
    rows = assign(build_ids(30), FIVE)
    assert_frame_equal(assign(build_ids(30)[::-1] + build_ids(3), FIVE[::-1]), rows)
    assert not assign(build_ids(30), FIVE, seed=1).equals(rows)
    assert_frame_equal(assign(build_ids(30), FIVE, assigned=rows), rows)


def test_who_joins_catches_up_and_who_left_is_given_nothing() -> None:
    """A new rater gets a part in every task until all have as many; rows of one who left stay."""
    early = assign(build_ids(20), FIVE)
    rows = assign(build_ids(20, 20), [*FIVE[:4], "r6"], assigned=early)
    assert rows.filter(rater_id="r5").equals(early.filter(rater_id="r5"))
    assert rows.filter(pl.col("task_id") >= "t00020", rater_id="r6").height >= 14  # of 40; before, four had 8
    assert sorted(count_tasks(rows, [*FIVE[:4], "r6"])) == [14, 14, 14, 15, 15]
    assert rows.group_by("task_id").len()["len"].unique().to_list() == [2]


def test_raters_must_do() -> None:
    """A rater named twice, and more raters a task than there are, are told."""
    with pytest.raises(BadInput, match="'r1' is repeated"):
        assign(build_ids(2), ["r1", "r2", "r1"])
    for per_task in (0, 3):
        with pytest.raises(BadInput, match=f"per_task should be in 1-2, .* found {per_task}"):
            assign(build_ids(2), ["r1", "r2"], per_task)
    assert assign([], FIVE).schema == {"task_id": pl.String, "rater_id": pl.String}
