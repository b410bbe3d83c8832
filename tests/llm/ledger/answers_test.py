"""The ledger: who may send what, and what was answered, on SQLite and on PostgreSQL."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import sqlalchemy as sa

from pipeline.errors import BadInput, Missing
from pipeline.llm.ledger import answers, tables
from pipeline.llm.ledger.cost import Budget, Call
from pipeline.llm.request import Request
from pipeline.llm.service.replies import Reply
from tests.support.rows.llm_requests import build_request, send
from tests.support.servers import postgres

server = postgres.server  # a throw-away PostgreSQL, skipped where there is none
Open = Callable[[], sa.Engine]
REMOTE = "elsewhere"  # another machine


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    """Open an empty ledger."""
    uri = f"sqlite:///{tmp_path}/deep/ledger.db" if request.param == "sqlite" else request.getfixturevalue("server")
    ledger = answers.open_ledger(uri)
    yield ledger
    if request.param == "postgresql":
        tables.META.drop_all(ledger)
    answers.close()


class OneDollar(Budget):
    """A budget by which each request may cost $1."""

    def reserve(self, request: Request, *, is_batch: bool = False) -> float:  # noqa: ARG002
        return 1.0


def build(*texts: str) -> dict[str, Request]:
    """Build requests by key."""
    return {request.key: request for request in map(build_request, texts)}


def claim(
    engine: sa.Engine, requests: Mapping[str, Request], owner: str, lease: float = 60, run_id: str = "run",
    limit: float | None = None,
) -> answers.Claims:  # fmt: skip
    """Claim requests, with a reserve of $1 each."""
    return answers.claim(engine, requests, OneDollar(run_id, {}, max_cost=limit), owner, lease)


def ended(key: str, request: Request, outcome: str = "answered", text: str = "yes", usd: float | None = 0.5) -> Call:
    """A call that has ended."""
    response = text if outcome == "answered" else None
    return Call(key, request, Reply(outcome, response, "m1", "stop", 3, 2, 200, ended_at=1.0), usd)


def test_answers_come_back(engine: sa.Engine) -> None:
    """What is recorded is found by its key, in any script and at any number; what is not recorded is not."""
    requests = build(*(f"字 {i}" for i in range(1_200)))
    answers.record(engine, [ended(k, r, text="好'\"\\\n\u2028") for k, r in requests.items()], "me", "run")
    recorded, _ = answers.look_up(engine, [*requests, "0" * 64])
    assert recorded.keys() == requests.keys()
    key = next(iter(requests))
    assert recorded[key] == answers.Answer(key, "好'\"\\\n\u2028", "live", "m1", "stop", 3, 2)
    assert answers.look_up(engine, []) == ({}, {})


def test_the_first_answer_stays(engine: sa.Engine) -> None:
    """A second answer to a key, in the same breath or later, is counted as a call and changes nothing."""
    ((key, request),) = build("a").items()
    answers.record(engine, [ended(key, request, text="1"), ended(key, request, text="2")], "me", "run")
    answers.record(engine, [ended(key, request, text="3")], "me", "run")
    assert answers.look_up(engine, [key])[0][key].response == "1"
    assert answers.sum_spending(engine).calls == 3


def test_one_owner_at_a_time(engine: sa.Engine) -> None:
    """What one has claimed another does not get, until it is released or recorded as no answer."""
    requests = build("a", "b")
    key, other = requests
    assert claim(engine, requests, REMOTE + ":1") == ([key, other], {}, {}, {}, [])
    assert claim(engine, requests, REMOTE + ":2") == ([], {}, {}, dict.fromkeys(requests, REMOTE + ":1"), [])
    answers.record(engine, [ended(key, requests[key], "failed")], REMOTE + ":1", "run")
    assert claim(engine, requests, REMOTE + ":2").claimed == [key]
    with answers.write_transaction(engine) as con:
        assert answers.release(con, REMOTE + ":1") == 1
    assert claim(engine, requests, REMOTE + ":2").claimed == [other]


def test_a_lease_ends(engine: sa.Engine) -> None:
    """A claim of another machine is taken over after its lease, and its call is counted as lost, perhaps paid."""
    requests = build("a")
    claim(engine, requests, REMOTE + ":1", lease=0.2)
    assert claim(engine, requests, tables.create_name()).claimed == []
    time.sleep(0.3)
    assert claim(engine, requests, tables.create_name()).claimed == list(requests)
    assert answers.sum_spending(engine) == answers.Spending(1, 0, 1, 0, 0, 1.0, 1.0)


def test_what_a_dead_process_may_have_spent_is_booked(engine: sa.Engine) -> None:
    """A run that its limit ends books the claims of a dead process as lost calls, and leaves those of a living one."""
    requests = build("a", "b")
    dead, living = requests
    claim(engine, {dead: requests[dead]}, REMOTE + ":1", lease=-1)
    claim(engine, {living: requests[living]}, tables.create_name())
    outcome = send(requests.values(), engine, "http://127.0.0.1:9/v1", max_cost=0.0)
    assert (outcome.is_limited, outcome.calls_sent) == (True, 0)
    assert answers.sum_spending(engine, "run") == answers.Spending(1, 0, 1, 0, 0, 1.0, 1.0)
    assert claim(engine, requests, tables.create_name()).claimed == [dead]


def test_a_dead_process_of_this_machine_is_taken_over_at_once(engine: sa.Engine) -> None:
    """No lease is waited for where the process is known to be gone; while it lives its claim holds."""
    code = (
        "import sys; from pipeline.llm.ledger import tables; print(tables.create_name(), flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[3], **pipes)
    assert child.stdout is not None
    owner = child.stdout.readline().strip()
    requests = build("a")
    claim(engine, requests, owner)
    assert not tables.has_ended(owner)
    assert claim(engine, requests, tables.create_name()).claimed == []
    child.kill()
    time.sleep(0.2)
    assert tables.has_ended(owner)  # a zombie, not yet waited for
    child.communicate()
    assert tables.has_ended(owner)
    assert claim(engine, requests, tables.create_name()).claimed == list(requests)


def test_a_process_id_used_again_is_another_process() -> None:
    """An owner is known by its process's start too."""
    name = tables.create_name()
    machine, pid, started, nonce = name.split(":")
    assert not tables.has_ended(name)
    assert tables.has_ended(f"{machine}:{pid}:1{started}:{nonce}")
    assert not tables.has_ended(f"other:{pid}:1{started}:{nonce}")


def test_spending_by_run(engine: sa.Engine) -> None:
    """Sums are by run and overall; a call without a price counts its tokens alone."""
    requests = build("a", "b", "c")
    a, b, c = requests
    answers.record(engine, [ended(a, requests[a], usd=0.5), ended(b, requests[b], "failed", usd=0.0)], "me", "one")
    answers.record(engine, [ended(c, requests[c], usd=None)], "me", "two")
    assert answers.sum_spending(engine, "one") == answers.Spending(2, 1, 2, 6, 4, 0.5)
    assert answers.sum_spending(engine, "two") == answers.Spending(1, 1, 0, 3, 2, 0.0)
    assert answers.sum_spending(engine) == answers.Spending(3, 2, 2, 9, 6, 0.5)
    assert answers.sum_spending(engine, "none") == answers.Spending(0, 0, 0, 0, 0, 0.0)


def test_many_at_once_never_claim_the_same(engine: sa.Engine) -> None:
    """Eight threads that want the same keys get each key exactly once between them."""
    requests = build(*(str(i) for i in range(120)))
    claimed: list[str] = []

    def work(number: int) -> None:
        keys = list(requests)
        for start in range(0, len(keys), 10):
            part = {key: requests[key] for key in keys[start : start + 10][:: 1 if number % 2 else -1]}
            claimed.extend(claim(engine, part, f"x:{number}").claimed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == sorted(requests)


def test_claims_of_a_batch_hold_its_requests(engine: sa.Engine) -> None:
    """A batch's claims hold what is needed to file its answers later."""
    requests = build("a", "b")
    claim(engine, requests, "batch:1")
    claim(engine, build("c"), "x:1")
    assert answers.load_claimed(engine, "batch:1") == requests
    assert answers.load_claimed(engine, "x:1") == {}


def test_one_engine_a_process(tmp_path: Path) -> None:
    """A ledger is opened once, with what it needs made, and again after it was closed."""
    uri = f"sqlite:///{tmp_path}/new/ledger.db"
    first = answers.open_ledger(uri)
    assert answers.open_ledger(uri) is first
    assert [pid for pid, _ in answers._engines] == [os.getpid()]  # a fork does not use its parent's connections
    with first.connect() as con:
        assert con.exec_driver_sql("pragma journal_mode").scalar() == "wal"
        names = set(con.exec_driver_sql("select name from sqlite_master where type = 'table'").scalars())
    assert names == {"answers", "calls", "claims", "batches"}
    answers.close()
    assert answers._engines == {}
    assert answers.open_ledger(uri) is not first
    answers.close()


def test_made_by_many_processes_at_once(tmp_path: Path) -> None:
    """Processes that open a new ledger together all find it whole."""
    uri = f"sqlite:///{tmp_path}/ledger.db"
    code = f"from pipeline.llm.ledger import answers; answers.open_ledger({uri!r}); answers.close()"
    children = [subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[3]) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4


def test_an_address_that_cannot_be_opened(tmp_path: Path) -> None:
    """A ledger that cannot be opened is Missing, and the message does not hold the password of its address."""
    (tmp_path / "file").touch()
    with pytest.raises(Missing, match="cannot be opened"):
        answers.open_ledger(f"sqlite:///{tmp_path}/file/ledger.db")
    with pytest.raises(Missing, match="cannot be opened") as raised:
        answers.open_ledger("postgresql+psycopg2://me:secret@127.0.0.1:1/none")
    assert "secret" not in str(raised.value)
    for address in ("nonsense://x", "me:secret@host", "postgresql+psycopg2://me:secret@host:port/none"):
        with pytest.raises(BadInput, match="should be one for SQLAlchemy, such as sqlite:") as refused:
            answers.open_ledger(address)
        assert "secret" not in f"{refused.value}{refused.value.__cause__}"
