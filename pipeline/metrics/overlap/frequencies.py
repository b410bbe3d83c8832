"""In how many documents each n-gram stands, for the TF-IDF of CIDEr (appendix B.4).

A document is the reference set of a segment, as in the code of Vedantam et al. (2015). An n-gram in one document weighs
as much as one in none, log N, so only those in two or more are kept.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import tee
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.errors import BadInput
from pipeline.metrics.overlap import segments
from pipeline.metrics.overlap.metric import Floats
from pipeline.metrics.overlap.segments import Batch, Ints, Tokens, count_remaining, list_owners

Hashes = npt.NDArray[np.uint64]
Marks = npt.NDArray[np.bool_]  # [buckets]
References = Iterable[Sequence[Tokens]] | Callable[[], Iterable[Sequence[Tokens]]]

BUCKETS = 1 << 24
_PENDING = 1 << 20  # n-grams counted apart before they are added up


class Frequencies(NamedTuple):
    """Document counts of the n-grams in two or more documents; 64 bits identify an n-gram."""

    documents: int
    order: int  # of the longest n-grams
    hashes: Hashes  # [g] ascending
    counts: Ints  # [g] at least 2

    def digest(self) -> str:
        """Return twelve hexadecimal digits that identify the documents in a signature."""
        parts = (f"{self.documents} {self.order}".encode(), self.hashes.astype("<u8"), self.counts.astype("<i8"))
        return hashlib.sha256(b"".join(bytes(part) for part in parts)).hexdigest()[:12]


def count_documents(
    references: References, order: int = 4, *, size: int = segments.SIZE, buckets: int = BUCKETS
) -> Frequencies:
    """Count the documents of each n-gram, in memory that does not grow with the text.

    Short n-grams come first: an n-gram in two documents begins with one that is, so few long ones are counted. The
    counts of a batch go to a file; meanwhile the hash buckets seen twice are marked, and only their n-grams are added
    up. The files take 24 bytes a token and 16 an n-gram of each batch.

    Args:
        references: the reference set of each segment, a stream or a callable that starts one. The corpus is part of
            the metric: the code of Vedantam et al. uses those of the given candidates, where an article with six
            candidates is six documents (its set is given six times).
        order: the longest n-grams.
        size: documents read at a time; the result does not depend on it, nor on `buckets`.
        buckets: 3 bytes each; more than there are n-grams leave less to add up.

    Raises:
        BadInput: no documents, or one without references; it names the row.
        ValueError: an order or buckets below 1.
    """
    if order < 1 or buckets < 1:
        raise ValueError(f"order and buckets should be at least 1, not {order} and {buckets}")
    documents, batches = 0, 0
    is_shared, is_seen, is_twice = (np.zeros(buckets, np.bool_) for _ in range(3))  # the first by all orders
    order_counts = [_NONE]
    with tempfile.TemporaryFile() as text:
        for batch in _read_documents(references() if callable(references) else references, size):
            documents, batches = documents + len(batch.ends) - 1, batches + 1
            _save(text, hash_tokens(batch.types)[batch.ref_words])
            _save(text, count_remaining(batch.ref_ends))
            _save(text, batch.owner[list_owners(batch.ref_ends)])
        if not documents:
            raise BadInput("references: expected at least one document, found none")
        for n in range(1, order + 1):
            text.seek(0)
            candidates = (_list_candidates(_load(text), _load(text), _load(text), n, is_shared) for _ in range(batches))
            is_seen.fill(False)
            is_twice.fill(False)
            hashes, counts = _sum_batches(candidates, is_seen, is_twice)
            order_counts.append((hashes[counts > 1], counts[counts > 1]))
            is_shared[_bucket(order_counts[-1][0], buckets)] = True
    hashes, counts = _merge_parts(order_counts)
    return Frequencies(documents, order, hashes, counts)


def _list_candidates(token: Hashes, room: Ints, document: Ints, order: int, is_shared: Marks) -> tuple[Hashes, Ints]:
    """List the n-grams of a batch that may be in two documents, and their documents.

    Their first n - 1 words and their last one are in two documents.
    """
    hashes, places = token, np.arange(len(token))
    for n in range(2, order + 1):
        is_candidate = (room[places] >= n) & is_shared[_bucket(hashes, len(is_shared))]
        places, hashes = places[is_candidate], hashes[is_candidate]
        last = token[places + n - 1]
        is_candidate = is_shared[_bucket(last, len(is_shared))]
        places, hashes = places[is_candidate], _mix(hashes[is_candidate] + last[is_candidate] * _ODD)
    return hashes, document[places]


def _sum_batches(candidates: Iterator[tuple[Hashes, Ints]], is_seen: Marks, is_twice: Marks) -> tuple[Hashes, Ints]:
    """Sum the counts of batches, of all n-grams in two documents and some in one; the marks come empty."""
    batches, buckets = 0, len(is_seen)
    with tempfile.TemporaryFile() as spill:
        for hashes, document in candidates:
            grams, counts = _count_batch(hashes, document)
            bucket = _bucket(grams, buckets)
            is_twice[bucket[is_seen[bucket] | (counts > 1)]] = True
            is_seen[bucket] = True
            batches += 1
            _save(spill, grams)
            _save(spill, counts)
        spill.seek(0)
        total, parts = _NONE, [_NONE]
        for _ in range(batches):
            grams, counts = _load(spill), _load(spill)
            is_candidate = is_twice[_bucket(grams, buckets)]
            parts.append((grams[is_candidate], counts[is_candidate]))
            if sum(len(part[0]) for part in parts) > _PENDING:
                total, parts = _insert_part(total, _merge_parts(parts)), [_NONE]
    return _insert_part(total, _merge_parts(parts))


def _save(file: IO[bytes], values: Hashes | Ints) -> None:
    np.save(file, values, allow_pickle=False)


def _load(file: IO[bytes]) -> Any:
    return np.load(file, allow_pickle=False)


_NONE = (np.empty(0, np.uint64), np.empty(0, np.int64))


def _bucket(hashes: Hashes, buckets: int) -> Ints:
    return (hashes % np.uint64(buckets)).astype(np.int64)


def _read_documents(references: Iterable[Sequence[Tokens]], size: int) -> Iterator[Batch]:
    """Read reference sets without candidates."""
    first, second = tee(references)
    return segments.read_batches((() for _ in first), second, size=size)


def _count_batch(hashes: Hashes, document: Ints) -> tuple[Hashes, Ints]:
    """Count the documents of each n-gram; a stable sort keeps documents in order within an n-gram."""
    order = np.argsort(hashes, kind="stable")
    hashes, document = hashes[order], document[order]
    is_first = np.ones(len(hashes), np.bool_)
    is_first[1:] = (hashes[1:] != hashes[:-1]) | (document[1:] != document[:-1])
    hashes = hashes[is_first]
    start = _find_runs(hashes)
    return hashes[start], np.diff(start, append=len(hashes))


def _merge_parts(parts: list[tuple[Hashes, Ints]]) -> tuple[Hashes, Ints]:
    """Sum the counts of parts."""
    hashes, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    start = _find_runs(hashes)
    return hashes[start], np.add.reduceat(counts[order], start) if len(start) else counts


def _insert_part(total: tuple[Hashes, Ints], part: tuple[Hashes, Ints]) -> tuple[Hashes, Ints]:
    """Add the counts of a part to the total; sorting all of it again would take several times its memory."""
    (known_hashes, counts), (hashes, new_counts) = total, part
    place = np.searchsorted(known_hashes, hashes)
    is_known = place < len(known_hashes)
    is_known[is_known] = known_hashes[place[is_known]] == hashes[is_known]
    counts[place[is_known]] += new_counts[is_known]
    is_new = ~is_known
    return np.insert(known_hashes, place[is_new], hashes[is_new]), np.insert(counts, place[is_new], new_counts[is_new])


def _find_runs(hashes: Hashes) -> Ints:
    """Find where each value starts among sorted values."""
    return np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])[: len(hashes)])


def build_idf(frequencies: Frequencies) -> Callable[[Hashes], Floats]:
    """Build the lookup of log(N / max(1, documents)); a table of first bits narrows the search."""
    sorted_hashes, bits = frequencies.hashes, max(1, (2 * len(frequencies.hashes)).bit_length())
    shift = np.uint64(64 - bits)
    starts = np.searchsorted(sorted_hashes >> shift, np.arange((1 << bits) + 1, dtype=np.uint64))
    rare_idf = np.log(frequencies.documents)
    known_idf = rare_idf - np.log(frequencies.counts)

    def look_up(hashes: Hashes) -> Floats:
        values = np.full(len(hashes), rare_idf)
        prefix = (hashes >> shift).astype(np.int64)
        place, end = starts[prefix], starts[prefix + 1]
        pending = np.flatnonzero(place < end)
        while len(pending):
            is_match = sorted_hashes[place[pending]] == hashes[pending]
            matched = pending[is_match]
            values[matched] = known_idf[place[matched]]
            pending = pending[~is_match]
            place[pending] += 1
            pending = pending[place[pending] < end[pending]]
        return values

    return look_up


def hash_ngrams(words: Ints, ends: Ints, types: list[str], order: int) -> Iterator[tuple[Hashes, Ints]]:
    """Yield 64 bits for each n-gram, the same in every batch, and where it starts; by order."""
    token, places, room = hash_tokens(types)[words], np.arange(len(words)), count_remaining(ends)
    hashes = token
    yield hashes, places
    for n in range(2, order + 1):
        fits = room[places] >= n
        places = places[fits]
        hashes = _mix(hashes[fits] + token[places + n - 1] * _ODD)
        yield hashes, places


_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: one more place changes every bit


def hash_tokens(types: list[str]) -> Hashes:
    """Hash each token to 64 bits: the sum over its characters and their places."""
    ends = np.zeros(len(types) + 1, np.int64)
    np.cumsum([*map(len, types)], out=ends[1:])
    letters = np.frombuffer("".join(types).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    places = (np.arange(ends[-1]) - ends[list_owners(ends)]).astype(np.uint64)
    sums = np.zeros(len(letters) + 1, np.uint64)
    np.cumsum(_mix(letters + _mix((places + np.uint64(1)) * _ODD)), out=sums[1:])
    return _mix(sums[ends[1:]] - sums[ends[:-1]] + _ODD)


def _mix(values: Hashes) -> Hashes:
    """Mix the bits so that each depends on every other (the finaliser of SplitMix64; Steele et al., 2014)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
