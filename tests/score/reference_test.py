"""References: percentiles, bands fitted on graded groups, and their file."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score

from pipeline.errors import BadInput
from pipeline.score import reference as scales
from pipeline.score.reference import BANDS, LEVELS, Reference, Scale

SCALE = Scale(101, [index / 50 for index in range(101)], [0.5, 1.0, 1.5])
REFERENCE = Reference("forum", "f" * 64, "101 texts", {"en": SCALE, "ja": SCALE._replace(thresholds=None)})


@pytest.mark.parametrize(("value", "lang", "expected"), [
    (0.0, "en", (0.0, "outright")),
    (0.5, "en", (25.0, "indirect")),
    (1.25, "en", (62.5, "hinted")),
    (9.0, "en", (100.0, "veiled")),  # above all texts of the corpus
    (1.0, "und", (None, None)),
    (1.0, "ja", (50.0, None)),  # there are no graded groups of it
    (1.0, "zh", (None, None)),
    (None, "en", (None, None)),
])  # fmt: skip
def test_a_score_has_a_percentile_and_a_band(value: float, lang: str, expected: tuple[float, str]) -> None:
    """The percentile is interpolated between the quantiles of the language; a threshold begins its band."""
    assert REFERENCE.read(value, lang) == expected


def test_table_of_scales_reads_scores_as_the_reference_does() -> None:
    """Percentile and band by a row of the table are those of `read`, also where quantiles are equal."""
    rng = np.random.default_rng(5)
    quantiles = sorted([*rng.uniform(0.1, 1.9, 81).round(6).tolist(), *[0.75] * 20])
    reference = REFERENCE._replace(scales={"en": Scale(101, quantiles, [0.5, 0.75, quantiles[-1]], 0.5, 0.59)})
    table = scales.tabulate([reference])
    for value in (0.0, 0.05, 0.75, 2.0, *quantiles, *rng.uniform(0, 2, 200).tolist()):
        (row,) = table.filter((pl.col("low") <= value) & (pl.col("high") > value)).to_dicts()
        percentile = row["percentile"] + row["slope"] * (value - row["low"])
        assert (pytest.approx(percentile, abs=0.0501), row["band"]) == reference.read(value, "en")
        assert row["weakness"] == "weak: Kendall's tau 0.59"


def test_thresholds_divide_levels_that_the_score_divides() -> None:
    """Where scores of the bands do not overlap, the thresholds lie between them and the agreement is one."""
    levels = np.repeat([1, 2, 3, 4, 5], 100)
    values = LEVELS[levels - 1] * 0.5 + np.random.default_rng(1).uniform(0, 0.4, len(levels))
    thresholds = scales.fit_thresholds(values, levels)
    assert scales.measure_agreement(values, levels, thresholds) > 0.98  # quantiles are 1/40 apart
    assert [0.35 < thresholds[0] < 0.55, 0.85 < thresholds[1] < 1.05, 1.35 < thresholds[2] < 1.55] == [True] * 3


def test_agreement_is_weighted_kappa() -> None:
    """The agreement is that of scikit-learn's quadratic kappa, and no other triple of quantiles has a higher one."""
    rng = np.random.default_rng(2)
    levels = rng.integers(1, 6, 300)
    values = levels / 5 + rng.normal(0, 0.4, 300)

    def measure(thresholds: list[float]) -> float:
        bands = np.searchsorted(thresholds, values, side="right")
        return float(cohen_kappa_score(bands, LEVELS[levels - 1], labels=range(len(BANDS)), weights="quadratic"))

    best = scales.fit_thresholds(values, levels)
    assert scales.measure_agreement(values, levels, best) == pytest.approx(measure(best), abs=1e-5)
    cuts = np.quantile(values, np.arange(1, 40) / 40)
    for _ in range(100):
        other = sorted(rng.choice(cuts, 3, replace=False))
        assert measure(other) <= measure(best) + 1e-6


def test_file_of_a_reference() -> None:
    """A reference is read as it was written; a damaged or foreign file is BadInput that names it."""
    text = scales.format_reference(REFERENCE)
    assert scales.parse_reference(text, "here") == REFERENCE
    for damaged in (text[:40], "{}", text.replace("[0.0, 0.02, ", "[")):
        with pytest.raises(BadInput, match=r"here.*build the reference again"):
            scales.parse_reference(damaged, "here")
