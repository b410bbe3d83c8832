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

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture
def page() -> Iterator[Any]:
    """A page that may ask 127.0.0.1 alone, raises no error and opens no dialog."""
    if not CHROMIUM.exists():
        pytest.skip("needs chromium")
    faults: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.on(
            "request",
            lambda sent: None if re.match(r"http://127\.0\.0\.1:|data:", sent.url) else faults.append(sent.url),
        )
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        yield page
        assert page.evaluate("document.documentElement.scrollWidth") == 390  # nothing juts out of a phone
        browser.close()
    assert faults == []


def wait_for(page: Any, count: str) -> None:
    """Wait until the page says how many comments it shows."""
    page.wait_for_function("text => document.querySelector('#status').textContent.startsWith(text)", arg=f"{count} of ")


def look_around(page: Any) -> None:
    """Filter, search, brush, open a thread and compare, by the keyboard where that is possible."""
    wait_for(page, "60")
    assert page.locator("main script, main img, main iframe, main svg[onload]").count() == 0
    assert page.locator("text='<script>alert(1)</script>'").count() > 0
    page.fill("#search input", "LOVELY train")
    page.press("#search input", "Enter")
    wait_for(page, "25")
    page.focus("summary")
    page.keyboard.press("Enter")
    page.get_by_label("zhihu").check()
    wait_for(page, "6")
    page.get_by_role("button", name="Clear all").press("Enter")
    wait_for(page, "60")
    page.get_by_label("likes from").fill("1000")
    page.get_by_label("likes from").press("Enter")
    wait_for(page, "25")
    page.reload()  # a view is a link
    wait_for(page, "25")
    page.click("summary")
    page.get_by_role("button", name="Clear all").click()
    wait_for(page, "60")
    box = page.locator("#charts svg").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 9)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 9)
    page.mouse.up()
    page.wait_for_function("() => !document.querySelector('#status').textContent.startsWith('60')")
    page.get_by_role("button", name="Clear all").click()
    wait_for(page, "60")
    page.get_by_text("Nice day 13, 真好").press("Enter")
    page.wait_for_selector("#thread")
    assert page.locator(".chosen mark").all_text_contents() == ["Nice", "13"]
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement.textContent.includes('Nice day 13')")
    page.get_by_role("button", name="Compare").press("Enter")
    page.wait_for_function("() => document.querySelector('#summary').textContent.startsWith('60 comments')")


def test_the_served_page(server: Server, corpus: Corpus, page: Any, tmp_path: Path) -> None:
    """Whoever opens the printed address can look around, judge and export, and hostile comments stay texts."""
    page.goto(server.address)
    assert server.token not in page.url
    look_around(page)
    correlation = page.text_content("#summary")
    page.get_by_label("Your name").fill("anna")
    page.locator("#compare tbody tr >> nth=0").get_by_role("button").last.press("Enter")
    page.wait_for_function("() => document.querySelector('#status').textContent.startsWith('saved')")
    assert server.labels[0][1:] == ("implicitness_bbbbbbbb", "anna")
    page.get_by_role("button", name="Map").press("Enter")
    page.wait_for_function("() => document.querySelector('#status').textContent.includes('60 comments on the map')")
    with page.expect_download() as download:
        page.get_by_role("link", name="parquet").press("Enter")
    download.value.save_as(tmp_path / "comments.parquet")
    assert pl.read_parquet(tmp_path / "comments.parquet").height == 60

    folder = tmp_path / "site"
    folder.mkdir()
    write_site(corpus, View(), 100, folder)
    handler = partial(
        type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None}), directory=str(folder)
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as files:
        threading.Thread(target=files.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        page.goto(f"http://127.0.0.1:{files.server_port}/")
        look_around(page)
        assert page.text_content("#summary") == correlation
        assert page.get_by_label("Your name").is_hidden()
        files.shutdown()
