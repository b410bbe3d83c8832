"""The data card: it tells all it is given, warns of made-up raters, and takes names for text."""

import datetime
import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipeline.errors import BadInput
from pipeline.label import schema
from pipeline.report.labelling.data_card import ANONYMISATION, HAZARDS, INTENDED_USE, LIMITS, Facts, render
from pipeline.tables import TABLES
from tests.support.pages import HOSTILE, Page

FACTS = Facts(
    release="teahouse_1",
    created=datetime.date(2026, 11, 19),
    rows=pl.DataFrame({"source": ["weibo", "zhihu"], "lang": ["zh", "en"], "row_count": [1200, 34]}),
    funnel=pl.DataFrame(
        {"step": ["select", "adjudicate"], "read_count": [70211, 1300], "kept_count": [1300, 1234],
         "dropped_count": [68911, 66]}
    ),
    classes=pl.DataFrame(
        {"field": ["subtext", "subtext", "subtext", "emotion"], "value": ["1", "0", "-1", "joy"],
         "count": [300, 101, 799, 57]}
    ),
    agreement=pl.DataFrame(
        {"field": ["subtext", "other"], "kappa": [0.613, None], "tae": [0.507, 0.934], "rows_rated": [1288, 1277]}
    ),
    deletions=pl.DataFrame({"reason": ["specious_twice", "all_different"], "row_count": [41, 25]}),
    tools=pl.DataFrame({"tool": ["label_studio", "file"], "row_count": [31111, 222]}),
    rater_count=17,
    licence="CC BY 4.0",
    data_hash="ab" * 32,
    schema_version="0123456789ab",
    anonymisation=("Nicknames were cut.",),
    intended_use=("Reading practice.",),
    limits=("One city only.",),
    hazards=("Coarse words.",),
)  # fmt: skip


def html(facts: Facts) -> Page:
    """The card as a reader's program shows it that lets HTML through."""
    return Page(MarkdownIt("commonmark", {"html": True}).enable("table").render(render(facts)))


def texts(facts: Facts) -> str:
    """What a reader sees, in one line, cells and points apart."""
    return " ".join(" ".join(html(facts).texts).split())


def simulated(*counts: int) -> Facts:
    """The facts with labels of simulated raters beside others."""
    return FACTS._replace(tools=pl.DataFrame({"tool": ["simulated", "file"], "row_count": counts}))


def test_every_fact_is_told() -> None:
    """Names, days, texts and numbers of every part stand on the card."""
    said = texts(FACTS)
    for wanted in (
        "teahouse_1 1,234 comments", "Released 2026-11-19", "schema 0123456789ab", "weibo zh 1,200", "zhihu en 34",
        "select 70,211 1,300 68,911", "adjudicate 1,300 1,234 66", "subtext 0.613 0.507 1,288", "other – 0.934 1,277",
        "specious_twice 41", "all_different 25", "label_studio 31,111", "file 222", "17 raters",
        "Annotations: CC BY 4.0.", "Nicknames were cut.", "Reading practice.", "One city only.", "Coarse words.",
    ):  # fmt: skip
        assert wanted in said


def test_no_part_is_forgotten() -> None:
    """A card differs as soon as any one of its facts does."""
    frame = {"rows": 0, "funnel": 0, "classes": 0, "agreement": 0, "deletions": 0, "tools": 0}
    for name in Facts._fields:
        value: Any = getattr(FACTS, name)
        if name in frame:
            other = value.head(1)
        elif isinstance(value, tuple):
            other = (*value, "More.")
        else:
            other = {"created": datetime.date(2026, 11, 20), "rater_count": 18}.get(name, "another")
        if name == "rows":
            other = value.with_columns(pl.col("row_count") + 1)
        assert render(FACTS._replace(**{name: other})) != render(FACTS), name


def test_every_class_is_there() -> None:
    """Each value of each field has its count and share, and what has no value is counted: 1,234 - 1,200 of subtext."""
    said = texts(FACTS)
    assert "subtext 1 yes 300 0.250 subtext 0 unsure 101 0.084 subtext -1 no 799 0.666 subtext – no value 34 –" in said
    assert "emotion joy joy 57 1.000" in said
    assert "emotion None none 0 0.000 emotion – no value 1,177 –" in said
    assert "sarcasm 1 yes 0 –" in said
    for field in schema.FIELDS.values():
        assert all(f"{field.name} {v} {schema.get_value_name(field.name, v, 'en')}" in said for v in field.values)


def test_shares_of_a_field_add_up() -> None:
    """The shares of a field with labels sum to 1 (CSD-25), but for rounding to three places."""
    shares = re.findall(r"^\| subtext \|.* (\d\.\d+) \|$", render(FACTS), re.MULTILINE)
    assert len(shares) == 3
    assert sum(map(float, shares)) == pytest.approx(1, abs=0.0015)


def test_columns_are_those_of_the_contract() -> None:
    """The card explains every column that is published, in the contract's words."""
    said = texts(FACTS)
    for name, column in TABLES["annotated_comments"].schema.columns().items():
        assert f"{name} {column.description}" in said


def test_what_is_absent_is_told_plainly() -> None:
    """Whatever is given, the card says what row ids are, which ids are absent, and that text may be found."""
    said = texts(FACTS._replace(anonymisation=(), hazards=()))
    assert "Row ids are random. Platform ids, user ids and times are absent" in said
    assert "found by searching" in said
    assert "CSD: A Chinese Dataset for Subtext Problem" in said
    assert "whose ids are not published" in said


def test_defaults_are_told() -> None:
    """Without words of one's own the card has those of the project, on hazards and limits too."""
    given_facts = FACTS._asdict()
    for name in ("anonymisation", "intended_use", "limits", "hazards", "schema_version"):
        del given_facts[name]
    said = texts(Facts(**given_facts))
    assert [text for text in (*ANONYMISATION, *INTENDED_USE, *LIMITS, *HAZARDS) if text not in said] == []
    assert schema.hash_schema() in said


@pytest.mark.parametrize(("facts", "warned"), [(FACTS, False), (simulated(0, 9), False), (simulated(1, 9), True)])
def test_simulated_raters_are_warned_of(facts: Facts, warned: bool) -> None:
    """The warning stands there if and only if at least one label was made up, and tells how many."""
    assert ("Warning" in texts(facts)) is warned
    assert ("simulated raters" in texts(facts)) is warned
    assert ("1 of 10 labels come from simulated raters" in texts(facts)) is warned


def test_nothing_deleted() -> None:
    """A part without rows says so instead of leaving its heading bare."""
    assert "What was deleted, and why None." in texts(FACTS._replace(deletions=FACTS.deletions.clear()))


def hostile(name: str) -> Facts:
    """The facts with one name wherever one is given."""
    frames = {
        "rows": FACTS.rows.with_columns(source=pl.lit(name), lang=pl.lit(name)),
        "funnel": FACTS.funnel.with_columns(step=pl.lit(name)),
        "agreement": FACTS.agreement.with_columns(field=pl.lit(name)),
        "deletions": FACTS.deletions.with_columns(reason=pl.lit(name)),
        "tools": FACTS.tools.with_columns(tool=pl.lit(name)),
    }
    lists = dict.fromkeys(("anonymisation", "intended_use", "limits", "hazards"), (name,))
    return FACTS._replace(release=name, licence=name, schema_version=name, **frames, **lists)  # type: ignore[arg-type]


MARKS = (
    "[a](https://evil.example)", "![a](x)", "a | b | c", "`a` **b** __c__ ~~d~~", "# a", "- a", "1. a", "***", "---",
    "a\n\n# b\n| c |", "\\", "\\|", "&lt;b&gt;", "<https://evil.example>", "[a]: x", "+ a", "    a", "=",
)  # fmt: skip


@pytest.mark.parametrize("name", [*HOSTILE, *MARKS])
def test_names_stay_text(name: str) -> None:
    """Hostile names add no element, no attribute and no line, and are read as they were given."""
    found, plain = html(hostile(name)), html(hostile("name"))
    assert found.elements == plain.elements
    assert texts(hostile(name)).count(" ".join(name.split())) >= 14
    assert render(hostile(name)).count("\n") == render(hostile("name")).count("\n")


def test_addresses_are_no_links() -> None:
    """Bare addresses are written so that programs that make links of them do not."""
    said = render(hostile("see https://evil.example or www.evil.example"))
    assert "https://" not in said
    assert "www." not in said


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=20))
def test_any_name_is_one_cell(name: str) -> None:
    """No name, blank ones too, changes the elements of the card."""
    facts = FACTS._replace(tools=FACTS.tools.with_columns(tool=pl.lit(name)), hazards=(name,), release=name)
    assert html(facts).elements == html(FACTS).elements


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tools": FACTS.tools.drop("tool")}, "tools: expected a column tool, found row_count"),
        ({"funnel": FACTS.funnel.with_columns(kept_count=1)}, r"funnel, select: .* found 70211 and 1 \+ 68911"),
        ({"classes": FACTS.classes.with_columns(value=pl.lit("joy"))}, "classes: .* found 'subtext', 'joy'"),
        ({"classes": FACTS.classes.with_columns(field=pl.lit("irony"))}, "classes: .* found 'irony', '1'"),
        ({"rows": FACTS.rows.head(1).with_columns(row_count=9)}, "classes, emotion: expected at most 9 rows, found 57"),
    ],
)
def test_facts_that_cannot_be(change: dict[str, Any], message: str) -> None:
    """Frames that lack a column, contradict the schema or do not add up are refused with what was found."""
    with pytest.raises(BadInput, match=message):
        render(FACTS._replace(**change))
