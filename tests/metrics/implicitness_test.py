"""The two accuracies of section 5.1 and the length baseline."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeline.metrics.implicitness import implicitness_accuracy, longer_is_implicit, pragmatics_accuracy

SCORES = arrays(np.float64, 12, elements=st.floats(0, 2, width=32))


@pytest.mark.parametrize(
    ("implicit", "explicit", "expected"),
    [
        ([1.2, 0.9, 0.4], [0.3, 0.9, 0.5], 1 / 3),  # right, tie, wrong
        ([1.0], [1.0], 0.0),
        ([1.0, 2.0], [0.0, 1.0], 1.0),
        ([1.3, 0.5, 1.3, 0.5], [0.5, 0.4, 0.6, 0.7], 0.75),  # s1 against s2 and again against s3: 3 of 4
    ],
)
def test_implicitness_accuracy_by_hand(implicit: list[float], explicit: list[float], expected: float) -> None:
    """Pairs with I(implicit) > I(explicit) count as right, ties as wrong (IMP-25)."""
    assert implicitness_accuracy(np.array(implicit), np.array(explicit)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("positive", "negative", "expected"),
    [([0.2, 0.7, 1.5], [0.9, 0.7, 1.1], 1 / 3), ([0.0, 0.1], [0.1, 0.2], 1.0), ([0.0], [0.0], 0.0)],
)
def test_pragmatics_accuracy_by_hand(positive: list[float], negative: list[float], expected: float) -> None:
    """Triples with dP+ < dP- count as right, ties as wrong (IMP-26)."""
    assert pragmatics_accuracy(np.array(positive), np.array(negative)) == pytest.approx(expected)


def test_longer_is_implicit_by_hand() -> None:
    """Length is counted in characters, so that Chinese counts too; equal lengths are wrong."""
    implicit, explicit = ["a long hint", "ab", "你可真准时", "x"], ["short", "cd", "你迟到了", "yes"]
    assert longer_is_implicit(implicit, explicit) == 0.5  # 11>5, 2=2, 5>4, 1<3


@given(SCORES, SCORES)
def test_a_pair_is_right_one_way_at_most(one: np.ndarray, other: np.ndarray) -> None:
    """Both ways round and the ties make up all pairs; the two accuracies are each other's mirror."""
    ties = float(np.mean(one == other))
    assert implicitness_accuracy(one, other) + implicitness_accuracy(other, one) + ties == pytest.approx(1.0)
    assert pragmatics_accuracy(one, other) == implicitness_accuracy(other, one)


def test_numbers_that_are_none_count_as_wrong() -> None:
    """A model gone astray does not look right: comparisons with NaN are wrong."""
    astray = np.array([np.nan, 1.0])
    assert implicitness_accuracy(astray, np.zeros(2)) == 0.5
    assert pragmatics_accuracy(astray, np.full(2, 2.0)) == 0.5
