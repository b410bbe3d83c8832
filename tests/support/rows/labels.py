"""Tasks with awkward texts, labels of them as rows and files, and sheets read back."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.label import label_files, schema

START = datetime(2026, 11, 20, 8, tzinfo=UTC)
IDS = [f"{n:032x}" for n in range(1, 4)]
TEXTS = ["你可真准时，才迟到一小时", "=1+1", "Lovely weather\nfor ducks"]
FORMULAS = ["=1+1", "+1", "-1 分", "@SUM(A1)", "\t=1", "'=1", "''+1", '=HYPERLINK("http://x.invalid")', "\r=1"]

EXAMPLES = {
    "table_8": (3, 3, 4, 4, 4, 2, 4, 4, 4, 3, 3, 3, 4, 4, 4, 2, 4, 3, 3, 4, 4, 4, 3, 3, 3, 3),
    "table_9": (4, 4, 4, 3, 2, 5, 2, 3, 2, 5, 4, 3, 4, 3, 4, 4, 3, 3, 3, 4, 4, 3, 2, 3, 3, 4),
}
"""Grades of the comments on two articles of the paper's test set, 26 as printed (AAC-32).

Whole numbers, though each comment has two grades, and 26, though each article has 27 comments.
"""


def build_tasks(texts: list[str] = TEXTS) -> pl.DataFrame:
    """Build tasks with these texts, as the table has them: with what ties them to their comments."""
    return pl.DataFrame(
        {
            "task_id": [f"{n:032x}" for n in range(1, len(texts) + 1)], "text": texts, "lang": "zh",
            "context": [None, *["开会"] * (len(texts) - 1)], "schema_version": schema.hash_schema(), "source": "weibo",
            "comment_id": "49731234567890", "thread_id": "88812345", "row_id": "abcdef0123456789", "user_id": "u1",
        },
        schema_overrides={"context": pl.String},
    )  # fmt: skip


def build_row(**change: Any) -> dict[str, Any]:
    """Build a row of a long table."""
    return {"task_id": IDS[0], "rater_id": "r1", "field": "sarcasm", "value": "1", **change}


def check_labels(*rows: dict[str, Any]) -> pl.DataFrame:
    """Check rows as labels of three tasks."""
    return label_files.check_rows([(f"row {n}", row) for n, row in enumerate(rows)], build_tasks(), name="x")


def read_sheet(path: Path) -> list[dict[str, Any]]:
    """Read the first sheet's rows, as text."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))
    return pl.read_excel(path, infer_schema_length=0).fill_null("").to_dicts()


def build_grades(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """Build labels from task, rater, field, value, and minutes after the start; without minutes they have no time."""
    labels = []
    for task, rater, field, value, *minutes in rows:
        label = {"task_id": task, "rater_id": rater, "field": field, "value": str(value)}
        time = START + timedelta(minutes=minutes[0]) if minutes else None
        labels.append(label | {"round": 1, "stage": 1, "labelled_at": time, "tool": "file"})
    return pl.DataFrame(labels, schema=label_files.COLUMNS)
