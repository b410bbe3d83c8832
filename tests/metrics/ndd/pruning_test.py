"""Depths and subtrees of what was dropped, by hand and on a treebank; random spans as long as those of a system."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.ndd.pruning import Span, draw_random_spans, evaluate, list_dropped_spans
from pipeline.text.trees import measure_depths
from tests.support.oracles.tree_cases import heads

# Our neighbour sold what the old man left .
UP = [1, 2, -1, 2, 6, 6, 7, 3, 2]
DEPTHS = [3, 2, 1, 2, 5, 5, 4, 3, 2]


def values(frame: pl.DataFrame, column: str = "value") -> dict[str, float | None]:
    """A column by measure."""
    return dict(frame.select("metric", column).iter_rows())


@st.composite
def systems(draw: st.DrawFn) -> tuple[list[list[int]], list[list[Span]]]:
    """Heads of sentences, and spans of them that some system dropped in rounds."""
    ups = draw(st.lists(heads(), min_size=1, max_size=4))
    rounds = [draw(st.lists(st.integers(0, 2), min_size=len(up), max_size=len(up))) for up in ups]
    return ups, [list_dropped_spans(numbers) for numbers in rounds]


def test_depths_and_subtrees_by_hand() -> None:
    """Dropped: `Our`, `the old man`, `.` and in a second sentence `sold` with `what` behind it, `old man`."""
    assert measure_depths(UP).tolist() == DEPTHS
    actual = evaluate([UP, UP], [[(0, 1), (4, 7), (8, 9)], [(2, 4), (5, 7)]], draws=50)
    # depths 3; 5 5 4; 2 and 1 2; 5 4
    assert values(actual) == pytest.approx({
        "depth_1": 1 / 9, "depth_2": 2 / 9, "depth_3": 1 / 9, "depth_4_or_more": 5 / 9,
        "subtree_1": 2 / 2, "subtree_2": 0 / 2, "subtree_3_or_more": 1 / 1,
    })  # fmt: skip
    assert actual["n"].to_list() == [9, 9, 9, 9, 2, 2, 1]


def test_spans_of_several_subtrees() -> None:
    """Leaves side by side are several subtrees; a span round another counts its words once."""
    spans = [[(4, 6)], [(5, 7)], [(3, 9)], [(0, 9)]]
    assert values(evaluate([UP] * 4, spans, subtree="one", draws=9))["subtree_2"] == 0
    actual = values(evaluate([UP] * 4, spans, subtree="several", draws=9))
    assert (actual["subtree_2"], actual["subtree_3_or_more"]) == (1 / 2, 1 / 2)
    actual = evaluate([UP], [[(5, 6), (4, 7)]], draws=9)
    assert actual["n"].to_list() == [3, 3, 3, 3, 1, 0, 1]
    assert values(actual)["subtree_1"] == values(actual)["subtree_3_or_more"] == 1
    assert values(evaluate([[1, -1]], [[(0, 2)]], draws=9))["subtree_2"] == 0


def test_intervals_are_over_sentences() -> None:
    """Two sentences, one dropped with its root alone and one without: samples hold 0, 1 or 2 of the first."""
    actual = evaluate([[1, -1], [1, -1]], [[(1, 2)], [(0, 1)]])
    assert actual.row(0) == ("depth_1", 0.5, 0.0, 1.0, 2)
    many = evaluate([[1, -1]] * 200, [[(1, 2)], [(0, 1)]] * 100)
    assert many.row(0)[2:4] == pytest.approx((0.5 - 0.069, 0.5 + 0.069), abs=0.02)  # 1.96 sqrt(1 / 4 / 200)


@pytest.mark.parametrize(
    ("rounds", "spans"),
    [
        ([0, 1, 1, 0, 1], [(1, 3), (4, 5)]),
        ([0, 1, 2, 2, 0], [(1, 2), (2, 4)]),
        ([2, 1, 1, 2, 0, 2], [(0, 4), (1, 3), (5, 6)]),  # round what had gone
        ([1, 2, 1], [(0, 1), (1, 2), (2, 3)]),  # the middle was there when the others went
        ([3, 1, 0, 1, 3], [(0, 1), (1, 2), (3, 4), (4, 5)]),
        ([], []),
    ],
)
def test_spans_from_rounds(rounds: list[int], spans: list[Span]) -> None:
    """Words side by side among those that are left go as one; what went before between them is inside."""
    assert list_dropped_spans(rounds) == spans


@settings(max_examples=30)
@given(systems(), st.integers(0, 5))
def test_random_spans_are_as_many_and_as_long(system: tuple[list[list[int]], list[list[Span]]], seed: int) -> None:
    """In each sentence the lengths are those of the system's outer spans; they are disjoint and inside of it."""
    ups, spans = system
    sizes = [*map(len, ups)]
    random_spans = draw_random_spans(sizes, spans, seed=seed)
    for size, placed, part in zip(sizes, random_spans, spans, strict=True):
        outer = [(s, e) for s, e in part if not any(b <= s and e <= f for b, f in part if (b, f) != (s, e))]
        assert sorted(end - start for start, end in placed) == sorted(end - start for start, end in outer)
        assert all(span[1] <= other[0] for span, other in pairwise([(0, 0), *placed, (size, size)]))
    assert random_spans == draw_random_spans(sizes, spans, seed=seed)


def test_all_places_are_equally_likely() -> None:
    """Spans of 1 and 2 in four words stand in 6 ways: each 1,000 times of 6,000, five standard deviations at most."""
    random_spans = draw_random_spans([4] * 6000, [[(0, 1), (1, 3)]] * 6000)
    times = np.unique([f"{spans}" for spans in random_spans], return_counts=True)[1]
    assert len(times) == 6
    assert np.abs(times - 1000).max() < 5 * np.sqrt(6000 * 1 / 6 * 5 / 6)
