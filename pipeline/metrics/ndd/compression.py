"""How close compressions are to gold ones, and the simple baselines (NDD, section 4.2, tables 3 to 5; NDD-23 to 27, 30,
40).

In: items as `examples.ndd.compression` reads them, and of each item which words are kept, a list of booleans as long as
its words. Shares are in [0, 1]; the paper prints percent. Copying the sentence has an F1 of 0.59 on Google's sentences
and 0.82 on Colloquial-SC, so that no F1 says anything without the ratio beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.metrics.overlap import lcs
from pipeline.metrics.overlap.bleu import bleu
from pipeline.metrics.overlap.metric import Floats, mean, signature, with_count
from pipeline.metrics.overlap.segments import Batch, batches
from pipeline.metrics.resample import bounds, draw_counts, p_value, sum_samples

Kept = Sequence[Sequence[bool]] | pl.Series

DRAWS = 1000
SEED = 42
ORDERS = (1, 2, 3, 4)  # of BLEU
UNSPACED = frozenset({"zh", "ja"})  # languages without blanks between words


class _Measure(NamedTuple):
    stats: Floats  # [n, k]; they add up
    signature: str
    score: Callable[[Floats], Floats] = mean  # [..., k] -> [...]; by default sum of the first over that of the second


def evaluate(predictions: Kept, items: pl.DataFrame, *, draws: int = DRAWS, seed: int = SEED) -> pl.DataFrame:
    """All measures of compressions, with percentile bootstrap intervals of 95 % over sentences.

    - f1_macro, f1_micro: of the words that are kept, as a bag: a word counts wherever it stands. The mean over
      sentences, which the paper prints as F1, and that of summed counts. A repeated word counts as often as in both,
      unlike in SLAHAN's script, where it counts as often as it is said.
    - f1_place_macro, f1_place_micro: the same where a word counts only at its own place. Gold that was aligned does not
      know the place of a repeated word for sure.
    - ratio, ratio_macro: CR, kept words over words, of the sums and as a mean over sentences. The paper's gold ratios
      are of either kind: 0.68 of Colloquial-SC is that of sums (the mean is 0.72), 0.44 of Google's sentences is the
      mean (the other is 0.40).
    - ratio_delta, ratio_delta_macro: the ratio minus that of the gold (NDD-30).
    - rouge_1, rouge_2, rouge_l, and the same with _recall: F and recall, the mean over sentences, of words of letters
      or digits, capitals or not, as ROUGE-1.5.5 reads them but for Chinese, which it drops. Before that whole words are
      cut off the end of a prediction until its bytes in UTF-8, with blanks between words where the language has them,
      are no more than those of the gold (NDD-25). A sentence without an n-gram scores 0.
    - bleu_1 to bleu_4: of the corpus, with the n-grams of words up to that length (NDD-27).

    Args:
        predictions: of each item which words are kept, in the order of the items; none may be kept.
        items: at least one, with words [n], kept [n], of which at least one is true, and lang.
        draws: bootstrap samples.
        seed: of the samples.

    Returns:
        A row a measure: metric, value, low, high, n (sentences), signature (what must be the same to compare).

    Raises:
        BadInput: naming row and field, from 1, for a list that is not as long as the words or not of booleans.
        ValueError: draws below 1.
    """
    found = _measures(predictions, items)
    rows = []
    for (name, measure), drawn in zip(found.items(), _samples(found, draws, seed), strict=True):
        value = float(measure.score(measure.stats.sum(axis=0)))
        rows.append((name, value, *bounds(measure.score(drawn)), len(items), measure.signature))
    return pl.DataFrame(rows, schema=["metric", "value", "low", "high", "n", "signature"], orient="row")


def paired(
    one: Kept, other: Kept, items: pl.DataFrame, *, draws: int = DRAWS, seed: int = SEED
) -> pl.DataFrame:  # fmt: skip
    """How much better one system is than another on the same sentences, by a paired bootstrap (NDD-40).

    p is that of `resample.p_value`. Arguments and errors are as of `evaluate`.

    Returns:
        A row a measure: metric, one, other, difference (one - other), low, high, p, n, signature.
    """
    systems = [_measures(predictions, items) for predictions in (one, other)]
    samples = [_samples(found, draws, seed) for found in systems]
    rows = []
    for (name, mine), yours, *drawn in zip(systems[0].items(), systems[1].values(), *samples, strict=True):
        values = [float(each.score(each.stats.sum(axis=0))) for each in (mine, yours)]
        apart = mine.score(drawn[0]) - yours.score(drawn[1])
        rows.append((name, *values, values[0] - values[1], *bounds(apart), p_value(apart), len(items), mine.signature))
    names = ["metric", "one", "other", "difference", "low", "high", "p", "n", "signature"]
    return pl.DataFrame(rows, schema=names, orient="row")


def unedited(items: pl.DataFrame) -> list[list[bool]]:
    """Keep all words."""
    return [[True] * size for size in _sizes(items)]


def head(items: pl.DataFrame, ratio: float | None = None) -> list[list[bool]]:
    """Drop the head: keep the last words of each sentence (table 3; NDD-24). See `counts` for how many."""
    return [[False] * (size - n) + [True] * n for size, n in zip(_sizes(items), counts(items, ratio), strict=True)]


def tail(items: pl.DataFrame, ratio: float | None = None) -> list[list[bool]]:
    """Drop the tail: keep the first words of each sentence (table 3; NDD-24). See `counts` for how many."""
    return [[True] * n + [False] * (size - n) for size, n in zip(_sizes(items), counts(items, ratio), strict=True)]


def random(items: pl.DataFrame, ratio: float | None = None, seed: int = SEED) -> list[list[bool]]:
    """Drop random words of each sentence (table 3; NDD-24). See `counts` for how many are kept."""
    rng = np.random.default_rng(seed)
    return [rng.permutation(kept).tolist() for kept in tail(items, ratio)]


BASELINES: dict[str, Callable[[pl.DataFrame], list[list[bool]]]] = {
    "unedited": unedited, "head": head, "tail": tail, "random": random,
}  # fmt: skip
"""Compressors that read no word."""


def counts(items: pl.DataFrame, ratio: float | None = None) -> list[int]:
    """How many words of each sentence a baseline keeps: the ratio of its words, rounded, but at least one.

    Args:
        items: with words and kept.
        ratio: in (0, 1]; by default that of the gold of all items, of sums. The baselines of table 3 have 0.39 to 0.40.

    Raises:
        ValueError: a ratio outside (0, 1].
    """
    sizes = _sizes(items)
    if ratio is None:
        ratio = sum(map(sum, items["kept"])) / max(sum(sizes), 1)
    if not 0 < ratio <= 1:
        raise ValueError(f"ratio should be above 0 and at most 1, not {ratio}")
    return [max(1, int(ratio * size + 0.5)) for size in sizes]


def truncated(words: Sequence[str], limit: int, between: str = " ") -> list[str]:
    """As many first words as have at most so many bytes, in UTF-8 with what stands between words (NDD-25)."""
    ends = np.cumsum([len((word + between).encode()) for word in words]) - len(between.encode())
    return [*words[: int(np.searchsorted(ends, limit, side="right"))]]


def _sizes(items: pl.DataFrame) -> list[int]:
    return items["words"].list.len().to_list()


def _measures(predictions: Kept, items: pl.DataFrame) -> Mapping[str, _Measure]:
    """Statistics of each sentence for each measure."""
    words, gold = items["words"].to_list(), _checked(items["kept"], items, "kept")
    kept = _checked(predictions, items, "predictions")
    if not words or not all(map(any, gold)):
        raise BadInput("items: expected at least one, each with a word that is kept in field 'kept'")
    size = np.array([*map(len, words)], np.float64)
    ours, theirs = (np.array([*map(sum, each)], np.float64) for each in (kept, gold))
    both = np.array([sum(map(np.logical_and, *each)) for each in zip(kept, gold, strict=True)], np.float64)
    said, meant = ([_chosen(w, k) for w, k in zip(words, each, strict=True)] for each in (kept, gold))
    whole = _batch(said, meant)
    shared = bleu(1).stats(whole)[:, 0]
    exact, folded = signature(words="exact"), signature(truncation="bytes", words="alphanumeric,casefold")
    sums = {
        ("f1_micro", "f1_macro"): (2 * shared, ours + theirs),
        ("f1_place_micro", "f1_place_macro"): (2 * both, ours + theirs),
        ("ratio", "ratio_macro"): (ours, size),
        ("ratio_delta", "ratio_delta_macro"): (ours - theirs, size),
    }  # fmt: skip
    found = {}
    for (micro, macro), (part, total) in sums.items():
        found[macro] = _Measure(with_count(part / total), exact)
        found[micro] = _Measure(np.column_stack([part, total]), exact)
    found |= {
        name: _Measure(with_count(value), folded)
        for name, value in _rouge(said, meant, items["lang"].to_list()).items()
    }
    for order in ORDERS:
        metric = bleu(order)
        found[f"bleu_{order}"] = _Measure(metric.stats(whole), metric.signature, metric.score)
    return found


def _rouge(said: list[list[str]], meant: list[list[str]], langs: list[str | None]) -> dict[str, Floats]:
    """F and recall of each sentence."""
    between = ["" if lang in UNSPACED else " " for lang in langs]
    limits = [len(blank.join(words).encode()) for words, blank in zip(meant, between, strict=True)]
    cut = [truncated(*each) for each in zip(said, limits, between, strict=True)]
    batch = _batch(*([_spoken(words) for words in each] for each in (cut, meant)))
    ours, theirs = np.diff(batch.ends), np.diff(batch.ref_ends)
    stats = bleu(2).stats(batch)
    shared = {"rouge_1": (stats[:, 0], 0), "rouge_2": (stats[:, 1], 1), "rouge_l": (lcs.lengths(batch), 0)}
    found = {}
    for name, (common, fewer) in shared.items():
        made, wanted = (np.maximum(lengths - fewer, 0) for lengths in (ours, theirs))
        found[name] = mean(np.column_stack([2.0 * common, made + wanted]))
        found[f"{name}_recall"] = mean(np.column_stack([1.0 * common, wanted]))
    return found


def _spoken(words: list[str]) -> list[str]:
    return [word.casefold() for word in words if any(map(str.isalnum, word))]


def _batch(said: list[list[str]], meant: list[list[str]]) -> Batch:
    return next(batches(said, [[words] for words in meant], size=len(said)))


def _chosen(words: list[str], kept: Sequence[bool]) -> list[str]:
    return [word for word, stays in zip(words, kept, strict=True) if stays]


def _checked(given: Kept, items: pl.DataFrame, field: str) -> list[Sequence[bool]]:
    rows = given.to_list() if isinstance(given, pl.Series) else [*given]
    if len(rows) != len(items):
        raise BadInput(f"{field}: expected a list for each of {len(items)} items, found {len(rows)}")
    for number, (row, size) in enumerate(zip(rows, _sizes(items), strict=True), 1):
        is_list = isinstance(row, Sequence) and not isinstance(row, str)
        if not is_list or len(row) != size or not all(isinstance(each, bool | np.bool_) for each in row):
            raise BadInput(f"row {number}, {field}: expected true or false for each of {size} words, found {row!r:.60}")
    return rows


def _samples(found: Mapping[str, _Measure], draws: int, seed: int) -> list[Floats]:
    """Sums of statistics over the same samples for each measure, each [draws, k]."""
    stats = np.concatenate([measure.stats for measure in found.values()], axis=1)
    samples = sum_samples(stats, draw_counts(len(stats), draws, seed))
    return np.split(samples, np.cumsum([measure.stats.shape[1] for measure in found.values()])[:-1], axis=1)
