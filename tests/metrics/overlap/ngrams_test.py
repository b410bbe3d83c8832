"""n-grams that candidates share with references: by hand, against dictionaries, and cached for their batch alone."""

from dataclasses import replace

from hypothesis import given, settings

from pipeline.metrics.overlap.ngrams import find_matches
from pipeline.metrics.overlap.segments import read_batches
from tests.support.oracles.overlap_cases import draw_case, read_case, seeds
from tests.support.oracles.plain_cider import grams


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


@settings(max_examples=30)
@given(seeds)
def test_counts_are_those_of_dictionaries(seed: int) -> None:
    """For n of 1 to 4, in whatever order they are read, of this batch and of one with other candidates."""
    case = draw_case(seed, 20, kinds=3)
    for variant in (case, case._replace(candidates=case.candidates[::-1])):
        batch = read_case(variant)
        find_matches(batch, 2)
        pairs = [
            (segment, candidate, reference)
            for segment, (candidate, references) in enumerate(zip(*variant[:2], strict=True))
            for reference in references
        ]
        for n, ngrams in enumerate(find_matches(batch, 4), 1):
            expected = [
                (segment, number, times, grams(reference, n)[gram])
                for number, (segment, candidate, reference) in enumerate(pairs)
                for gram, times in grams(candidate, n).items()
                if gram in grams(reference, n)
            ]
            times = ngrams.times[ngrams.shared]
            columns = (ngrams.segment[ngrams.shared], ngrams.reference, times, ngrams.reference_times)
            assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == sorted(expected)


def test_matches_are_cached_for_their_batch_alone() -> None:
    """A batch that is read twice is searched once; one made of it with other words is searched again."""
    batch = read_case(draw_case(1, 5))
    assert find_matches(batch, 3)[0] is find_matches(batch, 1)[0]
    other = replace(batch, words=batch.words[::-1])
    assert find_matches(other, 1)[0] is not find_matches(batch, 1)[0]
