"""n-grams that candidates share with their references, found once a batch for all metrics that count them."""

from collections.abc import Iterator
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from pipeline.metrics.overlap.segments import Batch, count_remaining, list_owners
from pipeline.metrics.resample import Ints

USUAL = 4  # words of the longest n-gram that metrics ask for by default


class Grams(NamedTuple):
    """The distinct n-grams of each candidate, in the order of their first places, and the references that have them."""

    segment: Ints  # [g] the candidate of each
    first: Ints  # [g] where it starts in `batch.words`
    times: Ints  # [g] how often the candidate has it
    shared: Ints  # [f] an n-gram that a reference has too
    reference: Ints  # [f] the reference that has it
    reference_times: Ints  # [f] how often


def find_matches(batch: Batch, order: int) -> list[Grams]:
    """Find shared n-grams for n of 1 to `order`; a batch caches its own for the next metric."""
    if len(batch.grams) < order:
        batch.grams[:] = islice(_iterate_orders(batch), max(order, USUAL))
    return batch.grams[:order]


def _iterate_orders(batch: Batch) -> Iterator[Grams]:
    """Yield shared n-grams for n of 1, 2, …; those of a reference only where the first n - 1 words matched."""
    candidate_places, reference_places = np.arange(len(batch.words)), np.arange(len(batch.ref_words))
    room, reference_room = count_remaining(batch.ends), count_remaining(batch.ref_ends)
    segment, reference = list_owners(batch.ends), list_owners(batch.ref_ends)
    # what an n-gram begins with: the candidate, then the number of its first n - 1 words, which are one candidate's
    prefix, reference_prefix = segment, batch.owner[reference]
    kinds = len(batch.types)
    for n in count(1):
        fits, fits_reference = room[candidate_places] >= n, reference_room[reference_places] >= n
        candidate_places, reference_places = candidate_places[fits], reference_places[fits_reference]
        keys = prefix[fits] * kinds + batch.words[candidate_places + n - 1]
        reference_keys = reference_prefix[fits_reference] * kinds + batch.ref_words[reference_places + n - 1]
        distinct, first, prefix, times = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        place = np.searchsorted(distinct, reference_keys)
        is_known = np.append(distinct, -1)[place] == reference_keys
        reference_places, reference_prefix = reference_places[is_known], place[is_known]
        pairs, reference_times = np.unique(
            reference[reference_places] * max(len(distinct), 1) + reference_prefix, return_counts=True
        )
        reference_of, shared = np.divmod(pairs, max(len(distinct), 1))
        # in the order of first places sums do not depend on the numbers that tokens have in this batch
        by_place = np.argsort(first)
        rank = np.empty_like(by_place)
        rank[by_place] = np.arange(len(by_place))
        start = candidate_places[first[by_place]]
        yield Grams(segment[start], start, times[by_place], rank[shared], reference_of, reference_times)


def count_repeats(words: Ints, text: Ints, room: Ints, order: int) -> Iterator[Ints]:
    """Yield how often its text has the n-gram that starts at each token, 0 but for the first of these: [W], by order.

    `text` has the text of each token, `room` how many tokens an n-gram may have from it on; where it does not fit, a 1
    is without meaning. Only n-grams whose first n - 1 words repeat are looked at.
    """
    places, prefix, kinds = np.arange(len(words)), text, words.max(initial=0) + 1
    for n in range(1, order + 1):
        fits = room[places] >= n
        places = places[fits]
        keys = prefix[fits] * kinds + words[places + n - 1]
        by_key = np.argsort(keys)
        keys, places = keys[by_key], places[by_key]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        times = np.diff(starts, append=len(keys))
        counts = np.ones(len(words), np.int64)
        counts[places] = 0
        counts[np.minimum.reduceat(places, starts)] = times
        yield counts
        is_repeated = np.repeat(times > 1, times)
        places, prefix = places[is_repeated], np.repeat(starts, times)[is_repeated]
