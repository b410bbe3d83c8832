"""Asking language models, against a loopback server that misbehaves."""

import json
import logging
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pipeline.errors import BadInput, Missing, Refused, Retry
from pipeline.llm import asked
from pipeline.llm.client import ask
from pipeline.llm.ledger import answers, cost
from pipeline.llm.ledger.cost import Price
from pipeline.llm.request import MODERATION, Request
from pipeline.llm.service import replies
from pipeline.llm.service.connection import Endpoint
from tests.support.llm_server import Faults, Server, chat

KEY = "sk-a-secret-that-must-not-leak"
PRICES = {"m": Price(1.0, 2.0, date(2026, 1, 1), batch=0.5)}  # a call of the server's 10 and 5 tokens costs $0.00002


def request(text: str, **other: Any) -> Request:
    """A request that ends with this text."""
    messages = [{"role": "system", "content": "Say it."}, {"role": "user", "content": text}]
    return Request(**{"model": "m", "messages": messages, "prompt": "p", "prompt_version": "1", "params": {}} | other)


def requests(count: int) -> list[Request]:
    """So many different requests."""
    return [request(f"hint {i}") for i in range(count)]


def live(wanted: Any, engine: sa.Engine, server: Server, **other: Any) -> asked.Asked:
    """What asking the server gives, with a time-out fit for tests."""
    given = {"run_id": "run", "timeout": 4.0, "prices": PRICES} | other
    asked = ask(wanted, engine, Endpoint(server.url, KEY), **given)
    if asked.error:
        raise asked.error
    return asked


def outcomes(engine: sa.Engine) -> Counter[str]:
    """How many calls in the ledger ended how."""
    with engine.connect() as con:
        return Counter(con.exec_driver_sql("select outcome from calls").scalars())


@pytest.mark.slow
def test_five_thousand_prompts_with_faults(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """5% 429, 4% 500, 2% malformed, 1% hanging: all are answered, none sent after its success; again, none is sent."""
    server = served(Faults(too_many=0.05, broken=0.04, malformed=0.02, hang=0.01, seconds=0.01))
    wanted = requests(5_000)
    asked = live(iter(wanted), engine, server, concurrency=32)
    assert asked.missing == []
    assert asked.stopped is None
    assert {key: answer.response for key, answer in asked.answers.items()} == {
        r.key: f"answer to {r.messages[-1]['content']}" for r in wanted
    }
    assert server.sent_after_success == []
    assert server.served.total() == 5_000
    assert server.too_early == []
    assert server.most_in_flight <= 32
    assert all(server.kinds[kind] > 20 for kind in ("too_many", "broken", "malformed", "hang"))
    failed = server.kinds["hang"] + server.kinds["broken"]  # each may hide an answer, and is booked
    assert asked.calls_sent == 5_000 + server.kinds["malformed"] + failed
    assert outcomes(engine) == {
        "answered": 5_000,
        "malformed": server.kinds["malformed"],
        "failed": failed,
    }

    sent = server.sent.total()
    again = live(wanted, engine, server, concurrency=32)
    assert server.sent.total() == sent
    assert (again.answers, again.cached, again.calls_sent, again.cost_usd) == (asked.answers, 5_000, 0, 0.0)


def test_what_an_answer_says(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """An answer has the text, the model that served it, why it ended and the tokens; the whole request is kept."""
    wanted = request("Nice hat.", params={"temperature": 0.5, "max_tokens": 9}, revision="r1", attempt=2)
    server = served()
    asked = live([wanted], engine, server)
    assert asked.answers[wanted.key] == answers.Answer(
        wanted.key, "answer to Nice hat.", "live", "served-model-1", "stop", 10, 5
    )
    assert server.requests == [{"model": "m", "messages": wanted.messages, "temperature": 0.5, "max_tokens": 9}]
    assert (asked.input_tokens, asked.output_tokens, asked.cost_usd) == (10, 5, pytest.approx(0.00002))
    with engine.connect() as con:
        row = con.exec_driver_sql("select * from answers").mappings().one()
    assert json.loads(row["messages"]) == wanted.messages
    assert (row["model"], row["revision"], row["attempt"], row["run_id"]) == ("m", "r1", 2, "run")


def test_equal_requests_are_one(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """A request that comes twice in the stream is sent once and counted once."""
    server, told = served(), []
    asked = live(requests(3) * 2, engine, server, done=told.append)
    assert (len(asked.answers), server.sent.total(), sum(told)) == (3, 3, 3)


def test_requests_are_taken_as_they_are_needed(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """A long stream is not read ahead by more than one look into the ledger."""
    server, taken, ahead = served(), [], []
    complete = server.completion

    def watched(body: dict[str, Any]) -> Any:
        ahead.append(len(taken) - server.sent.total())
        return complete(body)

    def stream() -> Iterator[Request]:
        for i in range(answers.PART + 20):
            taken.append(i)
            yield request(f"hint {i}")

    server.completion = watched  # type: ignore[method-assign]
    asked = live(stream(), engine, server, concurrency=4)
    assert len(asked.answers) == answers.PART + 20
    assert max(ahead) <= answers.PART


def test_over_the_limit_all_the_rest_is_named(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """With nothing to spend nothing is sent or claimed, and each request is in `missing`."""
    server, told = served(), []
    asked = live(requests(1_200), engine, server, max_cost=0.0, done=told.append)
    assert server.sent.total() == 0
    assert len(asked.missing) == sum(told) == 1_200
    with engine.connect() as con:
        assert con.exec_driver_sql("select count(*) from claims").scalar() == 0


def test_no_more_in_flight_than_allowed(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """With `concurrency=3` the server never sees a fourth request."""
    server = served(Faults(seconds=0.05))
    live(requests(20), engine, server, concurrency=3)
    assert server.most_in_flight == 3


def test_each_answer_is_committed_before_the_next_is_sent(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """With one worker, whenever a request arrives all answers served before are in the ledger."""
    server, lag = served(), []
    path = engine.url.database
    complete = server.completion

    def watched(body: dict[str, Any]) -> Any:
        with sqlite3.connect(path) as con:
            lag.append(server.served.total() - con.execute("select count(*) from answers").fetchone()[0])
        con.close()
        return complete(body)

    server.completion = watched  # type: ignore[method-assign]
    live(requests(20), engine, server, concurrency=1)
    assert lag == [0] * 20


def test_retry_after_is_kept(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """A server that says when to come back is not asked before."""
    server = served(Faults(too_many=0.5, retry_after=0.3))
    asked = live(requests(20), engine, server)
    assert len(asked.answers) == 20
    assert server.too_early == []
    assert server.kinds["too_many"] > 5


def test_too_long_a_retry_after_fails_for_now(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """More than two minutes are not waited for: the call fails for now, the rest goes on, and the end says so."""
    server = served(Faults(too_many=0.3, retry_after=121, seed=3))
    asked = live(requests(20), engine, server)
    assert len(asked.answers) + len(asked.missing) == 20
    assert 0 < len(asked.missing) < 15
    assert all(miss.is_open and miss.reason.startswith("failed: Error code: 429") for miss in asked.missing)
    assert asked.stopped == f"{len(asked.missing)} requests failed for now; run again to ask them"
    with pytest.raises(Retry, match=f"{len(asked.missing)} of 20 requests are open"):
        asked.check()
    again = live(requests(20), engine, served())
    assert len(again.answers) == 20
    again.check()


def test_malformed_answers_are_asked_again_twice(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """An answer that cannot be read is asked for three times in all, each paid call is in the ledger, then it stays."""
    server = served(errors={"hint 1": (200, {"choices": []})})
    asked = live(requests(4), engine, server, concurrency=1)
    assert (server.sent["hint 1"], len(asked.answers)) == (3, 3)
    assert outcomes(engine) == {"answered": 3, "malformed": 3}
    reason = 'malformed 3 times, at last: 0 choices, where one was asked for: {"choices": []}'
    assert [(miss.reason, miss.is_open) for miss in asked.missing] == [(reason, False)]
    asked.check()
    again = live(requests(4), engine, server)
    assert again.missing == asked.missing
    assert server.sent["hint 1"] == 3  # another run does not ask again


@pytest.mark.parametrize(
    ("body", "outcome", "response"),
    [
        ('{"model": "mod-1", "results": [{"flagged": true}]}', "answered", "yes"),
        ('{"model": "mod-1", "results": [{"flagged": false}]}', "answered", "no"),
        ('{"model": "mod-1", "results": [{"flagged": 1}]}', "malformed", None),
        ('{"model": "mod-1", "results": [{"flagged": null}]}', "malformed", None),
        ('{"model": "mod-1", "results": [{}]}', "malformed", None),
        ('{"model": "mod-1", "results": []}', "malformed", None),
        ('{"model": "mod-1", "results": {"flagged": true}}', "malformed", None),
        ('{"choices": []}', "malformed", None),
        ("[]", "malformed", None),
        ("null", "malformed", None),
        ('"results"', "malformed", None),
        ("<html>", "malformed", None),
        ("", "malformed", None),
    ],
)
def test_flagged(body: str, outcome: str, response: str | None) -> None:
    """A moderation's flag is yes or no; whatever else a server answers with 200 is malformed, never an exception."""
    reply = replies.read_moderation(body, 200)
    assert (reply.outcome, reply.response, reply.status) == (outcome, response, 200)
    assert (reply.detail is None) == (outcome == "answered")


def test_moderation(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """A request whose prompt is `moderation` goes to that endpoint, with the same retries, and is paid for once."""
    server = served(Faults(broken=0.2, too_many=0.1, malformed=0.1, seed=2, retry_after=0.01))
    texts = [f"an {'awful' if n % 3 else 'early'} day {n}" for n in range(12)]
    said = [Request("m", [{"role": "user", "content": text}], MODERATION, "1", {}) for text in texts]
    asked = live(said, engine, server)
    assert [asked.answers[one.key].response for one in said] == ["yes" if "awful" in text else "no" for text in texts]
    assert all(body["input"] in texts and "messages" not in body for body in server.requests)
    assert server.sent.total() > server.served.total() == 12
    again = live(said, engine, server)
    assert (again.cached, again.calls_sent, server.served.total()) == (12, 0, 12)


@pytest.mark.parametrize(
    ("body", "outcome", "response"),
    [
        (chat("x"), "answered", "answer to x"),
        (chat("x", content="\ud800 a\0b"), "answered", "? a\ufffdb"),
        (chat("x", content=None), "malformed", None),
        ({"choices": [{"message": {"content": None, "refusal": "I cannot."}}]}, "answered", "I cannot."),
        ({"choices": [{"message": {"content": ""}}]}, "answered", ""),
        ({"choices": [{"message": "text"}]}, "malformed", None),
        ({"choices": [{"message": {"content": ["part"]}}]}, "malformed", None),
        ({"choices": [], "usage": None}, "malformed", None),
        ({"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": -1}}, "answered", "x"),
        ({"choices": None}, "malformed", None),
        ("<html>", "malformed", None),
        ("[]", "malformed", None),
        ("null", "malformed", None),
        ("", "malformed", None),
    ],
)
def test_reading(body: Any, outcome: str, response: str | None) -> None:
    """Whatever a server answers with 200 is an answer that can be stored, or malformed, and never an exception."""
    reply = replies.read_chat(body)
    assert (reply.outcome, reply.response) == (outcome, response)
    assert (reply.detail is None) == (outcome == "answered")


@pytest.mark.parametrize(
    ("status", "body", "kind", "told"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, Refused, r"401 - .*provided: \*\*\*"),
        (403, {"error": {"message": "country not supported"}}, Refused, r"403 - .*country not supported"),
        (404, {"error": {"message": "The model `m` does not exist"}}, BadInput, r"404 - .*does not exist"),
        (400, {"error": {"message": "unknown parameter"}}, BadInput, r"400 - .*unknown parameter"),
        (429, {"error": {"message": "none left", "code": "insufficient_quota"}}, Refused, "none left"),
    ],
)
def test_errors_that_hold_for_all_stop_at_once(
    engine: sa.Engine, served: Callable[..., Server], status: int, body: dict[str, Any], kind: Any, told: str
) -> None:
    """A refusal, an unknown model and a request of the wrong form are raised at the first, without the key."""
    server = served(errors={f"hint {i}": (status, body) for i in range(100)})
    with pytest.raises(kind, match=told) as raised:
        live(requests(100), engine, server, concurrency=2, max_retries=0)
    assert KEY not in str(raised.value)
    assert server.sent.total() <= 2
    with engine.connect() as con:
        assert con.exec_driver_sql("select count(*) from claims").scalar() == 0


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
    server = served(errors={"hint 0": (status, {"error": error})})
    asked = live(requests(5), engine, server, concurrency=1)
    assert len(asked.answers) == 4
    assert [(m.request, m.is_open) for m in asked.missing] == [(request("hint 0"), False)]
    assert error["message"] in asked.missing[0].reason
    assert asked.stopped is None


def test_an_odd_400_after_answers_is_the_requests_own(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """Where others with the same model and parameters were answered, an unknown 400 does not stop them."""
    server = served(errors={"hint 3": (400, {"error": {"message": "no"}})})
    asked = live(requests(6), engine, server, concurrency=1)
    assert len(asked.answers) == 5
    assert asked.missing[0].reason == "rejected: Error code: 400 - no"


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (404, BadInput, "404 - Not Found"),
        (403, Refused, r"rejected 20 requests in a row, is UNDERTONE_LLM_URL right\? .*inappropriate"),
    ],
)
def test_a_wrong_address_rejects_no_request_for_good(
    engine: sa.Engine, served: Callable[..., Server], status: int, kind: type[Exception], message: str
) -> None:
    """An error of a service that answers nothing in a run is final for no request, whatever the ledger has."""
    live(requests(3), engine, served())
    said = (status, {"error": {"message": "Not Found" if status == 404 else "inappropriate content"}})
    with pytest.raises(kind, match=message):
        live(requests(60), engine, served(errors={f"hint {i}": said for i in range(60)}))
    assert outcomes(engine)["rejected"] == 0
    assert len(live(requests(60), engine, served()).answers) == 60


def test_a_service_that_turns_all_down_later_rejects_none_for_good(
    engine: sa.Engine, served: Callable[..., Server]
) -> None:
    """After answers an unknown error is a request's own, but 20 in a row stop the run and are asked again."""
    said = (404, {"error": {"message": "Not Found"}})
    server = served(errors={f"hint {i}": said for i in range(5, 100)})
    with pytest.raises(Refused, match="rejected 20 requests in a row"):
        live(requests(100), engine, server, concurrency=1)
    assert (server.sent.total(), outcomes(engine)["rejected"]) == (25, 0)
    assert len(live(requests(100), engine, served()).answers) == 100


def test_a_dead_endpoint_stops_the_run(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """When nothing but failures come back, the rest is not tried; all of it is named as open."""
    server = served(Faults(broken=1.0))
    asked = live(requests(100), engine, server, concurrency=2, max_retries=0)
    assert server.sent.total() < 10
    assert len(asked.missing) == 100
    assert all(miss.is_open for miss in asked.missing)
    assert re.match("[4-6] requests in a row failed, the last with Error code: 500", asked.stopped or "")


def test_the_run_goes_on_under_its_limit_of_cost(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """Nothing is sent that could bring a run over its limit, also when it is run again; another run has its own."""
    server = served()
    allowed = [r._replace(params={"max_tokens": 5}) for r in requests(50)]
    estimated = cost.reserve(allowed[0], PRICES["m"])
    reached = "the limit of $0.0006 on all of run run is reached"
    asked = live(allowed, engine, server, max_cost=0.0006, concurrency=4)
    spent = answers.spending(engine, "run").cost_usd
    assert 0.0006 - max(estimated, 0.00002) < spent <= 0.0006
    assert asked.cost_usd == pytest.approx(spent)
    assert (asked.stopped or "").startswith(f"{reached}: the next request may cost $0.00040")
    assert len(asked.missing) == 50 - len(asked.answers)
    again = live(allowed, engine, server, max_cost=0.0006)
    assert again.calls_sent == 0
    assert len(again.answers) == len(asked.answers)
    assert live(allowed, engine, server, max_cost=0.0006, run_id="other").calls_sent > 0


def test_a_limit_needs_a_price(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """Without a price tokens are counted and the cost is unknown; a limit is then refused, saying what to write."""
    server = served()
    asked = live(requests(2), engine, server, prices={})
    assert (asked.cost_usd, asked.input_tokens) == (None, 20)
    assert answers.spending(engine) == answers.Spending(2, 2, 0, 20, 10, 0.0)
    with pytest.raises(BadInput, match=r"no price for the model 'n'.*UNDERTONE_LLM_PRICES.*\[\"n\"\] input"):
        live([request("x", model="n")], engine, server, prices={}, max_cost=1.0)
    assert server.sent.total() == 2


def test_the_ledger_alone(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """`cache-only` gives what there is, names the rest, and needs no endpoint; nor does a live run without misses."""
    server = served()
    live(requests(2), engine, server)
    asked = ask(requests(3), engine, None, run_id="r", mode="cache-only")
    assert (len(asked.answers), asked.cached, len(asked.missing)) == (2, 2, 1)
    assert asked.missing[0] == (request("hint 2"), "not in the ledger, and nothing may be asked", False)
    assert len(ask(requests(2), engine, None, run_id="r").answers) == 2
    with pytest.raises(Missing, match="UNDERTONE_LLM_URL"):
        ask(requests(3), engine, None, run_id="r")
    assert server.sent.total() == 2


def test_address_and_key_are_no_part_of_the_question(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """What one endpoint answered is not asked of another."""
    live(requests(2), engine, served())
    other = served()
    assert ask(requests(2), engine, Endpoint(other.url, "another"), run_id="r").cached == 2
    assert other.sent.total() == 0


def test_two_askings_at_once_pay_once(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """Two that ask the same at the same time send each request once, and both get all answers."""
    server = served(Faults(seconds=0.02, malformed=0.1))
    found: list[asked.Asked] = []
    threads = [
        threading.Thread(target=lambda: found.append(live(requests(100), engine, server, concurrency=8)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(asked.answers) for asked in found] == [100, 100]
    assert server.paid == 0
    assert server.sent_after_success == []
    assert sum(asked.calls_sent for asked in found) == server.sent.total()


def test_the_key_is_written_nowhere(
    engine: sa.Engine, served: Callable[..., Server], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Not to logs, ledger, errors or representations, even where the server says it back in its errors."""
    caplog.set_level(logging.DEBUG)
    said = {"error": {"message": f"what is {KEY}? too long", "code": KEY}}
    server = served(errors={"hint 1": (400, said), "hint 2": (500, said)})
    asked = live(requests(4), engine, server, max_retries=1)
    assert server.keys == {f"Bearer {KEY}"}
    assert len(asked.answers) == 2
    assert KEY not in repr(asked)
    assert KEY not in repr(Endpoint(server.url, KEY))
    assert KEY not in str(Endpoint(server.url, KEY))
    assert KEY not in caplog.text
    with pytest.raises(Retry) as raised:
        asked.check()
    assert KEY not in str(raised.value)
    answers.close()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("key", ["a\nb", "ключ"])
def test_a_key_that_is_none(engine: sa.Engine, key: str) -> None:
    """A key that no header can carry is refused without being repeated."""
    with pytest.raises(BadInput, match="the key holds") as raised:
        ask(requests(1), engine, Endpoint("http://127.0.0.1:1/v1", key), run_id="r")
    assert key not in str(raised.value)


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host/v1", "http://me:secret@host/v1", "http://"])
def test_an_address_that_is_none(engine: sa.Engine, url: str) -> None:
    """An address that is not http, or that carries a password, is refused before anything is sent."""
    with pytest.raises(BadInput, match="address should be http") as raised:
        ask(requests(1), engine, Endpoint(url, KEY), run_id="r")
    assert "secret" not in str(raised.value)


def test_without_a_key_no_other_services_key_is_sent(
    engine: sa.Engine, served: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPENAI_API_KEY of the environment does not go to an endpoint that it was not meant for."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = served()
    ask(requests(1), engine, Endpoint(server.url), run_id="r")
    assert server.keys == {"Bearer none"}


@pytest.mark.parametrize("name", ["n", "stream", "model", "messages"])
def test_parameters_that_cannot_be_set(engine: sa.Engine, served: Callable[..., Server], name: str) -> None:
    """Parameters that change what is counted are refused before anything is sent."""
    server = served()
    with pytest.raises(BadInput, match=f"the parameter '{name}' cannot be set"):
        live([request("x", params={name: 2})], engine, server)
    assert server.sent.total() == 0


def test_an_interruption_loses_no_answer(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """When the caller's own code raises, what is in flight is still brought in, and nothing stays claimed."""
    server = served(Faults(seconds=0.1))

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        live(requests(50), engine, server, concurrency=8, done=interrupted)
    assert answers.spending(engine).answered == server.served.total() > 0
    with engine.connect() as con:
        assert con.exec_driver_sql("select count(*) from claims").scalar() == 0


def test_estimate(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """The estimate counts what is cached, guesses tokens from lengths, and sends nothing."""
    server = served()
    live(requests(1), engine, server)
    wanted = [*requests(1), request("a" * 400), request("字" * 100, params={"max_tokens": 50})]
    found = cost.estimate(wanted * 2, engine, PRICES, 100)
    tokens = 2 * (4 + 2 + 4 + 100)
    most = sum(cost.reserve(one, PRICES["m"]) for one in wanted[1:])
    assert found == (3, 1, 2, tokens, 150, pytest.approx((tokens + 2 * 150) / 1e6), pytest.approx(most))
    assert cost.estimate(wanted, engine, PRICES, 100, batch=True).cost_usd == pytest.approx((tokens + 300) / 2e6)
    assert cost.estimate(wanted, engine, {}).cost_usd is None
    assert server.sent.total() == 1


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("abc", 1), ("abcde", 2), ("你好", 2), ("你好, world", 4), ("，。", 2), ("한글", 2)]
)
def test_tokens_by_rule_of_thumb(text: str, count: int) -> None:
    """One token a CJK character, one for four others, rounded up."""
    assert cost.tokens(text) == count


def test_prices(tmp_path: Path) -> None:
    """Every shipped price has a date and positive numbers; a file of one's own adds to them and goes before them."""
    shipped = cost.prices()
    assert all(p.input > 0 and p.output >= p.input and p.noted >= date(2026, 1, 1) for p in shipped.values())
    own = tmp_path / "own.toml"
    own.write_text(
        '["gpt-4o-mini"]\ninput = 9\noutput = 9\nnoted = 2026-11-01\n["my/m"]\ninput=0\noutput=0\nnoted=2026-11-01'
    )
    found = cost.prices(own)
    assert found["gpt-4o-mini"] == Price(9.0, 9.0, date(2026, 11, 1))
    assert found["my/m"].cost(10**6, 10**6) == 0.0
    assert found.keys() == shipped.keys() | {"my/m"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[", "no TOML"),
        ("x = 1", "model 'x': should have input"),
        ("[x]\ninput = 1\noutput = 1", "model 'x': should have input"),
        ("[x]\noutput = 1\nnoted = 2026-01-01", "field 'input': should be a number"),
        ("[x]\ninput = -1\noutput = 1\nnoted = 2026-01-01", "field 'input': should be a number"),
        ("[x]\ninput = 1\noutput = nan\nnoted = 2026-01-01", "field 'output': should be a number"),
        ('[x]\ninput = 1\noutput = "1"\nnoted = 2026-01-01', "field 'output': should be a number"),
    ],
)
def test_prices_that_are_none(tmp_path: Path, text: str, told: str) -> None:
    """A price file that cannot be used is BadInput that names file, model and field."""
    own = tmp_path / "own.toml"
    own.write_text(text)
    with pytest.raises(BadInput, match=told) as raised:
        cost.prices(own)
    assert str(own) in str(raised.value)
    with pytest.raises(BadInput, match="cannot be read"):
        cost.prices(tmp_path / "absent.toml")


def test_nothing_waits_longer_than_the_timeout(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """A request that hangs fails for now after its time-out."""
    server = served(Faults(hang=1.0))
    asked = live(requests(1), engine, server, timeout=0.3, max_retries=0)
    assert asked.missing[0].reason == "failed: Request timed out."
