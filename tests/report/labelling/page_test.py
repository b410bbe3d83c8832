"""The page of a labelling project: every number given is on it, names are text, simulated raters are named on top."""

import re
from typing import Any

import polars as pl
import pytest

from pipeline.label import schema
from pipeline.metrics.labelling import agreement
from pipeline.papers.csd import TABLE_2
from pipeline.report.labelling.page import render
from tests.report.labelling import rows as data
from tests.report.labelling.rows import AGREEMENT, CORRELATIONS, FACTS, OVERLAPS, RATIOS, STUDY
from tests.support.pages import check_print, check_sections, tables, texts, words

OPEN = pl.DataFrame({"round": [1, 1, 2, 2], "stage": [1, 2, 1, 2], "field_count": [1501, 0, 73, 9]})
FRAMES = {"ratios": RATIOS, "overlaps": OVERLAPS, "correlations": CORRELATIONS, "study": STUDY}
NAMES = {"funnel": "step", "deletions": "reason", "rows": "source", "tools": "tool"}
"""Columns of facts that hold names which are not ours."""
EMPTY = FACTS._replace(
    rater_count=0,
    classes=RATIOS.clear(),
    agreement=agreement.tabulate(data.RATED.clear(), resamples=10),
    **{name: getattr(FACTS, name).clear() for name in NAMES},
)
NONE = OPEN.clear()


@pytest.fixture(scope="module")
def page() -> str:
    return render("teahouse", FACTS, OPEN, **FRAMES, predictability=data.PREDICTABILITY)


def test_every_part_is_there(page: str) -> None:
    """Six of eleven parts have a figure that can be read in print; there is no warning."""
    check_sections(page, list(tables(page)), 6)
    assert len(tables(page)) == 11
    for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        check_print(svg)
    assert 'class="warn"' not in page  # the study of simulated raters is none of the project's labels
    assert f"Schema {schema.hash_schema()}, 2026-11-19." in texts(page)


def format_value(value: Any) -> str:
    """Format a number as the page has it: counts with commas, others to three places with a minus sign."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}".replace("-", "−")


def test_counts_are_shown(page: str) -> None:
    """Steps, reasons, sources and tools with their counts, fields by the step they wait in, and the sums on top."""
    rows = [cells for part in tables(page).values() for cells in part]
    expected = [
        [name, *map(format_value, counts)]
        for frame in (FACTS.funnel, FACTS.deletions)
        for name, *counts in frame.rows()
    ]
    expected += [
        ["comments", "weibo, zh", "1,200"], ["comments", "zhihu, en", "34"], ["labels", "label_studio", "31,111"],
        ["labels", "file", "222"], ["round 1, raters", "1,501"], ["round 1, adjudicator", "0"],
        ["round 2, raters", "73"], ["round 2, adjudicator", "9"],
    ]  # fmt: skip
    assert [row for row in expected if row not in rows] == []
    text = texts(page)
    assert "1,234 publishable comments 31,333 valid labels 17 raters 1,583 waiting fields" in text
    assert "1,583 fields of comments wait; most wait in round 1, raters" in text
    settled = render("teahouse", EMPTY, OPEN.with_columns(field_count=pl.lit(0)))
    assert "Nothing waits" in texts(settled)


def test_agreement_is_shown_with_the_papers(page: str) -> None:
    """Each measure with its interval, the least TAE there can be, and table 2 of the paper, which has no emotion."""
    kappas = {row[0]: row for row in tables(page)["Agreement corrected for chance"]}
    taes = {row[0]: row for row in tables(page)["Agreement by the paper's measure (TAE)"]}
    for row in AGREEMENT.iter_rows(named=True):
        measures = {}
        for name in ("fleiss", "fleiss_last", "fleiss_four", "cohen", "krippendorff", "tae", "tae_mean_of_records"):
            numbers = [format_value(row[name + end]) for end in ("", "_low", "_high")]
            measures[name] = "–" if row[name] is None else "{} {} to {}".format(*numbers)
        field, paper = row["field"], TABLE_2.get(row["field"])
        kappa, tae = ("–", "–") if paper is None else (f"{paper.kappa:.2f}", f"{paper.tae:.2f}")
        counts = [format_value(row[name]) for name in ("n", "n_three", "n_four", "n_waiting")]
        *kappa_texts, tae_text, mean_text = measures.values()
        assert kappas[field] == [field, *counts, *kappa_texts, kappa]
        least = format_value(row["tae_min"])
        assert taes[field] == [field, str(row["classes"]), *counts[2:], tae_text, mean_text, least, tae]
    assert kappas["other"][5:] == ["–", "–", "–", "–", "–", "0.26"]  # no rater saw another figure: kappa is undefined
    assert taes["emotion"][4] == "1.000 1.000 to 1.000"


def test_predictability_is_shown_with_the_majority(page: str) -> None:
    """F1 of the SVM, of the commonest class and of the paper, with rows, classes and what was left out."""
    assert tables(page)["Label prediction from words"] == [
        ["subtext", "0.610", "0.438", "0.47", "1,234", "3", "0"],
        ["emotion", "0.350", "0.312", "–", "1,200", "9", "5"],
        ["other", "–", "–", "0.49", "7", "1", "2"],
    ]
    assert "in subtext: F1 0.610 against 0.438" in texts(page)
    undefined = render("teahouse", EMPTY, NONE, predictability=data.PREDICTABILITY.tail(1))
    assert "No field has two classes" in texts(undefined)


def test_classes_and_thresholds(page: str) -> None:
    """Each value has its meaning, count and share; thresholds are the paper's, with the caution of errata E8."""
    rows = tables(page)["Class distribution"]
    expected = [[field, value, *map(format_value, numbers)] for field, value, *numbers in RATIOS.rows()]
    assert [row[:2] + row[3:] for row in rows] == expected
    assert rows[0] == ["subtext", "1", "yes", "3", "0.375"]
    assert "37.5 % of the comments have subtext" in texts(page)
    text = texts(page)
    assert "The paper calls reliability high if κ is above 0.6" in text
    assert "The paper equates a TAE of 0.53 with a κ of 0.6" in text
    assert text.count("The threshold is not a verdict") == 2
    assert "a κ between 0.39 and 0.65" in text
    assert not re.search(r"\b(pass(ed|es)?|fail(ed|s)?|un?reliable)\b", text)


def test_pairs_are_shown_once(page: str) -> None:
    """Each pair stands once, with all that its two rows have; the sentences have subtext beside the paper's."""
    rows = {tuple(row[:2]): row[2:] for row in tables(page)["Overlap of fields"]}
    assert len(rows) == 6 * 7 // 2
    assert rows["subtext", "sarcasm"] == ["2", "3", "2", "0.667", "1.000", "0.667"]
    overlaps = {(a, b): [*map(format_value, numbers)] for a, b, *numbers in OVERLAPS.rows()}
    for (a, b), cells in rows.items():
        *counts, overlap, jaccard = overlaps[a, b]
        assert cells == [*counts, overlap, overlaps[b, a][3], jaccard]
    assert "A share of 0.333 of the comments with subtext also has a metaphor." in texts(page)
    assert "A share of 0.500 of the comments with a metaphor also has subtext." in texts(page)
    rows = {tuple(row[:2]): row[2:] for row in tables(page)["Correlation of fields"]}
    for a, b, *numbers in CORRELATIONS.rows():
        assert rows[(a, b) if (a, b) in rows else (b, a)] == [*map(format_value, numbers)]
    assert "The paper has 0.53 and 0.55" in texts(page)


def test_study_is_shown(page: str) -> None:
    """Every row of the study stands in the table; the sentence reads the curves at nine in ten."""
    rows = tables(page)["Effect of skew on agreement measures (simulated raters)"]
    assert rows == [
        [str(classes), f"{rate:g}", f"{accuracy:g}", *map(format_value, numbers)]
        for classes, rate, accuracy, *numbers in STUDY.rows()
    ]
    low, high = map(format_value, STUDY.filter(classes=2, accuracy=0.9)["kappa"])
    assert f"a rater accuracy of 90 % and 2 classes, Cohen's κ ranges from {low} to {high}" in texts(page)


@pytest.mark.parametrize("counts", [(5, 95), (100, 0), (0, 100)])
def test_simulated_raters_are_named_on_top(counts: tuple[int, int]) -> None:
    """A warning stands before the first part if and only if labels came from simulated raters, and says how many."""
    tools = pl.DataFrame({"tool": ["simulated", "file"], "row_count": counts})
    html = render("teahouse", EMPTY._replace(tools=tools), NONE)
    has_warning = f"{counts[0]} of 100 labels come from simulated raters" in texts(html)
    assert has_warning == ('class="warn"' in html) == (counts[0] > 0)
    if has_warning:
        assert html.index('class="warn"') < html.index("<nav")


def test_null_measures_are_dashes() -> None:
    """Fields whose measures are all null are called undefined, with dashes and without a warning."""

    def clear(frame: pl.DataFrame, *keys: str) -> pl.DataFrame:
        names = [name for name, dtype in frame.schema.items() if dtype == pl.Float64 and name not in keys]
        return frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in names)

    frames = {name: clear(FRAMES[name]) for name in ("ratios", "overlaps", "correlations")}
    study = clear(STUDY, "positive_rate", "accuracy")
    facts = FACTS._replace(agreement=clear(AGREEMENT, "tae_min"))
    html = render("teahouse", facts, OPEN, study=study, **frames, predictability=data.PREDICTABILITY)
    assert texts(html).count("is undefined for every field") == 2
    assert tables(html)["Agreement corrected for chance"][0][5:10] == ["–"] * 5
    assert "nan" not in texts(html)
    assert "nan" not in [word for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL) for word in words(svg)]
