"""Weights from grades: presets by hand, their range, and errors."""

import math

import numpy as np
import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.metrics.overlap.scoring import normalise_grades


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("s/5", [0.2, 0.8, 0.6, 0.5]), ("(s-1)/4", [0, 0.75, 0.5, 0.375]), ("s/max", [0.25, 1, 1, 2.5 / 3]),
        ("none", [1, 1, 1, 1]),
    ],
)  # fmt: skip
def test_presets_by_hand(preset: str, expected: list[float]) -> None:
    """Grades 1 and 4 of one article, 3 and 2.5 of another (AAC-18)."""
    actual = normalise_grades([1, 4, 3, 2.5], preset, ["x", "x", "y", "y"])
    assert actual.tolist() == pytest.approx(expected)
    assert normalise_grades(pl.Series([1.0, 4.0, 3.0, 2.5]), preset, np.array([7, 7, 2, 2])).tolist() == actual.tolist()


def test_defaults() -> None:
    """A fifth of the grade; without articles all grades are of one."""
    assert normalise_grades([5, 1]).tolist() == [1, 0.2]
    assert normalise_grades([2, 4], "s/max").tolist() == [0.5, 1]
    assert normalise_grades([], "s/max").tolist() == []


@pytest.mark.parametrize("grade", [0.9, 5.1, math.nan, None, -math.inf])
def test_a_grade_off_the_scale_names_its_row(grade: float | None) -> None:
    """Grades are 1 to 5; a missing one is none."""
    with pytest.raises(BadInput, match="row 2, grade: expected 1 to 5, found"):
        normalise_grades([3, grade])  # type: ignore[list-item]
