"""Which spans of a sentence may be dropped, and which of those that may are (NDD, section 4.1; NDD-14, 15, 21).

A span is (start, end), from 0, the end not included; spans of a sentence are an array [s, 2].
"""

import numpy as np
import numpy.typing as npt

from pipeline.metrics.ndd.model import Floats, IndexArray

Mask = npt.NDArray[np.bool_]


def every(length: int, longest: int, *, is_released: bool = False) -> IndexArray:
    """All spans of up to so many words, [s, 2]: Σ_k (length - k + 1) of them, by start and end.

    The whole sentence is none of them, since it has no neighbours.

    Args:
        length: of the sentence in words.
        longest: of a span, L_max.
        is_released: as the released code has it, which by an error of one leaves out spans of exactly L_max words and
            those that hold the last word.
    """
    most = longest - is_released
    starts, sizes = np.meshgrid(np.arange(length), np.arange(1, most + 1), indexing="ij")
    found = np.stack([starts.ravel(), (starts + sizes).ravel()], axis=1)
    return found[(found[:, 1] <= length - is_released) & (found[:, 1] - found[:, 0] < length)]


def overlapping(spans: IndexArray) -> Mask:
    """Whether two spans share a word: [s, s]."""
    start, end = spans[:, 0], spans[:, 1]
    found: Mask = (start[:, None] < end[None, :]) & (start[None, :] < end[:, None])
    return found


def disjoint(spans: IndexArray, scores: Floats, *, is_released: bool = False) -> Mask:
    """The spans that stay when of each two that overlap the one with the higher score goes: [s].

    The paper prints the opposite, the released code does this (E16). Pairs are gone through from the cheapest span on,
    until none overlap, and a span that has gone drives out no other. Of equal scores the longer and then the earlier
    span stays.

    Args:
        spans: [s, 2].
        scores: what dropping each costs, [s].
        is_released: all pairs at once, as the released code: a span that goes still drives out others, so that fewer
            stay. That code keeps both of two equal ones, though they overlap.
    """
    order = np.lexsort([spans[:, 0], spans[:, 0] - spans[:, 1], scores])
    both = overlapping(spans[order])
    if is_released:
        stays = ~np.tril(both, -1).any(axis=1)
    else:
        stays = np.ones(len(spans), bool)
        for at in range(len(spans)):
            if stays[at]:
                stays[at + 1 :] &= ~both[at, at + 1 :]
    found = np.empty(len(spans), bool)
    found[order] = stays
    return found


def afforded(spans: IndexArray, scores: Floats, chosen: Mask, words: int) -> Mask:
    """Of the chosen spans, cheapest first, those that together have at most so many words: [s].

    One that is too long is passed over, and a cheaper one is never left out for it.
    """
    found = np.zeros(len(spans), bool)
    for at in np.flatnonzero(chosen)[np.argsort(scores[chosen], kind="stable")]:
        size = int(spans[at, 1] - spans[at, 0])
        if size <= words:
            found[at], words = True, words - size
    return found
