"""Ranked candidates: by hand and by properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.recam.reading import find_ranks, mrr, report

LISTS = [["trust", "hope"], ["hope", "trust", "power"], ["power", "hope"], []]


def test_by_hand() -> None:
    """First, third, nowhere, in an empty list: MRR is (1 + 1/3) / 4; no ranks at all have no numbers."""
    right = ["trust", "power", "trust", "hope"]
    ranks = find_ranks(LISTS, right)
    assert ranks.tolist() == [1, 3, 0, 0]
    assert mrr(ranks) == pytest.approx(1 / 3)
    assert find_ranks([["a", "b", "b"], ["B", "b"]], ["b", "B"]).tolist() == [2, 1]  # the better place, the same case
    assert report(LISTS, right) == pytest.approx((1 / 3, 0.25, 0.5, 0.5, 4))
    with pytest.raises(ValueError, match="at least one rank"):
        report([], [])
    with pytest.raises(ValueError, match="zip"):
        find_ranks([["a"]], ["a", "b"])


@given(st.lists(st.integers(0, 12), min_size=1, max_size=20))
def test_bounds_and_order(ranks: list[int]) -> None:
    """R@1 ≤ MRR ≤ 1 and MRR ≤ R@∞ (REC-22); recall at k is the share of words with a rank from 1 to k."""
    words = [str(number) for number in range(1, 13)]
    numbers = report([words] * len(ranks), [str(rank) for rank in ranks])
    shares = [np.mean([0 < rank <= k for rank in ranks]) for k in (1, 5, 10, 12)]
    assert numbers[1:] == pytest.approx((*shares[:3], len(ranks)))
    assert shares[0] <= numbers.mrr + 1e-12
    assert numbers.mrr <= shares[-1] + 1e-12
