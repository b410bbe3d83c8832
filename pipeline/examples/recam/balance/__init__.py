"""Wrong options that give nothing away to who does not read the passage (REC-16, REC-32, errata E15).

**The trouble.** By the paper's rule (`choices.choose`) wrong options are words that readers like to name, most of them
often. Who counts how often each word is right in other items finds the right one without the passage. Here the five
options are to look alike from outside: each might as well be the gold word of its item.

**The first idea, and why it fails.** Take only gold words of other items, and make each wrong exactly four times as
often as it is right. Now look at one item from outside, leaving it out of the counts: its gold word is right once less
than its count says, the wrong options are not. A word that is right only once is never right elsewhere, and so gives
itself away.

**The way out: rates instead of counts.** Suppose that a word of rate r is right about r times and wrong about 4 r
times, and that neither number depends on the other (a mixture of Poisson distributions). Then leaving out one item
shifts nothing: whoever sees a word once elsewhere learns its rate, not its place here. It takes four steps:

1. `thin_items` leaves items out. By such rates some words happen to be never right, though they are offered. These must
   exist, so some items go whose gold words are right only there. How many are needed follows from how many words are
   right once and twice (Chao, 1984: at least f1 f1 / 2 f2).
2. `draw_rates` draws a rate for each word: it fits the rates under which the counts are most likely, then draws one
   that fits the word's own count.
3. `fit_questions` says how well a word goes with a question by the words beside the gap, by ending and by vectors, as
   a reader of the question alone would. An item's gold word always fits, so wrong options must fit as well on average.
4. `fit_shares` gives each word a probability in each item: by the readers' ranks, times weights which are changed in
   turn (iterative proportional fitting) until words are drawn at their rates, and the drawn words fit their questions
   as well as gold words do. `draw_words` then draws four by these probabilities.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.recam.balance.barred import CODE, REASONS, relate_words
from pipeline.examples.recam.balance.drawing import WRONG, draw_words, fit_shares
from pipeline.examples.recam.balance.fits import fit_questions
from pipeline.examples.recam.balance.lexicon import Ids, Lexicon, build_lexicon, hash_text, is_among
from pipeline.examples.recam.balance.pool import Pool, build_pool, read_candidates
from pipeline.examples.recam.balance.rates import draw_rates, thin_items
from pipeline.examples.recam.choices import SEED, Chosen, placed
from pipeline.examples.recam.items import DROPPED, SCHEMA, normalised
from pipeline.examples.recam.targets import SIMILAR, Vectors
from pipeline.text import wordnet

LEAST = 2 * WRONG  # words an item may choose from; of fewer the weights cannot be fitted
TOLD = 0.3  # probability of a gold word, told by the question, from which an item is left out


def choose_balanced(
    items: pl.DataFrame, candidates: pl.DataFrame, vectors: Vectors | None = None,
    pools: Callable[[str], wordnet.Pools] = wordnet.find_pools, most: float = SIMILAR, seed: int = SEED,
) -> Chosen:  # fmt: skip
    """Four wrong options for each item, such that no baseline of `metrics.recam.audit` finds the right one.

    Options are in small letters. Words are compared by all their base forms: a wrong option is not in the passage or
    the question in any form, nor has it a synonym or antonym of one word there, as gold words have none (section 3.4);
    it is of the gold word's shape: the same `upos` and `tag`, where items have these, the same ending of inflection,
    both base forms or neither; no two options are forms, synonyms or neighbours of each other.

    Items left out, with their reason:

    - `same_article`: another item of the article is kept; two items of one summary name each other's gold word.
    - `too_few_choices`: fewer than `LEAST` words are left, or no four of those drawn stand apart.
    - `too_frequent`: its gold word is that of more than `SHARE` of the items of its shape.
    - `never_right`: its gold word is right nowhere else, and is needed as a word that is offered but never right.
    - `told_by_question`: a model of the question alone gives its gold word more than `TOLD`, so that no passage is
      needed, whatever the other options are.

    Args:
        items: item_id, article, question, answer, and upos, tag where they are known. Of a small set (some hundreds of
            a shape) words and rates are too few for the numbers to come out even.
        candidates: item_id, word, rank (from 1): the best words of each reader; a word may come from several. They need
            not be many, since `EXTRA` others are added, but 50 of each reader leave more of them to choose from.
        vectors: of words; without, nothing is too near, and questions are compared by neighbours alone.
        pools: synonyms and antonyms of a lemma.
        most: cosine from which, exclusively, a word is too near to another.
        seed: of all draws. An item's depend on its id and the set, not on the order of rows.

    Returns:
        As `choices.choose`; candidates are those of readers with their reason, but for items that are left
        out for their article or gold word, and the words taken beside them, whose
        token_count is 0 and whose best_rank is null.

    Raises:
        BadInput: two items have the same id.
    """
    every = _prepare(items, seed)
    every, lexicon = build_lexicon(every, pools)
    relations = relate_words(lexicon, vectors, most)
    is_first = every.select((pl.col("draw") == pl.col("draw").min()).over("passage")).to_series()
    dropped = [_drop(every.filter(~is_first), "same_article")]
    kept = every.filter(is_first)
    # first for all, to see which items have too few words or need no passage, then for those that are left
    for is_last in (False, True):
        reasons = thin_items(kept, lexicon)
        dropped += _drop_each(kept, reasons)
        kept = kept.filter(pl.Series(reasons == ""))
        named, odd = read_candidates(kept, candidates, lexicon)
        pool = build_pool(kept, named, lexicon, relations, fit_questions(kept, lexicon, vectors), seed)
        draws = pool.where(pool.code == CODE["not_drawn"])
        is_in = np.bincount(draws.item, minlength=kept.height) >= LEAST
        draws = draws.where(is_in[draws.item])
        gold = kept["type"].to_numpy()
        share, told = fit_shares(draws, is_in, gold, lexicon, draw_rates(gold[is_in], lexicon, seed), seed)
        reasons = np.where(is_in, "", "too_few_choices").astype(object)
        if not is_last:
            reasons[told > TOLD] = "told_by_question"
            dropped += _drop_each(kept, reasons)
            gone = pl.Series(reasons != "")
            nothing = np.full((kept.height, WRONG), -1, np.int32)
            before = _explain(pool, kept, lexicon, nothing, odd).join(kept.filter(gone), on="item_id", how="semi")
            kept = kept.filter(~gone)
    taken, is_full = draw_words(draws, share, kept["draw"].to_numpy(), lexicon, relations, seed)
    dropped.append(_drop(kept.filter(pl.Series(~is_full)), "too_few_choices"))
    words = lexicon.words.gather(lexicon.word[taken[is_full].ravel()]).to_list()
    rows = kept.select("item_id", "article", "question", "answer").filter(pl.Series(is_full))
    wrong = pl.Series("wrong", [words[i : i + WRONG] for i in range(0, len(words), WRONG)], dtype=pl.List(pl.String))
    made = [placed(row, seed) for row in rows.with_columns(wrong).iter_rows(named=True)]
    became = pl.concat([before, _explain(pool, kept, lexicon, np.where(is_full[:, None], taken, -1), odd)])
    return Chosen(pl.DataFrame(made, schema=SCHEMA), pl.concat(dropped).sort("row_key"), _in_order(became))


def _prepare(items: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Items by their ids, with a number of their own that draws them: nothing depends on the order they came in."""
    found = items.sort("item_id").with_columns(
        pl.col("answer").str.to_lowercase(),
        normalised().alias("passage"),
        pl.Series("draw", [hash_text(f"{seed} {name}") for name in items["item_id"].sort()], dtype=pl.UInt64),
    )
    if twice := found.filter(pl.col("item_id").is_duplicated())["item_id"].to_list():
        raise BadInput(f"items: field 'item_id' should differ between rows, found {twice[0]!r} more than once")
    return found


def _drop(items: pl.DataFrame, reason: str) -> pl.DataFrame:
    return items.select(reason=pl.lit(reason), row_key="item_id").cast(DROPPED)  # type: ignore[arg-type]


def _drop_each(items: pl.DataFrame, reasons: npt.NDArray[np.object_]) -> list[pl.DataFrame]:
    return [_drop(items.filter(pl.Series(reasons == why)), str(why)) for why in sorted({*reasons} - {""})]


def _explain(pool: Pool, kept: pl.DataFrame, lexicon: Lexicon, taken: Ids, odd: pl.DataFrame) -> pl.DataFrame:
    """What became of the readers' words, and the words that were taken beside them."""
    own = np.int64(max(len(lexicon.word), 1))
    rows, columns = np.nonzero(taken >= 0)
    key = pool.item.astype(np.int64) * own + pool.type
    is_taken = is_among(key, np.sort(rows * own + taken[rows, columns]))
    code = np.where(is_taken, 0, pool.code)
    said = (pool.times > 0) | is_taken
    found = pl.DataFrame({
        "item_id": kept["item_id"].gather(pool.item[said]),
        "word": lexicon.words.gather(lexicon.word[pool.type[said]]),
        "token_count": pool.times[said].astype(np.int64), "best_rank": pool.rank[said].astype(np.int64),
        "reason": pl.Series(REASONS, dtype=pl.String).gather(code[said]),
    })  # fmt: skip
    found = found.with_columns(best_rank=pl.when(pl.col("token_count") > 0).then("best_rank"))
    return pl.concat([found, odd])


def _in_order(became: pl.DataFrame) -> pl.DataFrame:
    return became.sort("item_id", pl.col("reason").is_not_null(), "best_rank", "word", nulls_last=True)
