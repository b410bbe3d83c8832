"""The cost of requests: the price table, what a run may spend, and the estimate before anything is sent.

Prices are USD per million tokens. A model without a price has an unknown cost, which is not zero.
"""

import datetime as dt
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import BadInput
from pipeline.llm.request import Request
from pipeline.llm.service import limits
from pipeline.llm.service.replies import Reply

SHIPPED = Path(__file__).with_name("prices.toml")
EXPECTED_OUTPUT = 128  # tokens of an answer that an estimate counts on: a sentence or two
_PER_MESSAGE = 4  # tokens that role and separators take
_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


class Price(NamedTuple):
    """USD per million tokens, the day that was noted, and the share of it that a batch costs."""

    input: float
    output: float
    noted: dt.date
    batch: float = 1.0

    def cost(self, input_tokens: int, output_tokens: int, *, is_batch: bool = False) -> float:
        """Return the USD of some tokens."""
        return (self.input * input_tokens + self.output * output_tokens) / 1e6 * (self.batch if is_batch else 1.0)


class Call(NamedTuple):
    """A call that has ended. Its tokens are None unless the server counted them; its cost is None without a price."""

    key: str
    request: Request
    reply: Reply
    cost_usd: float | None
    mode: str = "live"
    guess: str | None = None  # why the cost is a guess
    is_over: bool = False  # the server counted more tokens than the request allowed


class Estimate(NamedTuple):
    """What requests would take, by lengths of texts; `most_usd` is an upper bound, costs are None without a price."""

    requests: int
    cached: int
    to_send: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    most_usd: float | None


def load_prices(path: Path | None = None) -> dict[str, Price]:
    """Load the shipped prices, and over them those of a file."""
    return {**_read(SHIPPED), **(_read(path) if path else {})}


@dataclass(frozen=True)
class Budget:
    """What a run may spend, over all its processes and attempts. BadInput: a limit on cost that limits nothing."""

    run_id: str
    prices: Mapping[str, Price] = field(default_factory=load_prices)
    output_tokens: int | None = None  # limit on an answer of requests without one; by default that of their prompt
    max_cost: float | None = None  # USD; each model needs a price then

    def __post_init__(self) -> None:
        if self.max_cost is not None and not 0 <= self.max_cost < math.inf:
            raise BadInput(f"the limit on cost should be a number of USD, not below 0, found {self.max_cost}")

    def reserve(self, request: Request, *, is_batch: bool = False) -> float:
        """Return the USD to set aside for a request in flight: the most that it can cost; 0 without a price."""
        limits.check_params(request)
        price = self.prices.get(request.model)
        if price is None and self.max_cost is not None:
            raise BadInput(describe_missing_price(request.model, "a limit on cost cannot be kept"))
        return price.cost(*limits.bound_tokens(request, self.output_tokens), is_batch=is_batch) if price else 0.0

    def bill(self, key: str, request: Request, reply: Reply, mode: str = "live") -> Call:
        """Return the call with its cost: the most where tokens are not counted or cannot be, nothing if not billed."""
        price = self.prices.get(request.model)
        if reply.outcome not in ("answered", "malformed", "lost") and not reply.is_doubtful:
            reply = reply._replace(input_tokens=None, output_tokens=None)
            return Call(key, request, reply, None if price is None else 0.0, mode)
        most = limits.bound_tokens(request, self.output_tokens)
        counts = (reply.input_tokens, reply.output_tokens)
        guesses = [reply.usage_fault or ("no answer came, but perhaps it was billed" if reply.is_doubtful else "")]
        excess = [
            f"{f'{count:,}' if count < 10**12 else 'over 10^12'} {name} tokens were counted, {largest:,} were possible"
            for name, count, largest in zip(("input", "output"), counts, most, strict=True)
            if count is not None and count > largest
        ]
        tokens = [None if count is None else min(count, largest) for count, largest in zip(counts, most, strict=True)]
        billed = [largest if count is None else count for count, largest in zip(tokens, most, strict=True)]
        cost_usd = None if price is None else price.cost(*billed, is_batch=mode == "batch")
        reply = reply._replace(input_tokens=tokens[0], output_tokens=tokens[1])
        guess = "; ".join(filter(None, [*guesses, *excess])) or None
        return Call(key, request, reply, cost_usd, mode, guess, bool(excess))


def describe_missing_price(model: str, effect: str) -> str:
    """Describe what it means that a model has no price, and where to write one."""
    return (
        f"there is no price for the model {model!r}, so {effect}. Write it into a file that UNDERTONE_LLM_PRICES "
        f'names: ["{model}"] input = 0.5, output = 1.5 (USD per million tokens), '
        f"noted = {dt.datetime.now(dt.UTC).date()}, each on a line of its own"
    )


def format_usd(amount: float | None) -> str:
    """Format dollars and cents, and three digits of an amount below one; without an exponent."""
    amount = amount or 0.0
    digits = 2 - math.floor(math.log10(amount)) if 0 < amount < 1 else 2
    return f"${amount:.{digits}f}"


def count_tokens(text: str) -> int:
    """Count tokens by rule of thumb: one a CJK character, one for four others. No tokenizer gives exactly this."""
    wide_count = len(_WIDE.findall(text))
    return wide_count + -(-(len(text) - wide_count) // 4)


def estimate(unanswered: Sequence[Request], cached: int, budget: Budget, *, is_batch: bool = False) -> Estimate:
    """Estimate what requests without an answer would take; `cached` others have one."""
    tokens = []
    for request in unanswered:
        size = sum(_PER_MESSAGE + count_tokens(str(message.get("content", ""))) for message in request.messages)
        tokens.append((size, min(EXPECTED_OUTPUT, limits.limit_output(request, budget.output_tokens))))
    input_tokens, output_tokens = (sum(pair[side] for pair in tokens) for side in (0, 1))
    prices = [price for request in unanswered if (price := budget.prices.get(request.model))]
    cost_usd = most_usd = None
    if len(prices) == len(unanswered):
        costs = [price.cost(*pair, is_batch=is_batch) for price, pair in zip(prices, tokens, strict=True)]
        cost_usd, most_usd = sum(costs, 0.0), sum((budget.reserve(r, is_batch=is_batch) for r in unanswered), 0.0)
    count = len(unanswered)
    return Estimate(cached + count, cached, count, input_tokens, output_tokens, cost_usd, most_usd)


def _read(path: Path) -> dict[str, Price]:
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as why:
        raise BadInput(f"{path}: cannot be read: {why.strerror}") from why
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as why:
        raise BadInput(f"{path}: no TOML: {why}") from why
    return {model: _read_price(entry, f"{path}, model {model!r}") for model, entry in entries.items()}


def _read_price(entry: Any, location: str) -> Price:
    if not isinstance(entry, dict) or not isinstance(entry.get("noted"), dt.date):
        raise BadInput(f"{location}: should have input, output (USD per million tokens) and noted (a date)")
    numbers: dict[str, Any] = {name: ({"batch": 1.0} | entry).get(name) for name in ("input", "output", "batch")}
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise BadInput(f"{location}, field {name!r}: should be a number, not below 0")
    return Price(noted=entry["noted"], **{name: float(value) for name, value in numbers.items()})
