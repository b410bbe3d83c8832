"""What all pages are made of: parts without rows are named, numbers have one form."""

import polars as pl
import pytest

from pipeline.report import sections
from pipeline.report.sections import LONG, Part, Section, build_sections, render, select_filled, shorten, tabulate
from tests.support.pages import check_names, check_sections, texts


def build_names(frame: pl.DataFrame) -> Section:
    """Build a part with a row for each name."""
    return Section("They have values.", *tabulate(frame, {"name": "name", "value": lambda row: str(row["value"])}))


def build_numbered(rows: list[int]) -> list[Section]:
    """Build parts of no frame."""
    return [Section("", ("a",), [], "<svg></svg>", title=f"Part {n}") for n in rows]


count, number = sections.format_count, sections.format_number
signed, interval = sections.format_signed, sections.format_interval

PARTS = {
    "second": Part("What is second", build_numbered),
    "first": Part("Names", build_names),
    "third": Part("What is third", build_names),
}
ROWS = pl.DataFrame({"name": ["a", "b"], "value": [1.0, float("nan")]})


def test_parts_without_rows_are_missing() -> None:
    """Parts stand in their order, one may make several sections; without rows or a frame a part is named as missing."""
    rows = select_filled(PARTS, {"first": ROWS, "second": [1, 2], "third": ROWS.clear()})
    page = build_sections(PARTS, rows)
    assert [section.title for section in page["sections"]] == ["Part 1", "Part 2", "Names"]
    assert page["missing"] == ["what is third"]
    html = render("a title", "A heading", "A lead", **page)
    check_sections(html, ["Part 1", "Part 2", "Names"], 2)
    assert "Not measured: what is third." in texts(html)
    missing = build_sections(PARTS, select_filled(PARTS, {"first": None}))["missing"]
    assert missing == ["what is second", "names", "what is third"]
    assert rows["first"]["value"].to_list() == [1.0, None]  # NaN is no number, and would sort before all


def test_a_page_has_what_is_given() -> None:
    """Counts, a warning, a note and signatures are shown where there are any; a page of nothing says so."""
    html = render(
        "a", "b", "c", [], counts={"rows": 1234, "others": None}, warning="Beware.", note="By hand.", signatures=["x"]
    )
    assert texts(html).endswith(
        "b c Beware. 1,234 rows There is nothing to show yet. By hand. Signatures of the models and settings: x ."
    )
    assert "others" not in html
    assert texts(render("a", "b", "c", [])).endswith("b c There is nothing to show yet.")


def test_long_tables_are_folded() -> None:
    """A table of many rows is closed at first, unless a page has it otherwise."""
    rows = [["a", "1"]] * (LONG + 1)
    html = render("a", "b", "c", [Section("", ("name", "value"), rows)])
    assert "All 17 rows" in texts(html)
    assert "<details>" not in render("a", "b", "c", [Section("", ("name", "value"), rows[1:])])
    assert "<details>" not in render("a", "b", "c", [Section("", ("name",), rows)], longest=99)


def test_names_are_text() -> None:
    """Whatever a page is given is escaped, everywhere but in figures."""

    def build_page(name: str) -> str:
        part = Section(name, (name,), [[name]], "<svg></svg>", title=name)
        return render(name, name, name, [part], counts={name: 1}, warning=name, missing=[name], signatures=[name])

    for name in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'):
        check_names(build_page(name), build_page("a"), 5, [name])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (count(1234), "1,234"), (count(None), "–"), (number(0.12345), "0.123"),
        (number(float("nan")), "–"), (number(None), "–"), (number(-0.5, 1), "−0.5"),
        (number(-0.0001), "0.000"), (signed(0.25, 1), "+0.2"), (signed(-0.5), "−0.500"),
        (sections.format_p(0.00001), "< 0.0001"), (sections.format_p(0.05), "0.0500"), (sections.format_p(None), "–"),
        (interval({"value": -0.1, "low": -0.2, "high": 0.3}, scale=100, digits=0), "−10\n−20 to 30"),
        (interval({"mean": 0.1, "low": None}, "mean"), "0.100"), (sections.format_range([1000, 1000]), "1,000"),
        (sections.format_range([1, 2]), "1 to 2"), (shorten("abc d", 4), "abc…"), (shorten("abc", 3), "abc"),
    ],
)  # fmt: skip
def test_numbers_have_one_form(text: str, expected: str) -> None:
    """Counts have commas, numbers three digits and a minus sign, zero has no sign; a missing number is a dash."""
    assert text == expected


def test_names_stand_in_order() -> None:
    """Those that are expected come first in their order, others after them by the alphabet."""
    assert sections.order_names(["z", "b", "a", "b"], ["b", "c", "b"]) == ["b", "a", "z"]
