"""Commands that apply a model: rank, choose, distance, score; by the shipped model and by one of a folder."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

Run = Callable[..., Any]

SENTENCES = [["close the door", "it is cold in here", "brr"], ["i want to go home", "it is late", "what time is it"]]


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """Two graded groups."""
    path = tmp_path / "groups.jsonl"
    lines = [{"group": f"g{number}", "sentences": sentences} for number, sentences in enumerate(SENTENCES)]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Two questions whose right option is the reference itself, and one whose is not."""
    path = tmp_path / "questions.jsonl"
    lines = [
        {"reference": "close the door", "options": ["what a day", "close the door"], "answer": 1},
        {"reference": "go home", "options": ["go home", "nice hat", "cold soup"], "answer": 0},
        {"reference": "nice hat", "options": ["nice hat", "cold soup"], "answer": 1},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_rank_of_a_file(run: Run, groups: Path, model_dir: Path) -> None:
    """`rank --groups F --model DIR --json` has the model's tau and rho on top, the baselines among the rows."""
    done = run("groups", "rank", "--groups", groups, "--model", model_dir, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert -1 <= told["kendall_tau"] <= 1
    assert -1 <= told["spearman_rho"] <= 1
    assert told["group_count"] == 2
    assert [row["by"] for row in told["rows"]] == ["implicitness", "longer", "length", "punctuation", "words"]
    assert told["rows"][0]["kendall_tau"] == told["kendall_tau"]
    longer = told["rows"][1]["kendall_tau"]
    assert longer == pytest.approx((-1 / 3 - 1 / 3) / 2, abs=1e-6)  # 14, 18, 3 and 17, 10, 15 characters
    assert "kendall_tau" in run("groups", "rank", "--groups", groups, "--model", model_dir).out


def test_rank_as_it_is_shipped(run: Run) -> None:
    """Without options the shipped model ranks the shipped English groups that it was not trained on."""
    told = json.loads(run("groups", "rank", "--json").out)
    assert told["kendall_tau"] > 0.3
    assert told["group_count"] >= 40


def test_choose(run: Run, questions: Path, model_dir: Path, tmp_path: Path) -> None:
    """`choose --questions F --json` has the accuracy on top, here 2 of 3, and writes every answer if asked."""
    done = run(
        "groups", "choose", "--questions", questions, "--model", model_dir, "--json", "--out", tmp_path / "a.jsonl"
    )
    told = json.loads(done.out)
    assert told["accuracy"] == pytest.approx(2 / 3, abs=1e-6)
    assert told["question_count"] == 3
    assert told["rows"][1] == {"by": "chance", "question_count": 3, "accuracy": pytest.approx(4 / 9, abs=1e-6)}
    written = pl.read_ndjson(tmp_path / "a.jsonl")
    assert written["chosen"].to_list() == [1, 0, 0]
    assert written["is_right"].to_list() == [True, True, False]


def test_choose_as_it_is_shipped(run: Run) -> None:
    """Without options the shipped model answers questions made of the groups it was not trained on."""
    told = json.loads(run("groups", "choose", "--json").out)
    assert told["accuracy"] > told["rows"][1]["accuracy"]


@pytest.mark.parametrize("model", [True, False], ids=["of a folder", "shipped"])
def test_distance(run: Run, model_dir: Path, tmp_path: Path, model: bool) -> None:
    """`distance --pairs F` adds a column: 0 for equal texts, empty where there is none; as csv, JSON or into a file."""
    path = tmp_path / "pairs.csv"
    path.write_text("id,implicit,explicit\n1,brr,it is cold\n2,brr,brr\n3,brr,\n", encoding="utf-8")
    words = ("pairs", "distance", "--pairs", path, *(("--model", model_dir) if model else ()))
    rows = list(csv.DictReader(io.StringIO(run(*words).out)))
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    values = [row["pragmatic_distance"] for row in rows]
    assert float(values[0]) > 0
    assert (float(values[1]), values[2]) == (0.0, "")
    told = [json.loads(line) for line in run(*words, "--json").out.splitlines()]
    assert told[0]["pragmatic_distance"] == float(values[0])
    run(*words, "--out", tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet")["pragmatic_distance"].to_list()[0] == float(values[0])


def test_distance_of_other_columns(run: Run, model_dir: Path, tmp_path: Path) -> None:
    """Any two text columns can be named; one that is not there is BadInput and says which there are."""
    path = tmp_path / "mine.csv"
    path.write_text("a,b,c\nbrr,it is cold,brr\n", encoding="utf-8")
    words = ("pairs", "distance", "--pairs", path, "--model", model_dir, "--json", "--columns")
    assert json.loads(run(*words, "a,c").out)["pragmatic_distance"] == 0.0
    done = run(*words, "a,d")
    assert done.code == 2
    assert "mine.csv: expected two text columns; there are a, b, c" in " ".join(done.err.split())


def test_score_by_a_model_of_a_folder(run: Run, model_dir: Path, tmp_path: Path) -> None:
    """`score implicitness --model DIR` scores each text; the signature names that model, otherwise the shipped one."""
    path = tmp_path / "lines.txt"
    path.write_text("close the door\nbrr\n", encoding="utf-8")
    by = []
    for words in (("--model", model_dir), ()):
        told = [json.loads(line) for line in run("score", "implicitness", path, "--json", *words).out.splitlines()]
        assert all(0 <= row["implicitness"] <= 2 for row in told)
        by.append(told[0]["signature"])
    assert by[0] != by[1]
    assert "encoder:embedded@" in by[1]


@pytest.mark.parametrize(
    ("command", "option", "content", "said"),
    [
        ("rank", "--groups", '{"group": "a", "sentences": ["b", "c"]}\n{"group": "b"}\n', "line 2: field 'sentences'"),
        ("rank", "--groups", "{\n", "line 1: broken JSON"),
        ("choose", "--questions", '{"reference": "a", "options": ["b", "c"], "answer": 2}\n', "line 1: field 'answer'"),
        ("choose", "--questions", "", "the file holds no questions"),
    ],
)  # fmt: skip
def test_bad_files_are_named(run: Run, tmp_path: Path, command: str, option: str, content: str, said: str) -> None:
    """A bad line exits with 2 and names file, line and field; nothing is printed as data."""
    path = tmp_path / "mine.jsonl"
    path.write_text(content, encoding="utf-8")
    done = run("groups", command, option, path, "--json")
    assert (done.code, done.out) == (2, "")
    assert f"mine.jsonl{'' if 'no questions' in said else ','}" in " ".join(done.err.split())
    assert said in " ".join(done.err.split())


def test_a_file_that_is_not_there(run: Run) -> None:
    """An absent file exits with 2 and is named."""
    done = run("groups", "rank", "--groups", "nowhere.jsonl")
    assert done.code == 2
    assert "nowhere.jsonl" in done.err
