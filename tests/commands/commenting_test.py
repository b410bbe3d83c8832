"""The commands about article commenting, run as scripts run them."""

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from tests.commands.conftest import Run, write_file

DAY = sample.DAY
MAPPING = ",".join(f"{name}={column}" for name, column in sample.THREAD_COLUMNS.items())
IMPORT = ("import", sample.THREADS, "--source", "sample_news", "--day", DAY, "--map", MAPPING)


def set_numbers(**numbers: object) -> list[str]:
    """`--set name=value` for each."""
    return [word for name, value in numbers.items() for word in ("--set", f"{name}={value}")]


@pytest.mark.nightly
def test_from_articles_to_correlations(run: Run, tables: Path) -> None:
    """Import, tokenize, build, train, generate, have graded, measure, correlate, and a page: one command each."""
    assert run(*IMPORT).code == 0
    assert run("tokenize", "--day", DAY).code == 0
    corpus = run("commenting", "build", "--day", DAY)
    assert "train 20" in corpus.err
    assert "27 (27)" in corpus.out
    statistics = run("commenting", "stats", "--json").rows
    assert [row["split"] for row in statistics] == ["train", "validation", "test", "all"]
    small = set_numbers(hidden=8, embedding=8, epochs=1, judged=20, foreign=5)
    training = run("train", "commenter", "--system", "ir_t", "--day", DAY, "--promote", *small)
    assert (training.code, "0.408" in training.out) == (0, True)  # H(6) / 6, the rank by chance
    counts = run("commenting", "generate", "--day", DAY, "--json").rows
    assert [row["system"] for row in counts] == ["ir_t", "human"]
    run("commenting", "measure", "--day", DAY, "--preset", "s/max").check(
        0, "nothing is weighted, and s/max had no effect"
    )
    for kind in ("references", "candidates"):
        assert run("commenting", "rate", kind, "--rater", "anna", "--rater", "ben", "--day", DAY).code == 0
        grades = run("commenting", "ratings", kind, "--tool", "simulated", "--json").json
        assert grades["waiting"] == 0
        assert {row["weights"] for row in grades["rows"]} == {"linear", "quadratic"}
    assert (tables / "labelling" / "quality_references" / "anna.xlsx").is_file()
    assert "w_meteor" in run("commenting", "measure", "--day", DAY).out
    correlations = run("commenting", "correlate", "--day", DAY, "--json", "--spearman-brown")
    assert "random divisions of the graders, seed 42, corrected by Spearman-Brown" in correlations.err
    assert {"meteor", "human"} <= {row["metric"] for row in correlations.rows}
    page = run("commenting", "page", "--day", DAY)
    assert "<svg" in Path(page.out.strip()).read_text(encoding="utf-8")
    assert run("check").code == 0
    comment = run("commenting", "comment", "--title", "公交改线", "--system", "ir_t")
    assert comment.out.strip() in set(warehouse.scan("comments").select("text").collect()["text"])


def test_a_commenter_of_a_file(run: Run, tmp_path: Path) -> None:
    """A file is trained on in a folder, which comments on a title, and on the articles of a table."""
    model, out, articles = (tmp_path / name for name in ("model", "c.jsonl", "a.csv"))
    small = set_numbers(hidden=8, embedding=8, epochs=1, vocabulary=100)
    source = ("--data", sample.THREADS, "-o", model, "--map", MAPPING)
    run("train", "commenter", "--system", "att", *source, *small).check()
    comments = run("commenting", "comment", "--model", model, "--title", "公交改线", "--count", "2", "--json")
    assert comments.rows[0]["signature"].startswith("att|model:")
    several = run("commenting", "comment", "-m", model, "--title", "公交改线", "--method", "greedy", "--count", "3")
    several.check(2, "--count 3: --method greedy gives at most 1; give --method sample")
    articles.write_text("title,content\n公交改线,老人怎么办\n", encoding="utf-8")
    assert run("commenting", "comment", "-m", model, "--file", articles, "--method", "sample", "-o", out).code == 0
    assert pl.read_ndjson(out)["comment"][0]


def test_headlines_are_written(run: Run, tmp_path: Path) -> None:
    """A commenter of articles whose one comment is the headline writes headlines (AAC-34)."""
    news, model = tmp_path / "news.jsonl", tmp_path / "m"
    rows = ({"id": str(n), "body": f"the bus {n} is late", "headline": f"bus {n} late"} for n in range(30))
    news.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    mapping = "thread_id=id,comment_id=id,article_text=body,text=headline"
    small = set_numbers(hidden=8, embedding=8, epochs=1, vocabulary=100)
    run("train", "commenter", "--system", "att", "--data", news, "-o", model, "--map", mapping, *small).check()
    words = run("commenting", "comment", "-m", model, "--title", "", "--content", "the bus 3 is late").out.split()
    assert set(words) <= {"bus", "late", *map(str, range(30))}


def test_overlap_of_files(run: Run, tmp_path: Path) -> None:
    """Metrics by name on standard output, as a table or as JSON; a bad line ends with exit code 2 and its place."""
    candidates, references, weights = (tmp_path / name for name in ("c.txt", "r.jsonl", "w.jsonl"))
    candidates.write_text("the bus is late\n", encoding="utf-8")
    references.write_text('["the bus is late", "no bus"]\n', encoding="utf-8")
    weights.write_text("[0.5, 1.0]\n", encoding="utf-8")
    files = ["--candidates", candidates, "--references", references]
    plain = run("commenting", "overlap", *files, "--metric", "bleu_1", "--tokenize", "none", "--json").json
    assert plain["bleu_1"] == 1
    weighted = run("commenting", "overlap", *files, "--weights", weights, "--tokenize", "none", "--json")
    # the, is and late count half; bus is in the other reference, whose weight is 1
    assert weighted.json["bleu_1"] == pytest.approx((3 * 0.5 + 1) / 4)
    result = run("commenting", "overlap", *files)
    assert "rouge_l" in result.out
    assert "CIDEr is 0: it weighs words by how few candidates' references have them" in result.err
    documents = write_file(tmp_path / "d.jsonl", '["the bus is late"]\n["no bus"]\n')
    assert "CIDEr is 0" not in run("commenting", "overlap", *files, "--documents", documents).err
    weights.write_text("[0.5]\n", encoding="utf-8")
    run("commenting", "overlap", *files, "--weights", weights).check(2, "row 1, weights: expected a list of 2")


def test_segments_of_files_are_correlated(run: Run, tmp_path: Path) -> None:
    """`--segments` writes a row a candidate, which `correlate` reads; the options reach the library.

    Of two words one is a reference's, so BLEU-1 is 1 / 2; its weight of a grade g by (s-1)/4 is (g - 1) / 4.
    """
    paths = {name: tmp_path / name for name in ("c.txt", "o.txt", "r.jsonl", "w.jsonl", "g.txt", "a.txt", "s.csv")}
    counts = range(1, 41)
    lines = {
        "c.txt": ["so " + ("late" if n % 2 else "so") for n in counts], "o.txt": ["so late"] * 40,
        "r.jsonl": ['["so late"]'] * 40, "w.jsonl": [f"[{1 + n % 5}]" for n in counts],
        "g.txt": [str(1 + n % 2 + n % 3) for n in counts], "a.txt": [str(n % 10) for n in counts],
    }  # fmt: skip
    for name, texts in lines.items():
        paths[name].write_text("\n".join(texts) + "\n", encoding="utf-8")
    files = ["--candidates", paths["c.txt"], "--references", paths["r.jsonl"], "--tokenize", "none"]
    more = ["--weights", paths["w.jsonl"], "--preset", "(s-1)/4", "--groups", paths["a.txt"], "--metric", "bleu_1"]
    more += ["--metric", "bleu_2", "--set", "bleu_2.smoothing=exp", "--draws", 50, "--confidence", 0.9, "--json"]
    graded = ["--segments", paths["s.csv"], "--grades", paths["g.txt"]]
    assert "smoothing:exp" in run("commenting", "overlap", *files, *more, *graded).json["rows"][1]["signature"]
    rows = pl.read_csv(paths["s.csv"])
    assert set(rows.columns) == {"grade", "group", "bleu_1", "bleu_2", "w_bleu_1", "w_bleu_2"}
    assert rows.select("bleu_1", "w_bleu_1").rows()[:2] == [(1.0, 0.25), (0.5, 0.25)]
    correlations = run("commenting", "correlate", paths["s.csv"], "--group", "group", "--json").rows
    assert {(row["metric"], row["is_weighted"], row["n"]) for row in correlations} == {
        (metric, is_weighted, 40) for metric in ("bleu_1", "bleu_2") for is_weighted in (False, True)
    }
    assert run("commenting", "overlap", *files, "--against", paths["o.txt"], *more).json["bleu_1"] < 0
    paths["w.jsonl"].write_text("", encoding="utf-8")
    empty = [*graded[:3], paths["w.jsonl"]]
    for words in (graded[2:], ["--set", "smoothing=exp"], ["--preset", "s/5"], ["--groups", empty[3]], empty):
        assert run("commenting", "overlap", *files, *words).code == 2
    paths["g.txt"].write_text("nan\n" * 40, encoding="utf-8")
    run("commenting", "overlap", *files, *graded).check(2, "line 1: expected a finite number, found 'nan'")


@pytest.mark.parametrize(
    ("rows", "message"),
    [(["1,0.1", "2,0.3"], "no correlations: they need at least three rows"), (["1,2", "2,4", "4,3"], "no intervals")],
)
def test_missing_correlations_are_explained(run: Run, tmp_path: Path, rows: list[str], message: str) -> None:
    """Too few rows give no correlation, too few articles no interval; a column of grades that is absent is refused."""
    path = write_file(tmp_path / "scores.csv", "human,meteor\n" + "\n".join(rows))
    assert message in run("commenting", "correlate", path, "--grade", "human").err
    assert run("commenting", "correlate", path).code == 2


def test_columns_that_are_not_correlated_are_reported(run: Run, tmp_path: Path) -> None:
    """A column without a number is left out; one that lacks half of its numbers or more is reported with a count."""
    path = write_file(tmp_path / "scores.csv", "name,grade,meteor,bleu\na,1,2,1\nb,2,4,\nc,4,3,2\nd,3,1,\n")
    result = run("commenting", "correlate", path, "--json").check(0, "ignored column 'bleu'; cells without a number: 2")
    assert [row.get("metric") for row in result.rows] == ["meteor", "meteor", None]  # the last is what was ignored
    assert "'name'" not in result.err


def test_a_scorer_of_a_file(run: Run, tmp_path: Path) -> None:
    """Graded comments make a scorer, which scores a file and is measured on another."""
    lines = "\n".join(f"{'好' * (n % 5 + 1)}第{n}条,{n % 5 + 1},a{n // 6}" for n in range(300))
    path = write_file(tmp_path / "graded.csv", f"text,grade,article_id\n{lines}")
    small = set_numbers(has_embedding="false", buckets=256)
    training = run("train", "quality", "--data", path, "-o", tmp_path / "scorer", *small, "--json").check()
    assert {"spearman", "pairwise_accuracy"} <= {row["metric"] for row in training.json["rows"]}
    texts = write_file(tmp_path / "texts.txt", "好第0条\n \n")
    scores = run("score", "quality", texts, "--model", tmp_path / "scorer", "--json")
    assert 1 <= scores.check(0, "score: left out 1 as no_text").rows[0]["quality"] <= 5
    assert scores.rows[1]["quality"] is None
    part = write_file(tmp_path / "part.csv", "\n".join(path.read_text().splitlines()[:41]))
    for data, note in ((path, ""), (part, "there is no record of what it learned from")):
        result = run("evaluate", "quality", "--data", data, "--model", tmp_path / "scorer")
        assert "spearman" in result.check(0, note).out
    assert run("train", "quality", "--data", path).code == 2


def test_a_scorer_is_measured_on_what_it_did_not_learn_from(run: Run, home: Path, tables: Path) -> None:
    """Of a part of its own data nothing is left to measure, which is said; a model below the home has a record."""
    lines = [f"{'好' * (n % 5 + 1)}第{n}条,{n % 5 + 1},a{n // 6}" for n in range(300)]
    path = write_file(home / "graded.csv", "\n".join(["text,grade,article_id", *lines]))
    run(
        "train", "quality", "--data", path, "-o", home / "scorer", *set_numbers(has_embedding="false", buckets=256)
    ).check()
    path.write_text("\n".join(["text,grade,article_id", *lines[:40]]), encoding="utf-8")
    result = run("evaluate", "quality", "--data", path, "--model", home / "scorer", "--json").check(0, "not measured")
    assert result.json["numbers"] == []


def test_published_grades(run: Run, tables: Path, tmp_path: Path) -> None:
    """Published grades come in by the ids of comments that exist; others are refused."""
    run(*IMPORT)
    path = write_file(tmp_path / "grades.csv", "thread_id,comment_id,rater_id,grade\na01,a01-01,x,4\na01,a01-01,y,5\n")
    assert run("commenting", "grades", path).code == 0
    assert warehouse.scan("comment_grades").collect()["grade"].to_list() == [4.5]
    path.write_text("thread_id,comment_id,grade\na01,a99-01,4\n", encoding="utf-8")
    assert run("commenting", "grades", path).code == 2
