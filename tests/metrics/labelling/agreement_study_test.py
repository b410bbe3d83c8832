"""The simulation behind figure 4, against closed forms and every possible record."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from pipeline.metrics.labelling.agreement import TAE_HIGH, cohen_kappa, fleiss_kappa, tae, tae_records
from pipeline.metrics.labelling.agreement_study import (
    class_shares,
    expected_cohen,
    expected_fleiss,
    expected_rad,
    expected_tae,
    simulate,
    study,
)

accuracies = st.floats(0, 1)


@settings(deadline=None)
@given(accuracies)
def test_rad_of_two_classes(q: float) -> None:
    """Half the chance that not all three are right, (1 - q^3) / 2 (CSD-22)."""
    assert expected_rad(q) == pytest.approx((1 - q**3) / 2)
    assert expected_tae(q) == pytest.approx((math.exp(q - (1 - q**3) / 2) - 1 / math.e) / (math.e - 1 / math.e))


@settings(deadline=None)
@given(accuracies, st.integers(2, 5), st.integers(1, 4))
def test_rad_of_more_classes(q: float, classes: int, raters: int) -> None:
    """Equals the sum over every record of its probability times its rad."""
    every = np.array(list(itertools.product(range(classes), repeat=raters)))
    rad = tae_records(every, np.zeros(len(every), int)).rad
    chance = np.where(every == 0, q, (1 - q) / (classes - 1)).prod(axis=1)
    assert expected_rad(q, classes, raters) == pytest.approx(float(chance @ rad))


@pytest.mark.parametrize(("q", "kappa", "value"), [(0.90, 0.239, 0.757), (0.96, 0.474, 0.892), (0.99, 0.793, 0.972)])
def test_numbers_of_the_spec(q: float, kappa: float, value: float) -> None:
    """At a positive rate of 0.02: kappa of a rater with the truth, and TAE (CSD-22), exactly and in simulation."""
    assert expected_cohen(q, 0.02) == pytest.approx(kappa, abs=5e-4)
    assert expected_tae(q) == pytest.approx(value, abs=5e-4)
    row = study([q], [0.02], [2], items=100_000).row(0, named=True)
    assert row["kappa"] == pytest.approx(kappa, abs=0.02)
    assert row["tae"] == pytest.approx(value, abs=0.005)
    assert row["agreement"] == pytest.approx(q, abs=0.005)


@pytest.mark.parametrize("classes", [2, 3, 9])
@pytest.mark.parametrize("rate", [0.02, 0.2, 0.5])
def test_simulation_equals_closed_forms(rate: float, classes: int) -> None:
    """Kappa by either reading and TAE of 50,000 items are those of endlessly many, but for chance."""
    first, second = simulate(50_000, 0.9, rate, classes)
    shares = np.bincount(second, minlength=classes) / len(second)
    assert shares == pytest.approx(class_shares(rate, classes), abs=0.01)
    cohen = np.mean([cohen_kappa(np.column_stack([rater, second])) for rater in first.T])
    assert cohen == pytest.approx(expected_cohen(0.9, rate, classes), abs=0.02)
    four = fleiss_kappa(np.column_stack([first, second]))
    assert four == pytest.approx(expected_fleiss(0.9, rate, classes), abs=0.02)
    assert tae(first, second) == pytest.approx(expected_tae(0.9, classes), abs=0.01)


def test_wrong_labels_are_as_likely_as_each_other() -> None:
    """A quarter of three-class labels are wrong, half of them either way."""
    first, second = simulate(40_000, 0.75, 0.5, 3)
    moved = (first - second[:, None]) % 3
    assert np.bincount(moved.ravel()) / moved.size == pytest.approx([0.75, 0.125, 0.125], abs=0.01)


@pytest.mark.parametrize(("classes", "kappa"), [(2, 0.39), (3, 0.53), (9, 0.65)])
def test_tae_of_0_53_is_no_kappa_of_0_6(classes: int, kappa: float) -> None:
    """Balanced classes, TAE at the paper's threshold: Fleiss of all four (errata E8, within 0.01)."""
    q = brentq(lambda q: expected_tae(q, classes) - TAE_HIGH, 0.5, 1)
    assert expected_fleiss(q, 1 - 1 / classes, classes) == pytest.approx(kappa, abs=5e-3)


def test_skew_lowers_kappa_alone() -> None:
    """What figure 4 shows: under skew kappa falls by more than half, accuracy and TAE stay (CSD-21, CSD-22)."""
    found = study([0.9], [0.02, 0.5], [2, 3], items=50_000)
    assert found["classes"].to_list() == [2, 2, 3, 3]
    for skewed, balanced in ((0, 1), (2, 3)):
        assert found["kappa"][skewed] < found["kappa"][balanced] / 2
        assert found["fleiss"][skewed] < found["fleiss"][balanced] / 2
        assert found["tae"][skewed] == pytest.approx(found["tae"][balanced], abs=0.01)
        assert found["agreement"][skewed] == pytest.approx(found["agreement"][balanced], abs=0.005)


def test_kappa_of_skewed_labels_is_low_up_to_high_agreement() -> None:
    """At 96 % accuracy and a rate of 0.02 both kappas are below 0.5, and the steeper the nearer to 1 (appendix A)."""
    for kappa in (expected_cohen, expected_fleiss):
        assert kappa(0.96, 0.02) < 0.5
        rises = np.diff([kappa(q, 0.02) for q in (0.90, 0.92, 0.94, 0.96, 0.98, 1.0)])
        assert (np.diff(rises) > 0).all()


def test_rows_of_the_study() -> None:
    """One row for each setting; perfect raters are at 1, and of a single class kappa is null."""
    found = study([0.5, 1.0], [0.0, 0.5], [2], items=500)
    assert found.columns == ["classes", "positive_rate", "accuracy", "kappa", "fleiss", "agreement", "tae"]
    assert found.select("positive_rate", "accuracy").rows() == [(0.0, 0.5), (0.0, 1.0), (0.5, 0.5), (0.5, 1.0)]
    assert found.row(1)[3:] == (None, None, 1.0, 1.0)
    assert found.row(3)[3:] == (1.0, 1.0, 1.0, 1.0)
    assert math.isnan(expected_cohen(1, 0))
    assert study([0.7], [0.2], [3], items=500).equals(study([0.7], [0.2], [3], items=500))


def test_no_items() -> None:
    """Of no items nothing is known."""
    assert study([0.7], [0.2], [2], items=0).row(0)[3:] == (None, None, None, None)


@pytest.mark.parametrize(("rate", "classes"), [(-0.1, 2), (1.1, 2), (0.5, 1)])
def test_impossible_shares(rate: float, classes: int) -> None:
    """A rate outside [0, 1], or one class, is an error."""
    with pytest.raises(ValueError, match="expected a rate"):
        class_shares(rate, classes)
