"""Figures of a labelling project: SVG that says the numbers and leaves out what is null, the same rows, same bytes."""

import re
from collections.abc import Callable
from functools import partial

import polars as pl
import pytest

from pipeline.report.labelling import figures
from pipeline.report.labelling.figures import KAPPAS, PAPER, TAES, build_matrix
from tests.report.labelling.rows import AGREEMENT, NAMES, OVERLAPS
from tests.support.pages import said, words

draw_kappas, draw_taes = (partial(figures.draw_agreement, measures=measures) for measures in (KAPPAS, TAES))
Draw = Callable[[pl.DataFrame], str]


def test_overlaps_are_shown_both_ways() -> None:
    """Of an overlap both directions and Jaccard's are drawn."""
    matrix = build_matrix(OVERLAPS, "overlap")
    assert matrix[0, 1] == pytest.approx(2 / 3, abs=1e-6)
    assert matrix[1, 0] == 1
    pair = OVERLAPS.filter(pl.col("a").is_in(["subtext", "sarcasm"]) & pl.col("b").is_in(["subtext", "sarcasm"]))
    numbers = [text for text in words(figures.draw_overlaps(pair)) if re.fullmatch(r"\d\.\d\d", text)]
    assert numbers == ["1.00", "0.67", "1.00", "1.00", "1.00", "0.67", "0.67", "1.00"]


@pytest.mark.parametrize(("draw", "measures", "line"), [(draw_kappas, KAPPAS, "0.6"), (draw_taes, TAES, "0.53")])
def test_agreement_names_measures_and_the_line(draw: Draw, measures: dict[str, str], line: str) -> None:
    """The legend names each measure and the paper, the axis the line; each field has its n."""
    svg = draw(AGREEMENT)
    assert [name for name in (*measures.values(), PAPER) if name not in said(svg)] == []
    assert f"dashed: {line}; n: comments" in said(svg)
    assert [name for name in words(svg) if name.endswith(", n = 8")] == [f"{name}, n = 8" for name in NAMES]
