"""Asking a language model many things, each answer paid for once.

Requests come in as a stream, at most `concurrency` are in flight, and what comes back is committed to the ledger before
anything is sent in its place. The OpenAI SDK speaks to any endpoint of that shape and is the one layer that retries:
time-outs, 408, 409, 429 and 5xx, with Retry-After kept up to two minutes. The address and the key are no part of what
identifies an answer.
"""

import json
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import sqlalchemy as sa

from pipeline.errors import BadInput, Missing, Refused, Retry, UndertoneError
from pipeline.llm import cost, ledger
from pipeline.llm.cost import Price
from pipeline.llm.ledger import Answer, Call, Reply, printable
from pipeline.llm.request import MODERATION, Request, as_json
from pipeline.text.masked import masked

if TYPE_CHECKING:
    import openai

OPENAI = "https://api.openai.com/v1"
POLL = 0.5  # seconds between two looks at what other processes are asking
_OURS = {"model", "messages", "stream", "n"}  # parameters that would change what we count on
_OWN_FAULT = (
    "content_filter", "content_policy", "content management policy", "content exists risk", "data_inspection",
    "inappropriate content", "contentfilter", "context_length", "context length", "context size", "context window",
    "string_above_max_length", "too long", "too large", "reduce the length", "moderation",
)  # fmt: skip


class Endpoint(NamedTuple):
    """Where to ask, and with which key; the key does not show when this is printed."""

    base_url: str | None = None
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"Endpoint(base_url={self.base_url!r}, api_key={'***' if self.api_key else None})"

    def clean(self, text: str) -> str:
        """A text from the endpoint, without the key, without what a terminal would obey, not too long."""
        return printable(masked(text, [self.api_key])[:500])


class Miss(NamedTuple):
    """A request without an answer, why, and whether asking again may help without a change."""

    request: Request
    reason: str
    is_open: bool


@dataclass
class Asked:
    """What became of the requests: answers by key, misses, and what this asking took. An unknown cost is None."""

    answers: dict[str, Answer] = field(default_factory=dict)
    missing: list[Miss] = field(default_factory=list)
    cached: int = 0
    calls_sent: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    stopped: str | None = None
    is_limited: bool = False  # stopped by the limit on cost

    def check(self) -> None:
        """Raise Retry if requests are open that the same run would ask when it is tried again.

        What a reached limit on cost left out is none of them: the limit is over all tries of a run.
        """
        told = Counter(miss.reason for miss in self.missing if miss.is_open)
        if self.is_limited:
            del told[self.stopped or ""]
        if told:
            why = told.most_common(1)[0][0] if self.is_limited or not self.stopped else self.stopped
            count = len(self.answers) + len(self.missing)
            raise Retry(f"{told.total()} of {count} requests are open: {why}")


def ask(
    requests: Iterable[Request],
    engine: sa.Engine,
    endpoint: Endpoint | None,
    *,
    run_id: str,
    mode: Literal["live", "cache-only"] = "live",
    concurrency: int = 16,
    max_cost: float | None = None,
    prices: Mapping[str, Price] | None = None,
    expected_output_tokens: int = cost.EXPECTED_OUTPUT,
    timeout: float = 120.0,
    max_retries: int = 8,
    done: Callable[[int], None] = lambda _: None,
) -> Asked:
    """Answers to requests, from the ledger or the endpoint; equal requests are one.

    `max_cost` is in USD and over all calls of `run_id`, so a run that is repeated goes on under its own limit; it is
    kept by setting aside an estimate for what is in flight. `done` is told how many requests are settled. Raises
    Refused at 401, 403 and a used-up account, BadInput where no request can succeed (404, most 400); what was answered
    until then is in the ledger. Requests that failed for now are in `missing`, and `stopped` says so. What was
    malformed three times in all runs, or rejected at last, is not asked again.
    """
    table = cost.prices() if prices is None else prices
    lease = (max_retries + 1) * (timeout + 120) + 60  # longer than one call can take
    run = _Run(engine, run_id, lease, concurrency, max_cost, table, expected_output_tokens, done)
    if mode == "cache-only":
        for _, request in run.unanswered(requests):
            run.miss(request, "not in the ledger, and nothing may be asked", is_open=False)
        return run.asked
    source = run.hopeful(requests)
    first = next(source, None)
    if first is None:
        return run.asked
    if endpoint is None:
        raise Missing("nobody to ask: set UNDERTONE_LLM_URL and UNDERTONE_LLM_KEY, or ask the ledger alone")
    run.todo.append(first)
    with opened(endpoint, timeout, max_retries) as client, ThreadPoolExecutor(concurrency) as pool:
        run.all(source, lambda request: pool.submit(call, client, endpoint, request))
    return run.asked


@contextmanager
def opened(endpoint: Endpoint, timeout: float, max_retries: int) -> "Iterator[openai.OpenAI]":
    """An SDK client, closed at the end. Without a key it sends the word `none`, never one of another service."""
    import openai

    parts = urlsplit(endpoint.base_url or OPENAI)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise BadInput("the language model's address should be http(s)://host/path, its key in UNDERTONE_LLM_KEY")
    key = endpoint.api_key or ""
    if key != key.strip() or not (key.isascii() and key.isprintable()):
        raise BadInput("the key holds a blank around it, a line break or a letter outside ASCII")  # and is not told
    for name in ("httpx2", "openai"):  # a line for each request says nothing that the ledger does not
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger(name).level))
    client = openai.OpenAI(
        base_url=endpoint.base_url or OPENAI, api_key=endpoint.api_key or "none", timeout=timeout,
        max_retries=max_retries,
    )  # fmt: skip
    try:
        yield client
    finally:
        client.close()


def call(client: "openai.OpenAI", endpoint: Endpoint, request: Request) -> Reply:
    """Send one request, with the SDK's retries, and say what became of it. Errors are outcomes, not raised."""
    import openai

    began = time.time()
    try:
        if request.prompt == MODERATION:
            said = client.moderations.with_raw_response.create(
                model=request.model, input=request.messages[-1]["content"], extra_body=request.params
            )
            reply = flagged(said.text, said.status_code)._replace(retries=said.retries_taken)
        else:
            raw = client.chat.completions.with_raw_response.create(
                model=request.model,
                messages=request.messages,  # type: ignore[arg-type]
                extra_body=request.params,
            )
            reply = reading(raw.text, raw.status_code)._replace(retries=raw.retries_taken)
    except openai.APIStatusError as why:
        detail = endpoint.clean(why.message)
        outcome = outcome_of(why.status_code, f"{why.code} {why.type} {why.message}")
        reply = Reply(outcome, status=why.status_code, detail=detail, retries=_retries(why.request))
    except openai.APIConnectionError as why:
        reply = Reply("failed", detail=endpoint.clean(why.message), retries=_retries(why.request))
    return reply._replace(began_at=began, ended_at=time.time(), detail=reply.detail and endpoint.clean(reply.detail))


def reading(body: str | Any, status: int = 200) -> Reply:
    """An answer of 200, as text or as JSON already read: answered, or malformed with what is wrong."""
    try:
        found = json.loads(body) if isinstance(body, str) else body
        choice = found["choices"][0]
        usage = found.get("usage") or {}
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        message = choice["message"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as why:
        return Reply("malformed", status=status, detail=f"no chat completion: {type(why).__name__}: {why}")
    given, made = (n if isinstance(n, int) and n >= 0 else None for n in counts)
    reply = Reply(
        "answered", served_model=_text(found.get("model")), finish_reason=_text(choice.get("finish_reason")),
        input_tokens=given, output_tokens=made, status=status,
    )  # fmt: skip
    content = message.get("content") if isinstance(message, dict) else None
    if content is None and isinstance(message, dict):
        content = message.get("refusal")  # where a service says no in a field of its own; `parse` reads what it says
    if not isinstance(content, str):
        return reply._replace(outcome="malformed", detail=f"no content; finish_reason {reply.finish_reason}")
    return reply._replace(response=_text(content))


def flagged(body: str, status: int = 200) -> Reply:
    """An answer of a moderation endpoint, as the answer yes or no to whether the text is problematic (IMP-42)."""
    try:
        found = json.loads(body)
        is_flagged = found["results"][0]["flagged"]
    except (ValueError, LookupError, TypeError, RecursionError) as why:
        return Reply("malformed", status=status, detail=f"no moderation: {type(why).__name__}: {why}")
    if not isinstance(is_flagged, bool):
        return Reply("malformed", status=status, detail="no moderation: flagged is neither true nor false")
    served = _text(found.get("model"))
    return Reply("answered", served_model=served, status=status, response="yes" if is_flagged else "no")


def error(reply: Reply) -> UndertoneError:
    """The error that a refused or unusable reply means for all requests."""
    kind = Refused if reply.outcome == "refused" else BadInput
    return kind(f"the language model's service answered {reply.detail}")


def check_params(request: Request) -> None:
    """BadInput for parameters that would make an answer be counted or read wrongly."""
    if clash := _OURS & request.params.keys():
        raise BadInput(f"the parameter {min(clash)!r} cannot be set")


def price_of_call(request: Request, reply: Reply, price: Price | None, *, batch: bool = False) -> float | None:
    """USD of a call; where the server counts no tokens they are guessed from the lengths. Errors cost nothing."""
    if price is None:
        return None
    if reply.outcome not in ("answered", "malformed"):
        return 0.0
    given = cost.input_tokens(request) if reply.input_tokens is None else reply.input_tokens
    made = cost.tokens(reply.response or "") if reply.output_tokens is None else reply.output_tokens
    return price.cost(given, made, batch=batch)


class _Run:
    """One asking: the only thread that uses the ledger; the pool's threads only wait for the endpoint."""

    def __init__(
        self, engine: sa.Engine, run_id: str, lease: float, concurrency: int, max_cost: float | None,
        prices: Mapping[str, Price], expected: int, done: Callable[[int], None],
    ) -> None:  # fmt: skip
        self.engine, self.run_id, self.lease, self.me, self.done = engine, run_id, lease, ledger.me(), done
        self.concurrency, self.max_cost, self.prices, self.expected = concurrency, max_cost, prices, expected
        self.asked = Asked()
        self.todo: deque[tuple[str, Request]] = deque()
        self.elsewhere: deque[tuple[str, Request]] = deque()  # asked by another process just now
        self.flying: dict[Future[Reply], tuple[str, Request]] = {}
        self.landed: SimpleQueue[Future[Reply]] = SimpleQueue()
        self.works: set[tuple[str, str]] = set()  # models with parameters that have given an answer
        self.failures = 0  # in a row
        self.error: BaseException | None = None

    def all(self, source: Iterator[tuple[str, Request]], send: Callable[[Request], Future[Reply]]) -> None:
        try:
            while self.error is None and self.asked.stopped is None and self._fill(source, send):
                if self.flying:
                    self._land()
                elif self.asked.stopped is None:
                    time.sleep(POLL)
        except BaseException:
            self.done = lambda _: None  # it may be what raised
            raise
        finally:  # what is in flight is paid for, whatever has happened
            while self.flying:
                self._land()
            ledger.release(self.engine, self.me)
        if self.error:
            raise self.error
        for _, request in [*self.todo, *self.elsewhere, *source]:
            self.miss(request, self.asked.stopped or "not asked")
        if self.asked.stopped is None and (count := sum(miss.is_open for miss in self.asked.missing)):
            self.asked.stopped = f"{count} requests failed for now; run again to ask them"

    def unanswered(self, requests: Iterable[Request]) -> Iterator[tuple[str, Request]]:
        """What the ledger has no answer to; what it has is settled on the way."""
        for part in ledger.parts(requests):
            self._found(ledger.answers(self.engine, part), part)
            yield from ((key, request) for key, request in part.items() if key not in self.asked.answers)

    def hopeful(self, requests: Iterable[Request]) -> Iterator[tuple[str, Request]]:
        """What the ledger has no answer to and has not asked in vain; the latter is settled on the way."""
        unanswered = self.unanswered(requests)
        while some := dict(islice(unanswered, ledger.PART)):
            vain = ledger.vain(self.engine, list(some))
            for key, request in some.items():
                if key in vain:
                    self.miss(request, vain[key], is_open=False)
                else:
                    yield key, request

    def miss(self, request: Request, reason: str, *, is_open: bool = True) -> None:
        self.asked.missing.append(Miss(request, reason, is_open))
        self.done(1)

    def _found(self, known: dict[str, Answer], part: Mapping[str, Request]) -> None:
        self.asked.answers.update(known)
        self.asked.cached += len(known)
        self.works.update((part[key].model, as_json(part[key].params)) for key in known)
        if known:
            self.done(len(known))

    def _fill(self, source: Iterator[tuple[str, Request]], send: Callable[[Request], Future[Reply]]) -> bool:
        """Claim and send as many as may fly; whether anything is flying or to be looked at again."""
        room = True
        while room and (free := self.concurrency - len(self.flying)):
            wanted: dict[str, Request] = {}
            while len(wanted) < free and (pair := self._next(source)):
                wanted[pair[0]] = pair[1]
            room = bool(wanted) and self._claim(wanted, send)
        if not (self.flying or self.todo):
            self.todo, self.elsewhere = self.elsewhere, self.todo
        return bool(self.flying or self.todo)

    def _next(self, source: Iterator[tuple[str, Request]]) -> tuple[str, Request] | None:
        return self.todo.popleft() if self.todo else next(source, None)

    def _claim(self, wanted: dict[str, Request], send: Callable[[Request], Future[Reply]]) -> bool:
        """Claim and send; whether the limit on cost leaves room for more."""
        reserved = {key: self._reserve(request) for key, request in wanted.items()}
        claimed, known = ledger.claim(
            self.engine, wanted, reserved, self.me, self.run_id, self.lease, limit=self.max_cost
        )
        self._found(known, wanted)
        for key in claimed.mine:
            future = send(wanted[key])
            self.flying[future] = (key, wanted[key])
            future.add_done_callback(self.landed.put)
        for key, owner in claimed.others.items():
            if owner.startswith(ledger.BATCH):
                self.miss(wanted[key], f"in {owner.replace(':', ' ')}; collect it")
            else:
                self.elsewhere.append((key, wanted[key]))
        for key, reason in claimed.vain.items():
            self.miss(wanted[key], reason, is_open=False)
        if claimed.over:
            self.todo.extendleft((key, wanted[key]) for key in reversed(claimed.over))
            if not self.flying:
                self.asked.is_limited = True
                self.asked.stopped = f"the limit of ${self.max_cost:g} on all of run {self.run_id} is reached"
        return not claimed.over

    def _reserve(self, request: Request) -> float:
        check_params(request)
        if self.max_cost is not None:
            cost.price_of(request.model, self.prices)
        price = self.prices.get(request.model)
        return cost.reserve(request, price, self.expected) if price else 0.0

    def _land(self) -> None:
        """Wait for a reply, and commit it with all others that are there."""
        futures = [self.landed.get()]
        try:
            while True:
                futures.append(self.landed.get_nowait())
        except Empty:
            pass
        calls = []
        for future in futures:
            key, request = self.flying.pop(future)
            if why := future.exception():
                self.error = why
                continue
            reply = future.result()
            calls.append(Call(key, request, reply, price_of_call(request, reply, self.prices.get(request.model))))
        calls = blamed(calls, self.works)
        if calls:
            ledger.record(self.engine, calls, self.me, self.run_id)
        for made in calls:
            self._settle(made)

    def _settle(self, made: Call) -> None:
        key, request, reply = made.key, made.request, made.reply
        asked = self.asked
        asked.calls_sent += 1
        asked.input_tokens += reply.input_tokens or 0
        asked.output_tokens += reply.output_tokens or 0
        asked.cost_usd = None if asked.cost_usd is None or made.cost_usd is None else asked.cost_usd + made.cost_usd
        self.failures = self.failures + 1 if reply.outcome == "failed" else 0
        outcome = reply.outcome
        if outcome == "answered":
            asked.answers[key] = Answer(
                key, reply.response or "", made.mode, reply.served_model, reply.finish_reason, reply.input_tokens,
                reply.output_tokens,
            )  # fmt: skip
            self.done(1)
        elif outcome == "malformed":
            self.todo.appendleft((key, request))  # whoever claims it looks how often it was asked
        elif outcome == "rejected":
            self.miss(request, f"{outcome}: {reply.detail}", is_open=False)
        else:
            self.miss(request, f"{outcome}: {reply.detail}")
        if outcome in ("refused", "unusable"):
            self.error = self.error or error(reply)
        elif self.failures >= 2 * self.concurrency:
            asked.stopped = f"{self.failures} requests in a row failed, the last with {reply.detail}"


def blamed(calls: Iterable[Call], works: set[tuple[str, str]]) -> list[Call]:
    """Calls, those unusable taken for rejected where others of their model and parameters were answered.

    `works` has the models and parameters that have given an answer; those of `calls` are added.
    """
    told = [(call, (call.request.model, as_json(call.request.params))) for call in calls]
    works.update(like for call, like in told if call.reply.outcome == "answered")
    return [
        call._replace(reply=call.reply._replace(outcome="rejected"))
        if call.reply.outcome == "unusable" and like in works
        else call
        for call, like in told
    ]


def outcome_of(status: int, said: str) -> str:
    """What an error means: rejected (this request), refused or unusable (all requests), failed (for now)."""
    said = said.lower()
    if status in (400, 403, 413, 422) and any(sign in said for sign in _OWN_FAULT):
        return "rejected"
    if status in (401, 403) or "insufficient_quota" in said:
        return "refused"
    return "failed" if status in (408, 409, 429) or status >= 500 else "unusable"


def _retries(request: Any) -> int:
    count = request.headers.get("x-stainless-retry-count", "0")
    return int(count) if count.isdigit() else 0


def _text(value: Any) -> str | None:
    """Text that a database can hold: no NUL, no half of a surrogate pair."""
    if not isinstance(value, str):
        return None
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
