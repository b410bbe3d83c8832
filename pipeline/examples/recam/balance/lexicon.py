"""The gold words of a set, their shapes and relatives, and draws that depend on names alone."""

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
Masks = npt.NDArray[np.bool_]
ROWS = 512  # items whose passages are held at a time
_SUFFIXES = ("ing", "ed", "ly", "est", "er", "s")


def hash_text(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


class Lexicon(NamedTuple):
    """The gold words of the set; a type is a word of a shape, as reads of past or present would be two."""

    words: pl.Series  # in alphabetical order
    names: list[frozenset[str]]  # of each word: itself and its base forms
    related: list[frozenset[str]]  # its synonyms and antonyms
    synonyms: list[frozenset[str]]
    word: Ids  # of each type
    shape: Ids  # of each type; types go by shape and word
    types: pl.DataFrame  # type, shape, word
    draw: npt.NDArray[np.uint64]  # of each word


def build_lexicon(every: pl.DataFrame, pools: Callable[[str], wordnet.Pools]) -> tuple[pl.DataFrame, Lexicon]:
    """The items with shape and type, and the gold words."""
    tags = [name for name in ("upos", "tag") if name in every.columns]
    known = every.select("answer", *tags).unique().sort(pl.all())
    poses = known["upos"].to_list() if "upos" in tags else [""] * known.height
    shapes = pl.Series([_shape(word, upos) for word, upos in zip(known["answer"], poses, strict=True)])
    label = pl.concat_str(*(pl.col(name).fill_null("") for name in tags), shapes.alias("form"), separator="\t")
    known = known.with_columns(
        label=known.select(label).to_series() if known.height else pl.Series([], dtype=pl.String)
    )
    types = known.select("label", "answer").unique().sort("label", "answer").with_row_index("type")
    types = types.with_columns(
        shape=pl.col("label").rank("dense").cast(pl.Int32) - 1, type=pl.col("type").cast(pl.Int32)
    )
    found = every.join(known, on=["answer", *tags], how="left", nulls_equal=True, maintain_order="left").join(
        types, on=["label", "answer"], how="left", maintain_order="left"
    )
    words = types["answer"].unique().sort()
    names, related, synonyms = [], [], []
    for word in words:
        forms = {wordnet.lemmatize(word, upos) for upos in wordnet.POS}
        near = [pools(form) for form in forms | {word}]
        names.append(frozenset(forms | {word}))
        synonyms.append(frozenset(name for pool in near for name in pool.synonyms))
        related.append(synonyms[-1] | frozenset(name for pool in near for name in pool.antonyms))
    place = types["answer"].replace_strict(words, pl.Series(range(len(words)), dtype=pl.Int32), return_dtype=pl.Int32)
    return found, Lexicon(
        words, names, related, synonyms, place.cast(pl.Int32).to_numpy(), types["shape"].to_numpy(),
        types.select("type", "shape", word="answer"), np.array([hash_text(word) for word in words], np.uint64),
    )  # fmt: skip


def _shape(word: str, upos: str) -> str:
    """The ending that inflection shows itself by, and if the word is a base form."""
    ending = next((one for one in _SUFFIXES if word.endswith(one) and len(word) > len(one) + 1), "")
    ending = "" if word.endswith(("ss", "us", "is")) else ending
    poses = [upos] if upos in wordnet.POS else list(wordnet.POS)
    is_base = all(wordnet.lemmatize(word, one) == word for one in poses)
    return f"{ending} {'base' if is_base else 'inflected'}"


def normalise(table: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    return found.astype(np.float32)


def is_among(keys: Keys, known: Keys) -> Masks:
    """Which numbers are among sorted ones."""
    if not len(known):
        return np.zeros(keys.shape, np.bool_)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found: Masks = known[at] == keys
    return found


def draw_uniform(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64], seed: int) -> Floats:
    """Numbers in (0, 1) that depend on the two numbers and the seed alone: splitmix64, twice."""

    def mixed(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

    with np.errstate(over="ignore"):
        found = mixed(mixed(one ^ np.uint64(seed)) ^ mixed(other))
    return ((found >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
