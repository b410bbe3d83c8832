"""The commands about article commenting, run as scripts run them."""

import json
from pathlib import Path

import pytest

from pipeline import sample, warehouse
from tests.commands.conftest import Run

DAY = sample.DAY
MAPPING = ",".join(f"{ours}={theirs}" for ours, theirs in sample.THREAD_COLUMNS.items())


def settings(**numbers: object) -> list[str]:
    """`--set name=value` for each."""
    return [word for name, value in numbers.items() for word in ("--set", f"{name}={value}")]


def test_from_articles_to_correlations(run: Run, tables: Path) -> None:
    """Import, tokenize, build, train, generate, have graded, measure, correlate, and a page: one command each."""
    assert run("import", sample.THREADS, "--source", "sample_news", "--day", DAY, "--map", MAPPING).code == 0
    assert run("tokenize", "--day", DAY).code == 0
    built = run("commenting", "build", "--day", DAY)
    assert "train 20" in built.err
    assert "27 (27)" in built.out
    told = [json.loads(line) for line in run("commenting", "stats", "--json").out.splitlines()]
    assert [row["split"] for row in told] == ["train", "validation", "test", "all"]
    small = settings(hidden=8, embedding=8, epochs=1, judged=20, foreign=5)
    assert run("train", "commenter", "--system", "ir_t", "--day", DAY, *small).code == 0
    made = run("commenting", "generate", "--day", DAY, "--json")
    assert [json.loads(line)["system"] for line in made.out.splitlines()] == ["ir_t", "human"]
    for kind in ("references", "candidates"):
        assert run("commenting", "rate", kind, "--rater", "anna", "--rater", "ben", "--day", DAY).code == 0
        graded = json.loads(run("commenting", "ratings", kind, "--tool", "simulated", "--json").out)
        assert graded["waiting"] == 0
        assert {row["weights"] for row in graded["rows"]} == {"linear", "quadratic"}
    assert (tables / "labelling" / "quality_references" / "anna.xlsx").is_file()
    assert "w_meteor" in run("commenting", "measure", "--day", DAY).out
    correlated = run("commenting", "correlate", "--day", DAY, "--json")
    assert {"meteor", "human"} <= {json.loads(line)["metric"] for line in correlated.out.splitlines()}
    page = run("commenting", "page", "--day", DAY)
    assert "<svg" in Path(page.out.strip()).read_text(encoding="utf-8")
    assert run("check").code == 0
    said = run("commenting", "comment", "--title", "公交改线", "--system", "ir_t")
    assert said.out.strip() in set(warehouse.scan("comments").select("text").collect()["text"])


def test_a_commenter_of_a_file(run: Run, tmp_path: Path) -> None:
    """A file is trained on in a folder, which comments on a title, and on the articles of a table."""
    small = settings(hidden=8, embedding=8, epochs=1, vocabulary=100)
    model = tmp_path / "model"
    trained = run(
        "train", "commenter", "--system", "att", "--data", sample.THREADS, "-o", model, "--map", MAPPING, *small
    )
    assert trained.code == 0, trained.err
    said = json.loads(
        run(
            "commenting", "comment", "--model", model, "--title", "公交改线", "--count", "2", "--json"
        ).out.splitlines()[0]
    )
    assert said["signature"].startswith("att|model:")
    (tmp_path / "a.csv").write_text("title,content\n公交改线,老人怎么办\n", encoding="utf-8")
    out = tmp_path / "c.jsonl"
    assert (
        run("commenting", "comment", "-m", model, "--file", tmp_path / "a.csv", "--method", "sample", "-o", out).code
        == 0
    )
    assert json.loads(out.read_text(encoding="utf-8").splitlines()[0])["comment"]


def test_overlap_of_files(run: Run, tmp_path: Path) -> None:
    """Metrics by name on standard output, as a table or as JSON; a bad line ends with exit code 2 and its place."""
    (tmp_path / "c.txt").write_text("the bus is late\n", encoding="utf-8")
    (tmp_path / "r.jsonl").write_text('["the bus is late", "no bus"]\n', encoding="utf-8")
    (tmp_path / "w.jsonl").write_text("[0.5, 1.0]\n", encoding="utf-8")
    files = ["--candidates", tmp_path / "c.txt", "--references", tmp_path / "r.jsonl"]
    plain = json.loads(run("commenting", "overlap", *files, "--metric", "bleu_1", "--tokenize", "none", "--json").out)
    assert plain["bleu_1"] == 1
    weighed = run("commenting", "overlap", *files, "--weights", tmp_path / "w.jsonl", "--tokenize", "none", "--json")
    # the, is and late count half; bus is in the other reference, whose weight is 1
    assert json.loads(weighed.out)["bleu_1"] == pytest.approx((3 * 0.5 + 1) / 4)
    assert "rouge_l" in run("commenting", "overlap", *files).out
    (tmp_path / "w.jsonl").write_text("[0.5]\n", encoding="utf-8")
    bad = run("commenting", "overlap", *files, "--weights", tmp_path / "w.jsonl")
    assert bad.code == 2
    assert "row 1, weights: expected a list of 2" in bad.err


def test_correlations_of_a_file(run: Run, tmp_path: Path) -> None:
    """A table with a column of grades gives a row a metric; without the column it is refused."""
    path = tmp_path / "scores.csv"
    lines = "\n".join(f"{n % 5},{n},{n // 3}" for n in range(30))
    path.write_text(f"human,meteor,article\n{lines}\n", encoding="utf-8")
    found = run("commenting", "correlate", path, "--grade", "human", "--group", "article")
    assert "meteor" in found.out
    assert run("commenting", "correlate", path).code == 2


def test_a_scorer_of_a_file(run: Run, tmp_path: Path) -> None:
    """Graded comments make a scorer, which scores a file and is measured on another."""
    rows = [f"{'好' * (n % 5 + 1)}第{n}条,{n % 5 + 1},a{n // 6}" for n in range(300)]
    path = tmp_path / "graded.csv"
    path.write_text("text,grade,article_id\n" + "\n".join(rows), encoding="utf-8")
    small = settings(has_embedding="false", buckets=256)
    trained = run("train", "quality", "--data", path, "-o", tmp_path / "scorer", *small, "--json")
    assert trained.code == 0, trained.err
    assert {"spearman", "pairwise_accuracy"} <= {row["metric"] for row in json.loads(trained.out)["rows"]}
    scored = run("score", "quality", path, "--model", tmp_path / "scorer", "--json")
    assert 1 <= json.loads(scored.out.splitlines()[0])["quality"] <= 5
    measured = run("evaluate", "quality", "--data", path, "--model", tmp_path / "scorer")
    assert "spearman" in measured.out
    assert run("train", "quality", "--data", path).code == 2


def test_grades_of_others(run: Run, tables: Path, tmp_path: Path) -> None:
    """Published grades come in by the ids of comments that are there; others are refused."""
    run("import", sample.THREADS, "--source", "sample_news", "--day", DAY, "--map", MAPPING)
    path = tmp_path / "grades.csv"
    path.write_text("thread_id,comment_id,grade\na01,a01-01,4\n", encoding="utf-8")
    assert run("commenting", "grades", path).code == 0
    assert warehouse.scan("comment_grades").collect()["grade"].to_list() == [4.0]
    path.write_text("thread_id,comment_id,grade\na01,a99-01,4\n", encoding="utf-8")
    assert run("commenting", "grades", path).code == 2
