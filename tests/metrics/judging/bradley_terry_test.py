"""Values of comparisons: cases by hand, and simulated judges whose order and noise are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.impscore.studies import kendall_tau
from pipeline.metrics.judging import bradley_terry
from pipeline.metrics.judging.bradley_terry import choose_pairs, draw_first_pairs
from tests.metrics.judging.simulated import collect, compare_adaptively, draw_truth, make_judge

WIDE = 1e4  # a prior that hardly counts


def test_two_items_by_hand() -> None:
    """Of balanced orders, 3 wins to 1 are log 3; with ties the weight is t / sqrt(w l) (Davidson 1970)."""
    pairs = [(0, 1), (1, 0)] * 4
    fit = bradley_terry.fit_values(collect(pairs, [1, -1] * 3 + [-1, 1]), 2, WIDE)
    assert fit.values == pytest.approx([np.log(3) / 2, -np.log(3) / 2], abs=1e-4)
    assert (fit.bias, fit.log_tie) == (pytest.approx(0, abs=1e-4), -np.inf)
    fit = bradley_terry.fit_values(collect([*pairs, *pairs[:4]], [1, -1] * 3 + [-1, 1] + [0] * 4), 2, WIDE)
    assert fit.values[0] - fit.values[1] == pytest.approx(np.log(3), abs=1e-4)
    assert np.exp(fit.log_tie) == pytest.approx(4 / np.sqrt(6 * 2), abs=1e-4)


def test_the_bias_and_its_error_by_hand() -> None:
    """Chosen 3 times in 4 by its place: the bias is log 3; of 200 even outcomes its error is 1 / sqrt(200 / 4)."""
    fit = bradley_terry.fit_values(collect([(0, 1), (1, 0)] * 4, [1, 1] * 3 + [-1, -1]), 2, WIDE)
    assert fit.values == pytest.approx([0, 0], abs=1e-4)
    assert fit.bias == pytest.approx(np.log(3), abs=1e-4)
    result = bradley_terry.estimate(collect([(0, 1), (1, 0)] * 100, [1, 1, -1, -1] * 50), 2)
    information = 200 / 4
    assert result.errors[0] == pytest.approx(result.errors[1])
    assert result.errors[0] <= information**-0.5 / 2  # and less by what the prior adds


def test_an_item_that_always_wins_stays_finite() -> None:
    """Without a defeat the likelihood has no maximum; the prior gives one."""
    result = bradley_terry.estimate(collect([(0, 1), (1, 0), (1, 2), (2, 1)], [1, -1, 1, -1]), 3)
    assert np.isfinite(result.values).all()
    assert result.values[0] > result.values[1] > result.values[2]


@pytest.mark.parametrize(("count", "pairs"), [(2, [(0, 1)]), (40, [(n, n + 1) for n in range(0, 40, 2)]), (2_047, [])])
def test_one_sided_answers_or_none_have_finite_errors(count: int, pairs: list[tuple[int, int]]) -> None:
    """A judge who always chooses the first has a bias without end, and without answers a value is as the prior says."""
    result = bradley_terry.estimate(collect(pairs, [1] * len(pairs)), count)
    assert np.isfinite([*result.values, *result.errors, result.bias]).all()


def test_intervals_cover_the_truth() -> None:
    """Over 10 judges of 40 texts at 10 comparisons each, intervals of 95 % cover 89 to 98 % of the true values.

    The order of texts whose intervals do not overlap is right, and the bias is within 3 of its errors.
    """
    covered, taus, wrong, apart = [], [], 0, 0
    for seed in range(10):
        truth = draw_truth(40, 1.5, seed)
        comparisons = compare_adaptively(40, make_judge(truth, seed + 100, bias=0.5, tie=0.5), seed)
        assert len(comparisons.first) == 400
        result = bradley_terry.estimate(comparisons, 40)
        half = bradley_terry.Z * result.errors
        covered.append(np.abs(result.values - truth) <= half)
        taus.append(kendall_tau(truth.tolist(), result.values.tolist()))
        is_apart = (result.values - half)[:, None] > (result.values + half)[None]
        apart += is_apart.sum()
        wrong += (is_apart & (truth[:, None] < truth[None])).sum()
        assert result.p_equal < 1e-6
        assert abs(result.bias - 0.5) < 0.4
    assert 0.89 <= np.mean(covered) <= 0.98
    assert np.mean(taus) > 0.7
    assert wrong < 0.005 * apart


def test_the_information_of_many_items_is_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the inverse, values, bias and their errors are those of the exact way, the errors within 3 % (sd)."""
    comparisons = compare_adaptively(300, make_judge(draw_truth(300, 1.5, 1), 2, bias=0.5, tie=0.5), 3)
    exact = bradley_terry.estimate(comparisons, 300)
    monkeypatch.setattr(bradley_terry, "EXACT", 100)
    probed = bradley_terry.estimate(comparisons, 300)
    assert probed.values == pytest.approx(exact.values, abs=0.02)
    assert probed.bias == pytest.approx(exact.bias, rel=2e-3)
    ratios = probed.errors / exact.errors
    assert ratios.mean() == pytest.approx(1, abs=0.005)
    assert ratios.std() < 0.03
    assert probed.p_equal == pytest.approx(exact.p_equal, abs=1e-9)


@given(st.integers(2, 15), st.integers(1, 40), st.integers(0, 3))
def test_no_ordered_pair_twice(count: int, size: int, seed: int) -> None:
    """First pairs come in both orders; further ones are new, as many as asked for or all there are, sides balanced."""
    first = draw_first_pairs(count, seed)
    assert {(b, a) for a, b in first} == set(first)
    assert {item for pair in first for item in pair} == set(range(count))
    values = np.random.default_rng(seed).normal(size=count)
    chosen = choose_pairs(values, np.ones(count), first, size, seed)
    assert len({*first, *chosen}) == len(first) + len(chosen)
    assert len(chosen) == min(size, count * (count - 1) - len(first))
    assert all(a != b for a, b in chosen)
    if len(chosen) <= count * (count - 1) // 2 - len(first) // 2 - count:  # no pair in both orders
        leads = np.bincount([a for a, _ in chosen], minlength=count) - np.bincount(
            [b for _, b in chosen], minlength=count
        )
        assert abs(leads).max() <= 3


def test_neighbours_meet() -> None:
    """Where the values are certain, a round compares neighbours."""
    pairs = choose_pairs(np.arange(10.0), np.full(10, 1e-9), [], 5, 0)
    assert {tuple(sorted(pair)) for pair in pairs} == {(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)}
