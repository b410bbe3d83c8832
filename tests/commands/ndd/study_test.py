"""Commands about what NDD is worth: compressions measured, out to raters, and their grades back."""

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.tasks.ndd import compressions
from tests.commands.conftest import Run


def test_baselines_and_answers(run: Run, tmp_path: Path) -> None:
    """Without answers there are the baselines; with them they come first; what was left out is told."""
    path = tmp_path / "data.jsonl"
    rows = [{"text": "the old bus is late", "compressed": "the bus is late"}, {"text": "so", "compressed": "never"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    alone = run("evaluate", "compression", "--data", path).check(0, "read: left out 1 as not_aligned")
    assert "f1_macro" in alone.out
    answers = tmp_path / "answers.jsonl"  # of the left out sentence and of another split as well
    predictions = [{"text": "of another split", "compressed": "split"}, rows[0], {"text": "so", "compressed": "so"}]
    answers.write_text("".join(json.dumps(row) + "\n" for row in predictions), encoding="utf-8")
    result = run("evaluate", "compression", "--data", path, "--predictions", answers, "--json")
    result.check(0, "predictions: left out 2 as not_in_data")
    first = json.loads(result.out.splitlines()[0])
    assert (first["by"], first["metric"], first["value"]) == ("answers", "f1_macro", 1.0)
    assert run("evaluate", "compression", "--data", tmp_path / "none.jsonl").code == 2


DAY = sample.DAY
SYSTEMS = ("gold", "unedited", "head")


@pytest.fixture
def compressed(tables: Path) -> Path:
    """Eight sentences of the sample compressed by people and by two baselines, which need no model."""
    items, job = compressions.load_items().filter(lang="en").head(8), compressions.Job(day=DAY)
    rows = pl.concat([compressions.compress_items(items, system, job) for system in SYSTEMS])
    warehouse.overwrite("compressions", warehouse.make_slice(source="sample", day=DAY), rows)
    return tables


def test_out_to_raters_and_back(run: Run, compressed: Path, tmp_path: Path) -> None:
    """Two sheets of some systems' compressions; filled in they give means with the paper's beside, as text and JSON."""
    words = ["ndd", "rate", "--day", DAY, "--system", "gold", "--system", "head", "--limit", 5, "--out", tmp_path]
    words += ["--rater", "anna", "--rater", "ben", "--lang", "en"]
    run(*words).check(0, "10 compressions")
    assert (tmp_path / "guidelines.md").read_text(encoding="utf-8").isascii()
    sheets = []
    for rater in ("anna", "ben"):
        rows = pl.read_excel(tmp_path / f"{rater}.xlsx", sheet_id=1)
        sheets.append(tmp_path / f"{rater}.csv")
        sheet = rows.select("task_id", rater_id=pl.lit(rater), syntax=pl.lit(4), semantics=pl.lit(2))
        sheet.write_csv(sheets[-1])
    grading = run("ndd", "ratings", *sheets, "--day", DAY, "--json").json
    assert (grading["tasks"], grading["graded"], grading["waiting"]) == (10, 10, 0)
    assert [(row["system"], row["metric"], row["mean"], row["n"]) for row in grading["rows"]] == [
        ("gold", "syntax", 4, 5), ("gold", "semantics", 2, 5), ("head", "syntax", 4, 5), ("head", "semantics", 2, 5),
    ]  # fmt: skip
    assert {row["by"] for row in grading["rows"]} == {"human"}
    assert len(grading["agreement"]) == 6
    run(*words).check(2, "anna.xlsx: is there and may hold grades")
    simulated = ("ndd", "ratings", "--tool", "simulated", "--day", DAY)
    run(*simulated).check(2, "people have graded compressions of 'sample'")


def test_made_up_raters_are_told_of(run: Run, compressed: Path) -> None:
    """Without sheets tasks and guidelines lie in the folder; simulated raters grade all, and the command says so."""
    run("ndd", "rate", "--day", DAY).check()
    folder = compressed / "labelling" / "integrity_sample"
    assert sorted(path.name for path in folder.iterdir()) == ["guidelines.md", "labels", "tasks.jsonl"]
    simulated = ("ndd", "ratings", "--tool", "simulated", "--day", DAY)
    result = run(*simulated).check(0, "these grades are simulated", "waiting 0")
    for word in ("gold", "unedited", "head", "simulated", "weighted_kappa_linear", "semantics_paper"):
        assert word in result.out + result.err
