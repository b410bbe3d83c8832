"""Wrong options of a cloze item, from what readers answer who have not seen it (ReCAM, section 3.5; REC-15, REC-16).
Items in folds are answered by readers trained on the others; the four commonest words that are not right as well count.
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from pipeline.examples.recam.building import SIMILAR, Vectors
from pipeline.examples.recam.items import OPTIONS, SCHEMA, normalise
from pipeline.io.hashes import hash_number
from pipeline.reasons import find_fault
from pipeline.text import wordnet

FOLDS = 4
TOP = 10  # words of each reader
SEED = 42


def assign_folds(items: pl.DataFrame, count: int = FOLDS, seed: int = SEED) -> pl.Series:
    """Assign each item a fold, 0 to count - 1; items of one article share it: no reader has seen the passage."""
    articles = items.select(normalise())["article"]
    distinct = articles.unique().sort()
    places = np.random.default_rng(seed).permutation(len(distinct)) % count
    return articles.replace_strict(distinct, pl.Series(places, dtype=pl.Int64)).alias("fold")


class Choices(NamedTuple):
    """Items with five options, those that have too few, and what became of every candidate."""

    items: pl.DataFrame  # as of `cloze`
    dropped: pl.DataFrame  # reason (too_few_choices), row_key (the item_id)
    candidates: pl.DataFrame  # item_id, word, token_count, best_rank, reason; null for those taken


def choose(
    items: pl.DataFrame, candidates: pl.DataFrame, vectors: Vectors | None = None, threshold: float = SIMILAR,
    seed: int = SEED,
) -> Choices:  # fmt: skip
    """Choose four wrong options for each item: of the words left in its pool those that most readers named.
    Then the better best rank and the alphabet decide. A word goes as gold, form_of_gold, synonym_of_gold,
    similar_to_gold (its cosine with the gold word is above the threshold; nothing is without vectors) or less_frequent.
    """
    words = candidates.with_columns(pl.col("word").str.to_lowercase()).group_by("item_id", "word")
    rows = words.agg(token_count=pl.len().cast(pl.Int64), best_rank=pl.col("rank").min().cast(pl.Int64))
    rows = rows.join(items.select("item_id", pl.col("answer").str.to_lowercase()), on="item_id", how="inner")
    reasons = _find_reasons(rows.select("answer", "word").unique(), vectors, threshold)
    rows = rows.join(reasons, on=["answer", "word"])
    rows = rows.sort("item_id", pl.col("reason").is_not_null(), -pl.col("token_count"), "best_rank", "word")
    is_less_frequent = pl.col("reason").is_null() & (pl.int_range(pl.len()).over("item_id") >= OPTIONS - 1)
    rows = rows.with_columns(reason=pl.when(is_less_frequent).then(pl.lit("less_frequent")).otherwise("reason"))
    wrong_words = rows.filter(pl.col("reason").is_null()).group_by("item_id", maintain_order=True).agg(wrong="word")
    options = items.join(wrong_words, on="item_id", how="left", maintain_order="left")
    has_enough = pl.col("wrong").list.len().fill_null(0) == OPTIONS - 1
    chosen_items = [place_options(row, seed) for row in options.filter(has_enough).iter_rows(named=True)]
    too_few = options.filter(~has_enough).select(reason=pl.lit("too_few_choices"), row_key="item_id")
    return Choices(pl.DataFrame(chosen_items, schema=SCHEMA), too_few, rows.drop("answer"))


def place_options(row: dict[str, object], seed: int) -> dict[str, object]:
    """Give an item its options in an order that depends on its id alone: the gold word's place tells nothing."""
    options = [str(row["answer"]), *row["wrong"]]  # type: ignore[misc]
    order = np.random.default_rng(hash_number(f"{seed} {row['item_id']}")).permutation(OPTIONS).tolist()
    item = {name: row[name] for name in ("item_id", "article", "question")}
    return {**item, "options": [options[place] for place in order], "label": order.index(0)}


def _find_reasons(pairs: pl.DataFrame, vectors: Vectors | None, threshold: float) -> pl.DataFrame:
    """answer, word and why the word may not stand beside the answer, or null."""
    cosines = np.zeros(pairs.height)
    if vectors and pairs.height:
        answer_vectors, word_vectors = (vectors(pairs[name].to_list()) for name in ("answer", "word"))
        lengths = np.linalg.norm(answer_vectors, axis=1) * np.linalg.norm(word_vectors, axis=1)
        cosines = np.einsum("nd,nd->n", answer_vectors, word_vectors) / np.maximum(lengths, 1e-12)
    reasons: list[str | None] = []
    for (answer, word), cosine in zip(pairs.iter_rows(), cosines.tolist(), strict=True):
        gold_forms = {wordnet.lemmatize(answer, upos) for upos in wordnet.POS}
        word_forms = {wordnet.lemmatize(word, upos) for upos in wordnet.POS}
        synonyms = {name for form in gold_forms | {answer} for name in wordnet.find_pools(form).synonyms}
        reason = find_fault(
            gold=word == answer, form_of_gold=bool(gold_forms & word_forms),
            synonym_of_gold=bool(synonyms & (word_forms | {word})), similar_to_gold=cosine > threshold,
        )  # fmt: skip
        reasons.append(reason)
    return pairs.with_columns(reason=pl.Series(reasons, dtype=pl.String))
