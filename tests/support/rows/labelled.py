"""Labels for tests, and tables to compare."""

from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.label import label_files, schema, stages
from pipeline.tables import PROVENANCE
from pipeline.tasks.labelling import csd


def read_table(name: str) -> pl.DataFrame:
    """Read a table in a fixed order."""
    rows = warehouse.scan(name).collect()
    rows = rows.drop(PROVENANCE if name == "runs" else "run_id", strict=False)
    return rows.sort(rows.columns)


def label_all(project: str, rater: str, changes: dict[str, str] | None = None, **more: Any) -> pl.DataFrame:
    """Label all tasks by one rater: -1 and None but for the changes."""
    values = dict.fromkeys(schema.FIELDS, "-1") | {"emotion": "None"} | (changes or {})
    label = {"round": 1, "stage": 1, "rater_id": rater, "tool": "file"} | more
    rows = [
        {"task_id": task, "field": field, "value": value} | label
        for task in csd.read_tasks(project)["task_id"]
        for field, value in values.items()
    ]
    return pl.DataFrame(rows, schema=label_files.COLUMNS)


def answer_all(project: str, in_round: int, value: str) -> pl.DataFrame:
    """Answer all that waits for the adjudicator."""
    rows = stages.list_to_adjudicate(csd.decide(project)).filter(round=in_round)
    label = {"stage": 2, "rater_id": "judge", "value": value, "tool": "file"}
    return pl.DataFrame([row | label for row in rows.drop("a", "b", "c").to_dicts()], schema=label_files.COLUMNS)
