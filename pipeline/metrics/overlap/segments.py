"""Candidates with their weighted references, in batches of numbers that the overlap metrics read, and their n-grams.

In: streams with an entry a segment: the candidate's tokens, the references' tokens, the references' weights (s_j of
section 4). Out: batches, in which a token is a number that holds for this batch alone. Shared n-grams are found once
a batch for all metrics.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, islice, zip_longest
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from pipeline.errors import BadInput
from pipeline.metrics.resample import Floats, Ints

Tokens = Sequence[str]
SIZE = 512  # segments of a batch


@dataclass(frozen=True, eq=False)
class Batch:
    """n candidates of W tokens with m references of R tokens; `words[ends[i]:ends[i + 1]]` is candidate i."""

    words: Ints  # [W] tokens of all candidates, one candidate after another
    ends: Ints  # [n + 1] from 0 to W
    ref_words: Ints  # [R]
    ref_ends: Ints  # [m + 1] from 0 to R
    owner: Ints  # [m] the candidate of each reference, non-decreasing; every candidate owns at least one
    weights: Floats  # [m] s_j
    types: list[str]  # the token of each number
    grams: list[Any] = field(default_factory=list, init=False)  # a cache of `find_matches`


class _Row(NamedTuple):
    number: int  # from 1
    candidate: Tokens
    references: Sequence[Tokens]
    weights: Sequence[float]


def read_batches(
    candidates: Iterable[Tokens],
    references: Iterable[Sequence[Tokens]],
    weights: Iterable[Sequence[float]] | None = None,
    *,
    size: int = SIZE,
    low: float = 0.0,
) -> Iterator[Batch]:
    """Read segments in batches; at most one is held.

    Candidates are tokens, maybe none, each with at least one reference, as tokens too, and a weight of each reference,
    from `low` (ΔBLEU has -1) to 1 (AAC-18); by default all are 1. No score depends on `size`, the segments of a batch.
    BadInput for more entries of one stream than of another, no references, text that is not in tokens, weights that are
    not as many as references or not between `low` and 1; it names the row, from 1.
    """
    streams: dict[str, Iterable[Any]] = {"candidate": candidates, "references": references}
    rows = _read_rows(streams if weights is None else streams | {"weights": weights}, low)
    while batch_rows := [*islice(rows, size)]:
        yield _build_batch(batch_rows)


def list_owners(ends: Ints) -> Ints:
    """List the text number of each token: [n + 1] -> [W]."""
    return np.repeat(np.arange(len(ends) - 1), np.diff(ends))


def count_remaining(ends: Ints) -> Ints:
    """Count the tokens of its text from each token on, at least 1: [n + 1] -> [W]. An n-gram needs n."""
    return np.repeat(ends[1:], np.diff(ends)) - np.arange(ends[-1])


def list_starts(owner: Ints) -> Ints:
    """List where the references of each candidate start: [m] -> [n], for `reduceat`."""
    return np.flatnonzero(np.diff(owner, prepend=-1))


def _read_rows(streams: dict[str, Iterable[Any]], low: float) -> Iterator[_Row]:
    end = object()  # not None, which a stream may hold by mistake
    for number, entries in enumerate(zip_longest(*streams.values(), fillvalue=end), 1):
        if missing := [name for name, entry in zip(streams, entries, strict=True) if entry is end]:
            existing = " and ".join(name for name in streams if name not in missing)
            raise BadInput(f"row {number}: no {' and no '.join(missing)}, but {existing}; expected as many")
        candidate, references, *row_weights = entries
        _check_tokens(number, "candidate", candidate)
        if isinstance(references, str) or not isinstance(references, Sequence) or not len(references):
            raise _describe_problem(number, "references", "a list of at least one", references)
        for reference in references:
            if type(reference) is not list:  # a call for each of 27 references is a third of the reading
                _check_tokens(number, "references", reference)
        count = len(references)
        weights = _check_weights(number, row_weights[0], count, low) if row_weights else [1.0] * count
        yield _Row(number, candidate, references, weights)


def _check_tokens(number: int, field: str, tokens: object) -> None:
    """Reject plain text, which would be read as a list of characters."""
    if isinstance(tokens, str) or not isinstance(tokens, Sequence):
        raise _describe_problem(number, field, "a list of tokens", tokens)


def _check_weights(number: int, weights: object, count: int, low: float) -> list[float]:
    values = weights.tolist() if isinstance(weights, np.ndarray) else weights
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != count:
        raise _describe_problem(number, "weights", f"a list of {count}, as of references", values)
    if set(map(type, values)) == {float} and all(low <= weight <= 1 for weight in values):
        return list(values)  # as nearly all are, so that the rest may take its time
    for weight in values:
        is_number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not is_number or not low <= weight <= 1:
            raise _describe_problem(number, "weights", f"numbers between {low:g} and 1", weight)
    return [float(weight) for weight in values]


def _build_batch(rows: list[_Row]) -> Batch:
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    references = [*chain.from_iterable(row.references for row in rows)]
    try:
        words, ends = _number_tokens([row.candidate for row in rows], numbers)
        ref_words, ref_ends = _number_tokens(references, numbers)
    except TypeError:  # what cannot be hashed, such as a list of lists
        raise _find_non_text(rows) from None
    if not all(issubclass(kind, str) for kind in set(map(type, numbers))):
        raise _find_non_text(rows)
    owner = np.repeat(np.arange(len(rows)), [len(row.references) for row in rows]).astype(np.int64)
    weights = np.fromiter(chain.from_iterable(row.weights for row in rows), np.float64, count=len(references))
    return Batch(words, ends, ref_words, ref_ends, owner, weights, list(numbers))


def _number_tokens(texts: list[Tokens], numbers: defaultdict[str, int]) -> tuple[Ints, Ints]:
    """Number the tokens of all texts as they come, and return where each text ends."""
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([*map(len, texts)], out=ends[1:])
    return np.fromiter(map(numbers.__getitem__, chain.from_iterable(texts)), np.int64, count=ends[-1]), ends


def _find_non_text(rows: list[_Row]) -> BadInput:
    number, field, token = next(
        (row.number, field, token)
        for row in rows
        for field, texts in (("candidate", [row.candidate]), ("references", row.references))
        for token in chain.from_iterable(texts)
        if not isinstance(token, str)
    )
    return _describe_problem(number, field, "tokens that are text", token)


def _describe_problem(number: int, field: str, expected: str, value: object) -> BadInput:
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:60]}…"
    return BadInput(f"row {number}, {field}: expected {expected}, found {text}")


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
        size = max(len(distinct), 1)
        pairs, reference_times = np.unique(reference[reference_places] * size + reference_prefix, return_counts=True)
        reference_of, shared = np.divmod(pairs, size)
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
