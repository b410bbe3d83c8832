"""Give compressions to raters, collect their grades, and write the means into `studies` (NDD, appendix F; NDD-36)."""

import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, Missing
from pipeline.label import compression, grading, simulated
from pipeline.label.compression import COUNT, FIELDS, FORM, Tasks
from pipeline.label.grading import Grades
from pipeline.metrics.ndd import compression as measures
from pipeline.papers.ndd import PAPER_HUMAN
from pipeline.slices import parse_day
from pipeline.tables import SOURCE
from pipeline.tasks.labelling import projects
from pipeline.tasks.labelling.projects import Assignment, Project, Studio
from pipeline.tasks.record import runs
from pipeline.tasks.record.replace import replace_rows
from pipeline.tasks.studies.rows import build_frame, build_rows

log = logging.getLogger(__name__)
STUDY, STEP, SELECT = "compression", "grades", "select"
GOLD = "gold"  # what people left, as a system
HUMAN, SIMULATED = "human", "simulated"
"""Whose grades rows of `studies` are of: the end of their subset. A day never has both."""

Tool = Literal["files", "simulated"]


def get_project(source: str) -> Project:
    """Get the labelling project of a data set; answers in files are looked for in its folder."""
    name = f"integrity_{source}"
    if not re.fullmatch(SOURCE, source) or not re.fullmatch(SOURCE, name):
        raise BadInput(f"source: expected up to 30 small letters, digits and _, found {source!r:.60}")
    return Project(name, FORM)


def load_compressions(source: str, day: str, systems: Sequence[str] = ()) -> pl.DataFrame:
    """Load the compressions of a data set by some systems, by default all: item_id, system, lang, words, kept."""
    source_rows = warehouse.scan("compressions", pl.col("source") == source)
    if not (rows := source_rows.filter(day=parse_day(day)).sort("item_id", "system").collect()).height:
        days = source_rows.select(pl.col("day").unique().sort()).collect()["day"]
        days_text = f"there are of {', '.join(map(str, days))}" if len(days) else "there are none of any day"
        raise Missing(f"no compressions of {source!r} on {day}; {days_text}; make some: `undertone ndd measure`")
    existing = rows["system"].unique().sort().to_list()
    if missing := [system for system in systems if system not in existing]:
        raise BadInput(f"no compressions of {source!r} by {missing[0]!r} on {day}; there are by {', '.join(existing)}")
    is_kept = pl.col("rounds").list.eval(pl.element() == 0)
    rows = rows.filter(pl.col("system").is_in(systems or existing))
    return rows.select("item_id", "system", "lang", "words", kept=is_kept)


def select_tasks(source: str, day: str, systems: Sequence[str] = (), count: int = COUNT, run_id: str = "cli") -> int:
    """Give to raters the compressions of `count` sentences by some systems or all; return the task count."""
    started, name, rows = runs.start(), get_project(source).name, load_compressions(source, day, systems)
    selected = compression.build_tasks(compression.sample(rows, count)).tasks
    is_withdrawn = projects.is_withdrawn(name)
    tasks = selected.filter(~is_withdrawn).with_columns(
        source=pl.lit(source), day=pl.lit(parse_day(day)), thread_id="item_id", comment_id="item_id"
    )
    existing = _load_released(source)
    has_new = tasks.join(existing, on="task_id", how="anti").height
    total = projects.add_tasks(name, tasks, run_id) if has_new else existing.height
    selections = _load_selections(source, day)
    selection = {"systems": rows["system"].unique().sort().to_list(), "count": count}
    if selection not in selections:
        dropped = selected.filter(is_withdrawn)
        dropped = dropped.select(source=pl.lit(name), reason=pl.lit("withdrawn"), row_key="task_id")
        origin, config = projects.format_origin(name), {"selections": [*selections, selection]}
        runs.record_step(name, day, origin, SELECT, tasks.height, dropped, config, run_id, started)
    return total


def _load_selections(source: str, day: str) -> list[dict[str, Any]]:
    """Load what the calls of `select_tasks` gave to raters of a day, in order: systems, count."""
    is_selection = projects.is_step(get_project(source).name, SELECT) & (pl.col("day") == parse_day(day))
    configs = warehouse.scan("runs", is_selection).select("config").collect()
    return [selection for config in configs["config"] for selection in json.loads(config)["selections"]]


def load_tasks(source: str, day: str) -> Tasks:
    """Load the tasks of a day's compressions as they are now (item_id too), and the systems that each belongs to.

    A task belongs only to systems that were selected, even where another system left the same words: those sentences
    alone would be no sample of the other system.
    """
    released, selections, name = _load_released(source), _load_selections(source, day), get_project(source).name
    if not selections:
        command = f"`undertone ndd rate --source {source} --day {day}`"
        raise Missing(f"no compressions of {source!r} on {day} were given to raters: {command}")
    rows, keys = load_compressions(source, day), []
    for selection in selections:
        selected = rows.filter(pl.col("system").is_in(selection["systems"]))
        keys.append(compression.build_tasks(compression.sample(selected, selection["count"])).key)
    key = pl.concat(keys).unique().sort("item_id", "system")
    changed = key.join(released, on="task_id", how="anti").filter(~projects.is_withdrawn(name))
    if changed.height:
        log.warning("%s: %d compressions of %s have changed since; give them again", name, changed.height, day)
    return Tasks(released.join(key, on="task_id", how="semi"), key.join(released, on="task_id", how="semi"))


def _load_released(source: str) -> pl.DataFrame:
    """Load all tasks given to raters, also those that have changed since: answers to them may still come."""
    return projects.read_tasks(get_project(source).name).with_columns(item_id="thread_id")


def export(
    source: str,
    day: str,
    folder: Path,
    raters: Sequence[str] = (),
    lang: str = "zh",
    count: int | None = None,
    systems: Sequence[str] = (),
) -> int:
    """Write tasks.jsonl, the guidelines in a language, and a sheet for each rater; return the number of tasks.

    Two raters get each sentence with all its compressions, in later exports the same. By default all sentences and
    systems count that were given to raters.
    """
    tasks = load_tasks(source, day).tasks
    if count is not None or systems:
        rows = compression.sample(load_compressions(source, day, systems), COUNT if count is None else count)
        tasks = tasks.join(compression.build_tasks(rows).tasks, on="task_id", how="semi", maintain_order="left")
    projects.check_sheets(folder, raters, "sentence")
    project, assigned = get_project(source), None
    if raters:
        assigned = projects.update_assignment(project, lambda previous: _assign(source, tasks, raters, previous))
    sheets = {rater: compression.list_rater_tasks(tasks, rater, assigned) for rater in raters}
    guidelines = {"guidelines.md": grading.read_guidelines("compression", lang)}
    (folder / "labels").mkdir(parents=True, exist_ok=True)
    return projects.export(folder, tasks, FORM, guidelines, sheets, lang)


def _assign(source: str, tasks: pl.DataFrame, raters: Sequence[str], previous: pl.DataFrame | None) -> pl.DataFrame:
    """Assign tasks to raters; earlier assignments stay, and new compressions of a sentence go to its raters."""
    previous = pl.DataFrame(schema=grading.ASSIGNED) if previous is None else previous
    pool = _load_released(source).filter(pl.col("task_id").is_in([*tasks["task_id"], *previous["task_id"]]))
    assigned = compression.assign(pool, raters, assigned=previous)
    absent = assigned.join(previous, on="task_id", how="anti").filter(~pl.col("rater_id").is_in(list(raters)))
    if absent.height:
        names, count = ", ".join(absent["rater_id"].unique().sort()), absent["task_id"].n_unique()
        message = "%s: %d tasks are of sentences that were dealt to %s; name these raters to write their sheets"
        log.warning(message, get_project(source).name, count, names)
    return assigned


def assign_tasks(source: str, day: str, tool: Tool, studio: Studio | None = None, run_id: str = "cli") -> Assignment:
    """Give the day's compressions of `COUNT` sentences to raters through a tool, each once."""
    select_tasks(source, day, run_id=run_id)
    tasks = load_tasks(source, day).tasks
    return projects.assign(get_project(source), tasks, tool, studio, lambda folder: export(source, day, folder))


def collect(
    source: str, day: str, paths: Sequence[Path] = (), tool: Tool = "files", run_id: str = "cli"
) -> dict[str, int]:
    """Add grades that a tool has, and publish their means; return counts: tasks, graded, waiting."""
    tasks = load_tasks(source, day)
    project = get_project(source)
    fetched = projects.fetch(project, _load_released(source), tool, lambda: _simulate(source, day, tasks), paths)
    projects.add_labels(project.name, fetched.labels, run_id)
    graded_count = _publish(source, day, tasks, run_id)
    return {"tasks": tasks.tasks.height, "graded": graded_count, "waiting": tasks.tasks.height - graded_count}


def collect_answers(source: str, day: str, tool: Tool, _studio: Studio | None, run_id: str) -> dict[str, int]:
    """Collect what a tool has, for a DAG; return the counts of `collect`."""
    return collect(source, day, (), tool, run_id)


def _simulate(source: str, day: str, tasks: Tasks) -> pl.DataFrame:
    """Simulate grades; where people compressed the sentences, what is more like theirs is graded higher."""
    previous = projects.read_simulated_assignment(get_project(source).name, tasks.tasks, f"compressions of {source!r}")
    assigned = compression.assign(tasks.tasks, simulated.GRADERS, assigned=previous)
    truth = _grade_likeness(load_compressions(source, day), tasks.key)
    return simulated.grade(tasks.tasks, simulated.GRADERS, assigned, truth=truth, form=FORM)


def _grade_likeness(rows: pl.DataFrame, key: pl.DataFrame) -> pl.DataFrame | None:
    """Grade how like people's each compression is: syntax by F1 of the words that stay, semantics by recall."""
    gold = rows.filter(pl.col("system") == GOLD).select("item_id", gold="kept")
    pairs = key.join(rows, on=["item_id", "system"]).join(gold, on="item_id", how="left").unique("task_id")
    if pairs["gold"].null_count():
        return None
    grades = []
    for task_id, labels, gold_labels in pairs.select("task_id", "kept", "gold").iter_rows():
        shared_count = sum(map(min, labels, gold_labels))
        f1 = 2 * shared_count / max(1, sum(labels) + sum(gold_labels))
        recall = shared_count / max(1, sum(gold_labels))
        grades += [(task_id, field, round(5 * share)) for field, share in zip(FIELDS, (f1, recall), strict=True)]
    return pl.DataFrame(grades, {"task_id": pl.String, "field": pl.String, "grade": pl.Int64}, orient="row")


def publish(source: str, day: str, run_id: str = "cli") -> int:
    """Publish the means of each system and the raters' agreement in `studies`; return how many tasks have two grades.

    Rows have the study `compression` and the subset `SOURCE:human`, or `SOURCE:simulated` while only simulated raters
    graded. Means of syntax and semantics have the system as the setting, measures of agreement the field.
    """
    return _publish(source, day, load_tasks(source, day), run_id) if _load_selections(source, day) else 0


def _publish(source: str, day: str, tasks: Tasks, run_id: str) -> int:
    graded, simulated_labels, labels = _load_grades(source, day, tasks)
    grades = graded.grades.filter(pl.col("n") >= grading.PER_TASK)
    subset = f"{source}:{SIMULATED if (labels['tool'] == simulated.TOOL).any() else HUMAN}"
    means = measures.summarize(grades).with_columns(metric="field")
    # a measure of agreement is null where it is undefined, as when all grades are the same
    agreement = measures.measure_agreement(grades).filter(pl.col("n") > 0)
    study_rows: list[dict[str, Any]] = []
    for numbers, name in ((means, "system"), (agreement, "field")):
        for (value,), part in numbers.group_by(name, maintain_order=True):
            study_rows += build_rows(STUDY, day, subset, {name: value}, part)
    rows, order = build_frame(study_rows), ["subset", "setting", "metric"]
    current = _scan_rows(source, day).select(rows.columns).sort(order).collect()
    if not current.equals(rows.sort(order)):
        replace_rows("studies", warehouse.make_slice(study=STUDY, day=day), rows, _is_of_grades(source), run_id)
    dropped = projects.list_dropped(graded.dropped, simulated_labels, "task_id", "rater_id", "field")
    _record_grades(get_project(source).name, day, labels.height - graded.dropped.height, dropped, run_id)
    field_counts = grades.select("task_id", "field").unique().group_by("task_id").len()
    return field_counts.filter(pl.col("len") == len(FIELDS)).height


def _is_of_grades(source: str) -> pl.Expr:
    return pl.col("subset").is_in([f"{source}:{kind}" for kind in (HUMAN, SIMULATED)])


def _scan_rows(source: str, day: str) -> pl.LazyFrame:
    is_day = (pl.col("study") == STUDY) & (pl.col("day") == parse_day(day))
    return warehouse.scan("studies", is_day).filter(_is_of_grades(source))


def _load_grades(source: str, day: str, tasks: Tasks) -> tuple[Grades, pl.DataFrame, pl.DataFrame]:
    """Load the grades of the systems, simulated labels that people's replaced, and the day's labels that may count."""
    day_tasks = _load_released(source).filter(pl.col("day") == parse_day(day))
    task_ids = pl.concat([tasks.tasks, day_tasks]).select("task_id").unique()
    parts = projects.prefer_people(projects.read_labels(get_project(source).name))
    counting, simulated_labels = (labels.join(task_ids, on="task_id", how="semi") for labels in parts)
    return compression.collect_grades(counting, tasks.key), simulated_labels, counting


def _record_grades(name: str, day: str, kept_count: int, dropped: pl.DataFrame, run_id: str) -> None:
    """Record how many grades count and which were dropped, unless the tables say so already."""
    dropped = dropped.select("reason", "row_key", source=pl.lit(name)).sort("row_key", "reason")
    is_step = projects.is_step(name, STEP) & (pl.col("day") == parse_day(day))
    current = warehouse.scan("dropped", is_step).select(dropped.columns).collect().sort("row_key", "reason")
    kept_counts = warehouse.scan("runs", is_step).select("kept_count").collect()["kept_count"].to_list()
    if kept_counts != [kept_count] or not current.equals(dropped):
        runs.record_step(name, day, projects.format_origin(name), STEP, kept_count, dropped, {}, run_id)
    else:
        runs.report_dropped(STEP, dropped, name)


def load_means(source: str, day: str) -> pl.DataFrame:
    """Load a day's means from `studies`, syntax first: by (human or simulated), system, metric, mean, low, high, n."""
    rows = _load_study_rows(source, day, "system").rename({"value": "mean"})
    rows = rows.select("by", "system", "metric", "mean", "low", "high", "n")
    return rows.sort("system", pl.col("metric").cast(pl.Enum(FIELDS)))


def load_agreement(source: str, day: str) -> pl.DataFrame:
    """Load how far the raters agree: by, field, metric, value, low, high, n (compressions with two or more grades)."""
    rows = _load_study_rows(source, day, "field").select("by", "field", "metric", "value", "low", "high", "n")
    return rows.sort(pl.col("field").cast(pl.Enum(FIELDS)), pl.col("metric").cast(pl.Enum(measures.AGREEMENT)))


def _load_study_rows(source: str, day: str, name: str) -> pl.DataFrame:
    """Load the rows of `studies` whose setting has this name, with its value and whose grades they are of."""
    value = pl.col("setting").str.json_path_match(f"$.{name}").alias(name)
    rows = _scan_rows(source, day).rename({"row_count": "n"}).collect()
    rows = rows.with_columns(value, by=pl.col("subset").str.split(":").list.last())
    return rows.filter(pl.col(name).is_not_null())


def summarize_grades(source: str, day: str) -> pl.DataFrame:
    """Show one row for each system: raters, n, and the means of each field with intervals, beside those of table 13."""
    lines: dict[str, dict[str, Any]] = {}
    for mean in load_means(source, day).to_dicts():
        system, field = mean["system"], mean["metric"]
        line = lines.setdefault(system, {"system": system, "raters": mean["by"], "n": mean["n"]})
        line["n"] = min(line["n"], mean["n"])
        line[field] = "{mean:.2f} ({low:.2f}–{high:.2f})".format(**mean)
        line[f"{field}_paper"] = PAPER_HUMAN.get(system, {}).get(field)
    schema = {"system": pl.String(), "raters": pl.String(), "n": pl.Int64()}
    for field in FIELDS:
        schema |= {field: pl.String(), f"{field}_paper": pl.Float64()}
    return pl.DataFrame(list(lines.values()), schema=schema)
