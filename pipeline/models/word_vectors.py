"""Word vectors: files in the text format of GloVe, and what stands for a word that has no vector (CSD-28).

Chinese words are many and comments make up more, so a word without a vector of its own is the mean of its characters'
vectors, where those are known.
"""

import hashlib
from collections.abc import Collection, Mapping
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.errors import BadInput
from pipeline.io.atomic import replace_file
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
    """Vectors of a text file: a word and d numbers a line, parted by blanks, as GloVe and word2vec write them.

    A first line of two whole numbers (how many, and d) is word2vec's header. Words may hold blanks, as a few of
    GloVe's do, since the last d fields are the numbers. Of a word that is there twice the first vector counts.

    Args:
        path: the file, UTF-8.
        only: words to keep, as a set; all by default. A file of 2 M words in 300 dimensions takes 2.4 GB, and
            twice that while it is read.
        first: keep so many of the first lines' words as well; the files begin with the frequent words.

    Raises:
        BadInput: naming file and line, for a line with another number of fields or with what is no finite number.
    """
    found: dict[str, Vectors] = {}
    width = promised = count = 0
    for number, line in read_lines(path):
        fields = line.rstrip("\r\n ").split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            promised, width = map(int, fields)
            continue
        width = width or sum(1 for _ in takewhile(_is_number, reversed(fields[1:])))
        is_long = len(fields) > width + 1  # a word with blanks, or a number too many
        if width < 1 or len(fields) <= width or (is_long and _numbers(fields[1:]) is not None):
            raise BadInput(f"{path}, line {number}: expected a word and {max(width, 1)} numbers, found {line[:60]!r}")
        word, count = " ".join(fields[:-width]), count + 1
        if word in found or (only is not None and count > first and word not in only):
            continue
        if (vector := _numbers(fields[-width:])) is None:
            raise BadInput(f"{path}, line {number}: the {width} fields after {word!r:.40} should be finite numbers")
        found[word] = vector
    if not count or (promised and promised != count):
        raise BadInput(f"{path}: expected {promised or 'some'} vectors, found {count}; is the file complete?")
    return WordVectors(list(found), np.array(list(found.values()), np.float32).reshape(-1, width))


def _is_number(field: str) -> bool:
    return _numbers([field]) is not None


def _numbers(fields: list[str]) -> Vectors | None:
    """The fields as numbers, if they are finite ones."""
    try:
        vector = np.array(fields, np.float32)
    except ValueError:
        return None
    return vector if np.isfinite(vector).all() else None


def write(path: Path, found: WordVectors) -> None:
    """Write vectors in GloVe's format, complete or not at all; reading them gives the same numbers.

    Raises:
        BadInput: a word holds a line's end or nothing, so that no reader could tell it from what follows.
    """
    for word in found.words:
        if not word.strip(" ") or len(f"{word}.".splitlines()) > 1:
            raise BadInput(f"{path}: {word!r:.40} cannot be a word of the format")
    with replace_file(path) as draft, draft.open("w", encoding="utf-8") as file:
        for word, vector in zip(found.words, found.vectors, strict=True):
            file.write(f"{word} {' '.join(map(str, vector))}\n")


def rows_of(place: Mapping[str, int], word: str) -> list[int]:
    """Rows whose mean stands for a word: its own, or that of its lower case, or those of its characters; maybe none."""
    for form in (word, word.lower()):
        if form in place:
            return [place[form]]
    return [place[letter] for letter in word if letter in place]
