"""Chinese without a Chinese encoder: which character n-grams of a shipped list a text has.

The embedded encoder's word pieces know a tenth of the characters of Chinese comments. So the Chinese head that is
shipped looks at n-grams of one to three characters that stand in at least five training sentences of the shipped graded
groups. An n-gram counts once a text, with the weight ln((1 + n) / (1 + df)) + 1, and a text has length 1 (TF-IDF).

Lists of earlier versions stay, since models were trained on them.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.io.hashes import hash_file

NAME = "characters"
LISTS = [Path(__file__).with_name(f"characters_zh_{number}.tsv") for number in (1, 2)]  # the newest last
LONGEST = 3


def list_ngrams(text: str) -> set[str]:
    """Return the n-grams of one to three characters of a text, with `^` before it and `$` after it."""
    marked = f"^{text}$"
    return {marked[i : i + n] for n in range(1, LONGEST + 1) for i in range(len(marked) - n + 1)}


@lru_cache
def read_list(revision: str) -> tuple[dict[str, int], npt.NDArray[np.float32]]:
    """Read the list with a hash: the column of each n-gram, and the inverse document frequencies."""
    path = next(path for path in LISTS if hash_file(path) == revision)
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    column_of = {gram: column for column, (gram, _) in enumerate(lines)}
    return column_of, np.array([idf for _, idf in lines], np.float64).astype(np.float32)


@lru_cache(maxsize=1)
def hash_lists() -> list[str]:
    """Return the SHA-256 of each list; the last is that of the newest."""
    return [hash_file(path) for path in LISTS]


def encode(texts: Sequence[str], revision: str) -> npt.NDArray[np.float32]:
    """Compute TF-IDF vectors, float32 [texts, n-grams in the list], of length 1, or 0 if no n-gram is in the list."""
    column_of, idf = read_list(revision)
    out = np.zeros((len(texts), len(column_of)), np.float32)
    for row, text in enumerate(texts):
        columns = [column_of[gram] for gram in list_ngrams(text) if gram in column_of]
        out[row, columns] = idf[columns]
    out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)
    return out
