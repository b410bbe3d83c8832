"""Neighbouring words of two sentences."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.ndd.neighbours import align, measure_gaps

WORDS = st.lists(st.sampled_from("abc"), max_size=9)


def longest(one: list[str], other: list[str]) -> int:
    """Length of the longest common subsequence by its definition."""
    if not one or not other:
        return 0
    if one[0] == other[0]:
        return 1 + longest(one[1:], other[1:])
    return max(longest(one[1:], other), longest(one, other[1:]))


@given(WORDS, WORDS)
def test_neighbours_are_a_longest_common_subsequence(one: list[str], other: list[str]) -> None:
    """The words at the places are the same, in ascending order on both sides, and as many as there can be (NDD-03)."""
    places = align(one, other)
    assert [one[i] for i in places[:, 0]] == [other[j] for j in places[:, 1]]
    assert (np.diff(places, axis=0) > 0).all()
    assert len(places) == longest(one, other)


@given(WORDS, WORDS)
def test_neighbours_do_not_hang_on_the_order_of_the_sentences(one: list[str], other: list[str]) -> None:
    """The tie-break is the same from both sides, which a symmetric distance needs."""
    assert align(one, other)[:, ::-1].tolist() == align(other, one).tolist()


@given(WORDS)
def test_all_words_are_neighbours_of_the_same_sentence(words: list[str]) -> None:
    """A sentence and itself share every word at its own place."""
    assert align(words, words).tolist() == [[at, at] for at in range(len(words))]


def test_a_repeated_word_is_matched_by_where_it_stands() -> None:
    """Of "the" said twice, the second is matched with the one that is left before the same noun."""
    one, other = ["the", "dog", "saw", "the", "cat"], ["she", "saw", "the", "cat"]
    assert align(one, other).tolist() == [[2, 1], [3, 2], [4, 3]]


def test_distance_counts_the_words_to_the_nearest_other_word_in_either_sentence() -> None:
    """Next to a word that is not shared it is 0; a word that only the second sentence has counts as well."""
    one, other = ["a", "b", "c", "d", "e", "f"], ["a", "b", "x", "c", "d", "f"]  # e is gone, x is new
    assert measure_gaps(align(one, other), (6, 6)).tolist() == [1, 0, 0, 0, 0]
    assert measure_gaps(align(one, one), (6, 6)).tolist() == [0] * 6


@given(st.integers(2, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1), st.integers(1, n))))
def test_distance_to_a_dropped_span_is_that_to_its_nearer_end(case: tuple[int, int, int]) -> None:
    """What the pair of a sentence and its compression gives is min(|k - i|, |k - j|) - 1 of appendix C."""
    length, start, size = case
    words = [str(at) for at in range(length)]
    end = min(start + size, length)
    places = align(words, words[:start] + words[end:])
    expected = [min(abs(k - start), abs(k - (end - 1))) - 1 for k in places[:, 0]]
    assert measure_gaps(places, (length, length - (end - start))).tolist() == expected
