"""Compare two measures of the same texts, next to what the surface and a constant reach; may one stand in for raters?

In: rows of a, b (numbers), text, lang, source and thread. All predictions of b are made from texts of other threads;
`units` number the thread of each text, from 0. One measure is read as another by an isotonic map. The alternative-
annotator test (Calderon, Reichart and Dror, arXiv 2501.10970) leaves out each rater in turn and asks on every text
which is nearer to the others, the measure or that rater, in a share at most `epsilon` lower.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

from pipeline.metrics import resample
from pipeline.metrics.commenting.correlation import correlate
from pipeline.metrics.impscore.artefacts import BASELINES, WORD, predict_values
from pipeline.metrics.resample import DRAWS, SEED, Floats, Ints

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


def draw_curve(values: Floats, targets: Floats, units: Ints, *, draws: int = DRAWS) -> pl.DataFrame:
    """Compute the mean target in bins of equally many values, with a bootstrap interval over threads.

    Returns from, to (values of the bin), n, mean_value, mean_target, low, high (95 %). Equal values are in one bin.
    """
    bin_count = int(np.clip(len(values) // BIN_SIZE, 1, MOST_BINS))
    edges = np.unique(np.quantile(values, np.linspace(0, 1, bin_count + 1)[1:-1]))
    bins = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1]
    is_member = (bins[:, None] == np.arange(bins.max() + 1)).astype(float)  # [n, bins]
    sums = resample.sum_units(np.hstack([is_member * targets[:, None], is_member]), units)
    samples = resample.sum_samples(sums, resample.draw_counts(len(sums), draws, SEED))
    totals, counts = np.hsplit(samples, 2)  # [draws, bins] each
    means = np.divide(totals, counts, out=np.full_like(totals, np.nan), where=counts > 0)
    rows = []
    for number, member in enumerate(is_member.T.astype(bool)):
        inside = values[member]
        numbers = inside.min(), inside.max(), len(inside), inside.mean(), targets[member].mean()
        rows.append((*numbers, *resample.bounds(means[:, number])))
    names = ("from", "to", "n", "mean_value", "mean_target", "low", "high")
    return pl.DataFrame(rows, schema={name: pl.Int64 if name == "n" else pl.Float64 for name in names}, orient="row")


LEAST_ROWS = 20  # texts with both values
LEAST_JUDGED = 50  # texts below which no measure is called random
CONSTANT = 0.9  # share of one value above which a measure says nothing else
CORRELATED = ("spearman", "low", "high")
DECIMALS = 6
# Two texts of different folds predict each other. The bootstrap takes predictions as given, so it does not see that
# such a pair counts twice: where the surface predicts nothing, the variance is twice that of its samples.
CROSSED = 2**0.5


class Comparison(NamedTuple):
    """How a stands to b."""

    measures: pl.DataFrame  # by (the name of a, constant, a baseline), n, spearman, low, high, error (RMSE of b)
    subsets: pl.DataFrame  # subset, n, spearman, low, high, error, constant_error, shift (mean of mapped a less b)
    curve: pl.DataFrame  # of `draw_curve`
    maps: dict[str, Map]  # of all texts, and of each language
    mapped: Floats  # a as b, each by a map of other threads
    faults: list[str]  # a measure that is constant or random


def compare(rows: pl.DataFrame, name_a: str = "a", name_b: str = "b") -> Comparison:
    """Compare two measures of these names; ValueError for fewer than 20 texts."""
    if rows.height < LEAST_ROWS:
        raise ValueError(f"a calibration needs at least {LEAST_ROWS} texts with both values, found {rows.height}")
    a, b = (rows[name].cast(pl.Float64).to_numpy() for name in "ab")
    units = resample.number_units(rows["thread"], rows.height)
    mapped = cross_map(a, b, units)
    constant = _predict_mean(b, units)
    own_row = _build_row(name_a, a, b, units, mapped)
    constant_row = {"by": "constant", **dict.fromkeys(CORRELATED), "error": _measure_error(constant, b)}
    measure_rows = [own_row, own_row | constant_row, *_measure_surface(rows, b, units)]
    subsets, maps = [], {}
    for subset, mask in _list_subsets(rows):
        row = _build_row(subset, a[mask], b[mask], units[mask], mapped[mask])
        row |= {"constant_error": _measure_error(constant[mask], b[mask]), "shift": float((mapped - b)[mask].mean())}
        subsets.append(row)
        if subset == "all" or subset.startswith("lang "):
            maps[subset] = fit_interval(a[mask], b[mask], units[mask])
    if rows["lang"].n_unique() == 1:  # no subset of its own
        maps[f"lang {rows['lang'][0]}"] = maps["all"]
    measures = _build_frame(measure_rows)
    reverse = _build_frame([own_row, *_measure_surface(rows, a, units)])
    faults = _name_faults(name_b, b, measures) + _name_faults(name_a, a, reverse)
    frame = _build_frame(subsets).rename({"by": "subset"})
    return Comparison(measures, frame, draw_curve(a, b, units), maps, mapped, faults)


def predict_from_surface(rows: pl.DataFrame, target: Floats, units: Ints) -> dict[str, Floats]:
    """Predict a target from each surface baseline, fitted on other threads; without texts, none.

    The mean of the training targets is subtracted. It is low where the predicted texts are high, so with it a baseline
    that knows nothing would correlate negatively.
    """
    texts = np.array(rows["text"].fill_null("").to_list(), dtype=object)
    has_words = rows["text"].fill_null("").str.contains(WORD).sum() > rows.height / 2

    def predict(name: str, is_seen: npt.NDArray[np.bool_]) -> Floats:
        return predict_values(name, [*texts[is_seen]], target[is_seen] - target[is_seen].mean(), [*texts])

    names = BASELINES[:3] if has_words else ()
    return {name: cross_predict(units, partial(predict, name)).round(9) for name in names}


def _predict_mean(target: Floats, units: Ints) -> Floats:
    return cross_predict(units, lambda is_seen: np.full(len(target), target[is_seen].mean()))


def _measure_surface(rows: pl.DataFrame, target: Floats, units: Ints) -> list[dict[str, object]]:
    """Measure each surface baseline; one that is the same for all texts has no correlation."""
    mean, surface = _predict_mean(target, units), predict_from_surface(rows, target, units)
    return [_build_row(name, x, target, units, mean + x, widening=CROSSED) for name, x in surface.items()]


def _list_subsets(rows: pl.DataFrame) -> list[tuple[str, Ints]]:
    """List all texts, those of each language and source, and thirds by length, if they are 20 or more."""
    subsets = [("all", np.arange(rows.height))]
    lengths = rows["text"].fill_null("").str.len_chars().to_numpy()
    thirds = np.unique(np.searchsorted(np.quantile(lengths, (1 / 3, 2 / 3)), lengths), return_inverse=True)[1]
    spans = [f"length {lengths[thirds == n].min()} to {lengths[thirds == n].max()}" for n in range(thirds.max() + 1)]
    labels = [rows.select(pl.lit(f"{name} ") + pl.col(name)).to_series() for name in ("lang", "source")]
    labels.append(pl.Series([spans[n] for n in thirds]))
    for column in labels:
        values = column.drop_nulls().unique().sort() if column.n_unique() > 1 else ()
        subsets += [(value, np.flatnonzero((column == value).fill_null(value=False).to_numpy())) for value in values]
    return [(name, mask) for name, mask in subsets if len(mask) >= LEAST_ROWS]


def _build_row(
    name: str, values: Floats, targets: Floats, units: Ints, predicted: Floats, *, widening: float = 1.0
) -> dict[str, object]:
    rho, _, *edges = correlate(values, targets, units)[:4]
    if len(np.unique(units)) < LEAST_THREADS:
        edges = [None, None]
    if rho is not None:
        edges = [end if end is None else float(np.clip(rho + widening * (end - rho), -1, 1)) for end in edges]
    error = _measure_error(predicted, targets)
    return {"by": name, "n": len(values), **dict(zip(CORRELATED, (rho, *edges), strict=True)), "error": error}


def _measure_error(predicted: Floats, targets: Floats) -> float:
    return float(np.sqrt(np.mean((predicted - targets) ** 2)))


def _build_frame(rows: list[dict[str, object]]) -> pl.DataFrame:
    schema: dict[str, pl.DataType | type[pl.DataType]] = {"by": pl.String, "n": pl.Int64}
    schema |= dict.fromkeys(CORRELATED, pl.Float64)
    return pl.DataFrame(rows, schema_overrides=schema).with_columns(pl.col(pl.Float64).round(DECIMALS))


def _name_faults(name: str, values: Floats, measures: pl.DataFrame) -> list[str]:
    """Name a measure that nearly always gives one value, or that neither the other measure nor the surface predicts."""
    distinct, counts = np.unique(values, return_counts=True)
    share = counts.max() / len(values)
    if share >= CONSTANT:
        return [f"{name} is constant: {distinct[counts.argmax()]:g} for {share:.0%} of {len(values)} texts"]
    edges = measures.filter(pl.col("low").is_not_null())
    is_related = ((edges["low"] > 0) | ((edges["high"] < 0) & (edges["by"] == measures["by"][0]))).any()
    if len(values) < LEAST_JUDGED or not edges.height or is_related:
        return []
    return [f"{name} looks random: neither the other measure nor length, punctuation or words predict it"]


EPSILON = 0.15  # advantage of a person, who costs more: 0.2 for experts, 0.15 for trained raters, 0.1 for a crowd
ALPHA = 0.05  # share of false discoveries
T_TEST_ROWS = 30  # texts of a rater from which the t-test is used, below it Wilcoxon's
MOST_LEVELS = 10  # values of a scale on which a measure has to choose one, as a rater has


class Replacement(NamedTuple):
    """The result of the test."""

    winning_rate: float  # share of raters that the measure may replace
    advantage: float  # mean share of texts in which the measure is as near to the others as the rater, or nearer
    passes: bool  # winning rate of at least a half
    p: tuple[float, ...]  # of each rater
    n: tuple[int, ...]  # texts of each rater that another rater rated


def check_replacement(measure: Floats, ratings: Floats, epsilon: float = EPSILON) -> Replacement:
    """Test whether a measure [n], on the scale of the ratings, may replace the raters of ratings [n, raters].

    It may replace a rater if it is as near to the others in a share of texts that is at most `epsilon` lower. NaN
    means that a rater did not rate a text. A text counts for a rater if another one rated it too. False discoveries are
    controlled by Benjamini and Yekutieli's method. ValueError for fewer than two raters, or one without two texts that
    another one rated.
    """
    if ratings.ndim != 2 or ratings.shape[1] < 2:
        raise ValueError("the alternative-annotator test needs at least two raters")
    p_values, shares, counts = [], [], []
    for rater in range(ratings.shape[1]):
        other_ratings = np.delete(ratings, rater, axis=1)
        is_shared = ~np.isnan(ratings[:, rater]) & ~np.isnan(other_ratings).all(axis=1)
        if is_shared.sum() < 2:
            raise ValueError(f"rater {rater + 1} has {is_shared.sum()} texts that another one rated; expected 2")
        differences = (side[is_shared, None] - other_ratings[is_shared] for side in (measure, ratings[:, rater]))
        near, rated = (np.sqrt(np.nanmean(difference**2, axis=1)) for difference in differences)
        measure_wins, rater_wins = near <= rated + 1e-12, rated <= near + 1e-12
        p_values.append(_test_difference(rater_wins.astype(float) - measure_wins, epsilon))
        shares.append(float(measure_wins.mean()))
        counts.append(int(is_shared.sum()))
    winning_rate = float(np.mean(scipy.stats.false_discovery_control(p_values, method="by") < ALPHA))
    return Replacement(winning_rate, float(np.mean(shares)), winning_rate >= 0.5, tuple(p_values), tuple(counts))


def _test_difference(difference: Floats, epsilon: float) -> float:
    """Compute the p of the rater's advantage being `epsilon` or more."""
    shifted = difference - epsilon
    if not np.ptp(shifted):
        return 0.0 if shifted[0] < 0 else 1.0
    if len(shifted) < T_TEST_ROWS:
        return float(scipy.stats.wilcoxon(shifted, alternative="less", method="approx").pvalue)
    return float(scipy.stats.ttest_1samp(shifted, 0, alternative="less").pvalue)


def choose_levels(predicted: Floats, ratings: Floats) -> Floats:
    """Round predictions to the nearest value of the scale if raters used few values: [n]."""
    levels: npt.NDArray[np.float64] = np.unique(ratings[~np.isnan(ratings)])
    if len(levels) > MOST_LEVELS:
        return predicted
    return np.asarray(levels[np.abs(predicted[:, None] - levels).argmin(axis=1)])
