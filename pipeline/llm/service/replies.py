"""What a server's answer says: an answer, or one clear reason why it is none. Pure functions, nothing is raised."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from pipeline.errors import BadInput, Refused, UndertoneError
from pipeline.llm.service.limits import EXCERPT

_OWN_FAULT = (
    "content_filter", "content_policy", "content management policy", "content exists risk", "data_inspection",
    "inappropriate content", "contentfilter", "context_length", "context length", "context size", "context window",
    "string_above_max_length", "too long", "too large", "reduce the length", "moderation",
)  # fmt: skip


class Reply(NamedTuple):
    """What became of one call.

    The outcome is answered; malformed or rejected (this request), both recorded as unread while the server has
    answered nothing in this run; failed (for now), refused or unusable (all requests); lost (its process ended).
    """

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
    body: str | None = None  # what came, where it cannot be read; an excerpt goes into `detail`


def read_chat(body: str | Any, status: int = 200, content_type: str = "") -> Reply:
    """A chat completion of status 200, as text or as JSON already read."""
    completion, fault = _parse(body, content_type)
    if fault is None:
        error, choices = completion.get("error"), completion.get("choices")
        if error and not choices:
            return _read_error(error, body, status)
        fault = _fault_of_choices(choices)
    if fault is not None:
        return _malformed(fault, body, status, completion)
    choice = completion["choices"][0]
    message = choice["message"]
    content = message.get("content")
    if content is None:
        content = message.get("refusal")  # where a service says no in a field of its own; `parse` reads what it says
    reply = _counted(completion, status)._replace(finish_reason=clean_text(choice.get("finish_reason")))
    if isinstance(content, str):
        return reply._replace(outcome="answered", response=clean_text(content))
    kind = "no content" if content is None else f"content that is no text but {_kind(content)}"
    return reply._replace(detail=f"{kind}; finish_reason {reply.finish_reason}", body=_as_text(body))


def read_moderation(body: str | Any, status: int = 200, content_type: str = "") -> Reply:
    """A moderation of status 200, as the answer yes or no to whether the text is problematic (IMP-42)."""
    completion, fault = _parse(body, content_type)
    if fault is None:
        if completion.get("error") and not completion.get("results"):
            return _read_error(completion["error"], body, status)
        results = completion.get("results")
        result = results[0] if isinstance(results, list) and results else None
        is_flagged = result.get("flagged") if isinstance(result, dict) else None
        if isinstance(is_flagged, bool):
            reply = _counted(completion, status)
            return reply._replace(outcome="answered", response="yes" if is_flagged else "no")
        fault = "no moderation: flagged is neither true nor false"
    return _malformed(fault, body, status, completion)


def outcome_of(status: int, message: str) -> str:
    """What an error means: rejected (this request), refused or unusable (all requests), failed (for now)."""
    message = message.lower()
    if status in (400, 403, 413, 422) and any(sign in message for sign in _OWN_FAULT):
        return "rejected"
    if status in (401, 403) or 300 <= status < 400 or "insufficient_quota" in message:
        return "refused"
    return "failed" if status in (408, 409, 429) or status >= 500 else "unusable"


def error(reply: Reply) -> UndertoneError:
    """The error that a refused or unusable reply means for all requests."""
    kind = Refused if reply.outcome == "refused" else BadInput
    return kind(f"the language model's service answered {reply.detail}")


def with_excerpt(reply: Reply, clean: Callable[[str], str]) -> Reply:
    """The reply with what is wrong, and how that which came begins, in a form that can be shown."""
    if reply.detail is None:
        return reply
    excerpt = f": {clean(reply.body)[:EXCERPT].strip()}" if reply.body else ""
    return reply._replace(detail=clean(reply.detail) + excerpt, body=None)


def printable(text: str) -> str:
    """A text in one line, with nothing that a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)


def clean_text(value: Any) -> str | None:
    """Text that a database can hold: no NUL, no half of a surrogate pair."""
    if not isinstance(value, str):
        return None
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _parse(body: str | Any, content_type: str) -> tuple[dict[str, Any], str | None]:
    """A JSON object, or an empty one and why there is none."""
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
        return {}, f"no JSON object but {_kind(body)}"
    return body, None


def _fault_of_choices(choices: Any) -> str | None:
    if not isinstance(choices, list):
        return "no chat completion: there is no list of choices"
    if len(choices) != 1:
        return f"{len(choices)} choices, where one was asked for"
    choice = choices[0]
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        is_chunk = isinstance(choice, dict) and "delta" in choice
        return "a chunk of a stream, which was not asked for" if is_chunk else "no chat completion: there is no message"
    return None


def _read_error(error: Any, body: Any, status: int) -> Reply:
    """An error inside an answer of 200, as some gateways have it; its code says what it means, if it has one."""
    fields = error if isinstance(error, dict) else {"message": error}
    code = fields.get("code")
    detail = f"an error inside an answer of {status}: {str(fields.get('message'))[:2_000]}"
    if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
        outcome = outcome_of(code, str(fields.get("message")))
        return Reply(outcome, status=status, detail=f"{code}, {detail}", is_doubtful=True)
    return _malformed(detail, body, status, {})


def _malformed(fault: str, body: Any, status: int, completion: dict[str, Any]) -> Reply:
    return _counted(completion, status)._replace(detail=fault, body=_as_text(body))


def _counted(completion: dict[str, Any], status: int) -> Reply:
    """A reply with the tokens that the server counted; malformed as long as nobody says otherwise."""
    usage = completion.get("usage")
    counts: list[int | None] = []
    faults = []
    for name in ("prompt_tokens", "completion_tokens"):
        count = usage.get(name) if isinstance(usage, dict) else None
        is_count = isinstance(count, int) and not isinstance(count, bool) and count >= 0
        counts.append(count if is_count else None)
        if not is_count:
            faults.append(f"{name} is {'below 0 or a fraction' if _kind(count) == 'a number' else _kind(count)}")
    return Reply(
        "malformed", served_model=clean_text(completion.get("model")), input_tokens=counts[0], output_tokens=counts[1],
        status=status, usage_fault=", ".join(faults) or None,
    )  # fmt: skip


def _kind(value: Any) -> str:
    """What a value of JSON is, in a word."""
    names = {type(None): "absent", bool: "true or false", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")


def _as_text(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
