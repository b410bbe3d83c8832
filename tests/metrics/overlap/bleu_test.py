"""W-BLEU and ΔBLEU: sacrebleu and nltk with all weights one, hand arithmetic, a plain ΔBLEU, and properties."""

import logging
import math
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from pipeline.metrics.overlap.bleu import bleu, delta_bleu
from pipeline.metrics.overlap.metric import Metric
from pipeline.metrics.overlap.segments import read_batches
from tests.support.overlap_cases import drawn, seeds, whole

SMOOTHINGS = ["none", "floor", "add_k", "exp"]
logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it advises effective_order with every sentence


def score(metric: Metric, candidate: str, references: list[str], weights: list[float] | None = None) -> float:
    """The score of one candidate, words between spaces."""
    rows = None if weights is None else [weights]
    texts = [[reference.split() for reference in references]]
    (batch,) = read_batches([candidate.split()], texts, rows, low=metric.lowest)
    return float(metric.score(metric.stats(batch))[0])


def corpus(metric: Metric, case: tuple[object, ...]) -> float:
    """The corpus score with all weights one."""
    (batch,) = read_batches(case[0], case[1], size=1 << 20)  # type: ignore[arg-type]
    return float(metric.score(metric.stats(batch).sum(axis=0)))


@settings(max_examples=100)
@given(seeds, st.sampled_from(SMOOTHINGS), st.booleans(), st.integers(1, 5))
def test_with_weights_of_one_it_is_sacrebleu(seed: int, smoothing: str, is_effective: bool, order: int) -> None:
    """Sentences and corpora score as in sacrebleu 2.6.0 within 1e-12, 100 segments at a time (AAC-11, AAC-19)."""
    case = drawn(seed)
    metric = bleu(order, smoothing, effective_order=is_effective)
    oracle = BLEU(tokenize="none", smooth_method=smoothing.replace("_", "-"), effective_order=is_effective,
                  max_ngram_order=order)  # fmt: skip
    candidates = [" ".join(text) for text in case.candidates]
    references = [[" ".join(text) for text in owned] for owned in case.references]
    stats = metric.stats(whole(case, weighted=False))
    pairs = zip(candidates, references, strict=True)
    expected = [oracle.sentence_score(candidate, owned).score / 100 for candidate, owned in pairs]
    np.testing.assert_allclose(metric.score(stats), expected, rtol=0, atol=1e-12)
    streams = [[owned[j] if j < len(owned) else None for owned in references] for j in range(4)]
    actual = oracle.corpus_score(candidates, streams).score / 100
    assert float(metric.score(stats.sum(axis=0))) == pytest.approx(actual, abs=1e-12)


@settings(max_examples=50)
@given(seeds, st.integers(1, 4))
def test_with_weights_of_one_it_is_nltk(seed: int, order: int) -> None:
    """Sentences score as in nltk within 1e-12, and so do corpora whose candidates have as many words as N."""
    from nltk.translate.bleu_score import corpus_bleu, sentence_bleu

    case, weights = drawn(seed, 40), (1 / order,) * order
    metric = bleu(order)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sentences without matches
        pairs = zip(case.references, case.candidates, strict=True)
        expected = [sentence_bleu(owned, candidate, weights) for owned, candidate in pairs]
        np.testing.assert_allclose(metric.score(metric.stats(whole(case, weighted=False))), expected, atol=1e-12)
        long = drawn(seed, 40, shortest=order)
        actual = corpus_bleu(long.references, long.candidates, weights)
    assert corpus(metric, long) == pytest.approx(actual, abs=1e-12)


def test_papineni_by_hand() -> None:
    """The second example of Papineni et al. (2002): of seven `the` two are in the first reference, 2 / 7."""
    assert score(bleu(1), "the the the the the the the", ["the cat is on the mat", "there is a cat on the mat"]) == (
        pytest.approx(2 / 7)
    )


def test_fractional_weights_by_hand() -> None:
    """PRC_1 and PRC_2 of (B.2), each word as much as its best weighted reference has it.

    c = a a b c, r1 = a a b (0.5), r2 = a b b d (0.8). Unigrams: a min(2, max(0.5 · 2, 0.8 · 1)) = 1,
    b min(1, max(0.5, 0.8 · 2)) = 1, c 0: 2 / 4. Bigrams: aa 0.5, ab max(0.5, 0.8), bc 0: 1.3 / 3. The closest length is
    4, no penalty.
    """
    arguments = ("a a b c", ["a a b", "a b b d"], [0.5, 0.8])
    assert score(bleu(1), *arguments) == pytest.approx(0.5)
    assert score(bleu(2), *arguments) == pytest.approx(math.sqrt(0.5 * 1.3 / 3))


def test_deltas_by_hand() -> None:
    """ΔBLEU of the same: a max(0.5 · 2, 0.8), b max(0.5, 0.8), of 0.8 · 4; a match in a bad reference costs."""
    assert score(delta_bleu(1), "a a b c", ["a a b", "a b b d"], [0.5, 0.8]) == pytest.approx(1.8 / 3.2)
    # a 0.5, b -1 of 0.5 · 2: the sum is below 0
    assert score(delta_bleu(1), "a b", ["a c", "b d"], [0.5, -1]) == 0
    assert score(delta_bleu(1), "a a b", ["a a c", "b d e"], [1, -0.5]) == pytest.approx((2 - 0.5) / 3)
    assert score(delta_bleu(1, effective_order=True), "a", ["a"], [-1]) == 0


def test_length_readings() -> None:
    """Of references of 2 and 6 words, 4 is as close to both: the shorter one counts; a weight of 0 may be left out."""
    candidate, references = "a b c d", ["a b", "a b c d e f"]
    assert score(bleu(1), candidate, references) == 1
    assert score(bleu(1, length="average"), candidate, references) == 1
    longer = [*references, "a b c d e f g h i j"]
    assert score(bleu(1, length="average"), candidate, longer) == pytest.approx(math.exp(1 - 6 / 4))
    assert score(bleu(1, length="shortest"), "a", ["a b c", "a b"]) == pytest.approx(math.exp(1 - 2))
    weights = [0.0, 1.0]
    assert score(bleu(1), candidate, references, weights) == 1
    without = bleu(1, counts_zero_weight_lengths=False)
    assert score(without, candidate, references, weights) == pytest.approx(math.exp(1 - 6 / 4))
    assert score(bleu(1, length="average", counts_zero_weight_lengths=False), candidate, references, weights) == (
        pytest.approx(math.exp(1 - 6 / 4))
    )
    (batch,) = read_batches([["a"]], [[["a", "b"], ["a"]]], [[0, 0]])
    assert without.stats(batch)[0].tolist() == [0, 1, 1, 1]  # where all are 0 all count


@pytest.mark.parametrize(
    ("smoothing", "expected"),
    [
        ("none", 0),
        ("floor", (2 / 3 * 0.1 / 2 * 0.1 / 1) ** (1 / 3)),
        ("add_k", (2 / 3 * 1 / 3 * 1 / 2) ** (1 / 3)),
        ("exp", (2 / 3 * 1 / (2 * 2) * 1 / (4 * 1)) ** (1 / 3)),
    ],
)
def test_smoothing_by_hand(smoothing: str, expected: float) -> None:
    """Of a x b against a b c: two of three words, no bigram of two, no trigram of one (Chen & Cherry, 2014)."""
    assert score(bleu(3, smoothing), "a x b", ["a b c"]) == pytest.approx(expected)


def test_short_candidates() -> None:
    """A candidate of two words has no trigrams: its BLEU-4 is 0, or that of the orders it has. Without words: 0."""
    assert score(bleu(4), "a b", ["a b"]) == 0
    assert score(bleu(4, effective_order=True), "a b", ["a b"]) == 1
    for smoothing in SMOOTHINGS:
        assert score(bleu(2, smoothing), "", ["a b"]) == 0
        assert score(bleu(2, smoothing), "", [""]) == 0
        assert score(bleu(2, smoothing, effective_order=True), "a", [""]) == 0


@settings(max_examples=50)
@given(seeds)
def test_delta_is_the_plain_one(seed: int) -> None:
    """Statistics are those of Galley et al. (2015), written with dictionaries."""
    case = drawn(seed, 40, low=-1)
    stats = delta_bleu(3).stats(whole(case, low=-1))
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


@settings(max_examples=50)
@given(seeds)
def test_delta_with_weights_of_one_is_bleu(seed: int) -> None:
    """With all weights one both have the same statistics (AAC-20)."""
    batch = whole(drawn(seed, 40), weighted=False)
    assert (delta_bleu().stats(batch) == bleu().stats(batch)).all()


@settings(max_examples=50)
@given(seeds, st.integers(0, 99))
def test_a_higher_weight_never_lowers_the_score(seed: int, place: int) -> None:
    """Raising one reference's weight leaves its candidate's score as it is or raises it, and the others alone."""
    case = drawn(seed, 40)
    raised = [[min(1.0, weight + 0.3) if (i + j) % 7 == place % 7 else weight for j, weight in enumerate(row)]
              for i, row in enumerate(case.weights)]  # fmt: skip
    metric = bleu(2)
    before, after = (metric.score(metric.stats(whole(variant))) for variant in (case, case._replace(weights=raised)))
    assert (after >= before - 1e-12).all()
    same = [row == other for row, other in zip(case.weights, raised, strict=True)]
    np.testing.assert_allclose(after[same], before[same], atol=1e-12)


@settings(max_examples=50)
@given(seeds)
def test_references_are_a_set(seed: int) -> None:
    """Their order does not matter, one of weight 0 changes no match, and one more never lowers a precision (AAC-11)."""
    case = drawn(seed, 40)
    more = drawn(seed + 1, 40)
    order = 3
    metric = bleu(order)
    before = metric.stats(whole(case))
    turned = case._replace(
        references=[owned[::-1] for owned in case.references], weights=[row[::-1] for row in case.weights]
    )
    np.testing.assert_allclose(metric.stats(whole(turned)), before, atol=1e-12)
    added = case._replace(
        references=[a + b for a, b in zip(case.references, more.references, strict=True)],
        weights=[a + b for a, b in zip(case.weights, more.weights, strict=True)],
    )
    after = metric.stats(whole(added))
    assert (after[:, :order] >= before[:, :order] - 1e-12).all()
    assert (after[:, order:-1] == before[:, order:-1]).all()
    nothing = added._replace(weights=[a + [0.0] * len(b) for a, b in zip(case.weights, more.references, strict=True)])
    np.testing.assert_allclose(metric.stats(whole(nothing))[:, :-1], before[:, :-1], atol=1e-12)


@settings(max_examples=50)
@given(seeds, st.sampled_from(SMOOTHINGS))
def test_ends_of_the_scale(seed: int, smoothing: str) -> None:
    """With all weights 0 everything is 0; a candidate that is a reference of weight 1 has 1; nothing leaves [0, 1]."""
    case = drawn(seed, 40, shortest=2)
    metric = bleu(2, smoothing)
    nothing = case._replace(weights=[[0.0] * len(row) for row in case.weights])
    assert not metric.score(metric.stats(whole(nothing))).any()
    same = case._replace(
        candidates=[owned[0] for owned in case.references], weights=[[1.0] * len(r) for r in case.weights]
    )
    np.testing.assert_allclose(metric.score(metric.stats(whole(same))), 1)
    scores = metric.score(metric.stats(whole(case)))
    assert ((scores >= 0) & (scores <= 1 + 1e-12)).all()


@settings(max_examples=20)
@given(seeds, st.integers(1, 30))
def test_batches_do_not_matter(seed: int, size: int) -> None:
    """Statistics are the same bit for bit, whatever was read with a segment."""
    case = drawn(seed, 40)
    for metric in (bleu(), delta_bleu()):
        parts = [metric.stats(batch) for batch in read_batches(*case, size=size)]
        assert (np.concatenate(parts) == metric.stats(whole(case))).all()


def test_signatures() -> None:
    """Every option is in the signature, so two readings never share one; the default value is told too."""
    metrics = [bleu(order) for order in (1, 2)]
    metrics += [bleu(smoothing=smoothing) for smoothing in SMOOTHINGS] + [bleu(smoothing="floor", smooth_value=0.2)]
    metrics += [bleu(length="shortest"), bleu(counts_zero_weight_lengths=False), bleu(effective_order=True)]
    assert len({metric.signature for metric in metrics}) == len(metrics)
    assert metrics[0].signature.startswith(
        "counts_zero_weight_lengths:yes|effective_order:no|length:closest|order:1|smoothing:none|undertone:"
    )
    assert "smoothing:floor[0.1]" in bleu(smoothing="floor").signature
    assert [metric.name for metric in (bleu(), delta_bleu())] == ["BLEU-4", "DeltaBLEU-4"]
    assert (bleu().lowest, delta_bleu().lowest) == (0, -1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 0}, "order should be at least 1, not 0"),
        ({"smoothing": "add-k"}, "smoothing should be one of none, floor, add_k, exp, not 'add-k'"),
        ({"length": "longest"}, "length should be one of closest, shortest, average"),
        ({"smooth_value": 0.1}, "smoothing none accepts no value, found 0.1"),
        ({"smoothing": "floor", "smooth_value": 0}, "should be above 0, not 0"),
        ({"smoothing": "add_k", "smooth_value": math.nan}, "should be above 0, not nan"),
    ],
)
def test_what_is_no_bleu(options: dict[str, object], message: str) -> None:
    """Unknown options are errors before anything is read."""
    for build in (bleu, delta_bleu):
        with pytest.raises(ValueError, match=message):
            build(**options)  # type: ignore[operator]
