"""Random segments of few words, so that n-grams meet, and the batch that holds them."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from pipeline.metrics.overlap.segments import Batch, read_batches

seeds = st.integers(0, 2**32 - 1)


class Case(NamedTuple):
    """Segments."""

    candidates: list[list[str]]
    references: list[list[list[str]]]
    weights: list[list[float]]


def drawn(seed: int, count: int = 100, kinds: int = 5, shortest: int = 0, low: float = 0.0) -> Case:
    """Candidates of up to nine words with one to four references; weights are in tenths, the ends among them."""
    rng = np.random.default_rng(seed)
    words = list("春夏秋冬abcd")[:kinds]

    def text() -> list[str]:
        return [words[i] for i in rng.integers(0, kinds, rng.integers(shortest, 10))]

    references = [[text() for _ in range(rng.integers(1, 5))] for _ in range(count)]
    weights = [(rng.integers(round(low * 10), 11, len(owned)) / 10).tolist() for owned in references]
    return Case([text() for _ in range(count)], references, weights)


def whole(case: Case, low: float = 0.0, *, weighted: bool = True) -> Batch:
    """All segments in one batch."""
    (batch,) = read_batches(case.candidates, case.references, case.weights if weighted else None, size=1 << 20, low=low)
    return batch
