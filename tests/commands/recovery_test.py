"""Commands about recovering meanings: whom to ask or which model, and what they print."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.commands.conftest import Run


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Comments with their meanings."""
    path = tmp_path / "notes.csv"
    rows = [(f"真准时{n}", "他迟到了", f"他来晚了{n}") for n in range(10)]
    pl.DataFrame(rows, schema=["text", "context", "meaning"], orient="row").write_csv(path)
    return path


def test_a_fitted_model_recovers(run: Run, notes: Path, tmp_path: Path) -> None:
    """`train recovery` fits a model, `recover` writes meanings by it, `evaluate recovery` measures them."""
    model = tmp_path / "model"
    result = run("train", "recovery", notes, "-o", model, "--epochs", "1", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["epoch"] == 1
    out = tmp_path / "told.csv"
    assert run("recover", notes, "--model", model, "-o", out).code == 0
    assert pl.read_csv(out).height == 10
    output = json.loads(run("evaluate", "recovery", "--references", notes, "--model", model, "--json").out)
    assert 0 <= output["rouge_l"] <= 1
    assert [row["by"] for row in output["rows"]] == ["answers", "text", "context", "other_meaning"]


def test_baselines_alone(run: Run, notes: Path) -> None:
    """With nobody to ask the baselines are told, and nothing is set up."""
    output = json.loads(run("evaluate", "recovery", "--references", notes, "--json").out)
    assert [row["by"] for row in output["rows"]] == ["text", "context", "other_meaning"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("recover", "FILE"), 2, "give either --llm, a language model to ask, or --model"),
        (("recover", "FILE", "--llm", "m", "--model", "x"), 2, "give either --llm"),
        (("recover", "FILE", "--llm", "m"), 4, "UNDERTONE_LLM_URL"),
        (("recover", "nowhere.csv", "--llm", "m"), 2, "nowhere.csv"),
        (("evaluate", "recovery"), 2, "give --references or --choices"),
        (("evaluate", "recovery", "--choices", "FILE", "--model", "x"), 2, "chooses none"),
    ],
)
def test_what_is_refused(run: Run, home: Path, notes: Path, words: tuple[str, ...], code: int, message: str) -> None:
    """What cannot be done exits with its code and says why in one line."""
    result = run(*(notes if word == "FILE" else word for word in words))
    assert (result.code, message in result.err) == (code, True), result.err
