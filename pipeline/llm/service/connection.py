"""One request to a service of OpenAI's shape: where it goes, the SDK that sends it, and what became of it.

The SDK is the one layer that retries what cost nothing: connections that failed, 409, 429 and 503, with
Retry-After kept up to two minutes. What was interrupted after it was sent, 408 and other 5xx are left to the run (see
`transport`): a gateway may send these while the model behind it answers.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from pipeline.errors import BadInput
from pipeline.llm.request import MODERATION, Request
from pipeline.llm.service import limits, replies
from pipeline.llm.service.replies import Reply, clean_text, printable
from pipeline.text.redact import mask_secrets

if TYPE_CHECKING:
    import openai

OPENAI = "https://api.openai.com/v1"
_OURS = {"model", "messages", "stream", "n", "best_of"}  # parameters that would change what we count on
_NEW_NAME = ("gpt-5", "gpt-6", "o1", "o3", "o4")  # models that want `max_completion_tokens`, and refuse `max_tokens`


class Endpoint(NamedTuple):
    """Where to ask, and with which key; the key does not show when this is printed."""

    base_url: str | None = None
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"Endpoint(base_url={self.base_url!r}, api_key={'***' if self.api_key else None})"

    def clean(self, text: str) -> str:
        """A text from the endpoint, without the key, without what a terminal would obey, not too long."""
        return printable(mask_secrets(text, [self.api_key])[:500])


@contextmanager
def opened(endpoint: Endpoint, timeout: float, max_retries: int) -> "Iterator[openai.OpenAI]":
    """An SDK client, closed at the end. Without a key it sends the word `none`, never one of another service."""
    parts = urlsplit(endpoint.base_url or OPENAI)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise BadInput("the language model's address should be http(s)://host/path, its key in UNDERTONE_LLM_KEY")
    key = endpoint.api_key or ""
    if key != key.strip() or not (key.isascii() and key.isprintable()):
        raise BadInput("the key holds a blank around it, a line break or a letter outside ASCII")  # and is not told
    import openai

    from pipeline.llm.service import transport

    for name in ("httpx2", "openai"):  # a line for each request says nothing that the ledger does not
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger(name).level))
    address = endpoint.base_url or OPENAI
    http = transport.client(address, timeout)
    client = openai.OpenAI(
        base_url=address, api_key=endpoint.api_key or "none", max_retries=max_retries, http_client=http,
        timeout=http.timeout,
    )  # fmt: skip
    try:
        yield client
    finally:
        client.close()


def check_params(request: Request) -> None:
    """BadInput for parameters that would make an answer be counted or read wrongly."""
    if clash := _OURS & request.params.keys():
        raise BadInput(f"the parameter {min(clash)!r} cannot be set")
    limits.own_limits(request)


def sent_params(request: Request, output_tokens: int | None = None, name: str | None = None) -> dict[str, Any]:
    """The parameters as they are sent: those of the request, and a limit on output tokens if it has none."""
    if request.prompt == MODERATION or limits.own_limits(request):
        return request.params
    is_new = request.model.rpartition("/")[2].startswith(_NEW_NAME)
    name = name or ("max_completion_tokens" if is_new else "max_tokens")
    return {**request.params, name: limits.output_limit(request, output_tokens)}


def send(
    client: "openai.OpenAI", endpoint: Endpoint, request: Request, output_tokens: int | None, names: dict[str, str],
    pause: float = 0.0,
) -> Reply:  # fmt: skip
    """Send one request, with the SDK's retries, and return what became of it. Errors are outcomes, not raised.

    Args:
        client: of the SDK.
        endpoint: whose key no text may show.
        request: to be sent.
        output_tokens: limit where the request has none.
        names: of the limit on output tokens, by model, where a server refused the usual one; it is filled here.
        pause: seconds to wait before.
    """
    import openai

    from pipeline.llm.service.transport import Interrupted, Unreadable

    time.sleep(pause)
    started_at = time.time()
    params = sent_params(request, output_tokens, names.get(request.model))
    try:
        try:
            reply = _post(client, request, params)
        except openai.BadRequestError as why:
            if not (name := _other_name(request, params, why.message)):
                raise
            names[request.model] = name
            reply = _post(client, request, sent_params(request, output_tokens, name))
    except openai.APIStatusError as why:
        reply = reply_of(why)
    except Unreadable as why:
        reply = Reply("malformed", detail=why.message, retries=_retries(why.request), usage_fault="it was not read")
    except openai.APIConnectionError as why:
        doubtful = isinstance(why, Interrupted)
        reply = Reply("failed", detail=why.message, retries=_retries(why.request), is_doubtful=doubtful)
    return replies.with_excerpt(reply, endpoint.clean)._replace(began_at=started_at, ended_at=time.time())


def reply_of(why: "openai.APIStatusError") -> Reply:
    """What an error status means."""
    message = why.message
    if 300 <= why.status_code < 400:
        target = clean_text(why.response.headers.get("location")) or "nowhere"
        message = f"{why.status_code}: it redirects to {target}, where no prompt and no key is sent; if that is its "
        message += "address, say so in UNDERTONE_LLM_URL"
    outcome = replies.outcome_of(why.status_code, f"{why.code} {why.type} {why.message}")
    doubtful = outcome == "failed" and limits.is_doubtful(why.status_code)
    return Reply(outcome, status=why.status_code, detail=message, retries=_retries(why.request), is_doubtful=doubtful)


def _post(client: "openai.OpenAI", request: Request, params: Mapping[str, Any]) -> Reply:
    if request.prompt == MODERATION:
        raw = client.moderations.with_raw_response.create(
            model=request.model, input=request.messages[-1]["content"], extra_body=params
        )
        read = replies.read_moderation
    else:
        raw = client.chat.completions.with_raw_response.create(  # type: ignore[assignment]
            model=request.model,
            messages=request.messages,  # type: ignore[arg-type]
            extra_body=params,
        )
        read = replies.read_chat
    reply = read(raw.text, raw.status_code, raw.headers.get("content-type", ""))
    return reply._replace(retries=raw.retries_taken)


def _other_name(request: Request, params: Mapping[str, Any], message: str) -> str | None:
    """The other name of the limit on output tokens, where a server refuses the one that we added."""
    added = [name for name in limits.PARAMS if name in params and name not in request.params]
    if not added or added[0] not in message:
        return None
    return next(name for name in limits.PARAMS if name != added[0])


def _retries(request: Any) -> int:
    count = request.headers.get("x-stainless-retry-count", "0")
    return int(count) if count.isdigit() else 0
