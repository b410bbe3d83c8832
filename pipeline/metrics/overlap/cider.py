"""W-CIDEr: cosines of TF-IDF vectors of n-grams, each worth as much as its reference (appendix B.4, equation B.5;
AAC-17), and CIDEr-D with weights. Document frequencies are a part of the metric.

A document is the reference set of a segment, as in the code of Vedantam et al. (2015). An n-gram in one document weighs
as much as one in none, log N, so only those in two or more are kept.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import tee
from typing import IO, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from pipeline.errors import BadInput
from pipeline.metrics.overlap import segments
from pipeline.metrics.overlap.metric import Metric, add_count, check_choice, divide, mean, signature
from pipeline.metrics.overlap.segments import Batch, Tokens, count_remaining, count_repeats, find_matches, list_owners
from pipeline.metrics.resample import Floats, Ints

Hashes = npt.NDArray[np.uint64]
References = Iterable[Sequence[Tokens]] | Callable[[], Iterable[Sequence[Tokens]]]
_FILE_BITS = 7  # so many first bits of a hash number the file that counts it
_INDEX_BITS = 18  # so many first bits of a hash index the hashes in memory
_INDEX_SHIFT = np.uint64(64 - _INDEX_BITS)


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


def count_documents(references: References, order: int = 4, *, size: int = segments.SIZE) -> Frequencies:
    """Count the documents of each n-gram.

    The hashes of a batch go to files by their first bits, and the files are counted one by one. So memory holds a
    batch, a share of all n-grams, and the result.
    `references` has the reference set of each segment, a stream or a callable that starts one; an article with six
    candidates is six documents. `order` is of the longest n-grams; the result does not depend on `size`, the documents
    read at a time. BadInput for no documents, or one without references; it names the row.
    """
    documents, first, second = 0, *tee(references() if callable(references) else references)
    edges = np.arange(1, 1 << _FILE_BITS, dtype=np.uint64) << np.uint64(64 - _FILE_BITS)
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.SpooledTemporaryFile(1 << 18)) for _ in range(len(edges) + 1)]
        for batch in segments.read_batches((() for _ in first), second, size=size):  # without candidates
            documents += len(batch.ends) - 1
            hashes = _list_ngrams(batch, order)
            for file, part in zip(files, np.split(hashes, np.searchsorted(hashes, edges)), strict=True):
                file.write(part.tobytes())
        if not documents:
            raise BadInput("references: expected at least one document, found none")
        common, counts = map(np.concatenate, zip(*map(_count_common, files), strict=True))
    return Frequencies(documents, order, common, counts)


def _list_ngrams(batch: Batch, order: int) -> Hashes:
    """List the n-grams of each document of a batch, each once a document: ascending hashes."""
    document = batch.owner[list_owners(batch.ref_ends)]
    times = count_repeats(batch.ref_words, document, count_remaining(batch.ref_ends), order)
    ngrams = hash_ngrams(batch.ref_words, batch.ref_ends, batch.types, order)
    distinct = [hashes[counts[places] > 0] for (hashes, places), counts in zip(ngrams, times, strict=True)]
    return np.sort(np.concatenate(distinct))


def _count_common(file: IO[bytes]) -> tuple[Hashes, Ints]:
    """Return the distinct hashes that a file has twice or more, ascending, and how often."""
    file.seek(0)
    hashes, counts = np.unique(np.frombuffer(file.read(), np.uint64), return_counts=True)
    return hashes[counts > 1], counts[counts > 1]


def build_idf(frequencies: Frequencies) -> Callable[[Hashes], Floats]:
    """Build the lookup of log(N / max(1, documents))."""
    count = len(frequencies.hashes)
    sorted_hashes = np.append(frequencies.hashes, ~np.uint64(0))  # the last one stands for all others
    rare_idf = np.log(frequencies.documents)
    idf = np.append(rare_idf - np.log(frequencies.counts), rare_idf)
    first = np.full(1 << _INDEX_BITS, count)  # by the first bits of a hash: faster than a binary search
    first[(frequencies.hashes >> _INDEX_SHIFT)[::-1]] = np.arange(count)[::-1]

    def look_up(hashes: Hashes) -> Floats:
        place = first[hashes >> _INDEX_SHIFT]
        later = np.flatnonzero(sorted_hashes[place] < hashes)
        while len(later):
            place[later] += 1
            later = later[sorted_hashes[place[later]] < hashes[later]]
        return np.asarray(np.where(sorted_hashes[place] == hashes, idf[place], rare_idf))

    return look_up


def hash_ngrams(words: Ints, ends: Ints, types: list[str], order: int) -> Iterator[tuple[Hashes, Ints]]:
    """Yield 64 bits for each n-gram, the same in every batch, and where it starts; by order."""
    token, places, room = hash_tokens(types), np.arange(len(words)), count_remaining(ends)
    hashes, added = token[words], (token * _ODD)[words]
    yield hashes, places
    for n in range(2, order + 1):
        fits = room[places] >= n
        places = places[fits]
        hashes = _mix(hashes[fits] + added[places + n - 1])
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
        values = values ^ (values >> np.uint64(shift))
        values *= np.uint64(factor)
    return values ^ (values >> np.uint64(31))


Variant = Literal["plain", "d"]
Idf = Callable[[Hashes], Floats]


def cider(frequencies: Frequencies, order: int = 4, variant: Variant = "plain", sigma: float = 6.0) -> Metric:
    """Build W-CIDEr; 0 for an empty candidate. The corpus score is the mean of the segments'.

    Args:
        frequencies: of `count_documents`, of n-grams up to `order` or longer. Of one document all scores are 0.
        order: N, the longest n-grams.
        variant: `plain`: (B.5), (1/K) sum_n (1/N) sum_j s_j cos(c, r_j), in [0, 1]; with all s_j = 1 the CIDEr of the
            article. `d`: what is called CIDEr in most code (pycocoevalcap 1.2), in [0, 10]: the candidate's weights
            are clipped to the reference's in the product, a Gaussian penalty of the difference in length, counted in
            bigrams as that code does, times 10. The 0.006 to 0.009 of the paper's table 7 have no factor of 10.
        sigma: width of the penalty of `d`, in bigrams.

    ValueError for an order below 1 or above that of the frequencies, an unknown variant, a sigma not above 0.
    """
    if not 1 <= order <= frequencies.order:
        raise ValueError(f"order should be between 1 and {frequencies.order}, that of the frequencies, not {order}")
    check_choice("variant", variant, get_args(Variant))
    if not sigma > 0:
        raise ValueError(f"sigma should be above 0, not {sigma}")
    is_d, look_up = variant == "d", build_idf(frequencies)

    def stats(batch: Batch) -> Floats:
        similar = sum(_compute_cosines(batch, order, look_up, is_clipped=is_d), np.zeros(len(batch.owner))) / order
        if is_d:
            sizes, ref_sizes = (np.maximum(np.diff(ends) - 1, 0) for ends in (batch.ends, batch.ref_ends))  # in bigrams
            similar *= 10 * np.exp(-((sizes[batch.owner] - ref_sizes) ** 2) / (2 * sigma**2))
        return add_count(np.bincount(batch.owner, batch.weights * similar) / np.bincount(batch.owner))

    options = {"order": order, "variant": variant, **({"sigma": sigma} if is_d else {})}
    corpus = f"{frequencies.documents}@{frequencies.digest()}"
    return Metric("CIDEr-D" if is_d else "CIDEr", stats, mean, signature(**options, documents=corpus))


def _compute_cosines(batch: Batch, order: int, look_up: Idf, *, is_clipped: bool) -> Iterator[Floats]:
    """Yield the cosine of each reference with its candidate, for n-grams of each order: [m]."""
    references, offset = len(batch.owner), len(batch.ref_words)
    words = np.concatenate([batch.ref_words, batch.words])
    ends = np.concatenate([batch.ref_ends, offset + batch.ends[1:]])
    text = list_owners(ends)  # references, then candidates
    ngrams = hash_ngrams(words, ends, batch.types, order)
    counts = count_repeats(words, text, count_remaining(ends), order)
    for grams, (hashes, places), times in zip(find_matches(batch, order), ngrams, counts, strict=True):
        rarity = np.zeros(len(words))
        rarity[places] = look_up(hashes)
        squares = np.bincount(text, weights=(times * rarity) ** 2, minlength=len(ends) - 1)
        norm = np.sqrt(squares[:references] * squares[references:][batch.owner])
        shared = grams.times[grams.shared]
        shared = (np.minimum(shared, grams.reference_times) if is_clipped else shared) * grams.reference_times
        weights = shared * rarity[offset + grams.first[grams.shared]] ** 2
        yield divide(np.bincount(grams.reference, weights, references), norm)
