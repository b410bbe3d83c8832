"""Weights of the neighbours of a dropped span."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.ndd import distance

SPANS = st.integers(2, 20).flatmap(
    lambda n: st.integers(0, n - 1).flatmap(lambda s: st.tuples(st.just(n), st.just(s), st.integers(s + 1, n)))
)
SHARES = st.floats(0.1, 1)


def totals(of: str) -> list[float]:
    """Sums of the weights for twelve words and a span of two, at each place."""
    return [float(distance.WEIGHTS[of](12, start, start + 2).sum()) for start in range(11)]


def test_totals_are_those_of_the_errata() -> None:
    """Totals are those of errata E17: 13.0264 wherever the span is if balanced; others vary as stated there."""
    assert (min(totals("exponential")), max(totals("exponential"))) == pytest.approx((6.51, 8.19), abs=5e-3)
    assert (min(totals("released")), max(totals("released"))) == pytest.approx((10.67, 11.68), abs=5e-3)
    assert 0.2 < max(totals("printed")) / min(totals("printed")) - 1 < 0.3
    assert totals("balanced") == pytest.approx([13.0264] * 11, abs=5e-5)


@given(SPANS, SHARES)
def test_weights_are_one_a_neighbour_and_fall_with_distance(span: tuple[int, int, int], mu: float) -> None:
    """Exponential weights are 1 next to the span and fall by μ a word on either side (NDD-05)."""
    length, start, end = span
    for of in distance.WEIGHTS.values():
        assert of(length, start, end, mu).shape == (length - (end - start),)
    actual = distance.exponential(length, start, end, mu)
    before, right = actual[:start][::-1], actual[start:]
    for side in (before, right):
        assert side == pytest.approx(mu ** np.arange(len(side)))


def test_decay_makes_later_words_count_less() -> None:
    """ν^k of the words that remain, in order (NDD-19)."""
    assert distance.decay(5, 1, 3, 0.5).tolist() == [1, 0.5, 0.25]
