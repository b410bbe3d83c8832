"""Batches: submitted once, and collected into the ledger."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from pipeline.errors import BadInput, Refused, Retry
from pipeline.llm import batch
from pipeline.llm.batch import Batch, Provider
from pipeline.llm.ledger import answers, tables
from pipeline.llm.request import Request
from pipeline.llm.service import limits
from pipeline.llm.service.connection import Endpoint
from tests.support.rows.llm_requests import build_budget, build_requests, count_claims, send
from tests.support.servers.llm_server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    """A server whose batches end at once."""
    with Server() as running:
        yield running


def provider(engine: sa.Engine, server: Server, **options: Any) -> Provider:
    """The server's batches, with waits fit for tests."""
    endpoint = Endpoint(server.url, "key")
    return Provider(engine, endpoint, build_budget(**options), timeout=5.0, max_retries=1, settle=0.2)


def submit(requests: list[Request], engine: sa.Engine, server: Server, **options: Any) -> list[str]:
    """Submit requests; options are of the budget."""
    return provider(engine, server, **options).submit(requests)


def collect(engine: sa.Engine, server: Server) -> list[Batch]:
    """Collect the submitted batches."""
    return provider(engine, server).collect()


def states(engine: sa.Engine) -> list[str]:
    """The states of all batches."""
    with engine.connect() as con:
        return sorted(con.execute(sa.select(tables.batches.c.state)).scalars())


def test_there_and_back(engine: sa.Engine, server: Server) -> None:
    """What is submitted comes back as answers of the same ledger, at half the price, filed under the run."""
    send(build_requests(2), engine, server.url, run_id="live")
    (batch_id,) = submit(build_requests(5, temperature=0.5) + build_requests(4), engine, server)
    (row,) = server.batches.values()
    entry = json.loads(server.files[row["input_file_id"]].splitlines()[0])
    request = build_requests(1, temperature=0.5)[0]
    body = {"model": "m", "messages": request.messages, "temperature": 0.5, "max_tokens": limits.OUTPUT_TOKENS}
    assert entry == {"custom_id": request.key, "method": "POST", "url": "/v1/chat/completions", "body": body}
    assert row["metadata"] == {"undertone": batch_id, "run_id": "run"}
    server.files[row["output_file_id"]] = b"{\n" + server.files[row["output_file_id"]]  # a broken line is passed over
    assert collect(engine, server) == [Batch(batch_id, "completed", 7, 7, 0)]
    assert collect(engine, server) == []
    answer = answers.look_up(engine, [request.key])[0][request.key]
    assert (answer.response, answer.mode) == ("answer to 提示 0", "batch")
    assert answers.sum_spending(engine, "run") == answers.Spending(7, 7, 7, 70, 35, pytest.approx(7 * 0.00001))
    assert count_claims(engine) == 0
    assert send(build_requests(4), engine, server.url).calls_sent == 0


def test_what_is_in_a_batch_is_not_sent_beside_it(engine: sa.Engine, server: Server) -> None:
    """While a batch is out, neither a live run nor another batch pays for its requests."""
    server.finish_batches = False
    (batch_id,) = submit(build_requests(3), engine, server)
    outcome = send(build_requests(4), engine, server.url)
    assert (len(outcome.answers), len(outcome.missing)) == (1, 3)
    assert {miss.reason for miss in outcome.missing} == {f"in batch {batch_id}; collect it"}
    assert submit(build_requests(3), engine, server) == [batch_id]
    assert len(server.batches) == 1
    assert collect(engine, server) == [Batch(batch_id, "in_progress", 3, 0, 0)]
    server.finish(next(iter(server.batches.values())))
    assert collect(engine, server)[0].answered == 3
    assert submit(build_requests(3), engine, server) == []


def test_what_a_batch_leaves_is_open_again(engine: sa.Engine, server: Server) -> None:
    """Lines with errors, malformed lines and absent lines are counted, freed, and answered when sent again."""
    server.errors = {"提示 0": (500, {"error": {"message": "oops"}}), "提示 1": (200, {"choices": []})}
    server.unanswered = {"提示 2"}
    server.batch_status = "expired"
    submit(build_requests(6), engine, server)
    (ended,) = collect(engine, server)
    assert ended == Batch(ended.id, "expired", 6, 3, 3)
    with engine.connect() as con:
        rows = con.exec_driver_sql("select outcome, detail from calls where outcome <> 'answered' order by 1, 2").all()
    assert [row[0] for row in rows] == ["failed", "failed", "malformed"]
    assert "expired" in rows[0][1]
    assert "oops" in rows[1][1]
    server.errors = {}
    assert send(build_requests(6), engine, server.url).calls_sent == 3


def test_a_batch_that_failed_as_a_whole(engine: sa.Engine, server: Server) -> None:
    """All requests are open again, and the provider's message is returned."""
    server.finish_batches = False
    submit(build_requests(2), engine, server)
    errors = {"object": "list", "data": [{"code": "x", "message": "line 1 is wrong"}]}
    next(iter(server.batches.values())).update(status="failed", errors=errors)
    (ended,) = collect(engine, server)
    assert ended[1:] == ("failed", 2, 0, 2, "line 1 is wrong")
    assert count_claims(engine) == 0


def test_what_a_provider_quotes_of_erased_texts_goes(engine: sa.Engine, server: Server) -> None:
    """A batch's message that quotes an erased text is emptied; another's stays."""
    submit(build_requests(1), engine, server)
    submit(build_requests(1, "other"), engine, server)
    with engine.begin() as con:
        words = sa.case((tables.batches.c.model == "m", "line 1: her words"), else_="line 1: too long")
        con.execute(sa.update(tables.batches).values(detail=words))
    answers.forget(engine, [], lambda texts: ["her words" in text for text in texts])
    with engine.connect() as con:
        assert set(con.execute(sa.select(tables.batches.c.detail)).scalars()) == {None, "line 1: too long"}


def test_one_file_a_model_and_size(engine: sa.Engine, server: Server) -> None:
    """Models do not mix in a file, and no file has too many lines or bytes."""
    requests = build_requests(5) + build_requests(2, "n")
    assert len(provider(engine, server).submit(requests, (2, 10**6))) == 4
    assert sorted(len(text.splitlines()) for text in server.files.values() if b"method" in text) == [1, 2, 2, 2]
    collect(engine, server)
    assert len(provider(engine, server).submit(build_requests(3, top_p=1), (100, 1))) == 3


def test_a_lost_reply_makes_no_second_batch(engine: sa.Engine, server: Server) -> None:
    """When the reply to a batch's creation is lost, the batch is found in the provider's list."""
    submit(build_requests(3, top_p=1), engine, server)  # others are in the list, over several pages
    submit(build_requests(3, top_p=2), engine, server)
    server.lose_create = 1
    (batch_id,) = submit(build_requests(3), engine, server)
    assert len(server.batches) == 3
    assert states(engine) == ["submitted"] * 3
    assert {b.id: b.answered for b in collect(engine, server)}[batch_id] == 3


@pytest.mark.parametrize("has_arrived", [True, False])
def test_a_submission_that_was_killed_is_finished(
    engine: sa.Engine, server: Server, monkeypatch: pytest.MonkeyPatch, has_arrived: bool
) -> None:
    """Killed while the batch was created: found if it arrived, else submitted again; never twice."""
    change = batch._change

    def die(engine: sa.Engine, batch_id: str, **values: Any) -> None:
        is_last = values.get("state") == ("submitted" if has_arrived else "creating")
        if not (is_last and has_arrived):
            change(engine, batch_id, **values)
        if is_last:
            raise MemoryError

    monkeypatch.setattr(batch, "_change", die)
    with pytest.raises(MemoryError):
        submit(build_requests(3), engine, server)
    monkeypatch.setattr(batch, "_change", change)
    with answers.write_transaction(engine) as con:  # as a kill would have left it
        con.execute(sa.update(tables.batches).values(owner=tables.create_name().replace(":", ":9", 1)))
    assert states(engine) == ["creating"]
    assert len(server.batches) == has_arrived
    ids = submit(build_requests(3), engine, server)
    assert len(server.batches) == len(ids) == 1
    assert states(engine) == (["submitted"] if has_arrived else ["dropped", "submitted"])
    assert [b.answered for b in collect(engine, server)] == [3]
    assert server.paid == 0


def prepare(engine: sa.Engine, owner: str, changed_at: float) -> None:
    """Claim two requests for the batch 1, of which nothing was sent."""
    row = {"id": "1", "run_id": "r", "owner": owner, "model": "m", "state": "preparing", "requests": 0}
    with answers.write_transaction(engine) as con:
        con.execute(sa.insert(tables.batches).values(**row, changed_at=changed_at))
    requests = {request.key: request for request in build_requests(2)}
    answers.claim(engine, requests, build_budget(), "batch:1", batch.LEASE)


def test_a_kill_before_the_upload_frees_the_requests(engine: sa.Engine, server: Server) -> None:
    """Claims of a process that died before it sent anything are released."""
    prepare(engine, tables.create_name().replace(":", ":9", 1), 0.0)
    submit(build_requests(2), engine, server)
    assert states(engine) == ["dropped", "submitted"]
    assert collect(engine, server)[0].answered == 2


def test_a_living_submission_is_left_alone(engine: sa.Engine, server: Server) -> None:
    """What another process is submitting just now is neither freed nor submitted."""
    prepare(engine, tables.create_name(), 9e9)
    assert submit(build_requests(2), engine, server) == ["1"]
    assert server.batches == {}


@pytest.mark.parametrize(("status", "kind"), [(401, Refused), (400, BadInput), (429, Retry)])
def test_a_batch_that_is_turned_down_frees_its_requests(
    engine: sa.Engine, server: Server, status: int, kind: Any
) -> None:
    """An error at its creation leaves nothing claimed and says what a person can do."""
    server.refuse_batches = status
    with pytest.raises(kind, match="turned down"):
        submit(build_requests(2), engine, server)
    assert (states(engine), count_claims(engine)) == (["dropped"], 0)


def test_a_batch_is_limited_by_what_it_can_cost(engine: sa.Engine, server: Server) -> None:
    """A batch that could cost more than the run has left is not submitted; its lines have the limit on tokens."""
    requests = build_requests(10)
    most = sum(build_budget().reserve(request, is_batch=True) for request in requests)
    with pytest.raises(BadInput, match=rf"may cost \${most:.4f}.*over what \$0\.0200 leaves to run run"):
        submit(requests, engine, server, max_cost=0.02)
    with pytest.raises(BadInput, match="the batch may cost"):
        submit(requests, engine, server, max_cost=most * 0.99)
    assert (server.batches, count_claims(engine)) == ({}, 0)
    with pytest.raises(BadInput, match="no price for the model"):
        submit(build_requests(1, "n"), engine, server, max_cost=9.0)
    submit(requests, engine, server, max_cost=most * 1.01)
    lines = [json.loads(line)["body"] for line in next(iter(server.files.values())).splitlines()]
    assert {line["max_tokens"] for line in lines} == {limits.OUTPUT_TOKENS}
    assert collect(engine, server)[0].answered == 10
    assert 0 < (answers.sum_spending(engine, "run").cost_usd or 0) <= most


@pytest.mark.parametrize("line", ["{", "[]", "null", '{"response": {}}', '{"custom_id": "x", "response": [1]}'])
def test_a_broken_line_is_named(line: str) -> None:
    """A line that is none of a batch's output is BadInput with its number."""
    with pytest.raises(BadInput, match=r"line 2: should be a line of a batch's output"):
        batch.read_line(line, "line 2")
