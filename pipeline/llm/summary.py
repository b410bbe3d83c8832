"""What an asking came to: how many requests have an answer, why the others have none, and what it cost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.errors import Refused, Retry, UndertoneError
from pipeline.llm.asked import Asked
from pipeline.llm.ledger.cost import usd
from pipeline.llm.request import Request


@dataclass
class Summary:
    """Counts over one or several askings of a command. A request that is tried again counts once.

    `cost_usd` is None where a model has no price; `guessed_usd` is that part of it that no server counted.
    """

    max_cost: float | None = None
    answered: set[str] = field(default_factory=set)
    missing: dict[str, str] = field(default_factory=dict)  # the reason by key
    calls_sent: int = 0
    cost_usd: float | None = 0.0
    guessed_usd: float = 0.0
    guesses: Counter[str] = field(default_factory=Counter)
    error: UndertoneError | None = None

    def add(self, requests: Sequence[Request], asked: Asked) -> None:
        """Take in what became of some requests."""
        for request in requests:
            if request.key in asked.answers:
                self.answered.add(request._replace(attempt=0).key)
        for miss in asked.missing:
            self.missing[miss.request._replace(attempt=0).key] = miss.reason
        for key in self.answered & self.missing.keys():
            del self.missing[key]
        self.calls_sent += asked.calls_sent
        self.cost_usd = None if self.cost_usd is None or asked.cost_usd is None else self.cost_usd + asked.cost_usd
        self.guessed_usd += asked.guessed_usd
        self.guesses += asked.guesses
        self.error = self.error or asked.error

    @property
    def exit_code(self) -> int:
        """0 if all is answered, 1 if a part is, 3 if nothing is or the service refused."""
        if isinstance(self.error, Refused) or (self.missing and not self.answered):
            return Refused.exit_code
        return 1 if self.missing else 0

    def check(self) -> None:
        """Raise what ended the asking for good."""
        if self.error and not isinstance(self.error, Retry):
            raise self.error

    def reasons(self, most: int = 5) -> str:
        """Why requests have no answer, and how many, the most frequent first."""
        counts = Counter(self.missing.values())
        reasons = [f"{count:,} {reason}" for reason, count in counts.most_common(most)]
        rest = counts.total() - sum(count for _, count in counts.most_common(most))
        return "; ".join(reasons + ([f"{rest:,} for other reasons"] if rest else []))

    def as_dict(self) -> dict[str, object]:
        """The same for JSON."""
        return {
            "requests": len(self.answered) + len(self.missing), "answered": len(self.answered),
            "missing": len(self.missing), "why_missing": self.reasons(), "calls_sent": self.calls_sent,
            "cost_usd": self.cost_usd, "guessed_usd": self.guessed_usd, "why_guessed": dict(self.guesses),
            "max_cost": self.max_cost,
        }  # fmt: skip

    def sentence(self) -> str:
        """The same for people."""
        count = len(self.answered) + len(self.missing)
        text = f"{len(self.answered):,} of {count:,} requests have an answer, {self.calls_sent:,} calls were sent"
        if self.missing:
            text += f"; without one: {self.reasons()}"
        text += "; the model has no price" if self.cost_usd is None else f"; spent {usd(self.cost_usd)}"
        if self.max_cost is not None:
            text += f" of {usd(self.max_cost)}"
        if self.guesses:
            why = "; ".join(f"{count:,} times: {reason}" for reason, count in self.guesses.most_common(3))
            text += f"; {usd(self.guessed_usd)} of it is a guess, an upper bound ({why})"
        return text
