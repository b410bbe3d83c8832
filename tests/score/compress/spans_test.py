"""Spans that may be dropped, and which are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.score.compress import scorers

LENGTHS = st.integers(1, 12)


@st.composite
def scored_spans(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Spans [s, 2] of a sentence, and scores [s]."""
    length = draw(LENGTHS)
    span = st.tuples(st.integers(0, length - 1), st.integers(1, 4))
    rows = [*draw(st.dictionaries(span, st.integers(0, 5), max_size=12)).items()]
    candidates = [(start, min(start + size, length)) for (start, size), _ in rows]
    return np.array(candidates, np.int64).reshape(-1, 2), np.array([score for _, score in rows], float)


@given(LENGTHS, st.integers(1, 12))
def test_every_span_up_to_the_longest_is_tried_but_the_whole_sentence(length: int, longest: int) -> None:
    """There are Σ_k (n - k + 1) for k up to L_max, each once (NDD-14).

    The released code by an error of one leaves out the longest, and those with the last word.
    """
    candidates, released = (scorers.list_spans(length, longest, is_released=way) for way in (False, True))
    expected = {(s, s + k) for k in range(1, min(longest, length - 1) + 1) for s in range(length - k + 1)}
    assert {(s, e) for s, e in candidates.tolist()} == expected
    assert len(candidates) == sum(length - k + 1 for k in range(1, min(longest, length - 1) + 1))
    assert {(s, e) for s, e in released.tolist()} == {(s, e) for s, e in expected if e - s < longest and e < length}


@given(scored_spans())
def test_no_two_spans_that_stay_overlap_and_each_that_goes_overlaps_a_cheaper_one(
    case: tuple[np.ndarray, np.ndarray],
) -> None:
    """The reading of errata E16; of those that go each overlaps one that stays and costs no more (NDD-15)."""
    candidates, scores = case
    stays = scorers.select_disjoint(candidates, scores)
    overlaps = scorers.find_overlaps(candidates)
    selected = np.flatnonzero(stays)
    assert (overlaps[np.ix_(selected, selected)] == np.eye(len(selected), dtype=bool)).all()
    for dropped in np.flatnonzero(~stays):
        assert min(scores[index] for index in selected if overlaps[dropped, index]) <= scores[dropped]


@given(scored_spans())
def test_lower_bounds_select_what_the_costs_do(case: tuple[np.ndarray, np.ndarray]) -> None:
    """With the costs that `find_undecided` asks for, and bounds of the others, the same spans stay, also with ties."""
    candidates, scores = case
    costs, is_final = np.floor(scores / 2), np.zeros(len(scores), bool)
    is_next, is_open = scorers.find_undecided(candidates, costs, is_final, ~is_final)
    while is_next.any():
        is_final |= is_next
        costs = np.where(is_final, scores, costs)
        is_next, is_open = scorers.find_undecided(candidates, costs, is_final, is_open)
    assert (scorers.select_disjoint(candidates, costs) == scorers.select_disjoint(candidates, scores)).all()


@given(scored_spans())
def test_released_way_keeps_what_no_cheaper_span_overlaps(case: tuple[np.ndarray, np.ndarray]) -> None:
    """Also one that itself goes drives out others; so fewer stay, and those stay the usual way as well."""
    candidates, scores = case[0], case[1] + np.arange(len(case[1])) / 100  # no two are equal
    overlaps, is_cheaper = scorers.find_overlaps(candidates), scores[None, :] < scores[:, None]
    expected = (~(overlaps & is_cheaper).any(axis=1)).tolist()
    stays = scorers.select_disjoint(candidates, scores, is_released=True)
    assert stays.tolist() == expected
    assert (scorers.select_disjoint(candidates, scores) | ~stays).all()


def test_of_equal_spans_the_longer_and_then_the_earlier_stays() -> None:
    """What costs the same drops more."""
    candidates = np.array([[1, 3], [0, 2], [0, 1], [4, 6], [5, 6]])
    for is_released in (False, True):
        stays = scorers.select_disjoint(candidates, np.ones(5), is_released=is_released)
        assert np.flatnonzero(stays).tolist() == [1, 3]
