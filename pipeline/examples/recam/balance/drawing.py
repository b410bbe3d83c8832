"""How probable each word is as a wrong option of an item, and the draw of four."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.examples.recam.balance.lexicon import Floats, Ids, Keys, Lexicon, Masks, draw_uniform, is_among
from pipeline.examples.recam.balance.pool import Pool
from pipeline.examples.recam.items import OPTIONS

WRONG = OPTIONS - 1
RANK = 10.0  # the words of this rank and of the first stand as 1 to 2
_FAR = 4.0  # deviations to which fits are cut
ROUNDS = 30  # of fitting
SPARE = 3 * WRONG  # words drawn for an item, as some stand too near to each other


class Shares(NamedTuple):
    """How words are drawn, and what a model of the question alone makes of gold words."""

    share: Floats  # how probable each word is among the four of its item, [p]
    told: Floats  # the probability of each item's gold word, [items]


def fit_shares(draws: Pool, is_in: Masks, gold: Ids, lexicon: Lexicon, rates: Floats, seed: int) -> Shares:
    """Probabilities that agree with gold words in how often words come, and in the means of how well they fit.

    The weights are log-linear in the type and in the fits, as those of the distribution nearest to the readers' ranks
    are that agrees in these (Csiszár, 1975); the former are fitted in turn, the latter by damped Newton steps.
    """
    from scipy.stats import poisson

    told = np.zeros(len(is_in))
    if not len(draws.item):
        return Shares(np.zeros(0), told)
    starts = np.flatnonzero(np.diff(draws.item, prepend=-1))
    sizes = np.diff(starts, append=len(draws.item))
    counts = np.bincount(gold[is_in], minlength=len(rates))
    fits, golds = _standardise(draws, counts[draws.type], counts[gold] - 1, is_in)
    base = 1 / (RANK + draws.rank - 1)
    of_type, slope = np.ones(len(rates)), np.zeros(fits.shape[1])

    def shares() -> Floats:
        found: Floats = base * of_type[draws.type] * np.exp(fits @ slope)
        for _ in range(3):  # what the bound cuts off goes to the others
            found = np.minimum(found * np.repeat(WRONG / np.add.reduceat(found, starts), sizes), 0.95)
        return found

    wanted, goal = WRONG * rates, WRONG * golds[is_in].sum(axis=0)
    for turn in range(ROUNDS):
        share = shares()
        now = np.bincount(draws.type, weights=share, minlength=len(rates))
        if turn == ROUNDS // 2:
            # how often a word comes should vary as in a Poisson distribution: what the draws lack is added here
            spread = np.bincount(draws.type, weights=share * (1 - share), minlength=len(rates))
            lack = np.sqrt(np.clip(1 - spread / np.maximum(now, 1e-9), 0, 1))
            at = draw_uniform(lexicon.draw[lexicon.word], lexicon.shape.astype(np.uint64), seed + 4)
            wanted = np.maximum(wanted + lack * (poisson.ppf(at, wanted) - wanted), 0.0)
        of_type *= np.clip(wanted / np.maximum(now, 1e-9), 0.1, 10)
        share = shares()
        curve = (fits * share[:, None]).T @ fits
        step = np.linalg.solve(curve + (0.01 * np.trace(curve) + 1e-9) * np.eye(len(slope)), goal - share @ fits)
        slope += np.clip(step / 2, -0.5, 0.5)
    # the question alone, and how often words are gold: an item's own word once less, as seen from outside
    items, usual = draws.item[starts], counts + 0.5
    own = (usual[gold[items]] - 1) * np.exp(golds[items] @ slope)
    told[items] = own / (own + np.add.reduceat(usual[draws.type] * np.exp(fits @ slope), starts))
    share = shares()
    return Shares(np.maximum(share, 1e-12), told)


def _standardise(draws: Pool, often: Keys, golds_often: Keys, is_in: Masks) -> tuple[Floats, Floats]:
    """Fits less the mean of words that are gold about as often, as deviations of gold words: [p, ways], [items, ways].

    Rare words fit less, or more, than others whatever the question is; were that left, the weights of fits would make
    up for what rates have not quite reached.
    """
    one, other = (np.log2(np.maximum(counts, 0) + 1).round(0).astype(np.int64) for counts in (often, golds_often))
    size = int(max(one.max(), other.max())) + 1
    sizes = np.maximum(np.bincount(one, minlength=size), 1)
    means = np.stack([np.bincount(one, weights=way, minlength=size) / sizes for way in draws.fits.T], axis=1)
    fits, golds = draws.fits - means[one], draws.golds - means[other]
    scale = np.maximum(golds[is_in].std(axis=0), 1e-6)
    return np.clip(fits / scale, -_FAR, _FAR), np.clip(golds / scale, -_FAR, _FAR)


def draw_words(
    draws: Pool, share: Floats, numbers: npt.NDArray[np.uint64], lexicon: Lexicon, relations: Any, seed: int
) -> tuple[Ids, Masks]:
    """Four types of each item, and which items have them: [n, 4] and [n]; by Pareto sampling (Rosén, 1997).

    It takes the smallest odds of a uniform number against those of the wanted probability, so that words come with
    about the probabilities wanted; of two that stand too near the later is passed over.
    """
    at = draw_uniform(numbers[draws.item], lexicon.draw[lexicon.word[draws.type]], seed + 3)
    odds = np.log(at / (1 - at)) - np.log(share / (1 - share))
    order = np.lexsort((odds, draws.item))
    place = np.arange(len(order)) - np.searchsorted(draws.item, draws.item)  # items are in order
    first = order[place < SPARE]
    drawn = np.full((len(numbers), SPARE), -1, np.int32)
    drawn[draws.item[first], place[place < SPARE]] = draws.type[first]
    taken = np.full((len(numbers), WRONG), -1, np.int32)
    counts = np.zeros(len(numbers), np.int64)
    near = relations.tocoo()
    known = np.sort(near.row.astype(np.int64) * len(lexicon.words) + near.col)
    for column in drawn.T:
        is_free = (column >= 0) & (counts < WRONG)
        for other in taken.T:
            key = lexicon.word[column].astype(np.int64) * len(lexicon.words) + lexicon.word[other]
            is_free &= (other < 0) | ~is_among(key, known)
        rows = np.flatnonzero(is_free)
        taken[rows, counts[rows]] = column[rows]
        counts[rows] += 1
    return taken, counts == WRONG
