"""Read a server's answer: an answer, or one clear reason why it is none. Pure functions; none raises."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from pipeline.errors import BadInput, Refused, UndertoneError
from pipeline.llm.service.limits import EXCERPT, LOGPROB_TOKENS

_SIGNS = (  # of an error that is the request's own
    "content_filter", "content_policy", "content management policy", "content exists risk", "data_inspection",
    "inappropriate content", "contentfilter", "context_length", "context length", "context size", "context window",
    "string_above_max_length", "too long", "too large", "reduce the length", "moderation",
)  # fmt: skip


class Reply(NamedTuple):
    """The outcome of one call: of this request; or refused or unusable, of all; or lost, as its process ended."""

    outcome: str
    response: str | None = None
    served_model: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    status: int | None = None
    detail: str | None = None
    retries: int = 0
    began_at: float = 0.0
    ended_at: float = 0.0
    usage_fault: str | None = None  # why the tokens are not known
    is_doubtful: bool = False  # no answer came, but the server may have made one, and bill it
    body: str | None = None  # of an answer that cannot be read; an excerpt goes into `detail`
    logprobs: str | None = None  # of the last tokens, as JSON: [token, {alternative: log probability}] each


def read_answer(body: str | Any, status: int = 200, content_type: str = "", *, is_moderation: bool = False) -> Reply:
    """Read a chat completion of status 200, as text or as parsed JSON.

    A moderation is the answer yes or no to whether the text is problematic (IMP-42).
    """
    field, read_field = ("results", _read_results) if is_moderation else ("choices", _read_choices)
    completion, fault = _parse(body, content_type)
    if completion.get("error") and not completion.get(field):
        fields = completion["error"] if isinstance(completion["error"], dict) else {"message": completion["error"]}
        code, message = fields.get("code"), str(fields.get("message"))
        detail = f"an error inside an answer of {status}: {message[:2_000]}"
        if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
            return Reply(classify_error(code, message), status=status, detail=f"{code}, {detail}", is_doubtful=True)
        return _count_tokens({}, status)._replace(detail=detail, body=_as_text(body))
    reply = _count_tokens(completion, status)
    reply = reply._replace(detail=fault) if fault else read_field(completion.get(field), reply)
    return reply if reply.outcome == "answered" else reply._replace(body=_as_text(body))


def _read_choices(choices: Any, reply: Reply) -> Reply:
    if not isinstance(choices, list):
        return reply._replace(detail="no chat completion: there is no list of choices")
    if len(choices) != 1:
        return reply._replace(detail=f"{len(choices)} choices, where one was asked for")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        if isinstance(choice, dict) and "delta" in choice:
            return reply._replace(detail="a chunk of a stream, which was not asked for")
        return reply._replace(detail="no chat completion: there is no message")
    # some services refuse in a field of its own; `parse` reads what it holds
    content = message.get("refusal") if message.get("content") is None else message["content"]
    reply = reply._replace(finish_reason=clean_text(choice.get("finish_reason")))
    if isinstance(content, str):
        logprobs = _read_logprobs(choice.get("logprobs"))
        return reply._replace(outcome="answered", response=clean_text(content), logprobs=logprobs)
    kind = "no content" if content is None else f"content that is no text but {_name_kind(content)}"
    return reply._replace(detail=f"{kind}; finish_reason {reply.finish_reason}")


def _read_logprobs(value: Any) -> str | None:
    try:
        tokens = []
        for token in value["content"][-LOGPROB_TOKENS:]:
            entries = {str(entry["token"]): round(float(entry["logprob"]), 4) for entry in token["top_logprobs"]}
            tokens.append((str(token["token"]), entries))
        return json.dumps(tokens, allow_nan=False) if tokens else None
    except (LookupError, TypeError, ValueError, OverflowError):
        return None


def _read_results(results: Any, reply: Reply) -> Reply:
    result = results[0] if isinstance(results, list) and results else None
    is_flagged = result.get("flagged") if isinstance(result, dict) else None
    if isinstance(is_flagged, bool):
        return reply._replace(outcome="answered", response="yes" if is_flagged else "no")
    return reply._replace(detail="no moderation: flagged is neither true nor false")


def classify_error(status: int, message: str) -> str:
    """Classify an error: rejected (this request), refused or unusable (all requests), failed (for now)."""
    message = message.lower()
    if status in (400, 403, 413, 422) and any(sign in message for sign in _SIGNS):
        return "rejected"
    if status in (401, 403) or 300 <= status < 400 or "insufficient_quota" in message:
        return "refused"
    return "failed" if status in (408, 409, 429) or status >= 500 else "unusable"


def build_exception(reply: Reply) -> UndertoneError:
    """Build the exception that a refused or unusable reply means for all requests."""
    kind = Refused if reply.outcome == "refused" else BadInput
    return kind(f"the language model's service answered {reply.detail}")


def add_excerpt(reply: Reply, clean: Callable[[str], str]) -> Reply:
    """Return the reply with its detail, and an excerpt of its body, in a form that can be shown."""
    if reply.detail is None:
        return reply
    excerpt = f": {clean(reply.body)[:EXCERPT].strip()}" if reply.body else ""
    return reply._replace(detail=clean(reply.detail) + excerpt, body=None)


def make_printable(text: str) -> str:
    """Return a text in one line, without control characters for a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def clean_text(value: Any) -> str | None:
    """Return text that a database can hold, without NUL and halves of surrogate pairs; None for other values."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _parse(body: str | Any, content_type: str) -> tuple[dict[str, Any], str | None]:
    if isinstance(body, str):
        start = body[:200].lstrip("\ufeff \t\r\n").lower()
        if not start:
            return {}, "an empty answer"
        if start.startswith("<"):
            return {}, "a page of HTML or XML, no JSON"
        if start.startswith(("data:", "event:")) or "event-stream" in content_type.lower():
            return {}, "a stream of events, which was not asked for"
        try:
            body = json.loads(body)
        except (ValueError, RecursionError) as why:
            kind = content_type.partition(";")[0] or "of no type"
            return {}, f"no JSON ({kind}): {type(why).__name__}"
    if not isinstance(body, dict):
        return {}, f"no JSON object but {_name_kind(body)}"
    return body, None


def _count_tokens(completion: dict[str, Any], status: int) -> Reply:
    usage = completion.get("usage")
    counts: list[int | None] = []
    faults = []
    for name in ("prompt_tokens", "completion_tokens"):
        count = usage.get(name) if isinstance(usage, dict) else None
        is_count = isinstance(count, int) and not isinstance(count, bool) and count >= 0
        counts.append(count if is_count else None)
        if not is_count:
            kind = _name_kind(count)
            faults.append(f"{name} is {'below 0 or a fraction' if kind == 'a number' else kind}")
    reply = Reply("malformed", served_model=clean_text(completion.get("model")), status=status)
    return reply._replace(input_tokens=counts[0], output_tokens=counts[1], usage_fault=", ".join(faults) or None)


def _name_kind(value: Any) -> str:
    names = {type(None): "absent", bool: "true or false", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")


def _as_text(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
