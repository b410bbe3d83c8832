"""Who rates what: even from rater to rater and from pair to pair, and what was given stays (AAC-08)."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipeline.errors import BadInput
from pipeline.label.assignment import assign

FIVE = ["r1", "r2", "r3", "r4", "r5"]


def ids(count: int, first: int = 0) -> list[str]:
    """Ids of tasks."""
    return [f"t{number:05}" for number in range(first, first + count)]


def loads(rows: pl.DataFrame, raters: list[str]) -> list[int]:
    """Tasks of each rater."""
    return [rows.filter(rater_id=rater).height for rater in raters]


def shared(rows: pl.DataFrame, raters: list[str]) -> list[int]:
    """Tasks of each pair of raters."""
    of = {rater: set(rows.filter(rater_id=rater)["task_id"]) for rater in raters}
    return [len(of[one] & of[other]) for one, other in combinations(raters, 2)]


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 60), st.integers(1, 7), st.data())
def test_tasks_are_dealt_evenly(count: int, many: int, data: st.DataObject) -> None:
    """Each task has as many raters as asked for, all different, and raters differ by one task at most."""
    raters = [f"r{number}" for number in range(many)]
    per_task = data.draw(st.integers(1, many))
    rows = assign(ids(count), raters, per_task, seed=data.draw(st.integers(0, 9)))
    assert not rows.is_duplicated().any()
    assert rows.group_by("task_id").len().sort("task_id").rows() == [(task, per_task) for task in ids(count)]
    assert np.ptp(loads(rows, raters)) <= 1
    if per_task == 2:
        assert np.ptp(shared(rows, raters)) <= 1


@pytest.mark.parametrize("many", [8, 9])
def test_pairs_of_many_raters_are_even(many: int) -> None:
    """Of any number of tasks that is no whole round, too, no pair has two more than another."""
    raters = [f"r{number}" for number in range(many)]
    for count in range(1, many * (many - 1) // 2):
        rows = assign(ids(count), raters)
        assert np.ptp(loads(rows, raters)) <= 1
        assert np.ptp(shared(rows, raters)) <= 1


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 23), min_size=1, max_size=5), st.integers(0, 9))
def test_tasks_come_in_batches(sizes: list[int], seed: int) -> None:
    """What was given stays, and all of it together is as even from rater to rater, and nearly so from pair to pair."""
    rows = None
    for at in range(len(sizes)):
        before, rows = rows, assign(ids(sum(sizes[: at + 1])), FIVE, seed=seed, assigned=rows)
        if before is not None:
            assert_frame_equal(rows.join(before, on=["task_id", "rater_id"], how="semi"), before)
            assert rows.filter(pl.col("task_id").is_in(before["task_id"].implode())).height == before.height
        assert np.ptp(loads(rows, FIVE)) <= 1
        assert np.ptp(shared(rows, FIVE)) <= 2
    assert rows is not None
    assert rows.height == 2 * sum(sizes)


def test_ten_pairs_of_five_raters() -> None:
    """Of 43,470 comments (AAC-07) each rater has 17,388, and each pair 4,347; they are dealt at random."""
    rows = assign(ids(43_470), FIVE)
    assert loads(rows, FIVE) == [17_388] * 5
    assert shared(rows, FIVE) == [4_347] * 10
    first = rows.filter(pl.col("task_id") < "t10000")  # 1,000 of each pair expected; 4 standard errors are 120
    assert all(abs(count - 1000) < 120 for count in shared(first, FIVE))


def test_order_makes_no_difference_and_the_seed_does() -> None:
    """Tasks and raters in any order give the same rows; another seed gives others."""
    rows = assign(ids(30), FIVE)
    assert_frame_equal(assign(ids(30)[::-1] + ids(3), FIVE[::-1]), rows)
    assert not assign(ids(30), FIVE, seed=1).equals(rows)
    assert_frame_equal(assign(ids(30), FIVE, assigned=rows), rows)


def test_who_joins_catches_up_and_who_left_is_given_nothing() -> None:
    """A new rater gets a part in every task until all have as many; rows of one who left stay."""
    early = assign(ids(20), FIVE)
    rows = assign(ids(20, 20), [*FIVE[:4], "r6"], assigned=early)
    assert rows.filter(rater_id="r5").equals(early.filter(rater_id="r5"))
    assert rows.filter(pl.col("task_id") >= "t00020", rater_id="r6").height >= 14  # of 40; before, four had 8
    assert sorted(loads(rows, [*FIVE[:4], "r6"])) == [14, 14, 14, 15, 15]
    assert rows.group_by("task_id").len()["len"].unique().to_list() == [2]


def test_raters_must_do() -> None:
    """A rater named twice, and more raters a task than there are, are told."""
    with pytest.raises(BadInput, match="'r1' is repeated"):
        assign(ids(2), ["r1", "r2", "r1"])
    for per_task in (0, 3):
        with pytest.raises(BadInput, match=f"per_task should be in 1-2, .* found {per_task}"):
            assign(ids(2), ["r1", "r2"], per_task)
    assert assign([], FIVE).schema == {"task_id": pl.String, "rater_id": pl.String}
