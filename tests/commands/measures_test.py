"""Commands that apply a model: rank, choose, distance, score; by the shipped model and by one of a folder."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.commands.conftest import Run, write_file

SENTENCES = [["close the door", "it is cold in here", "brr"], ["i want to go home", "it is late", "what time is it"]]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write JSON Lines."""
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """Write two graded groups."""
    rows = [{"group": f"g{number}", "sentences": sentences} for number, sentences in enumerate(SENTENCES)]
    return write_lines(tmp_path / "groups.jsonl", rows)


def test_rank_of_a_file(run: Run, groups: Path, model_dir: Path) -> None:
    """`rank --groups F --model DIR --json` has the model's tau and rho on top, the baselines among the rows."""
    ranking = run("groups", "rank", "--groups", groups, "--model", model_dir, "--json").check().json
    assert -1 <= ranking["kendall_tau"] <= 1
    assert -1 <= ranking["spearman_rho"] <= 1
    assert ranking["group_count"] == 2
    assert [row["by"] for row in ranking["rows"]] == ["implicitness", "longer", "length", "punctuation", "words"]
    assert ranking["rows"][0]["kendall_tau"] == ranking["kendall_tau"]
    longer = ranking["rows"][1]["kendall_tau"]
    assert longer == pytest.approx((-1 / 3 - 1 / 3) / 2, abs=1e-6)  # 14, 18, 3 and 17, 10, 15 characters
    assert "kendall_tau" in run("groups", "rank", "--groups", groups, "--model", model_dir).out


def test_choose(run: Run, model_dir: Path, tmp_path: Path) -> None:
    """`choose --questions F --json` has the accuracy on top, here 2 of 3, and writes every answer if asked."""
    rows = [
        {"reference": "close the door", "options": ["what a day", "close the door"], "answer": 1},
        {"reference": "go home", "options": ["go home", "nice hat", "cold soup"], "answer": 0},
        {"reference": "nice hat", "options": ["nice hat", "cold soup"], "answer": 1},
    ]
    questions, out = write_lines(tmp_path / "questions.jsonl", rows), tmp_path / "a.jsonl"
    accuracy = run("groups", "choose", "--questions", questions, "--model", model_dir, "--json", "--out", out).json
    assert accuracy["accuracy"] == pytest.approx(2 / 3, abs=1e-6)
    assert accuracy["question_count"] == 3
    assert accuracy["rows"][1] == {"by": "chance", "question_count": 3, "accuracy": pytest.approx(4 / 9, abs=1e-6)}
    answers = pl.read_ndjson(out)
    assert answers["chosen"].to_list() == [1, 0, 0]
    assert answers["is_right"].to_list() == [True, True, False]


def test_the_shipped_model_on_shipped_groups(run: Run) -> None:
    """Without options the shipped model ranks, and answers questions made of, groups it was not trained on."""
    ranking = run("groups", "rank", "--json").json
    assert ranking["kendall_tau"] > 0.3
    assert ranking["group_count"] >= 40
    accuracy = run("groups", "choose", "--json").json
    assert accuracy["accuracy"] > accuracy["rows"][1]["accuracy"]


@pytest.mark.parametrize("has_model", [True, False], ids=["of a folder", "shipped"])
def test_distance(run: Run, model_dir: Path, tmp_path: Path, has_model: bool) -> None:
    """`distance --pairs F` adds a column: 0 for equal texts, empty where there is none; as csv, JSON or into a file."""
    path, out = tmp_path / "pairs.csv", tmp_path / "out.parquet"
    path.write_text("id,implicit,explicit\n1,brr,it is cold\n2,brr,brr\n3,brr,\n", encoding="utf-8")
    command = ("pairs", "distance", "--pairs", path, *(("--model", model_dir) if has_model else ()))
    rows = list(csv.DictReader(io.StringIO(run(*command).out)))
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    values = [row["pragmatic_distance"] for row in rows]
    assert float(values[0]) > 0
    assert (float(values[1]), values[2]) == (0.0, "")
    first = json.loads(run(*command, "--json").out.splitlines()[0])
    assert first["pragmatic_distance"] == float(values[0])
    run(*command, "--out", out)
    assert pl.read_parquet(out)["pragmatic_distance"].to_list()[0] == float(values[0])


def test_distance_of_other_columns(run: Run, model_dir: Path, tmp_path: Path) -> None:
    """Any two text columns can be named; one that does not exist is BadInput and says which do."""
    path = write_file(tmp_path / "mine.csv", "a,b,c\nbrr,it is cold,brr\n")
    command = ("pairs", "distance", "--pairs", path, "--model", model_dir, "--json", "--columns")
    assert run(*command, "a,c").json["pragmatic_distance"] == 0.0
    run(*command, "a,d").check(2, "mine.csv: expected two text columns; there are a, b, c")


def test_score_by_a_model_of_a_folder(run: Run, model_dir: Path, tmp_path: Path) -> None:
    """`score implicitness --model DIR` scores each text; the signature names that model, otherwise the shipped one."""
    path = write_file(tmp_path / "lines.txt", "close the door\nbrr\n")
    signatures = []
    for options in (("--model", model_dir), ()):
        lines = run("score", "implicitness", path, "--json", *options).out.splitlines()
        rows = [json.loads(line) for line in lines]
        assert all(0 <= row["implicitness"] <= 2 for row in rows)
        signatures.append(rows[0]["signature"])
    assert signatures[0] != signatures[1]
    assert "encoder:embedded@" in signatures[1]


@pytest.mark.parametrize(
    ("command", "option", "content", "message"),
    [
        (
            "rank",
            "--groups",
            '{"group": "a", "sentences": ["b", "c"]}\n{"group": "b"}\n',
            ", line 2: field 'sentences'",
        ),
        ("rank", "--groups", "{\n", ", line 1: broken JSON"),
        ("choose", "--questions", '{"reference": "a", "options": ["b", "c"], "answer": 2}', ", line 1: field 'answer'"),
        ("choose", "--questions", "", "the file holds no questions"),
        ("rank", "--groups", None, ""),
    ],
)
def test_bad_files_are_named(
    run: Run, tmp_path: Path, command: str, option: str, content: str | None, message: str
) -> None:
    """A bad line or an absent file exits with 2, and file, line and field are named; nothing is printed as data."""
    path = tmp_path / "mine.jsonl"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    result = run("groups", command, option, path, "--json")
    assert (result.code, result.out) == (2, "")
    error = " ".join(result.err.split())
    assert f"mine.jsonl{message if message.startswith(',') else ''}" in error
    assert message in error


def test_people_rank_groups(run: Run, tables: Path, model_dir: Path, tmp_path: Path) -> None:
    """`groups rate` writes sheets and guides; `groups ratings` and `groups agree` compare people with a model."""
    path, out, words = tmp_path / "g.jsonl", tmp_path / "out", ("--model", model_dir, "--json")
    lines = [{"group": str(n), "sentences": [f"a{n}", f"bb{n}", f"ccc{n}"]} for n in range(3)]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert run("groups", "agree", "--groups", path).code == 4
    assert run("groups", "rate", "ranking", "--items", path, "--rater", "anna", "--rater", "ben", "-o", out).code == 0
    assert {file.name for file in out.iterdir()} == {
        "anna.xlsx", "ben.xlsx", "guidelines.md", "hiring.md", "tasks.jsonl"
    }  # fmt: skip
    result = run("groups", "ratings", "ranking", "--items", path, "--tool", "simulated", *words).json
    assert [row["by"] for row in result["rows"]][-2:] == ["simulated_5", "model"]
    assert len(result["paper"]) == 12
    agreement = run("groups", "agree", "--groups", path, *words).json
    assert agreement["concordance"][0]["raters"] == 5
    assert run("groups", "rate", "grading").code == 2
