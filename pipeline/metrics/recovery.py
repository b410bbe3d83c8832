"""Quality of recovered hidden meanings: overlap with references, and choices between readings (CSD-03).

CSD names no measure, so the field's are taken, in [0, 1]: ROUGE-L (Lin 2004), BLEU (Papineni et al. 2002) and chrF
(Popović 2015), as rouge-score and sacrebleu count them. Chinese is counted by character, other writing by word.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from pipeline.metrics.overlap import rouge
from pipeline.metrics.overlap.bleu import bleu
from pipeline.metrics.overlap.metric import divide
from pipeline.metrics.overlap.segments import list_starts, read_batches
from pipeline.metrics.resample import Floats, wilson
from pipeline.text.segment import UNIT

METRICS = ("rouge_l", "bleu", "chrf")
BLEU_ORDERS, CHRF_ORDERS, CHRF_BETA = 4, 6, 2.0  # sacrebleu's defaults


def split_units(text: str) -> list[str]:
    """Split text into Chinese characters, lower-case words of other writing, and marks."""
    return UNIT.findall(text.lower())


def measure_overlap(answers: Sequence[str | None], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Measure the overlap of all answers with their references: rouge_l, bleu, chrf, row_count, null_count.

    Several references: ROUGE-L and chrF take the one that fits best, BLEU the most of each n-gram in any and the
    length nearest to the answer's. ROUGE-L is the mean of the rows, BLEU and chrF are of summed counts. A row without
    an answer (None) counts as an empty one. ValueError for lengths that differ, or a row without references.
    """
    if len(answers) != len(references) or not all(len(row_references) for row_references in references):
        raise ValueError(f"expected references for each of {len(answers)} answers, got {len(references)} lists")
    counts = {"row_count": len(answers), "null_count": sum(answer is None for answer in answers)}
    if not len(answers):
        return dict.fromkeys(METRICS, 0.0) | counts
    texts = [answer or "" for answer in answers]
    units = [split_units(text) for text in texts]
    reference_units = [[split_units(text) for text in row_references] for row_references in references]
    # an order without a match counts half, a quarter, … of a match (sacrebleu's smoothing `exp`), and orders longer
    # than the answers are left out (its `effective_order`): meanings are short
    metric = bleu(BLEU_ORDERS, "exp", effective_order=True)
    stats = np.concatenate([metric.stats(batch) for batch in read_batches(units, reference_units)])
    values = _rouge_l(units, reference_units), float(metric.score(stats.sum(axis=0))), _chrf(texts, references)
    return dict(zip(METRICS, values, strict=True)) | counts


def _rouge_l(answers: list[list[str]], references: list[list[list[str]]]) -> float:
    """Compute F1 of the longest common subsequence of units without marks, with the best reference."""
    without_marks = [[unit for unit in units if unit[0].isalnum()] for units in answers]
    references = [[[unit for unit in units if unit[0].isalnum()] for units in row] for row in references]
    best = []
    for batch in read_batches(without_marks, references):
        lengths = np.diff(batch.ends)[batch.owner] + np.diff(batch.ref_ends)
        f1 = 2 * rouge.measure_lengths(batch) / np.maximum(lengths, 1)
        best.append(np.maximum.reduceat(f1, list_starts(batch.owner)))
    return float(np.mean(np.concatenate(best)))


def _chrf(answers: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    owner = np.repeat(np.arange(len(answers)), [len(row) for row in references])
    letters = [list("".join(answer.split())) for answer in answers]
    reference_letters = [[list("".join(reference.split()))] for row in references for reference in row]
    batches = read_batches([letters[row] for row in owner], reference_letters)
    stats = np.concatenate([bleu(CHRF_ORDERS).stats(batch) for batch in batches])
    lengths, shared = stats[:, -2:], stats[:, :CHRF_ORDERS]
    counts = np.maximum(lengths[:, :, np.newaxis] - np.arange(CHRF_ORDERS), 0)  # n-grams of the answer, the reference
    counts[:, 0][counts[:, 1] == 0] = 0  # as sacrebleu: what no reference is long enough for does not count
    counts = np.concatenate([counts, shared[:, np.newaxis]], axis=1)
    best = np.lexsort((-_score_chrf(counts), owner))[list_starts(owner)]
    return float(_score_chrf(counts[best].sum(axis=0)))


def _score_chrf(counts: Floats) -> Floats:
    """Compute F of mean precision and recall over the orders of both; n-grams are [..., (answer, ref, shared), n]."""
    answer, reference, shared = np.moveaxis(counts, -2, 0)
    order_count = np.maximum(((answer > 0) & (reference > 0)).sum(axis=-1), 1)
    precision, recall = (divide(shared, total).sum(axis=-1) / order_count for total in (answer, reference))
    weight = CHRF_BETA**2
    return divide((1 + weight) * precision * recall, weight * precision + recall)


def compare_overlap(rows: pl.DataFrame) -> pl.DataFrame:
    """Measure the overlap of answers and of baselines that recover nothing: by, and the columns of `measure_overlap`.

    The baselines are the text itself, its context, and the meaning of another row, which shows how much of the overlap
    is the references' common wording. Without the column `meaning` there are only baselines.
    """
    references, first_meanings = rows["meanings"].to_list(), rows["meanings"].list.first()
    columns = {"answers": rows["meaning"]} if "meaning" in rows.columns else {}
    columns |= {"text": rows["text"], "context": rows["context"]}
    columns["other_meaning"] = pl.concat([first_meanings[1:], first_meanings[:1]])
    numbers = {name: measure_overlap(column.to_list(), references) for name, column in columns.items()}
    return pl.DataFrame([{"by": name, **row} for name, row in numbers.items()])


def _measure_accuracy(choices: pl.DataFrame, correct_shares: pl.Series, null_count: int = 0) -> dict[str, float]:
    """Measure the accuracy from each row's share of being right, [n] in [0, 1]; see `compare_choices`."""
    share = float(np.mean(correct_shares.to_numpy()))
    low, high = wilson(np.array([share]), np.array([len(choices)]))
    chances = choices.select(pl.col("answers").list.len() / pl.col("options").list.len()).to_series()
    chance = float(np.mean(chances.to_numpy()))
    numbers = {"accuracy": share, "low": float(low[0]), "high": float(high[0]), "chance": chance}
    return numbers | {"row_count": len(choices), "null_count": null_count}


def compare_choices(choices: pl.DataFrame, picks: Sequence[int | None] | None = None) -> pl.DataFrame:
    """Measure picks, the index of an option of each row or None, and baselines that understand nothing.

    Baselines: longest and shortest option; most_overlap, the one with the largest share of its distinct units in
    context and text; least_overlap; position, the place that is right most often in these same rows. Of tied options
    the mean counts.

    Returns by, accuracy (the share of right choices), low, high (Wilson's interval of 95 %), chance (mean share of a
    row's options that are right), row_count, null_count (rows without a choice, which count as wrong). ValueError
    without rows, or for not as many picks.
    """
    if not len(choices):
        raise ValueError("expected at least one row")
    rows = []
    if picks is not None:
        if len(choices) != len(picks):
            raise ValueError(f"expected a choice for each of {len(choices)} rows, got {len(picks)}")
        pick = pl.Series(picks, dtype=pl.Int64)
        is_right = choices.select(pl.col("answers").list.contains(pick).fill_null(value=False)).to_series()
        accuracy = _measure_accuracy(choices, is_right & pick.is_not_null(), pick.null_count())
        rows.append({"by": "answers", **accuracy})
    overlaps: list[float] = []  # the share of each option's distinct units that are in context or text
    for text, context, readings in choices.select("text", "context", "options").iter_rows():
        text_units, option_units = set(split_units(f"{context or ''}\n{text}")), map(set, map(split_units, readings))
        overlaps += [len(units & text_units) / max(len(units), 1) for units in option_units]
    options = choices.with_row_index("row").select("row", "options", "answers").explode("options")
    options = options.with_columns(
        length=pl.col("options").str.len_chars().cast(pl.Float64),
        overlap=pl.Series(overlaps, dtype=pl.Float64),
        place=pl.int_range(pl.len()).over("row"),
    )
    options = options.with_columns(is_right=pl.col("answers").list.contains(pl.col("place")))
    right_counts = options.group_by("place").agg(pl.col("is_right").sum())
    best_place = right_counts.sort("is_right", "place", descending=[True, False]).item(0, "place")
    values = {
        "longest": pl.col("length"), "shortest": -pl.col("length"), "most_overlap": pl.col("overlap"),
        "least_overlap": -pl.col("overlap"), "position": (pl.col("place") == best_place).cast(pl.Float64),
    }  # fmt: skip
    for name, value in values.items():
        best = options.filter(value == value.max().over("row"))
        correct_shares = best.group_by("row", maintain_order=True).agg(pl.col("is_right").mean())["is_right"]
        rows.append({"by": name, **_measure_accuracy(choices, correct_shares)})
    return pl.DataFrame(rows)
