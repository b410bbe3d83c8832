"""Who the server answers, what it exports, and that a judgement becomes a label."""

import io
import json
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import fastexcel
import polars as pl
import pytest

from pipeline import warehouse
from pipeline.commands.browse.server import Server
from pipeline.report.browse.corpus import Corpus
from pipeline.tasks.calibration import sides
from pipeline.tasks.labelling import judgements
from tests.commands.browse.conftest import TEXTS, USER, A, B, write_rows

LABEL = {"n": 1, "score": A, "rater": "anna"}


def send(server: Server, path: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, Any, bytes]:
    """Send a request with our cookie and host, unless `headers` has others; return status, headers and body."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    host = f"127.0.0.1:{server.server_port}"
    headers = {"Cookie": f"other=1; {server.cookie}", "Host": host, "Origin": f"http://{host}"} | headers
    connection.request(method, path, json.dumps(body) if body else None, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.headers, content


@pytest.mark.parametrize(("status", "path", "options"), [
    (200, "/api/meta", {}),
    (200, "/", {"Host": "localhost:{port}"}),
    (403, "/", {"Cookie": ""}),
    (403, "/page.js", {"Cookie": "undertone_{port}=x"}),
    (403, "/api/rows?token=x", {"Cookie": "undertone_{port}=\xe9"}),
    (403, "/api/meta", {"Host": "evil.example:{port}"}),
    (403, "/?token={token}", {"Host": "evil.example"}),
    (404, "/../../etc/passwd", {}),
    (404, "/api/thread?n=-1", {}),
    (400, "/api/rows?view=[", {}),
    (400, "/api/bins?columns=user_id", {}),
    (400, "/api/export?format=exe", {}),
    (501, "/api/meta", {"method": "PUT"}),
    (200, "/api/label", {"method": "POST", "body": LABEL}),
    (403, "/api/label", {"method": "POST", "body": LABEL, "Origin": "http://evil.example"}),
    (403, "/api/label", {"method": "POST", "body": LABEL, "Cookie": ""}),
    (400, "/api/label", {"method": "POST", "body": {"n": 1}}),
    (400, "/api/label", {"method": "POST", "body": {**LABEL, "rater": "x" * 10_000}}),
    (400, "/api/rows", {"method": "POST", "body": LABEL}),
])  # fmt: skip
def test_who_is_answered(server: Server, status: int, path: str, options: dict[str, Any]) -> None:
    """Without the cookie, or under another name, nothing is served; whatever the answer, it has the headers."""
    names = {"port": server.server_port, "token": server.token}
    options = {name: value.format(**names) if isinstance(value, str) else value for name, value in options.items()}
    answer, headers, body = send(server, path.format(**names), **options)
    assert (answer, USER in body.decode()) == (status, False), body
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    given = [headers[name] for name in ("X-Content-Type-Options", "Referrer-Policy", "Cache-Control")]
    assert given == ["nosniff", "no-referrer", "no-store"]
    assert server.labels == ([tuple(LABEL.values())] if (status, path) == (200, "/api/label") else [])


def test_the_token_becomes_a_cookie(server: Server) -> None:
    """The printed address sets a cookie that scripts cannot read, and leads to one without the token."""
    status, headers, _ = send(server, f"/?token={server.token}", Cookie="")
    assert (status, headers["Location"]) == (303, "/")
    assert headers["Set-Cookie"] == f"{server.cookie}; HttpOnly; SameSite=Strict; Path=/"


def test_exports_are_what_is_selected_and_run_nothing(server: Server) -> None:
    """csv, Parquet and xlsx have the same comments; csv has an apostrophe before what looks like a formula."""
    query = "view=%7B%22search%22:%22(%22%7D"  # comments with a bracket
    sheets = {name: send(server, f"/api/export?format={name}&{query}")[2] for name in ("csv", "parquet", "xlsx")}
    rows = pl.read_parquet(sheets["parquet"])
    assert sorted(rows["text"]) == sorted(text for text in TEXTS if "(" in text)
    escaped = [f"'{text}" if text[0] in "=@-" else text for text in rows["text"]]
    assert pl.read_csv(io.BytesIO(sheets["csv"]))["text"].to_list() == escaped
    assert fastexcel.read_excel(sheets["xlsx"]).load_sheet(0).to_polars()["text"].to_list() == rows["text"].to_list()
    assert ("comment_id" in rows.columns, "user_id" in rows.columns) == (True, False)


def test_a_judgement_is_a_label_that_calibrate_reads(tables: Path) -> None:
    """Who says which score is right writes its percentile as a label; a later judgement counts instead."""
    write_rows()
    corpus = Corpus(warehouse.make_corpus())
    for score in (B, A):
        key, rank = corpus.read_rank(3, score)
        assert judgements.add(key, rank, "anna") == 1
    expected = [(key["source"], key["thread_id"], key["comment_id"], "anna", round(rank, 1))]
    assert sides.load_side("people:rank").rows() == expected


def test_the_command_ends_when_it_is_interrupted(tables: Path, tmp_path: Path) -> None:
    """`browse` prints its address, and Ctrl-C ends it with exit code 0; `export site` writes a folder."""
    write_rows()
    words = [sys.executable, "-m", "pipeline.cli"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*words, "browse", "--no-open"], **pipes) as process:
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert (process.communicate(timeout=30)[1].splitlines()[-1], process.returncode) == ("stopped", 0)
    where = '{"among": {"lang": ["zh"]}}'
    site = [*words, "export", "site", "-o", str(tmp_path / "site"), "--where", where]
    assert "wrote 25 of 25 comments" in subprocess.run(site, check=True, **pipes).stderr
    assert len(json.loads((tmp_path / "site" / "data.json").read_text(encoding="utf-8"))["rows"]) == 25
