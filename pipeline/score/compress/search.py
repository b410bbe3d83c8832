"""Compression by dropping spans, in rounds, with any scorer (NDD, sections 4.1 and 4.2; NDD-14 to 17, 21).

A round scores every span of the remaining words, selects those that cost at most the threshold, of two that overlap
the cheaper one, and drops them. The words after any round are a compression. With dependency trees only whole
subtrees are dropped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.metrics.ndd.model import Floats, IndexArray, Sentence
from pipeline.score.compress import spans as finding
from pipeline.score.compress.scorers import Scorer
from pipeline.text import trees

LONGEST, LONGEST_SUBTREE = 5, 9  # words of a span, L_max, without and with trees (section 4.2; NDD-17)
THRESHOLD = 1.0  # what a span may cost, N_max (section 4.2)
ROUNDS = 5

Tree = Sequence[int]
"""Heads of a sentence's words, from 0; -1 at the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The numbers of a search."""

    longest: int | None = None  # L_max; by default 9 with trees, 5 without
    threshold: float = THRESHOLD
    rounds: int = ROUNDS  # at most; a search for a ratio has no limit
    ratio: float | None = None  # share of the words that is to be kept; then threshold and rounds are not used
    is_released: bool = False  # the released code's range of spans, and its way with those that overlap


class Compression(NamedTuple):
    """The result for a sentence."""

    rounds: IndexArray
    """The round in which each word was dropped, 0 where it stays: [n]."""
    spans: list[tuple[int, int, int]]
    """Round, start and end of each span that was dropped, in places of what was left before that round."""

    @property
    def is_kept(self) -> npt.NDArray[np.bool_]:
        """Mark the words that are kept: [n]."""
        return self.after(int(self.rounds.max(initial=0)))

    def after(self, number: int) -> npt.NDArray[np.bool_]:
        """Mark the words that are kept after a round: [n]."""
        is_kept: npt.NDArray[np.bool_] = (self.rounds == 0) | (self.rounds > number)
        return is_kept


class _Remaining(NamedTuple):
    """The remaining words of a sentence."""

    places: IndexArray  # places in the sentence
    heads: Tree | None


def compress(
    sentences: Sequence[Sentence],
    scorer: Scorer,
    search: Search | None = None,
    heads: Sequence[Tree] | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> list[Compression]:
    """Drop spans of sentences until nothing is cheap enough, the rounds are over, or the ratio is reached.

    With a ratio each sentence keeps ratio · n words, rounded (halves to even, so that many short sentences meet it
    together), at least one. The threshold begins at 0 and is doubled where nothing costs as little, so that the
    cheapest are dropped first and the others are scored again, for any scale of the scorer; no span is dropped that is
    longer than the excess.

    Args:
        sentences: each of its words.
        scorer: what dropping a span costs; all sentences of a round are scored in one call.
        search: the numbers.
        heads: of each sentence's words, -1 at the root; then only whole subtrees are dropped.
        on_progress: called with the number of sentences that were finished.

    Returns:
        One for each sentence. At least one word is kept of a sentence that has any.

    Raises:
        ValueError: a ratio outside (0, 1], or numbers below what they can be.
    """
    search = search or Search()
    _check_search(search)
    longest = search.longest or (LONGEST if heads is None else LONGEST_SUBTREE)
    remaining = [
        _Remaining(np.arange(len(words)), None if heads is None else heads[index])
        for index, words in enumerate(sentences)
    ]
    minimums = [_minimum_words(len(words), search.ratio) for words in sentences]
    compressions = [Compression(np.zeros(len(words), np.int64), []) for words in sentences]
    limits = np.full(len(sentences), search.threshold if search.ratio is None else 0.0)
    active, round_number = _list_unfinished(range(len(sentences)), remaining, minimums), 0
    on_progress(len(sentences) - len(active))
    while active and (search.ratio is not None or round_number < search.rounds):
        round_number += 1
        candidates = [
            _list_candidates(remaining[index], longest, minimums[index], search.is_released) for index in active
        ]
        remaining_words = [[sentences[index][place] for place in remaining[index].places] for index in active]
        costs = scorer(remaining_words, candidates)
        changed = []
        for index, spans, cost in zip(active, candidates, costs, strict=True):
            is_chosen, limits[index] = _choose_spans(
                spans, cost, limits[index], len(remaining[index].places) - minimums[index], search
            )
            if is_chosen.any():
                remaining[index] = _drop_spans(compressions[index], remaining[index], spans[is_chosen], round_number)
                changed.append(index)
        active_count, active = len(active), _list_unfinished(changed, remaining, minimums)
        on_progress(active_count - len(active))
    return compressions


def _check_search(search: Search) -> None:
    if search.ratio is not None and not 0 < search.ratio <= 1:
        raise ValueError(f"ratio should be above 0 and at most 1, not {search.ratio}")
    if search.rounds < 1 or (search.longest is not None and search.longest < 1):
        raise ValueError(f"rounds and longest should be at least 1, not {search.rounds} and {search.longest}")
    if not np.isfinite(search.threshold):
        raise ValueError(f"threshold should be a number, not {search.threshold}")


def _minimum_words(length: int, ratio: float | None) -> int:
    """Compute the fewest words to keep."""
    return min(length, 1) if ratio is None else min(length, max(1, round(ratio * length)))


def _list_unfinished(indices: Sequence[int], remaining: Sequence[_Remaining], minimums: Sequence[int]) -> list[int]:
    return [index for index in indices if len(remaining[index].places) > minimums[index]]


def _list_candidates(remaining: _Remaining, longest: int, minimum: int, is_released: bool) -> IndexArray:
    """List the spans that may be dropped and leave at least `minimum` words."""
    length = len(remaining.places)
    spans = (
        finding.list_spans(length, longest, is_released=is_released)
        if remaining.heads is None
        else trees.find_subtrees(remaining.heads)
    )
    size = spans[:, 1] - spans[:, 0]
    return spans[(size <= longest) & (size <= length - minimum)]


def _choose_spans(
    spans: IndexArray, costs: Floats, limit: float, word_budget: int, search: Search
) -> tuple[npt.NDArray[np.bool_], float]:
    """Choose spans to drop, of at most `word_budget` words, and return the limit of cost that was used."""
    if not len(spans):
        return np.zeros(0, bool), limit
    if search.ratio is not None and costs.min() > limit:
        limit = max(2 * limit, float(costs.min()))
    cheap = costs <= limit
    is_chosen = np.zeros(len(spans), bool)
    is_chosen[cheap] = finding.select_disjoint(spans[cheap], costs[cheap], is_released=search.is_released)
    return finding.select_affordable(spans, costs, is_chosen, word_budget), limit


def _drop_spans(compression: Compression, remaining: _Remaining, spans: IndexArray, round_number: int) -> _Remaining:
    """Drop spans, record them, and return what remains."""
    is_kept = np.ones(len(remaining.places), bool)
    for start, end in spans.tolist():
        is_kept[start:end] = False
        compression.spans.append((round_number, start, end))
    compression.rounds[remaining.places[~is_kept]] = round_number
    return _Remaining(
        remaining.places[is_kept],
        None if remaining.heads is None else trees.drop_words(remaining.heads, is_kept).tolist(),
    )
