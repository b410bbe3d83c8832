"""Which spans of a sentence may be dropped, and which of those that may are (NDD, section 4.1; NDD-14, 15, 21).

A span is (start, end), from 0, the end not included; spans of a sentence are an array [s, 2].
"""

import numpy as np
import numpy.typing as npt

from pipeline.metrics.ndd.distance import Floats, IndexArray

Mask = npt.NDArray[np.bool_]


def list_spans(length: int, longest: int, *, is_released: bool = False) -> IndexArray:
    """List all spans of up to `longest` words (L_max), [s, 2], by start and end: Σ_k (length - k + 1) spans.

    The whole sentence is none of them, since it has no neighbours. The released code by an error of one leaves out
    spans of exactly L_max words and those that hold the last word.
    """
    longest_span = longest - is_released
    starts, sizes = np.meshgrid(np.arange(length), np.arange(1, longest_span + 1), indexing="ij")
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
    else:
        find_undecided(spans, scores, is_selected.copy(), is_selected)
    return is_selected


def find_undecided(spans: IndexArray, costs: Floats, is_final: Mask, is_open: Mask) -> Mask:
    """Close spans that are not selected, by costs that are lower bounds where they are not final; all is in place.

    An open span that has the least of those that overlap it is selected if it is final, which closes the others.
    Returns the other such spans, [s], whose costs are needed; if there is none, the open spans are the selected ones.
    """
    sizes, rank = spans[:, 1] - spans[:, 0], np.empty(len(spans), np.int64)
    rank[np.lexsort([spans[:, 0], -sizes, is_final, costs])] = np.arange(len(spans))
    span = np.repeat(np.arange(len(spans)), sizes)  # of each of its words
    word = np.arange(len(span)) - np.repeat(np.cumsum(sizes) - sizes - spans[:, 0], sizes)
    while True:
        least = np.full(spans.max(initial=0), len(spans))
        np.minimum.at(least, word[is_open[span]], rank[span[is_open[span]]])
        is_least = is_open & (np.bincount(span, least[word] == rank[span], len(spans)) == sizes)
        is_taken = np.isin(word, word[(is_least & is_final)[span]])
        is_beaten = is_open & ~is_least & (np.bincount(span, is_taken, len(spans)) > 0)
        if not is_beaten.any():
            return np.asarray(is_least & ~is_final)
        is_open &= ~is_beaten


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
