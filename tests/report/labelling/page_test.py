"""The page of a labelling project: every number given is on it, names are text, and made-up raters are told on top."""

import datetime
import re
from typing import Any

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.label.schema import FIELDS
from pipeline.metrics.labelling import agreement, label_analysis
from pipeline.metrics.labelling.agreement_study import study
from pipeline.papers.csd import TABLE_2
from pipeline.report.labelling.data_card import Facts
from pipeline.report.labelling.page import Inputs, render
from tests.report.labelling.rows import (
    AGREEMENT,
    CORRELATIONS,
    OVERLAPS,
    PREDICTABILITY,
    RATED,
    RATIOS,
    STUDY,
    WIDE,
)
from tests.support.pages import HOSTILE, Page, check_names, check_sections, tables, texts

FACTS = Facts(
    release="teahouse_1",
    created=datetime.date(2026, 11, 19),
    rows=pl.DataFrame({"source": ["weibo", "zhihu"], "lang": ["zh", "en"], "row_count": [1200, 34]}),
    funnel=pl.DataFrame(
        {"step": ["select", "release"], "read_count": [70211, 1301], "kept_count": [1301, 1234],
         "dropped_count": [68910, 67]}
    ),
    classes=RATIOS,
    agreement=AGREEMENT,
    deletions=pl.DataFrame({"reason": ["specious_twice", "late"], "row_count": [41, 2626]}),
    tools=pl.DataFrame({"tool": ["label_studio", "file"], "row_count": [31111, 222]}),
    rater_count=17,
    licence="CC BY 4.0",
    data_hash="ab" * 32,
    schema_version="0123456789ab",
)  # fmt: skip
OPEN = pl.DataFrame({"round": [1, 1, 2, 2], "stage": [1, 2, 1, 2], "field_count": [1501, 0, 73, 9]})
INPUTS = Inputs("teahouse", FACTS, AGREEMENT, RATIOS, OVERLAPS, CORRELATIONS, PREDICTABILITY, STUDY, OPEN)
NO_LABELS = WIDE.clear()
EMPTY = Inputs(
    project="teahouse",
    facts=FACTS._replace(
        rater_count=0,
        **{name: getattr(FACTS, name).clear() for name in ("rows", "funnel", "classes", "deletions", "tools")},
    ),
    agreement=agreement.tabulate(RATED.clear(), resamples=10),
    ratios=label_analysis.class_ratios(NO_LABELS),
    overlaps=label_analysis.overlaps(NO_LABELS),
    correlations=label_analysis.correlations(NO_LABELS),
    predictability=None,
    study=None,
    open=OPEN.clear(),
)


@pytest.fixture(scope="module")
def whole() -> str:
    """The page of every part."""
    return render(INPUTS)


def test_every_part_is_there(whole: str) -> None:
    """Each of eleven parts but one has a figure; rendering again gives the same text."""
    check_sections(whole, list(tables(whole)), 10)
    assert len(tables(whole)) == 11
    assert render(INPUTS) == whole


def shown(value: Any) -> str:
    """A number as the page has it: counts with commas, others to three places with a minus sign, a dash for none."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}".replace("-", "−")


@pytest.mark.parametrize("name", ["funnel", "deletions"])
def test_counts_of_the_funnel_are_shown(whole: str, name: str) -> None:
    """Every step with what it read, kept and left out, every reason with its count."""
    rows = [cells for part in tables(whole).values() for cells in part]
    for row in getattr(FACTS, name).iter_rows():
        assert [row[0], *map(shown, row[1:])] in rows


def test_sources_tools_and_what_waits_are_shown(whole: str) -> None:
    """Comments by source, labels by tool, fields by the step they wait in, and the sums on top."""
    rows = [cells for part in tables(whole).values() for cells in part]
    for row in (
        ["comments", "weibo, zh", "1,200"], ["comments", "zhihu, en", "34"], ["labels", "label_studio", "31,111"],
        ["labels", "file", "222"], ["round 1, raters", "1,501"], ["round 1, adjudicator", "0"],
        ["round 2, raters", "73"], ["round 2, adjudicator", "9"],
    ):  # fmt: skip
        assert row in rows
    said = texts(whole)
    assert "1,234 comments fit to publish 31,333 labels that count 17 raters 1,583 fields that wait" in said
    assert "1,583 fields of comments wait, most of them in round 1, raters" in said
    settled = render(EMPTY._replace(open=OPEN.with_columns(field_count=pl.lit(0))))
    assert "Nothing waits" in texts(settled)


def test_agreement_is_shown_beside_the_papers(whole: str) -> None:
    """Each measure with its interval, the least TAE there can be, and table 2 of the paper, which has no emotion."""
    kappas = {row[0]: row for row in tables(whole)["How far raters agree beyond chance"]}
    taes = {row[0]: row for row in tables(whole)["How far raters agree by the paper's own measure"]}
    ends = ("", "_low", "_high")
    for row in AGREEMENT.iter_rows(named=True):
        by = {
            name: "–" if row[name] is None else "{} {} to {}".format(*(shown(row[name + end]) for end in ends))
            for name in ("fleiss", "fleiss_four", "cohen", "krippendorff", "tae", "tae_mean_of_records")
        }
        field, paper = row["field"], TABLE_2.get(row["field"])
        kappa, tae = ("–", "–") if paper is None else (f"{paper.kappa:.2f}", f"{paper.tae:.2f}")
        counts = [shown(row[name]) for name in ("n", "n_three", "n_four")]
        assert kappas[field] == [field, *counts, *[*by.values()][:4], kappa]
        assert taes[field] == [field, str(row["classes"]), counts[2], by["tae"], by["tae_mean_of_records"],
                               shown(row["tae_min"]), tae]  # fmt: skip
    assert kappas["other"][4:] == ["–", "–", "–", "–", "0.26"]  # nobody saw another figure: kappa is undefined
    assert taes["emotion"][3] == "1.000 1.000 to 1.000"


def test_thresholds_are_no_verdict(whole: str) -> None:
    """Both thresholds are named as the paper's, with the caution of errata E8, and no field is said to pass or fail."""
    said = texts(whole)
    assert "the 0.6 above which the paper calls reliability high" in said
    assert "the 0.53 that the paper sets beside a κ of 0.6" in said
    assert said.count("It is no verdict") == 2
    assert "a κ between 0.39 and 0.65" in said
    assert not re.search(r"\b(pass(ed|es)?|fail(ed|s)?|un?reliable)\b", said)


def test_predictability_is_shown_beside_the_majority(whole: str) -> None:
    """F1 of the SVM, of the commonest class and of the paper, with rows, classes and what was left out."""
    rows = tables(whole)["Whether words alone foretell the labels"]
    assert rows == [["subtext", "0.610", "0.438", "0.47", "1,234", "3", "0"],
                    ["emotion", "0.350", "0.312", "–", "1,200", "9", "5"],
                    ["other", "–", "–", "0.49", "7", "1", "2"]]  # fmt: skip
    assert "in subtext: 0.610 against 0.438" in texts(whole)
    none = NAMED._replace(predictability=PREDICTABILITY.tail(1))
    assert "No field has two classes" in texts(render(none))


def test_classes_are_shown(whole: str) -> None:
    """Every value of every field with its meaning, count and share; a share of subtext is told."""
    rows = tables(whole)["How common each class is"]
    assert len(rows) == RATIOS.height
    for row, given in zip(rows, RATIOS.iter_rows(named=True), strict=True):
        assert [row[0], row[1], *row[3:]] == [
            given["field"],
            given["value"],
            shown(given["count"]),
            shown(given["ratio"]),
        ]
    assert rows[0] == ["subtext", "1", "yes", "3", "0.375"]
    assert "37.5 % of the comments have subtext" in texts(whole)


def test_overlap_has_both_directions_in_one_row(whole: str) -> None:
    """Each pair stands once, with all that its two rows have; the sentence tells subtext and metaphor."""
    rows = {tuple(row[:2]): row[2:] for row in tables(whole)["How far the kinds overlap"]}
    assert len(rows) == 6 * 7 // 2
    assert rows["subtext", "sarcasm"] == ["2", "3", "2", "0.667", "1.000", "0.667"]
    by = {(row["a"], row["b"]): row for row in OVERLAPS.iter_rows(named=True)}
    for (a, b), cells in rows.items():
        one, other = by[a, b], by[b, a]
        names = ("both_count", "a_count", "b_count", "overlap")
        assert cells == [*(shown(one[name]) for name in names), shown(other["overlap"]), shown(one["jaccard"])]
    assert "a share of 0.333 has a metaphor too, of those with a metaphor 0.500 has subtext" in texts(whole)


def test_correlations_are_shown(whole: str) -> None:
    """Each pair stands once with its coefficient and count; subtext with sarcasm and metaphor beside the paper's."""
    rows = {tuple(row[:2]): row[2:] for row in tables(whole)["Which kinds go together"]}
    for row in CORRELATIONS.iter_rows(named=True):
        a, b = sorted((row["a"], row["b"]), key=list(FIELDS).index)
        assert rows[a, b] == [shown(row["spearman"]), shown(row["n"])]
    assert "the paper has 0.53 and 0.55" in texts(whole)


def test_study_is_shown(whole: str) -> None:
    """Every row of the study stands in the table; the sentence reads the curves at nine in ten."""
    rows = tables(whole)["How the measures answer to skew: simulated raters, not this project's"]
    names = ("kappa", "fleiss", "agreement", "tae")
    given = [
        [
            str(row["classes"]),
            f"{row['positive_rate']:g}",
            f"{row['accuracy']:g}",
            *(shown(row[name]) for name in names),
        ]
        for row in STUDY.iter_rows(named=True)
    ]
    assert rows == given
    at = STUDY.filter((pl.col("classes") == 2) & (pl.col("accuracy") == 0.9))
    low, high = (shown(value) for value in at["kappa"])
    assert f"right in 90 % of cases and 2 classes, Cohen's κ goes from {low} to {high}" in texts(whole)


def test_day_and_schema_are_told() -> None:
    """The lead tells the day and the version of the schema."""
    assert "Schema 0123456789ab, 2026-11-19." in texts(render(EMPTY))


NAMES = {"funnel": "step", "deletions": "reason", "rows": "source", "tools": "tool"}
NAMED = EMPTY._replace(
    facts=EMPTY.facts._replace(**{name: getattr(FACTS, name) for name in NAMES}),
    ratios=RATIOS.clear(),
    overlaps=OVERLAPS.clear(),
    correlations=CORRELATIONS.clear(),
)


@pytest.fixture(scope="module")
def named() -> Page:
    """The page of what has names that are not ours."""
    return Page(render(NAMED))


@pytest.mark.parametrize("text", HOSTILE)
def test_names_stay_text(named: Page, text: str) -> None:
    """Hostile names of a project, steps, reasons, sources and tools add no element and no handler anywhere."""
    facts = NAMED.facts._replace(
        schema_version=text,
        **{name: getattr(FACTS, name).with_columns(pl.lit(text).alias(column)) for name, column in NAMES.items()},
    )
    html = render(NAMED._replace(project=text, facts=facts))
    page = Page(html)
    check_names(html, render(NAMED), 0)
    assert page.markup == named.markup
    assert sum(text in said for said in page.texts) >= 9  # title, heading, lead, and the rows of four tables
    assert text not in html or not set(text) & set("<>&\"'")


@pytest.mark.parametrize("counts", [(5, 95), (100, 0), (0, 100)])
def test_made_up_raters_are_told_on_top(counts: tuple[int, int]) -> None:
    """A warning stands before the first part if and only if labels came from simulated raters, and says how many."""
    tools = pl.DataFrame({"tool": ["simulated", "file"], "row_count": counts})
    html = render(EMPTY._replace(facts=EMPTY.facts._replace(tools=tools)))
    is_told = f"{counts[0]} of 100 labels come from simulated raters" in texts(html)
    assert is_told == ('class="warn"' in html) == (counts[0] > 0)
    if is_told:
        assert html.index('class="warn"') < html.index("<nav")


def test_no_warning_without_made_up_raters(whole: str) -> None:
    """The study of simulated raters is none of the project's labels and no reason to warn."""
    assert 'class="warn"' not in whole


def test_an_empty_project_has_a_page() -> None:
    """A project without tasks, labels and measures is told plainly; its counts are 0."""
    said = texts(render(EMPTY))
    assert "0 comments fit to publish 0 labels that count 0 raters 0 fields that wait" in said
    assert "None" not in {cell for part in tables(render(EMPTY)).values() for row in part for cell in row[2:]}
    nothing = EMPTY._replace(ratios=RATIOS.clear(), overlaps=OVERLAPS.clear(), correlations=CORRELATIONS.clear())
    assert "There is nothing to show yet." in render(nothing)
    assert "<h2" not in render(nothing)


def test_null_measures_are_dashes() -> None:
    """Fields whose measures are all null are told as undefined, with dashes and without a warning."""
    numbers = [name for name, dtype in AGREEMENT.schema.items() if dtype == pl.Float64 and name != "tae_min"]
    null = [pl.lit(None, pl.Float64).alias(name) for name in numbers]
    html = render(INPUTS._replace(
        agreement=AGREEMENT.with_columns(null),
        study=study((0.9,), (0.0,), (2,), items=0),
        ratios=RATIOS.with_columns(ratio=pl.lit(None, pl.Float64)),
        overlaps=OVERLAPS.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("overlap", "jaccard")),
        correlations=CORRELATIONS.with_columns(spearman=pl.lit(None, pl.Float64)),
    ))  # fmt: skip
    assert texts(html).count("is undefined for every field") == 2
    assert tables(html)["How far raters agree beyond chance"][0][4:8] == ["–"] * 4
    assert "nan" not in texts(html)


@pytest.mark.parametrize("name", ["agreement", "ratios", "overlaps", "correlations", "predictability", "study", "open"])
def test_a_missing_column_is_named(name: str) -> None:
    """A frame without a column that is shown is refused, by name."""
    frame = getattr(INPUTS, name)
    last = {"agreement": "tae_min", "ratios": "ratio"}.get(name, frame.columns[-1])
    with pytest.raises(BadInput, match=f"^{name}: expected a column {last}, found "):
        render(INPUTS._replace(**{name: frame.drop(last)}))


def test_a_strange_field_is_named() -> None:
    """A field that the schema does not have is refused."""
    with pytest.raises(BadInput, match=r"^ratios, field: expected subtext, .* found 'irony'$"):
        render(INPUTS._replace(ratios=RATIOS.with_columns(field=pl.lit("irony"))))
