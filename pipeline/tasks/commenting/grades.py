"""Quality of comments by people as tasks: comments to raters, their grades to a table (commenting, section 3; AAC-08).

Two sets of comments are graded: `references`, real comments of test articles, whose grades weigh them in the metrics;
and `candidates`, what commenters made and a real comment beside, which the metrics are judged by.
"""

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, Missing, Retry
from pipeline.io.rows import read_chunks
from pipeline.label import assignment, grading, quality, simulated
from pipeline.tables import empty
from pipeline.tasks.commenting import corpus
from pipeline.tasks.commenting.corpus import COMMENT, THREAD
from pipeline.tasks.labelling import projects
from pipeline.tasks.labelling.projects import Project, Studio, Tool
from pipeline.tasks.record import day_texts, runs

log = logging.getLogger(__name__)

STEP = "grades"
LOW, HIGH = 1, 5  # grades

Kind = Literal["references", "candidates"]
KINDS: tuple[Kind, ...] = ("references", "candidates")


def check_kind(kind: str) -> Kind:
    """The name of a set of comments, checked."""
    for one in KINDS:
        if kind == one:
            return one
    raise BadInput(f"no comments {kind!r}; there are {' and '.join(KINDS)}")


def get_project(kind: Kind) -> Project:
    """The labelling project of a set; answers in files are looked for in its folder."""
    return Project(f"quality_{kind}", quality.FORM, rater_count=assignment.PER_TASK)


def read_comments(kind: Kind) -> pl.DataFrame:
    """The comments of a set with their articles, in the order of their ids.

    Returns:
        source, thread_id, comment_id, item_id, title, content, text, lang.

    Raises:
        Missing: there are none.
    """
    if kind == "references":
        rows = warehouse.scan("reference_comments", pl.col("role") == "reference").select(COMMENT)
        rows = rows.join(corpus.scan_comments(rows).select(*COMMENT, "text"), on=COMMENT, how="inner")
    else:
        rows = warehouse.scan("generated_comments").select(*THREAD, "text", comment_id="generated_id")
    about = day_texts.scan_articles(pl.lit(value=True)).select(*THREAD, "title", "lang", content="text")
    found = rows.join(about, on=THREAD, how="inner").sort(COMMENT).collect()
    if not found.height:
        how = "undertone commenting build" if kind == "references" else "undertone commenting generate"
        raise Missing(f"there are no {kind} to grade; make some: `{how}`")
    item_id = pl.concat_str(COMMENT, separator="/").alias("item_id")
    return found.select(*COMMENT, item_id, "title", "content", "text", "lang")


def select(kind: Kind, day: str, run_id: str = "cli") -> int:
    """Give the comments of a set to its project; the tasks in all. Those that were given before stay.

    What was withdrawn on request does not come back.
    """
    started_at = runs.start()
    rows = read_comments(kind)
    tasks = quality.build_tasks(rows.select("item_id", "title", "content", "text")).drop("text", "lang")
    tasks = tasks.join(rows, on="item_id", how="inner", maintain_order="left")
    return projects.select(get_project(kind).name, day, tasks, {"kind": kind}, run_id, started_at)


def read_tasks(kind: Kind) -> pl.DataFrame:
    """The tasks of a set that show a comment and its article as they are now, in the order of their ids, with item_id.

    Raises:
        Missing: none were given out.
    """
    now = quality.build_tasks(read_comments(kind).select("item_id", "title", "content", "text"))
    return _read_all_tasks(kind).join(
        now.select("task_id", "item_id"), on="task_id", how="inner", maintain_order="left"
    )


def _read_all_tasks(kind: Kind) -> pl.DataFrame:
    """All tasks that were given out, also those that show what has changed since: answers to them may still come."""
    how = f"`undertone commenting rate {kind}`"
    return projects.read_tasks(get_project(kind).name, f"no {kind} were given to raters: {how}")


def export(kind: Kind, folder: Path, raters: Sequence[str] = (), lang: str = "zh") -> int:
    """Write tasks.jsonl, the guidelines, and for each rater named a sheet of the tasks that are theirs; how many tasks.

    Two raters get each task (AAC-08); `assigned.csv` in the set's own folder keeps who got which.

    Raises:
        BadInput: a sheet is there already, which may hold grades.
    """
    tasks = read_tasks(kind)
    projects.check_sheets(folder, raters, "comment")
    sheets = {}
    if raters:
        assigned = projects.update_assignment(
            get_project(kind), lambda before: assignment.assign(tasks["task_id"], raters, assigned=before)
        )
        for rater in raters:
            own = assigned.filter(rater_id=rater)
            sheets[rater] = tasks.join(own, on="task_id", how="semi", maintain_order="left")
    guidelines = {"guidelines.md": grading.read_guidelines("quality", lang)}
    (folder / "labels").mkdir(parents=True, exist_ok=True)
    return projects.export(folder, tasks, quality.FORM, guidelines, sheets, lang)


def give_tasks(
    kind: Kind, day: str, tool: Tool | Literal["none"], studio: Studio | None = None, run_id: str = "cli"
) -> int:
    """Give the comments of a set to raters through a tool; how many there are. What was given is not given twice.

    Through `none` nobody is asked.
    """
    if tool == "none":
        return 0
    select(kind, day, run_id)
    tasks = read_tasks(kind)
    if tool == "label_studio":
        projects.push(get_project(kind), tasks, studio)
    if tool == "files":
        export(kind, get_project(kind).folder)
    return tasks.height


def poll(kind: Kind, tool: Tool | Literal["none"], studio: Studio | None = None, run_id: str = "cli") -> dict[str, int]:
    """Fetch the grades that a tool has; counts as `collect`, and through `none` nothing waits.

    A tool that cannot be reached just now has nothing new.
    """
    if tool == "none":
        return {"waiting": 0}
    try:
        return collect(kind, tool=tool, studio=studio, run_id=run_id)
    except Retry as why:
        log.warning("%s: %s", get_project(kind).name, why)
        return {"waiting": read_tasks(kind).height}


def collect(
    kind: Kind, paths: Sequence[Path] = (), tool: Tool = "files", studio: Studio | None = None, run_id: str = "cli"
) -> dict[str, int]:
    """Add grades of files or of a tool to the table `labels`, and make `comment_grades` of all there are.

    Of two by one rater of one comment the later counts.

    Returns:
        Counts: tasks, graded (tasks with two grades), waiting.

    Raises:
        BadInput: naming file, row and field.
    """
    tasks = read_tasks(kind)
    fetched = projects.fetch(
        get_project(kind), _read_all_tasks(kind), tool, lambda: _simulate(kind, tasks), paths, studio
    )
    projects.add_labels(get_project(kind).name, fetched.labels, run_id)
    graded = publish(kind, run_id)
    return {"tasks": tasks.height, "graded": graded, "waiting": tasks.height - graded}


def _simulate(kind: Kind, tasks: pl.DataFrame) -> pl.DataFrame:
    """Grades of simulated raters, who keep the tasks that they had."""
    before = projects.read_simulated_assignment(get_project(kind).name, tasks, f"these {kind}")
    assigned = assignment.assign(tasks["task_id"], simulated.GRADERS, assigned=before)
    return simulated.grade(tasks, simulated.GRADERS, assigned)


def publish(kind: Kind, run_id: str = "cli") -> int:
    """Make the grades of a set those of its labels; how many comments have enough. The others wait.

    Who graded a comment that has its grades stays one of its raters. Where people graded, simulated raters do not
    count.
    """
    tasks, name = read_tasks(kind), get_project(kind).name
    labels, made_up = projects.prefer_people(projects.read_labels(name))
    before = warehouse.scan("comment_grades", pl.col("project") == name).collect()
    before = before.join(tasks.select("task_id", *COMMENT), on=COMMENT, how="inner")
    found = quality.collect_grades(labels, tasks, first=before.select("task_id", rater_id="raters").explode("rater_id"))
    tools = labels.group_by("task_id", "rater_id").agg(pl.col("tool").first())
    by = found.grades.select("item_id", rater_id="raters").explode("rater_id").drop_nulls()
    tool = by.join(tasks.select("item_id", "task_id"), on="item_id").join(tools, on=["task_id", "rater_id"])
    tool = tool.group_by("item_id").agg(tool=pl.col("tool").unique().sort().str.join(","))
    enough = found.grades.filter(pl.col("n") >= assignment.PER_TASK).join(tool, on="item_id", how="inner")
    rows = enough.join(tasks.select("item_id", *COMMENT), on="item_id", how="inner").sort(COMMENT)
    rows = rows.with_columns(pl.col("grades").cast(pl.List(pl.Float64)))
    row_key = pl.concat_str("task_id", "rater_id", separator="/")
    dropped = [found.dropped, made_up.with_columns(reason=pl.lit("simulated"))]
    dropped_rows = pl.concat([frame.select("reason", row_key=row_key) for frame in dropped])
    projects.publish("comment_grades", COMMENT, name, rows, STEP, int(found.grades["n"].sum()), dropped_rows, run_id)
    return rows.height


def _read_valid_labels(kind: Kind) -> pl.DataFrame:
    """The labels of a set that count: where people graded, theirs alone."""
    return projects.prefer_people(projects.read_labels(get_project(kind).name))[0]


def scan_grades() -> pl.LazyFrame:
    """Grades of all projects: the columns of `comment_grades`; of a comment that people graded no made-up ones."""
    made_up = pl.col("tool").str.contains(simulated.TOOL, literal=True)
    return warehouse.scan("comment_grades").filter(made_up == made_up.min().over(COMMENT))


def prune(run_id: str = "cli") -> None:
    """Take out grades of comments that are there no more: generated anew, or erased."""
    real = warehouse.scan("comments").select(COMMENT)
    made = warehouse.scan("generated_comments").select(*THREAD, comment_id="generated_id")
    there = pl.concat([real, made]).unique()
    rows = warehouse.scan("comment_grades")
    for name in rows.join(there, on=COMMENT, how="anti").select(pl.col("project").unique().sort()).collect()["project"]:

        def those_there(present: pl.LazyFrame) -> pl.LazyFrame:
            columns = present.collect_schema().names()
            return present.join(there, on=COMMENT, how="semi").select(columns)

        warehouse.replace("comment_grades", warehouse.slice_of(project=name), those_there, run_id)


def import_grades(path: Path, name: str, run_id: str = "cli") -> int:
    """Take over grades that somebody else collected, as published data sets have them; how many comments.

    Args:
        path: a table of thread_id, comment_id, grade, and where they differ source and rater_id; a row a grade.
        name: of the project they are put under; what was there by that name is replaced.
        run_id: of Airflow.

    Raises:
        BadInput: naming file, row and field.
    """
    if name in [get_project(kind).name for kind in KINDS]:
        raise BadInput(f"{name!r} is the project that raters' own grades are in; choose another name")
    rows = [_parse_row(row, f"{path}, row {chunk.first + n}") for chunk in read_chunks(path, "utf-8-sig")
            for n, row in enumerate(chunk.rows)]  # fmt: skip
    found = pl.DataFrame(rows, schema=["source", "thread_id", "comment_id", "rater_id", "grade"], orient="row")
    there = warehouse.scan("comments").select(COMMENT).unique().collect()
    if (twice := found.filter(pl.struct("source", "thread_id", "comment_id", "rater_id").is_duplicated())).height:
        told = "/".join(twice.select("thread_id", "comment_id").row(0))
        raise BadInput(
            f"{path}: rater {twice['rater_id'][0]!r} graded {told} twice; expected a row for each `rater_id`"
        )
    if found["source"].null_count():
        sources = there.join(found, on=["thread_id", "comment_id"], how="semi")["source"].unique().sort().to_list()
        if len(sources) > 1:
            raise BadInput(f"{path}: a column `source` is needed, as comments of these ids are of {', '.join(sources)}")
        found = found.with_columns(pl.col("source").fill_null(sources[0] if sources else ""))
    strange = found.join(there, on=COMMENT, how="anti")
    if strange.height:
        told = "/".join(strange.row(0)[1:3])
        raise BadInput(f"{path}: {strange.height} grades are of comments that are not there; the first is of {told}")
    by_comment = found.group_by(COMMENT).agg(
        grade_=pl.col("grade").mean(), grades="grade", raters="rater_id", project=pl.lit(name), tool=pl.lit("file")
    )
    graded = by_comment.with_columns(grade="grade_").select(empty("comment_grades").columns)
    return warehouse.overwrite("comment_grades", warehouse.slice_of(project=name), graded.sort(COMMENT), run_id)


def _parse_row(row: dict[str, Any], where: str) -> tuple[str | None, str, str, str, float]:
    for name in ("thread_id", "comment_id", "grade"):
        if name not in row:
            raise BadInput(f"{where}: no column {name!r}; there are {', '.join(row)}")
        if row.get(name) in (None, ""):
            raise BadInput(f"{where}, field {name!r}: expected a value, found none")
    try:
        grade = float(row["grade"])
    except (TypeError, ValueError):
        grade = math.nan
    if not LOW <= grade <= HIGH:
        raise BadInput(f"{where}, field 'grade': expected a number from {LOW} to {HIGH}, found {row['grade']!r:.40}")
    source, rater = row.get("source"), row.get("rater_id")
    return (
        str(source) if source else None,
        str(row["thread_id"]),
        str(row["comment_id"]),
        str(rater or "unnamed"),
        grade,
    )


def measure_agreement(kind: Kind) -> pl.DataFrame:
    """How far the raters of a set agree: weighted kappa by both weights, beside the paper's .59 (AAC-09).

    Returns:
        weights, value, low, high, n (comments with two grades).
    """
    from pipeline.metrics.labelling import agreement

    found = quality.collect_grades(_read_valid_labels(kind), read_tasks(kind)).grades
    codes = quality.encode_grades(found.filter(pl.col("n") >= assignment.PER_TASK))
    rows = []
    for name in ("linear", "quadratic"):
        told = agreement.estimate_interval(f"weighted_kappa_{name}", codes)
        rows.append((name, told.value, told.low, told.high, len(codes)))
    schema = {"weights": pl.String, **dict.fromkeys(("value", "low", "high"), pl.Float64), "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").fill_nan(None)


def summarize(kind: Kind) -> quality.Summary:
    """What the grades of a set come to, as the paper tells it of its own (AAC-10)."""
    return quality.summarise(quality.collect_grades(_read_valid_labels(kind), read_tasks(kind)).grades)
