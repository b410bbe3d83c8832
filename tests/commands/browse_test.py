"""`browse` and `export site`: what a page asks for, next to Polars; whom the server answers; the page in a browser."""

import io
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import fastexcel
import httpx
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.stats import spearmanr

from pipeline import warehouse
from pipeline.commands.browse import Server
from pipeline.errors import BadInput, Missing
from pipeline.io.visible import escape_invisible
from pipeline.report.browse.corpus import Corpus, View, parse_view, write_site
from pipeline.tasks.calibration import calibrate
from pipeline.tasks.erasure.request import Request
from pipeline.tasks.erasure.run import forget
from pipeline.tasks.labelling import projects
from tests.commands.conftest import Run
from tests.support.pages import CHROMIUM, HOSTILE
from tests.support.rows.filled import DAY, NEXT, digest, filled

USER = digest("a person", 32)
A, B, JUDGE = "implicitness_aaaaaaaa", "implicitness_bbbbbbbb", "quality_judge_x"
MODELS = {A: ("implicitness", "a" * 64), B: ("implicitness", "b" * 64), JUDGE: ("quality", "judge:x")}
MODELS[f"{JUDGE}_2"] = ("quality", "judge-x")  # named like the other
TEXTS = [*HOSTILE, '=HYPERLINK("https://evil.example")', "@SUM(1)", "\u202egnitteg \u200bretteb", "您老可真是准时"]
LABEL = {"n": 1, "score": A, "rater": "anna"}
CHINESE = {"among": {"lang": ["zh", "' or 1=1"]}}


def write_rows() -> pl.DataFrame:
    """Write 60 comments in three threads, their scores and words; return the comments with the scores as columns."""
    texts = [*TEXTS, "O'Brien? LOVELY train; --", *(f"a lovely train {n}" if n % 2 else f"真好 {n}" for n in range(48))]
    comments = filled("comments", *(
        {"day": DAY if n < 40 else NEXT, "thread_id": f"site-{n // 20}", "comment_id": f"c{n}", "text": text,
         "parent_id": f"c{n - 3}" if n % 20 > 5 else None, "user_id": USER, "lang": "zh" if "真" in text else "en",
         "like_count": None if n % 11 == 0 else n * n} for n, text in enumerate(texts)
    ))  # fmt: skip
    values = {A: [n * 37 % 60 / 29.9 for n in range(60)], B: [n * 17 % 13 / 10 for n in range(60)]}
    values[JUDGE] = [float(n % 4) if n % 3 == 0 else None for n in range(60)]
    values[f"{JUDGE}_2"] = [3.0] + [None] * 59
    rows = comments.with_columns(pl.Series(name, column).round(6) for name, column in values.items())
    key = ["source", "day", "thread_id", "comment_id", "text_hash"]
    scores = rows.unpivot([*MODELS], index=key).drop_nulls().to_dicts()
    word = rows.select(key).row(13, named=True) | {"model_id": "a" * 64}
    articles = rows.select(key[:3]).unique().with_columns(title=pl.lit(HOSTILE[0]), text=pl.lit(HOSTILE[1])).to_dicts()
    hashes = enumerate(comments["text_hash"][:30])
    tables = {
        "projections": [{"text_hash": h, "x": n * 2.0, "signature": f"projection|{n % 2}"} for n, h in hashes],
        "articles": articles,
        "scores": [row | dict(zip(("metric", "model_id"), MODELS[row.pop("variable")], strict=True)) for row in scores],
        "scores_explained": [word | {"position": n, "word": text} for n, text in enumerate(("lovely", "train"), 1)],
    }
    for name, frame in {**{name: filled(name, *items) for name, items in tables.items()}, "comments": comments}.items():
        warehouse.overwrite(name, {"source": "weibo"}, frame, "test")
    return rows


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pl.DataFrame]:
    """The file of the corpus, which its owner alone may read, and the rows that it was made of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(tmp_path_factory.mktemp("browse")))
        warehouse.create()
        rows = write_rows()
        path = warehouse.make_corpus()
        assert warehouse.make_corpus() == path
        assert (path.stat().st_mode & 0o77, [*path.parent.iterdir()]) == (0, [path])
        warehouse.close()
    return path, rows


@pytest.fixture
def corpus(built: tuple[Path, pl.DataFrame], tmp_path: Path) -> Corpus:
    """A copy of the corpus, opened."""
    return Corpus(Path(shutil.copy(built[0], tmp_path / "corpus.duckdb")))


@pytest.fixture
def server(corpus: Corpus) -> Iterator[Server]:
    """A server of the corpus, whose labels are listed as its `labels`."""
    labels: list[object] = []
    with Server(corpus, lambda *label: labels.append(label) or len(labels)) as server:
        server.labels = labels  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(("fields", "condition"), [
    ({}, pl.lit(value=True)), ({"search": "LOVELY train"}, pl.col("text").str.contains("(?i)lovely train")),
    ({"search": "真"}, pl.col("text").str.contains("真")), ({"search": "% _' --"}, pl.lit(value=False)),
    ({"search": "o'brien? ;"}, pl.col("text").str.starts_with("O'Brien")), (CHINESE, pl.col("lang") == "zh"),
    ({"between": {"day": [None, str(DAY)], "likes": [100, None]}}, pl.col("day").eq(DAY) & (pl.col("like_count") > 99)),
    ({"between": {A: [0.5, 1.5]}, "among": {"lang": ["zh"]}}, pl.col("lang").eq("zh") & pl.col(A).is_between(0.5, 1.5)),
])  # fmt: skip
def test_views_are_as_in_polars(corpus: Corpus, built: Any, fields: dict[str, object], condition: pl.Expr) -> None:
    """Rows, their order, their count and the bins of a view are those of Polars; a view is JSON or an address."""
    text = json.dumps({**fields, "sort": "likes", "descending": True})
    view = parse_view(f"http://127.0.0.1:1/#{quote(text)}", corpus.columns)
    assert view == parse_view(text, corpus.columns)
    answer, expected = corpus.list_rows(view), built[1].filter(condition)
    likes = expected["like_count"].sort(descending=True, nulls_last=True).to_list()
    assert (answer["count"], [row["likes"] for row in answer["rows"]]) == (expected.height, likes)
    assert sorted(row["text"] for row in answer["rows"]) == sorted(map(escape_invisible, expected["text"]))
    counts = corpus.count_bins(view, [JUDGE, "lang", "day"])
    assert sum(counts[JUDGE]) == expected[JUDGE].count()
    if fields is CHINESE:  # the filter of a column does not count for its bins
        assert (counts["lang"], counts["day"]) == ([35, 25], [expected.filter(day=day).height for day in (DAY, NEXT)])


@pytest.mark.parametrize("text", [
    "[]", "{", '{"search": 1, "among": 3}', '{"among": {"lang": "zh"}}', '{"lang": ["zh"]}',
    '{"among": {"text": ["a"]}}', '{"between": {"likes": [1]}}',
    '{"sort": "n; drop table comments"}', '{"among": {"source) or (1=1": ["a"]}}', '{"sort": "user_id"}',
    '{"sort": ["n"]}', '{"between": {"likes) or true --": [1, 2]}}', '{"between": {"source": ["a", "b"]}}',
    '{"between": {"likes": ["1); drop table comments", 2]}}', '{"between": {"likes": [[1], null]}}',
])  # fmt: skip
def test_wrong_views_are_refused(corpus: Corpus, text: str) -> None:
    """A view that is no JSON of the right shape, names another column, or has a value of another kind is refused."""
    with pytest.raises(BadInput):
        corpus.list_rows(parse_view(text, corpus.columns))
    with pytest.raises(BadInput, match="no score 'likes; select 1'"):
        corpus.compare(View(), A, "likes; select 1")
    assert corpus.describe()["count"] == 60


def test_threads_and_comparisons(corpus: Corpus, built: Any) -> None:
    """A thread has replies and words; the correlation is Spearman's by scipy; the largest disagreement is first."""
    numbers = dict(corpus.select_rows(View(), ids="comment_id as id, n").select("id", "n").iter_rows())
    thread = corpus.read_thread(numbers["c13"])
    comments = {row["n"]: row for row in thread["comments"]}
    assert (thread["count"], thread["title"]) == (20, "<script>alert(1)</script>")
    assert comments[numbers["c13"]]["parent"] == numbers["c10"]
    assert [word["word"] for word in comments[numbers["c13"]]["words"]] == ["lovely", "train"]
    assert comments[numbers["c9"]]["text"] == "⟨U+202E⟩gnitteg ⟨U+200B⟩retteb"
    answer, (a, b) = corpus.compare(View(), A, B), built[1].select(pl.col(A, B).rank())
    assert answer["correlation"] == pytest.approx(spearmanr(a, b).statistic, abs=0.0006)
    assert abs(answer["rows"][0]["rank_a"] - answer["rows"][0]["rank_b"]) == pytest.approx(
        (a - b).abs().max() / 0.6, abs=2
    )
    assert sum(count for *_, count in answer["cells"]) == answer["count"] == 60
    assert corpus.compare(View(), A, JUDGE)["count"] == 20


def test_the_map_of_a_day(corpus: Corpus) -> None:
    """A day's texts with a place are on its map, scaled, and those of another encoder stand to the right."""
    assert corpus.describe()["maps"] == [str(DAY)]
    ids = dict(corpus.select_rows(View(), ids="n, comment_id as id").select("n", "id").iter_rows())
    points = corpus.place_points(str(DAY))
    x = {int(ids[n][1:]): value for n, value in zip(points["n"], points["x"], strict=True)}
    assert sorted(x) == [*range(30)]
    assert [x[n] for n in (0, 28, 1, 29)] == pytest.approx([0, 0.97 * 15, 15, 15 + 0.97 * 15])
    assert {*points["y"]} == {15.0}  # the middle: all have one y
    assert corpus.place_points(str(NEXT))["n"] == []


def test_nothing_personal_is_in_a_corpus_or_a_site(corpus: Corpus, tmp_path: Path) -> None:
    """A corpus has no pseudonyms, and its texts uncompressed; a site has no id of the platform either.

    What a site has of comments outside its selection is nothing: no count, value or bound.
    """
    content = corpus.path.read_bytes()
    assert (USER.encode() in content, TEXTS[0].encode() in content) == (False, True)
    assert write_site(corpus, View(), 50, tmp_path) == 50
    text = (tmp_path / "data.json").read_text(encoding="utf-8")
    assert not [word for word in ("comment_id", "thread_id", "site-", '"c13"', USER, "\u202e") if word in text]
    view = parse_view(json.dumps({**CHINESE, "between": {"likes": [1, 2000]}}), corpus.columns)
    count = write_site(corpus, view, 50, tmp_path)
    content = json.loads((tmp_path / "data.json").read_text(encoding="utf-8"))
    assert (content["count"], {*content["articles"]}) == (count, {str(row["thread"]) for row in content["rows"]})
    assert {row["parent"] for row in content["rows"]} <= {None, *(row["n"] for row in content["rows"])}
    columns = {column["name"]: column for column in content["columns"]}
    assert columns["lang"]["values"] == ["zh"]  # those and the bounds are of the selection, not of all comments
    assert columns[A]["low"] == min(row[A] for row in content["rows"])


def send(server: Server, path: str, method: str = "GET", body: Any = None, **headers: str) -> httpx.Response:
    """Send a request with our cookie and host, unless `headers` has others."""
    address = f"http://127.0.0.1:{server.server_port}"
    headers = {"Cookie": f"other=1; {server.cookie}", "Origin": address, **headers}
    return httpx.request(method, address + path, json=body, headers=headers, timeout=30)


@pytest.mark.parametrize(("status", "path", "options"), [
    (200, "/api/meta", {}), (200, "/", {"Host": "localhost:{port}"}), (501, "/api/meta", {"method": "PUT"}),
    (403, "/", {"Cookie": ""}), (403, "/page.js", {"Cookie": "undertone_{port}=x"}),
    (403, "/api/rows?token=é", {"Cookie": ""}), (403, "/", {"Host": "evil.example:{port}"}),
    (403, "/?token={token}", {"Host": "evil.example"}), (303, "/?token={token}", {"Cookie": ""}),
    (404, "/../../etc/passwd", {}), (404, "/api/thread?n=-1", {}),
    (400, "/api/rows?view=[", {}), (400, "/api/bins?columns=user_id", {}), (400, "/api/map?day=x", {}),
    (400, "/api/export?format=exe", {}),
    (200, "/api/label", {"method": "POST", "body": LABEL}), (400, "/api/label", {"method": "POST", "body": {"n": 1}}),
    (403, "/api/label", {"method": "POST", "body": LABEL, "Origin": "http://evil.example"}),
    (403, "/api/label", {"method": "POST", "body": LABEL, "Cookie": ""}),
    (400, "/api/label", {"method": "POST", "body": {**LABEL, "rater": "x" * 10_000}}),
])  # fmt: skip
def test_who_is_answered(server: Server, status: int, path: str, options: dict[str, Any]) -> None:
    """Without the cookie, for which the token is exchanged, or under another name, nothing is served."""
    names = {"port": server.server_port, "token": server.token}
    options = {name: value.format(**names) if isinstance(value, str) else value for name, value in options.items()}
    answer = send(server, path.format(**names), **options)
    assert (answer.status_code, USER in answer.text) == (status, False), answer.text
    assert answer.headers["Content-Security-Policy"].startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'"
    )
    fixed = [answer.headers[name] for name in ("X-Content-Type-Options", "Referrer-Policy", "Cache-Control")]
    assert fixed == ["nosniff", "no-referrer", "no-store"]
    if status == 303:
        assert answer.headers["Location"] == "/"
        assert answer.headers["Set-Cookie"] == f"{server.cookie}; HttpOnly; SameSite=Strict; Path=/"
    assert server.labels == ([tuple(LABEL.values())] if (status, path) == (200, "/api/label") else [])


def test_exports_are_what_is_selected_and_run_nothing(server: Server) -> None:
    """csv, Parquet and xlsx have the same comments; csv has an apostrophe before what looks like a formula."""
    query = "view=%7B%22search%22:%22(%22%7D"  # comments with a bracket
    sheets = {name: send(server, f"/api/export?format={name}&{query}").content for name in ("csv", "parquet", "xlsx")}
    rows = pl.read_parquet(sheets["parquet"])
    assert sorted(rows["text"]) == sorted(text for text in TEXTS if "(" in text)
    escaped = [f"'{text}" if text[0] in "=@-" else text for text in rows["text"]]
    assert pl.read_csv(io.BytesIO(sheets["csv"]))["text"].to_list() == escaped
    assert fastexcel.read_excel(sheets["xlsx"]).load_sheet(0).to_polars()["text"].to_list() == rows["text"].to_list()
    assert ("comment_id" in rows.columns, "user_id" in rows.columns) == (True, False)
    ids = pl.read_csv(send(server, f"/api/export?format=to+label&{query}").content, try_parse_dates=True)
    assert_frame_equal(ids, rows.select("source", "day", "thread_id", "comment_id"))


def test_the_commands(run: Run, tables: Path, tmp_path: Path) -> None:
    """`browse` prints its address and ends by Ctrl-C with exit code 0; `export site` writes a folder.

    The percentile of the score that a rater says is right becomes a label that `calibrate` reads; the last one counts.
    After `forget` no copy of the comments remains, and one that is open answers no more.
    """
    write_rows()
    words = [sys.executable, "-m", "pipeline.cli", "browse", "--no-open", "--where", json.dumps(CHINESE)]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as process:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        assert json.loads(unquote(address.partition("#")[2])) == CHINESE
        process.send_signal(signal.SIGINT)
        assert (process.communicate(timeout=30)[1].splitlines()[-1], process.returncode) == ("stopped", 0)
    site = ("export", "site", "-o", tmp_path / "site", "--where", json.dumps(CHINESE))
    run(*site).check(0, "wrote 25 of 25 comments")
    assert len(json.loads((tmp_path / "site" / "data.json").read_text(encoding="utf-8"))["rows"]) == 25
    corpus = Corpus(warehouse.make_corpus())
    ranks = [corpus.read_rank(3, score) for score in (B, A)]
    assert [projects.add_judgement(*rank, "anna") for rank in ranks] == [1, 1]
    assert calibrate.load_side("people:rank")["value"].to_list() == [round(ranks[-1][1], 1)]
    assert len(corpus.place_points()["n"]) == 60
    forget(Request(comment_ids=["c13"]), verify=False)
    assert [*(tables / "scratch" / "browse").iterdir()] == []
    with pytest.raises(Missing, match="start it again"):
        corpus.place_points()


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
    page.locator("summary").press("Enter")
    page.get_by_label("likes from").fill("1000")
    page.keyboard.press("Enter")
    wait_for(page, "12 of")
    page.reload()  # a view is a link
    wait_for(page, "12 of")
    page.locator("summary").press("Enter")
    page.get_by_role("button", name="Clear all").press("Enter")
    wait_for(page, "60 of")
    page.wait_for_function("() => !document.querySelector('.bar.out')")
    find_box = "() => (b => b?.width && b.toJSON())(document.querySelector('#charts svg')?.getBoundingClientRect())"
    box = page.wait_for_function(find_box).json_value()  # charts are drawn anew as the counts come
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
    page.locator("select[name=a]").select_option(B)
    wait_for(page, "Choose two different scores", "#summary")
    page.locator("select[name=a]").select_option("implicitness")
    wait_for(page, "60 comments have both", "#summary")


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's chromium")
def test_the_page_of_a_server_and_of_a_site(server: Server, corpus: Corpus, tmp_path: Path) -> None:
    """On a phone both show the same, ask 127.0.0.1 alone and run no comment; a server takes judgements and exports."""
    playwright = pytest.importorskip("playwright.sync_api")
    faults: list[str] = []
    write_site(corpus, View(), 100, tmp_path)
    handler = partial(type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": print}), directory=str(tmp_path))
    with playwright.sync_playwright() as driver, ThreadingHTTPServer(("127.0.0.1", 0), handler) as files:
        threading.Thread(target=files.serve_forever, args=[0.02], daemon=True).start()
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.on("request", lambda sent: re.match(r"http://127\.0\.0\.1:|data:", sent.url) or faults.append(sent.url))
        for event in ("dialog", "pageerror", "console"):
            page.on(event, lambda what: faults.append(str(what)))
        page.goto(f"{server.address}#{quote(json.dumps(CHINESE))}")  # as `--where` opens it
        wait_for(page, "25 of")
        page.goto(server.address)
        look_around(page)
        assert server.token not in page.url
        summary = page.text_content("#summary")
        page.get_by_label("Your name").fill("anna")
        page.locator("#compare tbody tr").first.get_by_role("button").last.press("Enter")
        wait_for(page, "saved")
        assert server.labels[0][1:] == (B, "anna")
        page.get_by_role("button", name="Map").press("Enter")
        wait_for(page, "30 comments on the map")
        page.get_by_label("Near by").select_option("characters, all days")
        wait_for(page, "60 comments on the map")
        with page.expect_download() as download:
            page.get_by_role("link", name="parquet").press("Enter")
        assert pl.read_parquet(download.value.path()).height == 60
        with page.expect_download() as download:
            page.get_by_role("link", name="to label").press("Enter")
        assert download.value.suggested_filename == "comment_ids.csv"
        wait_for(page, "to give these comments to raters, run: undertone label export")
        page.goto(f"http://127.0.0.1:{files.server_port}/")
        look_around(page)
        assert (page.text_content("#summary"), page.get_by_label("Your name").is_hidden()) == (summary, True)
        content = json.loads((tmp_path / "data.json").read_text(encoding="utf-8"))
        content["columns"] = [column for column in content["columns"] if column["name"] not in MODELS]
        (tmp_path / "data.json").write_text(json.dumps(content), encoding="utf-8")
        page.reload()
        wait_for(page, "A comparison needs two scores, and these comments have fewer", "#summary")
        assert page.locator("#pair").is_hidden()
        assert (page.evaluate("document.documentElement.scrollWidth"), faults) == (390, [])
        browser.close()
        files.shutdown()
