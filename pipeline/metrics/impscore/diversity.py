"""Which pairs of a data set's sentences to measure the pragmatic distance of (ImpScore, section 7.1; IMP-41)."""

import numpy as np

from pipeline.errors import BadInput
from pipeline.examples.splits import SEED
from pipeline.metrics.resample import Ints

PAIRS = 2000


def sample_pairs(text_count: int, pairs: int = PAIRS, seed: int = SEED) -> Ints:
    """Sample distinct unordered pairs of distinct rows; every set of pairs is equally likely.

    Pairs are numbered 0, 1, 2, … as (0,1), (0,2), (1,2), (0,3), …, and numbers are drawn, so that 100,000 texts cost no
    more than 100. Returns [pairs, 2], in each the lesser row first, in random order. BadInput if so many texts have
    fewer pairs.
    """
    possible = text_count * (text_count - 1) // 2
    if not 0 <= pairs <= possible:
        raise BadInput(f"{text_count} texts have {possible} distinct pairs; expected to sample {pairs}")
    return _decode_pairs(np.random.default_rng(seed).choice(possible, pairs, replace=False).astype(np.int64))


def _decode_pairs(pair_numbers: Ints) -> Ints:
    upper = ((1 + np.sqrt(1 + 8 * pair_numbers.astype(np.float64))) / 2).astype(np.int64)
    upper -= upper * (upper - 1) // 2 > pair_numbers  # at the end of a row of great numbers the root is rounded up
    return np.stack([pair_numbers - upper * (upper - 1) // 2, upper], axis=1)
