"""How commands that ask a language model end, and the commands about its ledger."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.llm.questions.answer import format_question
from tests.commands.conftest import Run
from tests.support.servers.llm_server import Server

TEXTS = ["Nice hat.", "Is it five already?", "Some of us get up early."]


@pytest.fixture
def server(tables: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The service that the settings name."""
    with Server() as running:
        monkeypatch.setenv("UNDERTONE_LLM_URL", running.url)
        yield running


@pytest.fixture(params=["pairs ask", "recover", "groups ask", "evaluate recovery"])
def words(request: pytest.FixtureRequest, run: Run, server: Server, tmp_path: Path) -> list[Any]:
    """A command that asks about the three texts."""
    if request.param == "pairs ask":
        pl.DataFrame({"text": TEXTS, "prompt": ["explicit_en"] * 3}).write_csv(tmp_path / "own.csv")
        run("pairs", "import", "mine", tmp_path / "own.csv", "--own")
        return ["pairs", "ask", "--llm", "small"]
    if request.param == "groups ask":
        (tmp_path / "intents.txt").write_text("\n".join(TEXTS), encoding="utf-8")
        return ["groups", "ask", tmp_path / "intents.txt", "-o", tmp_path / "out.jsonl", "--llm", "small"]
    pl.DataFrame({"text": TEXTS, "meaning": TEXTS}).write_csv(tmp_path / "texts.csv")
    if request.param == "recover":
        return ["recover", tmp_path / "texts.csv", "--llm", "small"]
    return ["evaluate", "recovery", "--references", tmp_path / "texts.csv", "--llm", "small"]


def refuse(server: Server, count: int) -> None:
    """Have the service reject the first texts for good, as they are and as fields of a question."""
    prompts = [prompt for text in TEXTS[:count] for prompt in (text, format_question({"context": None, "text": text}))]
    server.errors = dict.fromkeys(prompts, (400, {"error": {"message": "content_filter"}}))


def test_all_is_answered(run: Run, server: Server, words: list[Any]) -> None:
    """All answered: what it came to is said, and the code is that of the command's own result."""
    run(*words).check(1 if words[0] == "groups" else 0, "3 of 3 requests have an answer")


def test_a_part_is_answered(run: Run, server: Server, words: list[Any]) -> None:
    """Answered in part: exit code 1, with the number and the reason."""
    refuse(server, 1)
    result = run(*words).check(1)
    message = " ".join(result.err.split())
    assert "2 of 3 requests have an answer" in message
    assert "without one: 1 rejected: Error code: 400" in message


@pytest.mark.parametrize(
    ("count", "page", "options", "message"),
    [
        (3, b"", [], "0 of 3 requests have an answer"),
        (0, b"", ["--cache-only"], "3 not in the ledger, and nothing may be asked"),
        (0, b"<html>no model here</html>", [], "a page of HTML or XML, no JSON: <html>no model here</html>"),
    ],
)
def test_nothing_is_answered(
    run: Run, server: Server, words: list[Any], count: int, page: bytes, options: list[str], message: str
) -> None:
    """Nothing answered, by all refused, an empty ledger, or a page of HTML: exit code 3, and nothing is written."""
    refuse(server, count)
    server.page = page or server.page
    run(*words, *options).check(3, message)
    assert (server.sent.total() == 0) == ("--cache-only" in options)
    assert not [arg for arg in words if isinstance(arg, Path) and arg.name == "out.jsonl" and arg.exists()]


@pytest.mark.parametrize("words", ["pairs ask"], indirect=True)
def test_the_summary_as_json(
    run: Run, server: Server, words: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --json the same counts are an object on standard error; spending and its limit are among them."""
    (tmp_path / "prices.toml").write_text('["small"]\ninput = 1.0\noutput = 2.0\nnoted = 2026-11-01\n')
    monkeypatch.setenv("UNDERTONE_LLM_PRICES", str(tmp_path / "prices.toml"))
    refuse(server, 1)
    result = run(*words, "--json", "--max-cost", 0.5)
    row, summary = result.json, json.loads(result.err.strip().splitlines()[-1])["asking"]
    assert (row["requests"], row["answers"], row["missing"], row["max_cost"]) == (3, 2, 1, 0.5)
    assert (summary["requests"], summary["answered"], summary["missing"], summary["max_cost"]) == (3, 2, 1, 0.5)
    assert summary["cost_usd"] == row["cost_usd"] == pytest.approx(2 * 0.00002)
    assert summary["guessed_usd"] == 0.0
    assert result.code == 1


@pytest.mark.parametrize("words", ["pairs ask"], indirect=True)
def test_requests_that_were_given_up(
    run: Run, server: Server, words: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`llm status` counts calls, `llm retry` and `llm clear` free what was given up, after a question."""
    refuse(server, 2)
    assert run(*words).code == 1
    server.errors = {}
    assert run(*words).code == 1
    assert server.served.total() == 1
    rows = run("llm", "status", "--json").rows
    assert {row["outcome"]: row["calls"] for row in rows} == {"answered": 1, "rejected": 2}
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert run("llm", "retry").code == 1
    result = run("llm", "retry", "--reason", "content_filter", "--llm", "small", "--yes")
    assert "2 calls set aside; later runs send their requests again" in result.err
    assert run("llm", "clear", "--yes").err.strip() == "no such request was given up"
    assert run(*words).code == 0


def test_an_empty_ledger_is_one_sentence(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`llm status` prints no table without rows, and no line of JSON."""
    monkeypatch.setenv("UNDERTONE_LLM_LEDGER", f"sqlite:///{tmp_path}/empty.db")
    result = run("llm", "status")
    assert (result.out, result.err.strip()) == ("", "the ledger holds no calls: no language model was asked yet")
    assert run("llm", "status", "--json").out == ""
