"""W-ROUGE-L: F of a longest common subsequence that counts as much as its reference is worth (appendix B.3, equation
B.4; AAC-16), in three readings, as B.4 divides the recall of all references by the length of one.

LCS_j is the length of the longest common subsequence of candidate c and reference r_j, F = (1 + beta²) P R / (R +
beta² P). All are in [0, 1], and 0 for an empty candidate or reference. All pairs are measured at once, bit-parallel,
one step a reference token (Hyyrö, 2004): bit i of a pair's row after t tokens is 0 where the candidate's token i makes
the LCS with the first t longer. A row is a machine word up to 64 tokens, beyond it a Python integer.
"""

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pipeline.metrics.overlap.metric import Metric, add_count, check_choice, divide, mean, signature
from pipeline.metrics.overlap.segments import Batch, list_owners, list_starts
from pipeline.metrics.resample import Floats, Ints

Rows = npt.NDArray[Any]  # of bits: uint64, or objects that are Python integers
BITS = 64


def measure_lengths(batch: Batch) -> Ints:
    """Measure the LCS of each reference with its candidate: int64 [m]."""
    is_match = locate_matches(batch) >= 0
    return np.bincount(list_owners(batch.ref_ends)[is_match], minlength=len(batch.owner))


def locate_matches(batch: Batch) -> Ints:
    """Locate each reference token of the LCS in its candidate, else -1: int64 [R], from 0.

    A pair may have several LCS. This is the canonical one: from the last token back it takes of the candidate, and then
    of the reference, the earliest places that still leave it as long.
    """
    lcs_places = np.full(len(batch.ref_words), -1, np.int64)
    sizes, ref_sizes = np.diff(batch.ends), np.diff(batch.ref_ends)
    for segments, dtype in (((sizes > 0) & (sizes <= BITS), np.uint64), (sizes > BITS, object)):
        if segments.any():
            pairs = segments[batch.owner]
            tokens = np.repeat(pairs, ref_sizes)
            part = replace(
                batch,
                words=batch.words[np.repeat(segments, sizes)],
                ends=np.concatenate([[0], np.cumsum(sizes[segments])]),
                ref_words=batch.ref_words[tokens],
                ref_ends=np.concatenate([[0], np.cumsum(ref_sizes[pairs])]),
                owner=(np.cumsum(segments) - 1)[batch.owner[pairs]],
                weights=batch.weights[pairs],
            )
            lcs_places[tokens] = _locate_matches(part, dtype)
    return lcs_places


def _locate_matches(batch: Batch, dtype: type) -> Ints:
    """Locate matches in candidates that all have tokens, with rows of one type."""
    sizes, masks = np.diff(batch.ref_ends), _build_masks(batch, dtype)
    order = np.argsort(-sizes, kind="stable")  # pairs that still have a token at a step stand in front
    alive = len(sizes) - np.searchsorted(sizes[order[::-1]], np.arange(sizes.max()), side="right")
    steps = [batch.ref_ends[:-1][order[:count]] + step for step, count in enumerate(alive)]  # tokens of each
    width: Rows = np.diff(batch.ends)[batch.owner[order]].astype(dtype)
    full = (np.ones_like(width) << width) - 1  # 64 bits too, as a machine word wraps around to 0, then to all bits
    rows, rows_after = full.copy(), np.empty_like(masks)  # the row of its pair after each reference token
    for tokens in steps:
        row = rows[: len(tokens)]
        hit = row & masks[tokens]
        rows[: len(tokens)] = rows_after[tokens] = ((row + hit) | (row - hit)) & full[: len(tokens)]
    lcs_places = np.full(len(masks), -1, np.int64)
    prefix = full.copy()  # the part of each candidate before its last match
    for step, tokens in reversed([*enumerate(steps)]):
        before = rows_after[tokens - 1] if step else full[: len(tokens)]
        # up to the last candidate token that adds one
        upto = _fill_below(~rows_after[tokens] & prefix[: len(tokens)], int(width.max()))
        is_match = (upto ^ (upto >> 1)) & before != 0  # and adds none without this reference token
        prefix[: len(tokens)] = np.where(is_match, upto >> 1, upto)
        lcs_places[tokens] = np.where(is_match, np.bitwise_count(upto).astype(np.int64) - 1, -1)
    return lcs_places


def _build_masks(batch: Batch, dtype: type) -> Rows:
    """Mark where the word of each reference token stands in its candidate, as bits: [R]."""
    segment, kinds = list_owners(batch.ends), len(batch.types)
    bits = np.array(1, dtype) << (np.arange(len(batch.words)) - batch.ends[segment]).astype(dtype)
    keys = segment * kinds + batch.words
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    table = np.bitwise_or.reduceat(bits[order], starts)
    reference_keys = batch.owner[list_owners(batch.ref_ends)] * kinds + batch.ref_words
    key_index = np.searchsorted(distinct, reference_keys).clip(max=len(distinct) - 1)
    return np.where(distinct[key_index] == reference_keys, table[key_index], np.array(0, dtype))


def _fill_below(row: Rows, width: int) -> Rows:
    """Set the highest bit and all below it."""
    shift = 1
    while shift < width:
        row = row | (row >> shift)
        shift *= 2
    return row


Reading = Literal["coco", "union", "best"]
Length = Literal["mean", "shortest", "longest"]


def rouge_l(reading: Reading = "coco", beta: float = 1.2, length: Length = "mean") -> Metric:
    """Build W-ROUGE-L; the corpus score is the mean of the segments'.

    Args:
        reading: `coco`: P = max_j s_j LCS_j / |c| and R = max_j s_j LCS_j / |r_j|, maybe of two references, as in
            coco-caption's code, which this equals with all s_j = 1; the one to hold against Tables 3, 4 and 7.
            `union`: the numerator of B.4, where each candidate token counts once, as much as the best of the references
            whose canonical LCS (`locate_matches`) covers it; P over |c|, R over the `length` of the references, cut
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
        common = measure_lengths(batch)
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
    places, pair = locate_matches(batch), list_owners(batch.ref_ends)
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
