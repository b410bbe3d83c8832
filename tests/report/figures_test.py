"""Figures: SVG that says the numbers and is the same for the same rows."""

import re
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
    """Rows in any order give the same bytes, twice over: no date, no random id; other rows give others."""
    svg = draw(rows)
    assert draw(rows) == svg == draw(rows.reverse())
    (column,) = {"implicitness", "row_count"} & set(rows.columns)
    assert draw(rows.with_columns(pl.col(column) / 2)) != svg
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own


def test_distributions_name_sources_and_counts() -> None:
    """One row a source in alphabetical order, each with its count; the scale is named; scores may all be 0 or 2."""
    texts = words(figures.draw_distributions(SCORES))
    assert [text for text in texts if text in {"weibo", "zhihu"} or "n=" in text] == ["weibo", "n=5", "zhihu", "n=1"]
    assert "implicitness, from 0 (fully explicit) to 2; line: median" in texts
    for value in (0.0, 2.0):
        assert "n=6" in words(figures.draw_distributions(SCORES.with_columns(source=pl.lit("a"), implicitness=value)))


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
