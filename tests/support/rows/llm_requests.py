"""Requests to the loopback service, and a call of the client with limits fit for tests."""

from collections.abc import Iterable
from datetime import date
from typing import Any

import sqlalchemy as sa

from pipeline.llm.client import ask
from pipeline.llm.ledger.cost import Budget, Price
from pipeline.llm.outcome import Outcome
from pipeline.llm.request import Request
from pipeline.llm.service.connection import Endpoint

KEY = "sk-a-secret-that-must-not-leak"
PRICE = Price(1.0, 2.0, date(2026, 1, 1), batch=0.5)  # a call of the server's 10 and 5 tokens costs $0.00002
PRICES = {"m": PRICE, "gpt-5": PRICE}


def build_request(text: str, model: str = "m", **fields: Any) -> Request:
    """Build a request about a text."""
    return Request(model, [{"role": "user", "content": text}], "p", "1", **{"params": {}, **fields})


def build_requests(count: int, model: str = "m", **params: Any) -> list[Request]:
    """Build so many different requests."""
    return [build_request(f"提示 {number}", model, params=params) for number in range(count)]


def build_budget(**options: Any) -> Budget:
    """Build the budget of a run with the prices above."""
    return Budget(**{"run_id": "run", "prices": PRICES, **options})


def send(
    requests: Iterable[Request], engine: sa.Engine, url: str | None, key: str | None = KEY, **options: Any
) -> Outcome:
    """Send requests with a time-out fit for tests; options are of the budget or of the client."""
    budget_options = {name: options.pop(name) for name in Budget.__dataclass_fields__ if name in options}
    endpoint = Endpoint(url, key) if url else None
    return ask(requests, engine, endpoint, build_budget(**budget_options), **{"timeout": 5.0, **options})


def count_claims(engine: sa.Engine) -> int:
    """Count the claims of a ledger."""
    with engine.connect() as con:
        return int(con.exec_driver_sql("select count(*) from claims").scalar() or 0)
