"""HTTP with an end: a total time for each request, a size for each answer, no redirects, nothing compressed.

What ends after a request was sent is `Interrupted`: it may be billed, so the run sends it again, not the SDK.
"""

import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2
from openai import APIConnectionError  # noqa: TID253 - this module is imported where a client is opened

from pipeline.llm.service.limits import ANSWER_BYTES, CONNECT_SECONDS, FILE_BYTES, FILE_SECONDS, is_doubtful

_PIECE = 65_536  # bytes written between two looks at the clock
_BILLED = ("/chat/completions", "/moderations")  # paths at which a model answers
_UNSENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.WriteError,
    httpx2.WriteTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)


class Interrupted(APIConnectionError):
    """A request was sent and its answer did not come, or not whole."""


class Unreadable(Interrupted):
    """An answer came that is not read to its end, and would not be the next time."""


def create_client(base_url: str, timeout: float) -> httpx2.Client:
    """Create an HTTP client for one service, which uses the proxy that the environment names."""
    url, proxies = httpx2.URL(base_url), getproxies()
    proxy = None if proxy_bypass(url.host) else proxies.get(url.scheme) or proxies.get("all")
    transport = _Transport(timeout, f"http://{proxy}" if proxy and "://" not in proxy else proxy)
    seconds = httpx2.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
    headers = {"Accept-Encoding": "identity"}
    return httpx2.Client(transport=transport, follow_redirects=False, timeout=seconds, headers=headers)


class _Clock(threading.local):
    ends_at: float = float("inf")

    def limit(self, timeout: float | None) -> float:
        """Return the seconds that the next step may take."""
        remaining = self.ends_at - time.monotonic()
        if remaining <= 0:
            raise httpcore2.ReadTimeout("the answer took too long in all")
        return min(remaining, timeout or remaining)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, clock: _Clock) -> None:
        self._stream, self._clock = stream, clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._clock.limit(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            self._stream.write(buffer[start : start + _PIECE], self._clock.limit(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._clock.limit(timeout)), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore2.SyncBackend):
    def __init__(self, clock: _Clock) -> None:
        self._clock = clock

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *args: Any, **options: Any) -> _Stream:
        return _Stream(super().connect_tcp(host, port, self._clock.limit(timeout), *args, **options), self._clock)


class _Transport(httpx2.HTTPTransport):
    def __init__(self, seconds: float, proxy: str | None) -> None:
        limits = httpx2.Limits(max_connections=1_000, max_keepalive_connections=100, keepalive_expiry=3.0)
        super().__init__(limits=limits, proxy=proxy)
        self._seconds, self._clock = seconds, _Clock()
        self._pool._network_backend = _Backend(self._clock)  # noqa: SLF001 - HTTPTransport passes none on to its pool

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        is_file = "/files" in request.url.path
        self._clock.ends_at = time.monotonic() + (FILE_SECONDS if is_file else self._seconds)
        try:
            response = super().handle_request(request)
        except _UNSENT:
            raise
        except httpx2.TransportError as why:
            raise _build_interruption(request, why) from why
        body = _Body(request, response, FILE_BYTES if is_file else ANSWER_BYTES)
        headers = response.headers
        if request.url.path.endswith(_BILLED) and is_doubtful(response.status_code):
            headers["x-should-retry"] = "false"  # the SDK obeys; the run sends it again, under its limit on cost
        return httpx2.Response(response.status_code, headers=headers, stream=body, extensions=response.extensions)


class _Body(httpx2.SyncByteStream):
    def __init__(self, request: httpx2.Request, response: httpx2.Response, most_bytes: int) -> None:
        self._request, self._response, self._most_bytes = request, response, most_bytes

    def __iter__(self) -> Iterator[bytes]:
        encoding = self._response.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":  # a small answer could become an endless one
            message = f"the answer is compressed ({encoding:.20}), which was not asked for"
            raise Unreadable(message=message, request=self._request)
        size, size_limit, stream = 0, self._most_bytes, self._response.stream
        assert isinstance(stream, Iterable)
        try:
            for chunk in stream:
                size += len(chunk)
                if size > size_limit:
                    raise Unreadable(message=f"the answer is longer than {size_limit:,} bytes", request=self._request)
                yield chunk
        except httpx2.TransportError as why:
            raise _build_interruption(self._request, why) from why

    def close(self) -> None:
        self._response.close()


def _build_interruption(request: httpx2.Request, why: Exception) -> Interrupted:
    is_late = isinstance(why, httpx2.TimeoutException)
    message = "Request timed out." if is_late else f"the connection was cut off: {why}"
    return Interrupted(message=message, request=request)
