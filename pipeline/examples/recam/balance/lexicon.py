"""The gold words of a set, their shapes and relatives, and random numbers that depend on names alone."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam.items import hash_text
from pipeline.text import wordnet

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Keys = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Masks = npt.NDArray[np.bool_]
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


def build_lexicon(items: pl.DataFrame, pools: Callable[[str], wordnet.Pools]) -> tuple[pl.DataFrame, Lexicon]:
    """Return the items with their shape and type, and their gold words."""
    labels = [f"{upos}\t{_describe_form(word, upos)}" for word, upos in items.select("answer", "upos").iter_rows()]
    items = items.with_columns(label=pl.Series(labels, dtype=pl.String))
    types = items.select("label", "answer").unique().sort("label", "answer").with_row_index("type")
    types = types.with_columns(
        shape=pl.col("label").rank("dense").cast(pl.Int32) - 1, type=pl.col("type").cast(pl.Int32)
    )
    words = types["answer"].unique().sort()
    names = [frozenset({word, *(wordnet.lemmatize(word, upos) for upos in wordnet.POS)}) for word in words]
    near = [[pools(name) for name in word_names] for word_names in names]
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
        draw=np.array([hash_text(word) for word in words], np.uint64),
    )
    return items.join(types, on=["label", "answer"], how="left", maintain_order="left"), lexicon


def _describe_form(word: str, upos: str) -> str:
    """Name the ending of inflection, and whether the word is a base form."""
    endings = (suffix for suffix in _SUFFIXES if word.endswith(suffix) and len(word) > len(suffix) + 1)
    ending = "" if word.endswith(("ss", "us", "is")) else next(endings, "")
    poses = [upos] if upos in wordnet.POS else list(wordnet.POS)
    is_base = all(wordnet.lemmatize(word, pos) == word for pos in poses)
    return f"{ending} {'base' if is_base else 'inflected'}"


def normalise(vectors: npt.NDArray[np.floating[Any]]) -> Singles:
    """Scale rows to length one; rows of zeros stay."""
    units: Singles = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return units.astype(np.float32)


def is_among(keys: Keys, sorted_keys: Keys) -> Masks:
    """Return which keys are among the sorted ones."""
    if not len(sorted_keys):
        return np.zeros(keys.shape, np.bool_)
    places = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    matches: Masks = sorted_keys[places] == keys
    return matches


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
