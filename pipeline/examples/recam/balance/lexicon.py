"""The gold words of a set, their shapes, relatives and rates (steps 1 and 2), and draws by names alone."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam.items import OPTIONS
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
    types = types.with_columns(
        shape=pl.col("label").rank("dense").cast(pl.Int32) - 1, type=pl.col("type").cast(pl.Int32)
    )
    words = types["answer"].unique().sort()
    names = [frozenset({word, *(wordnet.lemmatize(word, upos) for upos in wordnet.POS)}) for word in words]
    near = [[wordnet.find_pools(name) for name in word_names] for word_names in names]
    synonyms = [frozenset(name for pool in pools_of_word for name in pool.synonyms) for pools_of_word in near]
    antonyms = [frozenset(name for pool in pools_of_word for name in pool.antonyms) for pools_of_word in near]
    lexicon = Lexicon(
        words=words,
        names=names,
        related=[own_synonyms | own_antonyms for own_synonyms, own_antonyms in zip(synonyms, antonyms, strict=True)],
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
