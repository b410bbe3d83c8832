"""The page in a browser: Debian's chromium, driven by playwright; skipped where either is missing."""

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.commands.browse.server import Server
from pipeline.report.browse.corpus import Corpus
from pipeline.report.browse.site import write_site
from pipeline.report.browse.view import View
from tests.commands.browse.conftest import B

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture
def page() -> Iterator[Any]:
    """A page on a phone that asks 127.0.0.1 alone, logs nothing, opens no dialog and is not too wide."""
    if not CHROMIUM.exists():
        pytest.skip("needs chromium")
    faults: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.on("request", lambda sent: re.match(r"http://127\.0\.0\.1:|data:", sent.url) or faults.append(sent.url))
        for event in ("dialog", "pageerror", "console"):
            page.on(event, lambda what: faults.append(str(what)))
        yield page
        assert (page.evaluate("document.documentElement.scrollWidth"), faults) == (390, [])
        browser.close()


def wait_for(page: Any, text: str, place: str = "#status") -> None:
    """Wait until a place of the page begins with a text."""
    script = "([place, text]) => document.querySelector(place).textContent.startsWith(text)"
    page.wait_for_function(script, arg=[place, text])


def look_around(page: Any) -> None:
    """Search, filter, brush, open a thread and compare; by the keyboard alone but for the brush."""
    wait_for(page, "60 of")
    assert page.locator("main script, main img, main iframe, main svg").count() == 0
    page.get_by_label("Words that").fill("LOVELY train")
    page.keyboard.press("Enter")
    wait_for(page, "25 of")
    page.focus("summary")
    page.keyboard.press("Enter")
    page.get_by_label("likes from").fill("1000")
    page.keyboard.press("Enter")
    wait_for(page, "12 of")
    page.reload()  # a view is a link
    wait_for(page, "12 of")
    page.locator("summary").press("Enter")
    page.get_by_role("button", name="Clear all").press("Enter")
    wait_for(page, "60 of")
    box = page.locator("#charts svg").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 9)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 9)
    page.mouse.up()
    wait_for(page, "15 of")
    page.get_by_role("button", name="Clear all").press("Enter")
    wait_for(page, "60 of")
    page.get_by_text("a lovely train 1", exact=True).press("Enter")
    wait_for(page, "Thread of 20", "#thread")
    assert page.locator(".chosen mark").all_text_contents() == ["lovely", "train"]
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement.textContent === 'a lovely train 1'")
    page.get_by_role("button", name="Compare").press("Enter")
    wait_for(page, "60 comments have both", "#summary")


def test_the_page_of_a_server_and_of_a_site(server: Server, corpus: Corpus, page: Any, tmp_path: Path) -> None:
    """Both show the same; a server takes judgements and exports; hostile comments are texts."""
    page.goto(server.address)
    look_around(page)
    assert server.token not in page.url
    summary = page.text_content("#summary")
    page.get_by_label("Your name").fill("anna")
    page.locator("#compare tbody tr").first.get_by_role("button").last.press("Enter")
    wait_for(page, "saved")
    assert server.labels[0][1:] == (B, "anna")
    page.get_by_role("button", name="Map").press("Enter")
    wait_for(page, "60 comments on the map")
    with page.expect_download() as download:
        page.get_by_role("link", name="parquet").press("Enter")
    download.value.save_as(tmp_path / "comments.parquet")
    assert pl.read_parquet(tmp_path / "comments.parquet").height == 60

    write_site(corpus, View(), 100, tmp_path)
    handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(tmp_path))) as files:
        threading.Thread(target=files.serve_forever, args=[0.02], daemon=True).start()
        page.goto(f"http://127.0.0.1:{files.server_port}/")
        look_around(page)
        assert (page.text_content("#summary"), page.get_by_label("Your name").is_hidden()) == (summary, True)
        files.shutdown()
