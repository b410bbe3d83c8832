"""Longest common subsequences of whole batches, held against a plain dynamic programme."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.overlap.rouge import locate_matches, measure_lengths
from pipeline.metrics.overlap.segments import read_batches
from tests.support.oracles.overlap_cases import locate_plainly

texts = st.text("ab,", max_size=9)
long_texts = st.tuples(st.text("abc", min_size=1, max_size=5), st.integers(1, 25)).map(lambda t: t[0] * t[1])
segments = st.lists(st.tuples(texts | long_texts, st.lists(texts | long_texts, min_size=1, max_size=3)), min_size=1)


@settings(max_examples=50)
@given(segments)
def test_it_is_the_dynamic_programme(pairs: list[tuple[str, list[str]]]) -> None:
    """Lengths and places are those of the table, for candidates of no, few and more than 64 tokens side by side."""
    expected = [locate_plainly(candidate, text) for candidate, references in pairs for text in references]
    [batch] = read_batches([list(c) for c, _ in pairs], [[list(r) for r in references] for _, references in pairs])
    assert measure_lengths(batch).tolist() == [sum(place >= 0 for place in places) for places in expected]
    assert locate_matches(batch).tolist() == [place for places in expected for place in places]


@pytest.mark.parametrize("size", [63, 64, 65, 128, 129])
def test_widths_around_machine_words(size: int) -> None:
    """A candidate is the LCS of itself and itself, also where its bits fill a machine word to the last."""
    text = [str(i % 7) for i in range(size)]
    [batch] = read_batches([text], [[text, text[::2], text[1:]]])
    assert measure_lengths(batch).tolist() == [size, (size + 1) // 2, size - 1]
    assert locate_matches(batch)[:size].tolist() == list(range(size))
