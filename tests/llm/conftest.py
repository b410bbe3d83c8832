"""What tests of asking share: a ledger of their own, and servers that are stopped."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pipeline.llm.ledger import answers
from tests.support.llm_server import Faults, Server


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    """A ledger of its own."""
    yield answers.opened(f"sqlite:///{tmp_path}/ledger.db")
    answers.close()


@pytest.fixture
def served() -> Iterator[Callable[..., Server]]:
    """Starts servers, and stops them all."""
    running: list[Server] = []

    def start(faults: Faults | None = None, **given: Any) -> Server:
        server = Server(faults or Faults(), **given).__enter__()
        running.append(server)
        return server

    yield start
    for server in running:
        server.__exit__(None, None, None)
