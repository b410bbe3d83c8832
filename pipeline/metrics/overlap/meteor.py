"""W-METEOR: unigram matches one to one, recall above precision, and a penalty for matches that lie apart (section 4,
equation 1, appendix B.2; AAC-14, AAC-15).

With m matches in h chunks, P = m / |c| and R = m / |r|, a reference is worth F (1 - pen), F = P R / (alpha P +
(1 - alpha) R), pen = gamma (h / m)^beta; a candidate is worth the most that s_j F_j (1 - pen_j) is. Only equal words
match: a Chinese word has no stem, and for languages it does not know METEOR uses no more either.

METEORs differ by tens of points (nltk#2655: 0.42 and 0.68 for one pair), so the signature holds every parameter.
"""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from pipeline.metrics.overlap.metric import Floats, Metric, mean, signature, with_count
from pipeline.metrics.overlap.segments import Batch, Ints, firsts, left, owners

Penalty = Literal["inside", "argmax"]
Alignment = Literal["greedy", "fewest_chunks"]
Corpus = Literal["mean", "aggregate"]

STATES = 128
"""Partial alignments kept at a time; METEOR 1.5 keeps 40."""


class Pairs(NamedTuple):
    """What METEOR counts of each candidate with one reference: [m], or sums of them."""

    matches: Floats
    ours: Floats  # tokens of the candidate
    theirs: Floats  # and of the reference
    chunks: Floats


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

The last two are of METEOR 1.5. With `-l other` it takes its language-independent parameters (`meteor-1.5.jar` prints
0.75, 1.4, 0.7, 0.5); for new languages its paper and `-new` have the universal ones (0.7, 1.4, 0.3, 0.7). The fourth is
delta, the weight of content words against function words. Without a list of function words, and `other` has none, delta
is in the numerator and denominator of P and R alike, so it is not here. What cmu-mtlab/meteor#6 took for the parameters
of `other` are English ones: called without its two files, METEOR reads `-l other` as their names. METEOR 1.5 does count
English function words in `other` text, as it loads that list before it looks at the language; we do not.
"""


def meteor(
    preset: str = "1.0", alpha: float | None = None, beta: float | None = None, gamma: float | None = None,
    penalty: Penalty = "inside", alignment: Alignment = "greedy", corpus: Corpus = "mean",
) -> Metric:  # fmt: skip
    """W-METEOR in [0, 1]; 0 without a match, hence for an empty candidate or reference.

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
            its matches, (sum of s m) / (sum of m); METEOR's own with all weights 1, the segment's score of one alone.

    Raises:
        ValueError: an unknown preset or option, or a parameter out of range.
    """
    use = _parameters(preset, alpha=alpha, beta=beta, gamma=gamma)
    options = {"penalty": penalty, "alignment": alignment, "corpus": corpus}
    for (name, value), known in zip(options.items(), (Penalty, Alignment, Corpus), strict=True):
        if value not in get_args(known):
            raise ValueError(f"{name} should be {' or '.join(get_args(known))}, not {value!r}")

    def stats(batch: Batch) -> Floats:
        pairs = _pairs(batch, greedy(batch))
        if use.spares_equal:
            is_equal = (pairs.ours == pairs.theirs) & (pairs.ours == pairs.matches) & (pairs.chunks == 1)
            pairs = pairs._replace(chunks=np.where(is_equal, 0.0, pairs.chunks))
        if alignment == "fewest_chunks":
            pairs = _with_fewest(batch, pairs, use, penalty)
        scores = _scores(batch, pairs, use, penalty)
        # the first of each segment is its best, whatever the order of the references
        order = np.lexsort((-batch.weights, pairs.chunks, pairs.theirs, -pairs.matches, -scores, batch.owner))
        best = order[firsts(batch.owner)]
        if corpus == "mean":
            return with_count(scores[best])
        return np.column_stack([*(column[best] for column in pairs), (batch.weights * pairs.matches)[best]])

    def score(sums: Floats) -> Floats:
        if corpus == "mean":
            return mean(sums)
        pairs = Pairs(*np.moveaxis(sums[..., :4], -1, 0))
        harmonic, kept = _factors(pairs, use)
        return _over(sums[..., 4], pairs.matches) * harmonic * kept

    return Metric("METEOR", stats, score, signature(preset=preset, **use._asdict(), **options))


def greedy(batch: Batch) -> Ints:
    """Where in its candidate the word stands that each reference token is matched with, else -1: int64 [R], from 0.

    The last occurrence of a word in the candidate goes with its last in the reference, the one before with the one
    before (`nltk.translate.meteor_score`).
    """
    segment, pair = owners(batch.ends), owners(batch.ref_ends)
    keys = _keys(batch, segment, batch.words)
    order = np.argsort(keys, kind="stable")
    known, start, times = np.unique(keys[order], return_index=True, return_counts=True)
    wanted = _keys(batch, batch.owner[pair], batch.ref_words)
    word = np.searchsorted(known, wanted)
    there = np.flatnonzero(np.append(known, -1)[word] == wanted)  # few, so that only they are ranked
    word = word[there]
    follow = _ranks(pair[there], word)
    is_match = follow < times[word]
    word, there, follow = word[is_match], there[is_match], follow[is_match]
    at = order[start[word] + times[word] - 1 - follow]
    found = np.full(len(wanted), -1, np.int64)
    found[there] = at - batch.ends[segment[at]]
    return found


def fewest_chunks(candidate: Sequence[int], reference: Sequence[int], states: int = STATES) -> int:
    """The fewest chunks of an alignment with as many matches as there can be; 0 without a match.

    Reads the candidate from left to right and keeps, for each set of reference tokens in use, the fewest chunks so far
    and where one of them may go on; one chunk more that may go on is no better. Of more than `states` sets those with
    the fewest stay.
    """
    spare = Counter(candidate)  # occurrences that are still to come
    need = spare & Counter(reference)
    spots: dict[int, list[int]] = {word: [] for word in need}
    for place, word in enumerate(reference):
        if word in spots:
            spots[word].append(place)
    found = {0: (0, 0)}  # reference tokens in use, as bits: chunks, and the tokens next to a match just made, as bits
    for word in candidate:
        spare[word] -= 1
        places = spots.get(word, [])
        after: dict[int, tuple[int, int]] = {}
        for used, (chunks, joins) in found.items():
            free = [place for place in places if not used >> place & 1]
            if len(places) - len(free) + spare[word] >= need[word]:
                _keep(after, used, chunks, 0)
            for place in free:
                _keep(after, used | 1 << place, chunks + 1 - (joins >> place & 1), 2 << place)
        found = after
        if len(found) > states:
            found = dict(heapq.nsmallest(states, found.items(), key=lambda kept: (kept[1][0], kept[0])))
    return min(chunks for chunks, _ in found.values())


def _keep(found: dict[int, tuple[int, int]], used: int, chunks: int, joins: int) -> None:
    best, known = found.get(used, (chunks, 0))
    if chunks <= best:
        found[used] = (chunks, joins | known if chunks == best else joins)


def _parameters(preset: str, **given: float | None) -> Parameters:
    if preset not in PRESETS:
        raise ValueError(f"preset should be one of {', '.join(PRESETS)}, not {preset!r}")
    changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    use = PRESETS[preset]._replace(**changed)
    if not (0 <= use.alpha <= 1 and use.beta > 0 and 0 <= use.gamma <= 1):
        raise ValueError(f"alpha and gamma should be in [0, 1] and beta above 0, not {use}")
    return use


def _pairs(batch: Batch, places: Ints) -> Pairs:
    """Counts of an alignment: a chunk goes on where the next reference token is matched with the next candidate one."""
    pair, is_match = owners(batch.ref_ends), places >= 0
    goes_on = is_match[:-1] & (places[1:] == places[:-1] + 1) & (pair[1:] == pair[:-1])
    matches, joints = (
        np.bincount(of, minlength=len(batch.owner)).astype(np.float64) for of in (pair[is_match], pair[1:][goes_on])
    )
    ours, theirs = (each.astype(np.float64) for each in (np.diff(batch.ends)[batch.owner], np.diff(batch.ref_ends)))
    return Pairs(matches, ours, theirs, matches - joints)


def _with_fewest(batch: Batch, pairs: Pairs, use: Parameters, penalty: str) -> Pairs:
    """The same, with the fewest chunks of those references that may be their candidate's best.

    Two words are in one chunk where they are neighbours in both texts, so there are at least as many chunks as matches
    less common bigrams. Where that is what greedy has, or not enough to be the best, nothing is searched.
    """
    chunks = pairs.chunks.copy()
    floor = np.maximum(pairs.matches - _common_bigrams(batch), np.minimum(pairs.matches, 1))
    while True:
        best = np.maximum.reduceat(_scores(batch, pairs._replace(chunks=chunks), use, penalty), firsts(batch.owner))
        hope = _scores(batch, pairs._replace(chunks=floor), use, penalty)
        may_win = np.flatnonzero((floor < chunks) & (hope > 0) & (hope >= best[batch.owner]))
        if not len(may_win):
            return pairs._replace(chunks=chunks)
        may_win = may_win[np.argsort(-hope[may_win], kind="stable")]
        _, first = np.unique(batch.owner[may_win], return_index=True)
        for pair in may_win[first]:  # of each candidate the most promising
            chunks[pair] = floor[pair] = fewest_chunks(*_texts(batch, pair))


def _common_bigrams(batch: Batch) -> Floats:
    """How many bigrams each reference has in common with its candidate, each as often as in both: [m]."""
    span = 1 + max(batch.words.max(initial=0), batch.ref_words.max(initial=0))
    texts, ends = [], []
    for words, at in ((batch.words, batch.ends), (batch.ref_words, batch.ref_ends)):
        texts.append((words * span + np.append(words[1:], 0))[left(at) > 1])
        ends.append(np.append(0, np.cumsum(np.maximum(np.diff(at) - 1, 0))))
    # numbered anew, for products of them to stay small
    numbers = np.unique(np.concatenate(texts), return_inverse=True)[1]
    mine, theirs = np.split(numbers, [len(texts[0])])
    bigrams = replace(batch, words=mine, ends=ends[0], ref_words=theirs, ref_ends=ends[1])
    return _pairs(bigrams, greedy(bigrams)).matches


def _texts(batch: Batch, pair: int) -> tuple[list[int], list[int]]:
    """The candidate and the reference of a pair."""
    owner = batch.owner[pair]
    return (
        batch.words[batch.ends[owner] : batch.ends[owner + 1]].tolist(),
        batch.ref_words[batch.ref_ends[pair] : batch.ref_ends[pair + 1]].tolist(),
    )


def _scores(batch: Batch, pairs: Pairs, use: Parameters, penalty: str) -> Floats:
    """What each reference gives its candidate, [m]; by `argmax` 0 where s_j F_j is not its segment's largest."""
    harmonic, kept = _factors(pairs, use)
    weighted = batch.weights * harmonic
    if penalty == "argmax":
        weighted *= weighted == np.maximum.reduceat(weighted, firsts(batch.owner))[batch.owner]
    return weighted * kept


def _factors(pairs: Pairs, use: Parameters) -> tuple[Floats, Floats]:
    """F and 1 - penalty, of pairs or of their sums."""
    precision, recall = _over(pairs.matches, pairs.ours), _over(pairs.matches, pairs.theirs)
    harmonic = _over(precision * recall, use.alpha * precision + (1 - use.alpha) * recall)
    return harmonic, 1 - use.gamma * _over(pairs.chunks, pairs.matches) ** use.beta


def _over(part: Floats, whole: Floats) -> Floats:
    """The quotient, 0 where the divisor is."""
    found: Floats = np.divide(part, whole, out=np.zeros(np.shape(part)), where=np.asarray(whole) > 0)
    return found


def _keys(batch: Batch, segment: Ints, words: Ints) -> Ints:
    """One number for a segment and a word."""
    span = 1 + int(max(batch.words.max(initial=0), batch.ref_words.max(initial=0)))
    return segment * span + words


def _ranks(group: Ints, words: Ints) -> Ints:
    """How many times each token's word follows it in its list."""
    keys = group * (1 + words.max(initial=0)) + words
    order = np.argsort(keys, kind="stable")
    run_ends = np.flatnonzero(np.diff(keys[order], append=-1)) + 1
    times = np.diff(run_ends, prepend=0)
    ranks = np.empty_like(order)
    ranks[order] = np.repeat(run_ends, times) - 1 - np.arange(len(order))
    return ranks
