"""Servers that never end, send too much, or send elsewhere: each ends soon, with one reason, and costs no memory."""

import gzip
import json
import socket
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import pytest
import sqlalchemy as sa

from pipeline.errors import Refused
from pipeline.llm.ledger import answers
from pipeline.llm.outcome import Outcome
from pipeline.llm.service import limits
from tests.support.rows.llm_requests import build_request, send
from tests.support.servers.llm_server import Server, chat
from tests.support.servers.raw_server import HEADERS, RawServer, drip, pour

BODY = json.dumps(chat("x")).encode()


def send_one(url: str, engine: sa.Engine, text: str = "a very secret prompt", **options: object) -> Outcome:
    """Send one request, with a short time-out and no retries."""
    requests = [build_request(text)]
    return send(requests, engine, url, **{"timeout": 0.6, "max_retries": 0, "prices": {}, **options})


@pytest.mark.parametrize(
    "answer",
    [
        partial(drip, start=HEADERS + b"Content-Length: 100000\r\n\r\n", piece=b" "),
        partial(drip, start=HEADERS + b"Transfer-Encoding: chunked\r\n\r\n", piece=b"1\r\n \r\n"),
        partial(drip, start=HEADERS + b"Transfer-Encoding: chunked\r\n\r\n1;", piece=b"x"),
        partial(drip, start=b"HTTP/1.1 200 OK\r\nX: ", piece=b"x"),
        partial(drip, start=b"", piece=b"HTTP/1.1 100 Continue\r\n\r\n"),
        partial(drip, start=b"HTTP/1.1 500 Oops\r\nContent-Length: 100000\r\n\r\n", piece=b" "),
    ],
    ids=["body", "chunks", "chunk extension", "headers", "continue", "error"],
)
def test_a_dripping_server_ends_with_the_timeout(engine: sa.Engine, answer: Callable[[socket.socket], None]) -> None:
    """A byte now and then renews no time-out, wherever in the answer it comes."""
    started_at = time.monotonic()
    with RawServer(answer) as server:
        outcome = send_one(server.url, engine)
    assert [miss.reason for miss in outcome.missing] == ["failed: Request timed out."]
    assert time.monotonic() - started_at < 10


def test_a_server_that_hardly_reads_ends_with_the_timeout(engine: sa.Engine) -> None:
    """A piece taken now and then renews no time-out either."""
    started_at = time.monotonic()
    with RawServer(partial(drip, start=b"", piece=b""), seconds=0.1) as server:
        outcome = send_one(server.url, engine, "x" * 20_000_000)
        assert time.monotonic() - started_at < 10
    assert [miss.reason for miss in outcome.missing] == ["failed: Request timed out."]


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (HEADERS + b"Content-Length: 300000000\r\n\r\n", b" " * 65_536),
        (HEADERS + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * 65_536 + b"\r\n"),
    ],
    ids=["length", "chunks"],
)
def test_a_long_answer_is_cut_off_while_it_is_read(engine: sa.Engine, start: bytes, piece: bytes) -> None:
    """Beyond its limit nothing is read of an answer; it counts as malformed."""
    tracemalloc.start()
    with RawServer(partial(pour, start=start, piece=piece)) as server:
        outcome = send_one(server.url, engine, timeout=30.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    reason = f"malformed 3 times, at last: the answer is longer than {limits.ANSWER_BYTES:,} bytes"
    assert [miss.reason for miss in outcome.missing] == [reason]
    assert peak < 8 * limits.ANSWER_BYTES


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_a_compressed_answer_is_not_unpacked(engine: sa.Engine, encoding: str) -> None:
    """Nothing compressed is asked for, and nothing is unpacked: a few bytes could become gigabytes."""
    data = gzip.compress(b" " * 10_000_000)
    head = HEADERS + f"Content-Encoding: {encoding}\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    with RawServer(lambda sock: sock.sendall(head + data)) as server:
        outcome = send_one(server.url, engine)
        assert b"accept-encoding: identity" in server.received.lower()
    reason = f"the answer is compressed ({encoding}), which was not asked for"
    assert [miss.reason for miss in outcome.missing] == [f"malformed 3 times, at last: {reason}"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("is_same", [True, False])
def test_redirects_are_refused(engine: sa.Engine, served: Callable[..., Server], status: int, *, is_same: bool) -> None:
    """Neither prompt nor key goes where a redirect points, not even to the same server; the message says where."""
    other = served()
    with RawServer(socket.socket.close) as server:
        target = server.url if is_same else other.url
        line = f"HTTP/1.1 {status} Moved\r\nLocation: {target}/chat/completions\r\nContent-Length: 0\r\n\r\n"
        server.answer = lambda sock: sock.sendall(line.encode())
        outcome = send_one(server.url, engine)
    assert isinstance(outcome.error, Refused)
    assert f"{status}: it redirects to {target}" in str(outcome.error)
    assert (server.count, other.sent.total()) == (1, 0)


def test_a_connection_that_breaks_is_asked_again(engine: sa.Engine) -> None:
    """An answer that breaks off may have been billed: the run, which sets its cost aside, sends it again, twice."""
    with RawServer(lambda sock: sock.sendall(HEADERS + b"Content-Length: 1000\r\n\r\n{")) as server:
        outcome = send_one(server.url, engine, max_retries=8)
    assert server.count == 1 + limits.RESENDS
    assert outcome.missing[0].reason.startswith("failed: the connection was cut off")
    assert answers.sum_spending(engine).calls == 1 + limits.RESENDS


def test_through_a_proxy(engine: sa.Engine, served: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy of the environment is used, as the SDK's own client does."""
    head = HEADERS + f"Content-Length: {len(BODY)}\r\n\r\n".encode()
    with RawServer(lambda sock: sock.sendall(head + BODY)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "")
        outcome = send_one("http://service.invalid/v1", engine)
    assert b"POST http://service.invalid/v1/chat/completions" in proxy.received
    assert len(outcome.answers) == 1
