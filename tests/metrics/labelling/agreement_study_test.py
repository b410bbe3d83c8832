"""The simulation behind figure 4, against closed forms and every possible record."""

import numpy as np
import pytest

from pipeline.metrics.labelling.agreement import simulate, study


@pytest.mark.parametrize(("q", "kappa", "value"), [(0.90, 0.239, 0.757), (0.96, 0.474, 0.892), (0.99, 0.793, 0.972)])
def test_kappa_and_tae_of_skewed_labels(q: float, kappa: float, value: float) -> None:
    """At a positive rate of 0.02: kappa of a rater with the truth, and TAE (CSD-22)."""
    row = study([q], [0.02], [2], items=100_000).row(0, named=True)
    assert row["kappa"] == pytest.approx(kappa, abs=0.02)
    assert row["tae"] == pytest.approx(value, abs=0.005)
    assert row["agreement"] == pytest.approx(q, abs=0.005)


def test_rows_of_the_study() -> None:
    """A row a setting, at 1 for perfect raters; labels have the shares of their rate, wrong ones alike."""
    actual = study([0.5, 1.0], [0.0, 0.5], [2], items=500)
    assert actual.columns == ["classes", "positive_rate", "accuracy", "kappa", "fleiss", "agreement", "tae"]
    assert actual.select("positive_rate", "accuracy").rows() == [(0.0, 0.5), (0.0, 1.0), (0.5, 0.5), (0.5, 1.0)]
    assert actual.row(1)[3:] == (None, None, 1.0, 1.0)
    assert actual.row(3)[3:] == (1.0, 1.0, 1.0, 1.0)
    assert study([0.7], [0.2], [3], items=500).equals(study([0.7], [0.2], [3], items=500))
    codes = simulate(50_000, 0.75, 0.2, 3)
    first, truth = codes[:, :-1], codes[:, -1:]
    assert np.bincount(truth.ravel()) / len(truth) == pytest.approx([0.8, 0.1, 0.1], abs=0.01)
    shifts = (first - truth) % 3
    assert np.bincount(shifts.ravel()) / shifts.size == pytest.approx([0.75, 0.125, 0.125], abs=0.01)
