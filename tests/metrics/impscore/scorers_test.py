"""Scorers on sets: numbers by hand, beside scikit-learn, and what the surface reaches."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from pipeline.metrics.impscore.artefacts import AUC, CHANCE, SHARE, TAU, measure, predict_surface


def build_rows(count: int, levels: int, text: str = "{g} {n}") -> pl.DataFrame:
    """Items of some levels, each a group of its own; {n} is as many words as the level."""
    rows = [(g, g, level, text.format(g=g, n="very " * level)) for g in range(count) for level in range(levels)]
    return pl.DataFrame(rows, schema=["group", "item", "level", "text"], orient="row")


def measure_all(rows: pl.DataFrame, values: pl.Series, metric: str) -> dict[str, Any]:
    """Measure values of which there are some."""
    return measure(rows, values, metric) or {}


@pytest.mark.parametrize(
    ("metric", "levels", "values", "expected"),
    [
        (TAU, 3, [1, 2, 3], 1.0),
        (TAU, 3, [1, 3, 2], 1 / 3),  # two of three pairs rise, one falls
        (TAU, 3, [1, 1, 2], 2 / 3),  # a tie is neither
        (SHARE, 2, [2, 2], 0.5),  # a tie is half
        (AUC, 2, [2, 1], 0.0),
    ],
)
def test_a_metric_by_hand(metric: str, levels: int, values: list[float], expected: float) -> None:
    """Items that are all alike have the value of one, and an interval of that alone."""
    numbers = measure_all(build_rows(12, levels), pl.Series(values * 12), metric)
    assert [numbers[name] for name in ("value", "low", "high")] == pytest.approx([expected] * 3)
    assert numbers["n"] == (24 if metric == AUC else 12)


def test_intervals_cover_and_are_of_whole_groups() -> None:
    """AUC is scikit-learn's; four copies of each text in a group widen nothing and narrow nothing."""
    generator = np.random.default_rng(3)
    rows = build_rows(60, 1).with_columns(level=pl.Series(generator.integers(0, 2, 60)), item=0)
    values = pl.Series(rows["level"].to_numpy() + generator.normal(size=60))
    numbers = measure_all(rows, values, AUC)
    assert numbers["low"] < numbers["value"] < numbers["high"]
    assert numbers["value"] == pytest.approx(roc_auc_score(rows["level"], values))
    assert measure(pl.concat([rows] * 4), pl.concat([values] * 4), AUC) == {**numbers, "n": 240}


@pytest.mark.parametrize(("metric", "expected"), [(TAU, 11), (SHARE, 11), (AUC, 23)])
def test_texts_without_a_value(metric: str, expected: int) -> None:
    """Their item is left out, of labelled texts the text alone; fewer than ten groups have no interval."""
    rows, values = build_rows(12, 2), pl.Series([None, 1.0, *[1.0, 2.0] * 11])
    few = measure_all(rows.head(10), values.head(10), metric)
    assert measure_all(rows, values, metric)["n"] == expected
    assert (few["low"], few["high"]) == (None, None)
    assert measure(rows, pl.Series([None] * 24, dtype=pl.Float64), metric) is None


@pytest.mark.parametrize("metric", [TAU, SHARE, AUC])
def test_surface_and_chance(metric: str) -> None:
    """Where implicit texts are longer, length orders all, learnt crosswise or from others; a constant is chance."""
    rows = build_rows(20, 2)
    rows = rows.with_columns(item=0) if metric == AUC else rows
    for training_rows in (None, build_rows(30, 2)):
        surface = predict_surface(rows, training_rows)
        shares = {name: measure_all(rows, values, metric)["value"] for name, values in surface.items()}
        assert list(shares) == ["length", "punctuation", "words", "chance"]
        assert shares["length"] > 0.9
        assert shares["punctuation"] == shares["chance"] == CHANCE[metric]
