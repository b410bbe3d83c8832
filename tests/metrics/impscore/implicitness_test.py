"""The two accuracies of section 5.1 and the length baseline."""

import polars as pl
import pytest

from pipeline.metrics.impscore.studies import QUANTILES, compute_quantiles, tabulate_figure_3

TRIPLES = pl.DataFrame(
    {"i1": [1.0, 1.5, 0.5, 0.5], "i2": [0.5, 1.5, 0.7, 0.1], "i3": [0.0, 1.0, 0.5, 0.3],
     "near": [0.2, 0.9, 0.5, 0.4], "far": [1.2, 0.9, 0.4, 0.8], "split": ["test", "test", "train", "train"]}
)  # fmt: skip


def test_figure_3_by_hand() -> None:
    """Five of eight pairs are right, two of four triples (IMP-25 to IMP-27); quantiles are interpolated (IMP-28)."""
    actual = tabulate_figure_3(TRIPLES)
    assert dict(actual.select("metric", "value").iter_rows()) == pytest.approx(
        {
            "implicitness_accuracy": 5 / 8,  # s1 beats s2 in rows 0 and 3, s3 in rows 0, 1 and 3; ties are wrong
            "pragmatics_accuracy": 2 / 4,
            "implicitness_of_implicit": 3.5 / 4,
            "implicitness_of_explicit": (2.8 + 1.8) / 8,
            "pragmatic_distance_positive": 2.0 / 4,
            "pragmatic_distance_negative": 3.3 / 4,
        }
    )
    assert actual["pair_count"].to_list() == [4] * 6
    assert compute_quantiles(pl.Series([10.0, *range(10)])) == pytest.approx([10 * q for q in QUANTILES])
    assert compute_quantiles(pl.Series([0.0, 1.0]), (0.25,)) == [0.25]
    assert compute_quantiles(pl.Series([0.7]), (0, 0.5, 1)) == [0.7] * 3
