"""Asking a language model many things, each answer paid for once, and never more than a limit allows.

Requests come in as a stream, at most `concurrency` are in flight, and what comes back is committed to the ledger before
anything is sent in its place. Before a request is sent, the most that it can cost is set aside, in the transaction that
claims it; so what a run spends stays below its limit with any number of processes and tries. The address and the key
are no part of what identifies an answer.
"""

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Literal

import sqlalchemy as sa

from pipeline.errors import BadInput, Missing, Refused, UndertoneError
from pipeline.llm.asked import Asked, Miss
from pipeline.llm.ledger import answers as ledger
from pipeline.llm.ledger import cost, owners
from pipeline.llm.ledger.answers import Answer, Call
from pipeline.llm.ledger.cost import Price
from pipeline.llm.request import Request, as_json
from pipeline.llm.service import connection, limits, replies
from pipeline.llm.service.connection import Endpoint
from pipeline.llm.service.replies import Reply

POLL = 0.5  # seconds between two looks at what other processes are asking


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
    output_tokens: int | None = None,
    timeout: float = 120.0,
    max_retries: int = 8,
    done: Callable[[int], None] = lambda _: None,
) -> Asked:
    """Answers to requests, from the ledger or the endpoint; equal requests are one.

    What the service does is in the result, also where it ends the asking: `error` is Refused at 401, 403, a redirect, a
    used-up account and a run of answers that cannot be read, BadInput where no request can succeed (404, most 400).
    Requests that failed for now are in `missing`, and `stopped` says so. What was malformed three times in all runs, or
    rejected at last by a service that has given answers in that run, is not asked again.

    Args:
        requests: a stream; it is read as requests are needed.
        engine: of the ledger.
        endpoint: where to ask.
        run_id: whose spending is limited, over all processes and tries.
        mode: cache-only sends nothing.
        concurrency: requests in flight at most; few until the first answer has come.
        max_cost: USD that all calls of `run_id` may cost at most.
        prices: of models; a limit needs one for each model asked.
        output_tokens: limit on an answer's tokens for requests that have none; that of their prompt by default.
        timeout: seconds for one try, in all.
        max_retries: of what cost nothing.
        done: told how many requests are settled.

    Raises:
        BadInput: a parameter or limit that cannot be; a limit on cost and a model without a price.
        Missing: there are open requests, and no endpoint.
    """
    if max_cost is not None and not 0 <= max_cost < math.inf:
        raise BadInput(f"the limit on cost should be a number of USD, not below 0, found {max_cost}")
    table = cost.prices() if prices is None else prices
    lease = (max_retries + 1) * (timeout + 120) + 60  # longer than one call can take
    resends = min(max_retries, limits.RESENDS)
    run = _Run(engine, run_id, lease, concurrency, max_cost, table, output_tokens, resends, done)
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
    names: dict[str, str] = {}
    with connection.opened(endpoint, timeout, max_retries) as client, ThreadPoolExecutor(concurrency) as pool:
        run.all(
            source,
            lambda request, pause: pool.submit(connection.send, client, endpoint, request, output_tokens, names, pause),
        )
    return run.asked


class _Run:
    """One asking: the only thread that uses the ledger; the pool's threads only wait for the endpoint."""

    def __init__(
        self, engine: sa.Engine, run_id: str, lease: float, concurrency: int, max_cost: float | None,
        prices: Mapping[str, Price], output_tokens: int | None, resends: int, done: Callable[[int], None],
    ) -> None:  # fmt: skip
        self.engine, self.run_id, self.lease, self.me, self.done = engine, run_id, lease, owners.me(), done
        self.concurrency, self.max_cost, self.prices = concurrency, max_cost, prices
        self.output_tokens, self.resends = output_tokens, resends
        self.asked = Asked()
        self.todo: deque[tuple[str, Request]] = deque()
        self.elsewhere: deque[tuple[str, Request]] = deque()  # asked by another process just now
        self.flying: dict[Future[Reply], tuple[str, Request]] = {}
        self.landed: SimpleQueue[Future[Reply]] = SimpleQueue()
        self.works: set[tuple[str, str]] = set()  # models with parameters that gave an answer in this run
        self.has_answered = False  # the service, in this run
        self.failures = 0  # in a row
        self.malformed: list[str] = []  # keys of the malformed answers since the last that could be read
        self.rejected: list[str] = []  # keys of the rejected requests since the last answer
        self.tries: Counter[str] = Counter()  # by key, of answers that were malformed
        self.interruptions: Counter[str] = Counter()  # by key
        self.pauses: dict[str, float] = {}  # seconds before a resend, by key
        self.error: BaseException | None = None

    def all(self, source: Iterator[tuple[str, Request]], send: Callable[[Request, float], Future[Reply]]) -> None:
        try:
            while self._goes_on() and self._fill(source, send):
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
        rest = dict([*self.todo, *self.elsewhere, *source])
        ledger.book_lost(self.engine, rest)
        for request in rest.values():
            self.miss(request, self.asked.stopped or "not asked")
        if self.asked.stopped is None and (count := sum(miss.is_open for miss in self.asked.missing)):
            self.asked.stopped = f"{count} requests failed for now; run again to ask them"

    def _goes_on(self) -> bool:
        return self.error is None and self.asked.stopped is None

    def unanswered(self, requests: Iterable[Request]) -> Iterator[tuple[str, Request]]:
        """What the ledger has no answer to; what it has is settled on the way."""
        for part in ledger.parts(requests):
            self._found(ledger.answers(self.engine, part))
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

    def _found(self, known: dict[str, Answer]) -> None:
        self.asked.answers.update(known)
        self.asked.cached += len(known)
        if known:
            self.done(len(known))

    def _fill(self, source: Iterator[tuple[str, Request]], send: Callable[[Request, float], Future[Reply]]) -> bool:
        """Claim and send as many as may fly; whether anything is flying or to be looked at again."""
        room = True
        most = self.concurrency if self.has_answered else min(self.concurrency, limits.FIRST_MALFORMED)
        while room and (free := most - len(self.flying)) > 0:
            wanted: dict[str, Request] = {}
            while len(wanted) < free and (pair := self._next(source)):
                wanted[pair[0]] = pair[1]
            room = bool(wanted) and self._claim(wanted, send)
        if not (self.flying or self.todo):
            self.todo, self.elsewhere = self.elsewhere, self.todo
        return bool(self.flying or self.todo)

    def _next(self, source: Iterator[tuple[str, Request]]) -> tuple[str, Request] | None:
        return self.todo.popleft() if self.todo else next(source, None)

    def _claim(self, wanted: dict[str, Request], send: Callable[[Request, float], Future[Reply]]) -> bool:
        """Claim and send; whether the limit on cost leaves room for more."""
        reserved = {key: self._reserve(request) for key, request in wanted.items()}
        claimed, known = ledger.claim(
            self.engine, wanted, reserved, self.me, self.run_id, self.lease, limit=self.max_cost
        )
        self._found(known)
        for key in claimed.mine:
            future = send(wanted[key], self.pauses.get(key, 0.0))
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
                next_usd = cost.usd(reserved[claimed.over[0]])
                self.asked.stopped = f"the limit of ${self.max_cost:g} on all of run {self.run_id} is reached"
                self.asked.stopped += f": the next request may cost {next_usd}"
        return not claimed.over

    def _reserve(self, request: Request) -> float:
        connection.check_params(request)
        if self.max_cost is not None:
            cost.price_of(request.model, self.prices)
        price = self.prices.get(request.model)
        return cost.reserve(request, price, self.output_tokens) if price else 0.0

    def _land(self) -> None:
        """Wait for a reply, and commit it with all others that are there."""
        futures = [self.landed.get()]
        try:
            while True:
                futures.append(self.landed.get_nowait())
        except Empty:
            pass
        calls = [self._made(future) for future in futures]
        settled = blamed(calls, self.works)
        self.has_answered |= any(call.reply.outcome == "answered" for call in settled)
        recorded = settled if self.has_answered else [_unread(call) for call in settled]
        ledger.record(self.engine, recorded, self.me, self.run_id)
        for before, call in zip(calls, settled, strict=True):
            self._settle(call, is_blamed=call is not before)

    def _made(self, future: Future[Reply]) -> Call:
        """The call of a future, with what it cost; one that raised may have been paid."""
        key, request = self.flying.pop(future)
        if why := future.exception():
            self.error = why
            now = time.time()
            reply = Reply("lost", detail=type(why).__name__, began_at=now, ended_at=now, is_doubtful=True)
        else:
            reply = future.result()
        bill = cost.bill(request, reply, self.prices.get(request.model), self.output_tokens)
        reply = reply._replace(input_tokens=bill.input_tokens, output_tokens=bill.output_tokens)
        if bill.is_over and self.max_cost is not None:
            self._stop(f"the service does not keep to its limits, so neither can the cost: {bill.guess}")
        return Call(key, request, reply, bill.cost_usd, guess=bill.guess)

    def _settle(self, made: Call, *, is_blamed: bool) -> None:
        key, request, reply = made.key, made.request, made.reply
        self._count(made)
        self.failures = self.failures + 1 if reply.outcome == "failed" else 0
        outcome = reply.outcome
        if outcome == "answered":
            self._settle_answer(made)
        elif outcome == "malformed":
            self._settle_malformed(made)
        elif outcome == "rejected":
            self._settle_rejected(made, is_blamed=is_blamed)
        elif outcome == "failed" and reply.is_doubtful and self.interruptions[key] < self.resends:
            self.interruptions[key] += 1
            self.pauses[key] = limits.PAUSE * self.interruptions[key] if reply.status else 0.0
            self.todo.append((key, request))
        else:
            self.miss(request, f"{outcome}: {reply.detail}")
        if outcome in ("refused", "unusable"):
            self._stop(replies.error(reply))
        elif self.failures >= max(2 * self.concurrency, 4):
            self._stop(f"{self.failures} requests in a row failed, the last with {reply.detail}")

    def _count(self, made: Call) -> None:
        asked = self.asked
        asked.calls_sent += 1
        asked.input_tokens += made.reply.input_tokens or 0
        asked.output_tokens += made.reply.output_tokens or 0
        asked.cost_usd = None if asked.cost_usd is None or made.cost_usd is None else asked.cost_usd + made.cost_usd
        if made.guess:
            asked.guesses[made.guess] += 1
            asked.guessed_usd += made.cost_usd or 0.0

    def _settle_answer(self, made: Call) -> None:
        key, reply = made.key, made.reply
        if self.malformed:  # the address is right, so these answers were the requests' own
            ledger.reclassify(self.engine, self.malformed, self.run_id, "unread", "malformed")
        if self.rejected:
            ledger.reclassify(self.engine, self.rejected, self.run_id, "unread", "rejected")
        self.malformed, self.rejected = [], []
        self.asked.answers[key] = Answer(
            key, reply.response or "", made.mode, reply.served_model, reply.finish_reason, reply.input_tokens,
            reply.output_tokens,
        )  # fmt: skip
        self.done(1)

    def _settle_malformed(self, made: Call) -> None:
        """Ask again, a few times; if answers come and none can be read, stop: the address may be wrong."""
        self.tries[made.key] += 1
        self.malformed.append(made.key)
        if self.tries[made.key] > ledger.REASKS:
            tries = self.tries[made.key]
            self.miss(made.request, f"malformed {tries} times, at last: {made.reply.detail}", is_open=False)
        else:
            self.todo.appendleft((made.key, made.request))  # whoever claims it looks how often it was asked
        if len(self.malformed) >= (limits.MALFORMED_IN_A_ROW if self.has_answered else limits.FIRST_MALFORMED):
            ledger.reclassify(self.engine, self.malformed, self.run_id, "malformed", "unread")
            row = f"{len(self.malformed)} answers in a row" if self.has_answered else "the first answers"
            self._stop(Refused(f"{row} of the language model's service cannot be read, is UNDERTONE_LLM_URL right? "
                               f"The last is {made.reply.detail}"))  # fmt: skip

    def _settle_rejected(self, made: Call, *, is_blamed: bool) -> None:
        """Ask no more; stop after many in a row without an answer, and let a later run ask these again."""
        self.miss(made.request, f"rejected: {made.reply.detail}", is_open=False)
        if is_blamed or not self.has_answered:
            self.rejected.append(made.key)
        if len(self.rejected) >= limits.REJECTED_IN_A_ROW:
            ledger.reclassify(self.engine, self.rejected, self.run_id, "rejected", "unread")
            self._stop(Refused(f"the language model's service rejected {len(self.rejected)} requests in a row, is "
                               f"UNDERTONE_LLM_URL right? The last error is {made.reply.detail}"))  # fmt: skip

    def _stop(self, why: str | UndertoneError) -> None:
        """Send nothing more; the first reason counts."""
        if self.asked.stopped is None:
            self.asked.stopped = str(why)
            self.asked.error = why if isinstance(why, UndertoneError) else None


def _unread(call: Call) -> Call:
    is_final = call.reply.outcome in ("malformed", "rejected")
    return call._replace(reply=call.reply._replace(outcome="unread")) if is_final else call


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
