"""The linear classifier of n-grams: what it sees, what it has not seen, that a text's own label does not leak."""

import numpy as np
import numpy.typing as npt
import pytest

from pipeline.models.subtext import recogniser

TEXTS = ["真好啊", "真好吧", "真糟啊", "真糟吧", "好得很", "糟得很"]
LABELS = np.array([1, 1, 0, 0, 1, 0])
CONTEXTS = [f"第{i}天" for i in range(6)]


def sides(logits: npt.NDArray[np.float64]) -> list[int]:
    return [int(i) for i in logits.argmax(axis=1)]


def test_an_ngram_never_seen_takes_no_share() -> None:
    """A text's logit is the same with strange characters in the place of others that are strange."""
    classifier, _ = recogniser.fit_ngrams(TEXTS, CONTEXTS, LABELS, list)
    logits, other_logits = classifier.logits(["好天地玄黄", "好宇宙洪荒"], ["", ""], list)
    assert logits == pytest.approx(other_logits)
    assert abs(logits[1] - logits[0]) > 0.1


def test_what_it_says_of_texts_it_does_not_know_is_not_their_label() -> None:
    """Of labels drawn at random it knows those of its own texts by heart, and guesses those held out by chance."""
    rng = np.random.default_rng(7)
    texts = ["".join(rng.choice(list("天地玄黄宇宙洪荒日月盈昃"), 8)) for _ in range(300)]
    labels = rng.integers(0, 2, 300)
    classifier, held_out = recogniser.fit_ngrams(texts, [""] * 300, labels, list, penalty=0.01)
    assert np.mean(classifier.logits(texts, [""] * 300, list).argmax(axis=1) == labels) > 0.9
    assert abs(np.mean(held_out.argmax(axis=1) == labels) - 0.5) < 0.1


def test_a_context_is_on_one_side() -> None:
    """Texts of one context are held out together: what only they share is not known of them."""
    texts = ["甲甲甲", "甲甲甲甲", "乙乙乙", "乙乙乙乙", "丙丙丙", "丙丙丙丙", "丁丁丁", "丁丁丁丁"]
    contexts = ["a", "a", "b", "b", "c", "c", "d", "d"]
    labels = np.array([1, 1, 0, 0, 1, 1, 0, 0])
    alone, held_out = recogniser.fit_ngrams(texts, contexts, labels, list)
    assert sides(alone.logits(texts, contexts, list)) == labels.tolist()
    _, apart = recogniser.fit_ngrams(texts, [str(i) for i in range(8)], labels, list)

    def right(logits: npt.NDArray[np.float64]) -> float:
        return float((logits[np.arange(8), labels] - logits[np.arange(8), 1 - labels]).mean())

    assert right(apart) > right(held_out) + 0.1


def test_length_and_context_count() -> None:
    """Length and a repeated context make another text; three classes have three logits a text."""
    texts, contexts = ["好" * n for n in (2, 3, 4, 20, 21, 22)], ["糟", "好", "好", "糟", "糟", "好"]
    classifier, _ = recogniser.fit_ngrams(texts, contexts, np.array([0, 0, 0, 1, 1, 1]), list)
    short, long, repeated = classifier.logits(["好" * 3, "好" * 30, "好" * 3], ["糟", "糟", "好"], list)
    assert long[1] - long[0] > short[1] - short[0]
    assert not np.allclose(short, repeated)
    texts = ["好啊", "好吧", "糟啊", "糟吧", "雨啊", "雨吧"]
    classifier, held_out = recogniser.fit_ngrams(texts, [""] * 6, np.array([0, 0, 1, 1, 2, 2]), list)
    assert sides(classifier.logits(texts, [""] * 6, list)) == [0, 0, 1, 1, 2, 2]
    assert held_out.shape == (6, 3)
