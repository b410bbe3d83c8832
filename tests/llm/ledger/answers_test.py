"""The ledger: who may ask what, and what was answered, on SQLite and on PostgreSQL."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest
import sqlalchemy as sa

from pipeline.errors import BadInput, Missing
from pipeline.llm import client
from pipeline.llm.ledger import answers, cost, owners, tables
from pipeline.llm.ledger.answers import Call
from pipeline.llm.request import Request, as_json
from pipeline.llm.service import connection
from pipeline.llm.service.replies import Reply
from tests.support import postgres

server = postgres.server  # a throw-away PostgreSQL, skipped where there is none
Open = Callable[[], sa.Engine]
GONE = "elsewhere"


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    """An empty ledger."""
    uri = f"sqlite:///{tmp_path}/deep/ledger.db" if request.param == "sqlite" else request.getfixturevalue("server")
    yield (found := answers.opened(uri))
    if request.param == "postgresql":
        tables.META.drop_all(found)
    answers.close()


def asking(*texts: str) -> dict[str, Request]:
    """Requests by key."""
    made = [Request("m", [{"role": "user", "content": text}], "p", "1", {"t": 0}) for text in texts]
    return {request.key: request for request in made}


def take(
    engine: sa.Engine, wanted: dict[str, Request], owner: str, lease: float = 60, **other: object
) -> answers.Claimed:
    """What claiming gives, with a reserve of $1 each."""
    return answers.claim(engine, wanted, dict.fromkeys(wanted, 1.0), owner, "run", lease, **other)[0]


def ended(key: str, request: Request, outcome: str = "answered", text: str = "yes", usd: float | None = 0.5) -> Call:
    """A call that has ended."""
    response = text if outcome == "answered" else None
    return Call(key, request, Reply(outcome, response, "m1", "stop", 3, 2, 200, ended_at=1.0), usd)


def test_answers_come_back(engine: sa.Engine) -> None:
    """What is recorded is found by its key, in any script and at any number; what is not recorded is not."""
    wanted = asking(*(f"字 {i}" for i in range(1_200)))
    answers.record(engine, [ended(k, r, text="好'\"\\\n\u2028") for k, r in wanted.items()], "me", "run")
    found = answers.answers(engine, [*wanted, "0" * 64])
    assert found.keys() == wanted.keys()
    key = next(iter(wanted))
    assert found[key] == answers.Answer(key, "好'\"\\\n\u2028", "live", "m1", "stop", 3, 2)
    assert answers.answers(engine, []) == {}


def test_the_first_answer_stays(engine: sa.Engine) -> None:
    """A second answer to a key, in the same breath or later, is counted as a call and changes nothing."""
    ((key, request),) = asking("a").items()
    answers.record(engine, [ended(key, request, text="1"), ended(key, request, text="2")], "me", "run")
    answers.record(engine, [ended(key, request, text="3")], "me", "run")
    assert answers.answers(engine, [key])[key].response == "1"
    assert answers.spending(engine).calls == 3


def test_one_owner_at_a_time(engine: sa.Engine) -> None:
    """What one has claimed another does not get, until it is released or recorded as no answer."""
    wanted = asking("a", "b")
    key, other = wanted
    assert take(engine, wanted, GONE + ":1") == ([key, other], {}, [], {})
    assert take(engine, wanted, GONE + ":2") == ([], dict.fromkeys(wanted, GONE + ":1"), [], {})
    answers.record(engine, [ended(key, wanted[key], "failed")], GONE + ":1", "run")
    assert take(engine, wanted, GONE + ":2").mine == [key]
    assert answers.release(engine, GONE + ":1") == 1
    assert take(engine, wanted, GONE + ":2").mine == [other]


def test_an_answered_key_is_not_claimed(engine: sa.Engine) -> None:
    """The transaction that claims is the one that looks for answers."""
    wanted = asking("a", "b")
    key, other = wanted
    answers.record(engine, [ended(key, wanted[key])], "me", "run")
    claimed, known = answers.claim(engine, wanted, dict.fromkeys(wanted, 0.0), "me", "run", 60)
    assert claimed.mine == [other]
    assert known.keys() == {key}


def test_a_lease_ends(engine: sa.Engine) -> None:
    """A claim of another machine is taken over after its lease, and its call is counted as lost, perhaps paid."""
    wanted = asking("a")
    take(engine, wanted, GONE + ":1", lease=0.2)
    assert take(engine, wanted, owners.me()).mine == []
    time.sleep(0.3)
    assert take(engine, wanted, owners.me()).mine == list(wanted)
    assert answers.spending(engine) == answers.Spending(1, 0, 1, 0, 0, 1.0, 1.0)


def test_what_a_dead_process_may_have_spent_is_booked(engine: sa.Engine) -> None:
    """A run that its limit ends books the claims of a dead process as lost calls, and leaves those of a living one."""
    wanted = asking("a", "b")
    dead, living = wanted
    take(engine, {dead: wanted[dead]}, GONE + ":1", lease=-1)
    take(engine, {living: wanted[living]}, owners.me())
    asked = client.ask(
        wanted.values(), engine, connection.Endpoint("http://127.0.0.1:9/v1", "key"), run_id="run", max_cost=0.0,
        prices={"m": cost.Price(1.0, 2.0, date(2026, 1, 1))},
    )  # fmt: skip
    assert (asked.is_limited, asked.calls_sent) == (True, 0)
    assert answers.spending(engine, "run") == answers.Spending(1, 0, 1, 0, 0, 1.0, 1.0)
    assert take(engine, wanted, owners.me()).mine == [dead]


def test_a_dead_process_of_this_machine_is_taken_over_at_once(engine: sa.Engine) -> None:
    """No lease is waited for where the process is known to be gone; while it lives its claim holds."""
    code = "import sys; from pipeline.llm.ledger import owners; print(owners.me(), flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert child.stdout is not None
    owner = child.stdout.readline().strip()
    wanted = asking("a")
    take(engine, wanted, owner)
    assert not owners.is_gone(owner)
    assert take(engine, wanted, owners.me()).mine == []
    child.kill()
    time.sleep(0.2)
    assert owners.is_gone(owner)  # a zombie, not yet waited for
    child.communicate()
    assert owners.is_gone(owner)
    assert take(engine, wanted, owners.me()).mine == list(wanted)


def test_a_process_id_used_again_is_another_process() -> None:
    """An owner is known by its process's start too."""
    mine = owners.me()
    machine, pid, started, nonce = mine.split(":")
    assert not owners.is_gone(mine)
    assert owners.is_gone(f"{machine}:{pid}:1{started}:{nonce}")
    assert not owners.is_gone(f"other:{pid}:1{started}:{nonce}")


def test_what_was_asked_in_vain_is_not_claimed(engine: sa.Engine) -> None:
    """Malformed three times in all runs, or rejected at last, a request is not asked again; what failed for now is."""
    wanted = asking("often malformed", "twice malformed", "rejected", "rejected once", "failed")
    often, twice, rejected, once, failed = wanted
    for outcomes in (
        {often: "malformed", twice: "malformed", once: "rejected", failed: "failed"},
        {often: "malformed", twice: "malformed", rejected: "failed", failed: "failed"},
        {often: "malformed", rejected: "rejected", once: "failed", failed: "failed"},
    ):
        answers.record(engine, [ended(k, wanted[k], outcome) for k, outcome in outcomes.items()], "x:1", "run")
    told = answers.vain(engine, list(wanted))
    assert told.keys() == {often, rejected}
    assert told[often].startswith("malformed 3 times")
    assert told[rejected].startswith("rejected")
    claimed = take(engine, wanted, "x:2")
    assert (claimed.mine, claimed.vain) == ([twice, once, failed], told)


def test_the_limit_counts_what_is_spent_and_what_is_set_aside(engine: sa.Engine) -> None:
    """Claims beyond the run's limit are not made; an answer frees the difference; other runs do not count."""
    wanted = asking("a", "b", "c", "d")
    a, b, c, d = wanted
    assert take(engine, wanted, "x:1", limit=2.5) == ([a, b], {}, [c, d], {})
    assert take(engine, {c: wanted[c]}, "x:2", limit=2.5).over == [c]
    answers.record(engine, [ended(a, wanted[a], usd=0.5)], "x:1", "run")
    assert take(engine, {c: wanted[c], d: wanted[d]}, "x:2", limit=2.5) == ([c], {}, [d], {})
    one = {d: wanted[d]}
    assert answers.claim(engine, one, {d: 1.0}, "x:3", "another run", 60, limit=1.0)[0].mine == [d]


def test_spending_by_run(engine: sa.Engine) -> None:
    """Sums are by run and overall; a call without a price counts its tokens alone."""
    wanted = asking("a", "b", "c")
    a, b, c = wanted
    answers.record(engine, [ended(a, wanted[a], usd=0.5), ended(b, wanted[b], "failed", usd=0.0)], "me", "one")
    answers.record(engine, [ended(c, wanted[c], usd=None)], "me", "two")
    assert answers.spending(engine, "one") == answers.Spending(2, 1, 2, 6, 4, 0.5)
    assert answers.spending(engine, "two") == answers.Spending(1, 1, 0, 3, 2, 0.0)
    assert answers.spending(engine) == answers.Spending(3, 2, 2, 9, 6, 0.5)
    assert answers.spending(engine, "none") == answers.Spending(0, 0, 0, 0, 0, 0.0)


def test_many_at_once_never_claim_the_same(engine: sa.Engine) -> None:
    """Eight threads that want the same keys get each key exactly once between them."""
    wanted = asking(*(str(i) for i in range(120)))
    got: list[str] = []

    def work(number: int) -> None:
        keys = list(wanted)
        for start in range(0, len(keys), 10):
            part = {key: wanted[key] for key in keys[start : start + 10][:: 1 if number % 2 else -1]}
            got.extend(take(engine, part, f"x:{number}").mine)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(wanted)


def test_claims_can_keep_their_requests(engine: sa.Engine) -> None:
    """A batch's claims hold what is needed to file its answers later."""
    wanted = asking("a", "b")
    take(engine, wanted, "batch:1", keep_requests=True)
    take(engine, asking("c"), "x:1")
    assert answers.held(engine, "batch:1") == wanted
    assert answers.held(engine, "x:1") == {}
    request = next(iter(wanted.values()))
    assert Request.from_json(as_json(request._asdict())).key == request.key


def test_one_engine_a_process(tmp_path: Path) -> None:
    """A ledger is opened once, with what it needs made, and again after it was closed."""
    uri = f"sqlite:///{tmp_path}/new/ledger.db"
    first = answers.opened(uri)
    assert answers.opened(uri) is first
    with first.connect() as con:
        assert con.exec_driver_sql("pragma journal_mode").scalar() == "wal"
        names = set(con.exec_driver_sql("select name from sqlite_master where type = 'table'").scalars())
    assert names == {"answers", "calls", "claims", "batches"}
    answers.close()
    assert answers.opened(uri) is not first
    answers.close()


def test_made_by_many_processes_at_once(tmp_path: Path) -> None:
    """Processes that open a new ledger together all find it whole."""
    code = f"from pipeline.llm.ledger import answers; answers.opened('sqlite:///{tmp_path}/ledger.db'); answers.close()"
    children = [subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[3]) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4


def test_an_address_that_cannot_be_opened(tmp_path: Path) -> None:
    """A ledger that cannot be opened is Missing, and the message does not hold the password of its address."""
    (tmp_path / "file").touch()
    with pytest.raises(Missing, match="cannot be opened"):
        answers.opened(f"sqlite:///{tmp_path}/file/ledger.db")
    with pytest.raises(Missing, match="cannot be opened") as raised:
        answers.opened("postgresql+psycopg2://me:secret@127.0.0.1:1/none")
    assert "secret" not in str(raised.value)
    for address in ("nonsense://x", "me:secret@host", "postgresql+psycopg2://me:secret@host:port/none"):
        with pytest.raises(BadInput, match="should be one for SQLAlchemy, such as sqlite:") as refused:
            answers.opened(address)
        assert "secret" not in f"{refused.value}{refused.value.__cause__}"


def test_a_fork_opens_its_own(tmp_path: Path) -> None:
    """An engine is kept by process, so a child does not use its parent's connections."""
    uri = f"sqlite:///{tmp_path}/ledger.db"
    answers.opened(uri)
    assert [pid for pid, _ in answers._engines] == [os.getpid()]
    answers.close()
    assert answers._engines == {}
