"""Outcomes of requests to language models: answers, misses and costs, of one call of `client.ask` and of several."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.errors import Refused, Retry, UndertoneError
from pipeline.llm.ledger.answers import Answer
from pipeline.llm.ledger.cost import Call, format_usd
from pipeline.llm.request import Request


class Miss(NamedTuple):
    """A request without an answer, why, and whether it may help to send it again without a change."""

    request: Request
    reason: str
    is_open: bool


@dataclass(kw_only=True)
class Spent:
    """What calls took. The cost is None where a model has no price; `guessed_usd` is the part that no server counted.

    `guesses` counts the reasons why a cost was guessed; `error` is what stopped the requests for good.
    """

    calls_sent: int = 0
    cost_usd: float | None = 0.0
    guessed_usd: float = 0.0
    guesses: Counter[str] = field(default_factory=Counter)
    error: UndertoneError | None = None

    def add_cost(self, cost_usd: float | None) -> None:
        """Add a cost; the sum is unknown from the first unknown cost on."""
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd


@dataclass(kw_only=True)
class Outcome(Spent):
    """Answers by key, misses, and what the calls took. `stopped` is why the rest of the requests was not sent."""

    answers: dict[str, Answer] = field(default_factory=dict)
    missing: list[Miss] = field(default_factory=list)
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    stopped: str | None = None
    is_limited: bool = False  # stopped by the limit on cost

    def add_call(self, call: Call) -> None:
        self.calls_sent += 1
        self.input_tokens += call.reply.input_tokens or 0
        self.output_tokens += call.reply.output_tokens or 0
        self.add_cost(call.cost_usd)
        if call.guess:
            self.guesses[call.guess] += 1
            self.guessed_usd += call.cost_usd or 0.0

    def check(self, *, has_answers: bool = False) -> None:
        """Raise what the runner has to know; `has_answers` means that earlier requests of the task were answered.

        Retry: requests are open that the same run would send when it is tried again. What a reached limit on cost left
        out is none of them: the limit is over all tries of a run. Refused: the service refused, or none of the requests
        has an answer. BadInput: no request can succeed.
        """
        if self.error:
            raise self.error
        open_reasons = Counter(miss.reason for miss in self.missing if miss.is_open)
        if self.is_limited:
            del open_reasons[self.stopped or ""]
        count = len(self.answers) + len(self.missing)
        if open_reasons:
            why = open_reasons.most_common(1)[0][0] if self.is_limited or not self.stopped else self.stopped
            raise Retry(f"{open_reasons.total()} of {count} requests are open: {why}")
        if self.missing and not self.answers and not has_answers:
            reasons = Counter(miss.reason for miss in self.missing).most_common(3)
            why = "; ".join(f"{number:,}: {reason}" for reason, number in reasons)
            raise Refused(f"none of {count:,} requests has an answer ({why})")


@dataclass(kw_only=True)
class Summary(Spent):
    """The outcomes of a command's requests. A request that is sent again counts once."""

    max_cost: float | None = None
    answered: set[str] = field(default_factory=set)
    missing: dict[str, str] = field(default_factory=dict)  # the reason by key

    def add(self, requests: Sequence[Request], outcome: Outcome) -> None:
        self.answered |= {request._replace(attempt=0).key for request in requests if request.key in outcome.answers}
        self.missing |= {miss.request._replace(attempt=0).key: miss.reason for miss in outcome.missing}
        self.missing = {key: reason for key, reason in self.missing.items() if key not in self.answered}
        self.calls_sent += outcome.calls_sent
        self.add_cost(outcome.cost_usd)
        self.guessed_usd += outcome.guessed_usd
        self.guesses += outcome.guesses
        self.error = self.error or outcome.error

    @property
    def exit_code(self) -> int:
        """0 if all requests are answered, 1 if a part is, 3 if none is or the service refused."""
        if isinstance(self.error, Refused) or (self.missing and not self.answered):
            return Refused.exit_code
        return 1 if self.missing else 0

    def check(self) -> None:
        """Raise what stopped the requests for good."""
        if self.error and not isinstance(self.error, Retry):
            raise self.error

    def _list_reasons(self) -> str:
        counts = Counter(self.missing.values())
        frequent = counts.most_common(5)
        reasons = [f"{count:,} {reason}" for reason, count in frequent]
        rest = counts.total() - sum(count for _, count in frequent)
        return "; ".join(reasons + ([f"{rest:,} for other reasons"] if rest else []))

    def as_dict(self) -> dict[str, object]:
        answered, missing = len(self.answered), len(self.missing)
        counts: dict[str, object] = {"requests": answered + missing, "answered": answered, "missing": missing}
        counts["why_missing"] = self._list_reasons()
        counts |= {name: getattr(self, name) for name in ("calls_sent", "cost_usd", "guessed_usd")}
        return counts | {"why_guessed": dict(self.guesses), "max_cost": self.max_cost}

    def sentence(self) -> str:
        count = len(self.answered) + len(self.missing)
        text = f"{len(self.answered):,} of {count:,} requests have an answer, {self.calls_sent:,} calls were sent"
        if self.missing:
            text += f"; without one: {self._list_reasons()}"
        text += "; the model has no price" if self.cost_usd is None else f"; spent {format_usd(self.cost_usd)}"
        if self.max_cost is not None:
            text += f" of {format_usd(self.max_cost)}"
        if self.guesses:
            why = "; ".join(f"{count:,} times: {reason}" for reason, count in self.guesses.most_common(3))
            text += f"; {format_usd(self.guessed_usd)} of it is a guess, an upper bound ({why})"
        return text
