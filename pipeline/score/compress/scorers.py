"""The cost of dropping a span: NDD, and its rivals in the same search (NDD-18 to 20, 31, 32)."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pipeline.metrics.ndd import comparisons, weights
from pipeline.metrics.ndd.comparisons import SentenceModel
from pipeline.metrics.ndd.distance import Divergence, divergences, split_blocks
from pipeline.metrics.ndd.model import Floats, IndexArray, MaskedModel, Sentence
from pipeline.metrics.ndd.weights import MU

if TYPE_CHECKING:
    from torch import Tensor

Scorer = Callable[[Sequence[Sentence], Sequence[IndexArray]], list[Floats]]
"""Sentences and spans of each, [s, 2], to what it costs to drop each span, [s]; more is worse, about 0 is nothing."""

_BLOCK_WORDS = 1 << 17  # neighbours that are gone through at a time


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
    of their neighbours. Fast NDD has one or two neighbours a span.

    Args:
        model: gives the distributions.
        divergence: kl in section 4.2.
        weighting: of `metrics.ndd.weights.WEIGHTS`.
        mu: of the weights.
        nu: decay for later words; below 1 these are dropped more easily.
        is_fast: only the words that touch the span count.
    """
    weigh = weights.WEIGHTS[weighting]

    def score_block(sentences: Sequence[Sentence], spans: Sequence[IndexArray]) -> list[Floats]:
        texts, first_places, second_places, weight, owner, span = [*sentences], [], [], [], [], 0
        for number, (words, candidates) in enumerate(zip(sentences, spans, strict=True)):
            length = len(words)
            for start, end in candidates.tolist():
                counts = weigh(length, start, end, mu) * weights.decay(length, start, end, nu)
                if is_fast:
                    counts *= weights.is_adjacent(length, start, end)
                neighbours = np.flatnonzero(counts)
                sentence_places = neighbours + (neighbours >= start) * (end - start)
                first_places.append(np.stack([np.full(len(neighbours), number), sentence_places], axis=1))
                second_places.append(np.stack([np.full(len(neighbours), len(texts)), neighbours], axis=1))
                weight.append(counts[neighbours])
                owner.append(np.full(len(neighbours), span))
                texts.append([*words[:start], *words[end:]])
                span += 1
        if not span:
            return [np.empty(0) for _ in spans]
        values = divergences(model, texts, np.concatenate(first_places), np.concatenate(second_places), divergence)
        costs = np.bincount(np.concatenate(owner), np.concatenate(weight) * values, span)
        return np.split(costs, np.cumsum([len(sentence_spans) for sentence_spans in spans])[:-1])

    def score(sentences: Sequence[Sentence], spans: Sequence[IndexArray]) -> list[Floats]:
        """Score blocks of sentences, to bound time and memory."""
        ask_counts = [
            len(sentence_spans) * (2 if is_fast else len(words))
            for words, sentence_spans in zip(sentences, spans, strict=True)
        ]
        span_costs: list[Floats] = []
        for start, end in split_blocks(ask_counts, _BLOCK_WORDS):
            span_costs += score_block(sentences[start:end], spans[start:end])
        return span_costs

    return score


def perplexity(model: MaskedModel) -> Scorer:
    """Score spans by the rise of log perplexity: PPL Deleter as the paper has it (NDD-31; after Niu et al., 2019).

    It gives fluent sentences and ignores their meaning.
    """

    def score(sentences: Sequence[Sentence], spans: Sequence[IndexArray]) -> list[Floats]:
        costs = []
        for words, candidates in zip(sentences, spans, strict=True):
            log_perplexity = comparisons.perplexity(model, [words, *list_remainders(words, candidates)])[
                "log_perplexity"
            ].to_numpy()
            costs.append(log_perplexity[1:] - log_perplexity[0])
        return costs

    return score


def cosine(model: SentenceModel) -> Scorer:
    """Score spans by 1 - S_C, the change of the vector of [CLS] (appendix E; NDD-32)."""

    def score(sentences: Sequence[Sentence], spans: Sequence[IndexArray]) -> list[Floats]:
        costs = []
        for words, candidates in zip(sentences, spans, strict=True):
            remainders = list_remainders(words, candidates)
            vectors = model.sentence_vectors([words, *remainders]).double().cpu().numpy()
            norms = np.linalg.norm(vectors, axis=1)
            costs.append(1 - vectors[1:] @ vectors[0] / np.maximum(norms[1:] * norms[0], np.finfo(np.float64).tiny))
        return costs

    return score


def bertscore(model: TokenModel) -> Scorer:
    """Score spans by 1 - F of greedily matched piece states (BERTScore; Zhang et al., 2020; appendix E; NDD-32).

    Without weights of rarity and without rescaling, by the last layer; [CLS] and [SEP] count as pieces.
    """

    def score(sentences: Sequence[Sentence], spans: Sequence[IndexArray]) -> list[Floats]:
        span_costs = []
        for words, candidates in zip(sentences, spans, strict=True):
            reference = _normalise(next(iter(model.states([words])))[1])
            costs = np.empty(len(candidates))
            for row, states in model.states(list_remainders(words, candidates)):
                similarity = _normalise(states) @ reference.T
                precision, recall = (float(similarity.amax(dim=side).mean()) for side in (1, 0))
                costs[row] = 1 - 2 * precision * recall / (precision + recall)
            span_costs.append(costs)
        return span_costs

    return score


def _normalise(states: "Tensor") -> "Tensor":
    unit: Tensor = states / states.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return unit


def list_remainders(words: Sentence, spans: IndexArray) -> list[Sentence]:
    """List what remains of a sentence without each span."""
    return [[*words[:start], *words[end:]] for start, end in spans.tolist()]
