"""The gold words of a set, their shapes and relatives, and random numbers that depend on names alone."""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.text import wordnet

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Keys = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Masks = npt.NDArray[np.bool_]
ROWS = 512  # items whose passages are in memory at a time
_SUFFIXES = ("ing", "ed", "ly", "est", "er", "s")


def hash_text(text: str) -> int:
    """Hash a text to 64 bits."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


class Lexicon(NamedTuple):
    """The gold words of the set; a type is a word with a shape: "reads" in past and present are two types."""

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
    tags = [name for name in ("upos", "tag") if name in items.columns]
    answers = items.select("answer", *tags).unique().sort(pl.all())
    poses = answers["upos"].to_list() if "upos" in tags else [""] * answers.height
    forms = [_describe_form(word, upos) for word, upos in zip(answers["answer"], poses, strict=True)]
    labels = pl.concat_str(*(pl.col(name).fill_null("") for name in tags), "form", separator="\t")
    answers = answers.with_columns(form=pl.Series(forms, dtype=pl.String)).with_columns(label=labels)
    types = answers.select("label", "answer").unique().sort("label", "answer").with_row_index("type")
    types = types.with_columns(
        shape=pl.col("label").rank("dense").cast(pl.Int32) - 1, type=pl.col("type").cast(pl.Int32)
    )
    typed = items.join(answers, on=["answer", *tags], how="left", nulls_equal=True, maintain_order="left").join(
        types, on=["label", "answer"], how="left", maintain_order="left"
    )
    words = types["answer"].unique().sort()
    names, related, synonyms = [], [], []
    for word in words:
        word_names = {word, *(wordnet.lemmatize(word, upos) for upos in wordnet.POS)}
        near = [pools(name) for name in word_names]
        names.append(frozenset(word_names))
        synonyms.append(frozenset(name for pool in near for name in pool.synonyms))
        related.append(synonyms[-1] | frozenset(name for pool in near for name in pool.antonyms))
    places = pl.Series(range(len(words)), dtype=pl.Int32)
    word_ids = types["answer"].replace_strict(words, places, return_dtype=pl.Int32)
    return typed, Lexicon(
        words,
        names,
        related,
        synonyms,
        word_ids.cast(pl.Int32).to_numpy(),  # of no words, it is null
        types["shape"].to_numpy(),
        types.select("type", "shape", word="answer"),
        np.array([hash_text(word) for word in words], np.uint64),
    )


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
