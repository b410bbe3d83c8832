"""Quality of a classifier: precision, recall and F1 by class and macro averaged (errata E9), with intervals.

CSD's P 64.8, R 69.9, F1 66.1 are macro averages: the harmonic mean of the first two is 67.25. Macro values are means
over the classes in truth or prediction, as in scikit-learn; a class without cases counts 0.
"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from pipeline.metrics.resample import Names, bounds, draw_counts, number_units, p_value, sum_samples, tail_shares

Labels = npt.NDArray[np.integer]
Floats = npt.NDArray[np.float64]
Metric = Literal["accuracy", "precision", "recall", "f1"]


class Interval(NamedTuple):
    """A number and its confidence bounds."""

    value: float
    low: float
    high: float


class Comparison(NamedTuple):
    """Difference of two predictors on the same rows, and its p if they were equally good."""

    difference: float
    low: float
    high: float
    p: float


def confusion(truth: Labels, predicted: Labels, classes: int | None = None) -> npt.NDArray[np.int64]:
    """Count how often each class was predicted for each: int64 [classes, classes], truth by row."""
    truth, predicted = _check_labels(truth, predicted)
    size = classes or int(max(truth.max(), predicted.max())) + 1
    return np.bincount(truth * size + predicted, minlength=size * size).reshape(size, size)


def macro_f1(truth: Labels, predicted: Labels) -> float:
    """Compute the mean of the classes' F1."""
    return float(compute_metric(confusion(truth, predicted), "f1"))


def compute_metric(tables: npt.NDArray[np.integer], metric: Metric) -> Floats:
    """Compute a metric of confusion tables: [..., classes, classes] -> [...]."""
    if metric == "accuracy":
        correct = np.trace(tables, axis1=-2, axis2=-1)
        return np.asarray(correct / tables.sum(axis=(-2, -1)), np.float64)
    index = ("precision", "recall", "f1").index(metric)
    occurs = tables.sum(axis=-1) + tables.sum(axis=-2) > 0
    return np.asarray(np.where(occurs, _score_classes(tables)[index], 0).sum(axis=-1) / occurs.sum(axis=-1), np.float64)


def _score_classes(tables: npt.NDArray[np.integer]) -> tuple[Floats, Floats, Floats]:
    """Compute precision, recall and F1 by class, each [..., classes]; 0 where the divisor is 0."""
    correct = np.diagonal(tables, axis1=-2, axis2=-1)
    predicted, true = tables.sum(axis=-2), tables.sum(axis=-1)
    return (
        correct / np.maximum(predicted, 1),
        correct / np.maximum(true, 1),
        2 * correct / np.maximum(predicted + true, 1),
    )


def estimate_interval(
    truth: Labels,
    predicted: Labels,
    metric: Metric = "f1",
    *,
    groups: Names | None = None,
    draws: int = 2000,
    confidence: float = 0.95,
    seed: int = 42,
) -> Interval:
    """Compute a metric with its percentile bootstrap interval.

    Args:
        truth: class numbers from 0, [n].
        predicted: the same, [n].
        metric: macro averaged, but for accuracy.
        groups: names [n] of what rows depend on, such as topics: whole groups are drawn. By default single rows.
        draws: samples drawn with replacement.
        confidence: share of samples between the bounds.
        seed: of the draws.
    """
    tables = _sample_tables(truth, [predicted], groups, draws, seed)[0]
    value = float(compute_metric(confusion(truth, predicted), metric))
    return Interval(value, *bounds(compute_metric(tables, metric), tail_shares(confidence)))


def compare(
    truth: Labels,
    first: Labels,
    second: Labels,
    metric: Metric = "f1",
    *,
    groups: Names | None = None,
    draws: int = 2000,
    confidence: float = 0.95,
    seed: int = 42,
) -> Comparison:
    """Measure how much better `first` is than `second` by a paired bootstrap; arguments as of `estimate_interval`.

    p is that of `resample.p_value`.
    """
    first_samples, second_samples = (
        compute_metric(tables, metric) for tables in _sample_tables(truth, [first, second], groups, draws, seed)
    )
    values = [float(compute_metric(confusion(truth, predicted), metric)) for predicted in (first, second)]
    differences = first_samples - second_samples
    return Comparison(values[0] - values[1], *bounds(differences, tail_shares(confidence)), p_value(differences))


def mcnemar(truth: Labels, first: Labels, second: Labels) -> float:
    """Compute the exact two-sided p of McNemar's test; 1 if both predictors err on the same rows."""
    truth, first = _check_labels(truth, first)
    truth, second = _check_labels(truth, second)
    first_only = int(((first == truth) & (second != truth)).sum())
    second_only = int(((first != truth) & (second == truth)).sum())
    disagreements = first_only + second_only
    return float(stats.binomtest(first_only, disagreements, 0.5).pvalue) if disagreements else 1.0


class Calibration(NamedTuple):
    """Expected calibration error, and a row for each bin that is not empty: low, high, confidence, accuracy, count."""

    error: float
    bins: pl.DataFrame


def calibration(truth: Labels, probabilities: Floats, bins: int = 10) -> Calibration:
    """Compute the expected calibration error (Guo et al., 2017) in bins of confidence of equal width.

    Args:
        truth: class numbers from 0, [n].
        probabilities: of the classes, [n, classes].
        bins: of confidence, the probability of the class with the largest one; a bin holds its upper edge.
    """
    predicted = probabilities.argmax(axis=1)
    truth, predicted = _check_labels(truth, predicted)
    rows = pl.DataFrame({"confidence": probabilities.max(axis=1), "right": predicted == truth})
    bin_index = ((pl.col("confidence") * bins).ceil() - 1).clip(0, bins - 1)
    bin_rows = (
        rows.group_by(low=bin_index / bins)
        .agg(
            pl.col("confidence").mean(), accuracy=pl.col("right").mean(), count=pl.len().cast(pl.Int64)
        )
        .sort("low")
    )  # fmt: skip
    shares = bin_rows["count"] / len(rows)
    error = float((shares * (bin_rows["confidence"] - bin_rows["accuracy"]).abs()).sum())
    high = pl.col("low") + 1 / bins
    return Calibration(error, bin_rows.select("low", high.alias("high"), "confidence", "accuracy", "count"))


def _sample_tables(
    truth: Labels, predictions: list[Labels], groups: Names | None, draws: int, seed: int
) -> list[npt.NDArray[np.int64]]:
    """Compute the confusion tables of the same samples for each predictor, each [draws, classes, classes].

    A sample holds how often each group is drawn; its table is the weighted sum of the groups' tables.
    """
    class_numbers = [_check_labels(truth, predicted)[1] for predicted in predictions]
    truth = np.asarray(truth)
    size = int(max(truth.max(), *(predicted.max() for predicted in class_numbers))) + 1
    cells = np.stack([truth * size + predicted for predicted in class_numbers])
    copies: npt.NDArray[np.int64]
    tables: npt.NDArray[np.int64]
    if groups is None:  # rows that are alike are drawn as one
        distinct_cells, copies = np.unique(cells, axis=1, return_counts=True)
        tables = np.eye(size**2, dtype=np.int64)[distinct_cells]
    else:
        units = number_units(groups, len(truth))
        copies = np.ones(units.max() + 1, np.int64)
        cell_index = units * size**2 + cells
        tables = np.stack([np.bincount(row, minlength=len(copies) * size**2) for row in cell_index])
    tables = tables.reshape(len(cells), len(copies), size**2)
    unit_rows: npt.NDArray[np.int64] = np.hstack([*tables])
    samples = sum_samples(unit_rows, draw_counts(copies, draws, seed))
    return [sums.reshape(draws, size, size) for sums in np.split(samples, len(cells), axis=1)]


def _check_labels(truth: Labels, predicted: Labels) -> tuple[Labels, Labels]:
    truth, predicted = np.asarray(truth), np.asarray(predicted)
    if truth.shape != predicted.shape or truth.ndim != 1 or not len(truth):
        raise ValueError(f"truth and prediction should be equally long and not empty: {truth.shape}, {predicted.shape}")
    if min(truth.min(), predicted.min()) < 0:
        raise ValueError("classes are numbered from 0")
    return truth, predicted
