"""Commands to look at scored comments in a browser: served on this machine, or as files for a web server.

The server is on loopback, for the person who has the printed address alone. Its token is exchanged for a cookie, which
all else needs. Nothing can be written but a label.
"""

import hmac
import json
import logging
import secrets
import tempfile
import webbrowser
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, urlsplit

import polars as pl
from typer import Option, echo

from pipeline import warehouse
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import this_run
from pipeline.errors import BadInput, Missing, Refused, UndertoneError, check_name
from pipeline.io.atomic import check_empty, create_folder
from pipeline.report.browse.corpus import POLICY, TYPES, Corpus, decode_view, parse_view, read_page, write_site
from pipeline.tasks.labelling import projects
from pipeline.tasks.record.retry import retry

log = logging.getLogger(__name__)
IDS = "to label"  # the export of ids alone, for `undertone label export --ids`
EXPORTS = ("csv", "parquet", "xlsx", IDS)
MOST_ROWS = 100_000  # of a workbook, which is made in memory
_CELL = 32_767  # characters of a cell of xlsx
_MOST_BYTES = 10_000  # of a label
_HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
}  # fmt: skip
_STATUS = {Refused.exit_code: 403, Missing.exit_code: 404, BadInput.exit_code: 400}
Judge = Callable[[int, str, str], int]  # writes a label of a comment, a score and a rater, and counts them
Answer = tuple[int, bytes, Mapping[str, str]]


class Server(ThreadingHTTPServer):
    """A server of one corpus; `address` has the token."""

    daemon_threads = True

    def __init__(self, corpus: Corpus, judge: Judge, port: int = 0) -> None:
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise BadInput(f"port {port} cannot be used ({error.strerror}); choose another by --port") from error
        self.corpus, self.judge, self.page = corpus, judge, read_page(is_site=False)
        self.token = secrets.token_urlsafe(24)
        self.cookie = f"undertone_{self.server_port}={secrets.token_urlsafe(24)}"  # cookies of all ports are shared
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.address = f"http://127.0.0.1:{self.server_port}/?token={self.token}"

    def handle_error(self, *_: Any) -> None:
        """Log what went wrong with a connection: mostly a page that did not wait for an answer."""
        log.debug("browse: a connection ended early", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 60  # seconds for a request to arrive

    def do_GET(self) -> None:
        try:
            status, body, headers = self._answer()
        except UndertoneError as error:
            status, body, headers = _format_json({"error": str(error)}, _STATUS.get(error.exit_code, 503))
        except Exception:
            log.exception("%s failed", self.command)
            status, body, headers = _format_json({"error": "a bug in Undertone; the terminal has the details"}, 500)
        self.send_response(status)
        for header in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def _answer(self) -> Answer:
        url, server = urlsplit(self.path), self.server
        query = dict(parse_qsl(url.query))
        if self.headers.get("Host") not in server.hosts:
            raise Refused("this address is served under 127.0.0.1 alone")
        if _is_equal(query.get("token", ""), server.token):
            return 303, b"", {"Location": "/", "Set-Cookie": f"{server.cookie}; HttpOnly; SameSite=Strict; Path=/"}
        if not any(_is_equal(part.strip(), server.cookie) for part in self.headers.get("Cookie", "").split(";")):
            raise Refused("open the address that `undertone browse` printed; it has a token")
        if (self.command, url.path) == ("POST", "/api/label"):
            return self._write_label()
        if (name := url.path.removeprefix("/") or "index.html") in server.page:
            return 200, server.page[name], {"Content-Type": f"{TYPES[Path(name).suffix]}; charset=utf-8"}
        return _read(server.corpus, url.path, query)

    def _write_label(self) -> Answer:
        if self.headers.get("Origin") not in {f"http://{host}" for host in self.server.hosts}:
            raise Refused("a label is written from the page alone")
        try:
            fields = json.loads(self.rfile.read(min(int(self.headers["Content-Length"]), _MOST_BYTES)))
            label = (int(fields["n"]), str(fields["score"]), str(fields["rater"]))
        except (ValueError, TypeError, LookupError) as error:
            raise BadInput(f"expected JSON with n, score and rater, of at most {_MOST_BYTES:,} bytes") from error
        return _format_json({"count": self.server.judge(*label)})

    def end_headers(self) -> None:
        for header in _HEADERS.items():
            self.send_header(*header)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Log no requests: one of them has the token."""


def _is_equal(value: str, secret: str) -> bool:
    return hmac.compare_digest(value.encode("utf-8", "replace"), secret.encode())


def _read(corpus: Corpus, path: str, query: Mapping[str, str]) -> Answer:
    view, names = parse_view(query.get("view", ""), corpus.columns), query.get("columns", "").split(",")
    counts = {name: int(text) for name, text in query.items() if text.isdecimal() and len(text) < 10}
    answers: dict[str, Callable[[], object]] = {
        "/api/meta": lambda: {**corpus.describe(), "exports": EXPORTS},
        "/api/rows": lambda: corpus.list_rows(view, counts.get("page", 0)),
        "/api/bins": lambda: corpus.count_bins(view, [*filter(None, names)]),
        "/api/thread": lambda: corpus.read_thread(counts.get("n", -1)),
        "/api/compare": lambda: corpus.compare(view, query.get("a", ""), query.get("b", "")),
        "/api/map": lambda: corpus.place_points(query.get("day", "")),
    }
    if path == "/api/export":
        return _export(corpus.select_rows(view), check_name("format", query.get("format", ""), EXPORTS))
    if path not in answers:
        raise Missing(f"there is no {path[:80]}")
    return _format_json(answers[path]())


def _format_json(value: object, status: int = 200) -> Answer:
    body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return status, body, {"Content-Type": "application/json; charset=utf-8"}


def _export(rows: pl.DataFrame, suffix: str) -> Answer:
    """Export rows, or their ids, as a file; no spreadsheet runs a text of them as a formula."""
    import xlsxwriter  # type: ignore[import-untyped]

    if suffix == IDS:
        rows = rows.select("source", "day", "thread_id", "comment_id")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("comment_ids.csv" if suffix == IDS else f"comments.{suffix}")
        if suffix != "xlsx":
            files.write_table(rows, path)
        elif rows.height > MOST_ROWS or any(length > _CELL for length in rows["text"].str.len_chars()):
            limits = f"{MOST_ROWS:,} rows and {_CELL:,} characters a cell"
            raise BadInput(f"a workbook holds {limits}; export csv or Parquet")
        else:
            with xlsxwriter.Workbook(path, {"strings_to_formulas": False, "strings_to_urls": False}) as book:
                rows.write_excel(book, "comments")
        headers = {"Content-Type": "application/octet-stream"}
        return 200, path.read_bytes(), {**headers, "Content-Disposition": f"attachment; filename={path.name}"}


Where = Annotated[str, Option(help="A view: JSON, or the address of one in `browse`.", show_default="all comments")]


def _open_corpus() -> Corpus:
    with console.working("preparing the comments"):
        return Corpus(warehouse.make_corpus())


def browse(
    where: Where = "",
    port: Annotated[int, Option(min=0, max=65_535, help="Port on 127.0.0.1; 0: a free one.")] = 0,
    no_open: Annotated[bool, Option("--no-open", help="Only print the address; open no browser.")] = False,
) -> None:
    """Look at the scored comments in a browser, on this machine alone: filter, search, threads, two scores, a map.

    Prints the address and opens it; it has a token, so give it to no one. Ctrl-C ends it.

    Examples: `undertone browse`; `undertone browse --where '{"among": {"source": ["weibo"]}}'`; `undertone browse
    --no-open --port 8123`
    """
    corpus = _open_corpus()
    parse_view(where, corpus.columns)

    def judge(number: int, score: str, rater: str) -> int:
        return retry(projects.add_judgement, *corpus.read_rank(number, score), rater, this_run())

    with Server(corpus, judge, port) as server:
        try:
            address = f"{server.address}#{quote(decode_view(where))}" if where else server.address
            echo(address)
            if not no_open:
                webbrowser.open(address)
            server.serve_forever()
        except KeyboardInterrupt:
            console.report("stopped")


def export_site(
    out: Annotated[Path, Option("--out", "-o", help="Folder to write; it must be empty.")],
    where: Where = "",
    limit: Annotated[int, Option(min=1, help="Comments at most, in the order of the view.")] = 20_000,
) -> None:
    """Write the page of `browse` with a selection of comments as files for any web server.

    It has texts, articles and scores. There are no user ids and no ids of the platform in it.

    Example: `undertone export site -o site/ --where '{"among": {"lang": ["zh"]}, "between": {"likes": [10, null]}}'`
    """
    check_empty(out)
    corpus = _open_corpus()
    view = parse_view(where, corpus.columns)
    total = corpus.list_rows(view)["count"]
    if not total:
        raise BadInput("no comment is in this view; `undertone browse` shows which filters leave some")
    with create_folder(out) as draft:
        count = write_site(corpus, view, limit, draft)
    console.report(f"wrote {count:,} of {total:,} comments to {out}, without ids of people and of the platform")
