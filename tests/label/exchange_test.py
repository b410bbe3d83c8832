"""Tasks out and labels in: what leaves, what comes back, what is refused and how that is told."""

import csv
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.io.visible import visible
from pipeline.label import exchange, schema
from pipeline.tables import Labels
from tests.support.filled import filled

IDS = [f"{n:032x}" for n in range(1, 4)]
TEXTS = ["你可真准时，才迟到一小时", "=1+1", "Lovely weather\nfor ducks"]
FORMULAS = ["=1+1", "+1", "-1 分", "@SUM(A1)", "\t=1", "'=1", "''+1", '=HYPERLINK("http://x.invalid")', "\r=1"]


def tasks(texts: list[str] = TEXTS) -> pl.DataFrame:
    """Tasks with the given texts, as the table has them: with what ties them to their comments."""
    return pl.DataFrame(
        {
            "task_id": [f"{n:032x}" for n in range(1, len(texts) + 1)], "text": texts, "lang": "zh",
            "context": [None, *["开会"] * (len(texts) - 1)], "schema_version": schema.version(), "source": "weibo",
            "comment_id": "49731234567890", "thread_id": "88812345", "row_id": "abcdef0123456789", "user_id": "u1",
        },
        schema_overrides={"context": pl.String},
    )  # fmt: skip


def row(**given: Any) -> dict[str, Any]:
    return {"task_id": IDS[0], "rater_id": "r1", "field": "sarcasm", "value": "1", **given}


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows as a file of the kind its ending names."""
    if path.suffix == ".csv":
        pl.DataFrame(rows).write_csv(path, include_bom=True)
    elif path.suffix == ".xlsx":
        pl.DataFrame(rows).write_excel(path)
    elif path.suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path)
    else:
        path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")
    return path


def labels(*rows: dict[str, Any]) -> pl.DataFrame:
    return exchange.checked([(f"row {n}", r) for n, r in enumerate(rows)], tasks(), name="x")


def refused(path: Path, *rows: dict[str, Any], **given: Any) -> str:
    with pytest.raises(BadInput) as told:
        exchange.read(written(path, list(rows)), tasks(), **given)
    return str(told.value)


# --------------------------------------------------------------------------------------------------------------- out


def test_tasks_leave_without_ids_of_others(tmp_path: Path) -> None:
    """A task has what raters need and the context always; no id of platform, thread, user or row leaves (CSD-08)."""
    assert exchange.write_tasks(tmp_path / "tasks.jsonl", tasks()) == 3
    text = (tmp_path / "tasks.jsonl").read_text(encoding="utf-8")
    first, second, _ = map(json.loads, text.splitlines())
    assert list(first) == ["task_id", "text", "context", "lang", "round", "schema_version", "fields"]
    assert (first["context"], second["context"]) == (None, "开会")
    assert first["fields"] == list(schema.FIELDS)
    assert first["round"] == 1
    assert not any(secret in text for secret in ("49731234567890", "88812345", "abcdef0123456789", "u1"))
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["tasks.jsonl"]


def test_any_task_of_the_table_can_leave() -> None:
    """A row of the contract is enough."""
    frame = filled("label_tasks", {"text": "一"}, {"text": "二"})
    assert [task["text"] for task in exchange.tasks_rows(frame)] == ["一", "二"]


def test_the_adjudicator_gets_the_labels_of_the_round() -> None:
    """Stage-2 tasks carry the round's stage-1 labels of the fields asked, and notes; raters are letters."""
    given_labels = labels(
        row(rater_id="amy"), row(rater_id="bo", value="-1"), row(rater_id="cy", value="0"),
        row(rater_id="amy", field="subtext"), row(rater_id="amy", field="meaning", value="嫌他迟到"),
        row(rater_id="dan", stage=2, value="again"), row(rater_id="amy", round=2, value="0"),
    )  # fmt: skip
    asked = tasks().with_columns(fields=pl.Series([["sarcasm"]] * 3))
    first, second, _ = exchange.tasks_rows(asked, given_labels)
    assert first["stage"] == 2
    assert [label["rater"] for label in first["labels"]] == ["A", "B", "C"]
    assert sorted(label["sarcasm"] for label in first["labels"]) == ["-1", "0", "1"]
    assert [set(label) for label in first["labels"] if label["sarcasm"] == "1"] == [{"rater", "sarcasm", "meaning"}]
    assert second["labels"] == []
    assert "amy" not in json.dumps(first)
    later, *_ = exchange.tasks_rows(asked.with_columns(round=2), given_labels)
    assert later["labels"] == [{"rater": "A", "sarcasm": "0"}]


def test_letters_are_no_persons() -> None:
    """Over many tasks each of three raters is called A about as often as the others."""
    many = tasks([f"第{n}次" for n in range(300)])
    said = exchange.checked(
        [("", row(task_id=task, rater_id=rater, value=value)) for task in many["task_id"]
         for rater, value in (("amy", "1"), ("bo", "0"), ("cy", "-1"))], many, name="x",
    )  # fmt: skip
    first = [task["labels"][0]["sarcasm"] for task in exchange.tasks_rows(many, said)]
    assert min(first.count(value) for value in schema.TAGS) > 60  # 100 expected; 5 standard deviations are 41


# ---------------------------------------------------------------------------------------------------------- long in


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".xlsx", ".parquet"])
def test_a_long_table_of_any_format(tmp_path: Path, ending: str) -> None:
    """Labels come in one a row; round, stage, tool and time have their usual values where they are missing."""
    rows = [row(), row(field="emotion", value="Joy"), row(field="span", value="1-6"), row(rater_id="r2", value="-1.0")]
    found = exchange.read(written(tmp_path / f"labels{ending}", rows), tasks())
    assert found.schema == exchange.COLUMNS
    Labels.validate(found.with_columns(project=pl.lit("csd")))
    assert found.select("rater_id", "field", "value").rows() == [
        ("r1", "sarcasm", "1"), ("r1", "emotion", "joy"), ("r1", "span", "1-6"), ("r2", "sarcasm", "-1"),
    ]  # fmt: skip
    assert set(found.select("round", "stage", "tool", "labelled_at").rows()) == {(1, 1, "file", None)}


@pytest.mark.parametrize("said", ["2026-11-20T16:00:00+08:00", "2026-11-20 08:00:00", "2026-11-20T08:00:00Z"])
def test_times_are_utc(tmp_path: Path, said: str) -> None:
    """A time with a zone is turned into UTC, one without is UTC."""
    found = exchange.read_labels(
        written(tmp_path / "l.jsonl", [row(labelled_at=said, round=2, tool="argilla")]), tasks()
    )
    assert found["labelled_at"].to_list() == [datetime(2026, 11, 20, 8, tzinfo=UTC)]
    assert found.select("round", "tool").row(0) == (2, "argilla")


def test_times_of_a_parquet_file_are_times(tmp_path: Path) -> None:
    """A column of times is taken as it is."""
    when = datetime(2026, 11, 20, 8, tzinfo=UTC)
    found = exchange.read(written(tmp_path / "l.parquet", [row(labelled_at=when)]), tasks())
    assert found["labelled_at"].to_list() == [when]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"task_id": "f" * 32}, "task_id: found 'ffff.*expected one of the 3 tasks"),
        ({"task_id": None}, "task_id: found nothing"),
        ({"rater_id": " "}, "rater_id: found nothing"),
        ({"rater_id": "eve"}, "rater_id: found 'eve', expected one of r1, r2"),
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
    found = refused(path, row(rater_id="r2"), row(**change), raters=["r1", "r2"])
    assert found.startswith(f"{path}, row 3: ")
    with pytest.raises(BadInput, match=told):
        exchange.read(path, tasks(), ["r1", "r2"])


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
    found = exchange.read(written(tmp_path / "labels.csv", rows), tasks())
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


def test_excel_of_china_writes_gb18030(tmp_path: Path) -> None:
    """A csv in another encoding is read when told so."""
    path = tmp_path / "labels.csv"
    path.write_text(f"task_id,rater_id,field,value\n{IDS[0]},阿强,meaning,嫌他迟到\n", encoding="gb18030")
    assert exchange.read(path, tasks(), encoding="gb18030").select("rater_id", "value").row(0) == ("阿强", "嫌他迟到")


def test_notes_and_raters_are_anonymised(tmp_path: Path) -> None:
    """A note keeps no telephone, and a rater named by a mail address goes by a surrogate."""
    path = tmp_path / "labels.csv"
    path.write_text(
        f"task_id,rater_id,field,value\n{IDS[0]},a.b@example.com,meaning,叫他打138-1234-5678\n", encoding="utf-8"
    )
    rater, note = exchange.read(path, tasks()).select("rater_id", "value").row(0)
    assert rater.startswith("anon-")
    assert note == "叫他打[PHONE]"


# --------------------------------------------------------------------------------------------------------- wide, both


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_sheet_goes_out_and_comes_back(tmp_path: Path, ending: str) -> None:
    """Cells filled into a sheet are labels, empty cells are none, and texts that look like formulas change nothing."""
    path = tmp_path / f"r1{ending}"
    assert exchange.write_wide(path, tasks([*FORMULAS, *TEXTS]), "r1", guidelines="第一条\n=2+2") == 12
    frame = sheet(path)
    assert exchange.read(path, tasks([*FORMULAS, *TEXTS])).is_empty()
    filled_in = [{**r, "sarcasm": "1", "emotion": "joy", "plain": "直说"} if n == 9 else r for n, r in enumerate(frame)]
    back = written(tmp_path / f"back{ending}", filled_in)
    found = exchange.read(back, tasks([*FORMULAS, *TEXTS]))
    assert found.select("task_id", "rater_id", "field", "value").rows() == [
        (f"{10:032x}", "r1", field, value) for field, value in
        (("sarcasm", "1"), ("emotion", "joy"), ("plain", "直说"))
    ]  # fmt: skip


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_sheet_marks_what_is_not_asked(tmp_path: Path, ending: str) -> None:
    """Where tasks ask for different fields, the other cells hold a dash, which is read as no answer."""
    fields = [["sarcasm"], ["emotion", "sarcasm"], ["emotion"]]
    some = tasks(TEXTS[:3]).with_columns(fields=pl.Series(fields), round=pl.lit(2, pl.Int64))
    exchange.write_wide(tmp_path / f"r1{ending}", some, "r1")
    cells = [(row["sarcasm"], row["emotion"]) for row in sheet(tmp_path / f"r1{ending}")]
    assert cells == [("", exchange.NOT_ASKED), ("", ""), (exchange.NOT_ASKED, "")]
    assert exchange.read(tmp_path / f"r1{ending}", some).is_empty()


def sheet(path: Path) -> list[dict[str, Any]]:
    """The first sheet's rows, as text."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))
    frame = pl.read_excel(path, infer_schema_length=0)
    return [{k: v or "" for k, v in r.items()} for r in frame.iter_rows(named=True)]


def test_no_cell_of_a_csv_sheet_is_a_formula(tmp_path: Path) -> None:
    """No cell begins as a formula does, and the text is got back."""
    exchange.write_wide(tmp_path / "r1.csv", tasks(FORMULAS), "r1")
    cells = [r["text"] for r in sheet(tmp_path / "r1.csv")]
    assert not any(cell[0] in "=+-@\t\r" for cell in cells)
    assert [exchange.plain(cell) for cell in cells] == [visible(text) for text in FORMULAS]


@given(st.text())
def test_defusing_has_an_inverse(text: str) -> None:
    """Any text comes back as it was, and no defused text begins a formula."""
    for said in (text, f"={text}", f"'{text}", f"'={text}"):
        assert exchange.plain(exchange.defused(said)) == said
        assert exchange.defused(said)[:1] not in set("=+-@\t\r")


def test_no_cell_of_a_workbook_is_a_formula_or_a_link(tmp_path: Path) -> None:
    """All cells are text, as they were; fields are picked from lists; the second sheet has the guidelines."""
    path = tmp_path / "r1.xlsx"
    exchange.write_wide(path, tasks([*FORMULAS, "http://x.invalid/a"]), "r1", guidelines="先读上文")
    with zipfile.ZipFile(path) as book:
        first = book.read("xl/worksheets/sheet1.xml").decode()
        second = book.read("xl/worksheets/sheet2.xml").decode()
        strings = book.read("xl/sharedStrings.xml").decode()
        assert not any("rels" in name and "sheet1" in name for name in book.namelist())
    assert "<f>" not in first + second
    assert first.count("<dataValidation ") == len(schema.FIELDS)
    assert '"1,0,-1"' in first
    assert "先读上文" in strings
    assert sheet(path)[0]["text"] == "=1+1"


def test_the_adjudicators_sheet(tmp_path: Path) -> None:
    """It shows the labels so far, offers again and delete, and is read as stage 2."""
    path = tmp_path / "d.xlsx"
    exchange.write_wide(path, tasks(), "dan", labels(row(), row(rater_id="r2", value="-1")))
    with zipfile.ZipFile(path) as book:
        assert "again,delete" in book.read("xl/worksheets/sheet1.xml").decode()
    rows = sheet(path)
    assert "sarcasm: A" in rows[0]["labels"]
    assert "r2" not in json.dumps(rows)
    rows[0]["sarcasm"] = "delete"
    found = exchange.read(written(tmp_path / "back.csv", rows), tasks())
    assert found.select("stage", "rater_id", "field", "value").rows() == [(2, "dan", "sarcasm", "delete")]


def test_numbers_that_a_spreadsheet_made_are_tags(tmp_path: Path) -> None:
    """Cells that hold the number -1 or 1.0 are the tags."""
    rows = [{"task_id": IDS[0], "rater_id": "r1", "sarcasm": -1, "sentiment": 1.0, "round": 1}]
    found = exchange.read(written(tmp_path / "r1.xlsx", rows), tasks())
    assert found.select("field", "value").rows() == [("sarcasm", "-1"), ("sentiment", "1")]


def test_a_misspelt_field_of_a_sheet_is_told(tmp_path: Path) -> None:
    """A filled column that is no field is an error, an empty one is nothing."""
    known = {"task_id": IDS[0], "rater_id": "r1", "sarcasm": "1"}
    assert "row 2: no field 'sarcasam'" in refused(tmp_path / "r1.csv", {**known, "sarcasam": "1"})
    assert len(exchange.read(written(tmp_path / "r2.csv", [{**known, "remarks": ""}]), tasks())) == 1


def test_a_column_sorted_alone_is_told(tmp_path: Path) -> None:
    """A text that is another task's would put labels on the wrong comment; one that a spreadsheet changed would not."""
    rows = [{"task_id": i, "rater_id": "r1", "text": t, "sarcasm": "1"} for i, t in zip(IDS, TEXTS, strict=True)]
    mangled = [{**rows[0], "text": "1月2日"}, *rows[1:]]
    assert len(exchange.read(written(tmp_path / "r1.csv", mangled), tasks())) == 3
    swapped = [{**rows[0], "text": TEXTS[2]}, *rows[1:]]
    assert "row 2: the text is another task's" in refused(tmp_path / "r2.csv", *swapped)


def test_a_sheet_without_rater_is_told(tmp_path: Path) -> None:
    """Who labelled must be in the sheet."""
    assert "row 2: no rater_id" in refused(tmp_path / "r1.csv", {"task_id": IDS[0], "sarcasm": "1"})


def test_a_text_too_long_for_a_cell_is_told(tmp_path: Path) -> None:
    """A workbook would cut it off (32,767 characters a cell), so none is written; csv takes it."""
    long = tasks(["长" * 32_768])
    with pytest.raises(BadInput, match=r"32768 characters, a cell holds 32767; write \.csv"):
        exchange.write_wide(tmp_path / "r1.xlsx", long, "r1")
    assert not any(p.is_file() for p in tmp_path.iterdir())
    assert exchange.write_wide(tmp_path / "r1.csv", long, "r1") == 1


def test_a_sheet_of_another_kind_is_told(tmp_path: Path) -> None:
    """Sheets are csv or xlsx."""
    with pytest.raises(BadInput, match=r"cannot write \.ods; expected \.csv or \.xlsx"):
        exchange.write_wide(tmp_path / "r1.ods", tasks(), "r1")


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
    found = exchange.checked([("", r) for r in rows], tasks(), name="x")
    assert found.select("task_id", "rater_id", "field", "value").rows() == [tuple(r.values()) for r in rows]
