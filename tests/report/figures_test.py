"""Figures: SVG that says the numbers and is the same for the same rows."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from pipeline.report import figures
from tests.support.pages import words

SCORES = pl.DataFrame({"source": ["weibo"] * 5 + ["zhihu"], "implicitness": [0.0, 0.5, 1.0, 1.5, 2.0, 0.7]})
FUNNEL = pl.DataFrame(
    {"source": ["weibo", "weibo", "zhihu"], "reason": [None, "exact_duplicate", None], "row_count": [3, 1, 0]}
)


@pytest.mark.parametrize(("draw", "rows"), [(figures.draw_distributions, SCORES), (figures.draw_funnel, FUNNEL)])
def test_same_rows_same_bytes(draw: Callable[[pl.DataFrame], str], rows: pl.DataFrame) -> None:
    """Rows in any order give the same bytes, twice over: no date, no random id."""
    svg = draw(rows)
    assert draw(rows) == svg == draw(rows.reverse())
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own


def test_same_bytes_in_another_process() -> None:
    """Another process, with another hash seed, draws the same bytes; of other rows a figure differs."""
    other_rows = SCORES.with_columns(pl.col("implicitness") / 2)
    assert figures.draw_distributions(SCORES) != figures.draw_distributions(other_rows)
    code = (
        "import sys, polars as pl; from pipeline.report import figures; sys.stdout.write(figures.draw_distributions("
        "pl.DataFrame({'source': ['weibo'] * 5 + ['zhihu'], 'implicitness': [0.0, 0.5, 1.0, 1.5, 2.0, 0.7]})))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    process = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert process.stdout == figures.draw_distributions(SCORES)


def test_distributions_name_sources_and_counts() -> None:
    """One row a source in alphabetical order, each with its count; the scale is named."""
    texts = words(figures.draw_distributions(SCORES))
    assert [text for text in texts if text in {"weibo", "zhihu"} or "n=" in text] == ["weibo", "n=5", "zhihu", "n=1"]
    assert "implicitness, from 0 (fully explicit) to 2; line: median" in texts


def test_scores_at_the_ends_are_counted() -> None:
    """A source whose only scores are 0 or 2 is drawn, without a warning."""
    for value in (0.0, 2.0):
        svg = figures.draw_distributions(pl.DataFrame({"source": ["weibo"], "implicitness": [value]}))
        assert svg.startswith("<svg")


def test_funnel_names_reasons_and_totals() -> None:
    """Reasons stand in the legend as words, and each source says how many rows were read, none included."""
    texts = words(figures.draw_funnel(FUNNEL))
    assert {"kept", "exact duplicate", "4 read", "0 read", "weibo", "zhihu"} <= set(texts)


def test_funnel_bars_are_shares() -> None:
    """Of 3 kept and 1 dropped rows the bars end at 75 % and 100 % of the axis: the second is a third of the first."""
    rows = pl.DataFrame({"source": ["weibo"] * 2, "reason": [None, "empty"], "row_count": [3, 1]})
    svg = figures.draw_funnel(rows)
    bars = []
    for path in re.findall(r'<path d="([^"]*)"\s+clip-path', svg):
        xs = [float(x) for x, _ in re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", path)]
        if path.rstrip().endswith("z"):
            bars.append(max(xs) - min(xs))
    assert len(bars) == 2
    assert bars[0] == pytest.approx(3 * bars[1], rel=1e-4)
