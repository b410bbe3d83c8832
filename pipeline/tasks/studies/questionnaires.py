"""Ask people in a DAG run to rank graded groups and to choose paraphrases (ImpScore, section 6.2; IMP-34)."""

from functools import partial

import polars as pl

from pipeline.errors import Missing
from pipeline.label import simulated
from pipeline.tasks.impscore import in_force, user_study
from pipeline.tasks.labelling import projects
from pipeline.tasks.labelling.projects import Assignment, Studio, Tool
from pipeline.tasks.studies.rows import build_frame, build_row, replace_study


def assign_tasks(kind: str, day: str, tool: Tool, studio: Studio | None = None, run_id: str = "cli") -> Assignment:
    """Give the shipped items of a kind to people through a tool, each once."""
    items = user_study.read_items(kind)
    user_study.select(kind, items, day, run_id=run_id)
    tasks, _, project = user_study.read_tasks(kind, items)
    return projects.assign(project, tasks, tool, studio, partial(user_study.export, kind, items))


def collect_answers(kind: str, day: str, tool: Tool, studio: Studio | None, run_id: str) -> int:
    """Collect what a tool has, and publish means of people and the model, without names; return the label count."""
    items, model_id = user_study.read_items(kind), in_force.load_model(None, day).model_id
    count = user_study.collect(kind, items, (), tool, studio, run_id)
    try:
        numbers = user_study.measure(kind, items, model_id, run_id)
    except Missing:  # no whole answer yet
        return count
    is_model, is_simulated = pl.col("by") == "model", pl.col("by").str.starts_with(f"{simulated.TOOL}_")
    by = pl.when(is_model).then("by").when(is_simulated).then(pl.lit(simulated.TOOL)).otherwise(pl.lit("people"))
    metrics = [name for name in ("kendall_tau", "spearman_rho", "accuracy") if name in numbers.columns]
    values = numbers.with_columns(by=by).unpivot(metrics, index=["set", "by", "n"], variable_name="metric")
    rows = []
    for (in_set, group, metric), part in values.group_by("set", "by", "metric", maintain_order=True):
        columns = {"setting": {"by": group, "set": in_set, "raters": part.height}, "model_id": model_id}
        rows.append(build_row("people", day, str(metric), kind, part["value"].mean(), int(part["n"].sum()), **columns))
    replace_study("people", build_frame(rows), day, run_id, pl.col("subset") == kind)
    return count
