"""Steps 1 and 2 of the package: drop items for the sake of rates, and draw a rate for each word."""

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam.balance.lexicon import Floats, Ids, Lexicon, draw_uniform
from pipeline.examples.recam.items import OPTIONS

SHARE = 1 / (OPTIONS + 1)  # most of a shape's gold words that may be one word: it is wrong four times as often
UNSEEN = 1.3  # words never right, as a multiple of Chao's lower bound: the rates of rare words differ, too


def thin_items(items: pl.DataFrame, lexicon: Lexicon) -> npt.NDArray[np.object_]:
    """Return why each item is dropped, or "": `too_frequent` or `never_right` [items]."""
    reasons = np.full(items.height, "", object)
    gold, draw = items["type"].to_numpy(), items["draw"].to_numpy()
    order = np.argsort(draw, kind="stable")
    while True:
        remaining = order[reasons[order] == ""]
        counts = np.bincount(gold[remaining], minlength=len(lexicon.word))
        sizes = np.bincount(lexicon.shape, weights=counts)[lexicon.shape]
        frequent = np.flatnonzero(counts > np.maximum(sizes * SHARE, 1))
        if not len(frequent):
            break
        for word_type in frequent:
            type_items = remaining[gold[remaining] == word_type]
            reasons[type_items[int(max(sizes[word_type] * SHARE, 1)) :]] = "too_frequent"
    shapes = lexicon.shape[gold[remaining]]
    for shape in np.unique(shapes):
        never, once, twice = (int(((counts == n) & (lexicon.shape == shape)).sum()) for n in range(3))
        enough = (n for n in range(once) if never + n >= UNSEEN * _count_unseen(once - n, twice))
        single_items = remaining[(counts[gold[remaining]] == 1) & (shapes == shape)]
        reasons[single_items[: next(enough, once)]] = "never_right"
    return reasons


def _count_unseen(once: int, twice: int) -> float:
    """Estimate the fewest words never seen if so many are seen once and twice (Chao, 1984; bias-corrected)."""
    return once * (once - 1) / (2 * (twice + 1))


def draw_rates(gold: Ids, lexicon: Lexicon, seed: int) -> Floats:
    """Draw a rate for each type, given how often it is gold; the rates of a shape add up to its items [types].

    The distribution of a shape's rates is that under which its counts are most likely, by EM on a grid (Laird, 1978).
    """
    counts = np.bincount(gold, minlength=len(lexicon.word))
    uniform = draw_uniform(lexicon.draw[lexicon.word], lexicon.shape.astype(np.uint64), seed + 2)
    rates = np.zeros(len(counts))
    for shape in np.unique(lexicon.shape[gold]):
        is_shape = lexicon.shape == shape
        levels, level, times = np.unique(counts[is_shape], return_inverse=True, return_counts=True)
        grid = np.geomspace(0.05, 1.5 * levels[-1] + 1, 80)
        logs = levels[:, None] * np.log(grid) - grid  # without log n!, which is the same for all rates
        likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
        mix = np.full(len(grid), 1 / len(grid))
        for _ in range(1000):
            posterior = likelihood * mix
            posterior /= posterior.sum(axis=1, keepdims=True)
            mix = times @ posterior / times.sum()
        places = (np.cumsum(posterior, axis=1)[level] < uniform[is_shape, None]).sum(axis=1)
        grid_rates = grid[np.minimum(places, len(grid) - 1)]
        rates[is_shape] = grid_rates * counts[is_shape].sum() / grid_rates.sum()
    return rates
