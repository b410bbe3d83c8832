"""Quality of recovered hidden meanings: overlap with references, and choices between readings (CSD-03).

CSD names no measure, so the field's are taken, in [0, 1]: ROUGE-L (Lin 2004), BLEU (Papineni et al. 2002) and chrF
(Popović 2015), as the packages rouge-score and sacrebleu count them. Chinese is counted by character, other writing by
word; rouge-score's own tokenizer drops every character that is not ASCII. Baselines that understand nothing are
measured as well.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.metrics.resample import wilson
from pipeline.text.segment import UNIT

Counts = npt.NDArray[np.int64]  # [orders, 3]: n-grams of the answer, of the reference, shared
METRICS = ("rouge_l", "bleu", "chrf")
BLEU_ORDERS, CHRF_ORDERS, CHRF_BETA = 4, 6, 2.0  # sacrebleu's defaults


def split_units(text: str) -> list[str]:
    """Split text into Chinese characters, lower-case words of other writing, and marks."""
    return UNIT.findall(text.lower())


def rouge_l(answer: str, references: Sequence[str]) -> float:
    """Compute F1 of the longest common subsequence of units without marks, for the best reference; in [0, 1]."""
    answer_units, *reference_units = (
        [unit for unit in split_units(text) if unit[0].isalnum()] for text in (answer, *references)
    )
    return max(
        (
            2 * _lcs_length(answer_units, reference) / max(len(answer_units) + len(reference), 1)
            for reference in reference_units
        ),
        default=0.0,
    )


def _lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Compute the length of the longest common subsequence; one integer holds a table row (Hyyrö 2004)."""
    unit_bits: dict[str, int] = defaultdict(int)
    for position, unit in enumerate(first):
        unit_bits[unit] |= 1 << position
    all_bits = (1 << len(first)) - 1
    row = all_bits
    for unit in second:
        hits = row & unit_bits[unit]
        row = ((row + hits) | (row - hits)) & all_bits
    return len(first) - row.bit_count()


def _count_ngrams(answer: Sequence[str], references: Sequence[Sequence[str]], orders: int) -> Counts:
    """Count n-grams of the answer, of the references and shared, by order; of several references the maximum counts."""
    counts = np.zeros((orders, 3), np.int64)
    for n in range(1, orders + 1):
        answer_ngrams, *reference_ngrams = (
            Counter(zip(*(text[i:] for i in range(n)), strict=False)) for text in (answer, *references)
        )  # fmt: skip
        reference_union: Counter[tuple[str, ...]] = reduce(or_, reference_ngrams, Counter())
        counts[n - 1] = answer_ngrams.total(), reference_union.total(), (answer_ngrams & reference_union).total()
    return counts


def _bleu(counts: Counts, answer_length: int, reference_length: int) -> float:
    """Compute the geometric mean of the precisions of the orders that occur, times the brevity penalty.

    An order without a match counts half, a quarter, … of a match (sacrebleu's smoothing `exp`), and orders longer than
    the answers are left out (its `effective_order`): meanings are short.
    """
    total, shared = (column[counts[:, 0] > 0].astype(float) for column in (counts[:, 0], counts[:, 2]))
    if not shared.any():
        return 0.0
    is_unmatched = shared == 0
    shared[is_unmatched] = 0.5 ** np.arange(1, is_unmatched.sum() + 1)
    penalty = min(0.0, 1 - reference_length / answer_length)
    return float(np.exp(np.log(shared / total).mean() + penalty))


def _chrf(counts: Counts) -> float:
    """Compute F with beta 2 of mean precision and mean recall over the orders that both sides have."""
    answer_counts, reference_counts, shared = counts[(counts[:, 0] > 0) & (counts[:, 1] > 0)].T
    if not shared.sum():
        return 0.0
    precision, recall, weight = (
        float((shared / answer_counts).mean()),
        float((shared / reference_counts).mean()),
        CHRF_BETA**2,
    )
    return (1 + weight) * precision * recall / (weight * precision + recall)


class Overlap(NamedTuple):
    """Overlap of answers with references, in [0, 1]."""

    rows: pl.DataFrame  # rouge_l, bleu, chrf of each answer
    corpus: dict[str, float]  # the same of all together: ROUGE-L's mean; BLEU and chrF of summed counts
    row_count: int
    null_count: int  # rows without an answer; they count as empty answers


def measure_overlap(answers: Sequence[str | None], references: Sequence[Sequence[str]]) -> Overlap:
    """Measure the overlap of each answer with its references, and of all answers.

    Several references: ROUGE-L and chrF take the one that fits best, BLEU the most of each n-gram in any and the
    length nearest to the answer's.

    Args:
        answers: a meaning for each row, None where there is none.
        references: its references, at least one a row.

    Raises:
        ValueError: lengths that differ, or a row without references.
    """
    if len(answers) != len(references) or not all(len(row_references) for row_references in references):
        raise ValueError(f"expected references for each of {len(answers)} answers, got {len(references)} lists")
    rows: list[tuple[float, float, float]] = []
    bleu_counts, length_sums, chrf_counts = (
        np.zeros((BLEU_ORDERS, 3), np.int64),
        np.zeros(2, np.int64),
        np.zeros((CHRF_ORDERS, 3), int),
    )
    for answer, row_references in zip((answer or "" for answer in answers), references, strict=True):
        answer_words, *reference_words = (split_units(text) for text in (answer, *row_references))
        word_counts = _count_ngrams(answer_words, reference_words, BLEU_ORDERS)
        length_pair = (
            len(answer_words),
            min((abs(len(reference) - len(answer_words)), len(reference)) for reference in reference_words)[1],
        )
        answer_letters, *reference_letters = ("".join(text.split()) for text in (answer, *row_references))
        letter_counts = max(
            (_count_ngrams(answer_letters, [reference], CHRF_ORDERS) for reference in reference_letters), key=_chrf
        )
        letter_counts[letter_counts[:, 1] == 0, 0] = (
            0  # as sacrebleu: what no reference is long enough for does not count
        )
        rows.append((rouge_l(answer, row_references), _bleu(word_counts, *length_pair), _chrf(letter_counts)))
        bleu_counts, length_sums, chrf_counts = (
            bleu_counts + word_counts,
            length_sums + length_pair,
            chrf_counts + letter_counts,
        )
    table = pl.DataFrame(rows, schema=dict.fromkeys(METRICS, pl.Float64), orient="row")
    mean = float(np.mean(table["rouge_l"].to_numpy())) if rows else 0.0
    corpus = {"rouge_l": mean, "bleu": _bleu(bleu_counts, *length_sums.tolist()), "chrf": _chrf(chrf_counts)}
    return Overlap(table, corpus, len(rows), sum(answer is None for answer in answers))


def measure_overlap_baselines(rows: pl.DataFrame) -> pl.DataFrame:
    """Measure the overlap of baselines: the text itself, its context, and the meaning of another row.

    The last shows how much of the overlap is the references' common wording.

    Args:
        rows: text, context (null where there is none), meanings.

    Returns:
        baseline (text, context, other_meaning), rouge_l, bleu, chrf (corpus values), row_count, null_count.
    """
    first_meanings = [*rows["meanings"].list.first()]
    answers = {
        "text": [*rows["text"]],
        "context": [*rows["context"]],
        "other_meaning": [*first_meanings[1:], *first_meanings[:1]],
    }
    overlaps = [
        (name, measure_overlap(baseline_answers, rows["meanings"].to_list()))
        for name, baseline_answers in answers.items()
    ]
    return pl.DataFrame([
        {"baseline": name, **result.corpus, "row_count": result.row_count, "null_count": result.null_count}
        for name, result in overlaps
    ])  # fmt: skip


class Accuracy(NamedTuple):
    """Share of right choices, with Wilson's 95 % interval, what guessing reaches, and on how many rows."""

    accuracy: float
    low: float
    high: float
    chance: float  # mean share of a row's options that are right
    row_count: int
    null_count: int  # rows without a choice; they count as wrong


def measure_choices(choices: pl.DataFrame, picks: Sequence[int | None]) -> Accuracy:
    """Measure the share of rows where the chosen option is right.

    Args:
        choices: rows with options and answers (places of the right ones).
        picks: place of the chosen option of each row, None where there is none.

    Raises:
        ValueError: lengths that differ, or no rows.
    """
    if len(choices) != len(picks):
        raise ValueError(f"expected a choice for each of {len(choices)} rows, got {len(picks)}")
    pick_series = pl.Series("chosen", picks, dtype=pl.Int64)
    is_right = choices.select(pl.col("answers").list.contains(pick_series).fill_null(value=False)).to_series()
    return _build_accuracy(choices, is_right & pick_series.is_not_null(), pick_series.null_count())


def _build_accuracy(choices: pl.DataFrame, correct_shares: pl.Series, null_count: int = 0) -> Accuracy:
    """Build the accuracy from each row's share of being right, [n] in [0, 1]."""
    if not len(choices):
        raise ValueError("expected at least one row")
    share = float(np.mean(correct_shares.to_numpy()))
    low, high = wilson(np.array([share]), np.array([len(correct_shares)]))
    chances = choices.select(pl.col("answers").list.len() / pl.col("options").list.len()).to_series()
    return Accuracy(
        share, float(low[0]), float(high[0]), float(np.mean(chances.to_numpy())), len(correct_shares), null_count
    )


def measure_choice_baselines(choices: pl.DataFrame) -> pl.DataFrame:
    """Measure choice baselines that understand nothing; of tied options the share of right ones counts.

    Args:
        choices: text, context (null where there is none), options, answers.

    Returns:
        baseline, accuracy, low, high, chance, row_count, null_count. Baselines: longest and shortest option;
        most_overlap, the one with the largest share of its distinct units in context and text; least_overlap;
        position, the place that is right most often in these same rows.

    Raises:
        ValueError: no rows.
    """
    if not len(choices):
        raise ValueError("expected at least one row")
    overlaps = [_share_units(*row) for row in choices.select("text", "context", "options").iter_rows()]
    options = choices.with_row_index("row").select("row", "options", "answers").explode("options")
    options = options.with_columns(
        length=pl.col("options").str.len_chars().cast(pl.Float64),
        overlap=pl.Series([value for row in overlaps for value in row], dtype=pl.Float64),
        place=pl.int_range(pl.len()).over("row"),
    )
    options = options.with_columns(is_right=pl.col("answers").list.contains(pl.col("place")))
    right_counts = (
        options.group_by("place").agg(pl.col("is_right").sum()).sort("is_right", "place", descending=[True, False])
    )
    values = {
        "longest": pl.col("length"),
        "shortest": -pl.col("length"),
        "most_overlap": pl.col("overlap"),
        "least_overlap": -pl.col("overlap"),
        "position": (pl.col("place") == right_counts.item(0, "place")).cast(pl.Float64),
    }
    baselines = []
    for name, value in values.items():
        best = options.filter(value == value.max().over("row"))
        correct_shares = best.group_by("row", maintain_order=True).agg(pl.col("is_right").mean())["is_right"]
        baselines.append({"baseline": name, **_build_accuracy(choices, correct_shares)._asdict()})
    return pl.DataFrame(baselines)


def _share_units(text: str, context: str | None, options: list[str]) -> list[float]:
    """Compute the share of each option's distinct units that are in context or text."""
    text_units = set(split_units(f"{context or ''}\n{text}"))
    option_units = [set(split_units(option)) for option in options]
    return [len(distinct_units & text_units) / max(len(distinct_units), 1) for distinct_units in option_units]
