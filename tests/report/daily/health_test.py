"""The health page: each day and step by a sign, what wants a look, reasons, and what it took."""

import re
from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from pipeline.report.daily.health import STATUSES, render
from tests.support.pages import HOSTILE, Page

DAY = date(2026, 11, 19)
_NUMBERS = ("read_count", "kept_count", "dropped_count", "waiting_count", "byte_count", "input_tokens", "output_tokens")
_RATIOS = ("dropped_ratio", "usual_dropped_ratio", "usual_read_count", "cost_usd")
_TIMES = ("seconds", "usual_seconds", "age_hours")
SCHEMA = {
    "day": pl.Date, "step": pl.String, "status": pl.String, "why": pl.String,
    **dict.fromkeys(_NUMBERS, pl.Int64), **dict.fromkeys(_RATIOS + _TIMES, pl.Float64),
}  # fmt: skip
DROPPED = {"step": pl.String, "dropped_at": pl.String, "reason": pl.String, "row_count": pl.Int64}


def inputs(*rows: dict[str, Any], dropped: list[tuple[Any, ...]] | None = None, days: int = 3) -> tuple[Any, ...]:
    """Rows of the view with what is given, of a step that read 100 rows."""
    first = {"day": DAY, "step": "collect", "status": "ok", "read_count": 100, "kept_count": 90, "dropped_count": 10,
             "waiting_count": 0, "dropped_ratio": 0.1}  # fmt: skip
    frame = pl.DataFrame([{**dict.fromkeys(SCHEMA), **first, **row} for row in rows], schema=SCHEMA)
    return DAY, days, frame, pl.DataFrame(dropped or [], schema=DROPPED, orient="row")


def cells(page: str) -> list[tuple[str, str]]:
    """Class and text of each cell of the grid."""
    grid = page[page.index('<table class="grid"') : page.index("</table>")]
    matches = re.findall(r'<td class="(\w+)"[^>]*>(.*?)</td>', grid)
    return [(name, re.sub("<[^>]*>", "", text)) for name, text in matches]


def test_each_day_and_step_has_its_sign() -> None:
    """A cell has colour, sign and rows; days without a row are there; the daily chain stands before other steps."""
    page = render(*inputs(
        {"step": "train", "kept_count": 7}, {"day": DAY - timedelta(days=1), "status": "late", "why": "late"},
        {"step": "score", "status": "missing", "why": "rows wait", "kept_count": None, "read_count": None},
        {"status": "unusual", "why": "few rows", "kept_count": 12345},
    ))  # fmt: skip
    marks = {name: mark for name, (mark, _) in STATUSES.items()}
    assert cells(page) == [
        ("none", "·"), ("late", f"{marks['late']}90"), ("unusual", f"{marks['unusual']}12k"),
        ("none", "·"), ("none", "·"), ("missing", marks["missing"]),
        ("none", "·"), ("none", "·"), ("ok", f"{marks['ok']}7"),
    ]  # fmt: skip
    assert len(set(marks.values())) == len(marks)
    assert "Missing: score of 2026-11-19." in page


@pytest.mark.parametrize(
    ("count", "mark"), [(940, "940"), (1234, "1.2k"), (53000, "53k"), (2.1e6, "2.1M"), (3e10, "30G")]
)
def test_counts_are_short(count: float, mark: str) -> None:
    """Counts fit a cell."""
    assert cells(render(*inputs({"kept_count": int(count)}, days=1))) == [("ok", STATUSES["ok"][0] + mark)]


def test_reasons_costs_and_rates_are_told() -> None:
    """Reasons with their share, the sum of costs, rows a second, and a dash for what is not known."""
    ask = {"step": "ask", "seconds": 45.0, "byte_count": 2_500_000, "input_tokens": 7000, "output_tokens": 70,
           "cost_usd": 0.25}  # fmt: skip
    text = render(*inputs({}, ask, dropped=[("collect", "clean", "empty_text", 6), ("ask", "ask", "rejected", 2)]))
    words = re.sub("<[^>]*>", " ", text)
    assert "The steps dropped 8 rows" in words
    assert re.search(r"collect\s+clean\s+empty text\s+6\s+75.0 %", words)
    assert "took 45 seconds of work. Language models cost 0.2500 USD." in words
    assert re.search(r"ask\s+1\s+90\s+45.0\s+2\s+2.5\s+7,000 \+ 70\s+0.2500", words)
    assert re.search(r"collect\s+1\s+90\s+–\s+–\s+–\s+–\s+–", words)
    assert "Unusual steps" not in words


def render_name(name: str) -> Page:
    """The page where step, reason and what is wrong bear a name."""
    row = {"step": name, "status": "missing", "why": name}
    return Page(render(*inputs(row, dropped=[(name, name, name.replace("_", " "), 1)])))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text(name: str) -> None:
    """A step or reason that is markup is shown as it is written; it adds no element and no handler."""
    page = render_name(name)
    assert page.markup == render_name("plain").markup
    assert not [key for _, attrs in page.elements for key in attrs if key.startswith("on")]
    assert sum(text.strip() == name for text in page.texts) >= 6


def test_an_empty_warehouse_has_a_page() -> None:
    """Where nothing ran there is a page that says so."""
    page = render(*inputs())
    assert "There is nothing to show yet." in page
    assert "<td class" not in page
