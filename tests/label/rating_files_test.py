"""Ratings are read from files of any layout, by own names; what cannot be read is named by row, rater and field."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.label.rating_files import MOST_RATERS, MOST_VALUES, Ratings, Reading, read

LONG = "item,coder,what,label\n1,ann,tone,2\n1,ben,tone,2.0\n2,ann,tone,NA\n2,ben,tone,+3\n"
SHEET = "item,coder,tone,comment\n1,ann,2,so\n1,ben,2,\n2,ann,,\n2,ben,3,x\n"
WIDE = "item,what,ann,ben\n1,tone,2,2\n2,tone,,3\n"
TASK, RATER, FIELD = ({"task_id": "item"}, {"rater_id": "coder"}, {"field": "what"})
LABELS = [("1", "ann", "tone", "2"), ("1", "ben", "tone", "2"), ("2", "ben", "tone", "3")]


def write(folder: Path, text: str, name: str = "f.csv") -> Path:
    """Write a csv, or its rows in another format."""
    path = folder / name
    if path.suffix == ".csv":
        path.write_text(text, encoding="utf-8")
        return path
    frame = pl.read_csv(text.encode(), infer_schema=False)
    writers: dict[str, Any] = {".tsv": lambda p: frame.write_csv(p, separator="\t"), ".jsonl": frame.write_ndjson,
                               ".parquet": frame.write_parquet, ".xlsx": frame.write_excel}  # fmt: skip
    writers[path.suffix](path)
    return path


@pytest.mark.parametrize("name", ["f.csv", "f.tsv", "f.jsonl", "f.parquet", "f.xlsx"])
@pytest.mark.parametrize(
    ("text", "reading"),
    [
        (LONG, Reading({**TASK, **RATER, **FIELD, "value": "label"})),
        (SHEET, Reading({**TASK, **RATER}, ["tone"])),
        (WIDE, Reading({**TASK, **FIELD})),
    ],
)
def test_layouts_give_the_same_ratings(text: str, reading: Reading, name: str, tmp_path: Path) -> None:
    """A row a label, a row a task and rater, and a column a rater are the same ratings in every format."""
    ratings = read(write(tmp_path, text, name), reading)
    assert ratings.schema == Ratings
    assert ratings.rows() == LABELS


def test_rows_are_tasks_where_columns_are_named(tmp_path: Path) -> None:
    """Without a column of tasks the columns of raters have to be named; then a row is a task."""
    path = write(tmp_path, "n,ann,ben\n1,a,b\n2,b,b\n")
    assert read(path, Reading(columns=["ann", "ben"]))["task_id"].unique().sort().to_list() == ["row 2", "row 3"]


def test_a_field_may_have_as_many_values_as_is_said(tmp_path: Path) -> None:
    """`MOST_VALUES` values are read; more are refused, below."""
    rows = "".join(f"{n},v{n},w{n}\n" for n in range(MOST_VALUES // 2))
    assert read(write(tmp_path, f"task_id,a,b\n{rows}"), Reading())["value"].n_unique() == MOST_VALUES


@pytest.mark.parametrize(
    ("text", "reading", "message"),
    [
        (WIDE, Reading(), "f.csv: no column task_id; there are ann, ben, item, what; name it by --map task_id=COLUMN"),
        (WIDE, Reading({"task_id": "id"}), "f.csv: no column 'id'; there are ann, ben, item, what"),
        (LONG, Reading({**TASK, "value": "label"}), "f.csv: no column rater_id, expected one with label"),
        (WIDE, Reading(TASK, ["ann", "ben"], "interval", missing=["2"]), "row 3, rater 'ann', field 'label': found ''"),
        (WIDE, Reading(TASK, ["ann", "ben"], values=["1", "2"]), "row 3, rater 'ben', field 'label': found '3'"),
        ("task_id,a,b\n1,x,y\n1,x,x\n", Reading(), "row 3, rater 'a', field 'label': expected one label of a rater"),
        ("task_id,a,b\n,x,y\n", Reading(), "row 2, rater 'a', field 'label': found no task_id, expected one"),
        ("task_id,a,b\n1,,NA\n", Reading(), "f.csv: no cell holds a label"),
        ("task_id,a\n1,x\n", Reading(), f"labels of 1 raters (a), expected 2 to {MOST_RATERS}"),
        ("task_id,a,b\n1,x,\n2,,y\n", Reading(), "f.csv: no task has labels of two raters"),
        ("task_id,a,b\n1,x,y\n", Reading(level="ordinal"), "field 'label': the order of x, y is unknown"),
        ("task_id,a,b\n" + "".join(f"{n},v{n},w{n}\n" for n in range(51)), Reading(), "field 'label': 102 values"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(text: str, reading: Reading, message: str, tmp_path: Path) -> None:
    """An unusable file is an error with file, row, rater and field, and what was expected."""
    with pytest.raises(BadInput) as why:
        read(write(tmp_path, text), reading)
    assert message in str(why.value)
