"""Bins of implicitness, intervals on effective counts, other answers."""

import math

import polars as pl
import pytest
from scipy import stats

from pipeline.errors import BadInput
from pipeline.metrics.impscore.studies import LABELS, label_bins, measure_bins


def rows(values: list[float], answers: list[bool | None], clusters: list[int] | None = None) -> pl.DataFrame:
    """What a detector said of texts, each a cluster of its own unless said."""
    return pl.DataFrame(
        {"implicitness": values, "is_detected": answers, "cluster": clusters or list(range(len(values)))},
        schema={"implicitness": pl.Float64, "is_detected": pl.Boolean, "cluster": pl.Int64},
    )


@pytest.mark.parametrize(
    ("value", "label"),
    [(0, "0.00-0.25"), (0.2499999, "0.00-0.25"), (0.25, "0.25-0.50"), (1.0, "1.00-1.25"), (1.7499999, "1.50-1.75"),
     (1.75, "1.75-2.00"), (1.99, "1.75-2.00"), (2.0, "1.75-2.00"), (2.0000002, "1.75-2.00"), (-1e-7, "0.00-0.25")],
)  # fmt: skip
def test_bin_edges(value: float, label: str) -> None:
    """A bin holds its lower edge and not its upper one, the last holds 2; a rounding outside counts as the edge."""
    assert label_bins([value]).to_list() == [label]


@pytest.mark.parametrize("value", [2.1, -0.01, math.nan, math.inf, None])
def test_values_that_are_no_implicitness(value: float | None) -> None:
    """A value outside [0, 2] is refused rather than put into the nearest bin."""
    with pytest.raises(BadInput, match="between 0 and 2"):
        label_bins(pl.Series([1.0, value]))


def test_all_bins_are_there_and_other_answers_counted() -> None:
    """Other answers count as not detected and are counted; empty bins stay, without a number."""
    actual = measure_bins(rows([0.1, 0.2, 0.05, 0.0, 2.0], [True, True, None, False, None]))
    assert actual["subset"].to_list() == list(LABELS)
    assert actual["accuracy"].to_list() == [0.5, *[None] * 6, 0.0]
    assert actual["row_count"].to_list() == [4, 0, 0, 0, 0, 0, 0, 1]
    assert actual["other_count"].to_list() == [1, 0, 0, 0, 0, 0, 0, 1]
    assert actual["effective_count"].to_list() == [4, 0, 0, 0, 0, 0, 0, 1]
    assert actual["low"].is_null().to_list() == actual["high"].is_null().to_list() == [False, *[True] * 6, False]
    nothing = measure_bins(rows([], []).with_columns(is_detected=None))
    assert nothing.select("row_count", "accuracy").rows() == [(0, None)] * 8


def test_near_duplicates_count_once_in_the_interval() -> None:
    """Ten variants of two templates have the accuracy of ten and the interval of two (IMP-43)."""
    answers = [True] * 7 + [False] * 3
    apart = measure_bins(rows([1.8] * 10, answers)).row(-1, named=True)
    alike = measure_bins(rows([1.8] * 10, answers, [0] * 7 + [7] * 3)).row(-1, named=True)
    assert alike["accuracy"] == apart["accuracy"] == 0.7
    assert (alike["row_count"], alike["effective_count"]) == (10, 2)
    expected = stats.binomtest(7, 10).proportion_ci(method="wilson")
    assert (apart["low"], apart["high"]) == pytest.approx((expected.low, expected.high), abs=1e-6)
    # by hand: (0.7 + z²/4) / (1 + z²/2) -+ z / (1 + z²/2) * sqrt(0.105 + z²/16) with z = 1.959964
    assert (alike["low"], alike["high"]) == pytest.approx((0.174270, 0.962682), abs=1e-6)
