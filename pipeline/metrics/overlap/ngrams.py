"""n-grams that candidates share with their references, found once a batch for all metrics that count them."""

from collections.abc import Iterator
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from pipeline.metrics.overlap.segments import Batch, Ints, left, owners

USUAL = 4  # words of the longest n-gram that metrics ask for by default


class Grams(NamedTuple):
    """The distinct n-grams of each candidate, in the order of their first places, and the references that have them."""

    segment: Ints  # [g] the candidate of each
    first: Ints  # [g] where it starts in `batch.words`
    times: Ints  # [g] how often the candidate has it
    found: Ints  # [f] an n-gram that a reference has too
    reference: Ints  # [f] the reference that has it
    there: Ints  # [f] how often


def matches(batch: Batch, order: int) -> list[Grams]:
    """n-grams for n of 1 to `order`; a batch keeps those of its own, as BLEU-1 to 4 and CIDEr ask for the same."""
    if len(batch.grams) < order:
        batch.grams[:] = islice(_orders(batch), max(order, USUAL))
    return batch.grams[:order]


def _orders(batch: Batch) -> Iterator[Grams]:
    """n-grams for n of 1, 2, …; one of a reference is looked at only where its n - 1 first words matched."""
    ours, theirs = np.arange(len(batch.words)), np.arange(len(batch.ref_words))
    room, room_there = left(batch.ends), left(batch.ref_ends)
    segment, reference = owners(batch.ends), owners(batch.ref_ends)
    # what an n-gram begins with: the candidate, then the number of its first n - 1 words, which are one candidate's
    before, before_there = segment, batch.owner[reference]
    kinds = len(batch.types)
    for n in count(1):
        fits, fits_there = room[ours] >= n, room_there[theirs] >= n
        ours, theirs = ours[fits], theirs[fits_there]
        keys = before[fits] * kinds + batch.words[ours + n - 1]
        wanted = before_there[fits_there] * kinds + batch.ref_words[theirs + n - 1]
        known, first, before, times = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        place = np.searchsorted(known, wanted)
        is_known = np.append(known, -1)[place] == wanted
        theirs, before_there = theirs[is_known], place[is_known]
        pairs, there = np.unique(reference[theirs] * max(len(known), 1) + before_there, return_counts=True)
        reference_of, found = np.divmod(pairs, max(len(known), 1))
        # in the order of first places sums do not depend on the numbers that tokens have in this batch
        by_place = np.argsort(first)
        rank = np.empty_like(by_place)
        rank[by_place] = np.arange(len(by_place))
        start = ours[first[by_place]]
        yield Grams(segment[start], start, times[by_place], rank[found], reference_of, there)
