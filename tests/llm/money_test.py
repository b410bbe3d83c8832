"""What requests cost stays below its limit, whatever a server does and counts; what cannot be read stops early."""

import json
import random
import sqlite3
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput, Refused
from pipeline.llm.ledger import answers
from pipeline.llm.service import limits
from tests.support.rows.llm_requests import build_budget, build_requests, send
from tests.support.servers.biller import HTML, Biller
from tests.support.servers.llm_server import Server

ODD = [None, -1, 1.5, "12", True, [], 10**30, -(10**400)]  # counts that cannot be


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 10**6), concurrency=st.sampled_from([1, 2, 7, 16, 64]), processes=st.integers(1, 2),
    tries=st.integers(1, 2), cap=st.sampled_from([0.0, 0.002, 0.01, 0.05]),
    output_tokens=st.sampled_from([1, 50, 1000]),
    shares=st.fixed_dictionaries({
        "answered": st.just(1.0), "malformed": st.sampled_from([0.0, 0.2, 1.0]),
        "cut": st.sampled_from([0.0, 0.2, 1.0]),
        "too_many": st.sampled_from([0.0, 0.2]), "broken": st.sampled_from([0.0, 0.2]),
    }),
    usages=st.lists(st.sampled_from(ODD), max_size=3),
)  # fmt: skip
def test_a_run_never_costs_more_than_its_limit(
    seed: int, concurrency: int, processes: int, tries: int, cap: float, output_tokens: int,
    shares: dict[str, float], usages: list[Any],
) -> None:  # fmt: skip
    """What the server bills and what the ledger books stay below the limit, with any faults, counts and tries."""
    server = Biller(chance=random.Random(seed), shares=shares, usages=usages)
    with tempfile.TemporaryDirectory() as folder, server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PAUSE", 0.01)
        engine = answers.open_ledger(f"sqlite:///{folder}/ledger.db")
        options = {"concurrency": concurrency, "max_cost": cap, "output_tokens": output_tokens, "max_retries": 2}
        for _ in range(tries):
            threads = [
                threading.Thread(target=send, args=(build_requests(60), engine, server.url), kwargs=options)
                for _ in range(processes)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        booked = answers.sum_spending(engine, "run").cost_usd
        answers.close()
    assert server.billed_usd <= booked + 1e-12
    assert booked <= cap + 1e-12


@pytest.mark.parametrize(
    ("model", "params", "name", "limit"),
    [
        ("m", {}, "max_tokens", limits.OUTPUT_TOKENS), ("gpt-5", {}, "max_completion_tokens", limits.OUTPUT_TOKENS),
        ("m", {"max_tokens": 7}, "max_tokens", 7), ("m", {"max_completion_tokens": 7}, "max_completion_tokens", 7),
    ],
)  # fmt: skip
def test_a_limit_on_tokens_is_sent(
    engine: sa.Engine, served: Callable[..., Server], model: str, params: dict[str, Any], name: str, limit: int
) -> None:
    """Each request has one limit on output tokens, its own before ours; ours changes nothing of its identity."""
    server = served()
    (request,) = build_requests(1, model, **params)
    outcome = send([request], engine, server.url, max_cost=1.0)
    body = server.requests[0]
    assert {key: body[key] for key in limits.PARAMS if key in body} == {name: limit}
    assert outcome.answers.keys() == {request.key}
    with engine.connect() as con:
        assert json.loads(con.exec_driver_sql("select params from answers").scalar_one()) == params


def test_a_server_that_wants_the_other_name(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """Where `max_tokens` is refused for `max_completion_tokens`, that is sent from then on."""
    server = served()
    complete = server.completion

    def strict(body: dict[str, Any]) -> Any:
        if "max_tokens" not in body:
            return complete(body)
        message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        return 400, {}, json.dumps({"error": {"message": message}}).encode()

    server.completion = strict  # type: ignore[method-assign]
    outcome = send(build_requests(5), engine, server.url, concurrency=1)
    assert len(outcome.answers) == 5
    assert {key for body in server.requests for key in limits.PARAMS if key in body} == {"max_completion_tokens"}


@pytest.mark.parametrize("cap", [float("nan"), float("inf"), -1.0])
def test_a_cap_that_is_none(cap: float) -> None:
    """A limit on cost that limits nothing is refused."""
    with pytest.raises(BadInput, match="limit on cost should be a number"):
        build_budget(max_cost=cap)


@pytest.mark.parametrize(
    ("usage", "guess"),
    [
        (None, "prompt_tokens is absent, completion_tokens is absent"),
        ("many", "prompt_tokens is absent, completion_tokens is absent"),
        ({"prompt_tokens": -1, "completion_tokens": 5}, "prompt_tokens is below 0 or a fraction"),
        ({"prompt_tokens": 10, "completion_tokens": 5.5}, "completion_tokens is below 0 or a fraction"),
        ({"prompt_tokens": "10", "completion_tokens": 5}, "prompt_tokens is text"),
        ({"prompt_tokens": True, "completion_tokens": 5}, "prompt_tokens is true or false"),
        ({"prompt_tokens": 10**30, "completion_tokens": 5}, "over 10^12 input tokens were counted"),
        ({"prompt_tokens": 10, "completion_tokens": 10**30}, "over 10^12 output tokens were counted, 2,048 were"),
        ({"prompt_tokens": 10, "completion_tokens": 3000}, "3,000 output tokens were counted, 2,048 were possible"),
    ],
)
def test_counts_that_cannot_be_are_flagged(
    engine: sa.Engine, served: Callable[..., Server], usage: Any, guess: str
) -> None:
    """No answer is lost; what cannot be is booked as what was set aside, and said to be a guess."""
    outcome = send(build_requests(5), engine, served(usage=usage).url)
    assert (len(outcome.answers), outcome.error) == (5, None)
    assert all(reason.startswith(guess) for reason in outcome.guesses)
    spent = answers.sum_spending(engine)
    assert spent.answered == outcome.guesses.total() == 5
    assert 0 < (spent.cost_usd or 0) == spent.guessed_usd <= 5 * build_budget().reserve(build_requests(5)[-1])
    assert outcome.guessed_usd == pytest.approx(spent.guessed_usd)


@pytest.mark.parametrize(
    ("status", "booked"), [(408, 3), (500, 3), (502, 3), (504, 3), (524, 3), (429, 0), (503, 0), (409, 0)]
)
def test_an_error_that_may_hide_an_answer_is_booked(
    engine: sa.Engine, served: Callable[..., Server], monkeypatch: pytest.MonkeyPatch, status: int, booked: int
) -> None:
    """Each try that a gateway may bill has a reservation of its own; the limit on cost holds whatever it bills."""
    monkeypatch.setattr(limits, "PAUSE", 0.01)
    requests = build_requests(1)
    most = build_budget().reserve(requests[0])
    server = served(errors={"提示 0": (status, {"error": {"message": "later"}})})
    send(requests, engine, server.url, max_cost=10 * most, max_retries=2)
    assert server.sent.total() == 3
    assert answers.sum_spending(engine).cost_usd == pytest.approx(booked * most)
    second = send(requests, engine, server.url, max_cost=1.5 * most, max_retries=2, run_id="other")
    assert (server.sent.total() - 3, second.is_limited) == ((1, True) if booked else (3, False))


def test_a_server_that_makes_more_than_it_may_stops_a_run_with_a_limit(
    engine: sa.Engine, served: Callable[..., Server]
) -> None:
    """Where `max_tokens` is not kept no limit on cost can be; the run stops, and its answers are kept."""
    server = served(usage={"prompt_tokens": 10, "completion_tokens": 3000})
    outcome = send(build_requests(100), engine, server.url, max_cost=5.0, concurrency=4)
    assert (outcome.stopped or "").startswith("the service does not keep to its limits")
    assert len(outcome.answers) == server.served.total() == answers.sum_spending(engine).answered < 10


def test_a_wrong_address_stops_early_and_spoils_nothing(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """R11: after a few pages of HTML nothing is sent, what came is shown; at the right address all is asked."""
    server = served(page=HTML + b"key-of-ours\x1b[2J" + b"x" * 1000)
    outcome = send(build_requests(371), engine, server.url, "key-of-ours")
    assert isinstance(outcome.error, Refused)
    words = str(outcome.error)
    assert "a page of HTML or XML, no JSON: <!doctype html><html><body>Welcome to our portal" in words
    assert "key-of-ours" not in words
    assert words.isprintable()
    assert len(words) < 500
    assert limits.FIRST_MALFORMED <= server.sent.total() < 2 * limits.FIRST_MALFORMED
    assert len(outcome.missing) == 371
    assert len(send(build_requests(371), engine, served().url).answers) == 371


def test_a_service_that_breaks_later_stops_too(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """After answers that could be read more are allowed to fail, in a row; these do not count as tries either."""
    server = served(page=HTML, page_after=10)
    assert isinstance(send(build_requests(100), engine, server.url, concurrency=1).error, Refused)
    assert server.sent.total() == 10 + limits.MALFORMED_IN_A_ROW
    assert len(send(build_requests(100), engine, served().url).answers) == 100


def test_what_was_given_up_can_be_asked_again(engine: sa.Engine, served: Callable[..., Server]) -> None:
    """Entries are listed by model and reason; freed, they are asked again; cleared, their guessed costs go too."""
    errors = {"提示 0": (200, {"choices": []}), "提示 1": (400, {"error": {"message": "too long"}})}
    send(build_requests(4), engine, served(errors=errors).url, concurrency=1)
    outcomes = [(entry.outcome, entry.calls, entry.requests) for entry in answers.list_entries(engine)]
    assert outcomes == [("malformed", 3, 1), ("rejected", 1, 1)]
    url = served().url
    assert send(build_requests(4), engine, url).calls_sent == 0
    assert answers.list_entries(engine, model="other") == answers.list_entries(engine, reason="%") == []
    assert answers.sum_spending(engine).guessed_usd > 0
    assert answers.forgive(engine, reason="TOO LONG", is_clearing=False) == 1
    assert send(build_requests(4), engine, url).calls_sent == 1
    assert answers.forgive(engine, model="m", is_clearing=True) == 3
    assert answers.list_entries(engine) == []
    spent = answers.sum_spending(engine)
    assert (spent.cost_usd, spent.guessed_usd) == (pytest.approx(3 * 0.00002), 0.0)
    assert send(build_requests(4), engine, url).calls_sent == 1


def test_a_ledger_of_an_earlier_version_stays_valid(tmp_path: Path, served: Callable[..., Server]) -> None:
    """The columns for guesses and log probabilities are added; answers that are there are not asked for again."""
    uri, server = f"sqlite:///{tmp_path}/ledger.db", served()
    send(build_requests(3), answers.open_ledger(uri), server.url)
    answers.close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as con:
        con.execute("alter table calls drop column guess")
        con.execute("alter table answers drop column logprobs")
    assert send(build_requests(4), answers.open_ledger(uri), server.url).cached == 3
    assert server.sent.total() == 4
    answers.close()
