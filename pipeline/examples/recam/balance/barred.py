"""Which words may not be wrong options of an item, and why."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam.balance.lexicon import ROWS, Keys, Lexicon, Masks, normalise
from pipeline.examples.recam.items import PLACEHOLDER
from pipeline.examples.recam.targets import Vectors
from pipeline.text import wordnet

REASONS = (
    None, "not_drawn", "gold", "form_of_gold", "synonym_of_gold", "similar_to_gold", "in_question", "in_passage",
    "related_in_passage", "other_article", "other_shape", "no_gold_word",
)  # fmt: skip
"""Why a candidate was not drawn: null for drawn ones; other_article: it needs `an` where the gold word needs `a`."""
CODE = {reason: code for code, reason in enumerate(REASONS)}
_TOKEN = re.compile(r"\w+")


def relate_words(lexicon: Lexicon, vectors: Vectors | None, threshold: float) -> Any:
    """Return which words may not stand in one item: a sparse table [words, words] of places in `REASONS`."""
    from scipy.sparse import csr_array

    count = len(lexicon.words)
    words_by_name = defaultdict(list)
    for word, names in enumerate(lexicon.names):
        for name in names:
            words_by_name[name].append(word)

    def list_keys(names_by_word: Sequence[Iterable[str]]) -> Keys:
        pairs = {(a, b) for a, names in enumerate(names_by_word) for name in names for b in words_by_name[name]}
        return np.array(sorted({key for a, b in pairs for key in (a * count + b, b * count + a)}), np.int64)

    near: list[Keys] = [np.zeros(0, np.int64)]
    if vectors and count:
        units = normalise(vectors(lexicon.words.to_list()))
        for start in range(0, count, ROWS):
            rows, columns = np.nonzero(units[start : start + ROWS] @ units.T > threshold)
            near.append((rows + start) * count + columns)
    keys_by_reason = {
        "gold": np.arange(count, dtype=np.int64) * (count + 1),
        "form_of_gold": list_keys(lexicon.names),
        "synonym_of_gold": list_keys(lexicon.synonyms),
        "similar_to_gold": np.concatenate(near),
    }
    codes = np.concatenate([np.full(len(keys), CODE[reason], np.uint8) for reason, keys in keys_by_reason.items()])
    pairs, first = np.unique(np.concatenate(list(keys_by_reason.values())), return_index=True)  # the first reason holds
    return csr_array((codes[first], np.divmod(pairs, max(count, 1))), shape=(count, count))


def bar_words(items: pl.DataFrame, lexicon: Lexicon, relations: Any) -> Iterator[tuple[slice, npt.NDArray[np.uint8]]]:
    """Yield, for `ROWS` items at a time, the first reason why each word may not stand in them [items, words]."""
    gold = lexicon.word[items["type"].to_numpy()]
    has_vowel = lexicon.words.str.contains("^[aeiou]").to_numpy()
    has_article = items["question"].str.contains(rf"(?i)\ban?\s+{PLACEHOLDER}").to_numpy()
    for rows, masks in _find_words(items, lexicon):
        codes = relations[gold[rows]].toarray()
        masks["other_article"] = has_article[rows, None] & (has_vowel != has_vowel[gold[rows], None])
        for reason, mask in masks.items():
            codes[(codes == 0) & mask] = CODE[reason]
        codes[codes == 0] = CODE["not_drawn"]
        yield rows, codes


def _find_words(items: pl.DataFrame, lexicon: Lexicon) -> Iterator[tuple[slice, dict[str, Masks]]]:
    """Yield, for `ROWS` items at a time, which words the question and the passage hold in any form [items, words]."""
    from scipy.sparse import csr_array

    ids: dict[str, int] = {}
    forms, related = (
        [[ids.setdefault(name, len(ids)) for name in names] for names in lists]
        for lists in (lexicon.names, lexicon.related)
    )

    def build_table(rows: Iterable[Iterable[int]]) -> Any:
        columns = [sorted(set(row)) for row in rows]
        ends = np.cumsum([0, *map(len, columns)])
        flat = np.array([column for row in columns for column in row], np.int64)
        return csr_array((np.ones(len(flat), np.int32), flat, ends), shape=(len(columns), max(len(ids), 1)))

    form_table, related_table = (build_table(rows).T.tocsr() for rows in (forms, related))
    ids_by_token: dict[str, tuple[int, ...]] = {}

    def list_ids(text: str) -> Iterator[int]:
        for token in set(_TOKEN.findall(text.lower())):
            if token not in ids_by_token:
                token_forms = {token, *(wordnet.lemmatize(token, upos) for upos in wordnet.POS)}
                ids_by_token[token] = tuple(ids[form] for form in token_forms if form in ids)
            yield from ids_by_token[token]

    for start in range(0, items.height, ROWS):
        part = items[start : start + ROWS]
        question, passage = (build_table(map(list_ids, part[name])) for name in ("question", "article"))
        counts = {
            "in_question": question @ form_table,
            "in_passage": passage @ form_table,
            "related_in_passage": passage @ related_table,
        }
        yield slice(start, start + part.height), {reason: table.toarray() > 0 for reason, table in counts.items()}
