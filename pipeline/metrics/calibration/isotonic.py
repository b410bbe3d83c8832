"""Read one measure as another: the isotonic map, its error on other texts, its interval, and the calibration curve.

In: values and targets [n]. `units` number the thread of each text, from 0: folds and samples take threads as a whole.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.metrics.resample import DRAWS, SEED, Floats, Ints, bounds, draw_counts, sum_samples, sum_units

FOLDS = 5
LEAST_THREADS = 10  # for an interval over them
BIN_SIZE = 20  # texts of a bin at least, if there are two bins or more
MOST_BINS = 10

Fit = Callable[[npt.NDArray[np.bool_]], Floats]


class Map(NamedTuple):
    """A rising step function between knots; between two knots it is linear, outside it is that of the nearest.
    The target of a new text is within `error` of it in 95 % of cases, over all values; not at each of them.
    """

    x: Floats  # [knots], rising
    y: Floats  # [knots], never falling
    error: float = np.nan
    least: float = -np.inf  # least and largest target
    most: float = np.inf

    def apply(self, values: Floats) -> Floats:
        """Map values: [n]."""
        return np.interp(values, self.x, self.y)

    def predict(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Predict targets and their intervals of 95 %: three times [n]; without an error the ends are NaN."""
        mapped = self.apply(values)
        low, high = (np.clip(mapped + side * self.error, self.least, self.most) for side in (-1, 1))
        return mapped, low, high


def fit_map(values: Floats, targets: Floats) -> Map:
    """Fit the rising map with the least squared error, by pool-adjacent-violators."""
    from sklearn.isotonic import IsotonicRegression

    fit = IsotonicRegression(out_of_bounds="clip").fit(values, targets)
    return Map(fit.X_thresholds_, fit.y_thresholds_)


def fit_interval(values: Floats, targets: Floats, units: Ints) -> Map:
    """Fit the map with its interval: the 95 % quantile of absolute residuals, each by a map of other threads.
    It is the conformal quantile, of rank 0.95 (n + 1) (Lei et al., 2018). Fewer than ten threads or 19 texts have none.
    """
    threads = np.unique(units, return_inverse=True)[1]
    rank = int(np.ceil(0.95 * (len(values) + 1)))
    error = np.nan
    if threads.max() + 1 >= LEAST_THREADS and rank <= len(values):
        error = float(np.sort(np.abs(targets - cross_map(values, targets, threads)))[rank - 1])
    return fit_map(values, targets)._replace(error=error, least=float(targets.min()), most=float(targets.max()))


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


def draw_curve(values: Floats, targets: Floats, units: Ints, *, draws: int = DRAWS) -> pl.DataFrame:
    """Compute the mean target in bins of equally many values, with a bootstrap interval over threads.

    Returns from, to (values of the bin), n, mean_value, mean_target, low, high (95 %). Equal values are in one bin.
    """
    bin_count = int(np.clip(len(values) // BIN_SIZE, 1, MOST_BINS))
    edges = np.unique(np.quantile(values, np.linspace(0, 1, bin_count + 1)[1:-1]))
    bins = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1]
    is_member = (bins[:, None] == np.arange(bins.max() + 1)).astype(float)  # [n, bins]
    sums = sum_units(np.hstack([is_member * targets[:, None], is_member]), units)
    totals, counts = np.hsplit(sum_samples(sums, draw_counts(len(sums), draws, SEED)), 2)  # [draws, bins] each
    means = np.divide(totals, counts, out=np.full_like(totals, np.nan), where=counts > 0)
    rows = []
    for number, member in enumerate(is_member.T.astype(bool)):
        inside, mean_target = values[member], float(targets[member].mean())
        rows.append((inside.min(), inside.max(), len(inside), inside.mean(), mean_target, *bounds(means[:, number])))
    names = ("from", "to", "n", "mean_value", "mean_target", "low", "high")
    return pl.DataFrame(rows, schema={name: pl.Int64 if name == "n" else pl.Float64 for name in names}, orient="row")
