"""Batches: handed over once, collected into the ledger, and the same files carried by hand."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pipeline.errors import BadInput, Refused, Retry
from pipeline.llm import asked, batch, client
from pipeline.llm.ledger import answers, owners, tables
from pipeline.llm.ledger.cost import Price
from pipeline.llm.request import Request
from pipeline.llm.service import limits
from pipeline.llm.service.connection import Endpoint
from tests.support.llm_server import Server, chat

PRICES = {"m": Price(1.0, 2.0, date(2026, 1, 1), batch=0.5)}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    """A ledger of its own."""
    yield answers.opened(f"sqlite:///{tmp_path}/ledger.db")
    answers.close()


@pytest.fixture
def server() -> Iterator[Server]:
    """A server whose batches end at once."""
    with Server() as running:
        yield running


def requests(count: int, model: str = "m", **params: Any) -> list[Request]:
    """So many different requests."""
    return [Request(model, [{"role": "user", "content": f"提示 {i}"}], "p", "1", params) for i in range(count)]


def submit(wanted: list[Request], engine: sa.Engine, server: Server, **other: Any) -> list[str]:
    """Hand over, with waits fit for tests."""
    given = {"run_id": "run", "prices": PRICES, "settle": 0.2, "max_retries": 1, "timeout": 5.0} | other
    return batch.submit(wanted, engine, Endpoint(server.url, "key"), **given)


def collect(engine: sa.Engine, server: Server) -> list[batch.Batch]:
    """Collect, with waits fit for tests."""
    return batch.collect(engine, Endpoint(server.url, "key"), prices=PRICES, settle=0.2, max_retries=1, timeout=5.0)


def live(wanted: list[Request], engine: sa.Engine, server: Server) -> asked.Asked:
    """Ask at once."""
    return client.ask(wanted, engine, Endpoint(server.url, "key"), run_id="live", prices=PRICES, timeout=5.0)


def states(engine: sa.Engine) -> list[str]:
    """The states of all batches."""
    with engine.connect() as con:
        return sorted(con.execute(sa.select(tables.batches.c.state)).scalars())


def claims(engine: sa.Engine) -> int:
    """How many requests are claimed."""
    with engine.connect() as con:
        return int(con.exec_driver_sql("select count(*) from claims").scalar() or 0)


def test_there_and_back(engine: sa.Engine, server: Server) -> None:
    """What is handed over comes back as answers of the same ledger, at half the price, filed under the run."""
    live(requests(2), engine, server)
    (id_,) = submit(requests(10, temperature=0.5)[:5] + requests(4), engine, server)
    entry = json.loads(server.files[server.batches[next(iter(server.batches))]["input_file_id"]].splitlines()[0])
    wanted = requests(1, temperature=0.5)[0]
    assert entry == {
        "custom_id": wanted.key, "method": "POST", "url": "/v1/chat/completions",
        "body": {"model": "m", "messages": wanted.messages, "temperature": 0.5, "max_tokens": limits.OUTPUT_TOKENS},
    }  # fmt: skip
    assert next(iter(server.batches.values()))["metadata"] == {"undertone": id_, "run_id": "run"}
    assert collect(engine, server) == [batch.Batch(id_, "completed", 7, 7, 0)]
    assert collect(engine, server) == []
    found = answers.answers(engine, [wanted.key])[wanted.key]
    assert (found.response, found.mode) == ("answer to 提示 0", "batch")
    assert answers.spending(engine, "run") == answers.Spending(7, 7, 7, 70, 35, pytest.approx(7 * 0.00001))
    assert claims(engine) == 0
    assert live(requests(4), engine, server).calls_sent == 0


def test_what_is_in_a_batch_is_not_asked_beside_it(engine: sa.Engine, server: Server) -> None:
    """While a batch is out, neither a live run nor another batch pays for its requests."""
    server.finish_batches = False
    (id_,) = submit(requests(3), engine, server)
    asked = live(requests(4), engine, server)
    assert (len(asked.answers), len(asked.missing)) == (1, 3)
    assert {miss.reason for miss in asked.missing} == {f"in batch {id_}; collect it"}
    assert submit(requests(3), engine, server) == [id_]
    assert len(server.batches) == 1
    assert collect(engine, server) == [batch.Batch(id_, "in_progress", 3, 0, 0)]
    server.finish(next(iter(server.batches.values())))
    assert collect(engine, server)[0].answered == 3
    assert submit(requests(3), engine, server) == []


def test_what_a_batch_leaves_is_open_again(engine: sa.Engine, server: Server) -> None:
    """Lines with errors, malformed lines and absent lines are counted, freed, and answered by asking again."""
    server.errors = {"提示 0": (500, {"error": {"message": "oops"}}), "提示 1": (200, {"choices": []})}
    server.unanswered = {"提示 2"}
    server.batch_status = "expired"
    submit(requests(6), engine, server)
    (ended,) = collect(engine, server)
    assert ended == batch.Batch(ended.id, "expired", 6, 3, 3)
    with engine.connect() as con:
        rows = con.exec_driver_sql("select outcome, detail from calls where outcome <> 'answered' order by 1, 2").all()
    assert [row[0] for row in rows] == ["failed", "failed", "malformed"]
    assert "expired" in rows[0][1]
    assert "oops" in rows[1][1]
    server.errors = {}
    assert live(requests(6), engine, server).calls_sent == 3


def test_a_batch_that_failed_as_a_whole(engine: sa.Engine, server: Server) -> None:
    """All requests are open again, and the provider's words are told."""
    server.finish_batches = False
    submit(requests(2), engine, server)
    next(iter(server.batches.values())).update(
        status="failed", errors={"object": "list", "data": [{"code": "x", "message": "line 1 is wrong"}]}
    )
    (ended,) = collect(engine, server)
    assert ended[1:] == ("failed", 2, 0, 2, "line 1 is wrong")
    assert claims(engine) == 0


def test_what_a_provider_quotes_of_erased_texts_goes(engine: sa.Engine, server: Server) -> None:
    """A batch's message that quotes an erased text is emptied; another's stays."""
    submit(requests(1), engine, server)
    submit(requests(1, "other"), engine, server)
    with engine.begin() as con:
        words = sa.case((tables.batches.c.model == "m", "line 1: her words"), else_="line 1: too long")
        con.execute(sa.update(tables.batches).values(detail=words))
    answers.forget(engine, [], lambda texts: ["her words" in text for text in texts])
    with engine.connect() as con:
        assert set(con.execute(sa.select(tables.batches.c.detail)).scalars()) == {None, "line 1: too long"}


def test_one_file_a_model_and_size(engine: sa.Engine, server: Server) -> None:
    """Models do not mix in a file, and no file has too many lines or bytes."""
    wanted = requests(5) + requests(2, "n")
    assert len(submit(wanted, engine, server, largest=(2, 10**6))) == 4
    assert sorted(len(text.splitlines()) for text in server.files.values() if b"method" in text) == [1, 2, 2, 2]
    collect(engine, server)
    assert len(submit(requests(3, top_p=1), engine, server, largest=(100, 1))) == 3


def test_a_lost_reply_makes_no_second_batch(engine: sa.Engine, server: Server) -> None:
    """When the reply to a batch's creation is lost, the batch is found in the provider's list."""
    submit(requests(3, top_p=1), engine, server)  # others are in the list, over several pages
    submit(requests(3, top_p=2), engine, server)
    server.lose_create = 1
    (id_,) = submit(requests(3), engine, server)
    assert len(server.batches) == 3
    assert states(engine) == ["submitted"] * 3
    assert {b.id: b.answered for b in collect(engine, server)}[id_] == 3


@pytest.mark.parametrize("arrived", [True, False])
def test_a_submission_that_was_killed_is_finished(
    engine: sa.Engine, server: Server, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    """Killed while the batch was created: found if it arrived, else handed over anew; never twice."""
    change = batch._change

    def dying(engine: sa.Engine, id_: str, **values: Any) -> None:
        if values.get("state") == ("submitted" if arrived else "creating"):
            if not arrived:
                change(engine, id_, **values)
            raise MemoryError
        change(engine, id_, **values)

    monkeypatch.setattr(batch, "_change", dying)
    with pytest.raises(MemoryError):
        submit(requests(3), engine, server)
    monkeypatch.setattr(batch, "_change", change)
    with answers.writing(engine) as con:  # as a kill would have left it
        con.execute(sa.update(tables.batches).values(owner=owners.me().replace(":", ":9", 1)))
    assert states(engine) == ["creating"]
    assert len(server.batches) == arrived
    ids = submit(requests(3), engine, server)
    assert len(server.batches) == len(ids) == 1
    assert states(engine) == (["submitted"] if arrived else ["dropped", "submitted"])
    assert [b.answered for b in collect(engine, server)] == [3]
    assert server.paid == 0


def test_a_kill_before_the_upload_frees_the_requests(engine: sa.Engine, server: Server) -> None:
    """Claims of a process that died before it sent anything are given back."""
    dead = owners.me().replace(":", ":9", 1)
    with answers.writing(engine) as con:
        con.execute(sa.insert(tables.batches).values(
            id="1", run_id="r", owner=dead, model="m", state="preparing", requests=0, changed_at=0.0
        ))  # fmt: skip
    wanted = {r.key: r for r in requests(2)}
    answers.claim(engine, wanted, dict.fromkeys(wanted, 0.0), "batch:1", "r", batch.LEASE, keep_requests=True)
    submit(requests(2), engine, server)
    assert states(engine) == ["dropped", "submitted"]
    assert collect(engine, server)[0].answered == 2


def test_a_living_submission_is_left_alone(engine: sa.Engine, server: Server) -> None:
    """What another process is just handing over is neither freed nor handed over."""
    with answers.writing(engine) as con:
        con.execute(sa.insert(tables.batches).values(
            id="1", run_id="r", owner=owners.me(), model="m", state="preparing", requests=0, changed_at=9e9
        ))  # fmt: skip
    wanted = {r.key: r for r in requests(2)}
    answers.claim(engine, wanted, dict.fromkeys(wanted, 0.0), "batch:1", "r", batch.LEASE, keep_requests=True)
    assert submit(requests(2), engine, server) == ["1"]
    assert server.batches == {}


@pytest.mark.parametrize(("status", "kind"), [(401, Refused), (400, BadInput), (429, Retry)])
def test_a_batch_that_is_turned_down_frees_its_requests(
    engine: sa.Engine, server: Server, monkeypatch: pytest.MonkeyPatch, status: int, kind: Any
) -> None:
    """An error at its creation leaves nothing claimed and tells what a person can do."""
    monkeypatch.setattr(server, "refuse_batches", status)
    with pytest.raises(kind, match="turned down"):
        submit(requests(2), engine, server)
    assert (states(engine), claims(engine)) == (["dropped"], 0)


def test_a_limit_of_cost_holds_for_a_whole_batch(engine: sa.Engine, server: Server) -> None:
    """A batch that could cost more than the run has left is not handed over, and what it could cost is told."""
    wanted = requests(10, max_tokens=1_000_000)
    with pytest.raises(BadInput, match=r"may cost \$10\.00.*over what \$9\.00 leaves to run run"):
        submit(wanted, engine, server, max_cost=9.0)
    assert (server.batches, claims(engine)) == ({}, 0)
    with pytest.raises(BadInput, match="no price for the model"):
        submit(requests(1, "n"), engine, server, max_cost=9.0)
    assert len(submit(wanted, engine, server, max_cost=11.0)) == 1


def test_files_carried_by_hand(engine: sa.Engine, server: Server, tmp_path: Path) -> None:
    """What is exported, answered elsewhere and imported is in the ledger as any other answer; again changes nothing."""
    out, back = tmp_path / "out.jsonl", tmp_path / "back.jsonl"
    live(requests(1), engine, server)
    assert batch.export(out, requests(4), engine) == 3
    entries = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    answered = [
        {"id": "v", "custom_id": e["custom_id"], "error": None,
         "response": {"status_code": 200, "request_id": "r", "body": chat(e["body"]["messages"][0]["content"])}}
        for e in entries[:2]
    ]  # fmt: skip
    failed = {"id": "v", "custom_id": entries[2]["custom_id"], "response": None, "error": {"message": "too long"}}
    other = {**answered[0], "custom_id": "f" * 64}
    back.write_text("".join(json.dumps(line) + "\n" for line in [*answered, failed, other]), encoding="utf-8")
    found = batch.import_(back, requests(4), engine, run_id="hand")
    assert found[1:5] == ("import", 3, 2, 1)
    assert found.detail == "1 lines to other requests, or to such as have an answer"
    assert answers.answers(engine, [requests(2)[1].key])[requests(2)[1].key].mode == "import"
    assert batch.import_(back, requests(4), engine, run_id="hand").answered == 0
    assert batch.export(out, requests(4), engine) == 1
    assert live(requests(4), engine, server).calls_sent == 1


@pytest.mark.parametrize("line", ["{", "[]", "null", '{"response": {}}', '{"custom_id": "x", "response": [1]}'])
def test_a_broken_line_stops_an_import(engine: sa.Engine, tmp_path: Path, line: str) -> None:
    """A line that is none of a batch's output is BadInput with its number, and nothing is written."""
    back = tmp_path / "back.jsonl"
    wanted = requests(1)
    good = {"custom_id": wanted[0].key, "response": {"status_code": 200, "body": chat("x")}}
    back.write_text(f"{json.dumps(good)}\n{line}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"back\.jsonl, line 2: should be a line"):
        batch.import_(back, wanted, engine, run_id="r")
    assert answers.spending(engine).calls == 0
    with pytest.raises(BadInput, match="cannot be read"):
        batch.import_(tmp_path / "absent", wanted, engine, run_id="r")
