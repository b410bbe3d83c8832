"""W-BLEU: n-gram precision in which a match counts as much as its reference is worth (appendix B.1, equations B.1 and
B.2; AAC-11 to AAC-13), and ΔBLEU, which it generalises (Galley et al., 2015; AAC-20).

PRC_n = sum of min(Count(c), max_j s_j Count(r_j)) / sum of Count(c) over the n-grams of c; BLEU-N is the brevity
penalty times their geometric mean. With all s_j = 1 this is the BLEU of Papineni et al. (2002), of sacrebleu and nltk.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, get_args

import numpy as np

from pipeline.metrics.overlap.metric import Metric, check_choice, divide, signature
from pipeline.metrics.overlap.segments import Batch, Grams, find_matches, list_starts
from pipeline.metrics.resample import Floats, Ints

Smoothing = Literal["none", "floor", "add_k", "exp"]
Length = Literal["closest", "shortest", "average"]
CountNgrams = Callable[[Grams, Batch], tuple[Floats, Floats]]
VALUES = {"floor": 0.1, "add_k": 1.0}  # what smoothing adds by default (Chen & Cherry, 2014); sacrebleu's defaults


def bleu(
    order: int = 4,
    smoothing: Smoothing = "none",
    smooth_value: float | None = None,
    *,
    length: Length = "closest",
    counts_zero_weight_lengths: bool = True,
    effective_order: bool = False,
) -> Metric:
    """Build W-BLEU of n-grams up to `order`, in [0, 1]; 0 for an empty candidate and where no word matches.

    Args:
        order: N; the paper has 1 to 4.
        smoothing: of an order without matches: `none` makes the score 0, `floor` gives it `smooth_value` matches,
            `exp` halves the precision with each such order (mteval-v13a); `add_k` adds to matches and totals of
            bigrams and up, matched or not. Chen & Cherry (2014), methods 1, 3 and 2. The paper names none (AAC-13).
        smooth_value: of `floor` and `add_k`, 0.1 and 1 by default.
        length: the reference length of the brevity penalty: the closest to the candidate's (of two the shorter), the
            shortest, or the average.
        counts_zero_weight_lengths: whether a reference of weight 0 counts for the length, as in the paper (AAC-12).
        effective_order: leave out orders that no candidate is long enough for, as for single sentences in sacrebleu.

    Returns the metric; statistics are matches [N], totals [N], the candidate's length, the reference length. ValueError
    for an order below 1, an unknown option, or a value for a smoothing that accepts none or not above 0.
    """
    options = _check_options(order, smoothing, smooth_value, length, effective_order)
    stats = partial(options.measure, _count_precision, counts_zero_weight_lengths)
    metric_signature = signature(counts_zero_weight_lengths=counts_zero_weight_lengths, **options.describe())
    return Metric(f"BLEU-{order}", stats, options.score, metric_signature)


def delta_bleu(
    order: int = 4,
    smoothing: Smoothing = "none",
    smooth_value: float | None = None,
    *,
    length: Length = "closest",
    effective_order: bool = False,
) -> Metric:
    """Build ΔBLEU (Galley et al., 2015), whose weights are in [-1, 1]; arguments as of `bleu`.

    An n-gram counts max_j w_j min(Count(c), Count(r_j)) over the references that have it, of max_j w_j Count(c) over
    all. So a match in bad references alone costs. The weight is outside the clipping, where (B.2) has it inside. With
    all weights 1 it is BLEU; a sum that is not above 0 scores 0. ValueError as of `bleu`.
    """
    options = _check_options(order, smoothing, smooth_value, length, effective_order)
    stats = partial(options.measure, _count_delta, True)
    return Metric(f"DeltaBLEU-{order}", stats, options.score, signature(**options.describe()), lowest=-1.0)


def _check_options(
    order: int, smoothing: Smoothing, value: float | None, length: Length, effective_order: bool
) -> "_Options":
    if order < 1:
        raise ValueError(f"order should be at least 1, not {order}")
    check_choice("smoothing", smoothing, get_args(Smoothing))
    check_choice("length", length, get_args(Length))
    if smoothing not in VALUES and value is not None:
        raise ValueError(f"smoothing {smoothing} accepts no value, found {value}")
    if value is not None and not 0 < value < np.inf:
        raise ValueError(f"the value of smoothing should be above 0, not {value}")
    smooth_value = VALUES.get(smoothing, 0.0) if value is None else value
    return _Options(order, smoothing, smooth_value, length, effective_order)


class _Options(NamedTuple):  # the options that both metrics have, checked
    order: int
    smoothing: Smoothing
    smooth_value: float  # 0 where none is needed
    length: Length
    effective_order: bool

    def describe(self) -> dict[str, str | float]:
        """Name the options for the signature."""
        smoothing = f"{self.smoothing}[{self.smooth_value:g}]" if self.smoothing in VALUES else self.smoothing
        options = {"order": self.order, "effective_order": self.effective_order, "length": self.length}
        return {**options, "smoothing": smoothing}

    def measure(self, count_ngrams: CountNgrams, counts_zero: bool, batch: Batch) -> Floats:
        """Compute the statistics of a batch."""
        matches, totals = zip(*(count_ngrams(grams, batch) for grams in find_matches(batch, self.order)), strict=True)
        reference_lengths = _measure_references(batch, self.length, counts_zero)
        return np.column_stack([*matches, *totals, np.diff(batch.ends), reference_lengths])

    def score(self, stats: Floats) -> Floats:
        """Compute BLEU from statistics, [..., 2 N + 2] -> [...], as sacrebleu has it."""
        matches, totals = stats[..., : self.order], stats[..., self.order : 2 * self.order]
        candidate_length, reference_length = stats[..., -2], stats[..., -1]
        has_match = (matches > 0).any(axis=-1)
        if self.smoothing == "add_k":
            added = self.smooth_value * (np.arange(self.order) > 0)
            matches, totals = matches + added, totals + added
        has_ngrams = totals > 0
        is_zero = has_ngrams & (matches <= 0)
        if self.smoothing == "floor":
            matches = np.where(is_zero, self.smooth_value, matches)
        elif self.smoothing == "exp":
            matches = np.where(is_zero, 0.5 ** np.cumsum(is_zero, axis=-1), matches)
        usable = has_ngrams & (matches > 0)
        logs = np.log(np.divide(matches, totals, out=np.ones_like(totals), where=usable))
        orders = has_ngrams.sum(axis=-1) if self.effective_order else np.full(candidate_length.shape, self.order)
        is_scored = has_match & (usable.sum(axis=-1) == orders) & (orders > 0)
        # exp(1 - r / c) is at most 1 where c < r; elsewhere nothing is taken off
        penalty = np.minimum(0.0, 1 - divide(reference_length, candidate_length))
        return np.where(is_scored, np.exp(penalty + logs.sum(axis=-1) / np.maximum(orders, 1)), 0.0)


def _count_precision(grams: Grams, batch: Batch) -> tuple[Floats, Floats]:
    """Compute numerator and denominator of PRC_n (B.2) of each candidate."""
    best = np.zeros(len(grams.segment))
    np.maximum.at(best, grams.shared, batch.weights[grams.reference] * grams.reference_times)
    return _sum_by_candidate(np.minimum(grams.times, best), grams, batch), _sum_by_candidate(grams.times, grams, batch)


def _count_delta(grams: Grams, batch: Batch) -> tuple[Floats, Floats]:
    """Compute numerator and denominator of ΔBLEU's precision of each candidate."""
    best = np.full(len(grams.segment), -np.inf)
    worth = batch.weights[grams.reference] * np.minimum(grams.times[grams.shared], grams.reference_times)
    np.maximum.at(best, grams.shared, worth)
    highest = np.maximum.reduceat(batch.weights, list_starts(batch.owner))
    matches = np.where(np.isfinite(best), best, 0.0)
    return _sum_by_candidate(matches, grams, batch), _sum_by_candidate(grams.times, grams, batch) * highest


def _sum_by_candidate(values: Floats | Ints, grams: Grams, batch: Batch) -> Floats:
    sums = np.bincount(grams.segment, weights=values, minlength=len(batch.ends) - 1)
    return sums.astype(np.float64)  # without any value they are integers


def _measure_references(batch: Batch, length: Length, counts_zero: bool) -> Floats:
    lengths, starts = np.diff(batch.ref_ends), list_starts(batch.owner)
    is_weighted = np.logical_or.reduceat(batch.weights != 0, starts)
    counts = counts_zero | (batch.weights != 0) | ~is_weighted[batch.owner]
    if length == "average":
        total, count = (np.add.reduceat(values, starts) for values in (lengths * counts, counts.astype(np.int64)))
        return np.asarray(total / count, np.float64)
    distance = np.abs(lengths - np.diff(batch.ends)[batch.owner]) * int(length == "closest")
    base = lengths.max() + 1
    order = np.where(counts, distance * base + lengths, np.iinfo(np.int64).max)  # by distance, then by length
    return np.asarray(np.minimum.reduceat(order, starts) % base, np.float64)
