"""The health page: each day and step by a sign, what wants a look, reasons, and what it took."""

import re
from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from pipeline.report.daily.health import FAMILIES, STATUSES, render
from tests.support.pages import CHROMIUM, HOSTILE, Page

DAY = date(2026, 11, 19)
_NUMBERS = ("read_count", "kept_count", "dropped_count", "waiting_count", "byte_count", "input_tokens", "output_tokens")
_RATIOS = ("dropped_ratio", "usual_dropped_ratio", "usual_read_count", "cost_usd")
_TIMES = ("seconds", "usual_seconds", "age_hours")
SCHEMA = {
    "day": pl.Date, "family": pl.String, "step": pl.String, "status": pl.String, "why": pl.String,
    **dict.fromkeys(_NUMBERS, pl.Int64), **dict.fromkeys(_RATIOS + _TIMES, pl.Float64),
}  # fmt: skip
DROPPED = {"step": pl.String, "dropped_at": pl.String, "reason": pl.String, "row_count": pl.Int64}


def inputs(*rows: dict[str, Any], dropped: list[tuple[Any, ...]] | None = None, days: int = 3) -> tuple[Any, ...]:
    """Rows of the view with what is given, of a step that read 100 rows."""
    names = {"family": "collect", "step": "collect", "status": "ok"}
    first = {"day": DAY, **names, "read_count": 100, "kept_count": 90, "dropped_count": 10,
             "waiting_count": 0, "dropped_ratio": 0.1}  # fmt: skip
    frame = pl.DataFrame([{**dict.fromkeys(SCHEMA), **first, **row} for row in rows], schema=SCHEMA)
    sources = pl.DataFrame({"source": ["weibo"], "day": [DAY - timedelta(days=2)], "row_count": [1234]})
    model = {"kind": ["impscore"], "day": [DAY], "model_id": ["f" * 64], "promoted": [date(2026, 11, 2)]}
    schedules = {**dict.fromkeys(FAMILIES, "off"), "score": "tokens"}
    dropped_rows = pl.DataFrame(dropped or [], schema=DROPPED, orient="row")
    return DAY, days, frame, dropped_rows, sources, pl.DataFrame(model), schedules


def cells(page: str) -> list[tuple[str, str]]:
    grid = page[page.index('<table class="grid"') : page.index("</table>")]
    matches = re.findall(r'<td class="(\w+)"[^>]*>(.*?)</td>', grid)
    return [(name, re.sub("<[^>]*>", "", text)) for name, text in matches]


def test_each_day_and_dag_has_its_sign() -> None:
    """A cell has the worst status of the DAG's steps and their rows; every DAG has a line with its schedule."""
    page = render(*inputs(
        {"family": "recam", "step": "train", "kept_count": 7},
        {"family": "recam", "step": "cloze_items", "kept_count": 3},
        {"day": DAY - timedelta(days=1), "status": "backfill", "why": "by hand"},
        {"family": "score", "step": "score", "status": "late", "why": "began late"},
        {"family": "score", "step": "explain", "status": "missing", "why": "rows wait", "kept_count": None,
         "read_count": None}, {"status": "unusual", "why": "few rows", "kept_count": 12345},
    ))  # fmt: skip
    marks = {name: mark for name, (mark, _) in STATUSES.items()}
    none = [("none", "·")]
    all_cells = cells(page)
    lines = {name: all_cells[3 * n : 3 * n + 3] for n, name in enumerate(FAMILIES)}
    assert lines["collect"] == [*none, ("backfill", f"{marks['backfill']}90"), ("unusual", f"{marks['unusual']}12k")]
    assert lines["score"] == [*none * 2, ("missing", f"{marks['missing']}90")]
    assert lines["recam"] == [*none * 2, ("ok", f"{marks['ok']}10")]
    assert lines["csd"] == none * 3
    assert len(set(marks.values())) == len(marks)
    assert "Missing: explain of 2026-11-19." in page
    assert re.findall("<small>(.*?)</small>", page) == ["tokens" if name == "score" else "off" for name in FAMILIES]


def test_reasons_costs_rates_sources_and_models_are_told() -> None:
    """Reasons with their share, costs, rows a second, a dash for what is not known, days behind of sources, models."""
    ask = {"family": "judge", "step": "ask", "seconds": 45.0, "byte_count": 2_500_000, "input_tokens": 7000,
           "output_tokens": 70, "cost_usd": 0.25}  # fmt: skip
    text = render(*inputs({}, ask, dropped=[("collect", "clean", "empty_text", 6), ("ask", "ask", "rejected", 2)]))
    words = re.sub("<[^>]*>", " ", text)
    assert "The steps dropped 8 rows" in words
    assert re.search(r"collect\s+clean\s+empty text\s+6\s+75.0 %", words)
    assert "took 45 seconds of work." in words
    assert "Language models cost 0.2500 USD." in words
    assert re.search(r"weibo\s+2026-11-17\s+2\s+1,234", words)
    assert re.search(r"impscore\s+2026-11-19\s+f{12}\s+2026-11-02", words)
    assert re.search(r"judge\s+ask\s+1\s+90\s+45.0\s+2\s+2.5\s+7,000 \+ 70\s+0.2500", words)
    assert re.search(r"collect\s+collect\s+1\s+90\s+–\s+–\s+–\s+–\s+–", words)
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


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's chromium")
@pytest.mark.parametrize("count", [14, 31])
def test_the_grid_fits_a_printed_page(count: int) -> None:
    """Printed on A4, whose margins leave 703 pixels, no cell is cut off, and no number is wider than its cell."""
    playwright = pytest.importorskip("playwright.sync_api")
    rows = [
        {"day": DAY - timedelta(days=n), "family": name, "kept_count": 999_999}
        for name in FAMILIES
        for n in range(count)
    ]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 703, "height": 1000})
        page.emulate_media(media="print")
        page.set_content(render(*inputs(*rows, days=count)))
        assert page.evaluate("document.documentElement.scrollWidth") == 703
        cells = "[...document.querySelectorAll('.grid tbody td')]"
        assert page.evaluate(f"{cells}.filter(cell => cell.scrollWidth > cell.clientWidth + 1).length") == 0
        browser.close()


def test_an_empty_warehouse_has_a_page() -> None:
    """Where nothing ran there is a page that says so."""
    day, days, rows, dropped, sources, models, schedules = inputs()
    page = render(day, days, rows, dropped, sources.clear(), models.clear(), schedules)
    assert "There is nothing to show yet." in page
    assert {name for name, _ in cells(page)} == {"none"}
