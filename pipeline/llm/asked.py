"""What became of requests to a language model: answers, misses, and what the asking took."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.errors import Refused, Retry, UndertoneError
from pipeline.llm.ledger.answers import Answer
from pipeline.llm.request import Request


class Miss(NamedTuple):
    """A request without an answer, why, and whether asking again may help without a change."""

    request: Request
    reason: str
    is_open: bool


@dataclass
class Asked:
    """What became of the requests: answers by key, misses, and what this asking took. An unknown cost is None.

    `guesses` has why a cost was guessed, and how often; `guessed_usd` is that part of the cost. `error` is what ended
    the asking for good.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    missing: list[Miss] = field(default_factory=list)
    cached: int = 0
    calls_sent: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    guessed_usd: float = 0.0
    guesses: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None
    is_limited: bool = False  # stopped by the limit on cost
    error: UndertoneError | None = None

    def check(self, *, has_answers: bool = False) -> None:
        """Raise what the runner has to know; `has_answers` tells that earlier requests of the same task were answered.

        Raises:
            Retry: requests are open that the same run would ask when it is tried again. What a reached limit on cost
                left out is none of them: the limit is over all tries of a run.
            Refused: the service refused, or none of the requests has an answer.
            BadInput: no request can succeed.
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
