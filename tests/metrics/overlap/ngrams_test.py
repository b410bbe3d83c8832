"""n-grams that candidates share with references: by hand, and cached for their batch alone."""

from dataclasses import replace

from pipeline.metrics.overlap.segments import find_matches, read_batches
from tests.support.oracles.overlap_cases import draw_case, read_case


def test_by_hand() -> None:
    """Of a b a, a is in the first reference twice and b in both; a b is in the first. The b of another is in none."""
    (batch,) = read_batches([["a", "b", "a"], ["b"]], [[["a", "a", "b"], ["b"]], [["a"]]])
    words, pairs = find_matches(batch, 2)
    assert words.segment.tolist() == [0, 0, 1]
    assert words.first.tolist() == [0, 1, 3]
    assert words.times.tolist() == [2, 1, 1]
    shared = zip(words.reference.tolist(), words.shared.tolist(), words.reference_times.tolist(), strict=True)
    assert sorted(shared) == [(0, 0, 2), (0, 1, 1), (1, 1, 1)]
    assert (pairs.first.tolist(), pairs.shared.tolist(), pairs.reference.tolist()) == ([0, 1], [0], [0])


def test_matches_are_cached_for_their_batch_alone() -> None:
    """A batch that is read twice is searched once; one made of it with other words is searched again."""
    batch = read_case(draw_case(1, 5))
    assert find_matches(batch, 3)[0] is find_matches(batch, 1)[0]
    other = replace(batch, words=batch.words[::-1])
    assert find_matches(other, 1)[0] is not find_matches(batch, 1)[0]
