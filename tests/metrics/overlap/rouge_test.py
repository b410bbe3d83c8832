"""W-ROUGE-L: equal to rouge-score's with all weights 1, by hand with fractions, by properties."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.overlap.rouge import locate_matches, measure_lengths, rouge_l
from pipeline.metrics.overlap.segments import read_batches
from tests.support.oracles.overlap_cases import draw_case, locate_plainly, score_case, seeds


def f(precision: float, recall: float, beta: float = 1.2) -> float:
    """Equation B.4."""
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision) if precision and recall else 0.0


def score_plainly(reading: str, candidate: list[str], references: list[list[str]], weights: list[float]) -> float:
    """Score one segment in one of three readings."""
    places = [[place for place in locate_plainly(candidate, text) if place >= 0] for text in references]
    precisions = [len(row) / max(len(candidate), 1) for row in places]
    recalls = [len(row) / max(len(text), 1) for row, text in zip(places, references, strict=True)]
    if reading == "coco":
        return f(*(max(s * x for s, x in zip(weights, ratios, strict=True)) for ratios in (precisions, recalls)))
    if reading == "best":
        return max(s * f(p, r) for s, p, r in zip(weights, precisions, recalls, strict=True))
    gains = [0.0] * len(candidate)
    for weight, covered in zip(weights, places, strict=True):
        for place in covered:
            gains[place] = max(gains[place], weight)
    mean = sum(map(len, references)) / len(references)
    return f(sum(gains) / max(len(candidate), 1), min(sum(gains) / mean, 1) if mean else 0)


@pytest.mark.parametrize("reading", ["coco", "best", "union"])
@settings(max_examples=34)
@given(seed=seeds)
def test_it_is_the_plain_implementation(reading: str, seed: int) -> None:
    """34 examples of 100 segments with weights, each of 3 readings against loops over one segment, to 1e-12."""
    case = draw_case(seed, kinds=7)
    expected = [score_plainly(reading, *segment) for segment in zip(*case, strict=True)]
    assert score_case(rouge_l(reading), *case) == pytest.approx(expected, abs=1e-12, rel=0)  # type: ignore[arg-type]


@settings(max_examples=40)
@given(seeds)
def test_best_is_rouge_score_s_with_all_weights_one(seed: int) -> None:
    """40 examples of 100 segments: rouge-score 0.1.2's score_multi, to 1e-12 (AAC-19)."""
    scoring = pytest.importorskip("rouge_score.rouge_scorer", reason="rouge-score is not installed")

    class Blanks:
        """The tokenizer of rouge-score drops what is not ASCII."""

        def tokenize(self, text: str) -> list[str]:
            return text.split()

    scorer = scoring.RougeScorer(["rougeL"], tokenizer=Blanks())
    case = draw_case(seed, kinds=7)
    expected = [
        scorer.score_multi([*map(" ".join, references)], " ".join(candidate))["rougeL"].fmeasure
        for candidate, references in zip(*case[:2], strict=True)
    ]
    assert score_case(rouge_l("best", beta=1.0), *case[:2]) == pytest.approx(expected, abs=1e-12, rel=0)


def test_weights_by_hand() -> None:
    """The candidate is a b c d; r_1 = a b, s 1/2, LCS a b; r_2 = d b c x y, s 1/4, LCS b c.

    coco: P = 1/4, R = 1/2. best: F_1 of 1/2 and 1, F_2 of 1/2 and 2/5. union: a and b count 1/2, c 1/4, so P = 1.25 / 4
    and R = 1.25 / 3.5.
    """
    segment = [list("abcd")], [[list("ab"), list("dbcxy")]], [[0.5, 0.25]]
    assert score_case(rouge_l("coco"), *segment)[0] == pytest.approx(f(1 / 4, 1 / 2))
    assert score_case(rouge_l("best"), *segment)[0] == pytest.approx(max(f(1 / 2, 1) / 2, f(1 / 2, 2 / 5) / 4))
    assert score_case(rouge_l("union"), *segment)[0] == pytest.approx(f(1.25 / 4, 1.25 / 3.5))
    assert score_case(rouge_l("union", length="shortest"), *segment)[0] == pytest.approx(f(1.25 / 4, 1.25 / 2))
    assert score_case(rouge_l("union", length="longest"), *segment)[0] == pytest.approx(f(1.25 / 4, 1.25 / 5))


texts = st.text("ab,", max_size=9)
long_texts = st.tuples(st.text("abc", min_size=1, max_size=5), st.integers(1, 25)).map(lambda t: t[0] * t[1])
segments = st.lists(st.tuples(texts | long_texts, st.lists(texts | long_texts, min_size=1, max_size=3)), min_size=1)


@settings(max_examples=50)
@given(segments)
def test_it_is_the_dynamic_programme(pairs: list[tuple[str, list[str]]]) -> None:
    """Lengths and places are those of the table, for candidates of no, few and more than 64 tokens side by side."""
    expected = [locate_plainly(candidate, text) for candidate, references in pairs for text in references]
    [batch] = read_batches([list(c) for c, _ in pairs], [[list(r) for r in references] for _, references in pairs])
    assert measure_lengths(batch).tolist() == [sum(place >= 0 for place in places) for places in expected]
    assert locate_matches(batch).tolist() == [place for places in expected for place in places]


@pytest.mark.parametrize("size", [63, 64, 65, 128, 129])
def test_widths_around_machine_words(size: int) -> None:
    """A candidate is the LCS of itself and itself, also where its bits fill a machine word to the last."""
    text = [str(i % 7) for i in range(size)]
    [batch] = read_batches([text], [[text, text[::2], text[1:]]])
    assert measure_lengths(batch).tolist() == [size, (size + 1) // 2, size - 1]
    assert locate_matches(batch)[:size].tolist() == list(range(size))
