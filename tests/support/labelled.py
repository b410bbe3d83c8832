"""Labels for tests, and tables to compare."""

from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.label import label_files, schema, stages
from pipeline.tables import PROVENANCE
from pipeline.tasks.labelling import csd


def table(name: str) -> pl.DataFrame:
    """A table in a fixed order."""
    rows = warehouse.scan(name).collect()
    rows = rows.drop(PROVENANCE if name == "runs" else "run_id", strict=False)
    return rows.sort(rows.columns)


def said(project: str, rater: str, changes: dict[str, str] | None = None, **more: Any) -> pl.DataFrame:
    """What a rater says of all tasks: -1 and None but for the changes."""
    plain = {name: "None" if name == "emotion" else "-1" for name in schema.FIELDS} | (changes or {})
    rows = [
        {"task_id": task, "round": 1, "stage": 1, "rater_id": rater, "field": field, "value": value,
         "tool": "file"} | more
        for task in csd.read_tasks(project)["task_id"]
        for field, value in plain.items()
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=label_files.COLUMNS)


def answers(project: str, in_round: int, value: str) -> pl.DataFrame:
    """The adjudicator's answer to all that waits."""
    rows = stages.list_to_adjudicate(csd.decide(project)).filter(round=in_round)
    made = rows.select(
        "task_id", "round", "field", stage=2, rater_id=pl.lit("judge"), value=pl.lit(value), tool=pl.lit("file")
    )
    return made.with_columns(labelled_at=None).select(list(label_files.COLUMNS)).cast(dict(label_files.COLUMNS))
