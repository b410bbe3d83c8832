"""Labelling as tasks: from comments to the labels of raters, from labels to annotations in two stages (CSD-15)."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import left_out, warehouse
from pipeline.errors import BadInput, Missing, Retry
from pipeline.examples.impscore.clusters import cluster_near_duplicates
from pipeline.io.rows import read_chunks
from pipeline.label import label_files, rating_files, schema, selection, simulated, stages
from pipeline.label.selection import Rules
from pipeline.metrics.labelling import agreement
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.labelling import projects
from pipeline.tasks.labelling.projects import Project, Studio, Tool, format_origin, is_step
from pipeline.tasks.record import runs

_ROW = pl.concat_str("task_id", "rater_id", "field", "round", "stage", separator="/")
log = logging.getLogger(__name__)
Step = tuple[int, int]
STEPS: tuple[Step, ...] = ((1, 1), (1, 2), (2, 1), (2, 2))
"""(round, stage) in order."""


def select(project: str, day: str, rules: Rules, run_id: str = "cli") -> int:
    """Select comments of a day as tasks of a project; return its task count, or raise Missing if it has no task."""
    timer = runs.start()
    comments = warehouse.scan("comments", pl.col("day") == parse_day(day)).sort("source", "thread_id", "comment_id")
    rows = comments.collect()
    # the same words in another context are another task (CSD-01)
    alike = rows.select("context", cluster=pl.Series(cluster_near_duplicates(rows["text"])))
    cluster = alike.select(pl.struct("cluster", "context").rank("dense").cast(pl.Int64)).to_series().to_list()
    selected, unselected = selection.select(rows, rules, cluster)
    config = {name: value for name, value in rules._asdict().items() if value is not None}
    dropped = unselected.with_columns(day=pl.lit(parse_day(day)))
    if not (count := _add_comments(project, rows, selected, dropped, config, run_id, timer)):
        raise _explain_empty_selection(project, day)
    return count


def select_ids(project: str, path: Path, run_id: str = "cli") -> int:
    """Select the comments whose ids are in a file, by no rule, as tasks; Missing if none is. Return the task count."""
    timer, key = runs.start(), ["source", "day", "thread_id", "comment_id"]
    rows = [row for chunk in read_chunks(path) for row in chunk.rows]
    if not rows or any(name not in row for row in rows for name in key):
        raise BadInput(f"{path}: expected rows with {', '.join(key)}, as the files of `undertone browse` have them")
    ids = pl.DataFrame([[str(row[name]) for name in key] for row in rows], key, orient="row")
    ids = ids.with_columns(pl.col("day").str.head(10).str.to_date(strict=False))  # a workbook has a time too
    is_of_days = pl.col("day").is_in(ids["day"].unique().drop_nulls().implode())
    comments = warehouse.scan("comments", is_of_days).join(ids.lazy(), on=key, how="semi").sort(key).collect()
    if not comments.height:
        raise Missing(f"{path}: no comment has the ids of any of its {ids.height:,} rows; export them again")
    unknown_count = ids.unique().join(comments, on=key, how="anti").height
    repeated_count = ids.height - ids.n_unique()
    left_out.record_rows("select", {"unknown_comment": unknown_count, "same_comment": repeated_count}, project)
    dropped = comments.clear().select("source", "day", reason="comment_id", row_key="comment_id")
    return _add_comments(project, comments, comments, dropped, {"ids": ids.height}, run_id, timer)


def _add_comments(
    project: str, comments: pl.DataFrame, selected: pl.DataFrame, dropped: pl.DataFrame, config: Mapping[str, object],
    run_id: str, timer: runs.Start,
) -> int:  # fmt: skip
    fresh, repeated = selection.build_tasks(selected, project)
    is_out = projects.is_withdrawn(project)
    withdrawn = fresh.filter(is_out).select("source", "day", reason=pl.lit("withdrawn"), row_key=selection.KEY)
    fresh = fresh.filter(~is_out)
    count = projects.add_tasks(project, fresh, run_id)
    key = ["source", "day", "row_key"]
    existing_tasks = projects.read_tasks(project).with_columns(row_key=selection.KEY)  # of earlier selections, too
    of_other_days = fresh.select("source", "day", reason=pl.lit("same_task"), row_key=selection.KEY)
    dropped = pl.concat([dropped, repeated, of_other_days, withdrawn], how="diagonal")
    dropped = dropped.join(existing_tasks, on=key, how="anti")
    for source, day in comments.select("source", "day").unique().sort("source", "day").iter_rows():
        tasks, day_dropped = (frame.filter(source=source, day=day) for frame in (existing_tasks, dropped))
        origin = format_origin(project)
        runs.record_step(source, str(day), origin, "select", tasks.height, day_dropped, config, run_id, timer)
    return count


def _explain_empty_selection(project: str, day: str) -> Missing:
    dropped = warehouse.scan("dropped", is_step(project, "select") & (pl.col("day") == parse_day(day))).collect()
    reasons = dropped["reason"].value_counts().sort("count", "reason", descending=True)
    if counts := ", ".join(f"{reason} {count}" for reason, count in reasons.iter_rows()):
        hint = "; choose languages by --lang (zh by default)" if "language" in set(reasons["reason"]) else ""
        return Missing(f"no comment of {day} fits the rules, which dropped: {counts}{hint}")
    days = warehouse.scan("comments").select(pl.col("day").unique().sort(descending=True)).head(5).collect()["day"]
    newest = ", ".join(map(str, days)) or "none"
    return Missing(f"there are no comments of {day}; days with comments, the newest first: {newest}")


def read_tasks(project: str) -> pl.DataFrame:
    """Read a project's tasks in the order of their ids."""
    command = "`undertone label export --day DAY`"
    return projects.read_tasks(project, f"project {project!r} has no tasks; select some: {command}")


def decide(project: str) -> stages.Decisions:
    """Decide each field of each task by the current labels."""
    return stages.decide(read_tasks(project)["task_id"], projects.read_labels(project))


def list_step_tasks(project: str, step: Step) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """List the tasks of a step with `round` and `fields`, and for the adjudicator the labels to decide on."""
    in_round, stage = step
    decisions = decide(project)
    tasks = read_tasks(project).with_columns(round=pl.lit(in_round, pl.Int64))
    if step == STEPS[0]:
        return tasks.with_columns(fields=pl.lit(list(schema.FIELDS))), None
    waiting = stages.list_to_relabel(decisions.annotations)
    labels = None
    if stage == 2:
        waiting = stages.list_to_adjudicate(decisions).filter(round=in_round)
        labels = decisions.labels.filter(stage=1, round=in_round)
    fields = waiting.group_by("task_id", maintain_order=True).agg(fields="field")
    return tasks.join(fields, on="task_id", how="inner", maintain_order="left"), labels


def get_step_project(project: str, step: Step) -> Project:
    """Return a step of a project as its tools need it."""
    return Project(project, schema.CSD, step=step)


def push(project: str, step: Step, tool: Tool, studio: Studio | None = None) -> int:
    """Give a step's tasks to raters through a tool, each once, `files` in its folder; return the task count."""
    target, (tasks, labels) = get_step_project(project, step), list_step_tasks(project, step)
    if tool == "label_studio" and tasks.height:
        projects.push(target, tasks, studio, labels)
    if tool == "files" and tasks.height:
        export(target.folder, tasks, labels)
    return tasks.height


def export(folder: Path, tasks: pl.DataFrame, labels: pl.DataFrame | None, sheets: Sequence[str] = ()) -> None:
    """Write tasks.jsonl, the guidelines, a sheet for each named rater, and an empty folder for labels."""
    from pipeline.report.labelling import data_card

    pages = {f"guidelines_{lang}.html": data_card.render_guidelines(lang) for lang in ("zh", "en")}
    projects.export(folder, tasks, schema.CSD, pages, dict.fromkeys(sheets, tasks), labels=labels)
    (folder / "labels").mkdir(exist_ok=True)


def collect(project: str, step: Step, tool: Tool, studio: Studio | None = None, run_id: str = "cli") -> dict[str, int]:
    """Fetch the labels that a tool has for a step, and decide again; return counts: tasks, labels, waiting."""
    tasks, _ = list_step_tasks(project, step)
    target = get_step_project(project, step)
    full_tasks = None
    if tasks.height:
        try:
            simulate = partial(_simulate, project, step, tasks)
            fetched = projects.fetch(target, read_tasks(project), tool, simulate, studio=studio)
        except Retry as error:
            log.warning("%s: %s", target.title, error)
        else:
            full_tasks = fetched.full_tasks
            add_labels(project, fetched.labels, run_id, fetched.skipped)
    waiting_count = write_annotations(project, run_id)[step]
    if waiting_count and full_tasks is not None:
        stuck = full_tasks.join(list_step_tasks(project, step)[0], on="task_id", how="semi")
        if step == STEPS[0]:  # which asks for all tasks, settled or not
            stuck = stuck.join(decide(project).annotations.filter(reason="too_few_raters"), on="task_id", how="semi")
        if stuck.height:
            names = [f"{number} ({task})" for task, number in stuck.select("task_id", "studio_id").head(10).rows()]
            why = "an answer lacks a field that was asked for, or its rater does not count (see `dropped`)"
            what = f"{stuck.height} tasks wait, but Label Studio has all answers it wants and gives them to no rater"
            log.warning("%s: %s: %s; correct them there: %s", target.title, what, why, ", ".join(names))
    return {"tasks": tasks.height, "labels": projects.read_labels(project).height, "waiting": waiting_count}


def _simulate(project: str, step: Step, tasks: pl.DataFrame) -> pl.DataFrame:
    in_round, stage = step
    if stage == 2:
        return simulated.adjudicate(stages.list_to_adjudicate(decide(project)).filter(round=in_round))
    fields = tasks.select("task_id", field="fields").explode("field") if in_round == 2 else None
    return simulated.label(tasks.select("task_id", "text"), fields)


def import_labels(project: str, paths: Sequence[Path], run_id: str = "cli") -> dict[str, int]:
    """Add labels from files to a project and decide again; count the labels that do not count, by reason."""
    tasks = read_tasks(project)
    labels = label_files.read_all(paths, tasks, three_values=stages.list_three_values(decide(project)))
    dropped = add_labels(project, pl.concat(labels), run_id)
    write_annotations(project, run_id)
    decisions = decide(project)
    rows = decisions.dropped.filter(reason="incomplete")
    people = rows.filter(round=1).group_by("task_id", "rater_id").agg("field")["field"].to_list()
    if lacking := [name for name in schema.FIELDS if any(name not in fields for fields in people)]:
        count = f"{rows.height:,} rows are kept, not counted until these fields are labelled"
        left_out.record_note(f"labels: {count}: {', '.join(lacking)}")
    return dict(pl.concat([dropped["reason"], decisions.dropped["reason"]]).value_counts(sort=True).iter_rows())


def add_labels(
    project: str, rows: pl.DataFrame, run_id: str = "cli", skipped: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Add labels to a project; return those that were not added or were replaced (reason, row_key).

    Of two labels by one rater for one field the later counts, and without times the new one. After an adjudicator has
    answered a task, its three labels are final: later labels of that round would change the basis of the decision.
    Labels by other people are late once enough people have answered. `dropped` has all of these, with the rows that the
    tool skipped (`skipped`: reason, row_key).
    """
    changes: dict[str, Any] = {}

    def merge(lazy: pl.LazyFrame) -> pl.DataFrame:
        current = lazy.select(list(label_files.COLUMNS)).collect()
        fresh = rows.select(current.columns).join(current, on=current.columns, how="anti", nulls_equal=True)
        counted = stages.decide(current["task_id"], current).labels
        final = counted.filter(stage=2).select("task_id", "round", stage=pl.lit(1, pl.Int64))
        after_adjudication = fresh.join(final, on=final.columns, how="semi")
        fresh = fresh.join(final, on=final.columns, how="anti")
        late = stages.find_late(counted, fresh)
        fresh = fresh.join(late, on=stages.KEY, how="anti")
        replaced = projects.find_replaced(current, fresh)
        labels, repeated = stages.drop_repeats(pl.concat([current.join(replaced, on=stages.KEY, how="anti"), fresh]))
        superseded = (current.join(replaced, on=stages.KEY, how="semi"), repeated.filter(reason="superseded"))
        reasons = [("after_adjudication", after_adjudication), ("late", late)]
        reasons += [("superseded", frame) for frame in superseded]
        changes["dropped"] = pl.concat(frame.select(reason=pl.lit(name), row_key=_ROW) for name, frame in reasons)
        changes["is_same"] = not fresh.height and not replaced.height
        return labels.with_columns(project=pl.lit(project)).select(empty("labels").columns)

    count = merge(warehouse.scan("labels", pl.col("project") == project)).height
    is_import = is_step(project, "labels_in")
    existing_dropped = warehouse.scan("dropped", is_import).select("reason", "row_key").collect()
    dropped = pl.concat([existing_dropped, changes["dropped"], *([] if skipped is None else [skipped])]).unique()
    # recorded before the labels are written, while both exist; `runs`, written last, shows whether all were
    if dropped.height > warehouse.scan("runs", is_import).select(pl.col("dropped_count").sum()).collect().item():
        projects.record_step(project, "labels_in", count, dropped.sort(pl.all()), run_id)
    if not changes["is_same"]:  # without new labels nothing is written
        warehouse.replace("labels", warehouse.make_slice(project=project), merge, run_id)
    new_dropped: pl.DataFrame = changes["dropped"]
    return new_dropped


def write_annotations(project: str, run_id: str = "cli") -> dict[Step, int]:
    """Decide by the current labels and replace `annotations`; return how many fields wait in each step."""
    decisions = decide(project)
    dropped = decisions.dropped.select("reason", row_key=_ROW)
    key, count = ("task_id", "field"), decisions.labels.height
    projects.publish("annotations", key, project, decisions.annotations, "labels", count, dropped, run_id)
    return count_waiting(decisions)


def count_waiting(decisions: stages.Decisions) -> dict[Step, int]:
    """Count the fields that wait in each step."""
    stage = pl.when(reason="to_adjudicate").then(2).otherwise(1)
    is_open = decisions.annotations.filter(state="open").group_by("round", stage.alias("stage")).len()
    return dict.fromkeys(STEPS, 0) | {(in_round, stage): count for in_round, stage, count in is_open.iter_rows()}


def find_waiting_step(project: str) -> Step | None:
    """Find the first step with a waiting field; None when all fields are settled."""
    return next((step for step, count in count_waiting(decide(project)).items() if count), None)


def count_states(project: str) -> pl.DataFrame:
    """Count settled and waiting fields: state, reason, round, fields, tasks."""
    keys, counts = ["state", "reason", "round"], {"fields": pl.len(), "tasks": pl.col("task_id").n_unique()}
    states = decide(project).annotations.group_by(keys).agg(**counts).cast(dict.fromkeys(counts, pl.Int64))
    return states.sort(keys, descending=[True, False, False])


def count_reopened() -> dict[str, int]:
    """Count by project the fields that are settled in `annotations`, and open by the rules of today."""
    settled = warehouse.scan("annotations", pl.col("state") != "open").select("project", "task_id", "field").collect()
    counts = {}
    for (project,), fields in settled.group_by("project"):
        is_open = decide(str(project)).annotations.filter(state="open")
        counts[str(project)] = is_open.join(fields, on=["task_id", "field"], how="semi").height
    return {project: count for project, count in sorted(counts.items()) if count}


def measure_file_agreement(path: Path, reading: rating_files.Reading | None = None) -> pl.DataFrame:
    """Measure the agreement of labels in a file, of any tasks.

    A file of CSD's form with an adjudicator's answers, or with all eight fields by three raters, has the measures of
    `measure_agreement`; any other file, and one with a `reading`, those of `metrics.labelling.agreement`. A value of
    the adjudicator counts where the raters agree, too (CSD-18 to CSD-20).
    """
    if reading is not None or not label_files.is_of_csd(path):
        reading = reading or rating_files.Reading()
        level, named_cells = reading.level, (reading.values, reading.missing)
        values, missing = ([rating_files.clean(cell, level) for cell in cells] for cells in named_cells)
        reading = reading._replace(values=values, missing=missing)
        return agreement.tabulate_ratings(rating_files.read(path, reading), level, values)
    try:
        rows = label_files.read(path, None)
    except BadInput as why:
        raise BadInput(f"{why}\nFor other values than those of CSD give their --level.") from why
    has_answers = rows.filter(stage=2).height > 0
    fields = [name for name in schema.FIELDS if not has_answers or name in set(rows["field"])]
    decisions = stages.decide(rows["task_id"], rows, fields, takes_values=True)
    if has_answers or not decisions.dropped.height:
        runs.report_dropped("agreement", decisions.dropped, str(path))
        return measure_agreement(decisions)
    first = rows.filter(pl.col("field").is_in(list(schema.FIELDS)), round=1)
    rating_files.check_ratings(path, first, rating_files.Reading())
    return agreement.tabulate_ratings(first)


def measure_agreement(decisions: stages.Decisions) -> pl.DataFrame:
    """Measure agreement by field, over all tasks that somebody labelled, in the order of raters.

    The labels of the first round stay in the measures of that round, whatever the second one changed. Where the three
    agreed, there was no adjudicator, and the fourth label is theirs (CSD-15, CSD-16).
    """
    cell = ["task_id", "field"]
    rater_labels = decisions.labels.filter(stage=1).sort("rater_id")
    by_rater = rater_labels.group_by(*cell, "round").agg(
        pl.col("value").get(n, null_on_oob=True).alias(name) for n, name in enumerate(agreement.RATERS)
    )
    last = by_rater.rename(dict(zip(agreement.RATERS, agreement.LAST, strict=True)))
    rows = decisions.annotations.select(*cell, "round", fourth="value", is_waiting=stages.IS_DISPUTED)
    rows = rows.join(by_rater.filter(round=1).drop("round"), on=cell, how="inner")
    return agreement.tabulate(rows.join(last, on=[*cell, "round"], how="left"))


def explain_agreement(table: pl.DataFrame) -> list[str]:
    """Explain in sentences what the measures of a table are over, and why some are null."""
    if "note" in table.columns:
        return [f"{field}: {note}" for field, note in table.select("field", "note").drop_nulls().iter_rows()]
    lines = [
        "fleiss, cohen and krippendorff are over the first round of all tasks labelled, fleiss_last over the round "
        "that decided, fleiss_four and tae over that round and the final label"
    ]
    if undefined := ", ".join(table.filter(pl.col("fleiss").is_null())["field"]):
        need = "kappa and alpha need two values, and tasks that three raters labelled"
        lines.append(f"{need}: undefined for {undefined}")
    deleted = table.select("field", pl.col("n_three") - pl.col("n_four") - pl.col("n_waiting")).rows()
    if names := ", ".join(f"{field} {count}" for field, count in deleted if count > 0):
        lines.append(f"fleiss_four and tae leave out fields that were deleted: {names}")
    if waiting := ", ".join(f"{field} {count}" for field, count in table.select("field", "n_waiting").rows() if count):
        lines.append(f"fleiss_four and tae are not yet defined where labels wait for the deciding rater: {waiting}")
    return lines
