"""W-ROUGE-L: equal to coco-caption's and rouge-score's with all weights 1, by hand with fractions, by properties."""

import random
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.overlap.metric import Floats, Metric
from pipeline.metrics.overlap.rouge import rouge_l
from pipeline.metrics.overlap.segments import read_batches

Segments = tuple[list[list[str]], list[list[list[str]]], list[list[float]]]

READINGS = [
    rouge_l("coco"), rouge_l("best"), rouge_l("union"), rouge_l("union", length="shortest"),
    rouge_l("union", length="longest", beta=0.5),
]  # fmt: skip
seeds = st.integers(0, 2**32 - 1)


def draw_segments(seed: int, count: int = 100, shortest: int = 0) -> Segments:
    """Random segments over seven words, with weights."""
    rng = random.Random(seed)

    def text() -> list[str]:
        return rng.choices("abcdefg", k=rng.randint(shortest, 9))

    references = [[text() for _ in range(rng.randint(1, 3))] for _ in range(count)]
    return [text() for _ in references], references, [[rng.random() for _ in owned] for owned in references]


def scores(metric: Metric, candidates: object, references: object, weights: object = None, size: int = 512) -> Floats:
    """The score of each segment."""
    read = read_batches(candidates, references, weights, size=size)  # type: ignore[arg-type]
    return np.concatenate([metric.score(metric.stats(batch)) for batch in read])


def table(candidate: list[str], reference: list[str]) -> list[list[int]]:
    """Lengths of the LCS of every start of one with every start of the other."""
    lengths = [[0] * (len(candidate) + 1) for _ in range(len(reference) + 1)]
    for i, reference_word in enumerate(reference):
        for j, candidate_word in enumerate(candidate):
            lengths[i + 1][j + 1] = (
                lengths[i][j] + 1 if candidate_word == reference_word else max(lengths[i][j + 1], lengths[i + 1][j])
            )
    return lengths


def f(precision: float, recall: float, beta: float = 1.2) -> float:
    """Equation B.4."""
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision) if precision and recall else 0.0


def covered(candidate: list[str], reference: list[str]) -> list[int]:
    """Places in the candidate of the canonical LCS, from the last to the first."""
    lengths, covered_places, i, j = table(candidate, reference), [], len(reference), len(candidate)
    while i and j:
        if lengths[i][j] == lengths[i][j - 1]:
            j -= 1
        elif lengths[i][j] == lengths[i - 1][j]:
            i -= 1
        else:
            i, j = i - 1, j - 1
            covered_places.append(j)
    return covered_places


def plain(reading: str, candidate: list[str], references: list[list[str]], weights: list[float]) -> float:
    """The three readings, one segment at a time."""
    common = [table(candidate, reference)[-1][-1] for reference in references]
    precisions = [length / max(len(candidate), 1) for length in common]
    recalls = [length / max(len(reference), 1) for length, reference in zip(common, references, strict=True)]
    if reading == "coco":
        return f(*(max(s * x for s, x in zip(weights, ratios, strict=True)) for ratios in (precisions, recalls)))
    if reading == "best":
        return max(s * f(p, r) for s, p, r in zip(weights, precisions, recalls, strict=True))
    gains = [0.0] * len(candidate)
    for weight, reference in zip(weights, references, strict=True):
        for place in covered(candidate, reference):
            gains[place] = max(gains[place], weight)
    mean = sum(map(len, references)) / len(references)
    return f(sum(gains) / max(len(candidate), 1), min(sum(gains) / mean, 1) if mean else 0)


@pytest.mark.parametrize("reading", ["coco", "best", "union"])
@settings(max_examples=34)
@given(seed=seeds)
def test_it_is_the_plain_implementation(reading: str, seed: int) -> None:
    """34 examples of 100 segments with weights, each of 3 readings against loops over one segment, to 1e-12."""
    segments = draw_segments(seed)
    expected = [plain(reading, *segment) for segment in zip(*segments, strict=True)]
    assert scores(rouge_l(reading), *segments) == pytest.approx(expected, abs=1e-12, rel=0)  # type: ignore[arg-type]


@settings(max_examples=100)
@given(seeds)
def test_best_is_rouge_score_s_with_all_weights_one(seed: int) -> None:
    """100 examples of 100 segments: rouge-score 0.1.2's score_multi, to 1e-12 (AAC-19)."""
    scoring = pytest.importorskip("rouge_score.rouge_scorer", reason="rouge-score is not installed")

    class Apart:
        """Its own tokenizer drops what is not ASCII."""

        def tokenize(self, text: str) -> list[str]:
            return text.split()

    scorer = scoring.RougeScorer(["rougeL"], tokenizer=Apart())
    candidates, references, _ = draw_segments(seed)
    expected = [
        scorer.score_multi([" ".join(reference) for reference in owned], " ".join(candidate))["rougeL"].fmeasure
        for candidate, owned in zip(candidates, references, strict=True)
    ]
    assert scores(rouge_l("best", beta=1.0), candidates, references) == pytest.approx(expected, abs=1e-12, rel=0)


@settings(max_examples=100)
@given(seed=seeds)
def test_coco_is_coco_caption_s_with_all_weights_one(seed: int) -> None:
    """100 examples of 100 segments: pycocoevalcap 1.2's Rouge, to 1e-12; it has no notion of an empty text."""
    sys.modules.setdefault("pdb", types.ModuleType("pdb"))  # which it imports for nothing
    coco = pytest.importorskip("pycocoevalcap.rouge.rouge", reason="pycocoevalcap is not installed").Rouge()
    candidates, references, _ = draw_segments(seed, shortest=1)
    expected = [
        coco.calc_score([" ".join(candidate)], [" ".join(reference) for reference in owned])
        for candidate, owned in zip(candidates, references, strict=True)
    ]
    assert scores(rouge_l(), candidates, references) == pytest.approx(expected, abs=1e-12, rel=0)


def test_weights_by_hand() -> None:
    """The candidate is a b c d; r_1 = a b, s 1/2, LCS a b; r_2 = d b c x y, s 1/4, LCS b c.

    coco: P = 1/4, R = 1/2. best: F_1 of 1/2 and 1, F_2 of 1/2 and 2/5. union: a and b count 1/2, c 1/4, so P = 1.25 / 4
    and R = 1.25 / 3.5.
    """
    segment = [list("abcd")], [[list("ab"), list("dbcxy")]], [[0.5, 0.25]]
    assert scores(rouge_l("coco"), *segment)[0] == pytest.approx(f(1 / 4, 1 / 2))
    assert scores(rouge_l("best"), *segment)[0] == pytest.approx(max(f(1 / 2, 1) / 2, f(1 / 2, 2 / 5) / 4))
    assert scores(rouge_l("union"), *segment)[0] == pytest.approx(f(1.25 / 4, 1.25 / 3.5))
    assert scores(rouge_l("union", length="shortest"), *segment)[0] == pytest.approx(f(1.25 / 4, 1.25 / 2))
    assert scores(rouge_l("union", length="longest"), *segment)[0] == pytest.approx(f(1.25 / 4, 1.25 / 5))


def test_coco_mixes_references() -> None:
    """Its precision may be one reference's and its recall another's, so two halves make more than either."""
    segment = [list("abcd")], [[list("abcxyzuv"), list("d")]]
    assert scores(rouge_l("coco"), *segment)[0] == pytest.approx(f(3 / 4, 1))
    assert scores(rouge_l("best"), *segment)[0] == pytest.approx(f(3 / 4, 3 / 8))


@pytest.mark.parametrize("metric", READINGS, ids=lambda metric: metric.signature)
@settings(max_examples=15)
@given(seed=seeds)
def test_properties(metric: Metric, seed: int) -> None:
    """In [0, 1], 0 for weights of 0; more weight is never less; order and size of batches change nothing."""
    candidates, references, weights = draw_segments(seed)
    rng = random.Random(seed)
    orders = [rng.sample(range(len(owned)), len(owned)) for owned in references]
    moved = [
        [[column[i] for i in order] for order, column in zip(orders, columns, strict=True)]
        for columns in (references, weights)
    ]
    actual = scores(metric, candidates, references, weights)
    assert scores(metric, candidates, *moved, size=7).tolist() == pytest.approx(actual.tolist(), abs=1e-15)
    assert scores(metric, candidates, references, weights, size=7).tolist() == actual.tolist()
    assert (actual >= 0).all()
    assert (actual <= 1).all()
    raised = [[weight + (1 - weight) * (i % 2) for i, weight in enumerate(owned)] for owned in weights]
    assert (scores(metric, candidates, references, raised) >= actual - 1e-15).all()
    assert not scores(metric, candidates, references, [[0.0] * len(owned) for owned in references]).any()


@pytest.mark.parametrize("metric", READINGS[:3], ids=lambda metric: metric.signature)
def test_a_copy_is_worth_its_reference(metric: Metric) -> None:
    """A candidate that is its only reference scores the reference's weight, short or longer than a machine word."""
    for text in (["这", "部", "电影", "好"], [str(i) for i in range(100)]):
        assert scores(metric, [text], [[text]], [[0.6]])[0] == pytest.approx(0.6)


def test_a_corpus_scores_the_mean_of_its_segments() -> None:
    """Of sums of statistics comes the mean; what has no tokens scores 0 and counts."""
    for metric in READINGS:
        [batch] = read_batches([["a", "b"], [], ["a"], []], [[["a", "b"]], [["a"]], [[]], [[]]])
        rows = metric.stats(batch)
        assert metric.score(rows).tolist() == [1, 0, 0, 0]
        assert metric.score(rows.sum(axis=0)) == 0.25


def test_options() -> None:
    """Unknown ones are errors; the signature tells the length only where it is read."""
    with pytest.raises(ValueError, match="reading should be one of coco, union, best, not 'lin'"):
        rouge_l("lin")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="length should be one of mean, shortest, longest, not 'closest'"):
        rouge_l("union", length="closest")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="beta should be above 0"):
        rouge_l(beta=0)
    assert rouge_l().signature.startswith("beta:1.2|reading:coco|")
    assert rouge_l("union", 1.0).signature.startswith("beta:1|length:mean|reading:union|")
