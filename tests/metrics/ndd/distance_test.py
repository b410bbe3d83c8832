"""The distance itself."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.ndd import distance
from pipeline.metrics.ndd.distance import DIVERGENCES, align, distances, divergences, explain
from tests.support.rows.masked import WORDS, Drawn

SENTENCES = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=6)
LOGITS = st.lists(st.floats(-9, 9), min_size=WORDS, max_size=WORDS)


def probabilities(logits: list[float]) -> torch.Tensor:
    """Log probabilities in double precision."""
    return torch.tensor(logits, dtype=torch.float64).log_softmax(dim=0)


@given(LOGITS, LOGITS)
def test_hellinger_is_the_root_of_one_minus_the_overlap(first: list[float], second: list[float]) -> None:
    """H² = 1 - Σ √(q q'), in [0, 1] and the same from both sides (NDD-06)."""
    q, r = probabilities(first), probabilities(second)
    actual = distance.hellinger(q, r)
    overlap = (q.exp() * r.exp()).sqrt().sum()
    assert float(actual**2) == pytest.approx(float(1 - overlap), abs=1e-9)
    assert 0 <= actual <= 1
    assert float(actual) == float(distance.hellinger(r, q))


def test_divergences_by_hand() -> None:
    """Hellinger's bounds are 0 and 1 (NDD-06); KL(q' | q) is 0.3681 and its reverse 0.5108 by hand (NDD-07)."""
    first, second = torch.tensor([0.0, -math.inf]), torch.tensor([-math.inf, 0.0])
    assert distance.hellinger(first, first) == 0
    assert distance.hellinger(first, second) == 1
    q, r = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.9, 0.1]).log()
    assert float(distance.kl(q, r)) == pytest.approx(0.3681, abs=5e-5)
    assert float(distance.DIVERGENCES["kl_reversed"](q, r)) == pytest.approx(0.5108, abs=5e-5)


@given(LOGITS, LOGITS)
def test_kl_is_never_negative(first: list[float], second: list[float]) -> None:
    """Rounding takes it below 0 nowhere, and it is 0 of a distribution with itself."""
    q, r = probabilities(first), probabilities(second)
    assert distance.kl(q, r) >= 0
    assert distance.kl(q, q) == 0


@settings(max_examples=40)
@given(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=4), st.sampled_from(sorted(DIVERGENCES)))
def test_distance_is_the_weighted_sum_over_neighbours(pairs: list[tuple[list[str], list[str]]], kind: str) -> None:
    """Written out from the formula of section 2.2, a word at a time, it is the same (NDD-04)."""
    model, expected = Drawn(), []

    def distribution(words: list[str], place: int) -> torch.Tensor:
        rows = model.distributions([words], np.array([0]), np.array([place]))
        return next(rows)[1][0].double()

    for first, second in pairs:
        places = align(first, second).tolist() or [[-1, -1], [len(first), len(second)]]
        gaps = [float(DIVERGENCES[kind](distribution(first, i), distribution(second, j))) for i, j in places]
        expected.append(sum(gaps) / len(gaps))
    first_sentences, second_sentences = [list(side) for side in zip(*pairs, strict=True)]
    actual = distances(model, first_sentences, second_sentences, divergence=kind)  # type: ignore[arg-type]
    assert actual == pytest.approx(expected, abs=1e-5)


@given(SENTENCES)
@settings(max_examples=25)
def test_a_sentence_is_at_no_distance_from_itself(words: list[str]) -> None:
    """Whatever the divergence and the weights (NDD-04)."""
    for kind in DIVERGENCES:
        for weights in ("mean", "sum", "distance"):
            assert distances(Drawn(), [words], [words], divergence=kind, weights=weights) == [0]  # type: ignore[arg-type]


@given(SENTENCES, SENTENCES)
@settings(max_examples=40)
def test_mean_of_hellinger_is_symmetric_and_at_most_one(first: list[str], second: list[str]) -> None:
    """The distance of section 3 has both properties, also where no word is shared (NDD-04)."""
    forward, back = distances(Drawn(), [first, second], [second, first])
    assert forward == pytest.approx(back, abs=1e-6)
    assert 0 <= forward <= 1


def test_neighbours_and_weights() -> None:
    """Without a shared word what stands around is compared (NDD-09); weights fall by μ a word from the change."""
    rows = explain(Drawn(), ["a"], ["b", "c"])
    assert rows.select("word", "place", "place_other").rows() == [("[CLS]", -1, -1), ("[SEP]", 1, 2)]
    rows = explain(Drawn(), ["a", "b", "x", "c", "d"], ["a", "b", "y", "c", "d"], weights="distance", mu=0.5)
    assert rows["weight"].to_list() == [0.5, 1, 1, 0.5]


def test_a_first_sentence_is_asked_about_once() -> None:
    """Compared with three others, its four words cost four calls, and each neighbour of the others one (table 2)."""
    model, sentences = Drawn(), [list("abcd"), list("bcd"), list("acd"), list("abd")]
    first = np.array([(0, k) for left_out in range(3) for k in range(4) if k != left_out])
    second = np.array([(1 + left_out, k) for left_out in range(3) for k in range(3)])
    divergences(model, sentences, first, second, "kl")
    assert model.ask_count == 4 + 9


@given(st.integers(1, 9))
@settings(max_examples=9)
def test_what_is_held_at_a_time_changes_nothing(cache_size: int) -> None:
    """Blocks of first distributions of any size give the same divergences, and a first place is asked about once."""
    rng = np.random.default_rng(cache_size)
    sentences = [list("abcd"), list("bcda"), list("aabb")]
    first, second = (np.stack([rng.integers(0, 3, 20), rng.integers(-1, 5, 20)], axis=1) for _ in range(2))
    model = Drawn()
    actual = divergences(model, sentences, first, second, "hellinger", cache_size=cache_size)
    assert actual == pytest.approx(divergences(Drawn(), sentences, first, second, "hellinger"))
    assert model.ask_count <= len(np.unique(first, axis=0)) + 20


class Numbered(Drawn):
    """A model whose surprisals and vectors are the words."""

    def surprisals(self, sentences: list[list[str]]) -> list[np.ndarray]:
        return [np.array([float(word) for word in words]) for words in sentences]

    def sentence_vectors(self, sentences: list[list[str]]) -> torch.Tensor:
        return torch.tensor([[float(word) for word in words] for words in sentences])


def test_perplexity_and_cosine_by_hand() -> None:
    """Mean of -log p and its exponential (NDD-01); cosines of the first states are 1, 0 and -1 (NDD-02)."""
    rows = distance.perplexity(Numbered(), [["1", "3"], []])
    assert rows["log_perplexity"].to_list() == [2, None]
    assert rows["perplexity"].to_list() == [pytest.approx(np.exp(2)), None]
    assert distance.perplexity_change(Numbered(), [["1", "3"]], [["3"]]).tolist() == [1]
    first, second = [["1", "0"], ["1", "0"], ["1", "1"]], [["2", "0"], ["0", "3"], ["-1", "-1"]]
    assert distance.cosine(Numbered(), first, second) == pytest.approx([1, 0, -1])


def test_calls_are_as_many_as_table_2_says() -> None:
    """For a pair with n units each 2n for perplexity, and 2 for the cosine (NDD-22)."""
    for measure, count in ((distance.perplexity_change, 8), (distance.cosine, 2)):
        model = Drawn()
        measure(model, [list("abcd")], [list("abce")])
        assert model.ask_count == count
