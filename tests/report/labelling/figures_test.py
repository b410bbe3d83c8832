"""Figures of a labelling project: SVG that says the numbers and leaves out what is null, the same rows, same bytes."""

import re
from collections.abc import Callable
from functools import partial

import polars as pl
import pytest

from pipeline.papers.csd import TABLE_2
from pipeline.report.labelling import figures
from pipeline.report.labelling.figures import KAPPAS, PAPER, TAES, build_matrix
from tests.report.labelling.rows import AGREEMENT, NAMES, OVERLAPS, PREDICTABILITY
from tests.support.pages import check_print, stars, words

draw_kappas, draw_taes = (partial(figures.draw_agreement, measures=measures) for measures in (KAPPAS, TAES))
STEPS = pl.DataFrame({"step": ["select", "release"], "read_count": [5000, 400], "kept_count": [400, 366]})
Draw = Callable[[pl.DataFrame], str]


def test_funnel_shows_what_remains() -> None:
    """Each step says how many it kept of how many; of an overlap both directions and Jaccard's are drawn."""
    svg = figures.draw_funnel(STEPS)
    check_print(svg)
    assert {"select", "400 of 5,000", "release", "366 of 400"} <= set(words(svg))
    nothing = STEPS.with_columns(pl.lit(0).alias(name) for name in ("read_count", "kept_count"))
    assert words(figures.draw_funnel(nothing)).count("0 of 0") == 2
    matrix = build_matrix(OVERLAPS, "overlap")
    assert matrix[0, 1] == pytest.approx(2 / 3, abs=1e-6)
    assert matrix[1, 0] == 1
    pair = OVERLAPS.filter(pl.col("a").is_in(["subtext", "sarcasm"]) & pl.col("b").is_in(["subtext", "sarcasm"]))
    numbers = [text for text in words(figures.draw_overlaps(pair)) if re.fullmatch(r"\d\.\d\d", text)]
    assert numbers == ["1.00", "0.67", "1.00", "1.00", "1.00", "0.67", "0.67", "1.00"]


@pytest.mark.parametrize(("draw", "measures", "line"), [(draw_kappas, KAPPAS, "0.6"), (draw_taes, TAES, "0.53")])
def test_agreement_names_measures_and_the_line(draw: Draw, measures: dict[str, str], line: str) -> None:
    """The legend names each measure and the paper, the line its number; each field has its n."""
    texts = words(draw(AGREEMENT))
    assert {*measures.values(), PAPER, line} <= set(texts)
    assert [name for name in texts if name in NAMES] == NAMES
    assert texts.count("n = 8") == 6
    # a star for each field that table 2 has, and one in the legend: it leaves emotion out
    assert stars(draw(AGREEMENT)) == len(set(NAMES) & set(TABLE_2)) + 1 == 6
    assert {PAPER, "linear SVM on words", "subtext, n = 1,234"} <= set(
        words(figures.draw_predictability(PREDICTABILITY))
    )
