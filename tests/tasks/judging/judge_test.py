"""Judging as a task: rounds through the ledger, from files and in batches; what goes into `scores`."""

import json
import math
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline import left_out, settings, warehouse
from pipeline.errors import Refused, Retry
from pipeline.llm import client
from pipeline.llm.ledger import answers as ledger
from pipeline.llm.questions import judging
from pipeline.metrics.impscore.studies import kendall_tau
from pipeline.tasks import asking
from pipeline.tasks.impscore import pairs
from pipeline.tasks.judging import judge as work
from pipeline.tasks.judging.judge import Judgement
from pipeline.tasks.judging.modes import LOGPROBS, Plan
from tests.support.rows.filled import DAY, filled
from tests.support.servers.llm_server import Server, chat

TRUTH = np.random.default_rng(4).normal(0, 1.5, 24).round(2)
TEXTS = [f"This says {value} #{number}" for number, value in enumerate(TRUTH)]
ROWS = pl.DataFrame({"text": TEXTS, "context": ["What does it say?", None] * 12})
PAIRWISE = Plan(mode="pairwise", rounds=5)
SHORT = Plan(mode="pairwise", comparisons=4, rounds=2)


def read_value(text: str) -> float:
    """Read the true value that a text names."""
    return float(re.findall(r"-?\d+\.\d+", text)[0])


def write(question: str, number: int) -> str:
    """Answer as a judge with logistic noise, and in one case of fifty with chatter."""
    fields = json.loads(question)
    chance = random.Random(question + (str(number) if "text" in fields else ""))
    if chance.random() < 0.02:
        return "It depends."
    if "a" in fields:
        lead = read_value(fields["a"]["text"]) - read_value(fields["b"]["text"])
        return json.dumps({"more_implicit": "a" if chance.random() < 1 / (1 + math.exp(-lead)) else "b"})
    return json.dumps({"score": int(np.clip(round(read_value(fields["text"]) + 2 + chance.gauss(0, 0.4)), 0, 4))})


@pytest.fixture
def server(tables: Path) -> Iterator[Server]:
    """A service with that judge."""
    with Server(write=write) as running:
        yield running


def build_options(server: Server, **more: Any) -> asking.Options:
    """Build the options to ask a judge at this service."""
    return asking.Options("judge-1", endpoint=asking.find_endpoint(server.url, "secret"), **more)


def judge(server: Server, plan: Plan, rows: pl.DataFrame = ROWS, **more: Any) -> Judgement:
    """Judge rows by the service."""
    options = build_options(server, **more)
    return work.judge(rows, plan, options, work.ask_service(options))


@pytest.mark.parametrize("plan", [PAIRWISE, Plan()])
def test_the_order_is_recovered(server: Server, plan: Plan) -> None:
    """Either mode orders the texts as the judge does, with intervals, counts, signatures and no fault of the judge."""
    result = judge(server, plan)
    values = result.rows["implicitness_judged"]
    assert kendall_tau(TRUTH.tolist(), values.to_list()) > 0.65
    assert values.is_between(result.rows["low"], result.rows["high"]).all()
    assert result.faults == []
    assert {miss.reason for miss in result.missing} == {"malformed"}
    assert result.rows["answers"].sum() == (len(result.requests) - len(result.missing)) * (2 if plan is PAIRWISE else 1)
    assert len(result.requests) == (240 if plan is PAIRWISE else 72)
    signature = result.rows["signature"][0]
    assert signature.startswith(f"implicitness_judged|judge:judge-1|mode:{plan.mode}|rubric:")
    assert ("|lang:en|comparisons:" in signature) == (plan is PAIRWISE)
    assert any("What does it say?" in request["messages"][-1]["content"] for request in server.requests)
    assert len(judge(server, PAIRWISE._replace(rounds=1, comparisons=3)).requests) == 72
    assert pairs.build(work.SOURCE, str(DAY)) == 0  # a verdict is no explicit form
    assert judge(server, PAIRWISE, ROWS.head(1)).requests == []
    assert left_out.list_lines()[-1] == "en: one text has no value, as there is no other to compare it with"


def test_each_round_waits_for_the_one_before(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure the round is sent again and no other; no answer is paid for twice, and the result is the same."""
    whole = judge(server, SHORT)
    monkeypatch.setattr(client, "ask", partial(client.ask, max_retries=0))
    with Server(write=write) as other:
        options = build_options(other, run_id="r2")._replace(model="judge-1", revision="2")
        questions = [json.loads(r.messages[-1]["content"]) for r in whole.requests[:24]]
        broken = json.dumps(questions[5], ensure_ascii=False)
        other.errors = {broken: (500, {"error": {"message": "oops"}})}
        with pytest.raises(Retry, match="1 of 24 requests are open"):
            work.judge(ROWS, SHORT, options, work.ask_service(options))
        assert len(other.served) == 23  # the first round alone
        other.errors = {}
        again = work.judge(ROWS, SHORT, options, work.ask_service(options))
        assert other.paid == 0
        cached = options._replace(mode="cache-only")
        third = work.judge(ROWS, SHORT, cached, work.ask_service(cached))
        assert other.served.total() == 96
    columns = ["implicitness_judged", "low", "high", "answers"]
    assert again.rows.select(columns).equals(whole.rows.select(columns))
    assert third.rows.equals(again.rows)


def test_a_limit_on_cost_ends_the_rounds(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit no further round begins; what is judged until then is a random sample, with both languages."""
    prices = tmp_path / "prices.toml"
    prices.write_text('["judge-1"]\ninput = 1.0\noutput = 1.0\nnoted = 2026-11-01\n', encoding="utf-8")
    monkeypatch.setenv("UNDERTONE_LLM_PRICES", str(prices))
    result = judge(server, PAIRWISE, max_cost=0.006)
    assert 0 < result.round < result.round_count
    assert result.open_requests
    assert ledger.sum_spending(ledger.open_ledger(settings.llm_ledger())).cost_usd <= 0.006
    assert result.rows["implicitness_judged"].null_count() < len(TEXTS)
    texts = [f"{lang} {number:02}.0" for lang in ("It is", "今天的天气很好") for number in range(30)]
    server.write, server.usage = answer_two, {"prompt_tokens": 100, "completion_tokens": 100}
    rows = pl.DataFrame({"text": texts, "context": [None] * 60})
    result = judge(server, Plan(), rows, max_cost=0.008, concurrency=1, run_id="r2")
    is_judged = result.rows["implicitness_judged"].is_not_null().to_numpy().reshape(2, 30)
    assert 15 < is_judged.sum() < 60
    assert len(result.missing) == 60 - is_judged.sum()
    assert is_judged.sum(axis=1).min() > 4
    assert is_judged[:, 15:].sum() > 4


def test_log_probabilities_replace_repeats(server: Server, tmp_path: Path) -> None:
    """Where the server gives them, a text is asked about once, and its value is their mean. Answers fit too."""
    question = json.dumps({"text": "Quite a hat.", "context": None})
    body = chat(question, '{"score": 3}')
    tops = [{"token": "3", "logprob": math.log(0.75)}, {"token": "1", "logprob": math.log(0.25)}]
    body["choices"][0]["logprobs"] = {
        "content": [{"token": '{"score": ', "top_logprobs": []}, {"token": "3", "top_logprobs": tops}]
    }
    server.errors = {question: (200, body)}
    rows = pl.DataFrame({"text": ["Quite a hat.", TEXTS[0]], "context": [None, None]})
    result = judge(server, Plan(), rows, params=work.choose_params(Plan(), None))
    assert result.rows["implicitness_judged"][0] == pytest.approx(2.5, abs=1e-4)
    assert [s.split("|")[5] for s in result.rows["signature"]] == ["answers:weighted", "answers:3"]
    assert server.sent[question] == 1
    assert len(result.requests) == 4
    assert server.requests[0].items() >= LOGPROBS.items()
    lines = [json.dumps({"id": request.key, "response": '{"score": 3}'}) + "\n" for request in result.requests]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    options = asking.Options("judge-1")
    assert work.choose_answered_params(rows, Plan(), options, [path]) == LOGPROBS
    assert work.choose_answered_params(rows, Plan(), options._replace(model="other"), [path]) == {}
    assert work.choose_params(Plan("subtext"), None) == work.choose_params(PAIRWISE, None) == {}


def test_batches_go_round_by_round(server: Server) -> None:
    """Each call collects the round before and submits the next; none is submitted twice."""
    options = build_options(server)
    batches: list[pl.DataFrame] = []
    results = [work.judge(ROWS, SHORT, options, work.ask_batch(options, batches)) for _ in range(3)]
    assert (results[0].round, len(results[0].open_requests)) == (1, 24)
    assert (results[-1].round, results[-1].open_requests) == (2, [])
    assert len(server.batches) == 2
    assert [miss.reason for miss in results[-1].missing] == ["malformed"] * 96  # this server's batches only chatter


@pytest.fixture
def comments(tables: Path) -> None:
    """Two sources with 24 comments each, on two days."""
    rows = [
        {"source": source, "day": DAY, "comment_id": str(number), "text": text, "text_hash": f"{number:032x}"}
        for source in ("weibo", "notes")
        for number, text in enumerate(TEXTS)
    ]
    warehouse.overwrite("comments", warehouse.make_slice(day=DAY), filled("comments", *rows))


def run(server: Server, plan: Plan = PAIRWISE, **more: Any) -> dict[str, object]:
    """Judge a sample of the day as the DAG does."""
    return work.run(DAY.isoformat(), plan, build_options(server, **more), limit=20)


def test_a_sample_goes_into_scores(server: Server, comments: None) -> None:
    """As many comments of each source are drawn; values and the step are recorded; a second run sends nothing."""
    output = run(server)
    assert output == {"model": "judge-1", "comments": 40, "judged": 40, "faults": []}
    scores = warehouse.scan("scores").sort("source", "comment_id").collect()
    assert dict(scores["source"].value_counts().iter_rows()) == {"weibo": 20, "notes": 20}
    assert scores["signature"].str.extract(r"\|day:(\d+)$").unique().to_list() == ["24"]  # comments of source and day
    assert scores.select("metric", "model_id").unique().rows() == [("implicitness_judged", "judge-1:pairwise")]
    step = warehouse.scan("runs", pl.col("step") == "ask").collect().row(0, named=True)
    assert (step["source"], step["origin"]) == ("judge", "judge-1: judge_implicitness_pair_en")
    sent = server.sent.total()
    assert run(server) == output
    assert server.sent.total() == sent
    assert warehouse.scan("scores").sort("source", "comment_id").collect().equals(scores)
    more = work.sample_comments(DAY.isoformat(), limit=22)
    assert more.join(scores, on=["source", "comment_id"], how="semi").height == 40  # a larger sample holds the smaller


def test_labels_of_subtext_go_into_scores(server: Server, comments: None) -> None:
    """The value is that of `subtext`, the other kinds are labels; where no answer can be read there is no row."""
    plan = Plan("subtext")
    assert run(server, plan)["judged"] == 0  # this judge gives scores
    step = warehouse.scan("runs", pl.col("step") == "ask").collect().row(0, named=True)
    assert (step["kept_count"], step["dropped_count"]) == (0, 20)  # distinct texts of both sources
    labels = dict.fromkeys(judging.RUBRICS["subtext"].fields, -1) | {"emotion": "joy"}
    server.write = lambda question, _: json.dumps(labels | {"subtext": 1 if read_value(question) > 0 else -1})
    result = judge(server, plan, params={"temperature": 1})
    assert result.rows["subtext_judged"].to_list() == [1.0 if value > 0 else -1.0 for value in TRUTH]
    assert result.rows["emotion"].unique().to_list() == ["joy"]
    assert '|params:{"temperature": 1}|' in result.rows["signature"][0]


def answer_a(question: str, number: int) -> str:
    """Prefer the first text, whatever it is."""
    return '{"more_implicit": "a"}'


def answer_two(question: str, number: int) -> str:
    """Score everything 2."""
    return '{"score": 2}'


@pytest.mark.parametrize(
    ("answer", "plan", "message"),
    [(answer_a, PAIRWISE, "en: always chooses the first text"), (answer_two, Plan(), "en: always answers 2")],
)
def test_a_useless_judge_is_refused(
    server: Server, comments: None, answer: Callable[[str, int], str], plan: Plan, message: str
) -> None:
    """A judge that does not look at the texts is named, and writes no score."""
    server.write = answer
    with pytest.raises(Refused, match=message):
        run(server, plan)
    assert warehouse.get_snapshot_id("scores") is None


def test_a_fault_in_one_language_leaves_the_other(server: Server, comments: None) -> None:
    """Only the values of the language whose judge is of no use are left out; the run still fails."""
    rows = warehouse.scan("comments").collect()
    chinese = pl.when(pl.col("source") == "weibo").then(pl.format("今天的天气很好 {}", "comment_id")).otherwise("text")
    warehouse.overwrite("comments", warehouse.make_slice(day=DAY), rows.with_columns(text=chinese))
    server.write = lambda question, n: answer_two(question, n) if "天" in question else write(question, n)
    with pytest.raises(Refused, match="no use, no value of zh is written: zh: always answers 2"):
        run(server, Plan())
    assert set(warehouse.scan("scores").collect()["source"]) == {"notes"}
