"""Ranking graded groups (ImpScore, section 6.2 and appendix A.3): does the score rise with the level?"""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats


def kendall_tau(gold: Sequence[float], scores: Sequence[float]) -> float:
    """Compute (concordant - discordant) / all pairs (equation 11), in [-1, 1]; a tie is neither.
    ValueError for fewer than two items, or lengths that differ.
    """
    if len(gold) != len(scores) or len(gold) < 2:
        sizes = f"{len(gold)} and {len(scores)}"
        raise ValueError(f"expected two equally long sequences of at least two items, got {sizes}")
    return float(_compare_pairs(gold, scores).sum() / (len(gold) * (len(gold) - 1) / 2))


def count_concordant(gold: Sequence[float], scores: Sequence[float]) -> int:
    """Count the pairs of items that both order alike: a linguist's rating of implicitness (appendix A.5; IMP-37)."""
    return int((_compare_pairs(gold, scores) > 0).sum())


def _compare_pairs(gold: Sequence[float], scores: Sequence[float]) -> npt.NDArray[np.float64]:
    """Compare each pair of items once: 1 where both order it alike, -1 where they do not, 0 for a tie: [n, n]."""
    return np.triu(np.sign(np.subtract.outer(gold, gold)) * np.sign(np.subtract.outer(scores, scores)), 1)


def spearman_rho(gold: Sequence[float], scores: Sequence[float]) -> float:
    """Compute Spearman's rank correlation in [-1, 1], tied ranks averaged; 0 where one side is constant."""
    if len(set(gold)) < 2 or len(set(scores)) < 2:
        return 0.0
    return float(stats.spearmanr(gold, scores).statistic)


def kendall_w(ratings: npt.NDArray[np.floating]) -> float:
    """Compute Kendall's W of raters [raters, groups, items], corrected for ties, as the mean over groups.
    1 where all raters give one order, 0 where their rank sums are equal; a group in which no rater sees a difference
    counts 0.
    """
    ranks = stats.rankdata(ratings, axis=2)
    rater_count, _, size = ranks.shape
    spread = ((ranks.sum(axis=0) - rater_count * (size + 1) / 2) ** 2).sum(axis=1)
    most = rater_count * ((ranks - (size + 1) / 2) ** 2).sum(axis=(0, 2))  # what it is where all orders are one
    return float(np.divide(spread, most, out=np.zeros_like(spread), where=most > 0).mean())


class Correlations(NamedTuple):
    """Means over groups."""

    kendall_tau: float
    spearman_rho: float
    group_count: int


def average_correlations(groups: pl.DataFrame) -> Correlations:
    """Compute Kendall tau and Spearman rho of value with level within each group and average over groups."""
    lists = [(part["level"].to_list(), part["value"].to_list()) for part in groups.partition_by("group")]
    taus, rhos = ([measure(*pair) for pair in lists] for measure in (kendall_tau, spearman_rho))
    count = max(len(lists), 1)
    return Correlations(round(sum(taus) / count, 6), round(sum(rhos) / count, 6), len(lists))


def agreement_matrix(ratings: npt.NDArray[np.floating], measure: str = "kendall") -> npt.NDArray[np.float64]:
    """Measure how far each pair of raters agrees on the order of items (table 4 and figure 9; IMP-35).
    Ratings [raters, groups, items] are numbers that rise with implicitness; equal numbers are ties. The measure is
    kendall (equation 11) or spearman. Returns [raters, raters], means over groups; 1 on the diagonal of a rater without
    ties.
    """
    correlate = {"kendall": kendall_tau, "spearman": spearman_rho}.get(measure)
    if correlate is None:
        raise ValueError(f"measure should be kendall or spearman, not {measure!r}")
    raters = ratings.tolist()
    matrix = np.empty((len(raters), len(raters)))
    for first, second in combinations_with_replacement(range(len(raters)), 2):
        values = map(correlate, raters[first], raters[second])
        matrix[first, second] = matrix[second, first] = np.mean(list(values))
    return matrix
