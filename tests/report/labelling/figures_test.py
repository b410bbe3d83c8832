"""Figures of a labelling project: SVG that says the numbers and leaves out what is null, the same rows, same bytes."""

import re
from collections.abc import Callable
from functools import partial

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.label.schema import FIELDS, NO, YES
from pipeline.metrics.labelling import label_analysis
from pipeline.papers.csd import TABLE_2
from pipeline.report.labelling import figures
from pipeline.report.labelling.figures import KAPPAS, PAPER, TAES, build_matrix
from tests.report.labelling.rows import AGREEMENT, CORRELATIONS, NAMES, OVERLAPS, PREDICTABILITY, RATIOS, STUDY
from tests.support.pages import check_figure, check_print, stars, words

draw_kappas, draw_taes = (partial(figures.draw_agreement, measures=measures) for measures in (KAPPAS, TAES))
STEPS = pl.DataFrame({"step": ["select", "release"], "read_count": [5000, 400], "kept_count": [400, 366]})
ORDERED = [
    pytest.param(draw, frame)
    for draw, frame in (
        (draw_kappas, AGREEMENT),
        (draw_taes, AGREEMENT),
        (figures.draw_predictability, PREDICTABILITY),
        (figures.draw_ratios, RATIOS),
        (figures.draw_overlaps, OVERLAPS),
        (figures.draw_correlations, CORRELATIONS),
        (figures.draw_study, STUDY),
    )
]
Draw = Callable[[pl.DataFrame], str]


@pytest.mark.parametrize(("draw", "rows"), ORDERED)
def test_a_figure_is_of_its_rows(draw: Draw, rows: pl.DataFrame) -> None:
    """Rows in any order give the same bytes, and letters can be read in print; what is null is left out.

    Where no measure is defined the figure has its names and says neither nan nor None for a number.
    """
    check_figure(draw, rows)
    keys = ("positive_rate", "accuracy", "tae_min")
    measures = [name for name, dtype in rows.schema.items() if dtype == pl.Float64 and name not in keys]
    texts = words(draw(rows.with_columns(pl.lit(None, pl.Float64).alias(name) for name in measures)))
    assert "nan" not in " ".join(texts)
    assert ("2 classes" if rows.columns[0] == "classes" else "subtext") in texts


@settings(max_examples=4)
@given(st.sets(st.sampled_from(list(FIELDS)), min_size=1), st.booleans())
def test_any_fields_draw(fields: set[str], is_empty: bool) -> None:
    """Whichever fields a project has, with labels or none yet, figures are drawn without a warning."""
    wide = pl.DataFrame({name: [FIELDS[name].values[0], FIELDS[name].values[-1]] for name in fields})
    wide = wide.clear() if is_empty else wide
    for draw, measure in (
        (figures.draw_ratios, label_analysis.class_ratios),
        (figures.draw_overlaps, label_analysis.overlaps),
        (figures.draw_correlations, label_analysis.correlations),
    ):
        assert draw(measure(wide)).startswith("<svg")


def test_funnel_shows_what_remains() -> None:
    """Each step says how many it kept of how many; a step that read nothing has no bar."""
    svg = figures.draw_funnel(STEPS)
    check_print(svg)
    assert {"select", "400 of 5,000", "release", "366 of 400"} <= set(words(svg))
    nothing = STEPS.with_columns(pl.lit(0).alias(name) for name in ("read_count", "kept_count"))
    assert words(figures.draw_funnel(nothing)).count("0 of 0") == 2


def test_bars_show_their_counts() -> None:
    """Every name has its count, nothing as well."""
    texts = words(figures.draw_bars(["all_different", "late"], [41_000, 0], "rows left out"))
    assert {"all_different", "late", "41,000", "0", "rows left out"} <= set(texts)
    assert figures.draw_bars(["none"], [0], "rows").startswith("<svg")


@pytest.mark.parametrize(("draw", "measures", "line"), [(draw_kappas, KAPPAS, "0.6"), (draw_taes, TAES, "0.53")])
def test_agreement_names_measures_and_the_line(draw: Draw, measures: dict[str, str], line: str) -> None:
    """The legend names each measure and the paper, the line its number; each field has its n."""
    texts = words(draw(AGREEMENT))
    assert {*measures.values(), PAPER, line} <= set(texts)
    assert [name for name in texts if name in NAMES] == NAMES
    assert texts.count("n = 8") == 6
    # a star for each field that table 2 has, and one in the legend: it leaves emotion out
    assert stars(draw(AGREEMENT)) == len(set(NAMES) & set(TABLE_2)) + 1 == 6


def test_predictability_has_the_papers_numbers() -> None:
    """There is a star for each field that table 2 has: not for emotion, which it leaves out."""
    assert stars(figures.draw_predictability(PREDICTABILITY)) == 3


def test_ratios_show_their_shares() -> None:
    """Three of eight are 38 %, one is 12 %; the emotions' shares stand in words below, in the schema's order."""
    texts = words(figures.draw_ratios(RATIOS.filter(pl.col("field").is_in(["subtext", "emotion"]))))
    assert [text for text in texts if re.fullmatch(r"\d+ %", text)] == ["38 %", "12 %", "50 %"]
    below = " ".join(text for text in texts if re.search(r"\d [a-z]+ \d", text))
    assert below.startswith("emotion: 1 anger 12.5 % 2 fear 0.0 %")
    assert below.endswith("8 sad 12.5 % 9 none 62.5 %")


def test_overlap_has_both_directions() -> None:
    """Two of three with subtext have sarcasm, both with sarcasm have subtext: 0.67 and 1.00, Jaccard 0.67."""
    matrix = build_matrix(OVERLAPS, "overlap")
    assert matrix[0, 1] == pytest.approx(2 / 3, abs=1e-6)
    assert matrix[1, 0] == 1
    pair = OVERLAPS.filter(pl.col("a").is_in(["subtext", "sarcasm"]) & pl.col("b").is_in(["subtext", "sarcasm"]))
    numbers = [text for text in words(figures.draw_overlaps(pair)) if re.fullmatch(r"\d\.\d\d", text)]
    assert numbers == ["1.00", "0.67", "1.00", "1.00", "1.00", "0.67", "0.67", "1.00"]


def test_correlations_have_their_sign_in_the_number() -> None:
    """Cells show their sign, so that it can be read in grey; a constant field has dashes."""
    opposite = pl.DataFrame({"subtext": [YES, NO], "sarcasm": [NO, YES], "other": [NO, NO]})
    texts = words(figures.draw_correlations(label_analysis.correlations(opposite)))
    assert [texts.count(text) for text in ("−1.00", "1.00", "–")] == [2, 2, 5]


def test_study_has_a_panel_a_measure_and_number_of_classes() -> None:
    """Rows are numbers of classes, columns measures, lines positive rates."""
    texts = words(figures.draw_study(STUDY))
    assert {"2 classes", "3 classes", "2 % positive", "50 % positive", "agreement", "TAE"} <= set(texts)
    assert figures.draw_study(STUDY.head(1)).startswith("<svg")
