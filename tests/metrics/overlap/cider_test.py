"""W-CIDEr and CIDEr-D: the formula written with dictionaries, and hand arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.overlap.cider import cider, count_documents
from tests.support.oracles.overlap_cases import Case, draw_case, read_case, score_case, seeds
from tests.support.oracles.plain_cider import plainly


@settings(max_examples=15)
@given(seeds, st.booleans(), st.integers(1, 4), st.booleans())
def test_it_is_the_plain_one(seed: int, is_d: bool, order: int, has_weights: bool) -> None:
    """Both variants are the formula within 1e-12, 100 segments at a time, with weights and with all one (AAC-19)."""
    case = draw_case(seed) if has_weights else draw_case(seed).weigh(1)
    metric = cider(count_documents(case.references, order), order, "d" if is_d else "plain")
    expected, stats = plainly(case, order, is_d=is_d), metric.stats(read_case(case))
    np.testing.assert_allclose(metric.score(stats), expected, rtol=0, atol=1e-12)
    assert float(metric.score(stats.sum(axis=0))) == pytest.approx(np.mean(expected), abs=1e-12)


def test_cosines_by_hand() -> None:
    """Words of one document of two weigh log 2; CIDEr-D clips 2 to 1 and takes exp(-1 / 72) for a bigram more."""
    references = [[["x", "y"], ["x", "z"]], [["a", "b"], ["a", "c"]]]
    case = Case([["x", "y"], ["a", "d"]], references, [[0.5, 1.0], [1.0, 1.0]])
    frequencies = count_documents(references, 2)
    # of the second, a (log 2) is one of two words in each text
    assert score_case(cider(frequencies, 1), *case) == pytest.approx([0.5, 0.5])
    assert score_case(cider(frequencies, 2), *case)[0] == pytest.approx((0.5 + 0.25) / 2)
    references = [[["x", "y"]], [["o"]]]
    frequencies = count_documents(references, 1)
    short, longer = [["x", "x"], ["p"]], [["x", "x", "x"], ["p"]]
    metric, narrow = cider(frequencies, 1, "d"), cider(frequencies, 1, "d", sigma=1)
    assert score_case(metric, short, references) == pytest.approx([10 / (2 * math.sqrt(2)), 0])
    assert score_case(cider(frequencies, 1), short, references) == pytest.approx([2 / (2 * math.sqrt(2)), 0])
    clipped = 10 / (3 * math.sqrt(2))
    assert score_case(metric, longer, references)[0] == pytest.approx(clipped * math.exp(-1 / 72))
    assert score_case(narrow, longer, references)[0] == pytest.approx(clipped * math.exp(-0.5))
