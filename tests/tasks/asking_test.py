"""Asking as a task: answers into `completions`, each request sent once, a useless answer once more."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import left_out, sample, settings, warehouse
from pipeline.errors import BadInput, Retry
from pipeline.llm import client
from pipeline.tasks import asking
from pipeline.tasks.impscore import pairs
from tests.support.servers.llm_server import Server, chat
from tests.tasks.conftest import build_options

DAY = sample.DAY
SENTENCES = ["Nice hat.", "Is it five already?", "Some of us get up early."]


@pytest.fixture
def server(tables: Path) -> Iterator[Server]:
    """A loopback service."""
    with Server() as running:
        yield running


@pytest.fixture
def sentences(tables: Path, tmp_path: Path) -> str:
    """Sentences of one's own, without their explicit form: the source's name. One of them stands twice."""
    path = tmp_path / "own.csv"
    lines = [f"{text},explicit_en" for text in (*SENTENCES, SENTENCES[0])]
    path.write_text("text,prompt\n" + "\n".join(lines) + "\n", encoding="utf-8")
    pairs.import_sentences("mine", str(path), DAY, is_own=True)
    return "mine"


def completions() -> pl.DataFrame:
    """The table in a fixed order."""
    return warehouse.scan("completions").sort("completion_id").collect()


def test_answers_fill_the_table(server: Server, sentences: str) -> None:
    """Each distinct sentence is asked about once; the answers, tokens and what was asked are in `completions`."""
    progress: list[int] = []
    options = build_options(server, params={"temperature": 0}, on_progress=progress.append)
    counts = asking.ask(sentences, options)
    assert (counts["answers"], counts["calls_sent"], counts["cached"], counts["missing"]) == (3, 3, 0, 0)
    assert (counts["input_tokens"], counts["output_tokens"]) == (30, 15)
    assert server.sent == dict.fromkeys(SENTENCES, 1)
    assert sum(progress) == 3
    rows = completions()
    assert sorted(rows["response"]) == sorted(f"answer to {text}" for text in SENTENCES)
    columns = ("source", "model", "params", "attempt", "mode", "input_tokens", "output_tokens")
    assert rows.select(columns).unique().rows() == [("mine", "small-model", '{"temperature": 0}', 0, "live", 10, 5)]
    assert server.requests[0]["temperature"] == 0
    assert server.keys == {"Bearer secret"}
    assert pairs.build(sentences, DAY) == 3
    answer_pairs = warehouse.scan("pairs").collect()
    assert set(answer_pairs["implicit"]) == set(SENTENCES)
    assert set(answer_pairs["completion_id"]) == set(rows["completion_id"])


def test_asked_again_nothing_is_sent(server: Server, sentences: str) -> None:
    """A second run takes all answers from the ledger; a table that was lost is filled again, by cache-only too."""
    asking.ask(sentences, build_options(server))
    before = completions()
    for options in (build_options(server), build_options(server, mode="cache-only")):
        warehouse.overwrite("completions", warehouse.make_slice(source=sentences), before.clear())
        counts = asking.ask(sentences, options)
        assert (counts["answers"], counts["calls_sent"], counts["cached"], counts["cost_usd"]) == (3, 0, 3, 0.0)
        assert completions().equals(before)
    assert server.sent.total() == 3


@pytest.mark.parametrize("useless", ["I cannot comply.", "nice hat."])
def test_a_useless_answer_is_asked_for_once_more(server: Server, sentences: str, useless: str) -> None:
    """A refusal, an echo or an empty answer is asked for a second time, as attempt 1; both answers are kept."""
    server.write = lambda prompt, number: useless if (prompt, number) == ("Nice hat.", 1) else f"answer to {prompt}"
    counts = asking.ask(sentences, build_options(server))
    assert counts["calls_sent"] == 4
    assert server.sent == {**dict.fromkeys(SENTENCES, 1), "Nice hat.": 2}
    rows = completions()
    assert sorted(rows["attempt"]) == [0, 0, 0, 1]
    assert pairs.build(sentences, DAY) == 3
    asking.ask(sentences, build_options(server))
    assert server.sent.total() == 4


def test_a_refusal_that_stays_is_left(server: Server, sentences: str) -> None:
    """Refused twice, a sentence has no pair: both answers are kept and dropped, none is asked again."""
    server.errors = {"Nice hat.": (200, chat("Nice hat.", "I cannot comply."))}
    for _ in range(2):
        asking.ask(sentences, build_options(server))
    assert server.sent["Nice hat."] == 2
    assert pairs.build(sentences, DAY) == 2
    reasons = warehouse.scan("dropped", pl.col("step") == "pairs").collect()["reason"].to_list()
    assert reasons == ["refusal", "refusal"]


def test_what_failed_for_now_is_asked_again(tables: Path, sentences: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the service breaks on a sentence it is Retry; what was answered is in the table, a new try asks the rest."""
    monkeypatch.setattr(client, "ask", partial(client.ask, max_retries=0))
    with Server() as server:
        server.errors = {"Nice hat.": (500, {"error": {"message": "oops"}})}
        with pytest.raises(Retry, match="1 of 3 requests are open"):
            asking.ask(sentences, build_options(server))
        assert completions().height == 2
        server.errors = {}
        asking.ask(sentences, build_options(server))
        assert completions().height == 3
        assert server.sent == {**dict.fromkeys(SENTENCES, 1), "Nice hat.": 2}


def test_an_estimate_sends_nothing(server: Server, sentences: str) -> None:
    """The estimate counts what is open, before and after asking, and nothing reaches the service."""
    assert asking.estimate([sentences], build_options(server))[:3] == (3, 0, 3)
    assert server.sent.total() == 0
    for _ in range(2):  # a limit asks about the first by their ids
        asking.ask(sentences, build_options(server), limit=1)
    assert asking.estimate([sentences], build_options(server))[:3] == (3, 1, 2)
    assert server.sent == {SENTENCES[0]: 1}


def test_a_source_is_asked_in_the_words_of_a_folder(server: Server, sentences: str, tmp_path: Path) -> None:
    """The folder's file of the source is sent as it stands; an unknown source or a missing file is named (IMP-16)."""
    assert asking.list_sources() == asking.list_sources(["mine"]) == ["mine"]
    with pytest.raises(BadInput, match="nothing to ask about yours; there is mine"):
        asking.list_sources(["yours"])
    (folder := tmp_path / "paper").mkdir()
    with pytest.raises(BadInput, match=r"paper': no mine\.md; expected a file with the prompt of each source"):
        asking.list_sources((), folder)
    (folder / "mine.md").write_text("The paper's words.\n", encoding="utf-8")
    assert asking.list_sources((), str(folder)) == ["mine"]
    asking.ask("mine", build_options(server, prompts=str(folder)))
    assert {request["messages"][0]["content"] for request in server.requests} == {"The paper's words."}
    assert completions().select("prompt", "prompt_version").unique().rows()[0][0] == "explicit_en"
    assert pairs.build("mine", DAY) == 3


def test_ludwig_is_asked_about_by_name(tables: Path, tmp_path: Path) -> None:
    """Labels have LUDWIG's explicit forms, so that only its name has a model asked; table 6 counts it (IMP-15)."""
    path = tmp_path / "ludwig.csv"
    path.write_text("Context utterance,Response utterance,Implicature\nTea?,It is late.,No.\n", encoding="utf-8")
    pairs.import_sentences("ludwig", str(path), DAY)
    left_out.clear()
    assert (asking.list_sources(["ludwig"]), left_out.list_lines()) == (["ludwig"], [])
    assert asking.list_sources() == []
    assert "nothing is asked about ludwig, which" in left_out.list_lines()[0]
    assert asking.estimate(["ludwig"], asking.Options("small-model"))[0] == 1
    counts = pairs.compare_with_table_6()
    assert counts.filter(source="ludwig").row(0)[1:] == ("gpt-3.5-turbo-0125", "dialogue_en", 718, 1, 718, 0)
    assert counts.row(-1) == ("all", None, None, 35_358, 1, 56_290, 0)  # 33,862 and 1,496; table 6
    assert counts.drop_nulls("prompt").height == 8


def test_a_batch_is_submitted_and_collected(server: Server, sentences: str) -> None:
    """Submitted once and answered by the next call, a batch fills the table and is not submitted twice."""
    first = asking.run_batch([sentences], build_options(server))
    assert first["status"].to_list() == ["submitted"]
    asking.run_batch([sentences], build_options(server))
    assert len(server.batches) == 1
    assert completions()["mode"].unique().to_list() == ["batch"]
    assert completions().height == 3
    assert settings.llm_ledger().endswith("ledger.db")


def load_run() -> dict[str, Any]:
    """Load the row of `runs` that records a step."""
    return warehouse.scan("runs", pl.col("step") == "ask").collect().row(0, named=True)


def test_a_step_is_recorded_with_its_cost(
    server: Server, sentences: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a day there is a row: answers, and tokens and cost of all calls of the run; a later run pays nothing."""
    prices = tmp_path / "prices.toml"
    prices.write_text('["small-model"]\ninput = 1.0\noutput = 2.0\nnoted = 2026-11-01\n', encoding="utf-8")
    monkeypatch.setenv("UNDERTONE_LLM_PRICES", str(prices))
    server.write = lambda prompt, number: (
        prompt if (prompt, number) == (SENTENCES[0], 1) else "A good answer."
    )  # an echo
    asking.ask(sentences, build_options(server, run_id="r1"), day=DAY)
    row = load_run()
    assert (row["source"], row["origin"]) == ("mine", "small-model: explicit_en")
    assert (row["read_count"], row["kept_count"], row["dropped_count"]) == (3, 3, 0)
    assert (row["input_tokens"], row["output_tokens"]) == (40, 20)  # 10 and 5 a call, of four calls
    assert row["cost_usd"] == pytest.approx((40 * 1.0 + 20 * 2.0) / 1e6)
    asking.ask(sentences, build_options(server, run_id="r1"), day=DAY)
    assert load_run()["cost_usd"] == row["cost_usd"]  # the run's, whichever try paid it
    asking.ask(sentences, build_options(server, run_id="r2"), day=DAY)
    assert (load_run()["input_tokens"], load_run()["cost_usd"]) == (0, 0.0)


def test_what_stays_unanswered_is_dropped_with_a_reason(server: Server, sentences: str) -> None:
    """Requests that the ledger cannot answer are in `dropped` by their keys; a price that is unknown is no cost."""
    asking.ask(sentences, build_options(server, run_id="r1"), limit=1, day=DAY)
    assert load_run()["cost_usd"] is None
    asking.ask(sentences, build_options(server, mode="cache-only", run_id="r1"), day=DAY)
    row = load_run()
    assert (row["read_count"], row["kept_count"], row["dropped_count"]) == (3, 1, 2)
    dropped = warehouse.scan("dropped", pl.col("step") == "ask").collect()
    assert dropped["reason"].unique().to_list() == ["not in the ledger, and nothing may be asked"]
    assert dropped["row_key"].str.len_chars().unique().to_list() == [64]
