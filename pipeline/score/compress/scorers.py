"""The cost of dropping a span: NDD and its rivals in one search (NDD-14 to 21, 31, 32), and which spans may be dropped.

A span is (start, end), from 0, the end not included; spans of a sentence are an array [s, 2].
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from pipeline.metrics.ndd import distance
from pipeline.metrics.ndd.distance import MU, Divergence, Floats, IndexArray, MaskedModel, Sentence, SentenceModel

if TYPE_CHECKING:
    from torch import Tensor

Mask = npt.NDArray[np.bool_]


def list_spans(length: int, longest: int, *, is_released: bool = False) -> IndexArray:
    """List all spans of up to `longest` words (L_max), [s, 2], by start and end: Σ_k (length - k + 1) spans.

    The whole sentence is none of them, since it has no neighbours. The released code by an error of one leaves out
    spans of exactly L_max words and those that hold the last word.
    """
    starts, sizes = np.meshgrid(np.arange(length), np.arange(1, longest - is_released + 1), indexing="ij")
    spans = np.stack([starts.ravel(), (starts + sizes).ravel()], axis=1)
    return spans[(spans[:, 1] <= length - is_released) & (spans[:, 1] - spans[:, 0] < length)]


def find_overlaps(spans: IndexArray) -> Mask:
    """Mark pairs of spans that share a word: [s, s]."""
    start, end = spans.T
    return np.asarray((start[:, None] < end) & (start < end[:, None]))


def select_disjoint(spans: IndexArray, scores: Floats, *, is_released: bool = False) -> Mask:
    """Select disjoint spans: of two that overlap the one with the higher score is dropped. Returns [s].

    The paper prints the opposite, the released code does this (E16). Pairs are compared from the cheapest span on, and
    a dropped span drives out no other. Of equal scores the longer and then the earlier span stays. In the released code
    a dropped span still drives out others, so that fewer stay.
    """
    is_selected = np.ones(len(spans), bool)
    if is_released:
        order = np.lexsort([spans[:, 0], spans[:, 0] - spans[:, 1], scores])
        is_selected[order] = ~np.tril(find_overlaps(spans[order]), -1).any(axis=1)
        return is_selected
    return find_undecided(spans, scores, is_selected, is_selected)[1]


def find_undecided(spans: IndexArray, costs: Floats, is_final: Mask, is_open: Mask) -> tuple[Mask, Mask]:
    """Find open spans whose costs are needed, by costs that are lower bounds where they are not final.

    An open span that has the least of those that overlap it is selected if it is final, which closes the others.
    Returns the other such spans, [s], and those that are still open, [s]: if none is needed, the selected ones.
    """
    sizes, rank = spans[:, 1] - spans[:, 0], np.empty(len(spans), np.int64)
    rank[np.lexsort([spans[:, 0], -sizes, is_final, costs])] = np.arange(len(spans))
    span = np.repeat(np.arange(len(spans)), sizes)  # of each of its words
    word = np.arange(len(span)) - np.repeat(np.cumsum(sizes) - sizes - spans[:, 0], sizes)
    while True:
        least = np.full(spans.max(initial=0), len(spans))
        np.minimum.at(least, word[is_open[span]], rank[span[is_open[span]]])
        is_least = is_open & (np.bincount(span, least[word] == rank[span], len(spans)) == sizes)
        is_taken = np.zeros(len(least), bool)
        is_taken[word[(is_least & is_final)[span]]] = True
        is_beaten = is_open & ~is_least & (np.bincount(span, is_taken[word], len(spans)) > 0)
        if not is_beaten.any():
            return is_least & ~is_final, is_open
        is_open = is_open & ~is_beaten


def select_affordable(spans: IndexArray, scores: Floats, is_chosen: Mask, word_budget: int) -> Mask:
    """Select the cheapest chosen spans that together have at most `word_budget` words: [s].

    One that is too long is passed over, and a cheaper one is never left out for it.
    """
    is_selected = np.zeros(len(spans), bool)
    for index in np.flatnonzero(is_chosen)[np.argsort(scores[is_chosen], kind="stable")]:
        size = int(spans[index, 1] - spans[index, 0])
        if size <= word_budget:
            is_selected[index], word_budget = True, word_budget - size
    return is_selected


Limit = Callable[[float], float]  # what the cheapest span of a sentence costs, to what a span may cost
Scorer = Callable[..., list[Floats]]
"""Sentences and spans of each, [s, 2], to what it costs to drop each span, [s]; more is worse, about 0 is nothing.

Given a `Limit` of each sentence too, spans that are not selected may have a lower cost, with which they are not either.
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
    outwards, until the sum, of terms not below 0, shows that the span will not be selected. Blocks of sentences bound
    memory. Fast NDD counts only the one or two words that touch the span. Below 1, ν lets later words be dropped more
    easily.
    """

    def score_block(sentences: Sequence[Sentence], spans: Sequence[IndexArray], limits: Sequence[Limit]) -> Floats:
        if not any(map(len, spans)):
            return np.zeros(0)
        texts, asks, weight = _list_asks(sentences, spans, weighting, mu, nu)
        is_asked = asks[:, 1] == 0 if is_fast else np.ones(len(asks), bool)
        if hasattr(model, "unchanged"):
            is_asked &= ~model.unchanged(texts, asks[:, 2:4], asks[:, 4:])
        asks, weight = asks[is_asked], weight[is_asked]
        distinct, index = distance.index_places(asks[:, 2:4])
        first: Any = distance.collect_distributions(model, texts, distinct) if len(asks) else None
        sentence = np.repeat(np.arange(len(spans)), [*map(len, spans)])
        positions = np.concatenate(spans) + sentence[:, None] * max(map(len, sentences))
        next_ask, last = (np.searchsorted(asks[:, 0], np.arange(len(sentence)), side) for side in ("left", "right"))
        step_ends = np.append(1 + np.flatnonzero(np.diff(asks[:, :2], axis=0).any(axis=1)), len(asks))
        costs: Floats = np.zeros(len(sentence))
        is_open, is_next = np.ones(len(sentence), bool), next_ask < last
        while is_next.any():
            start = next_ask[is_next]
            end = next_ask[is_next] = step_ends[np.searchsorted(step_ends, start, "right")]
            asked = np.arange((end - start).sum()) + np.repeat(end - np.cumsum(end - start), end - start)
            values = distance.compare(model, texts, first, index[asked], asks[asked, 4:], divergence)
            costs += np.bincount(asks[asked, 0], weight[asked] * values, len(sentence))
            is_final = next_ask == last
            if not limits:
                is_next = ~is_final
                continue
            least, most = np.full((2, len(spans)), np.inf)
            np.minimum.at(least, sentence[is_final], costs[is_final])
            active = np.unique(sentence[is_next])
            most[active] = [limits[number](cost) for number, cost in zip(active, least[active].tolist(), strict=True)]
            is_open &= costs <= most[sentence]
            rows = np.flatnonzero(is_open & np.isin(sentence, active))
            is_next = np.zeros(len(sentence), bool)
            is_next[rows], is_open[rows] = find_undecided(positions[rows], costs[rows], is_final[rows], is_open[rows])
        return costs

    def score(sentences: Sequence[Sentence], spans: Sequence[IndexArray], limits: Sequence[Limit] = ()) -> list[Floats]:
        blocks = distance.split_blocks([*map(len, sentences)], distance.choose_cache_size(model))
        costs = [score_block(sentences[block], spans[block], limits[block]) for block in blocks]
        return np.split(np.concatenate(costs), np.cumsum([*map(len, spans)])[:-1]) if costs else []

    return score


def _list_asks(
    sentences: Sequence[Sentence], spans: Sequence[IndexArray], weighting: str, mu: float, nu: float
) -> tuple[list[Sentence], IndexArray, Floats]:
    """List texts, which are the sentences and what remains without each span; the asks; and their weights, [m].

    An ask, [m, 6], is a span, a step away from it (0, 1, 2, 3 to 4, 5 to 6, 7 to 10 ... words), and the text and place
    of a neighbour before and after the span is dropped. They are in the order of spans, those of each from it outwards.
    """

    @cache
    def weigh(length: int, start: int, end: int) -> tuple[IndexArray, IndexArray, Floats]:
        counts = distance.WEIGHTS[weighting](length, start, end, mu) * distance.decay(length, start, end, nu)
        place = np.flatnonzero(counts)
        step = (2 * np.log2(1 + np.where(place < start, start - 1 - place, place - start))).astype(np.int64)
        order = np.argsort(step, kind="stable")
        return place[order], step[order], counts[place[order]]

    numbers = np.repeat(np.arange(len(spans)), [*map(len, spans)])
    sizes = np.array([*map(len, sentences)])
    ends = np.column_stack([sizes[numbers], np.concatenate(spans)])
    place, step, weight = (np.concatenate(parts) for parts in zip(*(weigh(*row) for row in ends.tolist()), strict=True))
    span = np.repeat(np.arange(len(ends)), [len(weigh(*row)[0]) for row in ends.tolist()])
    number, (_, start, end) = numbers[span], ends[span].T
    text = len(sentences) + span
    # a mask before the span hides what one behind the span that is a word earlier does
    touching = np.flatnonzero((place == start - 1) | (place == start))
    hidden = (number * sizes.max() + place) * (sizes.max() + 2) + end + (place == start)
    _, first, owner = np.unique(hidden[touching], return_index=True, return_inverse=True)
    text[touching] = text[touching[first]][owner]
    asks = np.stack([span, step, number, place + (place >= start) * (end - start), text, place], axis=1)
    remainders = (
        [*sentences[number][:start], *sentences[number][end:]]
        for number, (_, start, end) in zip(numbers.tolist(), ends.tolist(), strict=True)
    )
    return [*sentences, *remainders], asks, weight


def perplexity(model: MaskedModel) -> Scorer:
    """Score spans by the rise of log perplexity: PPL Deleter as the paper has it (NDD-31; after Niu et al., 2019).

    It gives fluent sentences and ignores their meaning.
    """

    def score_spans(words: Sentence, remainders: list[Sentence]) -> Floats:
        log_perplexity = distance.perplexity(model, [words, *remainders])["log_perplexity"].to_numpy()
        return np.asarray(log_perplexity[1:] - log_perplexity[0])

    return _score_each(score_spans)


def cosine(model: SentenceModel) -> Scorer:
    """Score spans by 1 - S_C, the change of the vector of [CLS] (appendix E; NDD-32)."""

    def score_spans(words: Sentence, remainders: list[Sentence]) -> Floats:
        vectors = model.sentence_vectors([words, *remainders]).double().cpu().numpy()
        norms = np.linalg.norm(vectors, axis=1)
        lengths = np.maximum(norms[1:] * norms[0], np.finfo(np.float64).tiny)
        return np.asarray(1 - vectors[1:] @ vectors[0] / lengths)

    return _score_each(score_spans)


def bertscore(model: TokenModel) -> Scorer:
    """Score spans by 1 - F of greedily matched piece states (BERTScore; Zhang et al., 2020; appendix E; NDD-32).

    Without weights of rarity and without rescaling, by the last layer; [CLS] and [SEP] count as pieces.
    """
    from torch.nn.functional import normalize

    def score_spans(words: Sentence, remainders: list[Sentence]) -> Floats:
        reference = normalize(next(iter(model.states([words])))[1])
        costs = np.empty(len(remainders))
        for row, states in model.states(remainders):
            similarity = normalize(states) @ reference.T
            precision, recall = (float(similarity.amax(dim=side).mean()) for side in (1, 0))
            costs[row] = 1 - 2 * precision * recall / (precision + recall)
        return costs

    return _score_each(score_spans)


def _score_each(score_spans: Callable[[Sentence, list[Sentence]], Floats]) -> Scorer:
    """Score one sentence after another by a function of its words and of what remains without each span."""
    return lambda sentences, spans, _limits=(): [
        score_spans(words, [[*words[:start], *words[end:]] for start, end in candidates.tolist()])
        for words, candidates in zip(sentences, spans, strict=True)
    ]
