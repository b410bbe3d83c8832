"""How often words are right and wrong: items that are left out for it, and a rate for each word.

Frequent words are bounded, as one that is right in many items must be wrong four times as often. See the package for
why some words have to be right nowhere.
"""

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam.balance.lexicon import Floats, Ids, Lexicon, draw_uniform
from pipeline.examples.recam.items import OPTIONS

SHARE = 1 / (OPTIONS + 1)  # of the gold words of a shape that may be one word: it is wrong four times as often
UNSEEN = 1.3  # words never right as a multiple of what they are at least: rates of rare words differ, too


def thin_items(kept: pl.DataFrame, lexicon: Lexicon) -> npt.NDArray[np.object_]:
    """Why an item goes, or nothing: its gold word is too frequent, or is needed as one that is never right: [items]."""
    reasons = np.full(kept.height, "", object)
    gold, draw = kept["type"].to_numpy(), kept["draw"].to_numpy()
    order = np.argsort(draw, kind="stable")
    while True:
        here = order[reasons[order] == ""]
        counts = np.bincount(gold[here], minlength=len(lexicon.word))
        sizes = np.bincount(lexicon.shape, weights=counts)[lexicon.shape]
        over = np.flatnonzero(counts > np.maximum(sizes * SHARE, 1))
        if not len(over):
            break
        for one in over:
            own = here[gold[here] == one]
            reasons[own[int(max(sizes[one] * SHARE, 1)) :]] = "too_frequent"
    for shape in np.unique(lexicon.shape[gold[here]]):
        none, once, twice = (int(((counts == n) & (lexicon.shape == shape)).sum()) for n in range(3))
        spare = next((n for n in range(once) if none + n >= UNSEEN * _count_unseen(once - n, twice)), once)
        alone = here[(counts[gold[here]] == 1) & (lexicon.shape[gold[here]] == shape)]
        reasons[alone[:spare]] = "never_right"
    return reasons


def _count_unseen(once: int, twice: int) -> float:
    """Words never seen, at least, when so many are seen once and twice: Chao (1984), corrected for small numbers."""
    return once * (once - 1) / (2 * (twice + 1))


def draw_rates(gold: Ids, lexicon: Lexicon, seed: int) -> Floats:
    """A rate for each type, drawn given how often it is gold; those of a shape add up to its items: [types].

    The distribution of a shape's rates is that under which its counts are most likely, by EM on a grid (Laird, 1978).
    """
    counts = np.bincount(gold, minlength=len(lexicon.word))
    at = draw_uniform(lexicon.draw[lexicon.word], lexicon.shape.astype(np.uint64), seed + 2)
    rates = np.zeros(len(counts))
    for shape in np.unique(lexicon.shape[gold]):
        own = lexicon.shape == shape
        seen, of_type, times = np.unique(counts[own], return_inverse=True, return_counts=True)
        grid = np.geomspace(0.05, 1.5 * seen[-1] + 1, 80)
        logs = seen[:, None] * np.log(grid) - grid  # less log n!, which is the same for all rates
        likely = np.exp(logs - logs.max(axis=1, keepdims=True))
        mix = np.full(len(grid), 1 / len(grid))
        for _ in range(1000):
            given = likely * mix
            given /= given.sum(axis=1, keepdims=True)
            mix = times @ given / times.sum()
        chosen = (np.cumsum(given, axis=1)[of_type] < at[own, None]).sum(axis=1)
        drawn = grid[np.minimum(chosen, len(grid) - 1)]
        rates[own] = drawn * counts[own].sum() / drawn.sum()
    return rates
