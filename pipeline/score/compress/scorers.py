"""The cost of dropping a span: NDD, and its rivals in the same search (NDD-18 to 20, 31, 32)."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
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

_BLOCK_WORDS = 1 << 17  # neighbours that are compared at a time


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
    of their neighbours. Blocks of sentences bound time and memory. Fast NDD counts only the one or two words that touch
    the span. Below 1, ν lets later words be dropped more easily.
    """
    weigh = weights.WEIGHTS[weighting]

    def score_block(sentences: Sequence[Sentence], spans: Sequence[IndexArray]) -> list[Floats]:
        remainders = [list_remainders(words, part) for words, part in zip(sentences, spans, strict=True)]
        texts = [*sentences, *chain(*remainders)]
        places, weight = [np.empty((0, 4), np.int64)], [np.empty(0)]  # number and place in both texts
        span_ends = [(number, *span) for number, part in enumerate(spans) for span in part.tolist()]
        for text_number, (number, start, end) in enumerate(span_ends, len(sentences)):
            span = len(sentences[number]), start, end
            counts = weigh(*span, mu) * weights.decay(*span, nu)
            if is_fast:
                counts *= weights.is_adjacent(*span)
            neighbours = np.flatnonzero(counts)
            first_places = neighbours + (neighbours >= start) * (end - start)
            columns = np.broadcast_arrays(number, first_places, text_number, neighbours)
            places.append(np.stack(columns, axis=1))
            weight.append(counts[neighbours])
        rows = np.concatenate(places)
        values = divergences(model, texts, rows[:, :2], rows[:, 2:], divergence)
        owner = rows[:, 2] - len(sentences)
        costs = np.bincount(owner, np.concatenate(weight) * values, len(span_ends))
        return np.split(costs, np.cumsum([*map(len, spans)])[:-1])

    def score(sentences: Sequence[Sentence], spans: Sequence[IndexArray]) -> list[Floats]:
        counts = [len(part) * (2 if is_fast else len(words)) for words, part in zip(sentences, spans, strict=True)]
        blocks = split_blocks(counts, _BLOCK_WORDS)
        return [costs for block in blocks for costs in score_block(sentences[block], spans[block])]

    return score


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
    return lambda sentences, spans: [
        score_spans(words, list_remainders(words, candidates))
        for words, candidates in zip(sentences, spans, strict=True)
    ]


def list_remainders(words: Sentence, spans: IndexArray) -> list[Sentence]:
    """List what remains of a sentence without each span."""
    return [[*words[:start], *words[end:]] for start, end in spans.tolist()]
