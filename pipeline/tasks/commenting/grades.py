"""Grades of comments as tasks (commenting, section 3; AAC-08): `references` and `candidates` to raters, and back."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, Missing, check_name
from pipeline.io.rows import number_rows
from pipeline.label import grading, quality, simulated
from pipeline.metrics.labelling import agreement
from pipeline.tables import empty
from pipeline.tasks.commenting import corpus
from pipeline.tasks.commenting.corpus import COMMENT, COMMENT_ID, THREAD
from pipeline.tasks.labelling import projects
from pipeline.tasks.labelling.projects import Assignment, Project, Studio, Tool
from pipeline.tasks.record import runs

STEP = "grades"
LOW, HIGH = 1, 5  # grades
KINDS = ("references", "candidates")


def get_project(kind: str) -> Project:
    """Return the labelling project of a set; its folder holds the answers in files."""
    check_name("comments", kind, KINDS)
    return Project(f"quality_{kind}", quality.FORM, rater_count=grading.PER_TASK)


def read_comments(kind: str) -> pl.DataFrame:
    """Read the comments of a set, in order: also item_id, title, content, text, lang."""
    if kind == "references":
        rows = warehouse.scan("reference_comments", pl.col("role") == "reference").select(COMMENT)
        rows = rows.join(corpus.scan_comments(rows).select(*COMMENT, "text"), on=COMMENT, how="inner")
    else:
        rows = warehouse.scan("generated_comments").select(*THREAD, "text", comment_id="generated_id")
    rows_with_articles = rows.join(corpus.scan_articles(), on=THREAD, how="inner").sort(COMMENT).collect()
    if not rows_with_articles.height:
        command = "undertone commenting build" if kind == "references" else "undertone commenting generate"
        raise Missing(f"there are no {kind} to grade; make some: `{command}`")
    return rows_with_articles.select(*COMMENT, "title", "content", "text", "lang", item_id=COMMENT_ID)


def select(kind: str, day: str, run_id: str = "cli") -> int:
    """Select the comments of a set as tasks, except withdrawn ones; return the task count. Existing tasks stay."""
    timer, project = runs.start(), get_project(kind)
    rows = read_comments(kind)
    tasks = quality.build_tasks(rows.select("item_id", "title", "content", "text")).drop("text", "lang")
    tasks = tasks.join(rows, on="item_id", how="inner", maintain_order="left")
    return projects.select(project.name, day, tasks, {"kind": kind}, run_id, timer)


def read_tasks(kind: str) -> pl.DataFrame:
    """Read the tasks whose comment and article have not changed, in the order of their ids, with item_id."""
    current_tasks = quality.build_tasks(read_comments(kind).select("item_id", "title", "content", "text"))
    ids = current_tasks.select("task_id", "item_id")
    return _read_all_tasks(kind).join(ids, on="task_id", how="inner", maintain_order="left")


def _read_all_tasks(kind: str) -> pl.DataFrame:
    """Read all tasks, also those whose comment or article changed since: answers to them may still come."""
    missing = f"no {kind} were given to raters: `undertone commenting rate {kind}`"
    return projects.read_tasks(get_project(kind).name, missing)


def export(kind: str, folder: Path, raters: Sequence[str] = (), lang: str = "zh") -> int:
    """Write tasks.jsonl, the guidelines and a sheet for each named rater; two rate each task. Return the task count."""
    tasks = read_tasks(kind)
    projects.check_sheets(folder, raters, "comment")
    sheets = {}
    if raters:
        assigned = projects.update_assignment(
            get_project(kind), lambda before: grading.assign(tasks["task_id"], raters, assigned=before)
        )
        sheets = {
            rater: tasks.join(assigned.filter(rater_id=rater), on="task_id", how="semi", maintain_order="left")
            for rater in raters
        }
    guidelines = {"guidelines.md": grading.read_guidelines("quality", lang)}
    (folder / "labels").mkdir(parents=True, exist_ok=True)
    return projects.export(folder, tasks, quality.FORM, guidelines, sheets, lang)


def assign_tasks(kind: str, day: str, tool: Tool, studio: Studio | None = None, run_id: str = "cli") -> Assignment:
    """Give the comments of a set to raters through a tool, each once."""
    select(kind, day, run_id)
    return projects.assign(get_project(kind), read_tasks(kind), tool, studio, partial(export, kind))


def collect(
    kind: str, paths: Sequence[Path] = (), tool: Tool = "files", studio: Studio | None = None, run_id: str = "cli"
) -> dict[str, int]:
    """Add grades that a tool has, and update `comment_grades`; return counts: tasks, graded, waiting."""
    project, tasks = get_project(kind), read_tasks(kind)

    def simulate() -> pl.DataFrame:  # by raters who keep the tasks that they had
        before = projects.read_simulated_assignment(project.name, tasks, f"these {kind}")
        assigned = grading.assign(tasks["task_id"], simulated.GRADERS, assigned=before)
        return simulated.grade(tasks, simulated.GRADERS, assigned)

    fetched = projects.fetch(project, _read_all_tasks(kind), tool, simulate, paths, studio)
    projects.add_labels(project.name, fetched.labels, run_id)
    graded = publish(kind, run_id)
    return {"tasks": tasks.height, "graded": graded, "waiting": tasks.height - graded}


def collect_answers(kind: str, _day: str, tool: Tool, studio: Studio | None, run_id: str) -> dict[str, int]:
    """Collect what a tool has, for a DAG; return the counts of `collect`."""
    return collect(kind, (), tool, studio, run_id)


def publish(kind: str, run_id: str = "cli") -> int:
    """Update the grades of a set from its labels; return the count of comments with enough grades. The others wait.

    The raters of a comment with enough grades stay its raters. Where people graded, simulated raters do not count.
    """
    tasks, name = read_tasks(kind), get_project(kind).name
    labels, simulated_labels = projects.prefer_people(projects.read_labels(name))
    existing = warehouse.scan("comment_grades", pl.col("project") == name).collect()
    existing = existing.join(tasks.select("task_id", *COMMENT), on=COMMENT, how="inner")
    first = existing.select("task_id", rater_id="raters").explode("rater_id")
    collected = quality.collect_grades(labels, tasks, first=first)
    tools = labels.group_by("task_id", "rater_id").agg(pl.col("tool").first())
    item_raters = collected.grades.select("item_id", rater_id="raters").explode("rater_id").drop_nulls()
    item_tools = item_raters.join(tasks, on="item_id").join(tools, on=["task_id", "rater_id"])
    item_tools = item_tools.group_by("item_id").agg(tool=pl.col("tool").unique().sort().str.join(","))
    complete = collected.grades.filter(pl.col("n") >= grading.PER_TASK).join(item_tools, on="item_id", how="inner")
    rows = complete.join(tasks.select("item_id", *COMMENT), on="item_id", how="inner").sort(COMMENT)
    rows = rows.with_columns(pl.col("grades").cast(pl.List(pl.Float64)))
    dropped = projects.list_dropped(collected.dropped, simulated_labels, "task_id", "rater_id")
    grade_count = int(collected.grades["n"].sum())
    projects.publish("comment_grades", COMMENT, name, rows, STEP, grade_count, dropped, run_id)
    return rows.height


def _collect_valid_grades(kind: str) -> pl.DataFrame:
    labels, _ = projects.prefer_people(projects.read_labels(get_project(kind).name))
    return quality.collect_grades(labels, read_tasks(kind)).grades


def scan_grades() -> pl.LazyFrame:
    """Scan the grades of all projects, without simulated grades of comments that people graded."""
    is_simulated = pl.col("tool").str.contains(simulated.TOOL, literal=True)
    return warehouse.scan("comment_grades").filter(is_simulated == is_simulated.min().over(COMMENT))


def prune(run_id: str = "cli") -> None:
    """Remove the grades of comments that no longer exist: generated again, or erased."""
    comments = warehouse.scan("comments").select(COMMENT)
    generated = warehouse.scan("generated_comments").select(*THREAD, comment_id="generated_id")
    existing = pl.concat([comments, generated]).unique()
    orphans = warehouse.scan("comment_grades").join(existing, on=COMMENT, how="anti")

    def keep_existing(current: pl.LazyFrame) -> pl.LazyFrame:
        return current.join(existing, on=COMMENT, how="semi")

    for name in orphans.select(pl.col("project").unique().sort()).collect()["project"]:
        warehouse.replace("comment_grades", warehouse.make_slice(project=name), keep_existing, run_id)


def import_grades(path: Path, name: str, run_id: str = "cli") -> int:
    """Import grades collected elsewhere, in place of the named project's earlier ones; return the count of comments.

    The file has thread_id, comment_id, grade, and where they differ source and rater_id.
    """
    if name in [get_project(kind).name for kind in KINDS]:
        raise BadInput(f"{name!r} is the project that raters' own grades are in; choose another name")
    rows, ids = [], ("thread_id", "comment_id")
    for number, row in number_rows(path):
        grade = parse_number(row, "grade", f"{path}, row {number}", (LOW, HIGH), *ids)
        source, rater = ("" if row.get(field) is None else str(row[field]) for field in ("source", "rater_id"))
        rows.append((source or None, *(str(row[name]) for name in ids), rater or "unnamed", grade))
    grades = pl.DataFrame(rows, schema=[*COMMENT, "rater_id", "grade"], orient="row")
    comments = warehouse.scan("comments").select(COMMENT).unique().collect()
    if (repeated := grades.filter(pl.struct(*COMMENT, "rater_id").is_duplicated())).height:
        _, thread_id, comment_id, rater, _ = repeated.row(0)
        place = f"{thread_id}/{comment_id}"
        raise BadInput(f"{path}: rater {rater!r} graded {place} twice; expected a row for each `rater_id`")
    if grades["source"].null_count():
        sources = comments.join(grades, on=["thread_id", "comment_id"], how="semi")["source"].unique().sort().to_list()
        if len(sources) > 1:
            raise BadInput(f"{path}: a column `source` is needed, as comments of these ids are of {', '.join(sources)}")
        grades = grades.with_columns(pl.col("source").fill_null(sources[0] if sources else ""))
    if (unknown := grades.join(comments, on=COMMENT, how="anti")).height:
        key = "/".join(unknown.row(0)[1:3])
        raise BadInput(f"{path}: {unknown.height} grades are of comments that are not there; the first is of {key}")
    facts = {"project": pl.lit(name), "tool": pl.lit("file")}
    grouped = grades.group_by(COMMENT).agg(mean=pl.col("grade").mean(), grades="grade", raters="rater_id", **facts)
    rows_by_comment = grouped.rename({"mean": "grade"}).select(empty("comment_grades").columns).sort(COMMENT)
    return warehouse.overwrite("comment_grades", warehouse.make_slice(project=name), rows_by_comment, run_id)


def parse_number(row: Mapping[str, Any], name: str, place: str, limits: tuple[float, float], *required: str) -> float:
    """Parse a number in a row of a file; raise BadInput if it is outside the limits, or a field is missing."""
    for field in (*required, name):
        if field not in row:
            raise BadInput(f"{place}: no column {field!r}; there are {', '.join(row)}")
        if row[field] in (None, ""):
            raise BadInput(f"{place}, field {field!r}: expected a value, found none")
    low, high = limits
    try:
        value = math.nan if isinstance(row[name], bool) else float(row[name])
    except (TypeError, ValueError):
        value = math.nan
    if not low <= value <= high:
        expected = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of {low:g} or more"
        raise BadInput(f"{place}, field {name!r}: expected a number {expected}, found {row[name]!r:.40}")
    return value


def measure_agreement(kind: str) -> pl.DataFrame:
    """Measure weighted kappa by both weights (the paper: .59; AAC-09): weights, value, low, high, n comments."""
    codes = quality.encode_grades(_collect_valid_grades(kind).filter(pl.col("n") >= grading.PER_TASK))
    rows = []
    for name in ("linear", "quadratic"):
        interval = agreement.estimate_interval(f"weighted_kappa_{name}", codes)
        rows.append((name, interval.value, interval.low, interval.high, len(codes)))
    schema = {"weights": pl.String, **dict.fromkeys(("value", "low", "high"), pl.Float64), "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").fill_nan(None)


def summarize(kind: str) -> quality.Summary:
    """Summarize the grades of a set as the paper does (AAC-10)."""
    return quality.summarise(_collect_valid_grades(kind))
