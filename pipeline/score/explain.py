"""Explain a score: how much it changes when a word is left out."""

import re
from collections.abc import Callable, Sequence

from pipeline.text.segment import UNIT, Cut, load_tokenizer, split_words

MAX_PARTS = 64  # of a text; words of a longer one are left out together with their neighbours


def choose_cut(lang: str) -> Cut:
    """Choose what splits a text into words: jieba in Chinese and Japanese, elsewhere blanks and marks."""
    return load_tokenizer("jieba").cut if lang in ("zh", "ja") else UNIT.findall


def leave_out(text: str, cut: Cut) -> list[tuple[str, str]]:
    """List the words of a text, each with the text without it; none for a text of one word."""
    spans, end = [], 0
    for word in split_words(text, cut):
        start = text.index(word, end)
        end = start + len(word)
        spans.append((start, end))
    size = -(-len(spans) // MAX_PARTS)
    parts = [(spans[i][0], spans[min(i + size, len(spans)) - 1][1]) for i in range(0, len(spans), max(size, 1))]
    return [(text[a:b], re.sub(r"\s+", " ", text[:a] + text[b:]).strip()) for a, b in parts if len(parts) > 1]


def explain(
    texts: Sequence[str], values: Sequence[float], cut: Cut, score: Callable[[list[str]], Sequence[float]]
) -> list[list[tuple[int, str, float]]]:
    """Explain the scores of texts by their words: position, word, and score minus that of the text without the word.

    A change above 0 makes the text more implicit. All shorter texts are scored in one call.
    """
    variants = [leave_out(text, cut) for text in texts]
    shorter = iter(score([rest for words in variants for _, rest in words]))
    return [
        [(position, word, round(value - next(shorter), 6)) for position, (word, _) in enumerate(words, 1)]
        for value, words in zip(values, variants, strict=True)
    ]
