"""Which words may not stand as wrong options in an item, and why."""

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
"""What became of a candidate: null for those taken. other_article: it goes with an, the gold word with a."""
CODE = {reason: code for code, reason in enumerate(REASONS)}
_TOKEN = re.compile(r"\w+")


def relate_words(lexicon: Lexicon, vectors: Vectors | None, most: float) -> Any:
    """Which words may not stand in one item: a sparse table [words, words] of places in REASONS."""
    from scipy.sparse import csr_array

    count = len(lexicon.words)
    by_name = defaultdict(list)
    for word, names in enumerate(lexicon.names):
        for name in names:
            by_name[name].append(word)

    def keys(lists: Sequence[Iterable[str]]) -> Keys:
        found = {word * count + other for word, names in enumerate(lists) for name in names for other in by_name[name]}
        found |= {key % count * count + key // count for key in found}
        return np.array(sorted(found), np.int64)

    near: list[Keys] = [np.zeros(0, np.int64)]
    if vectors and count:
        table = normalise(vectors(lexicon.words.to_list()))
        for start in range(0, count, ROWS):
            one, other = np.nonzero(table[start : start + ROWS] @ table.T > most)
            near.append((one + start) * count + other)
    lists = {
        "gold": np.arange(count, dtype=np.int64) * (count + 1), "form_of_gold": keys(lexicon.names),
        "synonym_of_gold": keys(lexicon.synonyms), "similar_to_gold": np.concatenate(near),
    }  # fmt: skip
    code = np.concatenate([np.full(len(found), CODE[reason], np.uint8) for reason, found in lists.items()])
    every, first = np.unique(np.concatenate(list(lists.values())), return_index=True)  # the first reason holds
    return csr_array((code[first], np.divmod(every, max(count, 1))), shape=(count, count))


def bar_words(kept: pl.DataFrame, lexicon: Lexicon, relations: Any) -> Iterator[tuple[slice, npt.NDArray[np.uint8]]]:
    """Of `ROWS` items at a time why a word may not stand in them, the first reason that holds: [items, words]."""
    gold = lexicon.word[kept["type"].to_numpy()]
    has_vowel = lexicon.words.str.contains("^[aeiou]").to_numpy()
    is_after = kept["question"].str.contains(rf"(?i)\ban?\s+{PLACEHOLDER}").to_numpy()
    for rows, held in _find_words(kept, lexicon):
        codes = relations[gold[rows]].toarray()
        held["other_article"] = is_after[rows, None] & (has_vowel != has_vowel[gold[rows], None])
        for reason, table in held.items():
            codes[(codes == 0) & table] = CODE[reason]
        codes[codes == 0] = CODE["not_drawn"]
        yield rows, codes


def _find_words(kept: pl.DataFrame, lexicon: Lexicon) -> Iterator[tuple[slice, dict[str, Masks]]]:
    """Of `ROWS` items at a time which words their question and their passage hold, in any form: [items, words] each."""
    from scipy.sparse import csr_array

    number: dict[str, int] = {}
    for names in (*lexicon.names, *lexicon.related):
        for name in names:
            number.setdefault(name, len(number))

    def table(lists: Sequence[Iterable[int]]) -> Any:
        rows = [sorted(set(row)) for row in lists]
        ends = np.cumsum([0, *map(len, rows)])
        ids = np.fromiter((one for row in rows for one in row), np.int64, int(ends[-1]))
        return csr_array((np.ones(len(ids), np.int32), ids, ends), shape=(len(rows), max(len(number), 1)))

    own, near = (table([[number[name] for name in names] for names in lists]).T.tocsr()
                 for lists in (lexicon.names, lexicon.related))  # fmt: skip
    known: dict[str, tuple[int, ...]] = {}

    def ids(text: str) -> Iterator[int]:
        for token in set(_TOKEN.findall(text.lower())):
            if token not in known:
                forms = {token, *(wordnet.lemmatize(token, upos) for upos in wordnet.POS)}
                known[token] = tuple(number[form] for form in forms if form in number)
            yield from known[token]

    for start in range(0, kept.height, ROWS):
        part = kept[start : start + ROWS]
        asked, said = (table([ids(text) for text in part[name]]) for name in ("question", "article"))
        yield slice(start, start + part.height), {
            "in_question": (asked @ own).toarray() > 0, "in_passage": (said @ own).toarray() > 0,
            "related_in_passage": (said @ near).toarray() > 0,
        }  # fmt: skip
