"""Texts cut into sentences of words, and written again with some of the words alone (NDD, section 4)."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from pipeline.text import segment, tagging

SPACED = frozenset({"en", "ko"})  # languages that `text.language` knows with blanks between words
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")  # kana and Chinese characters
_SENTENCE = re.compile(r"[^。！？!?；;\n]+[。！？!?；;…\"'”’）)】》」]*|[。！？!?；;…]+")


class Sentence(NamedTuple):
    """A sentence."""

    words: list[str]
    blanks: list[bool]  # whether a blank stands before each word


def split_sentences(text: str, lang: str) -> list[Sentence]:
    """The sentences of a text; nothing but blanks is left out.

    English as treebanks cut it (do n't), by `tagging.split_sentences`, and so what is in no known script; Chinese and
    Japanese after their marks, words by jieba. `lang` is as of `detect_language`.
    """
    if lang in SPACED or not _UNSPACED.search(text):
        rows = tagging.split_sentences(text)
        return [_locate_words([text[s:e] for s, e in spans], text[spans[0][0] : spans[-1][1]]) for spans in rows]
    cut_words = segment.load_tokenizer("jieba").cut
    parts = [_locate_words(segment.split_words(part, cut_words), part) for part in _SENTENCE.findall(text)]
    return [sentence for sentence in parts if sentence.words]


def _locate_words(words: list[str], text: str) -> Sentence:
    blanks, position = [], 0
    for word in words:
        place = text.find(word, position)
        blanks.append(position < place)
        position = max(place, position) + len(word)
    return Sentence(words, [False, *blanks[1:]])


def join_words(sentence: Sentence, is_kept: Sequence[bool]) -> str:
    """The words that are kept as text, with blanks as they were; a mark keeps to the word before it."""
    parts: list[str] = []
    is_apart = False
    for word, blank, has_word in zip(sentence.words, sentence.blanks, is_kept, strict=True):
        is_apart |= blank
        if has_word:
            is_close = not blank and not any(map(str.isalnum, word))
            parts.append(f" {word}" if is_apart and parts and not is_close else word)
            is_apart = False
    return "".join(parts)
