"""Which pairs are compared: each once, sides balanced, close ones first."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.judging.bradley_terry import choose_pairs, draw_first_pairs


@given(st.integers(2, 15), st.integers(1, 40), st.integers(0, 3))
def test_no_ordered_pair_twice(count: int, size: int, seed: int) -> None:
    """First pairs come in both orders; further ones are new, as many as asked for or all there are, sides balanced."""
    first = draw_first_pairs(count, seed)
    assert {(b, a) for a, b in first} == set(first)
    assert {item for pair in first for item in pair} == set(range(count))
    values = np.random.default_rng(seed).normal(size=count)
    chosen = choose_pairs(values, np.ones(count), first, size, seed)
    assert len({*first, *chosen}) == len(first) + len(chosen)
    assert len(chosen) == min(size, count * (count - 1) - len(first))
    assert all(a != b for a, b in chosen)
    if len(chosen) <= count * (count - 1) // 2 - len(first) // 2 - count:  # no pair in both orders
        leads = np.bincount([a for a, _ in chosen], minlength=count) - np.bincount(
            [b for _, b in chosen], minlength=count
        )
        assert abs(leads).max() <= 3


def test_neighbours_meet() -> None:
    """Where the values are certain, a round compares neighbours."""
    pairs = choose_pairs(np.arange(10.0), np.full(10, 1e-9), [], 5, 0)
    assert {tuple(sorted(pair)) for pair in pairs} == {(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)}
