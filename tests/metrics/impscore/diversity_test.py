"""Random pairs: distinct, unordered, uniform, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.metrics.impscore.studies import _decode_pairs, sample_pairs

counts = st.integers(0, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n * (n - 1) // 2)))


@given(counts, st.integers(0, 2**32))
def test_distinct_unordered_pairs_of_distinct_rows(counts: tuple[int, int], seed: int) -> None:
    """Pairs are of two rows in range, the lesser first, and none comes twice; the same seed draws them again."""
    texts, pairs = counts
    actual = sample_pairs(texts, pairs, seed)
    assert actual.shape == (pairs, 2)
    assert actual.dtype == np.int64
    assert (actual[:, 0] < actual[:, 1]).all()
    assert ((actual >= 0) & (actual < max(texts, 1))).all()
    assert len({tuple(pair) for pair in actual.tolist()}) == pairs
    assert np.array_equal(actual, sample_pairs(texts, pairs, seed))


@given(st.integers(2, 40))
def test_all_pairs_can_be_had(texts: int) -> None:
    """Asked for as many as there are, the sample is every pair."""
    actual = sample_pairs(texts, texts * (texts - 1) // 2)
    assert sorted(map(tuple, actual.tolist())) == [(i, j) for i in range(texts) for j in range(i + 1, texts)]


@pytest.mark.parametrize("upper", [1, 2, 3, 94_906_267, 10**9 - 1, 2**31 - 1])
def test_first_and_last_pair_of_a_row(upper: int) -> None:
    """Where a row of pairs begins and ends the number is still told right, roots of great numbers being rounded."""
    first = upper * (upper - 1) // 2
    actual = _decode_pairs(np.array([first, first + upper - 1, first + upper]))
    assert actual.tolist() == [[0, upper], [upper - 1, upper], [0, upper + 1]]


@pytest.mark.parametrize(("texts", "pairs"), [(63, 2000), (1, 1), (0, 1), (2, 2), (5, -1)])
def test_too_few_texts(texts: int, pairs: int) -> None:
    """63 texts have 1,953 pairs: fewer than asked for is an error that says so; 64 texts are enough."""
    with pytest.raises(BadInput, match=f"{texts * (texts - 1) // 2} distinct pairs"):
        sample_pairs(texts, pairs)
    assert len(sample_pairs(64)) == 2000
