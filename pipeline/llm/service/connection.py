"""One request to a service of OpenAI's shape: its endpoint, the SDK that sends it, and the reply.

The SDK retries what cost nothing (connections, 409, 429, 503); what may have been billed is left to the run.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

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
    """Open an SDK client. Without a key it sends the word `none`, never the key of another service."""
    address, key = endpoint.base_url or OPENAI, endpoint.api_key or ""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise BadInput("the language model's address should be http(s)://host/path, its key in UNDERTONE_LLM_KEY")
    if key != key.strip() or not (key.isascii() and key.isprintable()):  # the message does not show it
        raise BadInput("the key holds a blank around it, a line break or a letter outside ASCII")
    import openai

    from pipeline.llm.service import transport

    for name in ("httpx2", "openai"):  # a line for each request says nothing that the ledger does not
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger(name).level))
    http = transport.create_client(address, timeout)
    retries: dict[str, Any] = {"max_retries": max_retries, "timeout": http.timeout}
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

        from pipeline.llm.service.transport import Interrupted, Unreadable

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
        if request.prompt == MODERATION:
            create, read = self.client.moderations.with_raw_response.create, replies.read_moderation
            raw: Any = create(model=request.model, input=messages[-1]["content"], extra_body=params)
        else:
            read = replies.read_chat
            completions = self.client.chat.completions.with_raw_response
            raw = completions.create(model=request.model, messages=messages, extra_body=params)
        reply = read(raw.text, raw.status_code, raw.headers.get("content-type", ""))
        return reply._replace(retries=raw.retries_taken)


def read_error(why: "openai.APIStatusError") -> Reply:
    """Read the reply that an error status is."""
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
