"""Reading candidates, references and weights: numbers by hand, batches in a stream, and clear errors."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.metrics.overlap.segments import find_matches, read_batches
from tests.support.oracles.overlap_cases import draw_case, read_case, seeds


@given(seeds, st.integers(1, 12))
def test_batches_hold_every_token(seed: int, size: int) -> None:
    """Whatever the size, batches give back all texts and weights in their order."""
    case = draw_case(seed, 10)
    candidates, references, weights = [], [], []
    for batch in read_batches(*case, size=size):
        assert len(batch.ends) - 1 <= size
        token = np.array([*batch.types, ""], dtype=object)
        candidates += [token[part].tolist() for part in np.split(batch.words, batch.ends[1:-1])]
        texts = [token[part].tolist() for part in np.split(batch.ref_words, batch.ref_ends[1:-1])]
        for segment in range(len(batch.ends) - 1):
            places = np.flatnonzero(batch.owner == segment)
            references.append([texts[place] for place in places])
            weights.append(batch.weights[places].tolist())
    assert (candidates, references, weights) == case


def test_only_a_batch_is_read_ahead() -> None:
    """Two batches of two take four segments of an endless stream."""
    read_rows = []

    def endless() -> Iterator[list[str]]:
        while True:
            read_rows.append(1)
            yield ["雪"]

    stream = read_batches(endless(), ([["雪"]] for _ in iter(int, 1)), size=2)
    first = next(stream)
    next(stream)
    assert len(read_rows) == 4
    assert first.weights.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("candidates", "references", "weights", "message"),
    [
        ([["a"]], [], None, "row 1: no references, but candidate"),
        ([["a"]], [[["a"]], [["a"]]], None, "row 2: no candidate, but references"),
        ([["a"], ["a"]], [[["a"]], [["a"]]], [[1]], "row 2: no weights, but candidate and references"),
        ([["a"]], [[]], None, r"row 1, references: expected a list of at least one, found \[\]"),
        ([["a"]], [None], None, "row 1, references: expected a list of at least one, found None"),
        ([["a"], ["a"]], [[["a"]], ["a b"]], None, "row 2, references: expected a list of tokens, found 'a b'"),
        ([["a"]], [[["a", None]]], None, "row 1, references: expected tokens that are text, found None"),
        ([["a"], [["a"]]], [[["a"]], [["a"]]], None, r"row 2, candidate: expected tokens that are text, found \['a'\]"),
        ([["a"]], [[["a"]]], [[0.5, 0.5]], r"row 1, weights: expected a list of 1, as of .* found \[0.5, 0.5\]"),
        ([["a"]], [[["a"]]], [[1.1]], "row 1, weights: expected numbers between 0 and 1, found 1.1"),
        ([["a"]], [[["a"]]], [[-0.1]], "row 1, weights: expected numbers between 0 and 1, found -0.1"),
        ([["a"]], [[["a"]]], [[float("nan")]], "row 1, weights: expected numbers between 0 and 1, found nan"),
        ([["a"]], [[["a"]]], [[True]], "row 1, weights: expected numbers between 0 and 1, found True"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_names_its_row(
    candidates: object, references: object, weights: object, message: str
) -> None:
    """Streams of different lengths, text in place of tokens, no references, and weights that are none are errors."""
    with pytest.raises(BadInput, match=message):
        list(read_batches(candidates, references, weights))  # type: ignore[arg-type]


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
