"""One request to a service of OpenAI's shape: its endpoint, the SDK that sends it, and the reply.

The SDK retries what cost nothing (connections, 409, 429, 503); what may have been billed is left to the run.
"""

import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2
from openai import APIConnectionError  # noqa: TID253 - this module is imported where a client is opened

from pipeline.errors import BadInput
from pipeline.llm.request import MODERATION, Request
from pipeline.llm.service import limits, replies
from pipeline.llm.service.replies import Reply, clean_text, make_printable
from pipeline.text.redact import mask_secrets

if TYPE_CHECKING:
    import openai

OPENAI = "https://api.openai.com/v1"
_NEW_NAME = ("gpt-5", "gpt-6", "o1", "o3", "o4")  # models that need `max_completion_tokens`, and refuse `max_tokens`


class Endpoint(NamedTuple):
    """The address of a service and its key, which does not show when this is printed."""

    base_url: str | None = None
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"Endpoint(base_url={self.base_url!r}, api_key={'***' if self.api_key else None})"

    def clean(self, text: str) -> str:
        """Return a text from the endpoint without the key and control characters, shortened."""
        return make_printable(mask_secrets(text, [self.api_key])[:500])


@contextmanager
def open_client(endpoint: Endpoint, timeout: float, max_retries: int) -> "Iterator[openai.OpenAI]":
    """Open an SDK client, by the proxy of the environment; without a key it sends `none`, never another service's."""
    address, key = endpoint.base_url or OPENAI, endpoint.api_key or ""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise BadInput("the language model's address should be http(s)://host/path, its key in UNDERTONE_LLM_KEY")
    if key != key.strip() or not (key.isascii() and key.isprintable()):  # the message does not show it
        raise BadInput("the key holds a blank around it, a line break or a letter outside ASCII")
    import openai

    for name in ("httpx2", "openai"):  # a line for each request says nothing that the ledger does not
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger(name).level))
    url, proxies = httpx2.URL(address), getproxies()
    proxy = None if proxy_bypass(url.host) else proxies.get(url.scheme) or proxies.get("all")
    transport = _Transport(timeout, f"http://{proxy}" if proxy and "://" not in proxy else proxy)
    seconds = httpx2.Timeout(timeout, connect=min(timeout, limits.CONNECT_SECONDS))
    headers = {"Accept-Encoding": "identity"}
    http = httpx2.Client(transport=transport, follow_redirects=False, timeout=seconds, headers=headers)
    retries: dict[str, Any] = {"max_retries": max_retries, "timeout": seconds}
    with openai.OpenAI(base_url=address, api_key=key or "none", http_client=http, **retries) as client:
        yield client


def build_params(request: Request, output_tokens: int | None = None, name: str | None = None) -> dict[str, Any]:
    """Build the parameters to send: those of the request, and a limit on output tokens if it has none."""
    if request.prompt == MODERATION or limits.check_params(request):
        return request.params
    is_new = request.model.rpartition("/")[2].startswith(_NEW_NAME)
    name = name or ("max_completion_tokens" if is_new else "max_tokens")
    return {**request.params, name: limits.limit_output(request, output_tokens)}


class Sender(NamedTuple):
    """Sends requests with the SDK's retries. Errors are outcomes, not raised."""

    client: "openai.OpenAI"
    clean: Callable[[str], str]  # of the endpoint
    output_tokens: int | None  # limit of requests without one
    limit_names: dict[str, str]  # of that limit, by model, where a server refused the usual one

    def send(self, request: Request, pause: float = 0.0) -> Reply:
        """Send one request after some seconds, and return the reply."""
        import openai

        time.sleep(pause)
        started_at = time.time()
        params = build_params(request, self.output_tokens, self.limit_names.get(request.model))
        try:
            try:
                reply = self._post(request, params)
            except openai.BadRequestError as why:
                added = [name for name in limits.PARAMS if name in params and name not in request.params]
                if not added or added[0] not in why.message:
                    raise
                name = next(name for name in limits.PARAMS if name != added[0])  # the server refuses the one we added
                self.limit_names[request.model] = name
                reply = self._post(request, build_params(request, self.output_tokens, name))
        except openai.APIStatusError as why:
            reply = read_error(why)
        except Unreadable as why:
            reply = Reply("malformed", detail=why.message, retries=_retries(why.request), usage_fault="it was not read")
        except openai.APIConnectionError as why:
            is_doubtful = isinstance(why, Interrupted)
            reply = Reply("failed", detail=why.message, retries=_retries(why.request), is_doubtful=is_doubtful)
        return replies.add_excerpt(reply, self.clean)._replace(began_at=started_at, ended_at=time.time())

    def _post(self, request: Request, params: Mapping[str, Any]) -> Reply:
        messages: Any = request.messages
        if is_moderation := request.prompt == MODERATION:
            moderations = self.client.moderations.with_raw_response
            raw: Any = moderations.create(model=request.model, input=messages[-1]["content"], extra_body=params)
        else:
            completions = self.client.chat.completions.with_raw_response
            raw = completions.create(model=request.model, messages=messages, extra_body=params)
        content_type = raw.headers.get("content-type", "")
        reply = replies.read_answer(raw.text, raw.status_code, content_type, is_moderation=is_moderation)
        return reply._replace(retries=raw.retries_taken)


def read_error(why: "openai.APIStatusError") -> Reply:
    message = why.message
    if 300 <= why.status_code < 400:
        target = clean_text(why.response.headers.get("location")) or "nowhere"
        message = f"{why.status_code}: it redirects to {target}, where no prompt and no key is sent; if that is its "
        message += "address, write it into UNDERTONE_LLM_URL"
    outcome = replies.classify_error(why.status_code, f"{why.code} {why.type} {why.message}")
    is_doubtful = outcome == "failed" and limits.is_doubtful(why.status_code)
    reply = Reply(outcome, status=why.status_code, detail=message, is_doubtful=is_doubtful)
    return reply._replace(retries=_retries(why.request))


def _retries(request: Any) -> int:
    count = request.headers.get("x-stainless-retry-count", "0")
    return int(count) if count.isdigit() else 0


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


class _Clock(threading.local):
    ends_at: float = float("inf")

    def limit(self, timeout: float | None) -> float:
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
        self._clock.ends_at = time.monotonic() + (limits.FILE_SECONDS if is_file else self._seconds)
        try:
            response = super().handle_request(request)
        except _UNSENT:
            raise
        except httpx2.TransportError as why:
            raise _build_interruption(request, why) from why
        body = _Body(request, response, limits.FILE_BYTES if is_file else limits.ANSWER_BYTES)
        headers = response.headers
        if request.url.path.endswith(_BILLED) and limits.is_doubtful(response.status_code):
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
    message = "Request timed out." if isinstance(why, httpx2.TimeoutException) else f"the connection was cut off: {why}"
    return Interrupted(message=message, request=request)
