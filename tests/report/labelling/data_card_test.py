"""The data card: it shows all its facts, warns of simulated raters, and takes names for text."""

import re
from pathlib import Path

import polars as pl
import pytest
from markdown_it import MarkdownIt

from pipeline.label import schema
from pipeline.report.labelling import data_card
from pipeline.report.labelling.data_card import Facts, render
from pipeline.tables import TABLES
from tests.report.labelling import rows
from tests.support.pages import HOSTILE, Page

FACTS = rows.FACTS._replace(
    classes=pl.DataFrame(
        {"field": ["subtext", "subtext", "subtext", "emotion"], "value": ["1", "0", "-1", "joy"],
         "count": [300, 101, 799, 57]}
    ),
    agreement=pl.DataFrame(
        {"field": ["subtext", "other"], "kappa": [0.613, None], "tae": [0.507, 0.934], "rows_rated": [1288, 1277]}
    ),
)  # fmt: skip

LIMITS = re.findall("^- (.*)", Path(data_card.__file__).with_suffix(".md").read_text(encoding="utf-8"), re.MULTILINE)
"""The points of the card on what the data set is and is not."""


def render_page(facts: Facts) -> Page:
    """Render the card as a reader's program shows it that lets HTML through."""
    return Page(MarkdownIt("commonmark", {"html": True}).enable("table").render(render(facts)))


def read_texts(facts: Facts) -> str:
    """Return what a reader sees, in one line, cells and points apart."""
    return " ".join(" ".join(render_page(facts).texts).split())


def simulate(*counts: int) -> Facts:
    """Return the facts with labels of simulated raters beside others."""
    return FACTS._replace(tools=pl.DataFrame({"tool": ["simulated", "file"], "row_count": counts}))


def test_every_fact_is_shown() -> None:
    """Names, days, texts and numbers of every part stand on the card."""
    text = read_texts(FACTS)
    for expected in (
        "teahouse_1 1,234 comments", "Released 2026-11-19", f"schema {schema.hash_schema()}", "weibo zh 1,200",
        "zhihu en 34", "select 70,211 1,301 68,910", "release 1,301 1,234 67", "subtext 0.613 0.507 1,288",
        "other – 0.934 1,277", "specious_twice 41", "all_different 2,626", "label_studio 31,111", "file 222",
        "17 raters", "Annotations: CC BY 4.0.", "ab" * 32, *LIMITS,
        "Row ids are random. Platform ids, user ids and times are absent", "a search may find it",
        "CSD: A Chinese Dataset for Subtext Problem", "Their ids are not published.",
    ):  # fmt: skip
        assert expected in text


def test_every_class_is_there() -> None:
    """Each value of each field has its count and share, and what has no value is counted: 1,234 - 1,200 of subtext."""
    text = read_texts(FACTS)
    assert "subtext 1 yes 300 0.250 subtext 0 unsure 101 0.084 subtext -1 no 799 0.666 subtext – no value 34 –" in text
    assert "emotion joy joy 57 1.000" in text
    assert "emotion None none 0 0.000 emotion – no value 1,177 –" in text
    assert "sarcasm 1 yes 0 –" in text
    for field in schema.FIELDS.values():
        assert all(f"{field.name} {v} {schema.get_value_name(field.name, v, 'en')}" in text for v in field.values)


def test_columns_are_those_of_the_contract() -> None:
    """The card explains every column that is published, in the contract's words."""
    text = read_texts(FACTS)
    for name, column in TABLES["annotated_comments"].schema.columns().items():
        assert f"{name} {column.description}" in text


@pytest.mark.parametrize(("facts", "has_warning"), [(FACTS, False), (simulate(0, 9), False), (simulate(1, 9), True)])
def test_simulated_raters_are_warned_of(facts: Facts, has_warning: bool) -> None:
    """The warning stands there if and only if at least one label is simulated, and says how many."""
    text = read_texts(facts)
    assert ("Warning" in text) is ("simulated raters" in text) is has_warning
    assert ("1 of 10 labels come from simulated raters" in text) is has_warning


def test_nothing_deleted() -> None:
    """A part without rows says so; bare addresses are written so that no program makes links of them."""
    assert "Reasons for dropped comments and labels None." in read_texts(
        FACTS._replace(deletions=FACTS.deletions.clear())
    )
    card = render(use_name("see https://evil.example or www.evil.example"))
    assert "https://" not in card
    assert "www." not in card


def use_name(name: str) -> Facts:
    """Return the facts with one name wherever there is one."""
    columns = {"rows": ("source", "lang"), "funnel": ("step",), "agreement": ("field",), "deletions": ("reason",),
               "tools": ("tool",)}  # fmt: skip
    frames = {
        table: getattr(FACTS, table).with_columns(pl.lit(name).alias(column) for column in columns[table])
        for table in columns
    }
    return FACTS._replace(release=name, licence=name, **frames)


MARKS = (
    "[a](https://evil.example)", "![a](x)", "a | b | c", "`a` **b** __c__ ~~d~~", "# a", "- a", "1. a", "***", "---",
    "a\n\n# b\n| c |", "\\", "\\|", "&lt;b&gt;", "<https://evil.example>", "[a]: x", "+ a", "    a", "=",
)  # fmt: skip


@pytest.mark.parametrize("name", [*HOSTILE, *MARKS])
def test_names_stay_text(name: str) -> None:
    """Hostile names add no element, no attribute and no line, and are read as they were given."""
    assert render_page(use_name(name)).elements == render_page(use_name("name")).elements
    assert read_texts(use_name(name)).count(" ".join(name.split())) >= 12
    assert render(use_name(name)).count("\n") == render(use_name("name")).count("\n")
