"""How often readers of cloze items choose the right option: accuracy with intervals, by kind of item, two readers on
the same items, and readers on the other kind of abstractness (ReCAM, sections 4 and 4.3, tables 6 and 7).

In: for each item whether the reader is right, a boolean [n]. Items of one article depend on each other: give `groups`.
Of ranked candidates, best first: where the word that was left out stands (tables 3 and 4; REC-22).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

from pipeline.metrics import classification
from pipeline.metrics.resample import Names, bounds, number_units, p_value, wilson

Rights = npt.NDArray[np.bool_] | pl.Series | Sequence[bool]


class Share(NamedTuple):
    """A share of right answers, its 95 % interval, and of how many items."""

    value: float
    low: float
    high: float
    n: int


class Comparison(NamedTuple):
    """Difference in accuracy of two readers, and its p if they were equally good."""

    difference: float
    low: float
    high: float
    p: float  # of the bootstrap
    mcnemar: float  # p of the exact test, which assumes independent items
    n: int


def accuracy(is_right: Rights, groups: Names | None = None, *, draws: int = 2000) -> Share:
    """Compute the share of right answers with its percentile bootstrap interval of 95 %; whole groups are drawn.

    ValueError for no items, one without an answer (null), or not as many groups as items.
    """
    right = _check_answers(is_right)
    interval = classification.estimate_interval(np.ones_like(right), right, "accuracy", groups=groups, draws=draws)
    return Share(*interval, len(right))


def measure_groups(is_right: Rights, values: pl.Series, articles: Names) -> pl.DataFrame:
    """Compute accuracy by group: part of speech of the gold word, length bin (`bin_lengths`), …; null is a group, too.

    The interval is Wilson's, as parts may hold only right items; those of one article count as one answer. Columns:
    group (the value as text, null where it is null), n, accuracy, low, high; rows in the order of the values.
    """
    right = _check_answers(is_right)
    rows = pl.DataFrame({"value": values, "right": right, "unit": number_units(articles, len(right))})
    counts = {"n": pl.len().cast(pl.Int64), "units": pl.col("unit").n_unique().cast(pl.Int64)}
    groups = rows.group_by("value").agg(pl.col("right").mean().alias("accuracy"), **counts)
    groups = groups.sort("value", nulls_last=True)
    low, high = wilson(groups["accuracy"].to_numpy(), groups["units"].to_numpy())
    return groups.select(pl.col("value").cast(pl.String).alias("group"), "n", "accuracy", low=low, high=high)


def bin_lengths(lengths: pl.Series, edges: Sequence[int]) -> pl.Series:
    """Assign lengths to bins, an Enum in order such as `0–120`, `121–250`, `251+`; edges are last lengths, growing."""
    starts = [0, *(end + 1 for end in edges)]
    labels = [*(f"{start}–{end}" for start, end in zip(starts, edges, strict=False)), f"{starts[-1]}+"]
    bins = np.searchsorted(np.array(edges), lengths.to_numpy())
    return pl.Series(lengths.name, np.array(labels)[bins], dtype=pl.Enum(labels))


def compare(first: Rights, second: Rights, groups: Names | None = None) -> Comparison:
    """Measure how much more often `first` is right than `second`, by a paired bootstrap over the same items.

    p is that of `resample.p_value`. McNemar's exact test is for single items. ValueError as of `accuracy`.
    """
    first_answers, second_answers = _check_answers(first), _check_answers(second)
    tables = classification.sample_tables(np.ones_like(first_answers), [first_answers, second_answers], groups, 2000)
    first_samples, second_samples = (classification.compute_metric(table, "accuracy") for table in tables)
    differences = first_samples - second_samples
    difference = float(first_answers.mean()) - float(second_answers.mean())
    first_only = int((first_answers > second_answers).sum())
    disagreements = int((first_answers != second_answers).sum())
    exact = float(scipy.stats.binomtest(first_only, disagreements, 0.5).pvalue) if disagreements else 1.0
    return Comparison(difference, *bounds(differences), p_value(differences), exact, len(first_answers))


def compare_subtasks(cells: pl.DataFrame, keys: Sequence[str] = ()) -> pl.DataFrame:
    """Measure how much readers lose on the subtask that they were not trained on (section 4.3; REC-30).

    Cells have trained_on, tested_on, accuracy and the keys, columns that identify readers, such as the team.

    Returns the keys, tested_on, trained_on, home (accuracy of the one trained on what it is tested on, null where there
    is none), away, drop (home - away); a row a cell off the diagonal, in the order of the cells.
    """
    is_home = pl.col("trained_on") == pl.col("tested_on")
    home = cells.filter(is_home).select(*keys, "tested_on", home="accuracy")
    away = cells.filter(~is_home).select(*keys, "tested_on", "trained_on", away="accuracy")
    losses = away.join(home, on=[*keys, "tested_on"], how="left", maintain_order="left", nulls_equal=True)
    return losses.select(*keys, "tested_on", "trained_on", "home", "away", drop=pl.col("home") - pl.col("away"))


def _check_answers(is_right: Rights) -> npt.NDArray[np.int64]:
    """Return 1 where the reader is right, else 0."""
    answers = pl.Series("is_right", is_right, dtype=pl.Boolean)
    if not len(answers) or answers.null_count():
        raise ValueError(f"expected at least one item, and an answer of each, found {answers.null_count()} null")
    return answers.cast(pl.Int64).to_numpy()


Ranks = npt.NDArray[np.int64]


class Retrieval(NamedTuple):
    """The numbers of table 3."""

    mrr: float
    recall_1: float
    recall_5: float
    recall_10: float
    row_count: int


def find_ranks(candidates: Sequence[Sequence[str]], right: Sequence[str]) -> Ranks:
    """Find the position of the right word in each list, from 1; 0 where it is absent: int64 [n]."""
    pairs = zip(candidates, right, strict=True)
    return np.array([words.index(word) + 1 if word in words else 0 for words, word in pairs], np.int64)


def mrr(ranks: Ranks) -> float:
    """Compute mean reciprocal rank (Craswell, 2009) of `find_ranks`; an absent word counts 0."""
    if not len(ranks):
        raise ValueError("expected at least one rank")
    return float(np.mean(np.where(ranks > 0, 1 / np.maximum(ranks, 1), 0.0)))


def report(candidates: Sequence[Sequence[str]], right: Sequence[str]) -> Retrieval:
    """Compute MRR of ranked lists and their right words, and the share of words among the first 1, 5 and 10."""
    ranks = find_ranks(candidates, right)
    recalls = (float(np.mean((ranks > 0) & (ranks <= k))) for k in (1, 5, 10))
    return Retrieval._make((mrr(ranks), *recalls, len(ranks)))
