"""May a measure stand in for raters? The alternative-annotator test (Calderon, Reichart and Dror, arXiv 2501.10970).

Each rater in turn is left out. On every text, the measure and that rater are compared by how near they are to the other
raters. The measure may replace the rater if it is as near in a share of texts that is at most `epsilon` lower.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from pipeline.metrics.resample import Floats

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

    NaN means that a rater did not rate a text. A text counts for a rater if another one rated it too. False discoveries
    are controlled by Benjamini and Yekutieli's method. ValueError for fewer than two raters, or one without two texts
    that another one rated.
    """
    if ratings.ndim != 2 or ratings.shape[1] < 2:
        raise ValueError("the alternative-annotator test needs at least two raters")
    p_values, shares, counts = [], [], []
    for rater in range(ratings.shape[1]):
        other_ratings = np.delete(ratings, rater, axis=1)
        is_shared = ~np.isnan(ratings[:, rater]) & ~np.isnan(other_ratings).all(axis=1)
        if is_shared.sum() < 2:
            raise ValueError(f"rater {rater + 1} has {is_shared.sum()} texts that another one rated; expected 2")
        near, rated = (
            np.sqrt(np.nanmean((column[is_shared, None] - other_ratings[is_shared]) ** 2, axis=1))
            for column in (measure, ratings[:, rater])
        )
        measure_wins, rater_wins = near <= rated + 1e-12, rated <= near + 1e-12
        p_values.append(_test_difference(rater_wins.astype(float) - measure_wins, epsilon))
        shares.append(float(measure_wins.mean()))
        counts.append(int(is_shared.sum()))
    adjusted = stats.false_discovery_control(p_values, method="by")
    winning_rate = float(np.mean(adjusted < ALPHA))
    return Replacement(winning_rate, float(np.mean(shares)), winning_rate >= 0.5, tuple(p_values), tuple(counts))


def _test_difference(difference: Floats, epsilon: float) -> float:
    """Compute the p of the rater's advantage being `epsilon` or more."""
    shifted = difference - epsilon
    if not np.ptp(shifted):
        return 0.0 if shifted[0] < 0 else 1.0
    if len(shifted) < T_TEST_ROWS:
        return float(stats.wilcoxon(shifted, alternative="less", method="approx").pvalue)
    return float(stats.ttest_1samp(shifted, 0, alternative="less").pvalue)


def choose_levels(predicted: Floats, ratings: Floats) -> Floats:
    """Round predictions to the nearest value of the scale if raters used few values: [n]."""
    levels: npt.NDArray[np.float64] = np.unique(ratings[~np.isnan(ratings)])
    if len(levels) > MOST_LEVELS:
        return predicted
    nearest: Floats = levels[np.abs(predicted[:, None] - levels).argmin(axis=1)]
    return nearest
