"""Word vectors: files in the text format of GloVe; a word without a vector gets its characters' mean (CSD-28)."""

import hashlib
from collections.abc import Collection, Mapping
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.errors import BadInput
from pipeline.io.lines import read_lines

Vectors = npt.NDArray[np.float32]


class WordVectors(NamedTuple):
    """Words, each once, the frequent ones first, and their vectors: float32 [words, d]."""

    words: list[str]
    vectors: Vectors

    @property
    def revision(self) -> str:
        """SHA-256 of words and vectors."""
        digest = hashlib.sha256("\n".join(self.words).encode())
        digest.update(np.ascontiguousarray(self.vectors).data)  # not tobytes(): all vectors of GloVe are 2.4 GB
        return digest.hexdigest()


def read(path: Path, only: Collection[str] | None = None, first: int = 0) -> WordVectors:
    """Read vectors from a text file: a word and d numbers a line, separated by blanks, as of GloVe and word2vec.

    A first line of two whole numbers (count and d) is word2vec's header. Words may contain blanks, as a few of GloVe's
    do, since the last d fields are the numbers. The first vector of a repeated word counts. With `only`, a set, only
    its words are kept, and those of the `first` lines; files begin with the frequent words. Two million words in 300
    dimensions take 2.4 GB, and twice that while they are read. BadInput for a line with another number of fields, or a
    number that is not finite.
    """
    vectors: dict[str, Vectors] = {}
    width = promised = count = 0
    for number, line in read_lines(path):
        fields = line.rstrip("\r\n ").split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            promised, width = map(int, fields)
            continue
        width = width or sum(1 for _ in takewhile(lambda field: _parse_numbers([field]) is not None, fields[:0:-1]))
        is_long = len(fields) > width + 1  # a word with blanks, or a number too many
        if width < 1 or len(fields) <= width or (is_long and _parse_numbers(fields[1:]) is not None):
            raise BadInput(f"{path}, line {number}: expected a word and {max(width, 1)} numbers, found {line[:60]!r}")
        word, count = " ".join(fields[:-width]), count + 1
        if word in vectors or (only is not None and count > first and word not in only):
            continue
        if (vector := _parse_numbers(fields[-width:])) is None:
            raise BadInput(f"{path}, line {number}: the {width} fields after {word!r:.40} should be finite numbers")
        vectors[word] = vector
    if not count or (promised and promised != count):
        raise BadInput(f"{path}: expected {promised or 'some'} vectors, found {count}; is the file complete?")
    return WordVectors(list(vectors), np.array(list(vectors.values()), np.float32).reshape(-1, width))


def _parse_numbers(fields: list[str]) -> Vectors | None:
    """Return the fields as numbers; None if one is not a finite number."""
    try:
        vector = np.array(fields, np.float32)
    except ValueError:
        return None
    return vector if np.isfinite(vector).all() else None


def find_rows(row_of: Mapping[str, int], word: str) -> list[int]:
    """Return the rows whose mean represents a word: of the word, its lower case, or its characters; maybe none."""
    for form in (word, word.lower()):
        if form in row_of:
            return [row_of[form]]
    return [row_of[letter] for letter in word if letter in row_of]
