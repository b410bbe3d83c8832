"""What tests of requests share: a ledger of their own, and servers that are stopped."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pipeline.llm.ledger import answers
from tests.support.servers.llm_server import Faults, Server


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    """Open a new ledger."""
    yield answers.open_ledger(f"sqlite:///{tmp_path}/ledger.db")
    answers.close()


@pytest.fixture
def served() -> Iterator[Callable[..., Server]]:
    """Start servers, and stop them all."""
    servers: list[Server] = []

    def start(faults: Faults | None = None, **options: Any) -> Server:
        servers.append(Server(faults or Faults(), **options).__enter__())
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__(None, None, None)
