"""Decoding: beam search against trying everything, sampling against the probabilities, rules against transformers'."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.models.decoding import Candidate, Decoding, Marks, State, Step, _apply_rules, _pick_tokens, decode

MARKS = Marks(begin=1, end=2, never=(0,))  # 0 is <unk>; 3, 4, 5 are words
SIZE = 6
WORDS = (3, 4, 5)


def tables(seed: int, sources: int = 1) -> Tensor:
    """Log probabilities [source, token before last, last token, next token] that depend on the last two tokens."""
    logits = np.random.default_rng(seed).normal(0, 2, (sources, SIZE, SIZE, SIZE))
    return torch.from_numpy(logits).log_softmax(dim=3)


def stepping(table: Tensor) -> tuple[Step, State]:
    """A step function that looks the next word up, and its state: number of the source and token before last."""

    def step(last: Tensor, state: State) -> tuple[Tensor, State]:
        source, before = state
        return table[source, before, last], (source, last)

    return step, (torch.arange(len(table)), torch.full((len(table),), MARKS.begin))


def decoded(table: Tensor, decoding: Decoding, first: int = 0) -> list[list[Candidate]]:
    step, state = stepping(table)
    return decode(step, state, len(table), decoding, MARKS, first=first)


def probability(table: Tensor, tokens: tuple[int, ...], longest: int) -> float:
    """Log probability of words: with their end, but for those that are as long as can be."""
    ended = tokens if len(tokens) == longest else (*tokens, MARKS.end)
    past = (MARKS.begin, MARKS.begin, *ended)
    return sum(float(table[a, b, c]) for a, b, c in zip(past, past[1:], past[2:], strict=False))


def list_all(table: Tensor, decoding: Decoding) -> list[Candidate]:
    lengths = range(decoding.least, decoding.longest + 1)
    every = (tokens for length in lengths for tokens in product(WORDS, repeat=length))
    candidates = [
        Candidate(list(tokens), probability(table, tokens, decoding.longest))
        for tokens in every
        if not _repeats(tokens, decoding)
    ]
    return sorted(candidates, key=decoding.score, reverse=True)


def _repeats(tokens: tuple[int, ...], decoding: Decoding) -> bool:
    size = decoding.no_repeat_ngram
    runs = [tokens[start : start + size] for start in range(len(tokens) - size + 1)]
    return bool(size) and len(set(runs)) < len(runs)


@settings(max_examples=30)
@given(
    st.integers(0, 10_000), st.sampled_from([0.0, 0.7, 1.0, 3.0]), st.integers(0, 2), st.integers(0, 2),
    st.integers(2, 4), st.integers(1, 4),
)  # fmt: skip
def test_wide_beam_search_finds_what_trying_everything_finds(
    seed: int, alpha: float, least: int, size: int, longest: int, best: int
) -> None:
    """With a beam for each prefix nothing is lost: the best by normalised log probability, in order."""
    options = {"least": least, "longest": longest, "best": best, "no_repeat_ngram": size}
    decoding = Decoding(beams=3**4 * 2, length_penalty=alpha, **options)
    table = tables(seed)
    tokens, logs = zip(*decoded(table, decoding)[0], strict=True)
    expected_tokens, expected_logs = zip(*list_all(table[0], decoding)[:best], strict=True)
    assert tokens == expected_tokens
    assert logs == pytest.approx(expected_logs, abs=1e-4)


def test_length_penalty_of_gnmt() -> None:
    """Wu et al. (2016), Eq. 14: lp = (5 + |Y|)^alpha / 6^alpha; by hand, 7 words at alpha 1 are divided by 2."""
    assert Decoding(length_penalty=1.0).normalise(-3.0, 7) == pytest.approx(-1.5)
    assert Decoding(length_penalty=0.5).normalise(-3.0, 19) == pytest.approx(-1.5)
    assert Decoding(length_penalty=0.0).normalise(-3.0, 7) == -3.0


@settings(max_examples=15)
@given(
    st.integers(0, 10_000), st.sampled_from(["beam", "sample", "greedy"]), st.integers(1, 3), st.integers(0, 2),
    st.sampled_from([0.0, 1.0]),
)  # fmt: skip
def test_a_batch_is_its_sources_one_by_one(seed: int, method: str, best: int, size: int, alpha: float) -> None:
    """What is written does not depend on what else is in the batch, and chance goes by a source's number."""
    best = 1 if method == "greedy" else best
    decoding = Decoding(method=method, beams=3, best=best, no_repeat_ngram=size, longest=6, length_penalty=alpha)  # type: ignore[arg-type]
    table = tables(seed, 4)
    batch = decoded(table, decoding)
    assert batch == [decoded(table[source : source + 1], decoding, source)[0] for source in range(4)]
    assert batch == decoded(table, decoding)


def test_samples_follow_the_probabilities() -> None:
    """Of 4,000 samples each text comes as often as its probability says (chi-square), all of which add up to 1."""
    table = tables(3).clone()
    table[..., [0, 1]] = -torch.inf
    table = table.log_softmax(dim=3)
    decoding = Decoding(method="sample", least=0, longest=2, best=4000)
    chances = {tuple(tokens): math.exp(log) for tokens, log in list_all(table[0], decoding)}
    assert math.fsum(chances.values()) == pytest.approx(1.0)
    (samples,) = decoded(table, decoding)
    counts = Counter(tuple(tokens) for tokens, _ in samples)
    assert counts.keys() <= chances.keys()
    observed = [counts[tokens] for tokens in chances]
    assert stats.chisquare(observed, [4000 * chance for chance in chances.values()]).pvalue > 0.01
    for tokens, log in samples:
        assert math.exp(log) == pytest.approx(chances[tuple(tokens)], rel=1e-5)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.2, 3.0), st.integers(0, 12), st.floats(0.05, 1.0), st.floats(0, 0.999))
def test_words_are_drawn_as_transformers_would(seed: int, heat: float, top_k: int, top_p: float, point: float) -> None:
    """Temperature, top_k and top_p leave the words, with the probabilities, that transformers' warpers leave."""
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    logs = torch.from_numpy(np.random.default_rng(seed).normal(0, 2, 10)).log_softmax(0).reshape(1, 10)
    warped = TemperatureLogitsWarper(heat)(None, logs.clone())
    if top_k:
        warped = TopKLogitsWarper(top_k)(None, warped)
    chances = TopPLogitsWarper(top_p)(None, warped).softmax(1)[0]
    order = chances.argsort(descending=True)
    expected = order[int((chances[order].cumsum(0) <= point).sum())]
    decoding = Decoding(method="sample", temperature=heat, top_k=top_k, top_p=top_p)
    assert int(_pick_tokens(logs.reshape(1, 1, 10), torch.tensor([[point]]), decoding)) == int(expected)


@settings(max_examples=30)
@given(st.lists(st.integers(3, 5), min_size=1, max_size=9), st.integers(1, 4))
def test_runs_of_words_are_not_repeated(words: list[int], size: int) -> None:
    """What may not follow is what transformers' rule forbids."""
    from transformers import NoRepeatNGramLogitsProcessor

    expected = NoRepeatNGramLogitsProcessor(size)(torch.tensor([words]), torch.zeros(1, SIZE))
    decoding, marks = Decoding(no_repeat_ngram=size, least=0), Marks(begin=0, end=2)
    logits = _apply_rules(torch.zeros(1, 1, SIZE), torch.tensor([[words]]), decoding, marks)
    assert torch.equal(logits[0, :, 1:], expected[:, 1:])


def test_what_can_be_written() -> None:
    """Neither <unk> nor <s>, by far the likeliest here, nor a word again; of three texts that can be there are no five.

    Three words that may not come twice are all, however much was asked for; nothing is written for no source.
    """
    table = tables(2)
    table[..., [0, 1]] = 9.0
    for method in ("beam", "sample", "greedy"):
        decoding = Decoding(method=method, beams=3, no_repeat_ngram=1, least=9, longest=12)  # type: ignore[arg-type]
        ((candidate,),) = decoded(table, decoding)
        assert sorted(candidate.tokens) == list(WORDS)
    (candidates,) = decoded(tables(1), Decoding(beams=9, best=5, longest=1))
    assert sorted(candidate.tokens for candidate in candidates) == [[3], [4], [5]]
    assert decoded(tables(1)[:0], Decoding()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "best"}, "there are beam, sample, greedy"), ({"beams": 0}, "beams should be 1 or more"),
        ({"length_penalty": -1.0}, "length_penalty should be"), ({"temperature": 0.0}, "temperature should be above"),
        ({"top_p": 0.0}, "top_p should be above 0"), ({"top_p": 1.1}, "at most 1"), ({"top_k": -1}, "top_k should be"),
        ({"longest": 0}, "longest should be 1"), ({"least": 9, "longest": 8}, "longest should be 9"),
        ({"best": 6}, "best should be at most 5"), ({"method": "greedy", "best": 2}, "at most 1"),
        ({"length_penalty": math.nan}, "length_penalty should be 0"), ({"seed": -1}, "seed should be 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused(changes: dict[str, object], message: str) -> None:
    """A number out of its bounds is named with what was expected."""
    with pytest.raises(BadInput, match=message):
        Decoding(**changes)  # type: ignore[arg-type]
