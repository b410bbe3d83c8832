"""A process of its own that asks for hints: `python asking.py LEDGER URL COUNT CONCURRENCY [USD]`."""

import datetime as dt
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[2]

if TYPE_CHECKING:
    from pipeline.llm.request import Request


def start(
    ledger_uri: str, url: str, count: int, concurrency: int, max_cost: float | None = None
) -> "subprocess.Popen[str]":
    """Start a process that asks."""
    words: list[object] = [sys.executable, Path(__file__).resolve(), ledger_uri, url, count, concurrency]
    limit = [] if max_cost is None else [max_cost]
    return subprocess.Popen([str(word) for word in (*words, *limit)], stdout=subprocess.PIPE, text=True, cwd=ROOT)


def make_requests(count: int) -> "Iterator[Request]":
    """Make the requests that it sends."""
    from pipeline.llm.request import Request

    return (Request("m", [{"role": "user", "content": f"hint {i}"}], "p", "1", {}) for i in range(count))


def main() -> None:
    """Ask until all is answered."""
    sys.path[:0] = [str(ROOT)]
    from pipeline.llm import client
    from pipeline.llm.ledger import answers
    from pipeline.llm.ledger.cost import Budget, Price
    from pipeline.llm.service import connection

    uri, url, count, concurrency, *limit = sys.argv[1:]
    prices = {"m": Price(1.0, 2.0, dt.date(2026, 1, 1))}
    budget = Budget("run", prices, output_tokens=200, max_cost=float(limit[0]) if limit else None)
    ledger, endpoint = answers.open_ledger(uri), connection.Endpoint(url, "key")
    result = client.ask(make_requests(int(count)), ledger, endpoint, budget, concurrency=int(concurrency), timeout=10.0)
    answers.close()
    sys.stdout.write(f"{len(result.answers)} answers, {result.calls_sent} calls\n")


if __name__ == "__main__":
    main()
