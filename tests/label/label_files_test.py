"""Labels in: what comes back, what is refused and by which message."""

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
from tests.support.rows.labels import IDS, TEXTS, build_row, build_tasks
from tests.support.rows.row_files import write_rows

SHEET_ROW = {"task_id": IDS[0], "rater_id": "r1", **dict.fromkeys(schema.FIELDS, ""), "sarcasm": "1"}


def read(path: Path, *rows: dict[str, Any]) -> pl.DataFrame:
    """Write rows to a file and read their labels."""
    return label_files.read(write_rows(path, *rows), build_tasks())


def refuse(path: Path, *rows: dict[str, Any]) -> str:
    """Return the message by which the rows are refused."""
    with pytest.raises(BadInput) as error:
        read(path, *rows)
    return str(error.value)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".xlsx", ".parquet"])
def test_a_long_table_of_any_format(tmp_path: Path, ending: str) -> None:
    """Labels come in one a row; round, stage, tool and time have their usual values where they are missing."""
    changes = [{}, {"field": "emotion", "value": "Joy"}, {"field": "span", "value": "1-6"},
               {"rater_id": "r2", "value": "-1.0"}]  # fmt: skip
    labels = read(tmp_path / f"labels{ending}", *(build_row(**change) for change in changes))
    assert labels.schema == label_files.COLUMNS
    Labels.validate(labels.with_columns(project=pl.lit("csd")))
    assert labels.select("rater_id", "field", "value").rows() == [
        ("r1", "sarcasm", "1"), ("r1", "emotion", "joy"), ("r1", "span", "1-6"), ("r2", "sarcasm", "-1"),
    ]  # fmt: skip
    assert set(labels.select("round", "stage", "tool", "labelled_at").rows()) == {(1, 1, "file", None)}


@pytest.mark.parametrize(
    ("ending", "time"),
    [
        (".jsonl", "2026-11-20T16:00:00+08:00"), (".jsonl", "2026-11-20 08:00:00"), (".jsonl", "2026-11-20T08:00:00Z"),
        (".parquet", datetime(2026, 11, 20, 8, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_times_are_utc(tmp_path: Path, ending: str, time: str | datetime) -> None:
    """A time with a zone is turned into UTC, one without is UTC, and a column of times is taken as it is."""
    labels = read(tmp_path / f"l{ending}", build_row(labelled_at=time, round=2, tool="argilla"))
    assert labels["labelled_at"].to_list() == [datetime(2026, 11, 20, 8, tzinfo=UTC)]
    assert labels.select("round", "tool").row(0) == (2, "argilla")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task_id": "f" * 32}, r"task_id: found 'ffff.*expected one of the 3 tasks"),
        ({"task_id": None}, "task_id: found nothing"), ({"rater_id": " "}, "rater_id: found nothing"),
        ({"field": "irony"}, "no field 'irony'"),
        ({"value": "maybe"}, "sarcasm should be one of 1, 0, -1, found 'maybe'"),
        ({"value": None}, "sarcasm should be"), ({"value": "again"}, "sarcasm should be"),
        ({"field": "emotion", "value": "1"}, "emotion should be"),
        ({"field": "span", "value": "3-99"}, "span should be start-end within 0-12"),
        ({"field": "meaning", "value": ""}, "meaning: found nothing"),
        ({"round": 3}, "round: found '3', expected 1 or 2"), ({"stage": "x"}, "stage: found 'x', expected 1 or 2"),
        ({"labelled_at": "gestern"}, "labelled_at: found 'gestern'"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """The message names file, row as a person counts (with the header), field, what was found and what was due."""
    with pytest.raises(BadInput, match=rf"^{tmp_path}/labels\.csv, row 3: .*{message}"):
        read(tmp_path / "labels.csv", build_row(rater_id="r2"), build_row(**change))


def test_the_first_ten_faults_are_listed(tmp_path: Path) -> None:
    """All faults of a small file are in one message, of a large one ten; a label given twice names the other row."""
    rows = [build_row(rater_id=f"r{n}", value="?") for n in range(30)]
    message = refuse(tmp_path / "labels.jsonl", *rows, build_row())
    numbers = [line.partition("row ")[2].partition(":")[0] for line in message.splitlines()]
    assert numbers == [str(n) for n in range(1, 11)]
    message = refuse(tmp_path / "labels.csv", build_row(), build_row(field="subtext"), build_row(value="-1"))
    assert "row 4: " in message
    assert "also in row 2" in message


def test_an_adjudicator_may_ask_again(tmp_path: Path) -> None:
    """In stage 2 again and delete are answers (CSD-15); numbers that a spreadsheet made, -1 and 1.0, are tags."""
    rows = [build_row(stage=2, value="again"), build_row(stage=2, field="emotion", value="Delete")]
    assert read(tmp_path / "labels.csv", *rows)["value"].to_list() == ["again", "delete"]
    labels = read(tmp_path / "r1.xlsx", SHEET_ROW | {"sarcasm": -1, "sentiment": 1.0, "round": 1})
    assert labels.select("field", "value").rows() == [("sarcasm", "-1"), ("sentiment", "1")]


@pytest.mark.parametrize(
    ("missing", "message"),
    [("task_id", "row 2: no task_id"), ("rater_id", "row 2: no rater_id"), ("value", "row 2: no value")],
)
def test_a_missing_column_is_named(tmp_path: Path, missing: str, message: str) -> None:
    """A table without one of its columns is refused; where rows have columns of their own, late in a file too."""
    lacking = {name: value for name, value in build_row(rater_id="r2").items() if name != missing}
    assert missing in refuse(tmp_path / "labels.csv", lacking)
    assert message in refuse(tmp_path / "labels.jsonl", build_row(), lacking)


def test_notes_and_raters_are_anonymised(tmp_path: Path) -> None:
    """A note keeps no telephone, and a rater named by a mail address goes by a surrogate."""
    row = build_row(rater_id="a.b@example.com", field="meaning", value="叫他打138-1234-5678")
    rater, note = read(tmp_path / "labels.csv", row).select("rater_id", "value").row(0)
    assert rater.startswith("anon-")
    assert note == "叫他打[PHONE]"


def test_a_misspelt_field_of_a_sheet_is_named(tmp_path: Path) -> None:
    """A filled column that is no field is named once; a text that is another task's is refused."""
    rows = [{**SHEET_ROW, "rater_id": f"r{n}", "sarcasam": "1"} for n in range(3)]
    assert refuse(tmp_path / "r1.csv", *rows).count("no field 'sarcasam'") == 1
    message = refuse(tmp_path / "r7.csv", {name: value for name, value in SHEET_ROW.items() if name != "other"})
    assert "r7.csv: no column other; expected one for each of subtext, " in message
    assert len(read(tmp_path / "r2.csv", {**SHEET_ROW, "remarks": ""})) == 1
    first, *others = [{**SHEET_ROW, "task_id": i, "text": t} for i, t in zip(IDS, TEXTS, strict=True)]
    assert len(read(tmp_path / "r1.csv", {**first, "text": "1月2日"}, *others)) == 3
    assert "row 2: the text is another task's" in refuse(tmp_path / "r2.csv", {**first, "text": TEXTS[2]}, *others)


def test_a_sheet_without_rater_field_or_task_is_refused(tmp_path: Path) -> None:
    """Who labelled must be in the sheet, and what was asked; a workbook or table without task_id has no labels."""
    assert "row 2: no rater_id" in refuse(
        tmp_path / "r1.csv", {name: SHEET_ROW[name] for name in SHEET_ROW if name != "rater_id"}
    )
    message = refuse(tmp_path / "r1.csv", {"task_id": IDS[0], "rater_id": "r1", "text": TEXTS[0]})
    assert "row 2: no column of what was asked; expected subtext, " in message
    for name in ("a.csv", "a.xlsx"):
        assert "no column task_id" in refuse(tmp_path / name, {"text": "x"})


keys = st.tuples(st.sampled_from(IDS), st.sampled_from(["r1", "r2"]), st.sampled_from(list(schema.FIELDS)))


@given(st.lists(keys, unique=True), st.data())
def test_every_row_comes_in_once(keys: list[tuple[str, str, str]], data: st.DataObject) -> None:
    """Of any rows that are right, each is a label, in order."""
    rows = [
        build_row(
            task_id=task, rater_id=rater, field=field, value=data.draw(st.sampled_from(schema.FIELDS[field].values))
        )
        for task, rater, field in keys
    ]
    labels = label_files.check_rows([("", row) for row in rows], build_tasks(), name="x")
    assert labels.select("task_id", "rater_id", "field", "value").rows() == [tuple(row.values()) for row in rows]
