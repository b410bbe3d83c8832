"""W-BLEU: n-gram precision in which a match counts as much as its reference is worth (appendix B.1, equations B.1 and
B.2; AAC-11 to AAC-13), and ΔBLEU, which it generalises (Galley et al., 2015; AAC-20).

PRC_n = sum of min(Count(c), max_j s_j Count(r_j)) / sum of Count(c) over the n-grams of c, and BLEU-N is the brevity
penalty times the geometric mean of PRC_1 to PRC_N. Of a corpus, numerators, denominators and lengths are summed first.
With all s_j = 1 this is the BLEU of Papineni et al. (2002), of sacrebleu and nltk.
"""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from pipeline.metrics.overlap.metric import Floats, Metric, signature
from pipeline.metrics.overlap.ngrams import Grams, find_matches
from pipeline.metrics.overlap.segments import Batch, Ints, list_starts

Smoothing = Literal["none", "floor", "add_k", "exp"]
Length = Literal["closest", "shortest", "average"]

VALUES = {"floor": 0.1, "add_k": 1.0}
"""What smoothing adds by default (Chen & Cherry, 2014); sacrebleu's defaults."""


def bleu(
    order: int = 4,
    smoothing: Smoothing = "none",
    smooth_value: float | None = None,
    *,
    length: Length = "closest",
    counts_zero_weight_lengths: bool = True,
    effective_order: bool = False,
) -> Metric:
    """W-BLEU of n-grams up to `order`, in [0, 1]; 0 for an empty candidate and where no word matches.

    Args:
        order: N; the paper has 1 to 4.
        smoothing: of an order without matches: `none` makes the score 0, `floor` gives it `smooth_value` matches,
            `exp` halves the precision with each such order (mteval-v13a); `add_k` adds to matches and totals of
            bigrams and up, matched or not. Chen & Cherry (2014), methods 1, 3 and 2. The paper names none (AAC-13).
        smooth_value: of `floor` and `add_k`, 0.1 and 1 by default.
        length: the reference length of the brevity penalty: the closest to the candidate's (of two the shorter, as in
            Papineni et al.), the shortest, or the average.
        counts_zero_weight_lengths: whether a reference of weight 0 counts for the length. The paper leaves the penalty
            as it is, hence yes (AAC-12); where all weights are 0 every reference counts either way.
        effective_order: leave out orders that no candidate is long enough for, as for single sentences in sacrebleu.

    Returns:
        The metric; statistics are matches [N], totals [N], the candidate's length, the reference length.

    Raises:
        ValueError: an order below 1, an unknown option, or a value for a smoothing that accepts none or not above 0.
    """
    value = _check_options(order, smoothing, smooth_value, length)

    def stats(batch: Batch) -> Floats:
        columns = [*zip(*(_count_precision(grams, batch) for grams in find_matches(batch, order)), strict=True)]
        lengths = _measure_lengths(batch, length, counts_zero_weight_lengths)
        return np.column_stack([*columns[0], *columns[1], *lengths])

    options = {"length": length, "counts_zero_weight_lengths": counts_zero_weight_lengths}
    metric_signature = signature(
        order=order, effective_order=effective_order, **_describe_smoothing(smoothing, value), **options
    )
    return Metric(f"BLEU-{order}", stats, _build_score(order, smoothing, value, effective_order), metric_signature)


def delta_bleu(
    order: int = 4,
    smoothing: Smoothing = "none",
    smooth_value: float | None = None,
    *,
    length: Length = "closest",
    effective_order: bool = False,
) -> Metric:
    """ΔBLEU (Galley et al., 2015), whose weights are in [-1, 1]; arguments as of `bleu`.

    An n-gram counts max_j w_j min(Count(c), Count(r_j)) over the references that have it, of max_j w_j Count(c) over
    all. So a match in bad references alone costs, and the best reference is the measure of what can be had. The weight
    is outside the clipping, where (B.2) has it inside: one word of the candidate that stands twice in a reference of
    weight 0.5 is worth 1 there and 0.5 here. With all weights 1 it is BLEU; a sum that is not above 0 scores 0.

    Raises:
        ValueError: as of `bleu`.
    """
    value = _check_options(order, smoothing, smooth_value, length)

    def stats(batch: Batch) -> Floats:
        columns = [*zip(*(_count_delta(grams, batch) for grams in find_matches(batch, order)), strict=True)]
        return np.column_stack([*columns[0], *columns[1], *_measure_lengths(batch, length, counts_zero=True)])

    metric_signature = signature(
        order=order, effective_order=effective_order, **_describe_smoothing(smoothing, value), length=length
    )
    return Metric(
        f"DeltaBLEU-{order}",
        stats,
        _build_score(order, smoothing, value, effective_order),
        metric_signature,
        lowest=-1.0,
    )


def _check_options(order: int, smoothing: str, value: float | None, length: str) -> float:
    """The value to smooth with; 0 where none is needed."""
    if order < 1:
        raise ValueError(f"order should be at least 1, not {order}")
    for name, choice, choices in (("smoothing", smoothing, get_args(Smoothing)), ("length", length, get_args(Length))):
        if choice not in choices:
            raise ValueError(f"{name} should be one of {', '.join(choices)}, not {choice!r}")
    if smoothing not in VALUES:
        if value is not None:
            raise ValueError(f"smoothing {smoothing} accepts no value, found {value}")
        return 0.0
    checked_value = VALUES[smoothing] if value is None else value
    if not 0 < checked_value < np.inf:
        raise ValueError(f"the value of smoothing should be above 0, not {checked_value}")
    return checked_value


def _describe_smoothing(smoothing: str, value: float) -> dict[str, str]:
    """The smoothing as it stands in the signature."""
    return {"smoothing": f"{smoothing}[{value:g}]" if smoothing in VALUES else smoothing}


def _count_precision(grams: Grams, batch: Batch) -> tuple[Floats, Floats]:
    """Numerator and denominator of PRC_n (B.2) of each candidate."""
    best = np.zeros(len(grams.segment))
    np.maximum.at(best, grams.shared, batch.weights[grams.reference] * grams.reference_times)
    return _sum_by_candidate(np.minimum(grams.times, best), grams, batch), _sum_by_candidate(grams.times, grams, batch)


def _count_delta(grams: Grams, batch: Batch) -> tuple[Floats, Floats]:
    """Numerator and denominator of ΔBLEU's precision of each candidate."""
    best = np.full(len(grams.segment), -np.inf)
    worth = batch.weights[grams.reference] * np.minimum(grams.times[grams.shared], grams.reference_times)
    np.maximum.at(best, grams.shared, worth)
    highest = np.maximum.reduceat(batch.weights, list_starts(batch.owner))
    matches = np.where(np.isfinite(best), best, 0.0)
    return _sum_by_candidate(matches, grams, batch), _sum_by_candidate(grams.times, grams, batch) * highest


def _sum_by_candidate(values: Floats | Ints, grams: Grams, batch: Batch) -> Floats:
    """Sum the values of n-grams of each candidate."""
    sums = np.bincount(grams.segment, weights=values, minlength=len(batch.ends) - 1)
    return sums.astype(np.float64)  # without any value they are integers


def _measure_lengths(batch: Batch, length: Length, counts_zero: bool) -> tuple[Floats, Floats]:
    """Return the length of each candidate and its reference length."""
    candidate_lengths, reference_lengths, start = np.diff(batch.ends), np.diff(batch.ref_ends), list_starts(batch.owner)
    is_weighted = np.logical_or.reduceat(batch.weights != 0, start)
    counts = counts_zero | (batch.weights != 0) | ~is_weighted[batch.owner]
    if length == "average":
        total, count = (
            np.add.reduceat(values, start) for values in (reference_lengths * counts, counts.astype(np.int64))
        )
        return candidate_lengths.astype(np.float64), total / count
    distance = (
        np.abs(reference_lengths - candidate_lengths[batch.owner])
        if length == "closest"
        else np.zeros_like(reference_lengths)
    )
    base = reference_lengths.max() + 1
    order = np.where(counts, distance * base + reference_lengths, np.iinfo(np.int64).max)  # by distance, then by length
    return candidate_lengths.astype(np.float64), (np.minimum.reduceat(order, start) % base).astype(np.float64)


def _build_score(order: int, smoothing: Smoothing, value: float, effective_order: bool) -> Callable[[Floats], Floats]:
    """Build BLEU from statistics, [..., 2 N + 2] -> [...], as sacrebleu has it."""

    def score(stats: Floats) -> Floats:
        matches, totals = stats[..., :order], stats[..., order : 2 * order]
        candidate_length, reference_length = stats[..., -2], stats[..., -1]
        has_match = (matches > 0).any(axis=-1)
        if smoothing == "add_k":
            added = value * (np.arange(order) > 0)
            matches, totals = matches + added, totals + added
        has_ngrams = totals > 0
        is_zero = has_ngrams & (matches <= 0)
        if smoothing == "floor":
            matches = np.where(is_zero, value, matches)
        elif smoothing == "exp":
            matches = np.where(is_zero, 0.5 ** np.cumsum(is_zero, axis=-1), matches)
        usable = has_ngrams & (matches > 0)
        logs = np.log(np.divide(matches, totals, out=np.ones_like(totals), where=usable))
        orders = has_ngrams.sum(axis=-1) if effective_order else np.full(candidate_length.shape, order)
        is_scored = has_match & (usable.sum(axis=-1) == orders) & (orders > 0)
        # exp(1 - r / c) is at most 1 where c < r; elsewhere nothing is taken off
        penalty = np.minimum(
            0.0,
            1
            - np.divide(
                reference_length,
                candidate_length,
                out=np.full_like(candidate_length, np.inf),
                where=candidate_length > 0,
            ),
        )
        return np.where(is_scored, np.exp(penalty + logs.sum(axis=-1) / np.maximum(orders, 1)), 0.0)

    return score
