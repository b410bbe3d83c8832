"""Figures of a labelling project: SVG that says the numbers and leaves out what is null, the same rows, same bytes."""

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.label.schema import FIELDS, NO, UNSURE, YES
from pipeline.metrics.labelling import agreement, agreement_study, label_analysis
from pipeline.papers.csd import TABLE_2
from pipeline.report.labelling import figures
from pipeline.report.labelling.figures import KAPPAS, PAPER, TAES, matrix_of
from tests.report.impscore.study_figures_test import sizes, words

WIDE = pl.DataFrame(
    {"subtext": [YES, YES, YES, NO, NO, UNSURE, NO, NO], "sarcasm": [YES, YES, NO, NO, NO, NO, NO, NO],
     "metaphor": [NO, YES, NO, NO, YES, NO, NO, NO], "sentiment": [YES, NO, NO, UNSURE, UNSURE, UNSURE, UNSURE, YES],
     "emotion": ["joy", "sad", "anger", "None", "None", "None", "None", "None"], "other": [NO] * 8}
)  # fmt: skip
"""Of eight comments three have subtext, two of them with sarcasm; one of two metaphors is among them; no other."""
NAMES = ["subtext", "sarcasm", "metaphor", "sentiment", "emotion", "other"]
RATED = WIDE.with_row_index("task_id").unpivot(index="task_id", variable_name="field", value_name="a").with_columns(
    pl.col("task_id").cast(pl.String), b="a", fourth="a",
    c=pl.when((pl.col("task_id") == 3) & ~pl.col("field").is_in(["emotion", "other"])).then(pl.lit(YES)).otherwise("a"),
)  # fmt: skip
AGREEMENT = agreement.table(RATED, resamples=50)
RATIOS, OVERLAPS = label_analysis.class_ratios(WIDE), label_analysis.overlaps(WIDE)
CORRELATIONS = label_analysis.correlations(WIDE)
STUDY = agreement_study.study((0.5, 0.9, 1.0), (0.02, 0.5), items=400)
PREDICTABILITY = pl.DataFrame(
    {"field": ["subtext", "emotion", "other"], "svm_f1": [0.61, 0.35, None], "majority_f1": [0.4375, 0.3125, None],
     "row_count": [1234, 1200, 7], "class_count": [3, 9, 1], "left_out_count": [0, 5, 2]}
)  # fmt: skip
STEPS = pl.DataFrame({"step": ["select", "release"], "read_count": [5000, 400], "kept_count": [400, 366]})
ORDERED = [
    pytest.param(draw, frame, id=draw.__name__)
    for draw, frame in (
        (figures.kappas, AGREEMENT),
        (figures.taes, AGREEMENT),
        (figures.predictability, PREDICTABILITY),
        (figures.ratios, RATIOS),
        (figures.overlaps, OVERLAPS),
        (figures.correlations, CORRELATIONS),
        (figures.study, STUDY),
    )
]
_KEYS = ("positive_rate", "accuracy", "tae_min")
EVERY = [*ORDERED, pytest.param(figures.funnel, STEPS, id="funnel")]
Draw = Callable[[pl.DataFrame], str]


@pytest.mark.parametrize(("draw", "rows"), ORDERED)
def test_same_rows_same_bytes(draw: Draw, rows: pl.DataFrame) -> None:
    """Rows in any order give the same bytes, twice over."""
    assert draw(rows) == draw(rows) == draw(rows.sample(fraction=1, shuffle=True, seed=1))


@pytest.mark.parametrize(("draw", "rows"), EVERY)
def test_letters_can_be_read_in_print(draw: Draw, rows: pl.DataFrame) -> None:
    """A figure is one element without pictures, no text is smaller than 8 points, and it fits a page."""
    svg = draw(rows)
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own
    assert "<image" not in svg
    assert min(sizes(svg)) >= 8 - 1e-6
    assert float(re.findall(r'width="([\d.]+)pt"', svg)[0]) <= 7.2 * 72 + 0.1


@pytest.mark.parametrize(("draw", "rows"), ORDERED)
def test_what_is_null_is_left_out(draw: Draw, rows: pl.DataFrame) -> None:
    """Where no measure is defined the figure has its names and says neither nan nor None for a number."""
    measures = [name for name, dtype in rows.schema.items() if dtype == pl.Float64 and name not in _KEYS]
    said = words(draw(rows.with_columns(pl.lit(None, pl.Float64).alias(name) for name in measures)))
    assert "nan" not in " ".join(said)
    assert ("2 classes" if rows.columns[0] == "classes" else "subtext") in said


@settings(max_examples=4)
@given(st.sets(st.sampled_from(list(FIELDS)), min_size=1), st.booleans())
def test_any_fields_draw(fields: set[str], is_empty: bool) -> None:
    """Whichever fields a project has, with labels or none yet, figures are drawn without a warning."""
    wide = pl.DataFrame({name: [FIELDS[name].values[0], FIELDS[name].values[-1]] for name in fields})
    wide = wide.clear() if is_empty else wide
    for draw, found in (
        (figures.ratios, label_analysis.class_ratios(wide)),
        (figures.overlaps, label_analysis.overlaps(wide)),
        (figures.correlations, label_analysis.correlations(wide)),
    ):
        assert draw(found).startswith("<svg")


def test_funnel_says_what_is_left() -> None:
    """Each step says how many it kept of how many; a step that read nothing has no bar."""
    said = words(figures.funnel(STEPS))
    assert {"select", "400 of 5,000", "release", "366 of 400"} <= set(said)
    nothing = STEPS.with_columns(pl.lit(0).alias(name) for name in ("read_count", "kept_count"))
    assert words(figures.funnel(nothing)).count("0 of 0") == 2


def test_bars_say_their_counts() -> None:
    """Every name has its count, nothing as well."""
    said = words(figures.bars(["all_different", "late"], [41_000, 0], "rows left out"))
    assert {"all_different", "late", "41,000", "0", "rows left out"} <= set(said)
    assert figures.bars(["none"], [0], "rows").startswith("<svg")


@pytest.mark.parametrize(("draw", "measures", "line"), [(figures.kappas, KAPPAS, "0.6"), (figures.taes, TAES, "0.53")])
def test_agreement_names_measures_and_the_line(draw: Draw, measures: dict[str, str], line: str) -> None:
    """The legend names each measure and the paper, the line its number; each field has its n."""
    said = words(draw(AGREEMENT))
    assert {*measures.values(), PAPER, line} <= set(said)
    assert [name for name in said if name in NAMES] == NAMES
    assert said.count("n = 8") == 6


def stars(svg: str) -> int:
    """How many stars there are, the legend's too: they alone are white with a rim of ink."""
    return len(re.findall(r"<use [^>]*fill: #ffffff; stroke: #1f2933", svg))


def test_the_papers_numbers_are_drawn() -> None:
    """There is a star for each field that table 2 has: not for emotion, which it leaves out."""
    expected = len(set(NAMES) & set(TABLE_2)) + 1
    assert stars(figures.kappas(AGREEMENT)) == stars(figures.taes(AGREEMENT)) == expected == 6
    assert stars(figures.predictability(PREDICTABILITY)) == 3


def test_ratios_say_their_shares() -> None:
    """Three of eight are 38 %, one is 12 %; the emotions' shares stand in words below, in the schema's order."""
    said = words(figures.ratios(RATIOS.filter(pl.col("field").is_in(["subtext", "emotion"]))))
    assert [text for text in said if re.fullmatch(r"\d+ %", text)] == ["38 %", "12 %", "50 %"]
    below = " ".join(text for text in said if re.search(r"\d [a-z]+ \d", text))
    assert below.startswith("emotion: 1 anger 12.5 % 2 fear 0.0 %")
    assert below.endswith("8 sad 12.5 % 9 none 62.5 %")


def test_overlap_keeps_both_directions() -> None:
    """Two of three with subtext have sarcasm, both with sarcasm have subtext: 0.67 and 1.00, Jaccard 0.67."""
    found = matrix_of(OVERLAPS, "overlap")
    assert found[0, 1] == pytest.approx(2 / 3, abs=1e-6)
    assert found[1, 0] == 1
    pair = OVERLAPS.filter(pl.col("a").is_in(["subtext", "sarcasm"]) & pl.col("b").is_in(["subtext", "sarcasm"]))
    said = [text for text in words(figures.overlaps(pair)) if re.fullmatch(r"\d\.\d\d", text)]
    assert said == ["1.00", "0.67", "1.00", "1.00", "1.00", "0.67", "0.67", "1.00"]


def test_correlations_have_their_sign_in_the_number() -> None:
    """Cells say their sign, so that it can be told in grey; a constant field has dashes."""
    opposite = pl.DataFrame({"subtext": [YES, NO], "sarcasm": [NO, YES], "other": [NO, NO]})
    said = words(figures.correlations(label_analysis.correlations(opposite)))
    assert said.count("−1.00") == 2
    assert said.count("1.00") == 2
    assert said.count("–") == 5


def test_study_has_a_panel_a_measure_and_number_of_classes() -> None:
    """Rows are numbers of classes, columns measures, lines positive rates."""
    said = words(figures.study(STUDY))
    assert {"2 classes", "3 classes", "2 % positive", "50 % positive", "agreement", "TAE"} <= set(said)
    assert figures.study(STUDY.head(1)).startswith("<svg")
