"""Ranking metrics, against the paper's own table and by properties."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.metrics.ranking import kendall_tau, ordered_pairs, spearman_rho

# ImpScore, table 10: the scores of ten topics' four sentences, most explicit first
TABLE_10 = [
    (0.91, 0.96, 1.10, 1.55), (0.94, 0.96, 1.10, 1.18), (0.90, 0.66, 0.87, 1.52), (0.44, 0.67, 0.57, 0.97),
    (0.22, 0.72, 0.88, 0.83), (0.93, 0.94, 1.50, 1.36), (0.53, 0.89, 0.86, 1.30), (0.49, 0.33, 1.04, 1.40),
    (0.67, 1.40, 1.57, 1.73), (0.90, 0.91, 1.13, 1.84),
]  # fmt: skip
GOLD = (1, 2, 3, 4)
scores_of_five = st.lists(st.floats(-9, 9).map(lambda x: round(x, 3)), min_size=5, max_size=5, unique=True)


def test_table_5_follows_from_table_10() -> None:
    """The paper's tau and rho for ImpScore follow from its table 10 (errata E5, IMP-32)."""
    for half, tau, rho in ((TABLE_10[:5], 0.733, 0.80), (TABLE_10[5:], 0.800, 0.88)):
        assert np.mean([kendall_tau(GOLD, row) for row in half]) == pytest.approx(tau, abs=5e-4)
        assert np.mean([spearman_rho(GOLD, row) for row in half]) == pytest.approx(rho, abs=5e-3)


def test_observation_1_holds_only_for_the_ends() -> None:
    """In every topic the most explicit scores below the most implicit; they are not always lowest and highest (E6)."""
    assert all(row[0] < row[3] for row in TABLE_10)
    assert sum(row[0] == min(row) for row in TABLE_10) == 8
    assert sum(row[3] == max(row) for row in TABLE_10) == 8


def test_rating_counts_ordered_pairs() -> None:
    """A group's rating is its number of ordered pairs, (tau + 1) / 2 * 6 without ties (IMP-37)."""
    for row in itertools.permutations(GOLD):
        assert ordered_pairs(GOLD, row) == round((kendall_tau(GOLD, row) + 1) / 2 * 6)


def test_a_tie_counts_for_nothing() -> None:
    """Three items of which two tie: two concordant pairs of three."""
    assert kendall_tau((1, 2, 3), (0.1, 0.1, 0.9)) == pytest.approx(2 / 3)
    assert spearman_rho((1, 2, 3), (0.5, 0.5, 0.5)) == 0


@given(scores_of_five)
def test_equals_scipy_without_ties_and_is_odd(scores: list[float]) -> None:
    """Without ties tau is scipy's, and reversing the scores reverses its sign."""
    gold = list(range(5))
    assert kendall_tau(gold, scores) == pytest.approx(stats.kendalltau(gold, scores).statistic)
    assert kendall_tau(gold, [-s for s in scores]) == pytest.approx(-kendall_tau(gold, scores))


@pytest.mark.parametrize(("gold", "scores"), [((1,), (1,)), ((1, 2), (1, 2, 3)), ((), ())])
def test_too_few_or_unequal_is_an_error(gold: tuple[int, ...], scores: tuple[int, ...]) -> None:
    """Fewer than two items, or unequal lengths, have no rank correlation."""
    with pytest.raises(ValueError, match="equally long"):
        kendall_tau(gold, scores)
