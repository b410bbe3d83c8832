"""Step 4 of the package: words that an item may choose from, how probable each is as a wrong option, a draw of four."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipeline.examples.recam.balance import lexicon as lexicons
from pipeline.examples.recam.balance.lexicon import Fit, Floats, Hashes, Ids, Keys, Lexicon, Masks, Singles
from pipeline.examples.recam.items import OPTIONS

EXTRA = 120  # words besides the readers', by how often they are gold: readers name few of the rare ones
_LEAST_FIT = 1e-4  # above it a word fits at all


class Pool(NamedTuple):
    """Items, each with the words it may choose from, in the order of item and type: [p] each."""

    item: Ids  # row among the items
    type: Ids
    rank: Ids  # the best that a reader gives it
    fits: Singles  # how well it fits the question, in several ways: [p, ways]
    golds: Singles  # and the gold word of each item: [items, ways]

    def filter(self, mask: Masks) -> "Pool":
        """Return the rows for which the mask holds."""
        return Pool._make((*(column[mask] for column in self[:-1]), self.golds))


def read_candidates(items: pl.DataFrame, candidates: pl.DataFrame, lexicon: Lexicon) -> pl.DataFrame:
    """Return what readers name, of words that a type of the item's shape has: item, type, rank (the best)."""
    rows = items.select("item_id", "shape").with_row_index("item").with_columns(pl.col("item").cast(pl.Int32))
    words = candidates.select("item_id", "word", "rank").join(rows, on="item_id")
    words = words.with_columns(pl.col("word").str.to_lowercase())
    words = words.group_by("item", "shape", "word").agg(rank=pl.col("rank").min())
    return words.join(lexicon.types, on=["shape", "word"]).select("item", "type", "rank")


def build_pool(
    items: pl.DataFrame,
    reader_words: pl.DataFrame,
    lexicon: Lexicon,
    relations: Any,
    fits: Sequence[Fit],
    rates: Floats,
    seed: int,
) -> Pool:
    """Return the readers' words that may stand, and `EXTRA` others, drawn by their rates."""
    gold, shape, draw = (items[name].to_numpy() for name in ("type", "shape", "draw"))
    log_rates = np.log(np.maximum(rates, 0.1))
    named_rows = reader_words.sort("item", "type").to_numpy().astype(np.int32).reshape(-1, 3)
    starts = np.searchsorted(named_rows[:, 0], np.arange(items.height + 1))
    way_count = sum(1 + fit.is_of_words for fit in fits)
    no_fits = np.zeros((0, way_count), np.float32)
    blocks: list[tuple[Ids, Singles, Singles]] = [(np.zeros((0, 3), np.int32), no_fits, no_fits)]
    for rows, is_open in lexicons.list_open_words(items, lexicon, relations):
        block = named_rows[starts[rows.start] : starts[rows.stop]]
        item, word_type, rank = (block - [rows.start, 0, 0]).T
        uniform = lexicons.draw_uniform(draw[rows, None], lexicon.draw[lexicon.word], seed + 1)
        keys = log_rates - np.log(-np.log(uniform))  # the greatest are a sample without replacement (Gumbel)
        keys[(shape[rows, None] != lexicon.shape) | ~is_open[:, lexicon.word]] = -np.inf
        keys[item, word_type] = -np.inf
        extra_item, extra_type = np.nonzero(_mark_greatest(keys, EXTRA))
        last_rank = np.zeros(len(keys), np.int32)
        np.maximum.at(last_rank, item, rank.astype(np.int32))
        extra = np.stack([extra_item + rows.start, extra_type, last_rank[extra_item] + 1], axis=1)
        table = np.concatenate([block, extra.astype(np.int32)])
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        table = table[is_open[table[:, 0] - rows.start, lexicon.word[table[:, 1]]]]
        row, word = table[:, 0] - rows.start, lexicon.word[table[:, 1]]
        blocks.append((table, *_centre(fits, rows, row, word, lexicon.word[gold[rows]])))
    table, *columns = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return Pool(*np.ascontiguousarray(table.T), *columns)


def _mark_greatest(keys: Floats, count: int) -> Masks:
    """Mark the greatest keys of each row, except infinitely small ones."""
    marks = np.zeros(keys.shape, np.bool_)
    if keys.shape[1]:
        best = np.argpartition(-keys, min(count, keys.shape[1]) - 1, axis=1)[:, :count]
        np.put_along_axis(marks, best, np.isfinite(np.take_along_axis(keys, best, axis=1)), axis=1)
    return marks


def _centre(fits: Sequence[Fit], rows: slice, row: Ids, word: Ids, gold: Ids) -> tuple[Singles, Singles]:
    """Return how well words and gold words fit, and if at all, less the mean of the words open to the item."""
    count = len(gold)
    ways: list[tuple[Singles, Floats]] = []
    marks: list[tuple[Singles, Floats]] = []
    for fit in fits:
        values = fit(rows)
        way = values[row, word], values[np.arange(count), gold] - fit.gold_loss[rows]
        ways.append(way)
        if fit.is_of_words:
            marks.append(((way[0] > _LEAST_FIT).astype(np.float32), (way[1] > _LEAST_FIT).astype(np.float64)))
    size = np.maximum(np.bincount(row, minlength=count), 1)
    word_fits, gold_fits = [], []
    for of_words, of_golds in ways + marks:
        mean = np.bincount(row, weights=of_words, minlength=count) / size
        word_fits.append((of_words - mean[row]).astype(np.float32))
        gold_fits.append((of_golds - mean).astype(np.float32))
    return np.stack(word_fits, axis=1), np.stack(gold_fits, axis=1)


WRONG = OPTIONS - 1
RANK = 10.0  # the words of this rank and of the first stand as 1 to 2
_FAR = 4.0  # standard deviations at which fits are clipped
ROUNDS = 30  # of fitting
SPARE = 3 * WRONG  # words drawn for an item, as some are too near to each other


def fit_probabilities(
    draws: Pool, is_in: Masks, gold: Ids, counts: Keys, lexicon: Lexicon, rates: Floats, seed: int
) -> tuple[Floats, Floats]:
    """Fit probabilities under which wrong words come as often, and fit as well on average, as gold words do.

    Returns that of each word to be among the four of its item, [p], and that of each item's gold word by a model of the
    question alone, [items]. `counts` and `rates` [types] are of the whole set, of which these items may be a part.
    The weights are log-linear in the type and in the fits (Csiszár, 1975): fitted in turn, and by damped Newton steps.
    """
    from scipy.stats import poisson

    gold_probability = np.zeros(len(is_in))
    if not len(draws.item):
        return np.zeros(0), gold_probability
    rate_of_shape = np.bincount(lexicon.shape, weights=rates)
    count_of_shape = np.bincount(lexicon.shape[gold[is_in]], minlength=len(rate_of_shape))
    rates = rates * (count_of_shape / np.maximum(rate_of_shape, 1e-9))[lexicon.shape]
    starts = np.flatnonzero(np.diff(draws.item, prepend=-1))
    sizes = np.diff(starts, append=len(draws.item))
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
            uniform = lexicons.draw_uniform(lexicon.draw[lexicon.word], lexicon.shape.astype(np.uint64), seed + 4)
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
    return np.maximum(predict(), 1e-12), gold_probability


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
    uniform = lexicons.draw_uniform(item_hashes[draws.item], lexicon.draw[lexicon.word[draws.type]], seed + 3)
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
