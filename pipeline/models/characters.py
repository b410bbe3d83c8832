"""Chinese without a Chinese encoder: which character n-grams of a known list a text holds.

The embedded encoder's word pieces know a tenth of the characters of Chinese comments, and the rest is unknown to it. So
the Chinese head that is shipped looks at n-grams of one to three characters (with marks for beginning and end), those
that stand in at least five sentences of the training part of the shipped graded groups, weighted by rarity (TF-IDF,
each n-gram counted once a text, length 1). With a Chinese or multilingual encoder, set UNDERTONE_ENCODER instead.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.io.hashes import hash_file

NAME = "characters"
LIST = Path(__file__).with_name("characters_zh.tsv")
LONGEST, LEAST = 3, 5


def ngrams(text: str) -> set[str]:
    """The n-grams of one to three characters of a text, `^` before it and `$` after it."""
    marked = f"^{text}$"
    return {marked[i : i + n] for n in range(1, LONGEST + 1) for i in range(len(marked) - n + 1)}


@lru_cache(maxsize=1)
def known() -> tuple[dict[str, int], npt.NDArray[np.float32]]:
    """The list: place of each n-gram, and its inverse document frequency."""
    lines = [line.split("\t") for line in LIST.read_text(encoding="utf-8").splitlines()]
    return {gram: place for place, (gram, _) in enumerate(lines)}, np.array(
        [float(idf) for _, idf in lines], np.float32
    )


@lru_cache(maxsize=1)
def revision() -> str:
    """SHA-256 of the list."""
    return hash_file(LIST)


def vectors(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """TF-IDF vectors: float32 [len(texts), n-grams in the list], each of length 1, or zero if nothing is known."""
    place, idf = known()
    out = np.zeros((len(texts), len(place)), np.float32)
    for row, text in enumerate(texts):
        at = [place[gram] for gram in ngrams(text) if gram in place]
        out[row, at] = idf[at]
    lengths = np.linalg.norm(out, axis=1, keepdims=True)
    return np.asarray(out / np.maximum(lengths, 1e-12), np.float32)


def listed(texts: Iterable[str]) -> str:
    """The list made anew of training texts, as the file's text: n-gram and ln((1 + n) / (1 + df)) + 1 a line."""
    every = list(texts)
    count: dict[str, int] = {}
    for text in every:
        for gram in ngrams(text):
            count[gram] = count.get(gram, 0) + 1
    kept = sorted(gram for gram, number in count.items() if number >= LEAST and "\t" not in gram and "\n" not in gram)
    idf = {gram: np.log((1 + len(every)) / (1 + count[gram])) + 1 for gram in kept}
    return "".join(f"{gram}\t{value:.4f}\n" for gram, value in idf.items())
