"""Labels in: what comes back, what is refused and how that is told."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.label import label_files, schema
from pipeline.tables import Labels
from tests.support.labels import IDS, TEXTS, row, tasks, written


def refused(path: Path, *rows: dict[str, Any]) -> str:
    with pytest.raises(BadInput) as told:
        label_files.read(written(path, list(rows)), tasks())
    return str(told.value)


# ---------------------------------------------------------------------------------------------------------- long in


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".xlsx", ".parquet"])
def test_a_long_table_of_any_format(tmp_path: Path, ending: str) -> None:
    """Labels come in one a row; round, stage, tool and time have their usual values where they are missing."""
    rows = [row(), row(field="emotion", value="Joy"), row(field="span", value="1-6"), row(rater_id="r2", value="-1.0")]
    found = label_files.read(written(tmp_path / f"labels{ending}", rows), tasks())
    assert found.schema == label_files.COLUMNS
    Labels.validate(found.with_columns(project=pl.lit("csd")))
    assert found.select("rater_id", "field", "value").rows() == [
        ("r1", "sarcasm", "1"), ("r1", "emotion", "joy"), ("r1", "span", "1-6"), ("r2", "sarcasm", "-1"),
    ]  # fmt: skip
    assert set(found.select("round", "stage", "tool", "labelled_at").rows()) == {(1, 1, "file", None)}


@pytest.mark.parametrize("said", ["2026-11-20T16:00:00+08:00", "2026-11-20 08:00:00", "2026-11-20T08:00:00Z"])
def test_times_are_utc(tmp_path: Path, said: str) -> None:
    """A time with a zone is turned into UTC, one without is UTC."""
    path = written(tmp_path / "l.jsonl", [row(labelled_at=said, round=2, tool="argilla")])
    found = label_files.read(path, tasks())
    assert found["labelled_at"].to_list() == [datetime(2026, 11, 20, 8, tzinfo=UTC)]
    assert found.select("round", "tool").row(0) == (2, "argilla")


def test_times_of_a_parquet_file_are_times(tmp_path: Path) -> None:
    """A column of times is taken as it is."""
    when = datetime(2026, 11, 20, 8, tzinfo=UTC)
    found = label_files.read(written(tmp_path / "l.parquet", [row(labelled_at=when)]), tasks())
    assert found["labelled_at"].to_list() == [when]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"task_id": "f" * 32}, "task_id: found 'ffff.*expected one of the 3 tasks"),
        ({"task_id": None}, "task_id: found nothing"),
        ({"rater_id": " "}, "rater_id: found nothing"),
        ({"field": "irony"}, "no field 'irony'"),
        ({"value": "maybe"}, "sarcasm should be one of 1, 0, -1, found 'maybe'"),
        ({"value": None}, "sarcasm should be"),
        ({"value": "again"}, "sarcasm should be"),
        ({"field": "emotion", "value": "1"}, "emotion should be"),
        ({"field": "span", "value": "3-99"}, "span should be start-end within 0-12"),
        ({"field": "meaning", "value": ""}, "meaning: found nothing"),
        ({"round": 3}, "round: found '3', expected 1 or 2"),
        ({"stage": "x"}, "stage: found 'x', expected 1 or 2"),
        ({"labelled_at": "gestern"}, "labelled_at: found 'gestern'"),
    ],
)
def test_a_wrong_row_is_told(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    """The message names file, row as a person counts (with the header), field, what was found and what was due."""
    path = tmp_path / "labels.csv"
    found = refused(path, row(rater_id="r2"), row(**change))
    assert found.startswith(f"{path}, row 3: ")
    assert re.search(told, found)


def test_the_first_ten_faults_are_told(tmp_path: Path) -> None:
    """All faults of a small file are told at once, of a large one the first ten."""
    told = refused(tmp_path / "labels.jsonl", *[row(rater_id=f"r{n}", value="?") for n in range(30)], row())
    rows = [line.partition("row ")[2].partition(":")[0] for line in told.splitlines()]
    assert rows == [str(n) for n in range(1, 11)]


def test_a_label_given_twice_is_told(tmp_path: Path) -> None:
    """A rater says one value of a field of a task (CSD-14); the other row is named."""
    told = refused(tmp_path / "labels.csv", row(), row(field="subtext"), row(value="-1"))
    assert "row 4: " in told
    assert "also in row 2" in told


def test_an_adjudicator_may_ask_again(tmp_path: Path) -> None:
    """In stage 2 again and delete are answers (CSD-15)."""
    rows = [row(stage=2, value="again"), row(stage=2, field="emotion", value="Delete")]
    found = label_files.read(written(tmp_path / "labels.csv", rows), tasks())
    assert found["value"].to_list() == ["again", "delete"]


@pytest.mark.parametrize("lost", ["task_id", "rater_id", "value"])
def test_a_missing_column_is_told(tmp_path: Path, lost: str) -> None:
    """A table without one of its columns is refused by its name."""
    rows = [{name: value for name, value in row().items() if name != lost}]
    assert lost in refused(tmp_path / "labels.csv", *rows)


def test_a_row_without_a_task_late_in_a_file_is_told(tmp_path: Path) -> None:
    """Where rows have columns of their own, one that lacks a column is refused, not passed over."""
    rows = [row(), {name: value for name, value in row(rater_id="r2").items() if name != "task_id"}]
    assert "row 2: no task_id" in refused(tmp_path / "labels.jsonl", *rows)


def test_notes_and_raters_are_anonymised(tmp_path: Path) -> None:
    """A note keeps no telephone, and a rater named by a mail address goes by a surrogate."""
    path = tmp_path / "labels.csv"
    path.write_text(
        f"task_id,rater_id,field,value\n{IDS[0]},a.b@example.com,meaning,叫他打138-1234-5678\n", encoding="utf-8"
    )
    rater, note = label_files.read(path, tasks()).select("rater_id", "value").row(0)
    assert rater.startswith("anon-")
    assert note == "叫他打[PHONE]"


# --------------------------------------------------------------------------------------------------------- wide, both


def test_numbers_that_a_spreadsheet_made_are_tags(tmp_path: Path) -> None:
    """Cells that hold the number -1 or 1.0 are the tags."""
    rows = [{"task_id": IDS[0], "rater_id": "r1", "sarcasm": -1, "sentiment": 1.0, "round": 1}]
    found = label_files.read(written(tmp_path / "r1.xlsx", rows), tasks())
    assert found.select("field", "value").rows() == [("sarcasm", "-1"), ("sentiment", "1")]


def test_a_misspelt_field_of_a_sheet_is_told(tmp_path: Path) -> None:
    """A filled column that is no field is an error, an empty one is nothing."""
    known = {"task_id": IDS[0], "rater_id": "r1", "sarcasm": "1"}
    assert "row 2: no field 'sarcasam'" in refused(tmp_path / "r1.csv", {**known, "sarcasam": "1"})
    assert len(label_files.read(written(tmp_path / "r2.csv", [{**known, "remarks": ""}]), tasks())) == 1


def test_a_column_sorted_alone_is_told(tmp_path: Path) -> None:
    """A text that is another task's would put labels on the wrong comment; one that a spreadsheet changed would not."""
    rows = [{"task_id": i, "rater_id": "r1", "text": t, "sarcasm": "1"} for i, t in zip(IDS, TEXTS, strict=True)]
    mangled = [{**rows[0], "text": "1月2日"}, *rows[1:]]
    assert len(label_files.read(written(tmp_path / "r1.csv", mangled), tasks())) == 3
    swapped = [{**rows[0], "text": TEXTS[2]}, *rows[1:]]
    assert "row 2: the text is another task's" in refused(tmp_path / "r2.csv", *swapped)


def test_a_sheet_without_rater_or_field_is_told(tmp_path: Path) -> None:
    """Who labelled must be in the sheet, and what was asked."""
    assert "row 2: no rater_id" in refused(tmp_path / "r1.csv", {"task_id": IDS[0], "sarcasm": "1"})
    told = refused(tmp_path / "r1.csv", {"task_id": IDS[0], "rater_id": "r1", "text": TEXTS[0]})
    assert "row 2: no column of what was asked; expected subtext, " in told


def test_a_file_without_tasks_is_told(tmp_path: Path) -> None:
    """A workbook or table without task_id has no labels."""
    for name in ("a.csv", "a.xlsx"):
        assert "no column task_id" in refused(tmp_path / name, {"text": "x"})


@given(st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(["r1", "r2"]), st.sampled_from(list(schema.FIELDS))),
                unique=True), st.data())  # fmt: skip
def test_every_row_comes_in_once(keys: list[tuple[str, str, str]], data: st.DataObject) -> None:
    """Of any rows that are right, each is a label, in order."""
    rows = [row(task_id=t, rater_id=r, field=f, value=data.draw(st.sampled_from(schema.FIELDS[f].values)))
            for t, r, f in keys]  # fmt: skip
    found = label_files.check_rows([("", r) for r in rows], tasks(), name="x")
    assert found.select("task_id", "rater_id", "field", "value").rows() == [tuple(r.values()) for r in rows]
