"""Asking a language model survives kill -9: what was answered stays, and is never paid for again."""

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.llm.ledger import answers
from tests.faults.asking import make_requests, start
from tests.support.servers.biller import Biller
from tests.support.servers.llm_server import Faults, Server

CONCURRENCY = 8


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that takes its time, and fails now and then."""
    with Server(Faults(too_many=0.02, broken=0.01, malformed=0.02, seconds=0.03)) as running:
        yield running


def wait(served: int, server: Server) -> None:
    """Wait until the server has served so many in all."""
    limit = time.monotonic() + 300  # processes start slowly on a busy machine
    while server.served.total() < served and time.monotonic() < limit:
        time.sleep(0.002)
    assert server.served.total() >= served


def test_two_processes_pay_once(server: Server, tmp_path: Path) -> None:
    """Two processes that ask the same at once share the work: each request is answered once, and both have all."""
    uri = f"sqlite:///{tmp_path}/ledger.db"
    children = [start(uri, server.url, 200, CONCURRENCY) for _ in range(2)]
    lines = [child.communicate()[0] for child in children]
    assert [line.split(",")[0] for line in lines] == ["200 answers"] * 2
    calls = [int(line.split()[2]) for line in lines]
    assert (server.paid, server.sent_after_success) == (0, [])
    assert sum(calls) == 200 + server.kinds["malformed"] + server.kinds["broken"]
    assert len(answers.look_up(answers.open_ledger(uri), [r.key for r in make_requests(200)])[0]) == 200
    answers.close()


def test_the_other_goes_on_where_one_is_killed(server: Server, tmp_path: Path) -> None:
    """A process that waits for what a killed one was asking asks it itself, without waiting for a lease."""
    uri = f"sqlite:///{tmp_path}/ledger.db"
    children = [start(uri, server.url, 200, CONCURRENCY) for _ in range(2)]
    wait(60, server)
    children[0].kill()
    children[0].communicate()
    assert children[1].communicate()[0].startswith("200 answers, ")
    assert server.paid <= CONCURRENCY


def test_processes_of_one_run_keep_its_limit_through_a_kill(tmp_path: Path) -> None:
    """Two processes share a run and its limit, one is killed, another comes after: what is billed stays below."""
    uri, limit = f"sqlite:///{tmp_path}/ledger.db", 0.02
    shares = {"answered": 0.8, "malformed": 0.1, "cut": 0.1}
    with Biller(Faults(seconds=0.02), chance=random.Random(5), shares=shares) as server:
        children = [start(uri, server.url, 400, 16, limit) for _ in range(2)]
        wait(10, server)
        children[0].kill()
        for child in children:
            child.communicate(timeout=300)
        start(uri, server.url, 400, 16, limit).communicate(timeout=300)
    spent = answers.sum_spending(answers.open_ledger(uri), "run")
    answers.close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as con:
        assert con.execute("select count(*) from claims").fetchone() == (0,)
        lost = con.execute("select coalesce(sum(cost_usd), 0) from calls where outcome = 'lost'").fetchone()[0]
    # what the dead process had set aside counts as spent, and may not have reached the service
    assert 0.5 * (limit - lost) < server.billed_usd <= spent.cost_usd <= limit
