"""The cost of dropping a span: NDD, and its rivals in the same search (NDD-18 to 20, 31, 32)."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pipeline.metrics.ndd import comparisons, weights
from pipeline.metrics.ndd.comparisons import SentenceModel
from pipeline.metrics.ndd.distance import (
    CACHE_SIZE,
    Divergence,
    collect_distributions,
    compare,
    find_changed,
    split_blocks,
)
from pipeline.metrics.ndd.model import Floats, IndexArray, MaskedModel, Sentence
from pipeline.metrics.ndd.weights import MU
from pipeline.score.compress.spans import find_undecided

if TYPE_CHECKING:
    from torch import Tensor

Limit = Callable[[float], float]
"""From the cost of a sentence's cheapest span to what a span may cost."""


class Scorer(Protocol):
    """What it costs to drop each span; more is worse, about 0 is nothing."""

    def __call__(
        self, sentences: Sequence[Sentence], spans: Sequence[IndexArray], limits: Sequence[Limit] | None = None
    ) -> list[Floats]:
        """Score the spans of each sentence, [s, 2]: [s].

        With limits a span that `select_disjoint` does not select may have a lower score, with which it does not either.
        """


class TokenModel(Protocol):
    """A model with a vector for each piece of a sentence."""

    def states(self, sentences: Sequence[Sentence]) -> "Iterator[tuple[int, Tensor]]":
        """Yield rows of the sentences, in any order, and the states of their pieces, special ones included, [t, d]."""


def ndd(
    model: MaskedModel,
    *,
    divergence: Divergence = "kl",
    weighting: str = "balanced",
    mu: float = MU,
    nu: float = 1.0,
    is_fast: bool = False,
) -> Scorer:
    """Score spans by the NDD of a sentence and its remainder: Σ a b F over remaining words (section 4, appendix C).

    The distributions of the sentence are asked for once, those of what remains for each neighbour: n + Σ over the spans
    of their neighbours, less where masks hide the same words. With limits neighbours are compared from the span
    outwards, until the sum shows that the span will not be selected: no term is below 0. Blocks of sentences bound
    memory. Fast NDD counts only the one or two words that touch the span. Below 1, ν lets later words be dropped more
    easily.
    """

    def weigh(length: int, start: int, end: int) -> Floats:
        counts: Floats = weights.WEIGHTS[weighting](length, start, end, mu) * weights.decay(length, start, end, nu)
        return counts * weights.is_adjacent(length, start, end) if is_fast else counts

    def score_block(
        sentences: Sequence[Sentence], spans: Sequence[IndexArray], limits: Sequence[Limit] | None
    ) -> list[Floats]:
        texts, asks, weight = _list_asks(sentences, spans, weigh)
        is_changed = find_changed(model, texts, asks[:, 2:4], asks[:, 4:])
        asks, weight, terms = asks[is_changed], weight[is_changed], np.zeros(is_changed.sum())
        span, step = asks[:, :2].T
        begins, counts = np.cumsum([0, *map(len, sentences)]), [*map(len, spans)]
        index = begins[asks[:, 2]] + asks[:, 3]
        places = [(number, place) for number, words in enumerate(sentences) for place in range(len(words))]
        first = collect_distributions(model, texts, np.array(places)) if len(asks) else None
        sentence = np.repeat(np.arange(len(spans)), counts)
        positions = np.concatenate(spans) + begins[sentence, None]
        costs, next_step, last_step = np.zeros(len(sentence)), *np.zeros((2, len(sentence)), np.int64)
        np.maximum.at(last_step, span, step)
        is_open, is_next = np.ones((2, len(sentence)), bool)
        while is_next.any():
            asked = np.flatnonzero(is_next[span] & (step == next_step[span]))
            if first is not None:
                values = compare(model, texts, first, index[asked], asks[asked, 4:], divergence)
                terms[asked] = weight[asked] * values
            costs, next_step = np.bincount(span, terms, len(sentence)), next_step + is_next
            is_next = ~(is_final := next_step > last_step)
            if limits:
                cheapest = np.full(len(spans), np.inf)
                np.minimum.at(cheapest, sentence[is_final], costs[is_final])
                bounds = [limit(cost) for limit, cost in zip(limits, cheapest.tolist(), strict=True)]
                is_open &= costs <= np.array(bounds)[sentence]
                is_next = find_undecided(positions, costs, is_final, is_open)
        return np.split(costs, np.cumsum(counts)[:-1])

    def score(
        sentences: Sequence[Sentence], spans: Sequence[IndexArray], limits: Sequence[Limit] | None = None
    ) -> list[Floats]:
        blocks = split_blocks([*map(len, sentences)], CACHE_SIZE)
        parts = [score_block(sentences[block], spans[block], limits and limits[block]) for block in blocks]
        return [*chain(*parts)]

    return score


def _list_asks(
    sentences: Sequence[Sentence], spans: Sequence[IndexArray], weigh: Callable[[int, int, int], Floats]
) -> tuple[list[Sentence], IndexArray, Floats]:
    """List the neighbours of all spans that have a weight, and their weights [m].

    Returns the texts, which are the sentences and what remains without each span; and for each neighbour its span, its
    step (0, 1, 2, 3 to 4, 5 to 6, 7 to 10 ... words from the span), and its text and place before and after the span is
    dropped: [m, 6].
    """
    texts, asks, weight = [*sentences], [np.empty((0, 6), np.int64)], [np.empty(0)]
    masked: dict[tuple[int, int, int], tuple[int, int]] = {}
    span_ends = [(number, *ends) for number, part in enumerate(spans) for ends in part.tolist()]
    for span, (number, start, end) in enumerate(span_ends):
        words = sentences[number]
        counts = weigh(len(words), start, end)
        places = np.flatnonzero(counts)
        is_behind = places >= start
        step = (2 * np.log2(1 + np.where(is_behind, places - start, start - 1 - places))).astype(np.int64)
        columns = span, step, number, places + is_behind * (end - start), len(texts), places
        asks.append(np.stack(np.broadcast_arrays(*columns), axis=1))
        # a mask before the span hides what one behind the span that is a word earlier does
        for place, hidden in ((start - 1, (start - 1, end)), (start, (start, end + 1))):
            asks[-1][places == place, 4:] = masked.setdefault((number, *hidden), (len(texts), place))
        texts.append([*words[:start], *words[end:]])
        weight.append(counts[places])
    return texts, np.concatenate(asks), np.concatenate(weight)


def perplexity(model: MaskedModel) -> Scorer:
    """Score spans by the rise of log perplexity: PPL Deleter as the paper has it (NDD-31; after Niu et al., 2019).

    It gives fluent sentences and ignores their meaning.
    """

    def score_spans(words: Sentence, remainders: list[Sentence]) -> Floats:
        log_perplexity = comparisons.perplexity(model, [words, *remainders])["log_perplexity"].to_numpy()
        costs: Floats = log_perplexity[1:] - log_perplexity[0]
        return costs

    return _score_each(score_spans)


def cosine(model: SentenceModel) -> Scorer:
    """Score spans by 1 - S_C, the change of the vector of [CLS] (appendix E; NDD-32)."""

    def score_spans(words: Sentence, remainders: list[Sentence]) -> Floats:
        vectors = model.sentence_vectors([words, *remainders]).double().cpu().numpy()
        norms = np.linalg.norm(vectors, axis=1)
        costs: Floats = 1 - vectors[1:] @ vectors[0] / np.maximum(norms[1:] * norms[0], np.finfo(np.float64).tiny)
        return costs

    return _score_each(score_spans)


def bertscore(model: TokenModel) -> Scorer:
    """Score spans by 1 - F of greedily matched piece states (BERTScore; Zhang et al., 2020; appendix E; NDD-32).

    Without weights of rarity and without rescaling, by the last layer; [CLS] and [SEP] count as pieces.
    """

    def score_spans(words: Sentence, remainders: list[Sentence]) -> Floats:
        reference = _normalise(next(iter(model.states([words])))[1])
        costs = np.empty(len(remainders))
        for row, states in model.states(remainders):
            similarity = _normalise(states) @ reference.T
            precision, recall = (float(similarity.amax(dim=side).mean()) for side in (1, 0))
            costs[row] = 1 - 2 * precision * recall / (precision + recall)
        return costs

    return _score_each(score_spans)


def _normalise(states: "Tensor") -> "Tensor":
    unit: Tensor = states / states.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return unit


def _score_each(score_spans: Callable[[Sentence, list[Sentence]], Floats]) -> Scorer:
    """Score one sentence after another by a function of its words and of what remains without each span."""
    return lambda sentences, spans, limits=None: [  # noqa: ARG005
        score_spans(words, list_remainders(words, candidates))
        for words, candidates in zip(sentences, spans, strict=True)
    ]


def list_remainders(words: Sentence, spans: IndexArray) -> list[Sentence]:
    """List what remains of a sentence without each span."""
    return [[*words[:start], *words[end:]] for start, end in spans.tolist()]
