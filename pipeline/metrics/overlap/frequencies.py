"""In how many documents each n-gram stands, for the TF-IDF of CIDEr (appendix B.4).

A document is the reference set of a segment, as in the code of Vedantam et al. (2015). An n-gram in one document weighs
as much as one in none, log N, so only those in two or more are kept.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import tee
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.errors import BadInput
from pipeline.metrics.overlap import segments
from pipeline.metrics.overlap.metric import Floats
from pipeline.metrics.overlap.segments import Batch, Ints, Tokens, left, owners

Hashes = npt.NDArray[np.uint64]
References = Sequence[Sequence[Tokens]] | Callable[[], Iterable[Sequence[Tokens]]]

BUCKETS = 1 << 24  # of the first pass, 5 bytes each
_PENDING = 1 << 20  # n-grams counted apart before they are added up


class Frequencies(NamedTuple):
    """In how many documents n-grams stand, of those in two or more; n-grams are told apart by 64 bits."""

    documents: int
    order: int  # of the longest n-grams
    hashes: Hashes  # [g] ascending
    counts: Ints  # [g] at least 2

    def digest(self) -> str:
        """Twelve hexadecimal digits that stand for the documents in a signature."""
        parts = (f"{self.documents} {self.order}".encode(), self.hashes.astype("<u8"), self.counts.astype("<i8"))
        return hashlib.sha256(b"".join(bytes(part) for part in parts)).hexdigest()[:12]


def document_frequencies(
    references: References, order: int = 4, *, size: int = segments.SIZE, buckets: int = BUCKETS
) -> Frequencies:
    """Count the documents of n-grams in two passes: the first marks hash buckets met in two documents, the second
    counts exactly, but only n-grams of those. So memory grows with the n-grams in two documents and those that fall
    into a bucket with others, not with the text.

    Args:
        references: the reference set of each segment, as a sequence or as a callable that starts a stream anew. The
            corpus is part of the metric: the code of Vedantam et al. takes those of the candidates at hand, where an
            article with six candidates is six documents (its set is given six times).
        order: the longest n-grams.
        size: documents read at a time; the result does not depend on it, nor on `buckets`.
        buckets: of the first pass, 5 bytes each; more than there are n-grams leave the second less to do.

    Raises:
        BadInput: no documents, one without references, or not the same number in both passes; it names the row.
        ValueError: an order or buckets below 1.
    """
    if order < 1 or buckets < 1:
        raise ValueError(f"order and buckets should be at least 1, not {order} and {buckets}")
    start = references if callable(references) else lambda: references
    is_shared, documents = _shared(_documents(start(), size), order, buckets)
    if not documents:
        raise BadInput("references: expected at least one document, found none")
    found, parts, again = _NONE, [_NONE], 0
    for batch in _documents(start(), size):
        again += len(batch.ends) - 1
        document = batch.owner[owners(batch.ref_ends)]
        for hashes, places in hashed(batch.ref_words, batch.ref_ends, batch.types, order):
            kept = is_shared[hashes % np.uint64(buckets)]
            parts.append(_counted(hashes[kept], document[places[kept]]))
        if sum(len(part[0]) for part in parts) > _PENDING:
            found, parts = _inserted(found, _added(parts)), [_NONE]
    if again != documents:
        raise BadInput(f"references: {documents} documents at first, then {again}; a stream cannot be read twice")
    hashes, counts = _inserted(found, _added(parts))
    return Frequencies(documents, order, hashes[counts > 1], counts[counts > 1])


_NONE = (np.empty(0, np.uint64), np.empty(0, np.int64))


def _documents(references: Iterable[Sequence[Tokens]], size: int) -> Iterator[Batch]:
    """Reference sets without candidates."""
    one, other = tee(references)
    return segments.batches((() for _ in one), other, size=size)


def _shared(batches: Iterator[Batch], order: int, buckets: int) -> tuple[npt.NDArray[np.bool_], int]:
    """Which buckets are met in two documents, and the number of documents."""
    first, is_shared, documents = np.zeros(buckets, np.int32), np.zeros(buckets, np.bool_), 0
    for batch in batches:
        owner = (1 + documents + batch.owner[owners(batch.ref_ends)]).astype(np.int32)  # 0 is nobody
        for hashes, places in hashed(batch.ref_words, batch.ref_ends, batch.types, order):
            bucket = (hashes % np.uint64(buckets)).astype(np.int64)
            document = owner[places]
            before = first[bucket]
            is_new = before == 0
            new, by = bucket[is_new], document[is_new]
            first[new] = by  # of several one stays, from which the others differ
            is_shared[new[first[new] != by]] = True
            is_shared[bucket[~is_new & (before != document)]] = True
        documents += len(batch.ends) - 1
    return is_shared, documents


def _counted(hashes: Hashes, document: Ints) -> tuple[Hashes, Ints]:
    """The documents of each n-gram; they come in order, so that a stable sort leaves them in order within an n-gram."""
    order = np.argsort(hashes, kind="stable")
    hashes, document = hashes[order], document[order]
    is_first = np.ones(len(hashes), np.bool_)
    is_first[1:] = (hashes[1:] != hashes[:-1]) | (document[1:] != document[:-1])
    hashes = hashes[is_first]
    start = _runs(hashes)
    return hashes[start], np.diff(start, append=len(hashes))


def _added(parts: list[tuple[Hashes, Ints]]) -> tuple[Hashes, Ints]:
    """Sums of the counts of parts."""
    hashes, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    start = _runs(hashes)
    return hashes[start], np.add.reduceat(counts[order], start) if len(start) else counts


def _inserted(found: tuple[Hashes, Ints], part: tuple[Hashes, Ints]) -> tuple[Hashes, Ints]:
    """The counts of a part added to what was found; to sort all of it anew would take several times its memory."""
    (known, counts), (hashes, more) = found, part
    place = np.searchsorted(known, hashes)
    is_known = place < len(known)
    is_known[is_known] = known[place[is_known]] == hashes[is_known]
    counts[place[is_known]] += more[is_known]
    is_new = ~is_known
    return np.insert(known, place[is_new], hashes[is_new]), np.insert(counts, place[is_new], more[is_new])


def _runs(hashes: Hashes) -> Ints:
    """Where each value starts among sorted ones."""
    return np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])[: len(hashes)])


def idf(frequencies: Frequencies) -> Callable[[Hashes], Floats]:
    """log(N / max(1, documents)) of n-grams. They are looked up by their first bits, which few of them share."""
    known, bits = frequencies.hashes, max(1, (2 * len(frequencies.hashes)).bit_length())
    shift = np.uint64(64 - bits)
    starts = np.searchsorted(known >> shift, np.arange((1 << bits) + 1, dtype=np.uint64))
    rare, values = np.log(frequencies.documents), np.log(frequencies.documents) - np.log(frequencies.counts)

    def look_up(hashes: Hashes) -> Floats:
        found = np.full(len(hashes), rare)
        prefix = (hashes >> shift).astype(np.int64)
        place, end = starts[prefix], starts[prefix + 1]
        open_ = np.flatnonzero(place < end)
        while len(open_):
            is_hit = known[place[open_]] == hashes[open_]
            found[open_[is_hit]] = values[place[open_[is_hit]]]
            open_ = open_[~is_hit]
            place[open_] += 1
            open_ = open_[place[open_] < end[open_]]
        return found

    return look_up


def hashed(words: Ints, ends: Ints, types: list[str], order: int) -> Iterator[tuple[Hashes, Ints]]:
    """64 bits for each n-gram, the same in every batch, and where it starts; by order."""
    token, places, room = token_hashes(types)[words], np.arange(len(words)), left(ends)
    hashes = token
    yield hashes, places
    for n in range(2, order + 1):
        fits = room[places] >= n
        places = places[fits]
        hashes = _mixed(hashes[fits] + token[places + n - 1] * _ODD)
        yield hashes, places


_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: one more place changes every bit


def token_hashes(types: list[str]) -> Hashes:
    """64 bits for each token: the sum over its characters of what each is where it stands."""
    ends = np.zeros(len(types) + 1, np.int64)
    np.cumsum([*map(len, types)], out=ends[1:])
    letters = np.frombuffer("".join(types).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    places = (np.arange(ends[-1]) - ends[owners(ends)]).astype(np.uint64)
    sums = np.zeros(len(letters) + 1, np.uint64)
    np.cumsum(_mixed(letters + _mixed((places + np.uint64(1)) * _ODD)), out=sums[1:])
    return _mixed(sums[ends[1:]] - sums[ends[:-1]] + _ODD)


def _mixed(values: Hashes) -> Hashes:
    """Every bit made to depend on every other (the finaliser of SplitMix64; Steele et al., 2014)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
