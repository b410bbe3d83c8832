"""Ranking metrics, against the paper's own table and by properties."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from pipeline.metrics.impscore import studies
from pipeline.metrics.impscore.studies import count_concordant, kendall_tau, kendall_w, spearman_rho

# ImpScore, table 10: the scores of ten topics' four sentences, most explicit first
TABLE_10 = [
    (0.91, 0.96, 1.10, 1.55), (0.94, 0.96, 1.10, 1.18), (0.90, 0.66, 0.87, 1.52), (0.44, 0.67, 0.57, 0.97),
    (0.22, 0.72, 0.88, 0.83), (0.93, 0.94, 1.50, 1.36), (0.53, 0.89, 0.86, 1.30), (0.49, 0.33, 1.04, 1.40),
    (0.67, 1.40, 1.57, 1.73), (0.90, 0.91, 1.13, 1.84),
]  # fmt: skip
scores_of_five = st.lists(st.floats(-9, 9).map(lambda x: round(x, 3)), min_size=5, max_size=5, unique=True)


def test_mean_scores_rise_with_the_level() -> None:
    """Over the ten topics of table 10 the mean score rises from level to level (IMP-36, errata E5).

    In every topic the most explicit scores below the most implicit; they are not always lowest and highest (E6).
    """
    assert np.mean(TABLE_10, axis=0) == pytest.approx([0.693, 0.844, 1.062, 1.368], abs=5e-4)
    assert all(row[0] < row[3] for row in TABLE_10)
    assert sum(row[0] == min(row) for row in TABLE_10) == sum(row[3] == max(row) for row in TABLE_10) == 8


def test_ties_and_w_by_hand() -> None:
    """Of three items of which two tie two pairs are concordant; W is 6 / 8, the mean over groups that of both."""
    assert kendall_tau((1, 2, 3), (0.1, 0.1, 0.9)) == pytest.approx(2 / 3)
    assert spearman_rho((1, 2, 3), (0.5, 0.5, 0.5)) == 0
    assert count_concordant((1, 2, 3), (0.1, 0.1, 0.9)) == 2
    assert kendall_w(np.array([[(1, 2, 3)], [(1, 3, 2)]])) == 0.75
    assert kendall_w(np.array([[(1, 2, 3), (3, 2, 1)], [(1, 3, 2), (3, 2, 1)]])) == 0.875


@given(scores_of_five)
def test_equals_scipy_without_ties_and_is_odd(scores: list[float]) -> None:
    """Without ties tau is scipy's, and reversing the scores reverses its sign."""
    gold = list(range(5))
    assert kendall_tau(gold, scores) == pytest.approx(stats.kendalltau(gold, scores).statistic)
    assert kendall_tau(gold, [-s for s in scores]) == pytest.approx(-kendall_tau(gold, scores))
    assert count_concordant(gold, scores) == pytest.approx((kendall_tau(gold, scores) + 1) / 2 * 10)


@given(arrays(np.int64, (3, 1, 4), elements=st.integers(1, 4)))
def test_w_follows_from_friedman(ratings: np.ndarray) -> None:
    """Kendall's W is Friedman's chi-square, corrected for ties as scipy does, over raters times (items - 1)."""
    if np.ptp(ratings, axis=2).any():
        friedman = stats.friedmanchisquare(*ratings[:, 0].T).statistic
        assert kendall_w(ratings) == pytest.approx(friedman / (3 * 3), abs=1e-9)
    else:
        assert kendall_w(ratings) == 0


@pytest.mark.parametrize(("gold", "scores"), [((1,), (1,)), ((1, 2), (1, 2, 3)), ((), ())])
def test_too_few_or_unequal_is_an_error(gold: tuple[int, ...], scores: tuple[int, ...]) -> None:
    """Fewer than two items, or unequal lengths, have no rank correlation; an unknown measure is refused."""
    with pytest.raises(ValueError, match="equally long"):
        kendall_tau(gold, scores)
    with pytest.raises(ValueError, match="kendall or spearman"):
        studies.agreement_matrix(np.zeros((2, 1, 3)), "pearson")


def test_mean_correlations_reproduce_table_5() -> None:
    """Over the groups of either half of table 10 the means are those of table 5 (IMP-32), whatever the row order."""
    for half, tau, rho in ((TABLE_10[:5], 0.733333, 0.8), (TABLE_10[5:], 0.8, 0.88)):
        rows = pl.DataFrame(
            [(f"G{g}", level, value) for g, row in enumerate(half) for level, value in enumerate(row, 1)],
            schema=["group", "level", "value"], orient="row",
        )  # fmt: skip
        actual = studies.average_correlations(rows)
        assert (actual.kendall_tau, actual.spearman_rho, actual.group_count) == pytest.approx((tau, rho, 5), abs=1e-6)
        assert studies.average_correlations(rows.sample(fraction=1, shuffle=True, seed=3)) == actual


def test_agreement_by_hand() -> None:
    """Three raters on two groups of three items: the mean over groups of each pair's correlation (IMP-35)."""
    ratings = np.array([[[1, 2, 3], [1, 2, 3]], [[1, 3, 2], [1, 2, 3]], [[3, 2, 1], [1, 2, 3]]], float)
    # tau of (1,2,3) with (1,3,2) is (2-1)/3 and rho 1/2; of (1,3,2) with (3,2,1) they are -1/3 and -1/2
    tau = [[1, 2 / 3, 0], [2 / 3, 1, 1 / 3], [0, 1 / 3, 1]]
    rho = [[1, 3 / 4, 0], [3 / 4, 1, 1 / 4], [0, 1 / 4, 1]]
    assert studies.agreement_matrix(ratings) == pytest.approx(np.array(tau))
    assert studies.agreement_matrix(ratings, "spearman") == pytest.approx(np.array(rho))
