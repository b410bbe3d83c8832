"""What dropping a span costs, by each scorer."""

import numpy as np
import pytest
import torch

from pipeline.metrics.ndd import distance
from pipeline.metrics.ndd.distance import DIVERGENCES
from pipeline.score.compress import scorers
from tests.support.rows.masked import Drawn

SENTENCES = [list("abcdef"), list("abac"), ["x", "y"]]
SPANS = [scorers.list_spans(len(words), 3) for words in SENTENCES]


def plain(words: list[str], start: int, end: int, nu: float, kind: str, of: str, *, is_fast: bool = False) -> float:
    """Compute NDD of a span by the formula, one distribution after another."""
    model, total = Drawn(), 0.0

    def distribution(sentence: list[str], place: int) -> torch.Tensor:
        return next(model.distributions([sentence], np.array([0]), np.array([place])))[1][0]

    counts = distance.WEIGHTS[of](len(words), start, end) * nu ** np.arange(len(words) - (end - start))
    rest = words[:start] + words[end:]
    for place, weight in enumerate(counts):
        if is_fast and place not in (start - 1, start):
            continue
        before = place if place < start else place + end - start
        total += weight * float(DIVERGENCES[kind](distribution(words, before), distribution(rest, place)))
    return total


def list_cases() -> list[tuple[list[str], int, int]]:
    return [(words, *span) for words, part in zip(SENTENCES, SPANS, strict=True) for span in part.tolist()]


@pytest.mark.parametrize(
    ("kind", "of"),
    [("kl", of) for of in sorted(distance.WEIGHTS)] + [(kind, "balanced") for kind in sorted(DIVERGENCES)],
)
def test_ndd_of_a_span_is_that_of_the_formula(kind: str, of: str) -> None:
    """Σ a b F over the words that remain, for every span (section 4.1, appendix C; NDD-04, 18, 19)."""
    actual = scorers.ndd(Drawn(), divergence=kind, weighting=of, nu=0.8)(SENTENCES, SPANS)  # type: ignore[arg-type]
    for words, candidates, costs in zip(SENTENCES, SPANS, actual, strict=True):
        expected = [plain(words, start, end, 0.8, kind, of) for start, end in candidates.tolist()]
        assert costs == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("of", sorted(distance.WEIGHTS))
def test_fast_ndd_counts_the_words_that_touch_the_span_alone(of: str) -> None:
    """It is NDD whose other weights are 0; it asks for two neighbours a span at most, and once of equal masked words.

    NDD-20, 22.
    """
    model = Drawn()
    actual = scorers.ndd(model, weighting=of, is_fast=True)(SENTENCES, SPANS)
    hidden = {(tuple(words), s - left, e + 1 - left) for words, s, e in list_cases() for left in (0, 1)}
    touching = sum(start >= 0 and end <= len(words) for words, start, end in hidden)
    assert model.ask_count == sum(map(len, SENTENCES)) + touching
    for words, candidates, costs in zip(SENTENCES, SPANS, actual, strict=True):
        expected = [plain(words, start, end, 1, "kl", of, is_fast=True) for start, end in candidates.tolist()]
        assert costs == pytest.approx(expected, rel=1e-4)


def test_calls_grow_with_the_length_as_table_2_says() -> None:
    """With spans of any length NDD is cubic, Fast NDD quadratic; with subtrees quadratic and linear (NDD-22)."""

    def calls(length: int, is_fast: bool, is_tree: bool) -> int:
        words, model = [str(i) for i in range(length)], Drawn()
        candidates = np.array([[i, i + 1] for i in range(length)]) if is_tree else scorers.list_spans(length, length)
        scorers.ndd(model, is_fast=is_fast)([words], [candidates])
        return model.ask_count

    for is_fast, is_tree, order in [(False, False, 3), (True, False, 2), (False, True, 2), (True, True, 1)]:
        growth = calls(16, is_fast, is_tree) / calls(8, is_fast, is_tree)
        assert order - 0.5 < np.log2(growth) < order + 0.2


def test_perplexity_is_the_rise_by_the_formula() -> None:
    """Mean -log p of what remains less that of the sentence, which is asked about once (NDD-31)."""
    model = Drawn()
    actual = scorers.perplexity(model)([SENTENCES[0]], [SPANS[0]])[0]
    assert model.ask_count == 6 + sum(6 - (e - s) for s, e in SPANS[0].tolist())
    log_perplexity = np.mean(Drawn().surprisals([SENTENCES[0]])[0])
    remainders = [[*SENTENCES[0][:start], *SENTENCES[0][end:]] for start, end in SPANS[0].tolist()]
    rest = [np.mean(surprisals) for surprisals in Drawn().surprisals(remainders)]
    assert actual == pytest.approx(np.array(rest) - log_perplexity)


def test_cosine_is_zero_where_the_vector_stays() -> None:
    """1 - S_C of the first states (NDD-32)."""

    class Turned(Drawn):
        def sentence_vectors(self, sentences: list[list[str]]) -> torch.Tensor:
            """With b to the right, without it up."""
            return torch.tensor([[2.0, 0.0] if "b" in words else [0.0, 1.0] for words in sentences])

    actual = scorers.cosine(Turned())([list("abc")], [np.array([[0, 1], [1, 2]])])[0]
    assert actual == pytest.approx([0, 1])


def test_bertscore_is_one_less_the_f_of_greedy_matches() -> None:
    """By hand: three orthogonal pieces, of which the middle one goes: P 1, R 2/3, F 0.8 (Zhang et al., 2020)."""

    class Plain(Drawn):
        def states(self, sentences: list[list[str]]):  # type: ignore[no-untyped-def]
            """Each word an axis."""
            for row, words in reversed(list(enumerate(sentences))):
                yield row, torch.eye(3)[[ord(word) - ord("a") for word in words]] * 7

    actual = scorers.bertscore(Plain())([list("abc")], [np.array([[1, 2]])])[0]
    assert actual == pytest.approx([0.2])
