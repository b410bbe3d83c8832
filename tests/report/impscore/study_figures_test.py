"""Figures of studies and models: SVG that says the numbers and draws whatever is there, the same rows, same bytes."""

import numpy as np
import polars as pl
import pytest

from pipeline.metrics.impscore.studies import LABELS
from pipeline.report.impscore import figures
from pipeline.report.impscore.study_rows import average_runs
from tests.report.impscore.samples import SENSITIVITY, frame, row
from tests.support.pages import elements, words


def test_over_runs_by_hand() -> None:
    """Three runs are one row: mean, s.d. over n - 1, how many; one run has no s.d."""
    setting = {"implicitness": "cosine", "pragmatics": "cosine", "space": "p2s"}
    values = enumerate((0.9, 0.8, 0.7))
    rows = frame(*(row("ablation", "implicitness_accuracy", value, run=i, **setting) for i, value in values))
    (average,) = average_runs(rows, "ablation").to_dicts()
    assert (average["value"], average["sd"], average["run_count"]) == pytest.approx((0.8, 0.1, 3))
    assert {name: average[name] for name in setting} == setting
    assert average_runs(rows.head(1), "ablation")["sd"].to_list() == [None]


def test_settings_may_be_whole_numbers() -> None:
    """A setting whose JSON says 1 is the one that says 1.0."""
    rows = frame(
        row("sensitivity", "m", 0.5, gamma_implicitness=1, gamma_pragmatics=2, alpha=1),
        row("sensitivity", "m", 0.7, run=1, gamma_implicitness=1.0, gamma_pragmatics=2.0, alpha=1.0),
    )
    assert average_runs(rows, "sensitivity").select("alpha", "value", "run_count").rows() == [(1.0, 0.6, 2)]


SENSITIVITY_PARTS = {
    "one setting, one run": SENSITIVITY.head(1),
    "a grid with holes": SENSITIVITY.head(40),
    "nothing differs": SENSITIVITY.with_columns(value=pl.lit(0.9)),
}


@pytest.mark.parametrize("name", SENSITIVITY_PARTS)
def test_any_grid_draws(name: str) -> None:
    """A grid that is not full, or has one value, is drawn as points without a warning."""
    assert figures.draw_sensitivity(SENSITIVITY_PARTS[name]).startswith("<svg")


def test_the_surface_meets_what_was_measured() -> None:
    """The interpolated surface has the measured values at its corners and leaves their range nowhere."""
    x, y = map(np.ravel, np.meshgrid([0.1, 0.5, 1.5], [0.5, 2.0]))
    z = np.array([1.0, 3.0, 2.0, 5.0, 0.0, 4.0])
    order = np.array([3, 0, 5, 1, 4, 2])
    surface = figures._interpolate(x[order], y[order], z[order])
    assert surface is not None
    assert surface[2][[0, 0, -1, -1], [0, -1, 0, -1]] == pytest.approx([1, 2, 5, 4])
    assert surface[2].min() >= 0
    assert surface[2].max() <= 5
    assert figures._interpolate(x[:5], y[:5], z[:5]) is None


def test_detection_on_several_sources_is_not_mixed() -> None:
    """One detector on two data sets is two lines, each with its own numbers; empty bins have none."""
    rows = frame(
        row("detection", "accuracy", 0.9, LABELS[0], by="gpt", source="toxigen", row_count=10),
        row("detection", "accuracy", 0.1, LABELS[0], by="gpt", source="dghsd", row_count=20),
        row("detection", "accuracy", None, LABELS[1], by="gpt", source="dghsd", row_count=0),
    )
    lines = [("gpt on dghsd", 0.1, 20), ("gpt on dghsd", None, 0), ("gpt on toxigen", 0.9, 10)]
    assert average_runs(rows, "detection").select("by", "value", "row_count").rows() == lines
    assert {"gpt on dghsd", "gpt on toxigen"} <= set(words(figures.draw_detection(rows)))
    assert average_runs(rows[1:], "detection")["by"].unique().to_list() == ["gpt"]


HOSTILE = ["--><script>alert(1)</script>", "$\\frac{$", "_hidden", "微博评论", "a" * 300, "x_" * 80]


def test_names_are_drawn_and_nothing_else() -> None:
    """Markup, mathematics, Chinese and very long names are drawn as they are, without a warning or an element."""
    rows = [row("detection", "accuracy", 0.5, LABELS[0], by=name, low=0.4, high=0.6) for name in HOSTILE]
    svg = figures.draw_detection(frame(*rows))
    drawing = {"svg", "defs", "style", "g", "path", "use", "clipPath", "rect"}
    assert elements(svg) <= drawing | {"metadata", "RDF", "Work", "type", "format"}
    assert "<script" not in svg
    assert {"$\\frac{$", "_hidden", "微博评论"} <= set(words(svg))
