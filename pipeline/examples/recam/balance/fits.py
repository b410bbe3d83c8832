"""Step 3 of the package: how well words fit a question, for somebody who knows the other items but no passage."""

import re
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipeline.examples.recam.balance.lexicon import ROWS, Floats, Ids, Lexicon, Singles, normalise
from pipeline.examples.recam.items import PLACEHOLDER
from pipeline.examples.recam.targets import Vectors

_SMOOTH = 5.0  # prior count of a neighbour with all words alike
_PIECE = re.compile(r"\w+|[^\w\s]")


class Fit(NamedTuple):
    """How well words fit each item's question, measured on other items: the product of two tables."""

    questions: Any  # [items, f]
    words: Any  # [f, words]
    gold_loss: Floats  # of each item: by how much its gold word fits worse, leaving the item out
    is_of_words: bool

    def __call__(self, rows: slice) -> Singles:
        """Return the fits of some items [rows, words]."""
        product = self.questions[rows] @ self.words
        return np.asarray(product if isinstance(product, np.ndarray) else product.toarray(), np.float32)


def fit_questions(items: pl.DataFrame, lexicon: Lexicon, vectors: Vectors | None) -> list[Fit]:
    """Fit by the one and two words on each side of the placeholder, by the whole question, and by vectors."""
    gold = lexicon.word[items["type"].to_numpy()]
    halves = (map(str.lower, question.partition(PLACEHOLDER)) for question in items["question"])
    sides = [(["^", *_PIECE.findall(left)], [*_PIECE.findall(right), "$"]) for left, _, right in halves]
    before, after = [left[-1:] for left, _ in sides], [right[:1] for _, right in sides]
    far = [sorted({word for word in chain(*parts) if len(word) > 3}) for parts in sides]
    around = [[f"{' '.join(left[-2:])} <", f"> {' '.join(right[:2])}"] for left, right in sides]
    pairs_before, pairs_after = (_list_neighbours(sides, lexicon, side) for side in (0, 1))
    tables = ((before, None), (after, None), (before, pairs_before), (after, pairs_after), (around, None), (far, None))
    fits = [_fit_features(gold, len(lexicon.words), features, pairs) for features, pairs in tables]
    if vectors and sides:
        means = _average_vectors([[*chain(*parts)] for parts in sides], vectors)
        units = normalise(vectors(lexicon.words.to_list())).T
        fits.append(Fit(means, units, np.zeros(len(sides)), is_of_words=False))
    return fits


def _list_neighbours(
    sides: Sequence[tuple[Sequence[str], Sequence[str]]], lexicon: Lexicon, side: int
) -> list[tuple[str, int]]:
    """List where questions hold gold words: the word to their left (side 0) or right (1), and their number."""
    ids = {name: row for row, name in enumerate(lexicon.words)}
    pairs = chain.from_iterable(pairwise(part) for part in chain(*sides))
    return [(pair[side], ids[pair[1 - side]]) for pair in pairs if pair[1 - side] in ids]


def _average_vectors(rows: Sequence[Sequence[str]], vectors: Vectors) -> Singles:
    parts = []
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        names = sorted(set(chain(*part)))
        vector_of = dict(zip(names, vectors(names), strict=True))
        parts.append(np.array([np.mean([vector_of[name] for name in row], axis=0) for row in part]))
    return normalise(np.concatenate(parts))


def _fit_features(
    gold: Ids, word_count: int, features: Sequence[Sequence[str]], pairs: Sequence[tuple[str, int]] | None
) -> Fit:
    """Sum log (n(f, w) + s p(w)) / (s p(w)) over features f of an item: how much they make a word more probable.

    n counts the gold words of items with f, without the item's own gold word; or the given pairs (feature, word).
    """
    from scipy.sparse import coo_array, csr_array

    ids: dict[str, int] = {}
    rows = [[ids.setdefault(feature, len(ids)) for feature in row] for row in features]
    ends = np.cumsum([0, *map(len, rows)])
    flat = np.fromiter(chain(*rows), np.int64, int(ends[-1]))
    item = np.repeat(np.arange(len(rows)), np.diff(ends))
    shape = (len(ids), word_count)
    feature, word = flat, gold[item].astype(np.int64)
    if pairs is not None:
        id_pairs = np.array([(ids[name], number) for name, number in pairs if name in ids], np.int64)
        feature, word = id_pairs.reshape(-1, 2).T
    counts = coo_array((np.ones(len(word)), (feature, word)), shape=shape).tocsr().tocoo()
    sizes = np.bincount(word, minlength=word_count) + 0.5
    scale = _SMOOTH / max(len(word) + 0.5 * word_count, 1)
    values = np.log1p(counts.data / (sizes[counts.col] * scale))
    losses: Floats = np.zeros(len(flat))
    if pairs is None:
        keys = counts.row * np.int64(word_count) + counts.col
        places = np.searchsorted(keys, flat * word_count + gold[item])
        sizes_without = sizes[gold[item]] - np.diff(ends)[item]  # without the item the word is rarer, too
        losses = values[places] - np.log1p((counts.data[places] - 1) / (sizes_without * scale))
    return Fit(
        csr_array((np.ones(len(flat)), flat, ends), shape=(len(rows), shape[0])),
        csr_array((values, (counts.row, counts.col)), shape=shape),
        np.bincount(item, weights=losses, minlength=len(rows)).astype(np.float64),
        is_of_words=True,
    )
