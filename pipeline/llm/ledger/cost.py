"""What asking costs: the price table, tokens by rule of thumb, and the estimate before anything is sent.

Prices are USD per million tokens, each with the day it was noted. A model that no table names has no price: its tokens
are counted and its cost is unknown, which is not zero.
"""

import datetime as dt
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from pipeline.errors import BadInput
from pipeline.llm.ledger import answers
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

    def cost(self, input_tokens: int, output_tokens: int, *, batch: bool = False) -> float:
        """USD for so many tokens."""
        return (self.input * input_tokens + self.output * output_tokens) / 1e6 * (self.batch if batch else 1.0)


class Estimate(NamedTuple):
    """What asking would take. Tokens are guessed from lengths; costs are None if a model has no price.

    `most_usd` is an upper bound: with a limit on cost as high, everything is asked.
    """

    requests: int
    cached: int
    to_send: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    most_usd: float | None


def prices(own: Path | None = None) -> dict[str, Price]:
    """The shipped prices, and over them those of a file of one's own."""
    return {**_read(SHIPPED), **(_read(own) if own else {})}


def price_of(model: str, table: Mapping[str, Price]) -> Price:
    """A model's price, or BadInput that says what to write where."""
    if model not in table:
        raise BadInput(
            f"there is no price for the model {model!r}, so a limit on cost cannot be kept. Write it into a file that "
            f'UNDERTONE_LLM_PRICES names: ["{model}"] input = 0.5, output = 1.5 (USD per million tokens), '
            f"noted = {dt.datetime.now(dt.UTC).date()}, each on a line of its own"
        )
    return table[model]


def usd(amount: float | None) -> str:
    """Dollars and cents, and three digits of an amount below one; without an exponent."""
    amount = amount or 0.0
    digits = 2 - math.floor(math.log10(amount)) if 0 < amount < 1 else 2
    return f"${amount:.{digits}f}"


def tokens(text: str) -> int:
    """Tokens of a text by rule of thumb: one a CJK character, one for four others. No tokenizer says exactly this."""
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // 4)


def input_tokens(request: Request) -> int:
    """Tokens of a request's messages by rule of thumb."""
    return sum(_PER_MESSAGE + tokens(str(message.get("content", ""))) for message in request.messages)


class Bill(NamedTuple):
    """What a call took: tokens where the server counted them, USD if the model has a price, and why that is a guess.

    `is_over` tells that the server counted more than the request allowed.
    """

    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    guess: str | None
    is_over: bool


def reserve(request: Request, price: Price, output_tokens: int | None = None, *, batch: bool = False) -> float:
    """USD to set aside for a request in flight: the most that it can cost."""
    return price.cost(*limits.bound(request, output_tokens), batch=batch)


def bill(
    request: Request, reply: Reply, price: Price | None, output_tokens: int | None = None, *, batch: bool = False
) -> Bill:
    """What a call took. Where the server does not count, or counts what cannot be, it is what was set aside.

    An error costs nothing, unless a model may have answered behind it; nor is it known of what was interrupted.
    """
    if reply.outcome not in ("answered", "malformed", "lost") and not reply.is_doubtful:
        return Bill(None, None, None if price is None else 0.0, None, is_over=False)
    most = limits.bound(request, output_tokens)
    guesses = [reply.usage_fault or ("no answer came, but perhaps it was billed" if reply.is_doubtful else "")]
    tokens: list[int | None] = []
    is_over = False
    for name, count, largest in zip(("input", "output"), (reply.input_tokens, reply.output_tokens), most, strict=True):
        if count is not None and count > largest:
            is_over = True
            guesses.append(f"{_short(count)} {name} tokens were counted, {largest:,} were possible")
        tokens.append(None if count is None else min(count, largest))
    billed = [largest if count is None else count for count, largest in zip(tokens, most, strict=True)]
    cost_usd = None if price is None else price.cost(*billed, batch=batch)
    return Bill(tokens[0], tokens[1], cost_usd, "; ".join(filter(None, guesses)) or None, is_over)


def _short(count: int) -> str:
    return f"{count:,}" if count < 10**12 else "over 10^12"


def estimate(
    requests: Iterable[Request],
    engine: sa.Engine,
    table: Mapping[str, Price],
    expected_output_tokens: int = EXPECTED_OUTPUT,
    *,
    batch: bool = False,
    output_tokens: int | None = None,
) -> Estimate:
    """What asking would take, without asking: nothing is sent, and equal requests count once."""
    count = to_send = tokens_in = tokens_out = 0
    spent: float | None = 0.0
    most: float | None = 0.0
    for part in answers.parts(requests):
        known = answers.answers(engine, part)
        count += len(part)
        for request in (r for key, r in part.items() if key not in known):
            expected = min(expected_output_tokens, limits.output_limit(request, output_tokens))
            given = input_tokens(request)
            to_send, tokens_in, tokens_out = to_send + 1, tokens_in + given, tokens_out + expected
            price = table.get(request.model)
            spent = None if spent is None or price is None else spent + price.cost(given, expected, batch=batch)
            bound = limits.bound(request, output_tokens)
            most = None if most is None or price is None else most + price.cost(*bound, batch=batch)
    return Estimate(count, count - to_send, to_send, tokens_in, tokens_out, spent, most)


def _read(path: Path) -> dict[str, Price]:
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as why:
        raise BadInput(f"{path}: cannot be read: {why.strerror}") from why
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as why:
        raise BadInput(f"{path}: no TOML: {why}") from why
    return {model: _price(entry, f"{path}, model {model!r}") for model, entry in text.items()}


def _price(entry: Any, where: str) -> Price:
    if not isinstance(entry, dict) or not isinstance(entry.get("noted"), dt.date):
        raise BadInput(f"{where}: should have input, output (USD per million tokens) and noted (a date)")
    return Price(
        _number(entry, "input", where), _number(entry, "output", where), entry["noted"],
        _number({"batch": 1.0, **entry}, "batch", where),
    )  # fmt: skip


def _number(entry: dict[str, Any], name: str, where: str) -> float:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise BadInput(f"{where}, field {name!r}: should be a number, not below 0")
    return float(value)
