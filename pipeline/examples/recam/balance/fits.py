"""How well words go with a question, as who reads the question alone would guess from other items."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipeline.examples.recam.balance.lexicon import ROWS, Floats, Ids, Lexicon, Singles, normalise
from pipeline.examples.recam.items import PLACEHOLDER
from pipeline.examples.recam.targets import Vectors

_SMOOTH = 5.0  # times that a neighbour is taken to have been seen with all words alike
_BESIDE = re.compile(r"\w+|[^\w\s]")


class Fit(NamedTuple):
    """How well words go with each item's question, told from other items."""

    left: Any  # [items, f]
    right: Any  # [f, words]
    less: Floats  # of each item: by how much its gold word goes worse, seen from outside
    is_of_words: bool

    def __call__(self, rows: slice) -> Singles:
        """[rows, words]"""
        found = self.left[rows] @ self.right
        return np.asarray(found if isinstance(found, np.ndarray) else found.toarray(), np.float32)


def fit_questions(kept: pl.DataFrame, lexicon: Lexicon, vectors: Vectors | None) -> list[Fit]:
    """By the words left of the placeholder and right of it, one and two, by all of the question; by vectors."""
    gold = lexicon.word[kept["type"].to_numpy()]
    cut = [[_BESIDE.findall(part.lower()) for part in question.split(PLACEHOLDER, 1)] for question in kept["question"]]
    cut = [[["^", *parts[0]], [*([] if len(parts) < 2 else parts[1]), "$"]] for parts in cut]
    before, after = [[left[-1]] for left, _ in cut], [[right[0]] for _, right in cut]
    far = [sorted({word for part in parts for word in part if len(word) > 3}) for parts in cut]
    around = [[f"{' '.join(left[-2:])} <", f"> {' '.join(right[:2])}"] for left, right in cut]
    found = [
        _fit_features(gold, len(lexicon.words), features, beside)
        for features, beside in (
            (before, None), (after, None),
            (before, _pair_neighbours(cut, lexicon, 0)), (after, _pair_neighbours(cut, lexicon, 1)),
            (around, None), (far, None),
        )
    ]  # fmt: skip
    if vectors:
        means = _average_vectors([[word for part in parts for word in part] for parts in cut], vectors)
        words = normalise(vectors(lexicon.words.to_list())).T
        found.append(Fit(means, words, np.zeros(len(cut)), is_of_words=False))
    return found


def _pair_neighbours(cut: Sequence[Sequence[Sequence[str]]], lexicon: Lexicon, side: int) -> list[tuple[str, int]]:
    """Where questions of the set hold gold words of it: the word to their left, or right, and their number."""
    number = {name: row for row, name in enumerate(lexicon.words)}
    pairs = (pair for parts in cut for part in parts for pair in pairwise(part))
    return [(pair[side], number[pair[1 - side]]) for pair in pairs if pair[1 - side] in number]


def _average_vectors(rows: Sequence[Sequence[str]], vectors: Vectors) -> Singles:
    """The direction of the mean vector of each row's words: [rows, d]."""
    found = []
    for start in range(0, len(rows), ROWS):
        some = rows[start : start + ROWS]
        known = sorted({name for row in some for name in row})
        each = dict(zip(known, vectors(known), strict=True))
        found.append(np.array([np.mean([each[name] for name in row], axis=0) for row in some]))
    return normalise(np.concatenate(found))


def _fit_features(
    gold: Ids, count: int, features: Sequence[Sequence[str]], beside: Sequence[tuple[str, int]] | None
) -> Fit:
    """By how much the features of an item make a word more probable, up to a number of the item.

    It is the sum of log (n(f, w) + s p(w)) / (s p(w)) over features f, n counting gold words, which seen from outside
    are once less in their own item; or the pairs given.
    """
    from scipy.sparse import coo_array, csr_array

    ids: dict[str, int] = {}
    rows = [[ids.setdefault(feature, len(ids)) for feature in row] for row in features]
    ends = np.cumsum([0, *map(len, rows)])
    flat = np.fromiter((one for row in rows for one in row), np.int64, int(ends[-1]))
    item = np.repeat(np.arange(len(rows)), np.diff(ends))
    shape = (len(ids), count)
    feature, word = flat, gold[item].astype(np.int64)
    if beside is not None:
        known = np.array([(ids[name], one) for name, one in beside if name in ids], np.int64).reshape(-1, 2)
        feature, word = known[:, 0], known[:, 1]
    counts = coo_array((np.ones(len(word)), (feature, word)), shape=shape).tocsr().tocoo()
    sizes, scale = np.bincount(word, minlength=count) + 0.5, _SMOOTH / max(len(word) + 0.5 * count, 1)
    value = np.log1p(counts.data / (sizes[counts.col] * scale))
    less: Floats = np.zeros(len(flat))
    if beside is None:
        at = np.searchsorted(counts.row * np.int64(count) + counts.col, flat * count + gold[item])
        own = sizes[gold[item]] - np.diff(ends)[item]  # seen from outside the word is rarer, too
        less = value[at] - np.log1p((counts.data[at] - 1) / (own * scale))
    return Fit(
        csr_array((np.ones(len(flat)), flat, ends), shape=(len(rows), shape[0])),
        csr_array((value, (counts.row, counts.col)), shape=shape),
        np.bincount(item, weights=less, minlength=len(rows)).astype(np.float64), is_of_words=True,
    )  # fmt: skip
