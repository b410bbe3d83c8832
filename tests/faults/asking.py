"""A process of its own that asks a language model, so that tests can kill it.

Started as `python asking.py LEDGER URL COUNT CONCURRENCY`; it asks for `hint 0` to `hint COUNT-1` and says how many
answers it has.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[2]

if TYPE_CHECKING:
    from pipeline.llm.request import Request


def start(ledger_uri: str, url: str, count: int, concurrency: int) -> "subprocess.Popen[str]":
    """A process that asks."""
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), ledger_uri, url, str(count), str(concurrency)],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ),
    )  # fmt: skip


def requests(count: int) -> "Iterator[Request]":
    """What it asks."""
    from pipeline.llm.request import Request

    return (Request("m", [{"role": "user", "content": f"hint {i}"}], "p", "1", {}) for i in range(count))


def main() -> None:
    """Ask until all is answered."""
    sys.path[:0] = [str(ROOT)]
    from pipeline.llm import client, ledger

    uri, url, count, concurrency = sys.argv[1:]
    asked = client.ask(
        requests(int(count)), ledger.opened(uri), client.Endpoint(url, "key"), run_id="run",
        concurrency=int(concurrency), timeout=10.0,
    )  # fmt: skip
    ledger.close()
    sys.stdout.write(f"{len(asked.answers)} answers, {asked.calls_sent} calls\n")


if __name__ == "__main__":
    main()
