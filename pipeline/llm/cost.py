"""What asking costs: the price table, tokens by rule of thumb, and the estimate before anything is sent.

Prices are USD per million tokens, each with the day it was noted. A model that no table names has no price: its tokens
are counted and its cost is unknown, which is not zero.
"""

import datetime as dt
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from pipeline.errors import BadInput
from pipeline.llm import ledger
from pipeline.llm.request import Request

SHIPPED = Path(__file__).with_name("prices.toml")
EXPECTED_OUTPUT = 128  # tokens of an answer, where nobody says better: a sentence or two
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
    """What asking would take. Tokens are guessed from lengths; cost is None if a model has no price."""

    requests: int
    cached: int
    to_send: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


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


def tokens(text: str) -> int:
    """Tokens of a text by rule of thumb: one a CJK character, one for four others. No tokenizer says exactly this."""
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // 4)


def input_tokens(request: Request) -> int:
    """Tokens of a request's messages by rule of thumb."""
    return sum(_PER_MESSAGE + tokens(str(message.get("content", ""))) for message in request.messages)


def output_limit(request: Request) -> int | None:
    """Tokens that the request itself allows its answer."""
    limits = [request.params.get(name) for name in ("max_completion_tokens", "max_tokens")]
    return min((limit for limit in limits if isinstance(limit, int)), default=None)


def reserve(request: Request, price: Price, expected_output: int = EXPECTED_OUTPUT, *, batch: bool = False) -> float:
    """USD to set aside for a request in flight: its own limit of output tokens, else those expected."""
    limit = output_limit(request)
    return price.cost(input_tokens(request), expected_output if limit is None else limit, batch=batch)


def estimate(
    requests: Iterable[Request],
    engine: sa.Engine,
    table: Mapping[str, Price],
    expected_output_tokens: int = EXPECTED_OUTPUT,
    *,
    batch: bool = False,
) -> Estimate:
    """What asking would take, without asking: nothing is sent, and equal requests count once."""
    count = to_send = tokens_in = tokens_out = 0
    usd: float | None = 0.0
    for part in ledger.parts(requests):
        known = ledger.answers(engine, part)
        count += len(part)
        for request in (r for key, r in part.items() if key not in known):
            limit = output_limit(request)
            expected = min(expected_output_tokens, limit) if limit is not None else expected_output_tokens
            given = input_tokens(request)
            to_send, tokens_in, tokens_out = to_send + 1, tokens_in + given, tokens_out + expected
            price = table.get(request.model)
            usd = None if usd is None or price is None else usd + price.cost(given, expected, batch=batch)
    return Estimate(count, count - to_send, to_send, tokens_in, tokens_out, usd)


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
