"""W-METEOR: unigram matches one to one, recall above precision, and a penalty for matches that lie apart (section 4,
equation 1, appendix B.2; AAC-14, AAC-15).

With m matches in h chunks, P = m / |c| and R = m / |r|, a reference is worth F (1 - pen), F = P R / (alpha P +
(1 - alpha) R), pen = gamma (h / m)^beta; a candidate is worth the most that s_j F_j (1 - pen_j) is. Only equal words
match: a Chinese word has no stem, and for languages it does not know METEOR uses no more either.

METEORs differ by tens of points (nltk#2655), so the signature holds every parameter.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from pipeline.metrics.overlap.metric import Metric, add_count, check_choice, divide, mean, signature
from pipeline.metrics.overlap.segments import Batch, find_matches, list_owners, list_starts
from pipeline.metrics.resample import Floats, Ints

Penalty = Literal["inside", "argmax"]
Alignment = Literal["greedy", "fewest_chunks"]
Corpus = Literal["mean", "aggregate"]
Numbers = npt.NDArray[np.number]
STATES = 128  # partial alignments kept at a time; METEOR 1.5 keeps 40


class PairCounts(NamedTuple):
    """What METEOR counts of each candidate with one reference: [m], or sums of them."""

    matches: Numbers
    candidate_sizes: Numbers  # tokens of the candidate
    reference_sizes: Numbers  # and of the reference
    chunks: Numbers


class Parameters(NamedTuple):
    """Of one METEOR."""

    alpha: float
    beta: float
    gamma: float
    spares_equal: bool = False  # whether a candidate that is its reference has no chunks, hence no penalty


PRESETS = {
    "2005": Parameters(0.9, 3.0, 0.5),
    "1.0": Parameters(0.9, 3.0, 0.5),
    "1.5-other": Parameters(0.75, 1.4, 0.7, spares_equal=True),
    "1.5-universal": Parameters(0.7, 1.4, 0.3, spares_equal=True),
}
"""Banerjee & Lavie (2005), whose F = 10 P R / (R + 9 P) is that of alpha 0.9, hence the same as 1.0, nltk's defaults.

The last two are of METEOR 1.5: with `-l other`, and for new languages (`-new`). Its fourth parameter, delta, weighs
content words against function words; without a list of these, and `other` has none, it cancels out of P and R.
METEOR 1.5 does count English function words in `other` text; we do not.
"""


def meteor(
    preset: str = "1.0",
    alpha: float | None = None,
    beta: float | None = None,
    gamma: float | None = None,
    penalty: Penalty = "inside",
    alignment: Alignment = "greedy",
    corpus: Corpus = "mean",
) -> Metric:
    """Build W-METEOR in [0, 1]; 0 without a match, hence for an empty candidate or reference.

    Args:
        preset: parameters of a published METEOR, one of PRESETS.
        alpha: in place of the preset's, in [0, 1]; the larger, the more recall counts.
        beta: the same, above 0.
        gamma: the same, in [0, 1].
        penalty: `inside`: max_j s_j F_j (1 - pen_j), the only reading of (1) that is METEOR again with all s_j = 1.
            `argmax`: the penalty of the reference whose s_j F_j is the largest, the least where several are.
        alignment: `greedy`: the last occurrence of a word with its last in the reference, and so on, as nltk does.
            `fewest_chunks`: of all alignments with as many matches the one with the fewest chunks, as METEOR 1.5 does;
            exact while no more than STATES partial alignments are open at once, a beam beyond.
        corpus: `mean` of the segments. `aggregate`: from the sums of matches, lengths and chunks of each segment's
            best reference (ties: more matches, then a shorter reference, then fewer chunks), times the mean weight of
            its matches, (sum of s m) / (sum of m); METEOR's own with all weights 1, and for one segment its score.

    ValueError for an unknown preset or option, or a parameter out of range.
    """
    options = {"penalty": penalty, "alignment": alignment, "corpus": corpus}
    for (name, value), choices in zip(options.items(), (Penalty, Alignment, Corpus), strict=True):
        check_choice(name, value, get_args(choices))
    check_choice("preset", preset, PRESETS)
    overrides: dict[str, Any] = {"alpha": alpha, "beta": beta, "gamma": gamma}
    parameters = PRESETS[preset]._replace(**{name: value for name, value in overrides.items() if value is not None})
    if not (0 <= parameters.alpha <= 1 and parameters.beta > 0 and 0 <= parameters.gamma <= 1):
        raise ValueError(f"alpha and gamma should be in [0, 1] and beta above 0, not {parameters}")

    def stats(batch: Batch) -> Floats:
        pairs = _count_pairs(batch, align_greedily(batch))
        if parameters.spares_equal:
            longest = np.maximum(pairs.candidate_sizes, pairs.reference_sizes)
            is_equal = (pairs.matches == longest) & (pairs.chunks == 1)
            pairs = pairs._replace(chunks=np.where(is_equal, 0.0, pairs.chunks))
        if alignment == "fewest_chunks":
            pairs = _minimise_chunks(batch, pairs, parameters, penalty)
        scores = _score_pairs(batch, pairs, parameters, penalty)
        # the first of each segment is its best, independent of the order of the references
        order = np.lexsort((-batch.weights, pairs.chunks, pairs.reference_sizes, -pairs.matches, -scores, batch.owner))
        best = order[list_starts(batch.owner)]
        if corpus == "mean":
            return add_count(scores[best])
        return np.column_stack([*(column[best] for column in pairs), (batch.weights * pairs.matches)[best]])

    def score(sums: Floats) -> Floats:
        if corpus == "mean":
            return mean(sums)
        pairs = PairCounts(*np.moveaxis(sums[..., :4], -1, 0))
        harmonic, penalty_factor = _compute_factors(pairs, parameters)
        return divide(sums[..., 4], pairs.matches) * harmonic * penalty_factor

    return Metric("METEOR", stats, score, signature(preset=preset, **parameters._asdict(), **options))


def align_greedily(batch: Batch) -> Ints:
    """Match each reference token with a place in its candidate, else -1: int64 [R], from 0.

    The last occurrence of a word in the candidate goes with its last in the reference, the one before with the one
    before (`nltk.translate.meteor_score`).
    """
    segment, pair, kinds = list_owners(batch.ends), list_owners(batch.ref_ends), len(batch.types)
    keys, reference_keys = segment * kinds + batch.words, batch.owner[pair] * kinds + batch.ref_words
    matches = np.full(len(reference_keys), -1, np.int64)
    shared = np.flatnonzero(np.isin(reference_keys, keys))  # few, so that only they are ranked
    if not len(shared):
        return matches
    longest = 1 + max(np.diff(batch.ends).max(), np.diff(batch.ref_ends).max())
    numbered = keys * longest + _count_later(keys)
    later_count = _count_later(pair[shared] * kinds + batch.ref_words[shared])
    reference_numbered = reference_keys[shared] * longest + later_count
    order = np.argsort(numbered)
    nearest = np.searchsorted(numbered, reference_numbered, sorter=order).clip(max=len(order) - 1)
    is_match = numbered[order[nearest]] == reference_numbered
    match_index = order[nearest[is_match]]
    matches[shared[is_match]] = match_index - batch.ends[segment[match_index]]
    return matches


def _count_later(keys: Ints) -> Ints:
    order = np.argsort(keys, kind="stable")
    run_ends = np.flatnonzero(np.diff(keys[order], append=-1)) + 1
    later_count = np.empty_like(order)
    later_count[order] = np.repeat(run_ends, np.diff(run_ends, prepend=0)) - 1 - np.arange(len(order))
    return later_count


def count_fewest_chunks(candidate: Sequence[int], reference: Sequence[int], states: int = STATES) -> int:
    """Count the fewest chunks of an alignment with as many matches as possible; 0 without a match.

    Reads the candidate from left to right and keeps, for each set of reference tokens in use, the fewest chunks so far
    and where one of them may go on; one chunk more that may go on is no better. Of more than `states` sets those with
    the fewest stay.
    """
    remaining = Counter(candidate)  # occurrences that are still to come
    match_counts = remaining & Counter(reference)
    places_by_word: defaultdict[int, list[int]] = defaultdict(list)
    for place, word in enumerate(reference):
        places_by_word[word].append(place)
    # bits of the reference tokens in use: chunks, and the bits of the tokens next to a match just made
    alignments = {0: (0, 0)}
    for word in candidate:
        remaining[word] -= 1
        places = places_by_word[word]
        extended: dict[int, tuple[int, int]] = {}
        for used, (chunks, joins) in alignments.items():
            free = [place for place in places if not used >> place & 1]
            if len(places) - len(free) + remaining[word] >= match_counts[word]:
                _record_state(extended, used, chunks, 0)
            for place in free:
                _record_state(extended, used | 1 << place, chunks + 1 - (joins >> place & 1), 2 << place)
        alignments = extended
        if len(alignments) > states:
            alignments = dict(heapq.nsmallest(states, alignments.items(), key=lambda entry: (entry[1][0], entry[0])))
    return min(chunks for chunks, _ in alignments.values())


def _record_state(alignments: dict[int, tuple[int, int]], used: int, chunks: int, joins: int) -> None:
    best, best_joins = alignments.get(used, (chunks, 0))
    if chunks <= best:
        alignments[used] = (chunks, joins | best_joins if chunks == best else joins)


def _count_pairs(batch: Batch, places: Ints) -> PairCounts:
    """Count matches and chunks of an alignment; a chunk goes on where the next tokens of both match."""
    pair, is_match = list_owners(batch.ref_ends), places >= 0
    is_joined = is_match[:-1] & (places[1:] == places[:-1] + 1) & (pair[1:] == pair[:-1])
    matches = np.bincount(pair[is_match], minlength=len(batch.owner))
    chunks = matches - np.bincount(pair[1:][is_joined], minlength=len(batch.owner))
    return PairCounts(matches, np.diff(batch.ends)[batch.owner], np.diff(batch.ref_ends), chunks)


def _minimise_chunks(batch: Batch, pairs: PairCounts, parameters: Parameters, penalty: str) -> PairCounts:
    """Minimise the chunks of those references that may be their candidate's best.

    There are at least as many chunks as matches less common bigrams. Where greedy has no more, nothing is searched.
    """
    chunks = pairs.chunks.astype(np.float64)
    bigrams = find_matches(batch, 2)[1]
    times = np.minimum(bigrams.times[bigrams.shared], bigrams.reference_times)
    common = np.bincount(bigrams.reference, times, len(batch.owner))
    lower_bound = np.maximum(pairs.matches - common, np.minimum(pairs.matches, 1))
    while True:
        bounds = (pairs._replace(chunks=values) for values in (chunks, lower_bound))
        scores, upper_scores = (_score_pairs(batch, counts, parameters, penalty) for counts in bounds)
        best = np.maximum.reduceat(scores, list_starts(batch.owner))[batch.owner]
        may_win = np.flatnonzero((lower_bound < chunks) & (upper_scores > 0) & (upper_scores >= best))
        if not len(may_win):
            return pairs._replace(chunks=chunks)
        may_win = may_win[np.argsort(-upper_scores[may_win], kind="stable")]
        _, first = np.unique(batch.owner[may_win], return_index=True)
        for pair in may_win[first]:  # of each candidate the most promising
            owner = batch.owner[pair]
            candidate = batch.words[batch.ends[owner] : batch.ends[owner + 1]].tolist()
            reference = batch.ref_words[batch.ref_ends[pair] : batch.ref_ends[pair + 1]].tolist()
            chunks[pair] = lower_bound[pair] = count_fewest_chunks(candidate, reference)


def _score_pairs(batch: Batch, pairs: PairCounts, parameters: Parameters, penalty: str) -> Floats:
    """Score each pair, [m]; with `argmax` 0 where s_j F_j is not its segment's largest."""
    harmonic, penalty_factor = _compute_factors(pairs, parameters)
    weighted = batch.weights * harmonic
    if penalty == "argmax":
        weighted *= weighted == np.maximum.reduceat(weighted, list_starts(batch.owner))[batch.owner]
    return weighted * penalty_factor


def _compute_factors(pairs: PairCounts, parameters: Parameters) -> tuple[Floats, Floats]:
    """Compute F and 1 - penalty, of pairs or of their sums."""
    precision, recall = divide(pairs.matches, pairs.candidate_sizes), divide(pairs.matches, pairs.reference_sizes)
    harmonic = divide(precision * recall, parameters.alpha * precision + (1 - parameters.alpha) * recall)
    return harmonic, 1 - parameters.gamma * divide(pairs.chunks, pairs.matches) ** parameters.beta
