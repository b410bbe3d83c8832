"""Read one measure as another: the isotonic map, its error on other texts, and the calibration curve.

In: values and targets [n]. `units` number the thread of each text, from 0: folds and samples take threads as a whole.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.metrics.resample import Floats, Ints, bounds, draw_counts, sum_samples, sum_units

FOLDS = 5
DRAWS = 1000
SEED = 42
BIN_SIZE = 20  # texts of a bin at least, if there are two bins or more
MOST_BINS = 10

Fit = Callable[[npt.NDArray[np.bool_]], Floats]


class Map(NamedTuple):
    """A rising step function between knots; between two knots it is linear, outside it is that of the nearest."""

    x: Floats  # [knots], rising
    y: Floats  # [knots], never falling

    def apply(self, values: Floats) -> Floats:
        """Map values: [n]."""
        return np.interp(values, self.x, self.y)


def fit_map(values: Floats, targets: Floats) -> Map:
    """Fit the rising map with the least squared error, by pool-adjacent-violators."""
    from sklearn.isotonic import IsotonicRegression

    fit = IsotonicRegression(out_of_bounds="clip").fit(values, targets)
    return Map(fit.X_thresholds_, fit.y_thresholds_)


def cross_predict(units: Ints, predict: Fit) -> Floats:
    """Predict each text from the others: [n]. `predict` gets a mask of the texts to learn from, and predicts all."""
    unit_count = int(units.max()) + 1
    parts = min(FOLDS, unit_count)
    folds = (np.random.default_rng(SEED).permutation(unit_count) % parts)[units]
    predicted = np.empty(len(units))
    for part in range(parts):
        is_held_out = folds == part
        predicted[is_held_out] = predict(~is_held_out if parts > 1 else is_held_out)[is_held_out]
    return predicted


def cross_map(values: Floats, targets: Floats, units: Ints) -> Floats:
    """Map each value by a map that is fitted on other threads: [n]."""
    return cross_predict(units, lambda is_seen: fit_map(values[is_seen], targets[is_seen]).apply(values))


def predict_constant(targets: Floats, units: Ints) -> Floats:
    """Predict each target by the mean of the other threads': [n]."""
    return cross_predict(units, lambda is_seen: np.full(len(targets), targets[is_seen].mean()))


def draw_curve(values: Floats, targets: Floats, units: Ints, *, draws: int = DRAWS, seed: int = SEED) -> pl.DataFrame:
    """Compute the mean target in bins of equally many values, with a bootstrap interval over threads.

    Returns from, to (values of the bin), n, mean_value, mean_target, low, high (95 %). Equal values are in one bin.
    """
    bin_count = int(np.clip(len(values) // BIN_SIZE, 1, MOST_BINS))
    edges = np.unique(np.quantile(values, np.linspace(0, 1, bin_count + 1)[1:-1]))
    bins = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1]
    is_member = (bins[:, None] == np.arange(bins.max() + 1)).astype(float)  # [n, bins]
    sums = sum_units(np.hstack([is_member * targets[:, None], is_member]), units)
    totals, counts = np.hsplit(sum_samples(sums, draw_counts(len(sums), draws, seed)), 2)  # [draws, bins] each
    means = np.divide(totals, counts, out=np.full_like(totals, np.nan), where=counts > 0)
    rows = []
    for number, member in enumerate(is_member.T.astype(bool)):
        inside, mean_target = values[member], float(targets[member].mean())
        rows.append((inside.min(), inside.max(), len(inside), inside.mean(), mean_target, *bounds(means[:, number])))
    names = ("from", "to", "n", "mean_value", "mean_target", "low", "high")
    return pl.DataFrame(rows, schema={name: pl.Int64 if name == "n" else pl.Float64 for name in names}, orient="row")
