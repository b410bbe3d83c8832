"""Ranked candidates: by hand and by properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.recam.retrieval import find_ranks, mrr, recall, report
from pipeline.papers.recam import TABLES_3_4

LISTS = [["trust", "hope"], ["hope", "trust", "power"], ["power", "hope"], []]


def test_by_hand() -> None:
    """First, third, nowhere, and in an empty list: MRR is (1 + 1/3) / 4, recall 1/4 and from k = 3 on 2/4."""
    right = ["trust", "power", "trust", "hope"]
    ranks = find_ranks(LISTS, right)
    assert ranks.tolist() == [1, 3, 0, 0]
    assert mrr(ranks) == pytest.approx(1 / 3)
    assert [recall(ranks, k) for k in (1, 2, 3, 10)] == [0.25, 0.25, 0.5, 0.5]
    assert report(LISTS, right) == pytest.approx((1 / 3, 0.25, 0.5, 0.5, 4))


def test_a_word_is_found_where_it_stands_first() -> None:
    """Of a word that is listed twice the better place counts, and another case is another word."""
    assert find_ranks([["a", "b", "b"], ["B", "b"]], ["b", "B"]).tolist() == [2, 1]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=20).map(lambda ranks: np.array(ranks, np.int64)))
def test_bounds_and_order(ranks: np.ndarray) -> None:
    """R@1 ≤ MRR ≤ 1 and MRR ≤ R@∞ (REC-22); recall grows with k and is the share of found words in the end."""
    grown = [recall(ranks, k) for k in range(1, 14)]
    assert grown[0] <= mrr(ranks) + 1e-12
    assert mrr(ranks) <= grown[-1] + 1e-12
    assert grown == sorted(grown)
    assert grown[-1] == pytest.approx(np.mean(ranks > 0))


@given(st.permutations(["trust", "hope", "power", "doubt"]), st.sampled_from(["trust", "hope", "none"]))
def test_a_rank_leads_back_to_the_word(candidates: list[str], right: str) -> None:
    """What stands at the rank is the right word; 0 is said only of a word that is not there."""
    (rank,) = find_ranks([candidates], [right])
    assert candidates[rank - 1] == right if rank else right not in candidates


@pytest.mark.parametrize("numbers", [row for table in TABLES_3_4.values() for row in table.values()])
def test_the_papers_numbers_are_possible(numbers: tuple[float, ...]) -> None:
    """In tables 3 and 4 R@1 ≤ MRR ≤ 1 and R@1 ≤ R@5 ≤ R@10."""
    mean_rank, first, five, ten = numbers
    assert first <= mean_rank <= 1
    assert first <= five <= ten <= 1


def test_what_cannot_be_measured_is_an_error() -> None:
    """No ranks, a k of 0, and lists without as many right words have no numbers."""
    with pytest.raises(ValueError, match="at least one rank"):
        mrr(np.array([], np.int64))
    with pytest.raises(ValueError, match="none below 0"):
        recall(np.array([1, -1]), 1)
    with pytest.raises(ValueError, match="1 or more"):
        recall(np.array([1]), 0)
    with pytest.raises(ValueError, match="a right word for each of 1 lists, got 2"):
        find_ranks([["a"]], ["a", "b"])
