"""`undertone browse` over a million comments: the copy it reads, its queries beside Polars, and the page in chromium.

Comments are generated: 40 to a thread, 20 days, two models' scores. The argument is their count. Times of the page are
wall seconds from an action to the rows on the screen; the goals are 1 s for the first rows and 0.5 s for a filter.
"""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import date, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import numpy as np
import polars as pl

from pipeline import warehouse
from pipeline.collect.clean import hash_text
from pipeline.commands.browse import Server
from pipeline.report.browse.corpus import Corpus, View
from pipeline.tables import empty
from tests.bench.measure import compare, peak_memory, run_apart
from tests.bench.texts import generate_comments

ROWS, DAYS, THREAD = 1_000_000, 20, 40
CHROMIUM = "/usr/bin/chromium"
MODELS = {"a" * 64: 1.0, "b" * 64: 0.6}  # how much of a score is the first model's
VIEW = View(search="真", between={"likes": ("10", None)})


def write_day(number: int, texts: list[str]) -> None:
    """Write the comments of a day, and their scores by two models."""
    rng = np.random.default_rng(number)
    day, count = date(2026, 11, 1) + timedelta(number), len(texts)
    n = pl.int_range(count, eager=True)
    rows = pl.DataFrame({"text": texts, "n": n}).with_columns(
        hash_text(pl.Series("text_hash", texts)), source=pl.lit("bench"), context_id=pl.lit("bench"), day=pl.lit(day),
        origin=pl.lit("bench"),
        thread_id=pl.format("t{}", pl.col("n") // THREAD), comment_id=pl.format("c{}", "n"), adapter=pl.lit("bench/1"),
        parent_id=pl.when(pl.col("n") % 5 == 4).then(pl.format("c{}", pl.col("n") - 1)), duplicate_count=pl.lit(0),
        like_count=pl.Series(rng.pareto(1.2, count).astype(np.int64)), is_hot=pl.lit(value=False),
        lang=pl.when(pl.col("text").str.contains(r"\p{Han}")).then(pl.lit("zh")).otherwise(pl.lit("en")),
    )  # fmt: skip
    partition = warehouse.make_slice(source="bench", day=day)
    warehouse.overwrite("comments", partition, _fit("comments", rows), "bench")
    first = rng.beta(2, 5, count) * 2
    values = {model: share * first + (1 - share) * rng.beta(2, 5, count) * 2 for model, share in MODELS.items()}
    scores = pl.concat(
        rows.with_columns(pl.Series("value", column), metric=pl.lit("implicitness"), model_id=pl.lit(model),
                          signature=pl.lit(f"implicitness|model:{model[:8]}|bench"))
        for model, column in values.items()
    )  # fmt: skip
    warehouse.overwrite("scores", partition, _fit("scores", scores), "bench")


def _fit(name: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Give rows the columns of a table; those that they lack are null, or filled in when written."""
    columns = empty(name)
    return pl.concat([columns, rows.select(set(columns.columns) & set(rows.columns))], how="diagonal_relaxed")


def make_copy() -> dict[str, float]:
    """Make the copy of the corpus; return seconds, megabytes on disk, and peak memory of this process in MB."""
    start = time.monotonic()
    path = warehouse.make_corpus()
    return {"seconds": time.monotonic() - start, "disk": path.stat().st_size / 1e6, "memory": peak_memory()}


def compare_queries(corpus: Corpus, rows: int) -> None:
    """Ask for the rows of a search with a filter, beside Polars with all comments in memory."""
    comments = warehouse.scan("comments").select("text", "like_count", "comment_id").collect()

    def reference() -> list[dict[str, Any]]:
        is_hit = pl.col("text").str.to_lowercase().str.contains("真", literal=True) & (pl.col("like_count") >= 10)
        return comments.filter(is_hit).sort("like_count", descending=True).head(100).to_dicts()

    ours = lambda: corpus.list_rows(VIEW)
    assert ours()["count"]
    assert reference()
    compare("browse: search and filter", rows, ours, reference, "Polars, all comments in memory")


def time_page(corpus: Corpus) -> dict[str, float]:
    """Time each action on the page, in seconds until its rows are on the screen."""
    from playwright.sync_api import sync_playwright

    seconds = {}
    with Server(corpus, lambda *_: 1) as server, sync_playwright() as driver:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        shown = "old => (now => now.includes(' of ') && now !== old)(document.querySelector('#status').textContent)"

        def measure(name: str, act: Callable[[], object], ready: str = shown, place: str = "#status") -> None:
            before = page.text_content(place) if name != "first rows" else ""
            start = time.monotonic()
            act()
            page.wait_for_function(ready, arg=before, polling=20)
            seconds[name] = time.monotonic() - start

        measure("first rows", lambda: page.goto(server.address))
        page.wait_for_function("() => document.querySelector('#charts svg')")
        hash_of = lambda text: f"location.hash = '{quote(text)}'; location.reload()"
        box = page.locator("#charts svg").first.bounding_box()
        assert box

        def brush() -> None:
            page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 9)
            page.mouse.down()
            page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 9)
            page.mouse.up()

        measure("brush", brush)
        clear = lambda: page.get_by_role("button", name="Clear all").click()
        for name, text in {"search 真": "真", "search two words": "我们 好", "search OK": "ok"}.items():
            measure(f"clear before {name}", clear)
            page.get_by_label("Words that").fill(text)
            measure(name, lambda: page.keyboard.press("Enter"))
        measure("view of two filters", lambda: page.evaluate(
            hash_of('{"among": {"lang": ["zh"]}, "between": {"likes": [10, null]}}')))  # fmt: skip
        page.locator("#table tbody button").first.click()
        page.wait_for_function("() => document.querySelector('#thread').textContent.startsWith('Thread')")
        compared = "old => document.querySelector('#summary').textContent.includes('both scores')"
        measure("compare", lambda: page.get_by_role("button", name="Compare").click(), compared, "#summary")
        browser.close()
        server.shutdown()
    return seconds


def main(rows: int) -> None:
    """Write the comments, make the copy, and time queries and the page."""
    warehouse.create()
    texts, size = generate_comments(rows), -(-rows // DAYS)
    for number in range(DAYS):
        write_day(number, [*islice(texts, size)])
    numbers = run_apart("browse_bench.make_copy()")
    print(f"{f'browse: copy of {rows:,}':34} {numbers['seconds']:.1f} s, {numbers['disk']:,.0f} MB on disk, "
          f"{numbers['memory']:,.0f} MB of memory")  # fmt: skip
    corpus = Corpus(warehouse.make_corpus())
    compare_queries(corpus, rows)
    if not Path(CHROMIUM).is_file():
        print(f"browse: the page is not timed, as there is no {CHROMIUM}")
        return
    for name, value in time_page(corpus).items():
        print(f"{f'browse: {name}':34} {value:.2f} s on the page", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="undertone-bench-") as home:
        os.environ["UNDERTONE_HOME"] = home
        main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
