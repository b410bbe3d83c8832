"""W-CIDEr: cosines of TF-IDF vectors of n-grams, each worth as much as its reference (appendix B.4, equation B.5;
AAC-17), and CIDEr-D with weights. Document frequencies are a part of the metric, see `frequencies`.
"""

from collections.abc import Callable, Iterator
from typing import Literal, get_args

import numpy as np

from pipeline.metrics.overlap.frequencies import Frequencies, Hashes, build_idf, hash_ngrams
from pipeline.metrics.overlap.metric import Metric, add_count, check_choice, divide, mean, signature
from pipeline.metrics.overlap.ngrams import count_repeats, find_matches
from pipeline.metrics.overlap.segments import Batch, count_remaining, list_owners
from pipeline.metrics.resample import Floats

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
        total = np.bincount(batch.owner, weights=batch.weights * similar)
        return add_count(total / np.bincount(batch.owner))

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
        dot = np.bincount(grams.reference, weights=weights, minlength=references)
        yield divide(dot, norm)
