"""Judgements of people who browse: labels of the project `browse`, which `undertone calibrate … people:rank` reads."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.errors import Missing
from pipeline.label import label_files, selection
from pipeline.tasks.labelling import projects

PROJECT, FIELD = "browse", "rank"


def add(comment: Mapping[str, Any], percentile: float, rater: str, run_id: str = "cli") -> int:
    """Add or replace a rater's judgement of a comment (source, day, thread_id, comment_id); return the label count."""
    projects.check_raters([rater])
    is_judged = pl.all_horizontal(pl.col(name) == value for name, value in comment.items())
    tasks, _ = selection.build_tasks(warehouse.scan("comments", is_judged).collect(), PROJECT)
    tasks = tasks.filter(~projects.is_withdrawn(PROJECT)).with_columns(schema_version=pl.lit(f"{PROJECT}/1"))
    if not tasks.height:
        raise Missing("this comment is not in the tables any more; start `undertone browse` again")
    projects.add_tasks(PROJECT, tasks, run_id)
    label = {
        "task_id": tasks["task_id"][0], "round": 1, "stage": 1, "rater_id": rater, "field": FIELD,
        "value": f"{percentile:.1f}", "labelled_at": datetime.now(UTC), "tool": PROJECT,
    }  # fmt: skip
    return projects.add_labels(PROJECT, pl.DataFrame([label], schema=label_files.COLUMNS), run_id)
