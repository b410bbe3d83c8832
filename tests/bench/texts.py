"""Comments for benchmarks: real ones if UNDERTONE_DATA is set, else generated ones that look like them.

Lengths, languages and copies of the generated comments are those of 53,451 real Chinese comments, and
`texts_test.py` compares the two. Words are drawn from jieba's dictionary by their frequency there.
"""

import json
import os
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

BLOCK = 10_000  # comments made at once
LENGTHS = {0: 1, 0.01: 3, 0.05: 4, 0.1: 5, 0.25: 8, 0.5: 13, 0.75: 23, 0.9: 42, 0.95: 63, 0.99: 135, 1: 600}
"""Characters of a comment by quantile."""
COPIES = 0.062  # share of comments that repeat an earlier text
SHORT = 20  # a text that is repeated has at most so many characters
REPEATED = 1_000  # texts of a block that later comments may repeat
ENGLISH = 0.008  # share of comments without Chinese characters
EXTRAS = {"[笑哭]": 0.07, " OK": 0.04, "7": 0.065}
MARKS = np.array(["，", "。", "！", "？"], dtype=object)


def load_comments(count: int) -> list[str]:
    """Load real comments in a fixed shuffled order if UNDERTONE_DATA is set, else generate `count`."""
    if not (data := os.environ.get("UNDERTONE_DATA")):
        return [*generate_comments(count)]
    posts = Path(data) / "checked_weibo_news_comments_zh" / "checked_posts_comments20.jsonl"
    texts = [text for line in _read_lines(posts) for text in json.loads(line)["comments"]]
    for path in sorted((Path(data) / "bilibili_likes_zh").glob("*.jsonl")):
        texts += [json.loads(line)["text"] for line in _read_lines(path)]
    random.Random(13).shuffle(texts)
    return texts


def generate_comments(count: int, seed: int = 13) -> Iterator[str]:
    """Generate comments, the first ones equal for every count."""
    repeated: list[str] = []
    for number, start in enumerate(range(0, count, BLOCK)):
        rng = np.random.default_rng([seed, number])
        texts = _generate_block(rng)
        repeated += [text for text in texts[:REPEATED] if len(text) <= SHORT]
        is_copy = rng.random(BLOCK) < COPIES
        picks = (len(repeated) * rng.random(BLOCK) ** 5).astype(int)  # the first are repeated most
        yield from [
            repeated[pick] if copied else text for pick, copied, text in zip(picks, is_copy, texts, strict=True)
        ][: count - start]


def _generate_block(rng: np.random.Generator) -> list[str]:
    words = {"zh": _load_chinese(), "en": _load_english()}
    texts = []
    lengths = np.interp(rng.random(BLOCK), [*LENGTHS], [*LENGTHS.values()]).round().astype(int)
    is_english = rng.random(BLOCK) < ENGLISH
    has_extras = [(extra, rng.random(BLOCK) < share) for extra, share in EXTRAS.items()]
    has_marks = rng.random(BLOCK) < 0.6
    for row, length in enumerate(lengths.tolist()):
        vocabulary, chances, mean = words["en" if is_english[row] else "zh"]
        drawn = vocabulary[np.searchsorted(chances, rng.random(int(length / mean) + 2))]
        if has_marks[row]:
            drawn[5::6] += MARKS[rng.integers(len(MARKS))]
        text = (" " if is_english[row] else "").join(drawn)[:length]
        text = text[:-1] + "！" if has_marks[row] and length < SHORT else text
        texts.append(text.strip() + "".join(extra for extra, is_there in has_extras if is_there[row]))
    return texts


@cache
def _load_chinese() -> tuple[np.ndarray, np.ndarray, float]:
    """Words of jieba's dictionary, their cumulative chances and their mean length."""
    import jieba

    rows = [line.split(" ")[:2] for line in _read_lines(Path(jieba.__file__).parent / "dict.txt")]
    return _prepare([word for word, _ in rows], [float(frequency) for _, frequency in rows])


@cache
def _load_english() -> tuple[np.ndarray, np.ndarray, float]:
    """Words of the shipped sample's English sentences, by their frequency there."""
    from collections import Counter

    from pipeline import sample

    lines = _read_lines(sample.COMPLETIONS)
    counts = Counter(word for line in lines for word in json.loads(line)["input"].split() if word.isascii())
    return _prepare([*counts], [float(count) for count in counts.values()])


def _read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _prepare(words: list[str], frequencies: list[float]) -> tuple[np.ndarray, np.ndarray, float]:
    chances = np.array(frequencies) / sum(frequencies)
    return np.array(words, dtype=object), np.cumsum(chances), float(np.dot([len(word) for word in words], chances))
