"""The commands that give compressions to people and take their grades."""

import json
from pathlib import Path

import polars as pl
import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from pipeline import sample, warehouse
from pipeline.commands.ndd import grades
from pipeline.errors import BadInput
from pipeline.tasks.ndd import compressions

DAY = sample.DAY
SYSTEMS = ("gold", "unedited", "head")

app = typer.Typer()
app.command("rate")(grades.rate)
app.command("ratings")(grades.ratings)


def run(*words: object) -> Result:
    """Run a command."""
    return CliRunner().invoke(app, [*map(str, words), "--day", DAY], catch_exceptions=False)


@pytest.fixture
def compressed(tables: Path) -> Path:
    """Eight sentences of the sample compressed by people and by two baselines, which need no model."""
    items, job = compressions.load_items().filter(lang="en").head(8), compressions.Job(day=DAY)
    rows = pl.concat([compressions.compress_items(items, system, job) for system in SYSTEMS])
    warehouse.overwrite("compressions", warehouse.make_slice(source="sample", day=DAY), rows)
    return tables


def test_out_to_raters_and_back(compressed: Path, tmp_path: Path) -> None:
    """Two sheets of some systems' compressions; filled in they give means with the paper's beside, as text and JSON."""
    words = ["rate", "--system", "gold", "--system", "head", "--limit", 5, "--out", tmp_path]
    words += ["--rater", "anna", "--rater", "ben", "--lang", "en"]
    result = run(*words)
    assert result.exit_code == 0
    assert "10 compressions" in result.output
    assert (tmp_path / "guidelines.md").read_text(encoding="utf-8").isascii()
    sheets = []
    for rater in ("anna", "ben"):
        rows = pl.read_excel(tmp_path / f"{rater}.xlsx", sheet_id=1)
        sheets.append(tmp_path / f"{rater}.csv")
        sheet = rows.select("task_id", rater_id=pl.lit(rater), syntax=pl.lit(4), semantics=pl.lit(2))
        sheet.write_csv(sheets[-1])
    grading = json.loads(run("ratings", *sheets, "--json").stdout)
    assert (grading["tasks"], grading["graded"], grading["waiting"]) == (10, 10, 0)
    assert [(row["system"], row["metric"], row["mean"], row["n"]) for row in grading["rows"]] == [
        ("gold", "syntax", 4, 5), ("gold", "semantics", 2, 5), ("head", "syntax", 4, 5), ("head", "semantics", 2, 5),
    ]  # fmt: skip
    assert {row["by"] for row in grading["rows"]} == {"human"}
    assert len(grading["agreement"]) == 6
    with pytest.raises(BadInput, match=r"anna.xlsx: is there and may hold grades"):
        run(*words)
    with pytest.raises(BadInput, match="people have graded compressions of 'sample'"):
        run("ratings", "--tool", "simulated")


def test_made_up_raters_are_told_of(compressed: Path) -> None:
    """Without sheets tasks and guidelines lie in the folder; simulated raters grade all, and the command says so."""
    assert run("rate").exit_code == 0
    folder = compressed / "labelling" / "integrity_sample"
    assert sorted(path.name for path in folder.iterdir()) == ["guidelines.md", "labels", "tasks.jsonl"]
    result = run("ratings", "--tool", "simulated")
    assert result.exit_code == 0
    assert "these grades are simulated" in result.stderr
    for word in ("gold", "unedited", "head", "simulated", "weighted_kappa_linear", "semantics_paper"):
        assert word in result.output
    assert "waiting 0" in result.stderr
