"""W-ROUGE-L: F of a longest common subsequence that counts as much as its reference is worth (appendix B.3, equation
B.4; AAC-16), in three readings, as B.4 divides the recall of all references by the length of one.

LCS_j is the length of the longest common subsequence of candidate c and reference r_j, F = (1 + beta²) P R / (R +
beta² P). All are in [0, 1], and 0 for an empty candidate or reference.
"""

from typing import Literal, get_args

import numpy as np

from pipeline.metrics.overlap import lcs
from pipeline.metrics.overlap.metric import Floats, Metric, mean, signature, with_count
from pipeline.metrics.overlap.segments import Batch, Ints, firsts, owners

Reading = Literal["coco", "union", "best"]
Length = Literal["mean", "shortest", "longest"]


def rouge_l(reading: Reading = "coco", beta: float = 1.2, length: Length = "mean") -> Metric:
    """W-ROUGE-L; of a corpus the mean of its segments.

    Args:
        reading: `coco`: P = max_j s_j LCS_j / |c| and R = max_j s_j LCS_j / |r_j|, maybe of two references, as in
            coco-caption's code, which this equals with all s_j = 1; the one to hold against Tables 3, 4 and 7.
            `union`: the numerator of B.4, where each candidate token counts once, as much as the best of the references
            whose canonical LCS (`lcs.places`) covers it; P over |c|, R over the `length` of the references, cut at 1,
            as several references may cover more tokens than one of them has.
            `best`: max_j s_j F_j, which with all s_j = 1 and beta 1 equals rouge-score's `score_multi`.
        beta: how much more recall counts than precision, above 0; 1.2 in coco-caption.
        length: of `union`, whether |r| is the references' mean length, the shortest or the longest.

    Raises:
        ValueError: an unknown option, or a beta that is not above 0.
    """
    for name, value, known in (("reading", reading, get_args(Reading)), ("length", length, get_args(Length))):
        if value not in known:
            raise ValueError(f"{name} should be one of {', '.join(known)}, not {value!r}")
    if not 0 < beta < np.inf:
        raise ValueError(f"beta should be above 0, not {beta}")

    def stats(batch: Batch) -> Floats:
        if reading == "union":
            return with_count(_f(*_union(batch, length), beta))
        common = lcs.lengths(batch)
        precision = _over(common, np.diff(batch.ends)[batch.owner])
        recall = _over(common, np.diff(batch.ref_ends))
        best = firsts(batch.owner)
        if reading == "best":
            return with_count(np.maximum.reduceat(batch.weights * _f(precision, recall, beta), best))
        precision, recall = (np.maximum.reduceat(batch.weights * each, best) for each in (precision, recall))
        return with_count(_f(precision, recall, beta))

    options = {"length": length} if reading == "union" else {}
    return Metric("ROUGE-L", stats, mean, signature(reading=reading, beta=beta, **options))


def _union(batch: Batch, length: Length) -> tuple[Floats, Floats]:
    """Precision and recall of the union of the weighted LCS, [n] each."""
    places, pair = lcs.places(batch), owners(batch.ref_ends)
    is_covering = places >= 0
    pair = pair[is_covering]
    gains = np.zeros(len(batch.words))
    np.maximum.at(gains, batch.ends[batch.owner[pair]] + places[is_covering], batch.weights[pair])
    sizes, ref_sizes, starts = np.diff(batch.ends), np.diff(batch.ref_ends), firsts(batch.owner)
    covered = np.bincount(owners(batch.ends), gains, minlength=len(sizes))
    if length == "mean":
        measure = np.add.reduceat(ref_sizes, starts) / np.bincount(batch.owner)
    else:
        measure = (np.minimum if length == "shortest" else np.maximum).reduceat(ref_sizes, starts)
    return _over(covered, sizes), np.minimum(_over(covered, measure), 1.0)


def _f(precision: Floats, recall: Floats, beta: float) -> Floats:
    return _over((1 + beta**2) * precision * recall, recall + beta**2 * precision)


def _over(part: Ints | Floats, whole: Ints | Floats) -> Floats:
    """The quotient, 0 where the divisor is."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
