"""Bootstrap samples, intervals and paired p values, once for all metrics."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.metrics import resample
from pipeline.metrics.resample import bounds, draw_counts, draw_picks, number_units, p_value


@pytest.mark.parametrize("draw", [draw_counts, draw_picks])
def test_the_interval_of_a_share_is_the_binomial_one(draw) -> None:
    """Of 400 units 100 count: the bounds are those of the normal approximation, 0.25 ± 0.0424; another seed differs."""
    values = np.repeat([1.0, 0.0], [100, 300])
    shares = resample.sum_samples(values, draw(400, 4000, 42)) / 400
    half = stats.norm.ppf(0.975) * np.sqrt(0.25 * 0.75 / 400)
    assert bounds(shares) == pytest.approx((0.25 - half, 0.25 + half), abs=0.005)
    low, high = bounds(shares, resample.tail_shares(0.5))
    assert bounds(shares)[0] < low < 0.25 < high < bounds(shares)[1]
    assert (resample.sum_samples(values, draw(400, 4000, 7)) != shares * 400).any()


@pytest.mark.parametrize("draw", [draw_counts, draw_picks])
def test_samples_do_not_depend_on_how_many_are_held(draw, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sample has as many units as there are, and the same ones in however small blocks."""
    all_samples = np.concatenate([*draw(30, 50, 3)])
    assert (all_samples.sum(axis=1) == 30).all()
    monkeypatch.setattr(resample, "_CELLS", 100)
    blocks = [*draw(30, 50, 3)]
    assert len(blocks) > 10
    assert (np.concatenate(blocks) == all_samples).all()
    first, *rest = resample.iterate_counts(30, 50, 3)
    assert (first == 1).all()
    assert (np.stack(rest) == np.concatenate([*draw_counts(30, 50, 3)])).all()


def test_groups_are_units() -> None:
    """Items are summed by group, in the order of their names; copies are drawn as so many units."""
    units = number_units(["b", "a", "b"], 3)
    assert units.tolist() == [1, 0, 1]
    assert resample.sum_units(np.array([[1, 2], [3, 4], [5, 6]]), units).tolist() == [[3, 4], [6, 8]]
    for names in (["a"], pl.Series(["a", None, "b"])):
        with pytest.raises(ValueError, match="a group for each of 3 items"):
            number_units(names, 3)
    shares = resample.sum_samples(np.array([1.0, 0.0]), draw_counts(np.array([100, 300]), 4000, 42)) / 400
    assert shares.std() == pytest.approx(np.sqrt(0.25 * 0.75 / 400), rel=0.05)


def test_undefined_samples_are_left_out() -> None:
    """Bounds and p are of the samples that are numbers; p counts the rarer side, no difference has 1."""
    partial, none = np.array([np.nan, 1.0, 1.0, 2.0]), np.full(3, np.nan)
    assert bounds(partial, (0, 1)) == (1, 2)
    assert p_value(partial) == 2 / 4
    assert np.isnan(bounds(none)).all()
    assert p_value(none) == 1
    differences = np.array([0.0] + [1.0] * 98)
    assert p_value(differences) == p_value(-differences) == 0.04
    assert p_value(differences[1:]) == 2 / 99
    assert p_value(differences * 0) == 1


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipy(counts: tuple[int, int]) -> None:
    """The interval is scipy's for any count."""
    right, count = counts
    low, high = resample.wilson(np.array([right / count]), np.array([count]))
    expected = stats.binomtest(right, count).proportion_ci(method="wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-9)
