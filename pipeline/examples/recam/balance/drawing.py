"""Step 4 of the package: how probable each word is as a wrong option of an item, and the draw of four."""

from typing import Any, NamedTuple

import numpy as np

from pipeline.examples.recam.balance.lexicon import Floats, Hashes, Ids, Keys, Lexicon, Masks, draw_uniform
from pipeline.examples.recam.balance.pool import Pool
from pipeline.examples.recam.items import OPTIONS

WRONG = OPTIONS - 1
RANK = 10.0  # the words of this rank and of the first stand as 1 to 2
_FAR = 4.0  # standard deviations at which fits are clipped
ROUNDS = 30  # of fitting
SPARE = 3 * WRONG  # words drawn for an item, as some are too near to each other


class Probabilities(NamedTuple):
    """How words are drawn, and what a model of the question alone gives gold words."""

    drawn: Floats  # of each word to be among the four of its item, [p]
    gold: Floats  # of each item's gold word, by the question alone, [items]


def fit_probabilities(
    draws: Pool, is_in: Masks, gold: Ids, lexicon: Lexicon, rates: Floats, seed: int
) -> Probabilities:
    """Fit probabilities under which wrong words come as often, and fit as well on average, as gold words do.

    The weights are log-linear in the type and in the fits (Csiszár, 1975): fitted in turn, and by damped Newton steps.
    """
    from scipy.stats import poisson

    gold_probability = np.zeros(len(is_in))
    if not len(draws.item):
        return Probabilities(np.zeros(0), gold_probability)
    starts = np.flatnonzero(np.diff(draws.item, prepend=-1))
    sizes = np.diff(starts, append=len(draws.item))
    counts = np.bincount(gold[is_in], minlength=len(rates))
    fits, golds = _standardise(draws, counts[draws.type], counts[gold] - 1, is_in)
    base = 1 / (RANK + draws.rank - 1)
    type_weights, slope = np.ones(len(rates)), np.zeros(fits.shape[1])

    def predict() -> Floats:
        shares: Floats = base * type_weights[draws.type] * np.exp(fits @ slope)
        for _ in range(3):  # what the bound cuts off goes to the other words
            shares = np.minimum(shares * np.repeat(WRONG / np.add.reduceat(shares, starts), sizes), 0.95)
        return shares

    target, fit_target = WRONG * rates, WRONG * golds[is_in].sum(axis=0)
    for turn in range(ROUNDS):
        shares = predict()
        expected = np.bincount(draws.type, weights=shares, minlength=len(rates))
        if turn == ROUNDS // 2:
            # how often a word comes should vary as in a Poisson distribution: add the variance that the draws lack
            variance = np.bincount(draws.type, weights=shares * (1 - shares), minlength=len(rates))
            lack = np.sqrt(np.clip(1 - variance / np.maximum(expected, 1e-9), 0, 1))
            uniform = draw_uniform(lexicon.draw[lexicon.word], lexicon.shape.astype(np.uint64), seed + 4)
            target = np.maximum(target + lack * (poisson.ppf(uniform, target) - target), 0.0)
        type_weights *= np.clip(target / np.maximum(expected, 1e-9), 0.1, 10)
        shares = predict()
        curve = (fits * shares[:, None]).T @ fits
        ridge = (0.01 * np.trace(curve) + 1e-9) * np.eye(len(slope))
        slope += np.clip(np.linalg.solve(curve + ridge, fit_target - shares @ fits) / 2, -0.5, 0.5)
    # the question alone, and how often words are gold: an item's own word once less, leaving the item out
    items, priors = draws.item[starts], counts + 0.5
    gold_weights = (priors[gold[items]] - 1) * np.exp(golds[items] @ slope)
    word_weights = np.add.reduceat(priors[draws.type] * np.exp(fits @ slope), starts)
    gold_probability[items] = gold_weights / (gold_weights + word_weights)
    return Probabilities(np.maximum(predict(), 1e-12), gold_probability)


def _standardise(draws: Pool, counts: Keys, gold_counts: Keys, is_in: Masks) -> tuple[Floats, Floats]:
    """Return fits less the mean of words that are gold about as often, in deviations: [p, ways], [items, ways]."""
    level, gold_level = (np.log2(np.maximum(n, 0) + 1).round(0).astype(np.int64) for n in (counts, gold_counts))
    level_count = int(max(level.max(), gold_level.max())) + 1
    sizes = np.maximum(np.bincount(level, minlength=level_count), 1)
    sums = [np.bincount(level, weights=way, minlength=level_count) for way in draws.fits.T]
    means = np.stack([way / sizes for way in sums], axis=1)
    fits, golds = draws.fits - means[level], draws.golds - means[gold_level]
    scale = np.maximum(golds[is_in].std(axis=0), 1e-6)
    return np.clip(fits / scale, -_FAR, _FAR), np.clip(golds / scale, -_FAR, _FAR)


def draw_words(
    draws: Pool, probabilities: Floats, item_hashes: Hashes, lexicon: Lexicon, relations: Any, seed: int
) -> tuple[Ids, Masks]:
    """Draw four types for each item, and return them with the items that have four: [n, 4] and [n].

    Pareto sampling (Rosén, 1997) takes the smallest odds of a uniform number against those of the probability, so that
    words come with about their probabilities. Of two words that are too near, the later is left out.
    """
    uniform = draw_uniform(item_hashes[draws.item], lexicon.draw[lexicon.word[draws.type]], seed + 3)
    odds = np.log(uniform / (1 - uniform)) - np.log(probabilities / (1 - probabilities))
    order = np.lexsort((odds, draws.item))
    place = np.arange(len(order)) - np.searchsorted(draws.item, draws.item)  # items are in order
    first = order[place < SPARE]
    candidates = np.full((len(item_hashes), SPARE), -1, np.int32)
    candidates[draws.item[first], place[place < SPARE]] = draws.type[first]
    types = np.full((len(item_hashes), WRONG), -1, np.int32)
    counts = np.zeros(len(item_hashes), np.int64)
    near = relations.tocoo()
    near_keys = near.row.astype(np.int64) * len(lexicon.words) + near.col
    for column in candidates.T:
        is_free = (column >= 0) & (counts < WRONG)
        for other in types.T:
            keys = lexicon.word[column].astype(np.int64) * len(lexicon.words) + lexicon.word[other]
            is_free &= (other < 0) | ~np.isin(keys, near_keys)
        rows = np.flatnonzero(is_free)
        types[rows, counts[rows]] = column[rows]
        counts[rows] += 1
    return types, counts == WRONG
