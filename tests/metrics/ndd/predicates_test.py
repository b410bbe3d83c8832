"""Predicates by NDD: a model with known distributions, mAP and AUC against scikit-learn, and sentences left out."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from pipeline.errors import BadInput
from pipeline.metrics.ndd import predicates
from pipeline.metrics.ndd.distance import Floats, IndexArray, Sentence, distances
from pipeline.metrics.ndd.predicates import auc, average_precision, ensemble, evaluate, list_edits, score_words

LIKELY = {"": 0.5, "dogs": 0.9, "chase": 0.2, "cats": 0.6, "[MASK]": 0.3, "a": 0.7}
"""Of the first of two words of a vocabulary, by the word that stands left of the mask; the stand-in knows no more."""
TEXT = ("dogs", "chase", "cats")


class Left:
    """A masked model whose distributions depend on the word to the left alone; it counts what it is asked."""

    signature = "left"

    def __init__(self) -> None:
        self.asks: list[tuple[tuple[str, ...], int]] = []

    def distributions(
        self, sentences: Sequence[Sentence], sentence: IndexArray, place: IndexArray
    ) -> Iterator[tuple[IndexArray, torch.Tensor]]:
        for row, (which, i) in enumerate(zip(sentence.tolist(), place.tolist(), strict=True)):
            self.asks.append((tuple(sentences[which]), i))
            first = LIKELY[sentences[which][i - 1] if i else ""]
            yield np.array([row]), torch.tensor([[first, 1 - first]]).log()

    def surprisals(self, sentences: Sequence[Sentence]) -> list[Floats]:
        """Of each word minus the logarithm of what it is taken for after the word to its left."""
        return [np.array([-math.log(LIKELY[neighbour]) for neighbour in ("", *words[:-1])]) for words in sentences]


def kl(q: float, other: float) -> float:
    """Σ q' log(q' / q) of two distributions over two words, by their first."""
    return other * math.log(other / q) + (1 - other) * math.log((1 - other) / (1 - q))


def test_each_edit_by_hand() -> None:
    """What has another word to its left after the edit diverges: KL of its two distributions, over two neighbours."""
    model = Left()
    (deleted,), (masked,), (stopped,) = (score_words(model, [TEXT], edit) for edit in ("delete", "mask", "stop_word"))
    # without dogs, chase is first; without chase, cats stands behind dogs; without cats nothing changes
    assert deleted == pytest.approx([kl(0.9, 0.5) / 2, kl(0.2, 0.9) / 2, 0], abs=1e-6)
    assert masked == pytest.approx([kl(0.9, 0.3) / 2, kl(0.2, 0.3) / 2, 0], abs=1e-6)
    assert stopped == pytest.approx([kl(0.9, 0.7) / 2, kl(0.2, 0.7) / 2, 0], abs=1e-6)


def test_what_is_asked_of_the_model() -> None:
    """There are n (n - 1) + n asks for n words, and none of a word that was put in."""
    for edit in ("delete", "mask", "stop_word"):
        model = Left()
        score_words(model, [TEXT, ("cats", "chase", "dogs", "dogs")], edit)
        assert len(model.asks) == (3 + 3 * 2) + (4 + 4 * 3)
        assert not any(text[i] in ("[MASK]", "a") for text, i in model.asks)


def test_it_is_the_distance_of_sentence_and_edit() -> None:
    """Where no word is repeated, scores are the general NDD with the longest common subsequence as neighbours."""
    texts = [TEXT, ("chase", "dogs"), ("cats", "dogs", "chase")]
    for edit, divergence in (("delete", "kl"), ("mask", "hellinger"), ("stop_word", "kl_reversed")):
        actual = score_words(Left(), texts, edit, divergence=divergence)
        for text, values in zip(texts, actual, strict=True):
            edits = list_edits(text, edit, {"mask": "[MASK]", "stop_word": "a"}.get(edit, ""))
            expected = distances(Left(), [text] * len(text), edits, divergence=divergence, weights="mean")
            assert values == pytest.approx(expected, abs=1e-7)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many sentences at once or one by one: the same numbers in the order of the sentences."""
    texts = [tuple(text) for n in (1, 2, 3) for text in combinations(TEXT, n)]
    for score, edit in ((score_words, "delete"), (predicates.score_perplexity, "mask")):
        complete = [scores.tolist() for scores in score(Left(), texts, edit)]
        with monkeypatch.context() as patch:
            patch.setattr(predicates, "_PAIRS", 5)
            assert [scores.tolist() for scores in score(Left(), texts, edit)] == complete


def test_perplexity_by_hand() -> None:
    """ΔPPL is the mean -log p of the edit less that of the sentence; an edit that reads better is below 0."""
    before = -(math.log(0.5) + math.log(0.9) + math.log(0.2)) / 3
    (deleted,) = predicates.score_perplexity(Left(), [TEXT], "delete")
    assert deleted[0] == pytest.approx(-(math.log(0.5) + math.log(0.2)) / 2 - before)
    assert deleted[1] == pytest.approx(-(math.log(0.5) + math.log(0.9)) / 2 - before)
    (masked,) = predicates.score_perplexity(Left(), [TEXT], "mask")
    assert masked[1] == pytest.approx(-(math.log(0.5) + math.log(0.9) + math.log(0.3)) / 3 - before)
    assert masked[1] < 0


words = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=30)
sentences = st.lists(words, min_size=1, max_size=8).filter(lambda rows: any(right for row in rows for _, right in row))


@given(words)
def test_measures_are_scikit_learns(labelled: list[tuple[int, bool]]) -> None:
    """Average precision and AUC of scores with ties; undefined where one kind of word is missing."""
    score, right = np.array([word[0] for word in labelled], float), np.array([word[1] for word in labelled])
    precision = average_precision_score(right, score) if right.any() else math.nan
    area = roc_auc_score(right, score) if right.any() and not right.all() else math.nan
    assert average_precision(score, right) == pytest.approx(precision, nan_ok=True)
    assert auc(score, right) == pytest.approx(area, nan_ok=True)


@given(words, st.data())
def test_auc_of_repeated_words(labelled: list[tuple[int, bool]], data: st.DataObject) -> None:
    """A word that counts three times is three words, as in a sample of the bootstrap."""
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(labelled), max_size=len(labelled))))
    score, right = np.array([word[0] for word in labelled], float), np.array([word[1] for word in labelled])
    actual, expected = auc(score, right, times), auc(score.repeat(times), right.repeat(times))
    assert actual == pytest.approx(expected, nan_ok=True)


@settings(max_examples=30, deadline=None)
@given(sentences)
def test_evaluation_is_scikit_learns(labelled_sentences: list[list[tuple[int, bool]]]) -> None:
    """Both AUC and mAP of the sentences with a predicate; n is how many sentences a number is of."""
    columns = [[np.array(column) for column in zip(*sentence, strict=True)] for sentence in labelled_sentences]
    score, right = zip(*columns, strict=True)
    actual = evaluate(score, right, draws=3).rows_by_key("metric", named=True, unique=True)
    with_predicate = [(s, r) for s, r in columns if any(r)]
    assert actual["map"]["value"] == pytest.approx(np.mean([average_precision_score(r, s) for s, r in with_predicate]))
    assert actual["map"]["n"] == len(columns) - actual["map"]["no_predicate"] == len(with_predicate)
    with_both_kinds = [(s, r) for s, r in with_predicate if not all(r)]
    assert actual["auc_mean"]["n"] == len(with_both_kinds)
    if with_both_kinds:
        all_scores, all_right = map(np.concatenate, zip(*with_predicate, strict=True))
        assert actual["auc_pooled"]["value"] == pytest.approx(roc_auc_score(all_right, all_scores))
        assert actual["auc_mean"]["value"] == pytest.approx(np.mean([roc_auc_score(r, s) for s, r in with_both_kinds]))
    else:
        assert actual["auc_pooled"]["value"] is actual["auc_mean"]["value"] is None


def test_the_two_auc_differ() -> None:
    """AUC is 1 by sentence and 3 of 4 pooled, where the second lies below the first; ensembles are means."""
    actual = evaluate([np.array([9.0, 5]), np.array([2.0, 1])], [[True, False], [True, False]], draws=0)
    assert actual["metric"].to_list() == ["map", "auc_pooled", "auc_mean"]
    assert actual["value"].to_list() == [1, 0.75, 1]
    assert actual["low"].null_count() == 3
    first, second = [np.array([1.0, 4.0, 4.0]), np.array([2.0])], [np.array([30.0, 10.0, 20.0]), np.array([4.0])]
    assert [scores.tolist() for scores in ensemble([first, second])] == [[15.5, 7.0, 12.0], [3.0]]
    assert [scores.tolist() for scores in ensemble([first])] == [scores.tolist() for scores in first]
    with pytest.raises(BadInput, match=r"scores of the same words from every edit, found \[4, 3\]"):
        ensemble([first, first[:1]])


def test_what_is_left_out_is_counted() -> None:
    """No predicate, or over 50 words (footnote 9): named by sentence, and counted beside the numbers."""
    right = [[True, False], [False, False], [True] * 51, [True] + [False] * 49]
    indices, dropped = predicates.select_sentences(right)
    assert indices.tolist() == [0, 3]
    assert dropped.rows() == [(1, "no_predicate"), (2, "too_long")]
    actual = evaluate([np.arange(len(labels), dtype=float) for labels in right], right, draws=0)
    assert actual.select("n", "words", "no_predicate", "too_long").unique().rows() == [(2, 52, 1, 1)]
    assert actual.schema["value"] == pl.Float64
    with pytest.raises(BadInput, match="none of 1 sentences has a predicate and at most 50 words"):
        evaluate([np.ones(1)], [[False]])
