"""Random segments of few words, so that n-grams meet, the batch that holds them, and their scores."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from pipeline.metrics.overlap.metric import Metric
from pipeline.metrics.overlap.segments import Batch, read_batches
from pipeline.metrics.resample import Floats

seeds = st.integers(0, 2**32 - 1)


class Case(NamedTuple):
    candidates: list[list[str]]
    references: list[list[list[str]]]
    weights: list[list[float]]

    def reverse(self) -> "Case":
        references, weights = ([row[::-1] for row in rows] for rows in self[1:])
        return self._replace(references=references, weights=weights)

    def weigh(self, weight: float) -> "Case":
        return self._replace(weights=[[weight] * len(row) for row in self.weights])

    def raise_weights(self, place: int = 0, step: int = 1) -> "Case":
        """Raise the weights of some references by 0.3, to at most 1."""
        weights = [
            [min(1.0, weight + 0.3) if (i + j) % step == place % step else weight for j, weight in enumerate(row)]
            for i, row in enumerate(self.weights)
        ]
        return self._replace(weights=weights)


def draw_case(seed: int, count: int = 100, kinds: int = 5, shortest: int = 0, low: float = 0.0) -> Case:
    """Draw candidates of up to nine words with one to four references; weights are in tenths, the ends among them."""
    rng = np.random.default_rng(seed)
    words = list("春夏秋冬abcd")[:kinds]

    def text() -> list[str]:
        return [words[i] for i in rng.integers(0, kinds, rng.integers(shortest, 10))]

    references = [[text() for _ in range(rng.integers(1, 5))] for _ in range(count)]
    weights = [(rng.integers(round(low * 10), 11, len(row)) / 10).tolist() for row in references]
    return Case([text() for _ in range(count)], references, weights)


def read_case(case: Case, low: float = 0.0) -> Batch:
    (batch,) = read_batches(*case, size=1 << 20, low=low)
    return batch


def score_case(
    metric: Metric,
    candidates: list[list[str]],
    references: list[list[list[str]]],
    weights: list[list[float]] | None = None,
    size: int = 512,
) -> Floats:
    batches = read_batches(candidates, references, weights, size=size, low=metric.lowest)
    return np.concatenate([metric.score(metric.stats(batch)) for batch in batches])


def score_text(metric: Metric, candidate: str, references: list[str], weights: list[float] | None = None) -> float:
    """Score one segment, whose words have blanks between them."""
    rows = None if weights is None else [weights]
    texts = [[reference.split() for reference in references]]
    return float(score_case(metric, [candidate.split()], texts, rows)[0])


def locate_plainly(candidate: Sequence[str], reference: Sequence[str]) -> list[int]:
    """Locate each reference token of the canonical LCS in the candidate, else -1, by the textbook's table."""
    table = [[0] * (len(candidate) + 1) for _ in range(len(reference) + 1)]
    for i, reference_word in enumerate(reference):
        for j, word in enumerate(candidate):
            table[i + 1][j + 1] = table[i][j] + 1 if word == reference_word else max(table[i][j + 1], table[i + 1][j])
    places, i, j = [-1] * len(reference), len(reference), len(candidate)
    while i and j:
        if table[i][j] == table[i][j - 1]:
            j -= 1
        elif table[i][j] == table[i - 1][j]:
            i -= 1
        else:
            i, j = i - 1, j - 1
            places[i] = j
    return places


def measure_longest(first: Sequence[str], second: Sequence[str]) -> int:
    return sum(place >= 0 for place in locate_plainly(first, second))
