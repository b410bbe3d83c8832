"""Commands about labels: out to raters, in, adjudicated, measured, published."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.label import schema
from tests.support.filled import filled

Run = Callable[..., Any]

DAY = sample.DAY


@pytest.fixture
def comments(tables: Path) -> None:
    """Two comments of a day."""
    rows = filled(
        "comments", *({"text": text, "context": "标题", "lang": "zh"} for text in ("这也太快了吧", "风挺大的"))
    )
    warehouse.overwrite("comments", warehouse.slice_of(day=DAY), rows)


def rows(told: str) -> list[dict[str, Any]]:
    """One JSON object a line."""
    return [json.loads(line) for line in told.splitlines()]


def filled_in(sheet: Path, subtext: str) -> Path:
    """A sheet as a rater sends it back."""
    told = pl.read_excel(sheet, sheet_id=1, infer_schema_length=0)
    values = {name: pl.lit("None" if name == "emotion" else "-1") for name in schema.FIELDS}
    path = sheet.with_suffix(".csv")
    told.with_columns(**values).with_columns(subtext=pl.lit(subtext)).write_csv(path)
    return path


def test_from_export_to_release(run: Run, comments: None, tmp_path: Path) -> None:
    """Sheets go out, come back, an adjudicator decides, agreement is told, and the data set is published."""
    out = tmp_path / "out"
    done = run(
        "label", "export", "--day", DAY, "-o", out, "--rater", "anna", "--rater", "ben", "--rater", "chen", "--json"
    )
    assert done.code == 0, done.err
    assert rows(done.out) == [{"project": "csd", "tasks": 2, "folder": str(out)}]
    sheets = [filled_in(out / f"{name}.xlsx", said) for name, said in (("anna", "1"), ("ben", "1"), ("chen", "-1"))]
    done = run("label", "import", *sheets, "--json")
    assert done.code == 0, done.err
    assert {(row["state"], row["fields"]) for row in rows(done.out)} == {("adopted", 14), ("open", 2)}

    done = run("label", "adjudicate", "-o", tmp_path / "more", "--adjudicator", "dora", "--json")
    (told,) = rows(done.out)
    assert (told["round"], told["stage"], told["tasks"], told["fields"]) == (1, 2, 2, 2)
    sheet = Path(told["folder"]) / "dora.xlsx"
    asked = pl.read_excel(sheet, sheet_id=1, infer_schema_length=0)
    assert [name for name in asked.columns if name in schema.FIELDS] == ["subtext"]
    path = tmp_path / "dora.csv"
    asked.with_columns(subtext=pl.lit("1"), rater_id=pl.lit("anna")).write_csv(path)
    for _ in range(2):  # also when nothing is new, so that nobody waits for what does not count
        done = run("label", "import", path)
        assert "labels: left out 2 as adjudicator_was_rater: the adjudicator labelled these tasks" in done.err
    assert rows(run("label", "import", path, "--json").out)[-1]["dropped"][0]["row_count"] == 2
    asked.with_columns(subtext=pl.lit("1")).write_csv(path)
    assert run("label", "import", path).code == 0

    found = {row["field"]: row for row in rows(run("label", "agreement", "--json").out)}
    assert found["subtext"]["tae"] == pytest.approx(0.3461, abs=1e-4)  # CSD-20: (1, 1, -1 | 1)
    assert found["sarcasm"]["tae_low"] == 1.0
    done = run("label", "release", "--licence", "CC-BY-4.0", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["row_count"] == 2
    assert pl.read_parquet(Path(told["folder"]) / "data.parquet")["subtext"].to_list() == ["1", "1"]
    assert rows(run("label", "adjudicate", "--json").out) == []
    row_id = pl.read_parquet(Path(told["folder"]) / "data.parquet")["row_id"][0]
    assert rows(run("label", "withdraw", row_id, "--json").out) == [
        {"project": "csd", "row_count": 1, "releases": "csd"}
    ]
    assert pl.read_parquet(Path(told["folder"]) / "data.parquet").height == 1
    assert run("label", "withdraw", row_id).code == 4


def test_simulated_raters(run: Run, comments: None) -> None:
    """`label collect` does one step after the other, and nothing when all is settled."""
    run("label", "export", "--day", DAY)
    for _ in range(5):
        done = run("label", "collect", "--tool", "simulated", "--json")
        assert done.code == 0, done.err
    assert "open" not in {row["state"] for row in rows(done.out)}
    assert {row["state"] for row in rows(run("label", "status", "--json").out)} <= {"adopted", "adjudicated", "deleted"}


def test_agreement_of_a_file(run: Run, home: Path, tmp_path: Path) -> None:
    """Agreement of a file needs no project; by JSON it has the intervals, as a table it has not."""
    path = tmp_path / "labels.csv"
    lines = [
        f"t{t},r{r},{f},{'None' if f == 'emotion' else 1}" for t in range(3) for r in range(3) for f in schema.FIELDS
    ]
    path.write_text("\n".join(["task_id,rater_id,field,value", *lines]), encoding="utf-8")
    done = run("label", "agreement", path, "--json")
    assert [row["field"] for row in rows(done.out)] == list(schema.FIELDS)
    assert {(row["n"], row["tae"], row["tae_low"]) for row in rows(done.out)} == {(3, 1.0, 1.0)}
    assert "tae_low" not in run("label", "agreement", path).out
    assert not home.exists()


def test_a_day_that_gives_nothing(run: Run, comments: None) -> None:
    """A day without comments is told with the days there are, one whose comments do not fit with the rules' counts."""
    done = run("label", "export", "--day", "2026-01-01")
    assert (done.code, f"no comments of 2026-01-01; days with comments, the newest first: {DAY}" in done.err) == (
        4,
        True,
    )
    done = run("label", "export", "--day", DAY, "--lang", "en")
    assert (done.code, "fits the rules, which dropped: language 2" in done.err) == (4, True)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("status",), 4, "project 'csd' has no tasks"),
        (("release",), 4, "project 'csd' has no tasks"),
        (("export", "--project", "other"), 4, "project 'other' has no tasks"),
        (("export", "--day", "yesterday"), 2, "yesterday"),
        (("collect", "--tool", "paper"), 2, "paper"),
    ],
)
def test_what_is_refused(run: Run, tables: Path, words: tuple[str, ...], code: int, told: str) -> None:
    """What cannot be done says why, by its exit code too, and writes nothing."""
    done = run("label", *words)
    assert (done.code, told in done.err) == (code, True), done.err
    assert all(warehouse.snapshot(name) is None for name in ("label_tasks", "labels", "annotations"))


def test_a_raters_name_names_a_file(run: Run, comments: None, tmp_path: Path) -> None:
    """A name that would lead out of the folder is refused before anything is written."""
    done = run("label", "export", "--day", DAY, "-o", tmp_path / "o", "--rater", "../anna")
    assert done.code == 2
    assert "letters, digits" in done.err
    assert not (tmp_path / "o").exists()


def test_guidelines(run: Run, tmp_path: Path) -> None:
    """`label guidelines` writes the raters' page in either language."""
    for lang in ("zh", "en"):
        path = tmp_path / f"{lang}.html"
        assert run("label", "guidelines", "--lang", lang, "-o", path).out.strip() == str(path)
        assert f'lang="{lang}' in path.read_text(encoding="utf-8")
    assert run("label", "guidelines", "--lang", "fr", "-o", tmp_path / "fr.html").code == 2
