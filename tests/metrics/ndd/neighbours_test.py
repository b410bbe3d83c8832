"""Neighbouring words of two sentences."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.ndd.distance import align, measure_gaps
from tests.support.oracles.overlap_cases import measure_longest

WORDS = st.lists(st.sampled_from("abc"), max_size=9)


@given(WORDS, WORDS)
def test_neighbours_are_a_longest_common_subsequence(first: list[str], second: list[str]) -> None:
    """The words at the places are the same, in ascending order on both sides, and as many as there can be (NDD-03)."""
    places = align(first, second)
    assert [first[i] for i in places[:, 0]] == [second[j] for j in places[:, 1]]
    assert (np.diff(places, axis=0) > 0).all()
    assert len(places) == measure_longest(first, second)


@given(WORDS, WORDS)
def test_neighbours_do_not_hang_on_the_order_of_the_sentences(first: list[str], second: list[str]) -> None:
    """The tie-break is the same from both sides, which a symmetric distance needs."""
    assert align(first, second)[:, ::-1].tolist() == align(second, first).tolist()


def test_ties_and_distances() -> None:
    """Of equal subsequences one is fixed; distances count to the nearest other word in either sentence."""
    assert align(["a", "b"], ["b", "a"]).tolist() == [[1, 0]]
    assert align(["b", "a"], ["a", "b"]).tolist() == [[0, 1]]
    assert align([*"xaby"], [*"xbay"]).tolist() == [[0, 0], [2, 1], [3, 3]]
    assert align([*"abc"], [*"cba"]).tolist() == [[2, 0]]  # as long as possible
    first, second = ["a", "b", "c", "d", "e", "f"], ["a", "b", "x", "c", "d", "f"]  # e is gone, x is new
    assert measure_gaps(align(first, second), (6, 6)).tolist() == [1, 0, 0, 0, 0]
    assert measure_gaps(align(first, first), (6, 6)).tolist() == [0] * 6


@given(WORDS, WORDS)
def test_distances_equal_a_plain_count(first: list[str], second: list[str]) -> None:
    """For each neighbour the words up to the nearest other word, on both sides and in both sentences, are counted."""
    places = align(first, second)
    others = [sorted(set(range(len(words))) - set(side)) for words, side in zip((first, second), places.T, strict=True)]
    expected = [
        min((abs(place - other) - 1 for side, place in enumerate(pair) for other in others[side]), default=0)
        for pair in places.tolist()
    ]
    assert measure_gaps(places, (len(first), len(second))).tolist() == expected
