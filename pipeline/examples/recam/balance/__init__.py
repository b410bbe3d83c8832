"""Wrong options that give nothing away without the passage (REC-16, REC-32, errata E15).

By the paper's rule (`building.choose_options`) wrong options are words that readers like to name. A counter of how
often each word is right in other items finds the right one without the passage. Here each option might be the gold
word. Making each word wrong exactly four times as often as right fails: without its own item a gold word is right once
less.

Rates work: if a word of rate r is right about r times and wrong about 4 r times, each a Poisson number that does not
depend on the other, leaving out one item shifts nothing. It takes four steps:

1. `thin_items` drops items whose gold words are right only there, so that some words are offered and never right. How
   many follows from how many words are right once and twice (Chao, 1984). It bounds frequent words, too.
2. `draw_rates` fits the rates under which the counts are most likely, then draws one for each word by its own count.
3. `fit_questions` says how well a word goes with a question by the words beside the gap and by vectors. A gold word
   always fits, so wrong options must fit as well on average.
4. `fit_probabilities` gives each word a probability in each item: the readers' ranks, times weights which are changed
   in turn (iterative proportional fitting) until rates and fits are met. `draw_words` draws four by them.

Step 4 takes some items at a time, in bounded memory. Rates and fits are those of all items: by those of a part, a
model trained on all would find the gold words.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam.balance import drawing
from pipeline.examples.recam.balance import lexicon as lexicons
from pipeline.examples.recam.balance.drawing import WRONG, Pool
from pipeline.examples.recam.balance.lexicon import Floats, Lexicon, Masks
from pipeline.examples.recam.building import SEED, SIMILAR, Vectors, place_options
from pipeline.examples.recam.items import SCHEMA, normalise
from pipeline.io.hashes import hash_number
from pipeline.reasons import Read

PART = 10_000  # items whose words are drawn together at most: they take 1.5 GB
MIN_CHOICES = 2 * WRONG  # words an item may choose from; of fewer the weights cannot be fitted
MAX_GOLD = 0.3  # probability of a gold word by the question alone, above which an item is dropped


def choose_balanced(
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    vectors: Vectors | None = None,
    threshold: float = SIMILAR,
    seed: int = SEED,
) -> Read:
    """Choose four wrong options for each item, such that no baseline of `metrics.recam.audit` finds the right one.

    Options are in small letters. Words are compared by all their base forms. A wrong option is not in the passage or
    the question in any form, nor is a one-word synonym or antonym of it, as for gold words (section 3.4). It has the
    gold word's shape: the same `upos`, the same ending of inflection, both base forms or neither. No two options are
    forms, synonyms or neighbours of each other.

    Items are dropped as `same_article` (another item of the article is kept); `too_few_choices` (fewer than
    `MIN_CHOICES` words remain, or no four of those drawn may stand together); `too_frequent` (its gold word is that of
    more than `SHARE` of the items of its shape); `never_right` (its gold word is needed as one that is offered but
    never right); `told_by_question` (a model of the question alone gives its gold word more than `MAX_GOLD`).

    In a set of some hundreds of a shape words and rates are too few for the numbers to come out even. Candidates are
    item_id, word, rank from 1; 50 of each reader leave most to choose from. Without `vectors` nothing is too near. An
    item's draws depend on its id and the set, not on the order of rows. The result is as of `building.choose_options`.
    """
    hashes = pl.Series([hash_number(f"{seed} {item_id}") for item_id in items["item_id"]], dtype=pl.UInt64)
    items = items.with_columns(pl.col("answer").str.to_lowercase(), passage=normalise(), draw=hashes)
    ordered = items.sort("draw", "item_id")  # no result depends on the order of the rows
    items, lexicon = lexicons.build_lexicon(ordered)
    relations = lexicons.relate_words(lexicon, vectors, threshold)

    weigh = partial(_weigh_parts, candidates, lexicon=lexicon, relations=relations, vectors=vectors, seed=seed)
    is_first = items.select((pl.col("draw") == pl.col("draw").min()).over("passage")).to_series().to_numpy()
    first_items, same_article = _split(items, np.where(is_first, "", "same_article"))
    candidate_items, thinned = _split(first_items, lexicons.thin_items(first_items, lexicon))
    # first for all, to find the items that have too few words or need no passage, then for the rest
    fit_parts, unfit = zip(*(_check_part(*part) for part in weigh(candidate_items)), strict=True)
    fit_items = pl.concat(fit_parts)
    fit_items, thinned_again = _split(fit_items, lexicons.thin_items(fit_items, lexicon))
    parts = (_draw_part(*part, lexicon, relations, seed) for part in weigh(fit_items))
    item_parts, too_few = zip(*parts, strict=True)
    dropped = pl.concat([same_article, thinned, *unfit, thinned_again, *too_few])
    return Read(pl.concat(item_parts).sort("item_id"), dropped.sort("row_key"))


class _Weights(NamedTuple):
    draws: Pool  # the words that are drawn from
    is_in: Masks  # of each item: whether it has enough words
    of_words: Floats  # probabilities of the words that are drawn from
    of_golds: Floats  # and of each item's gold word by the question alone


def _weigh_parts(
    candidates: pl.DataFrame, items: pl.DataFrame, lexicon: Lexicon, relations: Any, vectors: Vectors | None, seed: int
) -> Iterator[tuple[pl.DataFrame, _Weights]]:
    """Yield parts of the items with the probabilities of their words: at least one part, of at most `PART` items."""
    fits, gold = lexicons.fit_questions(items, lexicon, vectors), items["type"].to_numpy()
    counts, rates = np.bincount(gold, minlength=len(lexicon.word)), lexicons.draw_rates(gold, lexicon, seed)
    for number, rows in enumerate(np.array_split(np.arange(items.height), -(-items.height // PART) or 1)):
        part, gold_of_part = items[rows], gold[rows]
        reader_words = drawing.read_candidates(part, candidates, lexicon)
        fits_of_part = [fit.select(rows) for fit in fits]
        pool = drawing.build_pool(part, reader_words, lexicon, relations, fits_of_part, rates, seed)
        is_in = np.bincount(pool.item, minlength=part.height) >= MIN_CHOICES
        draws = pool.filter(is_in[pool.item])
        part_seed = seed + number  # how often a word is wrong varies from part to part
        probabilities = drawing.fit_probabilities(draws, is_in, gold_of_part, counts, lexicon, rates, part_seed)
        yield part, _Weights(draws, is_in, *probabilities)


def _check_part(items: pl.DataFrame, weights: _Weights) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the items that are fit, and the others with their reason."""
    reasons = np.where(weights.is_in, "", "too_few_choices").astype(object)
    reasons[weights.of_golds > MAX_GOLD] = "told_by_question"
    return _split(items, reasons)


def _draw_part(
    items: pl.DataFrame, weights: _Weights, lexicon: Lexicon, relations: Any, seed: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return items with options, and those that have too few."""
    draw = items["draw"].to_numpy()
    types, is_full = drawing.draw_words(weights.draws, weights.of_words, draw, lexicon, relations, seed)
    full_items, too_few = _split(items, np.where(is_full, "", "too_few_choices"))
    words = lexicon.words.gather(lexicon.word[types[is_full].ravel()]).to_list()
    wrong = [words[start : start + WRONG] for start in range(0, len(words), WRONG)]
    rows = full_items.with_columns(wrong=pl.Series(wrong, dtype=pl.List(pl.String))).iter_rows(named=True)
    return pl.DataFrame([place_options(row, seed) for row in rows], schema=SCHEMA), too_few


def _split(items: pl.DataFrame, reasons: npt.NDArray[Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    reason = pl.Series("reason", reasons.astype(str), dtype=pl.String)
    dropped = items.select(reason, row_key="item_id").filter(pl.col("reason") != "")
    return items.filter(reason == ""), dropped
