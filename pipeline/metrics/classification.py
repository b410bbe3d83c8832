"""Quality of a classifier: precision, recall and F1 by class and macro averaged (errata E9), with intervals.

CSD's P 64.8, R 69.9, F1 66.1 are macro averages: the harmonic mean of the first two is 67.25. Macro values are means
over the classes in truth or prediction, as in scikit-learn; a class without cases counts 0.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.metrics import resample
from pipeline.metrics.resample import SEED, Floats, Interval, Names, bounds, draw_counts, number_units

Labels = npt.NDArray[np.integer]
Metric = Literal["accuracy", "precision", "recall", "f1"]


def confusion(truth: Labels, predicted: Labels) -> npt.NDArray[np.int64]:
    """Count how often each class was predicted for each: int64 [classes, classes], truth by row."""
    size = int(max(truth.max(), predicted.max())) + 1
    return np.bincount(truth * size + predicted, minlength=size * size).reshape(size, size)


def macro_f1(truth: Labels, predicted: Labels) -> float:
    """Compute the mean of the classes' F1."""
    return float(compute_metric(confusion(truth, predicted), "f1"))


def compute_metric(tables: npt.NDArray[np.integer], metric: Metric) -> Floats:
    """Compute a metric of confusion tables: [..., classes, classes] -> [...]; a class whose divisor is 0 counts 0."""
    correct = np.diagonal(tables, axis1=-2, axis2=-1)
    if metric == "accuracy":
        return np.asarray(correct.sum(axis=-1) / tables.sum(axis=(-2, -1)), np.float64)
    predicted, true = tables.sum(axis=-2), tables.sum(axis=-1)
    parts = {"precision": (correct, predicted), "recall": (correct, true), "f1": (2 * correct, predicted + true)}
    part, divisor = parts[metric]
    return np.asarray((part / np.maximum(divisor, 1)).sum(axis=-1) / (predicted + true > 0).sum(axis=-1), np.float64)


def estimate_interval(
    truth: Labels, predicted: Labels, metric: Metric = "f1", *, groups: Names | None = None, draws: int = 2000
) -> Interval:
    """Compute a metric, macro averaged but for accuracy, with its percentile bootstrap interval of 95 %.

    Truth and prediction are class numbers from 0, [n]. Groups are names [n] of what rows depend on, such as topics:
    whole groups are drawn, by default single rows.
    """
    (tables,) = sample_tables(truth, [predicted], groups, draws)
    return Interval(float(compute_metric(confusion(truth, predicted), metric)), *bounds(compute_metric(tables, metric)))


def calibration_error(truth: Labels, probabilities: Floats, bins: int = 10) -> float:
    """Compute the expected calibration error (Guo et al., 2017) of probabilities [n, classes] in bins of equal width.

    Confidence is the probability of the class with the largest one; a bin holds its upper edge.
    """
    is_right = probabilities.argmax(axis=1) == truth
    rows = pl.DataFrame({"confidence": probabilities.max(axis=1), "is_right": is_right})
    index = ((pl.col("confidence") * bins).ceil() - 1).clip(0, bins - 1)
    means = rows.group_by(index=index).agg(pl.col("confidence", "is_right").mean(), share=pl.len() / len(rows))
    gaps = (pl.col("confidence") - pl.col("is_right")).abs()
    return float(means.sort("index").select((pl.col("share") * gaps).sum()).item())


def sample_tables(
    truth: Labels, predictions: list[Labels], groups: Names | None, draws: int
) -> list[npt.NDArray[np.int64]]:
    """Sample rows, or groups of them, alike for each predictor: confusion tables [draws, classes, classes] of each."""
    size = int(max(labels.max() for labels in (truth, *predictions))) + 1
    cells = np.stack([truth * size + predicted for predicted in predictions])
    copies: npt.NDArray[np.int64]
    tables: npt.NDArray[np.int64]
    if groups is None:  # rows that are alike are drawn as one
        distinct_cells, copies = np.unique(cells, axis=1, return_counts=True)
        tables = np.eye(size**2, dtype=np.int64)[distinct_cells]
    else:
        units = number_units(groups, len(truth))
        copies = np.ones(units.max() + 1, np.int64)
        tables = np.stack([np.bincount(row, minlength=len(copies) * size**2) for row in units * size**2 + cells])
    tables = tables.reshape(len(cells), len(copies), size**2)
    unit_rows: npt.NDArray[np.int64] = np.hstack([*tables])
    samples = resample.sum_samples(unit_rows, draw_counts(copies, draws, SEED))
    return [sums.reshape(draws, size, size) for sums in np.split(samples, len(cells), axis=1)]
