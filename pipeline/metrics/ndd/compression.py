"""How close compressions are to gold ones, simple baselines, and people's grades (NDD, section 4.2, appendix F).

In: items as `examples.ndd.compression` reads them, and of each item which words are kept. Shares are in [0, 1]. Copying
the sentence has an F1 of 0.59 on Google's sentences and 0.82 on Colloquial-SC, so an F1 needs the ratio next to it.
Grades are from 0 to 5, of syntax and semantics (NDD-36); a bootstrap draws sentences with all their grades.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.label import quality
from pipeline.label.compression import FIELDS
from pipeline.metrics.labelling.agreement import estimate_interval
from pipeline.metrics.overlap.bleu import bleu
from pipeline.metrics.overlap.metric import add_count, mean, signature
from pipeline.metrics.overlap.rouge import measure_lengths
from pipeline.metrics.overlap.segments import Batch, read_batches
from pipeline.metrics.resample import DRAWS, SEED, Floats, bounds, draw_counts, p_value, sum_all_samples, sum_samples

Masks = Sequence[Sequence[bool]] | pl.Series
ORDERS = (1, 2, 3, 4)  # of BLEU
UNSPACED = frozenset({"zh", "ja"})  # languages without blanks between words


class _Measure(NamedTuple):
    stats: Floats  # [n, k]; they add up
    signature: str
    score: Callable[[Floats], Floats] = mean  # [..., k] -> [...]; by default sum of the first over that of the second


def evaluate(predictions: Masks, items: pl.DataFrame, *, draws: int = DRAWS) -> pl.DataFrame:
    """Measure compressions, with percentile bootstrap intervals of 95 % over sentences.

    - f1_macro, f1_micro: of the kept words as a bag, the mean over sentences, which the paper prints as F1, and that of
      summed counts. A repeated word counts as often as in both.
    - f1_place_macro, f1_place_micro: the same where a word counts only at its own place.
    - f1_member_macro: the same where a word counts as often as it occurs if the other side has it at all (table 14).
    - ratio, ratio_macro: CR, kept words over words, of the sums and as a mean over sentences; the paper has both.
    - ratio_delta, ratio_delta_macro: the ratio minus that of the gold (NDD-30).
    - length: the words that are kept, the mean over sentences (table 9).
    - rouge_1, rouge_2, rouge_l, and the same with _recall: mean F and recall of words of letters or digits, capitals or
      not. Before that whole words are cut off the end of a prediction until its bytes in UTF-8, with blanks where the
      language has them, are no more than those of the gold (NDD-25). A sentence without an n-gram scores 0.
    - bleu_1 to bleu_4: of the corpus, with the n-grams of words up to that length (NDD-27).

    Predictions say which words of each item are kept, maybe none; items, at least one, have words [n], kept [n], of
    which at least one is true, and lang.

    Returns a row a measure: metric, value, low, high, n (sentences), signature (what must be the same to compare).
    BadInput, naming row and field, from 1, for a list that is not as long as the words or not of booleans. ValueError
    for draws below 1.
    """
    scores = _sample_scores(predictions, items, draws)
    rows = [(name, value, *bounds(samples), len(items), sign) for name, (value, samples, sign) in scores.items()]
    return pl.DataFrame(rows, schema=["metric", "value", "low", "high", "n", "signature"], orient="row")


def compare(first: Masks, second: Masks, items: pl.DataFrame, *, draws: int = DRAWS) -> pl.DataFrame:
    """Measure how much better `first` is than `second` on the same sentences, by a paired bootstrap (NDD-40).

    Returns a row a measure: metric, one, other, difference (one - other), low, high, p, n, signature; errors are as of
    `evaluate`.
    """
    first_scores, second_scores = (_sample_scores(masks, items, draws) for masks in (first, second))
    rows = []
    for name, (value, samples, sign) in first_scores.items():
        other_value, other_samples, _ = second_scores[name]
        values, differences = (value, other_value, value - other_value), samples - other_samples
        rows.append((name, *values, *bounds(differences), p_value(differences), len(items), sign))
    names = ["metric", "one", "other", "difference", "low", "high", "p", "n", "signature"]
    return pl.DataFrame(rows, schema=names, orient="row")


def keep_all(items: pl.DataFrame, _ratio: float | None = None) -> list[list[bool]]:
    """Keep all words."""
    return [[True] * size for size in _count_words(items)]


def drop_head(items: pl.DataFrame, ratio: float | None = None) -> list[list[bool]]:
    """Keep the last words of each sentence, as many as `count_kept` gives (table 3; NDD-24)."""
    return [is_kept[::-1] for is_kept in drop_tail(items, ratio)]


def drop_tail(items: pl.DataFrame, ratio: float | None = None) -> list[list[bool]]:
    """Keep the first words of each sentence, as many as `count_kept` gives (table 3; NDD-24)."""
    counts = zip(_count_words(items), count_kept(items, ratio), strict=True)
    return [[place < kept_count for place in range(size)] for size, kept_count in counts]


def drop_random(items: pl.DataFrame, ratio: float | None = None) -> list[list[bool]]:
    """Keep random words of each sentence, as many as `count_kept` gives (table 3; NDD-24)."""
    rng = np.random.default_rng(SEED)
    return [rng.permutation(is_kept).tolist() for is_kept in drop_tail(items, ratio)]


BASELINES: dict[str, Callable[..., list[list[bool]]]]
BASELINES = {"unedited": keep_all, "head": drop_head, "tail": drop_tail, "random": drop_random}
"""Compressors that read no word: of items, and a ratio (default: `measure_ratio`)."""


def measure_ratio(items: pl.DataFrame) -> float:
    """Measure the share of the words of all items that the gold keeps, to 4 digits; in table 3 it is 0.39 to 0.40."""
    return round(sum(map(sum, items["kept"])) / max(sum(_count_words(items)), 1), 4)


def count_kept(items: pl.DataFrame, ratio: float | None = None) -> list[int]:
    """Compute how many words of each sentence a baseline keeps: as many as a system that compresses to the ratio."""
    ratio = measure_ratio(items) if ratio is None else ratio
    return [max(1, round(ratio * size)) for size in _count_words(items)]


def truncate(words: Sequence[str], limit: int, between: str = " ") -> list[str]:
    """Keep the first words that fit into `limit` bytes of UTF-8, separators included (NDD-25)."""
    ends = np.cumsum([len((word + between).encode()) for word in words]) - len(between.encode())
    return [*words[: int(np.searchsorted(ends, limit, side="right"))]]


def _count_words(items: pl.DataFrame) -> list[int]:
    return items["words"].list.len().to_list()


def _sample_scores(predictions: Masks, items: pl.DataFrame, draws: int) -> dict[str, tuple[float, Floats, str]]:
    """Compute the value of each measure, its values in the same samples for each [draws], and its signature."""
    measures = _measure_sentences(predictions, items)
    samples = sum_all_samples([measure.stats for measure in measures.values()], draw_counts(len(items), draws, SEED))
    return {
        name: (float(measure.score(measure.stats.sum(axis=0))), measure.score(sample_sums), measure.signature)
        for (name, measure), sample_sums in zip(measures.items(), samples, strict=True)
    }


def _measure_sentences(predictions: Masks, items: pl.DataFrame) -> Mapping[str, _Measure]:
    words, is_gold = items["words"].to_list(), _check_masks(items["kept"], items, "kept")
    is_kept = _check_masks(predictions, items, "predictions")
    if not words or not all(map(any, is_gold)):
        raise BadInput("items: expected at least one, each with a word that is kept in field 'kept'")
    word_counts = np.array([*map(len, words)], np.float64)
    kept_counts, gold_counts = (np.array([*map(sum, masks)], np.float64) for masks in (is_kept, is_gold))
    shared_masks = zip(is_kept, is_gold, strict=True)
    shared_counts = np.array([sum(map(np.logical_and, *masks)) for masks in shared_masks], np.float64)
    kept_words, gold_words = ([*map(list, map(compress, words, masks))] for masks in (is_kept, is_gold))
    batch = _build_batch(kept_words, gold_words)
    shared = bleu(1).stats(batch)[:, 0]
    exact, folded = signature(words="exact"), signature(truncation="bytes", words="alphanumeric,casefold")
    sums = {
        ("f1_micro", "f1_macro"): (2 * shared, kept_counts + gold_counts),
        ("f1_place_micro", "f1_place_macro"): (2 * shared_counts, kept_counts + gold_counts),
        ("ratio", "ratio_macro"): (kept_counts, word_counts),
        ("ratio_delta", "ratio_delta_macro"): (kept_counts - gold_counts, word_counts),
    }
    measures: dict[str, _Measure] = {}
    for (micro, macro), (part, total) in sums.items():
        measures[macro] = _Measure(add_count(part / total), exact)
        measures[micro] = _Measure(np.column_stack([part, total]), exact)
    measures["length"] = _Measure(add_count(kept_counts), exact)
    measures["f1_member_macro"] = _Measure(add_count(np.array([*map(_score_members, kept_words, gold_words)])), exact)
    rouge = _score_rouge(kept_words, gold_words, items["lang"].to_list())
    measures |= {name: _Measure(add_count(value), folded) for name, value in rouge.items()}
    for order in ORDERS:
        metric = bleu(order)
        measures[f"bleu_{order}"] = _Measure(metric.stats(batch), metric.signature, metric.score)
    return measures


def _score_members(kept_words: list[str], gold_words: list[str]) -> float:
    """Compute the F1 of the shares of words that the other side has."""
    kept_set, gold_set = set(kept_words), set(gold_words)
    precision = sum(word in gold_set for word in kept_words) / max(len(kept_words), 1)
    recall = sum(word in kept_set for word in gold_words) / len(gold_words)
    return 2 * precision * recall / (precision + recall) if precision else 0.0


def _score_rouge(
    kept_words: list[list[str]], gold_words: list[list[str]], langs: list[str | None]
) -> dict[str, Floats]:
    separators = ["" if lang in UNSPACED else " " for lang in langs]
    limits = [len(blank.join(words).encode()) for words, blank in zip(gold_words, separators, strict=True)]
    truncated_words = [*map(truncate, kept_words, limits, separators)]
    folded_words = (
        [[word.casefold() for word in words if any(map(str.isalnum, word))] for words in word_lists]
        for word_lists in (truncated_words, gold_words)
    )
    batch = _build_batch(*folded_words)
    kept_lengths, gold_lengths = np.diff(batch.ends), np.diff(batch.ref_ends)
    stats = bleu(2).stats(batch)
    shared = {"rouge_1": (stats[:, 0], 0), "rouge_2": (stats[:, 1], 1), "rouge_l": (measure_lengths(batch), 0)}
    scores = {}
    for name, (common, missing) in shared.items():
        kept_ngrams, gold_ngrams = (np.maximum(lengths - missing, 0) for lengths in (kept_lengths, gold_lengths))
        scores[name] = mean(np.column_stack([2.0 * common, kept_ngrams + gold_ngrams]))
        scores[f"{name}_recall"] = mean(np.column_stack([1.0 * common, gold_ngrams]))
    return scores


def _build_batch(kept_words: list[list[str]], gold_words: list[list[str]]) -> Batch:
    return next(read_batches(kept_words, [[words] for words in gold_words], size=len(kept_words)))


def _check_masks(masks: Masks, items: pl.DataFrame, field: str) -> list[Sequence[bool]]:
    rows = masks.to_list() if isinstance(masks, pl.Series) else [*masks]
    if len(rows) != len(items):
        raise BadInput(f"{field}: expected a list for each of {len(items)} items, found {len(rows)}")
    for number, (row, size) in enumerate(zip(rows, _count_words(items), strict=True), 1):
        is_list = isinstance(row, Sequence) and not isinstance(row, str)
        if not is_list or len(row) != size or not all(isinstance(value, bool | np.bool_) for value in row):
            raise BadInput(f"row {number}, {field}: expected true or false for each of {size} words, found {row!r:.60}")
    return rows


AGREEMENT = ("weighted_kappa_linear", "weighted_kappa_quadratic", "alpha_ordinal")
_NUMBERS = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}


def summarize(grades: pl.DataFrame, *, draws: int = DRAWS) -> pl.DataFrame:
    """Compute mean grades of each system over its compressions: item_id, system, field, grade (or null).

    Returns a row a system and field, in order of system: system, field, value, low, high, n (sentences).
    """
    graded = grades.drop_nulls("grade").sort("system", pl.col("field").cast(pl.Enum(FIELDS)), "item_id")
    rows = []
    for (system, field), part in graded.group_by("system", "field", maintain_order=True):
        value, count = part["grade"].to_numpy(), part.height
        samples = sum_samples(value, draw_counts(count, draws, SEED)) / count
        rows.append((system, field, float(value.mean()), *bounds(samples), count))
    return pl.DataFrame(rows, {"system": pl.String, "field": pl.String, **_NUMBERS}, orient="row")


def measure_agreement(grades: pl.DataFrame, *, draws: int = DRAWS) -> pl.DataFrame:
    """Measure how far raters agree on each field: weighted kappa, linear and quadratic, and ordinal alpha.

    Grades have task_id, field, grades, raters. A compression that systems share counts once. The interval takes
    compressions for independent, which those of one sentence are not, and so is rather narrow.

    Returns a row a field and measure: field, metric, value, low, high, n (compressions with two grades or more); null
    where there is nothing to measure.
    """
    rows = []
    for field in FIELDS:
        regraded = grades.filter(pl.col("field") == field, pl.col("grades").list.len() > 1).unique("task_id")
        # codes of grades from 1, which these are not
        shifted = regraded.sort("task_id").with_columns(pl.col("grades").list.eval(pl.element() + 1))
        codes = quality.encode_grades(shifted)
        rows += [(field, name, *estimate_interval(name, codes, draws)[:3], len(codes)) for name in AGREEMENT]
    return pl.DataFrame(rows, {"field": pl.String, "metric": pl.String, **_NUMBERS}, orient="row").fill_nan(None)
