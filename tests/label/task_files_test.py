"""Tasks out: what leaves in tasks.jsonl and in sheets, and that nothing of it is a formula."""

import json
import zipfile
from pathlib import Path

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.io.spreadsheets import unescape_formula
from pipeline.io.visible import escape_invisible
from pipeline.label import label_files, schema, task_files
from tests.support.rows.filled import filled
from tests.support.rows.labels import FORMULAS, TEXTS, build_row, build_tasks, check_labels, read_sheet
from tests.support.rows.row_files import write_rows


def test_tasks_leave_without_ids_of_others(tmp_path: Path) -> None:
    """A task has what raters need and the context always; no id of platform, thread, user or row leaves (CSD-08)."""
    assert task_files.write_tasks(tmp_path / "tasks.jsonl", build_tasks()) == 3
    text = (tmp_path / "tasks.jsonl").read_text(encoding="utf-8")
    first, second, _ = map(json.loads, text.splitlines())
    assert list(first) == ["task_id", "text", "context", "lang", "round", "schema_version", "fields"]
    assert (first["context"], second["context"]) == (None, "开会")
    assert first["fields"] == list(schema.FIELDS)
    assert first["round"] == 1
    assert not any(secret in text for secret in ("49731234567890", "88812345", "abcdef0123456789", "u1"))
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["tasks.jsonl"]
    frame = filled("label_tasks", {"text": "一"}, {"text": "二"})  # a row of the contract is enough
    assert [task["text"] for task in task_files.build_rows(frame)] == ["一", "二"]


def test_the_adjudicator_gets_the_labels_of_the_round() -> None:
    """Stage-2 tasks carry the round's stage-1 labels of the fields asked, and notes; raters are letters."""
    labels = check_labels(
        build_row(rater_id="amy"), build_row(rater_id="bo", value="-1"), build_row(rater_id="cy", value="0"),
        build_row(rater_id="amy", field="subtext"), build_row(rater_id="amy", field="meaning", value="嫌他迟到"),
        build_row(rater_id="dan", stage=2, value="again"), build_row(rater_id="amy", round=2, value="0"),
    )  # fmt: skip
    tasks = build_tasks().with_columns(fields=pl.Series([["sarcasm"]] * 3))
    first, second, _ = task_files.build_rows(tasks, labels)
    assert first["stage"] == 2
    assert [label["rater"] for label in first["labels"]] == ["A", "B", "C"]
    assert sorted(label["sarcasm"] for label in first["labels"]) == ["-1", "0", "1"]
    assert [set(label) for label in first["labels"] if label["sarcasm"] == "1"] == [{"rater", "sarcasm", "meaning"}]
    assert second["labels"] == []
    assert "amy" not in json.dumps(first)
    later, *_ = task_files.build_rows(tasks.with_columns(round=2), labels)
    assert later["labels"] == [{"rater": "A", "sarcasm": "0"}]


def test_letters_are_no_persons() -> None:
    """Over many tasks each of three raters is called A about as often as the others."""
    tasks = build_tasks([f"第{n}次" for n in range(300)])
    values = {"amy": "1", "bo": "0", "cy": "-1"}
    rows = [
        build_row(task_id=task, rater_id=rater, value=values[rater]) for task in tasks["task_id"] for rater in values
    ]
    labels = label_files.check_rows([("", row) for row in rows], tasks, name="x")
    first = [task["labels"][0]["sarcasm"] for task in task_files.build_rows(tasks, labels)]
    assert min(first.count(value) for value in schema.TAGS) > 60  # 100 expected; 5 standard deviations are 41


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_sheet_goes_out_and_comes_back(tmp_path: Path, ending: str) -> None:
    """Cells filled into a sheet are labels, empty cells are none, and texts that look like formulas change nothing."""
    path, tasks = tmp_path / f"r1{ending}", build_tasks([*FORMULAS, *TEXTS])
    assert task_files.write_wide(path, tasks, "r1", guidelines="第一条\n=2+2") == 12
    assert label_files.read(path, tasks).is_empty()
    values, rows = {"sarcasm": "1", "emotion": "joy", "plain": "直说"}, read_sheet(path)
    rows[9] |= values
    labels = label_files.read(write_rows(tmp_path / f"back{ending}", *rows), tasks)
    assert labels.select("task_id", "rater_id", "field", "value").rows() == [
        (f"{10:032x}", "r1", field, value) for field, value in values.items()
    ]


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_sheet_marks_what_is_not_asked(tmp_path: Path, ending: str) -> None:
    """Where tasks ask for different fields, the other cells hold a dash, which is read as no answer."""
    path, fields = tmp_path / f"r1{ending}", [["sarcasm"], ["emotion", "sarcasm"], ["emotion"]]
    tasks = build_tasks().with_columns(fields=pl.Series(fields), round=pl.lit(2, pl.Int64))
    task_files.write_wide(path, tasks, "r1")
    cells = [(row["sarcasm"], row["emotion"]) for row in read_sheet(path)]
    assert cells == [("", task_files.NOT_ASKED), ("", ""), (task_files.NOT_ASKED, "")]
    assert label_files.read(path, tasks).is_empty()


def test_no_cell_of_a_csv_sheet_is_a_formula(tmp_path: Path) -> None:
    """No cell begins as a formula does, and the text is got back."""
    task_files.write_wide(tmp_path / "r1.csv", build_tasks(FORMULAS), "r1")
    cells = [row["text"] for row in read_sheet(tmp_path / "r1.csv")]
    assert not any(cell[0] in "=+-@\t\r" for cell in cells)
    assert [unescape_formula(cell) for cell in cells] == [escape_invisible(text) for text in FORMULAS]


def test_no_cell_of_a_workbook_is_a_formula_or_a_link(tmp_path: Path) -> None:
    """All cells are text, as they were; fields are picked from lists; the second sheet has the guidelines."""
    path = tmp_path / "r1.xlsx"
    task_files.write_wide(path, build_tasks([*FORMULAS, "http://x.invalid/a"]), "r1", guidelines="先读上文")
    with zipfile.ZipFile(path) as book:
        first, second = (book.read(f"xl/worksheets/sheet{n}.xml").decode() for n in (1, 2))
        assert "先读上文" in book.read("xl/sharedStrings.xml").decode()
        assert not any("rels" in name and "sheet1" in name for name in book.namelist())
    assert "<f>" not in first + second
    assert first.count("<dataValidation ") == len(schema.FIELDS)
    assert '"1,0,-1"' in first
    assert read_sheet(path)[0]["text"] == "=1+1"


def test_the_adjudicators_sheet(tmp_path: Path) -> None:
    """It shows the labels so far, offers again and delete, and is read as stage 2."""
    path = tmp_path / "d.xlsx"
    task_files.write_wide(path, build_tasks(), "dan", check_labels(build_row(), build_row(rater_id="r2", value="-1")))
    with zipfile.ZipFile(path) as book:
        assert "again,delete" in book.read("xl/worksheets/sheet1.xml").decode()
    rows = read_sheet(path)
    assert "sarcasm: A" in rows[0]["labels"]
    assert "r2" not in json.dumps(rows)
    rows[0]["sarcasm"] = "delete"
    labels = label_files.read(write_rows(tmp_path / "back.csv", *rows), build_tasks())
    assert labels.select("stage", "rater_id", "field", "value").rows() == [(2, "dan", "sarcasm", "delete")]


def test_a_text_too_long_for_a_cell_is_refused(tmp_path: Path) -> None:
    """A workbook would cut it off (32,767 characters a cell), so none is written; csv takes it."""
    tasks = build_tasks(["长" * 32_768])
    message = rf"^{tmp_path}/r1\.xlsx: task 0+1 has a text of 32768 characters, a cell holds 32767; write \.csv"
    with pytest.raises(BadInput, match=message):
        task_files.write_wide(tmp_path / "r1.xlsx", tasks, "r1")
    assert not any(p.is_file() for p in tmp_path.iterdir())
    assert task_files.write_wide(tmp_path / "r1.csv", tasks, "r1") == 1
    assert task_files.write_wide(tmp_path / "r2.xlsx", build_tasks(["长" * 32_767]), "r1") == 1
