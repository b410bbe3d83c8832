"""The gold words of a set, their shapes, relatives and rates (steps 1 and 2), and draws by names alone.

Which words may not be options of an item; and how well words fit a question, for somebody who knows the other items but
no passage (step 3).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam.building import Vectors
from pipeline.examples.recam.items import OPTIONS, PLACEHOLDER
from pipeline.io.hashes import hash_number
from pipeline.text import wordnet

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Keys = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Masks = npt.NDArray[np.bool_]
SHARE = 1 / (OPTIONS + 1)  # most of a shape's gold words that may be one word: it is wrong four times as often
UNSEEN = 1.3  # words never right, as a multiple of Chao's lower bound: the rates of rare words differ, too
ROWS = 512  # items whose passages are in memory at a time
_SUFFIXES = ("ing", "ed", "ly", "est", "er", "s")


class Lexicon(NamedTuple):
    """The gold words of the set; a type is a word with a shape: "reads" as noun and as verb are two types."""

    words: pl.Series  # in alphabetical order
    names: list[frozenset[str]]  # of each word: itself and its base forms
    related: list[frozenset[str]]  # its synonyms and antonyms
    synonyms: list[frozenset[str]]
    word: Ids  # of each type
    shape: Ids  # of each type; types are sorted by shape and word
    types: pl.DataFrame  # type, shape, word
    draw: Hashes  # of each word


def build_lexicon(items: pl.DataFrame) -> tuple[pl.DataFrame, Lexicon]:
    """Return the items with their shape and type, and their gold words."""
    labels = [f"{upos}\t{_describe_form(word, upos)}" for word, upos in items.select("answer", "upos").iter_rows()]
    items = items.with_columns(label=pl.Series(labels, dtype=pl.String))
    types = items.select("label", "answer").unique().sort("label", "answer").with_row_index("type")
    shape = pl.col("label").rank("dense").cast(pl.Int32) - 1
    types = types.with_columns(shape=shape, type=pl.col("type").cast(pl.Int32))
    words = types["answer"].unique().sort()
    names = [frozenset({word, *(wordnet.lemmatize(word, upos) for upos in wordnet.POS)}) for word in words]
    near = [[wordnet.find_pools(name) for name in word_names] for word_names in names]
    synonyms = [frozenset(name for pool in pools_of_word for name in pool.synonyms) for pools_of_word in near]
    related = [frozenset(name for pool in pools_of_word for name in chain(*pool)) for pools_of_word in near]
    lexicon = Lexicon(
        words=words,
        names=names,
        related=related,
        synonyms=synonyms,
        word=np.searchsorted(words.to_numpy(), types["answer"].to_numpy()).astype(np.int32),
        shape=types["shape"].to_numpy(),
        types=types.select("type", "shape", word="answer"),
        draw=np.array([hash_number(word) for word in words], np.uint64),
    )
    return items.join(types, on=["label", "answer"], how="left", maintain_order="left"), lexicon


def _describe_form(word: str, upos: str) -> str:
    endings = (suffix for suffix in _SUFFIXES if word.endswith(suffix) and len(word) > len(suffix) + 1)
    ending = "" if word.endswith(("ss", "us", "is")) else next(endings, "")
    poses = [upos] if upos in wordnet.POS else list(wordnet.POS)
    is_base = all(wordnet.lemmatize(word, pos) == word for pos in poses)
    return f"{ending} {'base' if is_base else 'inflected'}"


def normalise(vectors: npt.NDArray[np.floating[Any]]) -> Singles:
    """Scale rows to length one; rows of zeros stay."""
    units: Singles = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return units.astype(np.float32)


def draw_uniform(first: Hashes, second: Hashes, seed: int) -> Floats:
    """Draw numbers in (0, 1) that depend on the two hashes and the seed alone (splitmix64, twice)."""

    def mix(x: Hashes) -> Hashes:
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

    with np.errstate(over="ignore"):
        bits = mix(mix(first ^ np.uint64(seed)) ^ mix(second))
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def thin_items(items: pl.DataFrame, lexicon: Lexicon) -> npt.NDArray[np.object_]:
    """Return why each item is dropped, or "": `too_frequent` or `never_right` [items]."""
    reasons = np.full(items.height, "", object)
    gold, draw = items["type"].to_numpy(), items["draw"].to_numpy()
    order = np.argsort(draw, kind="stable")
    while True:
        remaining = order[reasons[order] == ""]
        counts = np.bincount(gold[remaining], minlength=len(lexicon.word))
        sizes = np.bincount(lexicon.shape, weights=counts)[lexicon.shape]
        frequent = np.flatnonzero(counts > np.maximum(sizes * SHARE, 1))
        if not len(frequent):
            break
        for word_type in frequent:
            type_items = remaining[gold[remaining] == word_type]
            reasons[type_items[int(max(sizes[word_type] * SHARE, 1)) :]] = "too_frequent"
    shapes = lexicon.shape[gold[remaining]]
    for shape in np.unique(shapes):
        never, once, twice = (int(((counts == n) & (lexicon.shape == shape)).sum()) for n in range(3))
        # the fewest words never seen if so many are seen once and twice (Chao, 1984; bias-corrected)
        unseen = ((once - n) * (once - n - 1) / (2 * (twice + 1)) for n in range(once))
        enough = (n for n, count in enumerate(unseen) if never + n >= UNSEEN * count)
        single_items = remaining[(counts[gold[remaining]] == 1) & (shapes == shape)]
        reasons[single_items[: next(enough, once)]] = "never_right"
    return reasons


def draw_rates(gold: Ids, lexicon: Lexicon, seed: int) -> Floats:
    """Draw a rate for each type by its count, from the likeliest distribution of a shape's rates (EM; Laird, 1978)."""
    counts = np.bincount(gold, minlength=len(lexicon.word))
    uniform = draw_uniform(lexicon.draw[lexicon.word], lexicon.shape.astype(np.uint64), seed + 2)
    rates = np.zeros(len(counts))
    for shape in np.unique(lexicon.shape[gold]):
        is_shape = lexicon.shape == shape
        levels, level, times = np.unique(counts[is_shape], return_inverse=True, return_counts=True)
        grid = np.geomspace(0.05, 1.5 * levels[-1] + 1, 80)
        logs = levels[:, None] * np.log(grid) - grid  # without log n!, which is the same for all rates
        likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
        mix = np.full(len(grid), 1 / len(grid))
        for _ in range(1000):
            posterior = likelihood * mix
            posterior /= posterior.sum(axis=1, keepdims=True)
            mix = times @ posterior / times.sum()
        places = (np.cumsum(posterior, axis=1)[level] < uniform[is_shape, None]).sum(axis=1)
        grid_rates = grid[np.minimum(places, len(grid) - 1)]
        rates[is_shape] = grid_rates * counts[is_shape].sum() / grid_rates.sum()
    return rates


_TOKEN = re.compile(r"\w+")


def relate_words(lexicon: Lexicon, vectors: Vectors | None, threshold: float) -> Any:
    """Return which words may not stand in one item: a sparse table of truth values [words, words]."""
    from scipy.sparse import csr_array

    count = len(lexicon.words)
    words_by_name = defaultdict(list)
    for word, names in enumerate(lexicon.names):
        for name in names:
            words_by_name[name].append(word)

    def list_keys(names_by_word: Sequence[Iterable[str]]) -> Keys:
        pairs = {(a, b) for a, names in enumerate(names_by_word) for name in names for b in words_by_name[name]}
        return np.array(sorted({key for a, b in pairs for key in (a * count + b, b * count + a)}), np.int64)

    keys = [np.arange(count, dtype=np.int64) * (count + 1), list_keys(lexicon.names), list_keys(lexicon.synonyms)]
    if vectors and count:
        units = normalise(vectors(lexicon.words.to_list()))
        for start in range(0, count, ROWS):
            rows, columns = np.nonzero(units[start : start + ROWS] @ units.T > threshold)
            keys.append((rows + start) * count + columns)
    pairs = np.unique(np.concatenate(keys))
    return csr_array((np.ones(len(pairs), np.bool_), np.divmod(pairs, max(count, 1))), shape=(count, count))


def list_open_words(items: pl.DataFrame, lexicon: Lexicon, relations: Any) -> Iterator[tuple[slice, Masks]]:
    """Yield, for `ROWS` items at a time, which words may stand in them [items, words].

    None may that is related to the gold word, that needs `an` where that needs `a`, or of which a form is in question
    or passage, or a relative in the passage.
    """
    gold = lexicon.word[items["type"].to_numpy()]
    has_vowel = lexicon.words.str.contains("^[aeiou]").to_numpy()
    has_article = items["question"].str.contains(rf"(?i)\ban?\s+{PLACEHOLDER}").to_numpy()
    for rows, is_present in _find_words(items, lexicon):
        is_other_article = has_article[rows, None] & (has_vowel != has_vowel[gold[rows], None])
        yield rows, ~(relations[gold[rows]].toarray() | is_other_article | is_present)


def _find_words(items: pl.DataFrame, lexicon: Lexicon) -> Iterator[tuple[slice, Masks]]:
    """Yield, for `ROWS` items at a time, which words question and passage hold, or are related to [items, words]."""
    from scipy.sparse import csr_array

    ids: dict[str, int] = {}
    lists = (lexicon.names, lexicon.related)
    forms, related = ([[ids.setdefault(name, len(ids)) for name in names] for names in words] for words in lists)

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
        counts = (question + passage) @ form_table + passage @ related_table
        yield slice(start, start + part.height), counts.toarray() > 0


_SMOOTH = 5.0  # prior count of a neighbour with all words alike
_PIECE = re.compile(r"\w+|[^\w\s]")


class Fit(NamedTuple):
    """How well words fit each item's question, measured on other items: the product of two tables."""

    questions: Any  # [items, f]
    words: Any  # [f, words]
    gold_loss: Floats  # of each item: by how much its gold word fits worse, leaving the item out
    is_of_words: bool

    def select(self, rows: Keys) -> "Fit":
        """Return the fits of some of the items alone."""
        return self._replace(questions=self.questions[rows], gold_loss=self.gold_loss[rows])

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
