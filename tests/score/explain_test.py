"""Explanations: a planted cue word carries the score."""

import pytest

from pipeline.score.explain import MAX_PARTS, choose_cut, explain, leave_out

CUES = {"supposedly": 0.5, "据说": 0.5, "plainly": -0.25, "直说": -0.25}


def score(texts: list[str]) -> list[float]:
    return [1 + sum(change for cue, change in CUES.items() if cue in text) for text in texts]


@pytest.mark.parametrize(("lang", "text", "expected"), [
    ("en", "He is supposedly ill, plainly.", {"supposedly": 0.5, "plainly": -0.25}),
    ("zh", "他据说病了，我就直说吧[doge]", {"据说": 0.5, "直说": -0.25}),
])  # fmt: skip
def test_planted_words_carry_the_score(lang: str, text: str, expected: dict[str, float]) -> None:
    """Each cue has its change with its sign, and no other word has any; the words make up the text."""
    [words] = explain([text], score([text]), choose_cut(lang), score)
    assert {word: change for _, word, change in words if change} == expected
    assert "".join(word for _, word, _ in words) == text.replace(" ", "")
    assert [position for position, *_ in words] == list(range(1, len(words) + 1))


def test_all_texts_are_scored_in_one_call() -> None:
    """Shorter texts of all texts are one batch, whose scores go to their own text."""
    calls = []

    def count(texts: list[str]) -> list[float]:
        calls.append(texts)
        return score(texts)

    texts = ["so supposedly", "hm", "plainly so so"]
    words = explain(texts, score(texts), choose_cut("en"), count)
    assert calls == [["supposedly", "so", "so so", "plainly so", "plainly so"]]
    assert [[change for _, _, change in text] for text in words] == [[0.0, 0.5], [], [-0.25, 0.0, 0.0]]


@pytest.mark.parametrize("count", [MAX_PARTS, MAX_PARTS + 1, 1000])
def test_long_texts_are_bounded(count: int) -> None:
    """A text of many words has at most 64 parts, which still make up the text."""
    text = " ".join(f"w{number}" for number in range(count))
    parts = leave_out(text, choose_cut("en"))
    assert len(parts) <= MAX_PARTS
    assert " ".join(word for word, _ in parts) == text
    assert all(len(rest) < len(text) for _, rest in parts)
