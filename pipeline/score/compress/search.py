"""Compression by dropping spans, in rounds, with any scorer (NDD, sections 4.1 and 4.2; NDD-14 to 17, 21).

A round scores every span of the remaining words, selects those that cost at most the threshold, of two that overlap
the cheaper one, and drops them. The words after any round are a compression. With dependency trees only whole
subtrees are dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from pipeline.metrics.ndd.distance import Floats, IndexArray, Sentence
from pipeline.progress import OnProgress
from pipeline.score.compress import scorers
from pipeline.score.compress.scorers import Mask, Scorer
from pipeline.text import trees

LONGEST, LONGEST_SUBTREE = 5, 9  # words of a span, L_max, without and with trees (section 4.2; NDD-17)
THRESHOLD = 1.0  # what a span may cost, N_max (section 4.2)
ROUNDS = 5
SPANS = ("paper", "released")
Tree = Sequence[int]  # heads of a sentence's words, from 0; -1 at the root


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The numbers of a search."""

    longest: int | None = None  # L_max; by default 9 with trees, 5 without
    threshold: float = THRESHOLD
    rounds: int = ROUNDS  # at most; a search for a ratio has no limit
    ratio: float | None = None  # share of the words that is to be kept; then threshold and rounds are not used
    spans: str = SPANS[0]  # released: that code's range of spans, and its way with those that overlap


class Dropped(NamedTuple):
    """A span that was dropped."""

    round: int
    places: list[int]  # of its words in the sentence, from 0
    cost: float


class Compression(NamedTuple):
    """The result for a sentence."""

    rounds: IndexArray
    """The round in which each word was dropped, 0 where it stays: [n]."""
    dropped: list[Dropped]
    """The spans that were dropped, by round and place."""

    @property
    def is_kept(self) -> Mask:
        """Mark the words that are kept: [n]."""
        return self.after(int(self.rounds.max(initial=0)))

    def after(self, number: int) -> Mask:
        """Mark the words that are kept after a round: [n]."""
        return np.asarray((self.rounds == 0) | (self.rounds > number))


@dataclass(slots=True)
class _State:  # a sentence during the search
    words: Sentence
    places: IndexArray  # of the remaining words
    heads: Tree | None  # of the remaining words
    minimum: int  # words to keep
    limit: float  # what a span may cost
    compression: Compression

    @property
    def excess(self) -> int:
        """Words that may be dropped."""
        return len(self.places) - self.minimum


def compress(
    sentences: Sequence[Sentence],
    scorer: Scorer,
    search: Search | None = None,
    heads: Sequence[Tree] | None = None,
    on_progress: OnProgress = lambda _: None,
) -> list[Compression]:
    """Drop spans of sentences until nothing is cheap enough, the rounds are over, or the ratio is reached.

    With a ratio each sentence keeps ratio · n words, rounded (halves to even), at least one. The threshold begins at 0
    and is doubled where nothing costs as little, so that the cheapest are dropped first, for any scale of the scorer.
    All sentences of a round are scored in one call. With heads of each sentence's words only whole subtrees go. At
    least one word is kept of a sentence that has any. `on_progress` counts sentences that are finished. ValueError for
    a ratio outside (0, 1], or numbers below what they can be.
    """
    search = search or Search()
    _check_search(search)
    longest = search.longest or (LONGEST if heads is None else LONGEST_SUBTREE)
    sentence_trees: Sequence[Tree | None] = heads or [None] * len(sentences)
    states = [_start(words, tree, search) for words, tree in zip(sentences, sentence_trees, strict=True)]
    active, round_number = [state for state in states if state.excess > 0], 0
    on_progress(len(states) - len(active))
    while active and (search.ratio is not None or round_number < search.rounds):
        round_number += 1
        candidates = [_list_candidates(state, longest, search.spans) for state in active]
        limits = [] if search.spans == "released" else [partial(_raise_limit, state, search) for state in active]
        costs = scorer([[state.words[place] for place in state.places] for state in active], candidates, limits)
        changed = []
        for state, spans, span_costs in zip(active, candidates, costs, strict=True):
            is_chosen = _choose_spans(state, spans, span_costs, search)
            if is_chosen.any():
                _drop_spans(state, spans[is_chosen], span_costs[is_chosen], round_number)
                changed.append(state)
        active_count, active = len(active), [state for state in changed if state.excess > 0]
        on_progress(active_count - len(active))
    return [state.compression for state in states]


def _check_search(search: Search) -> None:
    if search.ratio is not None and not 0 < search.ratio <= 1:
        raise ValueError(f"ratio should be above 0 and at most 1, not {search.ratio}")
    if search.rounds < 1 or (search.longest is not None and search.longest < 1):
        raise ValueError(f"rounds and longest should be at least 1, not {search.rounds} and {search.longest}")
    if not np.isfinite(search.threshold):
        raise ValueError(f"threshold should be a number, not {search.threshold}")
    if search.spans not in SPANS:
        raise ValueError(f"spans should be {' or '.join(SPANS)}, not {search.spans!r}")


def _start(words: Sentence, tree: Tree | None, search: Search) -> _State:
    length = len(words)
    minimum = min(length, 1 if search.ratio is None else max(1, round(search.ratio * length)))
    limit = search.threshold if search.ratio is None else 0.0
    return _State(words, np.arange(length), tree, minimum, limit, Compression(np.zeros(length, np.int64), []))


def _list_candidates(state: _State, longest: int, way: str) -> IndexArray:
    if state.heads is None:
        spans = scorers.list_spans(len(state.places), longest, is_released=way == "released")
    else:
        spans = trees.find_subtrees(state.heads)
    return spans[spans[:, 1] - spans[:, 0] <= min(longest, state.excess)]


def _raise_limit(state: _State, search: Search, cost: float) -> float:
    """Return what a span may cost if the cheapest costs so much; with a ratio it is raised where nothing is cheap."""
    return state.limit if search.ratio is None or cost <= state.limit else max(2 * state.limit, cost)


def _choose_spans(state: _State, spans: IndexArray, costs: Floats, search: Search) -> Mask:
    """Mark the spans to drop, [s]."""
    if not len(spans):
        return np.zeros(0, bool)
    state.limit = _raise_limit(state, search, float(costs.min()))
    is_chosen = costs <= state.limit
    is_released = search.spans == "released"
    is_chosen[is_chosen] = scorers.select_disjoint(spans[is_chosen], costs[is_chosen], is_released=is_released)
    return scorers.select_affordable(spans, costs, is_chosen, state.excess)


def _drop_spans(state: _State, spans: IndexArray, costs: Floats, round_number: int) -> None:
    is_kept = np.ones(len(state.places), bool)
    for (start, end), cost in zip(spans.tolist(), costs.tolist(), strict=True):
        is_kept[start:end] = False
        state.compression.dropped.append(Dropped(round_number, state.places[start:end].tolist(), cost))
    state.compression.rounds[state.places[~is_kept]] = round_number
    state.places = state.places[is_kept]
    if state.heads is not None:
        state.heads = trees.drop_words(state.heads, is_kept).tolist()
