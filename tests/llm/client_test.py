"""Requests to language models, against a loopback server that misbehaves."""

import json
import logging
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pipeline.errors import BadInput, Refused, Retry
from pipeline.llm.ledger import answers
from pipeline.llm.outcome import Outcome
from pipeline.llm.request import MODERATION, Request
from pipeline.llm.service import replies
from pipeline.llm.service.connection import Endpoint
from tests.support.rows.llm_requests import KEY, build_budget, build_request, build_requests, count_claims, send
from tests.support.servers.llm_server import Faults, Server, chat


def count_outcomes(engine: sa.Engine) -> Counter[str]:
    """Count the calls of the ledger by outcome."""
    with engine.connect() as con:
        return Counter(con.exec_driver_sql("select outcome from calls").scalars())


def live(requests: Any, engine: sa.Engine, server: Server, **options: Any) -> Outcome:
    """Send requests to the server, and raise the error that stopped them."""
    outcome = send(requests, engine, server.url, **options)
    if outcome.error:
        raise outcome.error
    return outcome


@pytest.mark.slow
def test_many_prompts_with_faults(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """5% 429, 4% 500, 2% malformed, 2% hanging: all are answered, none sent after its success; again, none is sent."""
    server = served(Faults(too_many=0.05, broken=0.04, malformed=0.02, hang=0.02, seed=3, seconds=0.01))
    requests = build_requests(400)
    outcome = live(iter(requests), engine, server, concurrency=32)
    assert outcome.missing == []
    assert outcome.stopped is None
    assert {key: answer.response for key, answer in outcome.answers.items()} == {
        r.key: f"answer to {r.messages[-1]['content']}" for r in requests
    }
    assert server.sent_after_success == []
    assert server.served.total() == 400
    assert server.too_early == []
    assert server.most_in_flight <= 32
    assert all(server.kinds[kind] > 2 for kind in ("too_many", "broken", "malformed", "hang"))
    failed = server.kinds["hang"] + server.kinds["broken"]  # each may hide an answer, and is booked
    assert outcome.calls_sent == 400 + server.kinds["malformed"] + failed
    expected = {"answered": 400, "malformed": server.kinds["malformed"], "failed": failed}
    assert count_outcomes(engine) == expected

    sent = server.sent.total()
    second = live(requests, engine, server, concurrency=32)
    assert server.sent.total() == sent
    assert (second.answers, second.cached, second.calls_sent, second.cost_usd) == (outcome.answers, 400, 0, 0.0)


def test_an_answer_is_stored_with_its_request(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """An answer has the text, the model that served it, why it ended and the tokens; the whole request is kept."""
    request = build_request("Nice hat.", params={"temperature": 0.5, "max_tokens": 9}, revision="r1", attempt=2)
    server = served()
    outcome = live([request], engine, server)
    expected = answers.Answer(request.key, "answer to Nice hat.", "live", "served-model-1", "stop", 10, 5)
    assert outcome.answers[request.key] == expected
    assert server.requests == [{"model": "m", "messages": request.messages, "temperature": 0.5, "max_tokens": 9}]
    assert (outcome.input_tokens, outcome.output_tokens, outcome.cost_usd) == (10, 5, pytest.approx(0.00002))
    with engine.connect() as con:
        row = con.exec_driver_sql("select * from answers").mappings().one()
    assert json.loads(row["messages"]) == request.messages
    assert (row["model"], row["revision"], row["attempt"], row["run_id"]) == ("m", "r1", 2, "run")


def test_equal_requests_are_one(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """A request that comes twice in the stream is sent once and counted once."""
    server, progress = served(), []
    outcome = live(build_requests(3) * 2, engine, server, on_progress=progress.append)
    assert (len(outcome.answers), server.sent.total(), sum(progress)) == (3, 3, 3)


def test_requests_are_read_as_they_are_needed(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """A long stream is not read ahead by more than one look into the ledger."""
    server, numbers, ahead = served(), [], []
    complete = server.completion

    def watch(body: dict[str, Any]) -> Any:
        ahead.append(len(numbers) - server.sent.total())
        return complete(body)

    def stream() -> Iterator[Request]:
        for number in range(answers.PART + 20):
            numbers.append(number)
            yield build_request(f"hint {number}")

    server.completion = watch  # type: ignore[method-assign]
    outcome = live(stream(), engine, server, concurrency=4)
    assert len(outcome.answers) == answers.PART + 20
    assert max(ahead) <= answers.PART


def test_each_answer_is_committed_before_the_next_is_sent(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """With one worker, whenever a request arrives all answers served before are in the ledger."""
    server, lag = served(), []
    complete = server.completion

    def watch(body: dict[str, Any]) -> Any:
        with sqlite3.connect(engine.url.database) as con:
            lag.append(server.served.total() - con.execute("select count(*) from answers").fetchone()[0])
        con.close()
        return complete(body)

    server.completion = watch  # type: ignore[method-assign]
    live(build_requests(20), engine, server, concurrency=1)
    assert lag == [0] * 20


def test_too_long_a_retry_after_fails_for_now(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """More than two minutes are not waited for: the call fails for now, the rest goes on, and the end says so."""
    server = served(Faults(too_many=0.3, retry_after=121, seed=3))
    outcome = live(build_requests(20), engine, server)
    assert len(outcome.answers) + len(outcome.missing) == 20
    assert 0 < len(outcome.missing) < 15
    assert all(miss.is_open and miss.reason.startswith("failed: Error code: 429") for miss in outcome.missing)
    assert outcome.stopped == f"{len(outcome.missing)} requests failed for now; run again to ask them"
    with pytest.raises(Retry, match=f"{len(outcome.missing)} of 20 requests are open"):
        outcome.check()
    second = live(build_requests(20), engine, served())
    assert len(second.answers) == 20
    second.check()


def test_malformed_answers_are_asked_again_twice(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """An answer that cannot be read is asked for three times in all, each paid call is in the ledger, then it stays."""
    server = served(errors={"提示 1": (200, {"choices": []})})
    outcome = live(build_requests(4), engine, server, concurrency=1)
    assert (server.sent["提示 1"], len(outcome.answers)) == (3, 3)
    assert count_outcomes(engine) == {"answered": 3, "malformed": 3}
    reason = 'malformed 3 times, at last: 0 choices, where one was asked for: {"choices": []}'
    assert [(miss.reason, miss.is_open) for miss in outcome.missing] == [(reason, False)]
    outcome.check()
    second = live(build_requests(4), engine, server)
    assert second.missing == outcome.missing
    assert server.sent["提示 1"] == 3  # another run does not ask again


FLAGGED = [
    ({"model": "mod-1", "results": [{"flagged": True}]}, "yes"),
    ({"model": "mod-1", "results": [{"flagged": False}]}, "no"),
    ({"model": "mod-1", "results": [{"flagged": 1}]}, None), ({"model": "mod-1", "results": [{"flagged": None}]}, None),
    ({"model": "mod-1", "results": [{}]}, None), ({"model": "mod-1", "results": []}, None),
    ({"model": "mod-1", "results": {"flagged": True}}, None),
]  # fmt: skip
CHATS = [
    (chat("x"), "answer to x"), (chat("x", content="\ud800 a\0b"), "? a\ufffdb"), (chat("x", content=None), None),
    ({"choices": [{"message": {"content": None, "refusal": "I cannot."}}]}, "I cannot."),
    ({"choices": [{"message": {"content": ""}}]}, ""), ({"choices": [{"message": "text"}]}, None),
    ({"choices": [{"message": {"content": ["part"]}}]}, None), ({"choices": [], "usage": None}, None),
    ({"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": -1}}, "x"), ({"choices": None}, None),
]  # fmt: skip
NEITHER = [(body, None) for body in ({}, "<html>", "[]", "null", '"results"', "")]


@pytest.mark.parametrize(("is_moderation", "rows"), [(True, FLAGGED), (False, CHATS)])
def test_reading(rows: list[tuple[Any, str | None]], *, is_moderation: bool) -> None:
    """Whatever a server answers with 200 is an answer that can be stored, or malformed, and never an exception."""
    for body, response in rows + NEITHER:
        reply = replies.read_answer(body, is_moderation=is_moderation)
        outcome = "malformed" if response is None else "answered"
        assert (reply.outcome, reply.response, reply.status) == (outcome, response, 200), body
        assert (reply.detail is None) == (response is not None)


def test_moderation(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """A request whose prompt is `moderation` goes to that endpoint, with the same retries, and is paid for once."""
    server = served(Faults(broken=0.2, too_many=0.1, malformed=0.1, seed=2, retry_after=0.01))
    texts = [f"an {'awful' if n % 3 else 'early'} day {n}" for n in range(12)]
    requests = [build_request(text)._replace(prompt=MODERATION) for text in texts]
    outcome = live(requests, engine, server)
    expected = ["yes" if "awful" in text else "no" for text in texts]
    assert [outcome.answers[request.key].response for request in requests] == expected
    assert all(body["input"] in texts and "messages" not in body for body in server.requests)
    assert server.sent.total() > server.served.total() == 12
    second = live(requests, engine, server)
    assert (second.cached, second.calls_sent, server.served.total()) == (12, 0, 12)


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, Refused, r"401 - .*provided: \*\*\*"),
        (403, {"error": {"message": "country not supported"}}, Refused, r"403 - .*country not supported"),
        (404, {"error": {"message": "The model `m` does not exist"}}, BadInput, r"404 - .*does not exist"),
        (400, {"error": {"message": "unknown parameter"}}, BadInput, r"400 - .*unknown parameter"),
        (429, {"error": {"message": "none left", "code": "insufficient_quota"}}, Refused, "none left"),
    ],
)
def test_errors_that_hold_for_all_stop_at_once(
    engine: sa.Engine, served: Callable[..., Server], status: int, body: dict[str, Any], kind: Any, message: str
) -> None:
    """A refusal, an unknown model and a request of the wrong form are raised at the first, without the key."""
    server = served(errors={f"提示 {i}": (status, body) for i in range(100)})
    with pytest.raises(kind, match=message) as raised:
        live(build_requests(100), engine, server, concurrency=2, max_retries=0)
    assert KEY not in str(raised.value)
    assert server.sent.total() <= 2
    assert count_claims(engine) == 0


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "This model's maximum context length is 4096 tokens", "code": "context_length_exceeded"}),
        (400, {"message": "The response was filtered", "code": "content_filter"}),
        (400, {"message": "Content Exists Risk", "type": "invalid_request_error"}),
        (413, {"message": "the request is too large"}),
        (403, {"message": "Your input was flagged by moderation"}),
    ],
)
def test_errors_of_one_request_are_its_reason(
    engine: sa.Engine, served: Callable[..., Server], status: int, error: dict[str, str]
) -> None:
    """A filter or a length stops that request alone, and asking again does not help."""
    server = served(errors={"提示 0": (status, {"error": error})})
    outcome = live(build_requests(5), engine, server, concurrency=1)
    assert len(outcome.answers) == 4
    assert [(miss.request, miss.is_open) for miss in outcome.missing] == [(build_requests(1)[0], False)]
    assert error["message"] in outcome.missing[0].reason
    assert outcome.stopped is None


@pytest.mark.parametrize(
    ("status", "kind", "text", "message"),
    [
        (404, BadInput, "Not Found", "404 - Not Found"),
        (403, Refused, "inappropriate content", r"rejected 20 .* is UNDERTONE_LLM_URL right\? .*inappropriate"),
    ],
)
def test_a_wrong_address_rejects_no_request_for_good(
    engine: sa.Engine, served: Callable[..., Server], status: int, kind: type[Exception], text: str, message: str
) -> None:
    """An error of a service that answers nothing in a run is final for no request, whatever the ledger has."""
    live(build_requests(3), engine, served())
    errors = {f"提示 {i}": (status, {"error": {"message": text}}) for i in range(60)}
    with pytest.raises(kind, match=message):
        live(build_requests(60), engine, served(errors=errors))
    assert count_outcomes(engine)["rejected"] == 0
    assert len(live(build_requests(60), engine, served()).answers) == 60


def test_a_service_that_turns_all_down_later_rejects_none_for_good(
    engine: sa.Engine, served: Callable[..., Server]
) -> None:
    """After answers an unknown error is a request's own, but 20 in a row stop the run and are asked again."""
    server = served(errors={f"提示 {i}": (404, {"error": {"message": "Not Found"}}) for i in range(5, 100)})
    with pytest.raises(Refused, match="rejected 20 requests in a row"):
        live(build_requests(100), engine, server, concurrency=1)
    assert (server.sent.total(), count_outcomes(engine)["rejected"]) == (25, 0)
    assert len(live(build_requests(100), engine, served()).answers) == 100


def test_a_dead_endpoint_stops_the_run(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """When nothing but failures come back, the rest is not tried; all of it is named as open."""
    server = served(Faults(broken=1.0))
    outcome = live(build_requests(100), engine, server, concurrency=2, max_retries=0)
    assert server.sent.total() < 10
    assert len(outcome.missing) == 100
    assert all(miss.is_open for miss in outcome.missing)
    assert re.match("[4-6] requests in a row failed, the last with Error code: 500", outcome.stopped or "")


def test_the_run_goes_on_under_its_limit_of_cost(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """Nothing is sent that could bring a run over its limit, also when it is run again; another run has its own."""
    server = served()
    requests = build_requests(50, max_tokens=5)
    most = build_budget().reserve(requests[0])
    outcome = live(requests, engine, server, max_cost=0.0006, concurrency=4)
    spent = answers.sum_spending(engine, "run").cost_usd
    assert 0.0006 - max(most, 0.00002) < spent <= 0.0006
    assert outcome.cost_usd == pytest.approx(spent)
    reached = "the limit of $0.0006 on all of run run is reached: the next request may cost $0.000345"
    assert (outcome.stopped or "").startswith(reached)
    assert len(outcome.missing) == 50 - len(outcome.answers)
    second = live(requests, engine, server, max_cost=0.0006)
    assert second.calls_sent == 0
    assert len(second.answers) == len(outcome.answers)
    assert live(requests, engine, server, max_cost=0.0006, run_id="other").calls_sent > 0


def test_a_limit_needs_a_price(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """Without a price tokens are counted and the cost is unknown; a limit is then refused, saying what to write."""
    server = served()
    outcome = live(build_requests(2), engine, server, prices={})
    assert (outcome.cost_usd, outcome.input_tokens) == (None, 20)
    assert answers.sum_spending(engine) == answers.Spending(2, 2, 0, 20, 10, 0.0)
    with pytest.raises(BadInput, match=r"no price for the model 'n'.*UNDERTONE_LLM_PRICES.*\[\"n\"\] input"):
        live([build_request("x", "n")], engine, server, prices={}, max_cost=1.0)
    assert server.sent.total() == 2


def test_the_ledger_alone(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """Without an endpoint the ledger gives what there is, whichever endpoint it came from, and the rest is named."""
    server, other = served(), served()
    live(build_requests(2), engine, server)
    outcome = send(build_requests(3), engine, None)
    assert (len(outcome.answers), outcome.cached, len(outcome.missing)) == (2, 2, 1)
    request = build_requests(3)[2]
    assert outcome.missing[0] == (request, "not in the ledger, and nothing may be asked", False)
    assert send(build_requests(2), engine, other.url, "another key").cached == 2
    assert (server.sent.total(), other.sent.total()) == (2, 0)


def test_two_runs_at_once_pay_once(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """Two that ask the same at the same time send each request once, and both get all answers."""
    server = served(Faults(seconds=0.02, malformed=0.1))
    outcomes: list[Outcome] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(live(build_requests(100), engine, server, concurrency=8)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(outcome.answers) for outcome in outcomes] == [100, 100]
    assert server.paid == 0
    assert server.sent_after_success == []
    assert sum(outcome.calls_sent for outcome in outcomes) == server.sent.total()


def test_the_key_is_written_nowhere(
    engine: sa.Engine, served: Callable[..., Server], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Not to logs, ledger, errors or representations, even where the server repeats it in its errors."""
    caplog.set_level(logging.DEBUG)
    body = {"error": {"message": f"what is {KEY}? too long", "code": KEY}}
    server = served(errors={"提示 1": (400, body), "提示 2": (500, body)})
    outcome = live(build_requests(4), engine, server, max_retries=1)
    assert server.keys == {f"Bearer {KEY}"}
    assert len(outcome.answers) == 2
    with pytest.raises(Retry) as raised:
        outcome.check()
    endpoint = Endpoint(server.url, KEY)
    assert KEY not in f"{outcome!r} {endpoint!r} {endpoint} {caplog.text} {raised.value}"
    answers.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("url", "key", "message", "secret"),
    [
        ("http://127.0.0.1:1/v1", "a\nb", "the key holds", "a\nb"),
        ("http://127.0.0.1:1/v1", "ключ", "the key holds", "ключ"),
        ("127.0.0.1:8000", KEY, "address should be http", KEY),
        ("ftp://host/v1", KEY, "address should be http", KEY),
        ("http://me:secret@host/v1", KEY, "address should be http", "secret"),
        ("http://", KEY, "address should be http", KEY),
    ],
)
def test_a_key_or_an_address_that_is_none(engine: sa.Engine, url: str, key: str, message: str, secret: str) -> None:
    """A key that no header can carry, and an address that is not http or carries a password, are not repeated."""
    with pytest.raises(BadInput, match=message) as raised:
        send(build_requests(1), engine, url, key)
    assert secret not in str(raised.value)


def test_without_a_key_no_other_services_key_is_sent(
    engine: sa.Engine, served: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPENAI_API_KEY of the environment does not go to an endpoint that it was not meant for."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = served()
    send(build_requests(1), engine, server.url, None)
    assert server.keys == {"Bearer none"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("n", 2), ("stream", 2), ("model", 2), ("messages", 2)]
    + [("max_tokens", x) for x in (0, -1, True, 1.5, "9", None)],
)
def test_parameters_that_cannot_be_set(engine: sa.Engine, served: Callable[..., Server], name: str, value: Any) -> None:
    """Parameters that change what is counted, and limits that some servers read as none, are refused unsent."""
    server = served()
    expected = "should be a whole number above 0" if name == "max_tokens" else "cannot be set"
    with pytest.raises(BadInput, match=f"the parameter '{name}' {expected}"):
        live([build_request("x", params={name: value})], engine, server)
    assert server.sent.total() == 0


def test_an_interruption_loses_no_answer(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """When the caller's own code raises, what is in flight is still recorded, and nothing stays claimed."""
    server = served(Faults(seconds=0.1))

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        live(build_requests(50), engine, server, concurrency=8, on_progress=interrupt)
    assert answers.sum_spending(engine).answered == server.served.total() > 0
    assert count_claims(engine) == 0


def test_nothing_waits_longer_than_the_timeout(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """A request that hangs fails for now after its time-out."""
    outcome = live(build_requests(1), engine, served(Faults(hang=1.0)), timeout=0.3, max_retries=0)
    assert outcome.missing[0].reason == "failed: Request timed out."
