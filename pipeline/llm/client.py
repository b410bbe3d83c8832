"""Send requests to a language model; each answer is paid for once, and a run never costs more than its limit.

The most that a request can cost is set aside in the transaction that claims it; an answer is committed at once.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice

import sqlalchemy as sa

from pipeline.errors import Refused, UndertoneError
from pipeline.llm.ledger import answers as ledger
from pipeline.llm.ledger import tables
from pipeline.llm.ledger.cost import Budget, Call, format_usd
from pipeline.llm.outcome import Miss, Outcome
from pipeline.llm.request import Request, dump_json
from pipeline.llm.service import limits, replies
from pipeline.llm.service.connection import Endpoint, Sender, open_client

POLL = 0.5  # seconds between two looks at requests that other processes have claimed


def ask(
    requests: Iterable[Request],
    engine: sa.Engine,
    endpoint: Endpoint | None,
    budget: Budget,
    *,
    concurrency: int = 16,
    timeout: float = 120.0,
    max_retries: int = limits.RETRIES,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Answer requests from the ledger or the endpoint, if there is one; equal requests are one.

    What the service does is in the outcome, also where it stops the run: `error` is Refused at 401, 403, a redirect, a
    used-up account and a run of answers that cannot be read, BadInput where no request can succeed (404, most 400).
    Requests that failed for now are in `missing`, and `stopped` says so. What was malformed three times in all runs, or
    rejected at last by a service that has given answers in that run, is not sent again. The stream is read as requests
    are needed; `timeout` is for one try, `max_retries` for what cost nothing. BadInput: a limit on cost and a model
    without a price.
    """
    lease = (max_retries + 1) * (timeout + 120) + 60  # longer than one call can take
    run = _Run(engine, budget, concurrency, min(max_retries, limits.RESENDS), lease, on_progress)
    run.source = run.read(requests, is_live=endpoint is not None)
    first = next(run.source, None)
    if first and endpoint:
        run.todo.append(first)
        with open_client(endpoint, timeout, max_retries) as client, ThreadPoolExecutor(concurrency) as pool:
            sender = Sender(client, endpoint.clean, budget.output_tokens, {})
            run.send = lambda request, pause: pool.submit(sender.send, request, pause)
            run.send_all()
    return run.outcome


@dataclass
class _Run:
    """The requests of one call of `ask`. Its thread alone uses the ledger; the pool's threads wait for the endpoint."""

    engine: sa.Engine
    budget: Budget
    concurrency: int
    most_resends: int
    lease: float  # seconds that a claim lasts
    on_progress: Callable[[int], None]
    source: Iterator[tuple[str, Request]] = field(init=False)
    send: Callable[[Request, float], Future[replies.Reply]] = field(init=False)
    owner: str = field(default_factory=tables.create_name)
    outcome: Outcome = field(default_factory=Outcome)
    todo: deque[tuple[str, Request]] = field(default_factory=deque)
    waiting: deque[tuple[str, Request]] = field(default_factory=deque)  # for another process that has claimed them
    in_flight: dict[Future[replies.Reply], tuple[str, Request]] = field(default_factory=dict)
    accepted: set[tuple[str, str]] = field(default_factory=set)  # models with parameters that gave an answer
    has_answered: bool = False  # the service, in this run
    failure_count: int = 0  # in a row
    malformed: list[str] = field(default_factory=list)  # keys since the last answer that could be read
    rejected: list[str] = field(default_factory=list)  # keys since the last answer
    tries: Counter[str] = field(default_factory=Counter)  # by key, of answers that were malformed
    resends: Counter[str] = field(default_factory=Counter)  # by key
    pauses: dict[str, float] = field(default_factory=dict)  # seconds before a resend, by key
    error: BaseException | None = None  # of our own code

    def read(self, requests: Iterable[Request], *, is_live: bool) -> Iterator[tuple[str, Request]]:
        """Yield the requests to send; settle those that the ledger answers, or that are not sent again."""
        for part in ledger.split(requests):
            answers, given_up = ledger.look_up(self.engine, part)
            self._add_answers(answers)
            for key, request in part.items():
                reason = given_up.get(key) if is_live else "not in the ledger, and nothing may be asked"
                if key not in answers and reason:
                    self._miss(request, reason, is_open=False)
                elif key not in answers:
                    yield key, request

    def send_all(self) -> None:
        """Send requests until all are settled or the run stops; what is in flight is recorded in any case."""
        try:
            while self.error is None and self.outcome.stopped is None and self._fill():
                if self.in_flight:
                    self._land()
                elif self.outcome.stopped is None:
                    time.sleep(POLL)
        except BaseException:
            self.on_progress = lambda _: None  # it may be what raised
            raise
        finally:  # what is in flight is paid for, whatever has happened
            while self.in_flight:
                self._land()
            with ledger.write_transaction(self.engine) as con:
                ledger.release(con, self.owner)
        if self.error:
            raise self.error
        rest = dict([*self.todo, *self.waiting, *self.source])
        with ledger.write_transaction(self.engine) as con:
            ledger.book_lost(con, rest)
        for request in rest.values():
            self._miss(request, self.outcome.stopped or "not asked")
        if self.outcome.stopped is None and (count := sum(miss.is_open for miss in self.outcome.missing)):
            self.outcome.stopped = f"{count} requests failed for now; run again to ask them"

    def _miss(self, request: Request, reason: str, *, is_open: bool = True) -> None:
        self.outcome.missing.append(Miss(request, reason, is_open))
        self.on_progress(1)

    def _add_answers(self, answers: dict[str, ledger.Answer]) -> None:
        self.outcome.answers |= answers
        self.outcome.cached += len(answers)
        if answers:
            self.on_progress(len(answers))

    def _fill(self) -> bool:
        most = self.concurrency if self.has_answered else min(self.concurrency, limits.FIRST_MALFORMED)
        has_room = True
        while has_room and (free := most - len(self.in_flight)) > 0:
            following = iter(lambda: self.todo.popleft() if self.todo else next(self.source, None), None)
            requests = dict(islice(following, free))
            has_room = bool(requests) and self._claim(requests)
        if not (self.in_flight or self.todo):
            self.todo, self.waiting = self.waiting, self.todo
        return bool(self.in_flight or self.todo)

    def _claim(self, requests: dict[str, Request]) -> bool:
        claims = ledger.claim(self.engine, requests, self.budget, self.owner, self.lease)
        self._add_answers(claims.answers)
        for key in claims.claimed:
            future = self.send(requests[key], self.pauses.get(key, 0.0))
            self.in_flight[future] = (key, requests[key])
        for key, owner in claims.owners.items():
            if owner.startswith(ledger.BATCH):
                self._miss(requests[key], f"in {owner.replace(':', ' ')}; collect it")
            else:
                self.waiting.append((key, requests[key]))
        for key, reason in claims.given_up.items():
            self._miss(requests[key], reason, is_open=False)
        if claims.over_limit:
            self.todo.extendleft((key, requests[key]) for key in reversed(claims.over_limit))
            if not self.in_flight:
                self.outcome.is_limited = True
                next_usd = format_usd(self.budget.reserve(requests[claims.over_limit[0]]))
                limit = f"the limit of ${self.budget.max_cost:g} on all of run {self.budget.run_id}"
                self._stop(f"{limit} is reached: the next request may cost {next_usd}")
        return not claims.over_limit

    def _land(self) -> None:
        finished, _ = wait(self.in_flight, return_when=FIRST_COMPLETED)
        calls = [self._bill(future) for future in finished]
        settled = mark_rejected(calls, self.accepted)
        self.has_answered |= any(call.reply.outcome == "answered" for call in settled)
        is_unread = [not self.has_answered and call.reply.outcome in ("malformed", "rejected") for call in settled]
        recorded = [_mark(call, "unread") if mark else call for call, mark in zip(settled, is_unread, strict=True)]
        ledger.record(self.engine, recorded, self.owner, self.budget.run_id)
        for before, call in zip(calls, settled, strict=True):
            self._record_call(call, is_marked=call is not before)

    def _bill(self, future: Future[replies.Reply]) -> Call:
        key, request = self.in_flight.pop(future)
        if why := future.exception():
            self.error = why
            now = time.time()
            reply = replies.Reply("lost", detail=type(why).__name__, began_at=now, ended_at=now, is_doubtful=True)
        else:
            reply = future.result()
        call = self.budget.bill(key, request, reply)
        if call.is_over and self.budget.max_cost is not None:
            self._stop(f"the service does not keep to its limits, so neither can the cost: {call.guess}")
        return call

    def _record_call(self, call: Call, *, is_marked: bool) -> None:
        key, reply = call.key, call.reply
        self.outcome.add_call(call)
        self.failure_count = self.failure_count + 1 if reply.outcome == "failed" else 0
        if reply.outcome == "answered":
            self._record_answer(call)
        elif reply.outcome == "malformed":
            self._record_malformed(call)
        elif reply.outcome == "rejected":
            self._record_rejected(call, is_marked=is_marked)
        elif reply.outcome == "failed" and reply.is_doubtful and self.resends[key] < self.most_resends:
            self.resends[key] += 1
            self.pauses[key] = limits.PAUSE * self.resends[key] if reply.status else 0.0
            self.todo.append((key, call.request))
        else:
            self._miss(call.request, f"{reply.outcome}: {reply.detail}")
        if reply.outcome in ("refused", "unusable"):
            self._stop(replies.build_exception(reply))
        elif self.failure_count >= max(2 * self.concurrency, 4):
            self._stop(f"{self.failure_count} requests in a row failed, the last with {reply.detail}")

    def _record_answer(self, call: Call) -> None:
        for outcome, keys in (("malformed", self.malformed), ("rejected", self.rejected)):
            if keys:  # the address is right, so these answers were the requests' own
                ledger.reclassify(self.engine, keys, self.budget.run_id, "unread", outcome)
                keys.clear()
        fields = {name: getattr(call.reply, name) for name in ledger.OF_ANSWER}
        fields["response"] = call.reply.response or ""
        self.outcome.answers[call.key] = ledger.Answer(call.key, mode=call.mode, **fields)
        self.on_progress(1)

    def _record_malformed(self, call: Call) -> None:
        """Send the request again, a few times; if answers come and none can be read, stop: the address may be wrong."""
        self.tries[call.key] += 1
        self.malformed.append(call.key)
        if (tries := self.tries[call.key]) > ledger.REPEATS:
            self._miss(call.request, f"malformed {tries} times, at last: {call.reply.detail}", is_open=False)
        else:
            self.todo.appendleft((call.key, call.request))  # the process that claims it checks its tries
        count = len(self.malformed)
        if count >= (limits.MALFORMED_IN_A_ROW if self.has_answered else limits.FIRST_MALFORMED):
            ledger.reclassify(self.engine, self.malformed, self.budget.run_id, "malformed", "unread")
            answers = f"{count} answers in a row" if self.has_answered else "the first answers"
            message = f"{answers} of the language model's service cannot be read, is UNDERTONE_LLM_URL right?"
            self._stop(Refused(f"{message} The last is {call.reply.detail}"))

    def _record_rejected(self, call: Call, *, is_marked: bool) -> None:
        self._miss(call.request, f"rejected: {call.reply.detail}", is_open=False)
        if is_marked or not self.has_answered:
            self.rejected.append(call.key)
        if (count := len(self.rejected)) >= limits.REJECTED_IN_A_ROW:
            ledger.reclassify(self.engine, self.rejected, self.budget.run_id, "rejected", "unread")
            message = f"the language model's service rejected {count} requests in a row, is UNDERTONE_LLM_URL right?"
            self._stop(Refused(f"{message} The last error is {call.reply.detail}"))

    def _stop(self, why: str | UndertoneError) -> None:
        if self.outcome.stopped is None:
            self.outcome.stopped = str(why)
            self.outcome.error = why if isinstance(why, UndertoneError) else None


def mark_rejected(calls: Iterable[Call], accepted: set[tuple[str, str]]) -> list[Call]:
    """Return the calls, the unusable ones as rejected if one of their model and parameters is or gets `accepted`."""
    kinds = [(call, (call.request.model, dump_json(call.request.params))) for call in calls]
    accepted.update(kind for call, kind in kinds if call.reply.outcome == "answered")
    is_own_fault = [call.reply.outcome == "unusable" and kind in accepted for call, kind in kinds]
    faults = zip(kinds, is_own_fault, strict=True)
    return [_mark(call, "rejected") if is_fault else call for (call, _), is_fault in faults]


def _mark(call: Call, outcome: str) -> Call:
    return call._replace(reply=call.reply._replace(outcome=outcome))
