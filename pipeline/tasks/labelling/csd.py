"""Labelling as tasks: comments to raters, their labels to annotations in two stages, those to a published data set.

A project goes through four steps, (round, stage) = (1, 1), (1, 2), (2, 1), (2, 2): three raters, the adjudicator, and
for what was sent back the same once more (CSD-15). What a step has to do is always told by the tables, so a step can be
run again after a kill, and by hand as well as by the DAG.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, Missing, Retry
from pipeline.label import label_files, schema, selection, simulated, stages
from pipeline.label.selection import Rules
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.labelling import projects
from pipeline.tasks.labelling.projects import KEY, Project, Studio, Tool, format_origin
from pipeline.tasks.record import runs

_ROW = pl.concat_str("task_id", "rater_id", "field", "round", "stage", separator="/")
log = logging.getLogger(__name__)

Step = tuple[int, int]
STEPS: tuple[Step, ...] = ((1, 1), (1, 2), (2, 1), (2, 2))
"""(round, stage) in order."""


def parse_rules(given: Mapping[str, Any]) -> Rules:
    """Rules of plain JSON."""
    return Rules(**{**given, "langs": tuple(given.get("langs", Rules().langs))})


def check_fields(names: Sequence[str]) -> tuple[str, ...]:
    """Fields by their names, told early: a release that asks for one that is not there would fail at its end."""
    if unknown := [name for name in names if name not in schema.FIELDS]:
        raise BadInput(f"no field {unknown[0]!r}; there are {', '.join(schema.FIELDS)}")
    return tuple(names)


def check_step(given: Sequence[int]) -> Step:
    """A step of plain JSON."""
    if (step := tuple(given)) not in STEPS:
        raise BadInput(f"a step is one of {', '.join(map(str, STEPS))}, not {step}")
    return step[0], step[1]


def select(project: str, day: str, rules: Rules, run_id: str = "cli") -> int:
    """Give comments of a day to a project; return its tasks in all. Tasks that are there keep their random ids."""
    from pipeline.examples.impscore.clusters import cluster_near_duplicates

    began = runs.start()
    comments = warehouse.scan("comments", pl.col("day") == parse_day(day)).sort("source", "thread_id", "comment_id")
    rows = comments.collect()
    alike = rows.select("context", cluster=pl.Series(cluster_near_duplicates(rows["text"])))
    cluster = alike.select(pl.struct("cluster", "context").rank("dense").cast(pl.Int64)).to_series().to_list()
    kept, gone = selection.select(rows, rules, cluster)  # the same words in another context are another task (CSD-01)
    fresh, same = selection.build_tasks(kept, project)
    is_out = projects.is_withdrawn(project)
    out = fresh.filter(is_out).select("source", reason=pl.lit("withdrawn"), row_key=selection.KEY)
    fresh = fresh.filter(~is_out)
    count = projects.add_tasks(project, fresh, run_id)
    lost = pl.concat([gone, same, out])
    for source in rows["source"].unique().sort():
        mine = lost.filter(pl.col("source") == source)
        number = fresh.filter(pl.col("source") == source).height
        config = {name: value for name, value in rules._asdict().items() if value is not None}
        runs.record_step(source, day, format_origin(project), "select", number, mine, config, run_id, began)
        began = runs.start()  # what sources share is counted with the first
    return count


def explain_empty_selection(project: str, day: str) -> Missing:
    """Why a day gave a project without tasks none: it has no comments, or which rules left out how many."""
    mine = (
        (pl.col("origin") == format_origin(project)) & (pl.col("step") == "select") & (pl.col("day") == parse_day(day))
    )
    gone = warehouse.scan("dropped", mine).collect()["reason"].value_counts().sort("count", "reason", descending=True)
    if gone.height:
        told = ", ".join(f"{reason} {count}" for reason, count in gone.iter_rows())
        return Missing(f"no comment of {day} fits the rules, which left out: {told}")
    days = warehouse.scan("comments").select(pl.col("day").unique().sort(descending=True)).head(5).collect()["day"]
    known = ", ".join(map(str, days)) or "none"
    return Missing(f"there are no comments of {day}; days with comments, the newest first: {known}")


def read_tasks(project: str) -> pl.DataFrame:
    """A project's tasks in the order of their ids."""
    how = "`undertone label export --day DAY`"
    return projects.read_tasks(project, f"project {project!r} has no tasks; select some: {how}")


def decide(project: str) -> stages.Decisions:
    """What the labels so far make of each field of each task."""
    return stages.decide(read_tasks(project)["task_id"], projects.read_labels(project))


def list_step_tasks(project: str, step: Step) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """What a step asks of whom: tasks with `round` and `fields`, and for the adjudicator the labels to decide on."""
    in_round, stage = step
    found = decide(project)
    tasks = read_tasks(project).with_columns(round=pl.lit(in_round, pl.Int64))
    if step == STEPS[0]:
        return tasks.with_columns(fields=pl.lit(list(schema.FIELDS))), None
    count_waiting = (
        stages.list_to_adjudicate(found).filter(round=in_round)
        if stage == 2
        else stages.list_to_relabel(found.annotations)
    )
    fields = count_waiting.group_by("task_id", maintain_order=True).agg(fields="field")
    rows = tasks.join(fields, on="task_id", how="inner", maintain_order="left")
    return rows, found.kept.filter(stage=1, round=in_round) if stage == 2 else None


def get_step_project(project: str, step: Step) -> Project:
    """A step of a project as its tools need it."""
    return Project(project, schema.CSD, step=step)


def get_step_folder(project: str, step: Step) -> Path:
    """Where the files of a step lie; labels are looked for in `labels` below it."""
    return get_step_project(project, step).folder


def push(project: str, step: Step, tool: Tool, studio: Studio | None = None) -> int:
    """Give a step's tasks to raters through a tool; return how many there are. What was given is not given twice.

    `files` puts tasks.jsonl and the guidelines into a folder of the step.
    """
    tasks, labels = list_step_tasks(project, step)
    if tool == "label_studio" and tasks.height:
        projects.push(get_step_project(project, step), tasks, studio, labels)
    if tool == "files" and tasks.height:
        export(get_step_folder(project, step), tasks, labels)
    return tasks.height


def export(folder: Path, tasks: pl.DataFrame, labels: pl.DataFrame | None, sheets: Sequence[str] = ()) -> None:
    """Write tasks.jsonl, the guidelines, a sheet for each rater named, and an empty folder for labels."""
    from pipeline.report.labelling import guidelines

    pages = {f"guidelines_{lang}.html": guidelines.page(lang) for lang in ("zh", "en")}
    projects.export(folder, tasks, schema.CSD, pages, dict.fromkeys(sheets, tasks), labels=labels)
    (folder / "labels").mkdir(exist_ok=True)


def collect(
    project: str, step: Step, tool: Tool, studio: Studio | None = None, run_id: str = "cli", seed: int = 0
) -> dict[str, int]:
    """Fetch the labels a tool has for a step, decide again, and say how many fields still wait in the step.

    A tool that cannot be reached just now has nothing new: whoever waits for labels waits on. Tasks that wait though
    the tool gives them to nobody any more, as an answer lacks a field or is by the wrong person, are named in the log.

    Returns:
        Counts: tasks, labels (in all), waiting.
    """
    tasks, _ = list_step_tasks(project, step)
    target, fetched = get_step_project(project, step), None

    def simulate() -> pl.DataFrame:
        return _simulate(project, step, tasks, seed)

    if tasks.height:
        try:
            fetched = projects.fetch(target, read_tasks(project), tool, simulate, studio=studio)
        except Retry as why:
            log.warning("%s: %s", target.title, why)
        else:
            add_labels(project, fetched.labels, run_id, fetched.skipped)
    open_ = write_annotations(project, run_id)
    if open_[step] and fetched and fetched.taken.height:
        _warn_stuck(project, step, fetched.taken)
    return {"tasks": tasks.height, "labels": projects.read_labels(project).height, "waiting": open_[step]}


def _simulate(project: str, step: Step, tasks: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Labels of simulated raters, or of a simulated adjudicator."""
    in_round, stage = step
    if stage == 2:
        return simulated.adjudicate(stages.list_to_adjudicate(decide(project)).filter(round=in_round), seed)
    fields = tasks.select("task_id", field="fields").explode("field") if in_round == 2 else None
    return simulated.label(tasks.select("task_id", "text"), fields, seed)


def _warn_stuck(project: str, step: Step, taken: pl.DataFrame) -> None:
    """Name the tasks that wait in a step though the tool gives them to nobody."""
    stuck = taken.join(list_step_tasks(project, step)[0], on="task_id", how="semi")
    if step == STEPS[0]:  # which asks for all tasks, settled or not
        waits = decide(project).annotations.filter(reason="too_few_raters")
        stuck = stuck.join(waits, on="task_id", how="semi")
    if stuck.height:
        told = ", ".join(f"{number} ({task})" for task, number in stuck.select("task_id", "studio_id").head(10).rows())
        log.warning(
            "%s: %s tasks wait, but Label Studio has all answers it wants and gives them to nobody: an answer lacks a "
            "field that was asked for, or its rater does not count (`dropped` says which); have them mended there: %s",
            get_step_project(project, step).title, stuck.height, told,
        )  # fmt: skip


def import_labels(project: str, paths: Sequence[Path], run_id: str = "cli") -> dict[str, int]:
    """Add labels of files to a project, each checked against the schema and its task; counts as `collect`."""
    tasks = read_tasks(project)
    add_labels(project, pl.concat([label_files.read(path, tasks) for path in paths]), run_id)
    open_ = write_annotations(project, run_id)
    return {"tasks": tasks.height, "labels": projects.read_labels(project).height, "waiting": sum(open_.values())}


def add_labels(project: str, rows: pl.DataFrame, run_id: str = "cli", skipped: pl.DataFrame | None = None) -> int:
    """Add labels to those there are; return how many there are.

    Of two by one rater about one thing the later counts, and where times do not tell, the one that came now. Once an
    adjudicator has answered a task, its three labels stand: what raters then say of it in that round would change what
    was decided on. Both are told in `dropped`, as `superseded` and `after_adjudication`, with what the tool left out
    (`skipped`: reason, row_key).
    """
    news: dict[str, Any] = {}

    def with_new(lazy: pl.LazyFrame) -> pl.DataFrame:
        current = lazy.select(list(label_files.COLUMNS)).collect()
        fresh = rows.select(current.columns).join(current, on=current.columns, how="anti", nulls_equal=True)
        counted = stages.decide(current["task_id"], current).kept.filter(stage=2)
        answered = counted.select("task_id", "round").unique().with_columns(stage=pl.lit(1, pl.Int64))
        late = fresh.join(answered, on=["task_id", "round", "stage"], how="semi")
        fresh = fresh.join(answered, on=["task_id", "round", "stage"], how="anti")
        replaced = projects.find_replaced(current, fresh)
        once, repeated = stages.drop_repeats(pl.concat([current.join(replaced, on=KEY, how="anti"), fresh]))
        reasons = (
            (late, "after_adjudication"), (current.join(replaced, on=KEY, how="semi"), "superseded"),
            (repeated.filter(pl.col("reason") == "superseded"), "superseded"),
        )  # fmt: skip
        news["dropped"] = pl.concat([frame.select(reason=pl.lit(reason), row_key=_ROW) for frame, reason in reasons])
        news["is_same"] = not fresh.height and not replaced.height
        return once.with_columns(project=pl.lit(project)).select(empty("labels").columns)

    count = with_new(warehouse.scan("labels", pl.col("project") == project)).height
    is_step = (pl.col("origin") == format_origin(project)) & (pl.col("step") == "labels_in")
    before = warehouse.scan("dropped", is_step).select("reason", "row_key").collect()
    dropped = pl.concat([before, news["dropped"], *([] if skipped is None else [skipped])]).unique()
    # recorded before the labels are written, when it can still be told; `runs`, written last, says whether all was
    if dropped.height > warehouse.scan("runs", is_step).select(pl.col("dropped_count").sum()).collect().item():
        projects.record_step(project, "labels_in", count, dropped.sort(pl.all()), run_id)
    if not news["is_same"]:  # a look that finds no news writes none
        count = warehouse.replace("labels", warehouse.slice_of(project=project), with_new, run_id)
    return count


def write_annotations(project: str, run_id: str = "cli") -> dict[Step, int]:
    """Decide by the labels there are, put `annotations` in place; return how many fields wait in each step."""
    found = decide(project)
    dropped = found.dropped.select("reason", row_key=_ROW)
    key = ("task_id", "field")
    projects.publish("annotations", key, project, found.annotations, "labels", found.kept.height, dropped, run_id)
    return count_waiting(found)


def count_waiting(found: stages.Decisions) -> dict[Step, int]:
    """How many fields wait in each step."""
    is_stage_2 = pl.col("reason") == "to_adjudicate"
    is_open = found.annotations.filter(state="open").with_columns(stage=pl.when(is_stage_2).then(2).otherwise(1))
    counts = {(r, s): n for r, s, n in is_open.group_by("round", "stage").len().iter_rows()}
    return {step: counts.get(step, 0) for step in STEPS}


def find_waiting_step(project: str) -> Step | None:
    """The first step that something waits in; None when all is settled."""
    open_ = count_waiting(decide(project))
    return next((step for step in STEPS if open_[step]), None)


def count_states(project: str) -> pl.DataFrame:
    """How many fields are settled, and how many wait for whom: state, reason, round, fields, tasks."""
    rows = decide(project).annotations
    return (
        rows.group_by("state", "reason", "round")
        .agg(fields=pl.len().cast(pl.Int64), tasks=pl.col("task_id").n_unique().cast(pl.Int64))
        .sort("state", "reason", "round", descending=[True, False, False])
    )


def measure_file_agreement(path: Path) -> pl.DataFrame:
    """Agreement of labels in a file, whatever tasks they are of."""
    rows = label_files.read(path, None)
    return measure_agreement(stages.decide(rows["task_id"], rows))


def drop_intervals(table: pl.DataFrame) -> pl.DataFrame:
    """The measures without their intervals, as they fit a terminal."""
    return table.select(name for name in table.columns if not name.endswith(("_low", "_high")))


def measure_agreement(found: stages.Decisions) -> pl.DataFrame:
    """Every measure of agreement by field, over what is settled and the three labels that led there."""
    from pipeline.metrics.labelling import agreement

    return agreement.tabulate(pivot_by_rater(found))


def pivot_by_rater(found: stages.Decisions) -> pl.DataFrame:
    """The three labels of the round that decided as a, b, c, in the order of the raters' ids, and what stands.

    Where nobody was asked because the three agreed, the fourth label is theirs (CSD-15, CSD-16).
    """
    cell = ["task_id", "field", "round"]
    said = found.kept.filter(stage=1).sort("rater_id")
    three = said.group_by(cell).agg(pl.col("value").get(n, null_on_oob=True).alias("abc"[n]) for n in range(3))
    rows = found.annotations.select(*cell, fourth="value").join(three, on=cell, how="inner")
    return rows.drop("round").sort("task_id", "field")
