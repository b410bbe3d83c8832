"""W-ROUGE-L: F of a longest common subsequence that counts as much as its reference is worth (appendix B.3, equation
B.4; AAC-16), in three readings, as B.4 divides the recall of all references by the length of one.

LCS_j is the length of the longest common subsequence of candidate c and reference r_j, F = (1 + beta²) P R / (R +
beta² P). All are in [0, 1], and 0 for an empty candidate or reference.
"""

from typing import Literal, get_args

import numpy as np

from pipeline.metrics.overlap import lcs
from pipeline.metrics.overlap.metric import Metric, add_count, check_choice, divide, mean, signature
from pipeline.metrics.overlap.segments import Batch, list_owners, list_starts
from pipeline.metrics.resample import Floats

Reading = Literal["coco", "union", "best"]
Length = Literal["mean", "shortest", "longest"]


def rouge_l(reading: Reading = "coco", beta: float = 1.2, length: Length = "mean") -> Metric:
    """Build W-ROUGE-L; the corpus score is the mean of the segments'.

    Args:
        reading: `coco`: P = max_j s_j LCS_j / |c| and R = max_j s_j LCS_j / |r_j|, maybe of two references, as in
            coco-caption's code, which this equals with all s_j = 1; the one to hold against Tables 3, 4 and 7.
            `union`: the numerator of B.4, where each candidate token counts once, as much as the best of the references
            whose canonical LCS (`lcs.locate_matches`) covers it; P over |c|, R over the `length` of the references, cut
            at 1, as several references may cover more tokens than one of them has.
            `best`: max_j s_j F_j, which with all s_j = 1 and beta 1 equals rouge-score's `score_multi`.
        beta: how much more recall counts than precision, above 0; 1.2 in coco-caption.
        length: of `union`, whether |r| is the references' mean length, the shortest or the longest.

    ValueError for an unknown option, or a beta that is not above 0.
    """
    check_choice("reading", reading, get_args(Reading))
    check_choice("length", length, get_args(Length))
    if not 0 < beta < np.inf:
        raise ValueError(f"beta should be above 0, not {beta}")

    def stats(batch: Batch) -> Floats:
        if reading == "union":
            return add_count(_f_score(*_measure_union(batch, length), beta))
        common = lcs.measure_lengths(batch)
        precision = divide(common, np.diff(batch.ends)[batch.owner])
        recall = divide(common, np.diff(batch.ref_ends))
        best = list_starts(batch.owner)
        if reading == "best":
            return add_count(np.maximum.reduceat(batch.weights * _f_score(precision, recall, beta), best))
        precision, recall = (np.maximum.reduceat(batch.weights * ratio, best) for ratio in (precision, recall))
        return add_count(_f_score(precision, recall, beta))

    options = {"length": length} if reading == "union" else {}
    return Metric("ROUGE-L", stats, mean, signature(reading=reading, beta=beta, **options))


def _measure_union(batch: Batch, length: Length) -> tuple[Floats, Floats]:
    """Compute precision and recall of the union of the weighted LCS, [n] each."""
    places, pair = lcs.locate_matches(batch), list_owners(batch.ref_ends)
    is_covering = places >= 0
    pair = pair[is_covering]
    gains = np.zeros(len(batch.words))
    np.maximum.at(gains, batch.ends[batch.owner[pair]] + places[is_covering], batch.weights[pair])
    sizes, ref_sizes, starts = np.diff(batch.ends), np.diff(batch.ref_ends), list_starts(batch.owner)
    covered = np.bincount(list_owners(batch.ends), gains, minlength=len(sizes))
    if length == "mean":
        measure = np.add.reduceat(ref_sizes, starts) / np.bincount(batch.owner)
    else:
        measure = (np.minimum if length == "shortest" else np.maximum).reduceat(ref_sizes, starts)
    return divide(covered, sizes), np.minimum(divide(covered, measure), 1.0)


def _f_score(precision: Floats, recall: Floats, beta: float) -> Floats:
    return divide((1 + beta**2) * precision * recall, recall + beta**2 * precision)
