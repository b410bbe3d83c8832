"""Metrics of classifiers, against scikit-learn, scipy and textbook numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from pipeline.metrics import classification
from pipeline.metrics.classification import calibration_error, compute_metric

answers = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@given(answers)
def test_equals_scikit_learn(rows: list[tuple[int, int]]) -> None:
    """Macro precision, recall and F1 and accuracy are scikit-learn's, whatever classes are missing."""
    truth, predicted = np.array(rows).T
    table = classification.confusion(truth, predicted)
    expected = metrics.precision_recall_fscore_support(truth, predicted, average="macro", zero_division=0)[:3]
    assert [float(compute_metric(table, metric)) for metric in ("precision", "recall", "f1")] == pytest.approx(expected)
    assert compute_metric(table, "accuracy") == pytest.approx(metrics.accuracy_score(truth, predicted))
    assert classification.macro_f1(truth, predicted) == compute_metric(table, "f1")


def test_calibration_by_hand() -> None:
    """Two bins: 0.9 three times with two right, 0.6 once and wrong: (3 |0.9 - 2/3| + 0.6) / 4; an upper edge is in."""
    probabilities = np.array([[0.1, 0.9], [0.9, 0.1], [0.9, 0.1], [0.6, 0.4]])
    assert calibration_error(np.array([1, 0, 1, 1]), probabilities) == pytest.approx((3 * abs(0.9 - 2 / 3) + 0.6) / 4)
    edges = np.array([[0.5, 0.5], [0.4, 0.6]])
    assert calibration_error(np.array([0, 0]), edges, bins=2) == pytest.approx((0.5 + 0.6) / 2)
    assert calibration_error(np.array([0, 0]), edges, bins=1) == pytest.approx(abs(0.55 - 0.5))
