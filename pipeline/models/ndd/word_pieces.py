"""Pieces of a sentence's words, as a masked language model reads them (NDD, section 4.2; NDD-08).

Words are joined by blanks, but for Chinese words whose pieces blanks would change.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from pipeline.models.recam.pretrained_reader import Pieces

MASK_WORD = "\ue000mask"  # a word that is the mask; compared by identity, so that no text can contain it

_WORDS = 65_536  # words whose pieces are cached
_ANCHORS = "。的一"  # what stands before a word in a text; the first that makes no piece with the word is used
_UNSPACED = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")  # Chinese, kana and their marks

Before = Literal["start", "blank", "word"]
"""What stands before a word: nothing, a blank or another word."""


class WordPieces:
    """Split sentences into the pieces of their words; a word without pieces, such as an empty one, is unknown."""

    def __init__(self, pieces: Pieces, unknown: int) -> None:
        self.pieces, self.unknown = pieces, unknown
        self.ignores_blanks = pieces.tokenize(["天 气"]) == pieces.tokenize(["天气"])
        self._split_word = lru_cache(_WORDS)(self._split_word)  # type: ignore[method-assign]

    def split(self, sentence: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the pieces of each word; text that looks like a special piece is a word."""
        before: list[Before] = ["blank"] * len(sentence)
        before[:1] = ["start"] * len(before[:1])
        if not self.ignores_blanks:
            for index in range(1, len(sentence)):
                if _UNSPACED.match(sentence[index - 1][-1:]) or _UNSPACED.match(sentence[index]):
                    before[index] = "word"
        pieces = self._split_text(sentence, before) if "word" in before else [()] * len(sentence)
        return [
            (self.pieces.mask,) if word is MASK_WORD else word_pieces or self._split_word(word, context)
            for word, word_pieces, context in zip(sentence, pieces, before, strict=True)
        ]

    def _split_text(self, sentence: Sequence[str], before: Sequence[Before]) -> list[tuple[int, ...]]:
        """Return the pieces of each word in the joined text; none of words that share a piece with another one."""
        parts = [" " * (context == "blank") + word for word, context in zip(sentence, before, strict=True)]
        ends = np.cumsum([*map(len, parts)])
        encoding = self.pieces.tokenizer.encode("".join(parts), add_special_tokens=False)
        start, stop = np.array(encoding.offsets, np.int64).reshape(-1, 2).T
        first, last = (np.searchsorted(ends, place, "right") for place in (start, np.maximum(start, stop - 1)))
        shared = {word for a, b in zip(first, last, strict=True) if a < b for word in range(a, b + 1)}
        word_ids: list[list[int]] = [[] for _ in sentence]
        for piece, word in zip(encoding.ids, first, strict=True):
            if word not in shared:
                word_ids[word].append(piece)
        return [*map(tuple, word_ids)]

    def _split_word(self, word: str, before: Before) -> tuple[int, ...]:
        for anchor in _ANCHORS if before == "word" else "":
            encoding = self.pieces.tokenizer.encode(anchor + word, add_special_tokens=False)
            if all(start >= 1 or stop <= 1 for start, stop in encoding.offsets):
                ids = [piece for piece, (start, _) in zip(encoding.ids, encoding.offsets, strict=True) if start]
                return tuple(ids) or (self.unknown,)
        text = f" {word}" if before == "blank" else word
        return tuple(self.pieces.tokenize([text])[0]) or (self.unknown,)
