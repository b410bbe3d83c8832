"""Quality of recovered hidden meanings: overlap with references, and choices between readings (CSD-03).

CSD names no measure, so the field's are taken, in [0, 1]: ROUGE-L (Lin 2004), BLEU (Papineni et al. 2002) and chrF
(Popović 2015), as the packages rouge-score and sacrebleu count them. Chinese is counted by character, other writing by
word; rouge-score's own tokenizer drops every character that is not ASCII. Baselines that understand nothing are
measured as well.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.metrics.overlap import lcs
from pipeline.metrics.overlap.bleu import bleu
from pipeline.metrics.overlap.metric import divide
from pipeline.metrics.overlap.segments import list_starts, read_batches
from pipeline.metrics.resample import wilson
from pipeline.text.segment import UNIT

Floats = npt.NDArray[np.float64]
METRICS = ("rouge_l", "bleu", "chrf")
BLEU_ORDERS, CHRF_ORDERS, CHRF_BETA = 4, 6, 2.0  # sacrebleu's defaults


def split_units(text: str) -> list[str]:
    """Split text into Chinese characters, lower-case words of other writing, and marks."""
    return UNIT.findall(text.lower())


def _rouge_l(answers: list[list[str]], references: list[list[list[str]]]) -> Floats:
    """Compute F1 of the longest common subsequence of units without marks, for the best reference; [n] in [0, 1]."""
    without_marks = [[unit for unit in units if unit[0].isalnum()] for units in answers]
    references = [[[unit for unit in units if unit[0].isalnum()] for units in row] for row in references]
    best = []
    for batch in read_batches(without_marks, references):
        lengths = np.diff(batch.ends)[batch.owner] + np.diff(batch.ref_ends)
        f1 = 2 * lcs.measure_lengths(batch) / np.maximum(lengths, 1)
        best.append(np.maximum.reduceat(f1, list_starts(batch.owner)))
    return np.concatenate(best)


def _bleu(answers: list[list[str]], references: list[list[list[str]]]) -> tuple[Floats, float]:
    """Compute BLEU of each answer, [n], and of all.

    An order without a match counts half, a quarter, … of a match (sacrebleu's smoothing `exp`), and orders longer than
    the answers are left out (its `effective_order`): meanings are short.
    """
    metric = bleu(BLEU_ORDERS, "exp", effective_order=True)
    stats = np.concatenate([metric.stats(batch) for batch in read_batches(answers, references)])
    return metric.score(stats), float(metric.score(stats.sum(axis=0)))


def _chrf(answers: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[Floats, float]:
    """Compute chrF of each answer with its best reference, [n], and of all."""
    owner = np.repeat(np.arange(len(answers)), [len(row) for row in references])
    letters = [list("".join(answer.split())) for answer in answers]
    reference_letters = [[list("".join(reference.split()))] for row in references for reference in row]
    batches = read_batches([letters[row] for row in owner], reference_letters)
    stats = np.concatenate([bleu(CHRF_ORDERS).stats(batch) for batch in batches])
    lengths, shared = stats[:, -2:], stats[:, :CHRF_ORDERS]
    counts = np.maximum(lengths[:, :, np.newaxis] - np.arange(CHRF_ORDERS), 0)  # n-grams of the answer, the reference
    counts[:, 0][counts[:, 1] == 0] = 0  # as sacrebleu: what no reference is long enough for does not count
    counts = np.concatenate([counts, shared[:, np.newaxis]], axis=1)
    scores = _score_chrf(counts)
    best = np.lexsort((-scores, owner))[list_starts(owner)]
    return scores[best], float(_score_chrf(counts[best].sum(axis=0)))


def _score_chrf(counts: Floats) -> Floats:
    """Compute F with beta 2 of mean precision and mean recall over the orders that both sides have.

    Args:
        counts: n-grams of the answer, of the reference, shared, [..., 3, orders].
    """
    answer, reference, shared = np.moveaxis(counts, -2, 0)
    order_count = np.maximum(((answer > 0) & (reference > 0)).sum(axis=-1), 1)
    precision, recall = (divide(shared, total).sum(axis=-1) / order_count for total in (answer, reference))
    weight = CHRF_BETA**2
    return divide((1 + weight) * precision * recall, weight * precision + recall)


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
    if not len(answers):
        return Overlap(pl.DataFrame(schema=dict.fromkeys(METRICS, pl.Float64)), dict.fromkeys(METRICS, 0.0), 0, 0)
    texts = [answer or "" for answer in answers]
    units = [split_units(text) for text in texts]
    reference_units = [[split_units(text) for text in row_references] for row_references in references]
    f1 = _rouge_l(units, reference_units)
    (bleu_rows, bleu_corpus), (chrf_rows, chrf_corpus) = _bleu(units, reference_units), _chrf(texts, references)
    table = pl.DataFrame(dict(zip(METRICS, (f1, bleu_rows, chrf_rows), strict=True)))
    corpus = dict(zip(METRICS, (float(np.mean(f1)), bleu_corpus, chrf_corpus), strict=True))
    return Overlap(table, corpus, len(answers), sum(answer is None for answer in answers))


def measure_overlap_baselines(rows: pl.DataFrame) -> pl.DataFrame:
    """Measure the overlap of baselines: the text itself, its context, and the meaning of another row.

    The last shows how much of the overlap is the references' common wording.

    Args:
        rows: text, context (null where there is none), meanings.

    Returns:
        baseline (text, context, other_meaning), rouge_l, bleu, chrf (corpus values), row_count, null_count.
    """
    references, meanings = rows["meanings"].to_list(), rows["meanings"].list.first()
    answers = {
        "text": rows["text"],
        "context": rows["context"],
        "other_meaning": pl.concat([meanings[1:], meanings[:1]]),
    }
    baselines = []
    for name, column in answers.items():
        overlap = measure_overlap(column.to_list(), references)
        counts = {"row_count": overlap.row_count, "null_count": overlap.null_count}
        baselines.append({"baseline": name, **overlap.corpus, **counts})
    return pl.DataFrame(baselines)


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
    right_counts = options.group_by("place").agg(pl.col("is_right").sum())
    best_place = right_counts.sort("is_right", "place", descending=[True, False]).item(0, "place")
    values = {
        "longest": pl.col("length"),
        "shortest": -pl.col("length"),
        "most_overlap": pl.col("overlap"),
        "least_overlap": -pl.col("overlap"),
        "position": (pl.col("place") == best_place).cast(pl.Float64),
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
