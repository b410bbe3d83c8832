"""The sample as a web site: its raw pages served on 127.0.0.1 in their real shape, for tests and a demo of the fetcher.

A page of `https://host/path?query` is answered at `http://127.0.0.1:PORT/path?query`; addresses of the sites inside
pages lead here too. `faults` maps a path?query to the answers to give first, in order; then comes the page itself.
"""

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

from pipeline.sample import list_pages, list_sites

_COMMENTS = re.compile("comment|reply")  # in the path of every site's comment list, in no article's


class Answer(NamedTuple):
    """A canned answer; `delay` seconds pass before it is given."""

    status: int = 200
    headers: Mapping[str, str] = {}  # content-type is JSON unless named here
    body: str | bytes = "{}"
    delay: float = 0.0


class Request(NamedTuple):
    """One request as it came in: path?query (percent-decoded), time.monotonic(), headers with lower-case names."""

    path: str
    received_at: float
    headers: dict[str, str]


@dataclass(eq=False)
class Site:
    """All five sites behind one local address, for as long as the `with` block lasts."""

    robots: str = "User-agent: *\nAllow: /\n"
    robots_type: str = "text/plain; charset=utf-8"
    faults: Mapping[str, Sequence[Answer]] = field(default_factory=dict)
    latency: float = 0.0  # seconds every answer takes
    log: list[Request] = field(default_factory=list, init=False)

    def __enter__(self) -> Self:
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.site = self
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        self._faults = {path: list(answers) for path, answers in self.faults.items()}
        pages = {url: body for source in list_sites() for url, body in _read_pages(source)}
        sites = re.compile("|".join(sorted({re.escape(url.removesuffix(_strip_host(url))) for url in pages})))
        self._pages = {_strip_host(url): sites.sub(self.origin, body) for url, body in pages.items()}
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, tb: TracebackType | None) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def list_start_urls(self, source: str) -> list[str]:
        """Address of the first comment page of each of a source's threads."""
        urls = [url for url, _ in _read_pages(source)]
        lists = [bool(_COMMENTS.search(urlsplit(url).path)) for url in urls]
        firsts = (url for url, before, now in zip(urls, [False, *lists], lists, strict=False) if now and not before)
        return [self.origin + _strip_host(url) for url in firsts]

    def list_requests(self) -> list[str]:
        """The path?query of every request so far, in order."""
        return [request.path for request in self.log]

    def answer(self, path: str, headers: dict[str, str]) -> Answer:
        """What the site says to one request."""
        self.log.append(Request(path, time.monotonic(), headers))
        if canned := self._faults.get(path):
            answer = canned.pop(0)
        elif path == "/robots.txt":
            answer = Answer(200, {"Content-Type": self.robots_type}, self.robots)
        else:
            answer = Answer(body=self._pages[path]) if path in self._pages else Answer(404)
        if pause := answer.delay + self.latency:
            self._closing.wait(pause)
        return answer


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close() waits for them and no socket is left open
    site: Site


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 5

    def do_GET(self) -> None:
        answer = self.server.site.answer(unquote(self.path), {k.lower(): v for k, v in self.headers.items()})
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        fixed = {"Content-Type": "application/json; charset=utf-8", "Content-Length": str(len(body))}
        try:
            self.send_response(answer.status)
            for name, value in (fixed | dict(answer.headers)).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # the client has hung up, as a slow answer makes it
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: `Site.log` is the log."""


def _read_pages(source: str) -> Iterator[tuple[str, str]]:
    for path in list_pages(source):
        for line in path.read_text(encoding="utf-8").splitlines():
            page = json.loads(line)
            yield page["url"], json.dumps(page["body"], ensure_ascii=False)


def _strip_host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
