"""W-BLEU and ΔBLEU: sacrebleu with all weights one, hand arithmetic, a plain ΔBLEU, and properties."""

import logging
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from pipeline.metrics.overlap.bleu import bleu, delta_bleu
from pipeline.metrics.overlap.segments import read_batches
from tests.support.oracles.overlap_cases import draw_case, read_case, score_text, seeds

SMOOTHINGS = ["none", "floor", "add_k", "exp"]
logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it advises effective_order with every sentence


@settings(max_examples=60)
@given(seeds, st.sampled_from(SMOOTHINGS), st.booleans(), st.integers(1, 5))
def test_with_weights_of_one_it_is_sacrebleu(seed: int, smoothing: str, is_effective: bool, order: int) -> None:
    """Sentences and corpora score as in sacrebleu 2.6.0 within 1e-12, 100 segments at a time (AAC-11, AAC-19)."""
    case = draw_case(seed).weigh(1)
    metric = bleu(order, smoothing, effective_order=is_effective)
    options = {"effective_order": is_effective, "max_ngram_order": order}
    oracle = BLEU(tokenize="none", smooth_method=smoothing.replace("_", "-"), **options)
    candidates = [" ".join(text) for text in case.candidates]
    references = [[" ".join(text) for text in texts] for texts in case.references]
    stats = metric.stats(read_case(case))
    pairs = zip(candidates, references, strict=True)
    expected = [oracle.sentence_score(*pair).score / 100 for pair in pairs]
    np.testing.assert_allclose(metric.score(stats), expected, rtol=0, atol=1e-12)
    streams = [[texts[j] if j < len(texts) else None for texts in references] for j in range(4)]
    actual = oracle.corpus_score(candidates, streams).score / 100
    assert float(metric.score(stats.sum(axis=0))) == pytest.approx(actual, abs=1e-12)


def test_fractional_weights_by_hand() -> None:
    """PRC_1 and PRC_2 of (B.2), each word at its best weight; ΔBLEU of the same, where a bad match costs."""
    arguments = ("a a b c", ["a a b", "a b b d"], [0.5, 0.8])
    assert score_text(bleu(1), *arguments) == pytest.approx(0.5)
    assert score_text(bleu(2), *arguments) == pytest.approx(math.sqrt(0.5 * 1.3 / 3))
    assert score_text(delta_bleu(1), "a a b c", ["a a b", "a b b d"], [0.5, 0.8]) == pytest.approx(1.8 / 3.2)
    # a 0.5, b -1 of 0.5 · 2: the sum is below 0
    assert score_text(delta_bleu(1), "a b", ["a c", "b d"], [0.5, -1]) == 0
    assert score_text(delta_bleu(1), "a a b", ["a a c", "b d e"], [1, -0.5]) == pytest.approx((2 - 0.5) / 3)
    assert score_text(delta_bleu(1, effective_order=True), "a", ["a"], [-1]) == 0


def test_length_readings() -> None:
    """Of references of 2 and 6 words, 4 is as close to both: the shorter one counts; a weight of 0 may be left out."""
    candidate, references, weights = "a b c d", ["a b", "a b c d e f"], [0.0, 1.0]
    assert score_text(bleu(1), candidate, references) == 1
    assert score_text(bleu(1, length="average"), candidate, references) == 1
    longer = [*references, "a b c d e f g h i j"]
    assert score_text(bleu(1, length="average"), candidate, longer) == pytest.approx(math.exp(1 - 6 / 4))
    assert score_text(bleu(1, length="shortest"), "a", ["a b c", "a b"]) == pytest.approx(math.exp(1 - 2))
    assert score_text(bleu(1), candidate, references, weights) == 1
    for length in ("closest", "average"):
        metric = bleu(1, length=length, counts_zero_weight_lengths=False)  # type: ignore[arg-type]
        assert score_text(metric, candidate, references, weights) == pytest.approx(math.exp(1 - 6 / 4))
    (batch,) = read_batches([["a"]], [[["a", "b"], ["a"]]], [[0, 0]])
    # where all are 0 all count
    assert bleu(1, counts_zero_weight_lengths=False).stats(batch)[0].tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("smoothing", "expected"),
    [
        ("none", 0), ("floor", (2 / 3 * 0.1 / 2 * 0.1 / 1) ** (1 / 3)), ("add_k", (2 / 3 * 1 / 3 * 1 / 2) ** (1 / 3)),
        ("exp", (2 / 3 * 1 / (2 * 2) * 1 / (4 * 1)) ** (1 / 3)),
    ],
)  # fmt: skip
def test_smoothing_by_hand(smoothing: str, expected: float) -> None:
    """Of a x b against a b c: two of three words, no bigram of two, no trigram of one (Chen & Cherry, 2014)."""
    assert score_text(bleu(3, smoothing), "a x b", ["a b c"]) == pytest.approx(expected)


def test_short_candidates() -> None:
    """A candidate of two words has no trigrams: its BLEU-4 is 0, or that of the orders it has. Without words: 0."""
    assert score_text(bleu(4), "a b", ["a b"]) == 0
    assert score_text(bleu(4, effective_order=True), "a b", ["a b"]) == 1
    for smoothing in SMOOTHINGS:
        assert score_text(bleu(2, smoothing), "", ["a b"]) == 0
        assert score_text(bleu(2, smoothing), "", [""]) == 0
        assert score_text(bleu(2, smoothing, effective_order=True), "a", [""]) == 0


@settings(max_examples=50)
@given(seeds)
def test_delta_is_the_plain_one(seed: int) -> None:
    """Statistics are those of Galley et al. (2015), written with dictionaries."""
    case = draw_case(seed, 40, low=-1)
    stats = delta_bleu(3).stats(read_case(case, low=-1))
    for statistics, candidate, references, weights in zip(stats, *case, strict=True):
        for n in (1, 2, 3):
            grams, *oracle = (
                Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1)) for text in (candidate, *references)
            )
            worth = {
                gram: [w * min(grams[gram], r[gram]) for w, r in zip(weights, oracle, strict=True) if gram in r]
                for gram in grams
            }
            assert statistics[n - 1] == pytest.approx(sum(max(values) for values in worth.values() if values))
            assert statistics[n + 2] == pytest.approx(sum(grams.values()) * max(weights))
