"""Quality of comments by people as tasks: comments to raters, their grades to a table (commenting, section 3; AAC-08).

Two sets of comments are graded: `references`, real comments of test articles, whose grades weigh them in the metrics;
and `candidates`, what commenters made and a real comment beside, which the metrics are judged by.
"""

import logging
import math
import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing, Retry
from pipeline.io.rows import chunks
from pipeline.label import assignment, exchange, label_studio, quality, simulated, studio_client
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.commenting import corpus
from pipeline.tasks.commenting.corpus import COMMENT, THREAD
from pipeline.tasks.labelling import csd
from pipeline.tasks.labelling.csd import Studio, Tool
from pipeline.tasks.record import day_texts, runs

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

STEP = "grades"
LOW, HIGH = 1, 5  # grades
RATERS = tuple(f"simulated_{number}" for number in range(1, assignment.RATERS + 1))  # where they are made up

Kind = Literal["references", "candidates"]
KINDS: tuple[Kind, ...] = ("references", "candidates")


def known(kind: str) -> Kind:
    """The name of a set of comments, checked."""
    for one in KINDS:
        if kind == one:
            return one
    raise BadInput(f"no comments {kind!r}; there are {' and '.join(KINDS)}")


def project(kind: Kind) -> str:
    """The labelling project of a set."""
    return f"quality_{kind}"


def comments(kind: Kind) -> pl.DataFrame:
    """The comments of a set with their articles, in the order of their ids.

    Returns:
        source, thread_id, comment_id, item_id, title, content, text, lang.

    Raises:
        Missing: there are none.
    """
    if kind == "references":
        rows = warehouse.scan("reference_comments", pl.col("role") == "reference").select(COMMENT)
        rows = rows.join(corpus.comments(rows).select(*COMMENT, "text"), on=COMMENT, how="inner")
    else:
        rows = warehouse.scan("generated_comments").select(*THREAD, "text", comment_id="generated_id")
    about = day_texts.articles(pl.lit(value=True)).select(*THREAD, "title", "lang", content="text")
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
    began = runs.start()
    rows = comments(kind)
    asked = quality.tasks(rows.select("item_id", "title", "content", "text")).drop("text", "lang")
    told = asked.join(rows, on="item_id", how="inner", maintain_order="left")
    fresh = told.with_columns(project=pl.lit(project(kind)), day=pl.lit(parse_day(day)))
    fresh = fresh.filter(~pl.col("task_id").is_in(csd.withdrawn(project(kind)).implode()))

    def with_known(present: pl.LazyFrame) -> pl.DataFrame:
        there = present.collect()
        new = fresh.join(there, on="task_id", how="anti")
        new = new.with_columns(row_id=pl.Series([secrets.token_hex(8) for _ in range(new.height)], dtype=pl.String))
        return pl.concat([there, new.select(there.columns)])

    count = warehouse.replace("label_tasks", warehouse.slice_of(project=project(kind)), with_known, run_id)
    name = project(kind)
    runs.tell(name, day, csd.origin(name), "select", fresh.height, None, {"kind": kind}, run_id, began)
    return count


def tasks_of(kind: Kind) -> pl.DataFrame:
    """The tasks of a set that show a comment and its article as they are now, in the order of their ids, with item_id.

    Raises:
        Missing: none were given out.
    """
    now = quality.tasks(comments(kind).select("item_id", "title", "content", "text"))
    return _given(kind).join(now.select("task_id", "item_id"), on="task_id", how="inner", maintain_order="left")


def _given(kind: Kind) -> pl.DataFrame:
    """All tasks that were given out, also those that show what has changed since: answers to them may still come."""
    rows = warehouse.scan("label_tasks", pl.col("project") == project(kind)).sort("task_id").collect()
    if not rows.height:
        raise Missing(f"no {kind} were given to raters: `undertone commenting rate {kind}`")
    return rows


def folder_of(kind: Kind) -> Path:
    """Where the files of a set lie; answers are looked for in `labels` below it."""
    return settings.labelling() / project(kind)


def export(kind: Kind, folder: Path, raters: Sequence[str] = (), lang: str = "zh") -> int:
    """Write tasks.jsonl, the guidelines, and for each rater named a sheet of the tasks that are theirs; how many tasks.

    Two raters get each task (AAC-08); `assigned.csv` in the set's own folder keeps who got which.

    Raises:
        BadInput: a sheet is there already, which may hold grades.
    """
    tasks = tasks_of(kind)
    csd.named(raters)
    if there := [str(path) for rater in raters if (path := folder / f"{rater}.xlsx").exists()]:
        raise BadInput(f"{there[0]}: is there and may hold grades; put it aside, or give another folder")
    (folder / "labels").mkdir(parents=True, exist_ok=True)
    guide = quality.guidelines(lang)
    (folder / "guidelines.md").write_text(guide, encoding="utf-8")
    if raters:
        whose = _dealt(_assigned(kind), tasks["task_id"], raters)
        for rater in raters:
            mine = tasks.join(whose.filter(rater_id=rater), on="task_id", how="semi", maintain_order="left")
            exchange.write_wide(folder / f"{rater}.xlsx", mine, rater, lang=lang, guidelines=guide, form=quality.FORM)
    return exchange.write_tasks(folder / "tasks.jsonl", tasks, form=quality.FORM)


def _assigned(kind: Kind) -> Path:
    """Where it is kept who got which tasks."""
    return folder_of(kind) / "assigned.csv"


def _dealt(path: Path, task_ids: pl.Series, raters: Sequence[str]) -> pl.DataFrame:
    """Who gets which tasks; what the file tells of earlier ones stays, and tasks that came later are dealt besides."""
    if len(raters) < assignment.PER_TASK:
        raise BadInput(f"{assignment.PER_TASK} people grade each comment; name as many, found {len(raters)}")
    given = None
    if path.is_file():
        given = pl.read_csv(path, infer_schema=False)
        if given.columns != list(assignment.ASSIGNED):
            raise BadInput(
                f"{path}: expected columns {', '.join(assignment.ASSIGNED)}, found {', '.join(given.columns)}"
            )
    whose = assignment.assign(task_ids, raters, given=given)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    whose.write_csv(draft)
    draft.replace(path)
    return whose


def give(kind: Kind, day: str, tool: Tool | Literal["none"], at: Studio | None = None, run_id: str = "cli") -> int:
    """Give the comments of a set to raters through a tool; how many there are. What was given is not given twice.

    Through `none` nobody is asked.
    """
    if tool == "none":
        return 0
    select(kind, day, run_id)
    tasks = tasks_of(kind)
    if tool == "label_studio":
        with csd.connected(at) as client:
            rows = exchange.tasks_rows(tasks, form=quality.FORM)
            studio_client.push(client, _project(client, kind), label_studio.to_tasks(rows, "zh", quality.FORM))
    if tool == "files":
        export(kind, folder_of(kind))
    return tasks.height


def _project(client: "httpx.Client", kind: Kind) -> int:
    """Label Studio's project of a set."""
    form = label_studio.config_xml(lang="zh", form=quality.FORM)
    return studio_client.project(client, project(kind), form, raters=assignment.PER_TASK)


def look(kind: Kind, tool: Tool | Literal["none"], at: Studio | None = None, run_id: str = "cli") -> dict[str, int]:
    """Fetch the grades that a tool has; counts as `collect`, and through `none` nothing waits.

    A tool that cannot be reached just now has nothing new.
    """
    if tool == "none":
        return {"waiting": 0}
    try:
        return collect(kind, tool=tool, at=at, run_id=run_id)
    except Retry as why:
        log.warning("%s: %s", project(kind), why)
        return {"waiting": tasks_of(kind).height}


def collect(
    kind: Kind, paths: Sequence[Path] = (), tool: Tool = "files", at: Studio | None = None, run_id: str = "cli"
) -> dict[str, int]:
    """Add grades of files or of a tool to the table `labels`, and make `comment_grades` of all there are.

    Of two by one rater of one comment the later counts.

    Returns:
        Counts: tasks, graded (tasks with two grades), waiting.

    Raises:
        BadInput: naming file, row and field.
    """
    tasks = tasks_of(kind)
    csd.keep(project(kind), _fetched(kind, tasks, paths, tool, at), run_id)
    graded = publish(kind, run_id)
    return {"tasks": tasks.height, "graded": graded, "waiting": tasks.height - graded}


def _fetched(kind: Kind, tasks: pl.DataFrame, paths: Sequence[Path], tool: Tool, at: Studio | None) -> pl.DataFrame:
    if tool == "simulated":
        if csd.labels_of(project(kind)).filter(pl.col("tool") != simulated.TOOL).height:
            raise BadInput(f"people have graded these {kind}: simulated raters would add nothing")
        before = csd.labels_of(project(kind)).select(list(assignment.ASSIGNED)).unique()
        before = before.join(tasks, on="task_id", how="semi")
        return simulated.grade(tasks, RATERS, assignment.assign(tasks["task_id"], RATERS, given=before))
    if tool == "label_studio":
        with csd.connected(at) as client, tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "export.json"  # it has the raters' addresses, and is not kept
            studio_client.export(client, _project(client, kind), path)
            told = label_studio.read_export(path)
        return label_studio.from_export(told, _given(kind), form=quality.FORM).labels
    looked = folder_of(kind) / "labels"
    lying = sorted(p for p in looked.glob("*") if p.is_file() and p.name[0] not in ".~") if not paths else list(paths)
    none = pl.DataFrame(schema=exchange.COLUMNS)
    return pl.concat([none, *(_read_sheet(kind, path) for path in lying)])


def _read_sheet(kind: Kind, path: Path) -> pl.DataFrame:
    """Grades of a file; where sheets were dealt, by those alone who got the tasks."""
    found = exchange.read(path, _given(kind), form=quality.FORM)
    if not (dealt := _assigned(kind)).is_file():
        return found
    strange = found.join(pl.read_csv(dealt, infer_schema=False), on=list(assignment.ASSIGNED), how="anti")
    if strange.height:
        task_id, rater = strange.select("task_id", "rater_id").row(0)
        raise BadInput(f"{path}: task {task_id} was not given to rater {rater!r}, nor {strange.height - 1} others")
    return found


def publish(kind: Kind, run_id: str = "cli") -> int:
    """Make the grades of a set those of its labels; how many comments have enough. The others wait.

    Who graded a comment that has its grades stays one of its raters. Where people graded, simulated raters do not
    count.
    """
    tasks, name = tasks_of(kind), project(kind)
    said, made_up = _labels(name)
    there = warehouse.scan("comment_grades", pl.col("project") == name).collect()
    before = there.join(tasks.select("task_id", *COMMENT), on=COMMENT, how="inner")
    found = quality.grades(said, tasks, first=before.select("task_id", rater_id="raters").explode("rater_id"))
    tools = said.group_by("task_id", "rater_id").agg(pl.col("tool").first())
    by = found.grades.select("item_id", rater_id="raters").explode("rater_id").drop_nulls()
    tool = by.join(tasks.select("item_id", "task_id"), on="item_id").join(tools, on=["task_id", "rater_id"])
    tool = tool.group_by("item_id").agg(tool=pl.col("tool").unique().sort().str.join(","))
    enough = found.grades.filter(pl.col("n") >= assignment.PER_TASK).join(tool, on="item_id", how="inner")
    rows = enough.join(tasks.select("item_id", *COMMENT), on="item_id", how="inner")
    rows = rows.with_columns(pl.col("grades").cast(pl.List(pl.Float64)), project=pl.lit(name))
    rows = rows.select(there.columns).sort(COMMENT)
    gone = pl.concat([
        found.dropped.select("task_id", "rater_id", "reason"),
        made_up.select("task_id", "rater_id", reason=pl.lit("simulated")),
    ])  # fmt: skip
    if not rows.equals(there.sort(COMMENT)):
        gone = gone.select("reason", source=pl.lit(name), row_key=pl.concat_str("task_id", "rater_id", separator="/"))
        kept = int(found.grades["n"].sum())
        runs.tell(name, min(tasks["day"]).isoformat(), csd.origin(name), STEP, kept, gone, {}, run_id)
        warehouse.overwrite("comment_grades", warehouse.slice_of(project=name), rows, run_id)  # last: it is looked at
    else:
        runs.record(STEP, gone, name)
    return rows.height


def _labels(name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The labels of a project that count, and those of simulated raters, which do not where people graded."""
    said = csd.labels_of(name)
    is_made_up = pl.col("tool") == simulated.TOOL
    real = said.filter(~is_made_up)
    return (real, said.filter(is_made_up)) if real.height else (said, said.clear())


def graded() -> pl.LazyFrame:
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


def bring(path: Path, name: str, run_id: str = "cli") -> int:
    """Take over grades that somebody else collected, as published data sets have them; how many comments.

    Args:
        path: a table of thread_id, comment_id, grade, and where they differ source and rater_id; a row a grade.
        name: of the project they are put under; what was there by that name is replaced.
        run_id: of Airflow.

    Raises:
        BadInput: naming file, row and field.
    """
    if name in map(project, KINDS):
        raise BadInput(f"{name!r} is the project that raters' own grades are in; choose another name")
    rows = [_read(row, f"{path}, row {chunk.first + n}") for chunk in chunks(path, "utf-8-sig")
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


def _read(row: dict[str, Any], where: str) -> tuple[str | None, str, str, str, float]:
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


def agreement(kind: Kind) -> pl.DataFrame:
    """How far the raters of a set agree: weighted kappa by both weights, beside the paper's .59 (AAC-09).

    Returns:
        weights, value, low, high, n (comments with two grades).
    """
    from pipeline.metrics.labelling import agreement

    found = quality.grades(_labels(project(kind))[0], tasks_of(kind)).grades
    codes = quality.codes(found.filter(pl.col("n") >= assignment.PER_TASK))
    rows = []
    for name in ("linear", "quadratic"):
        told = agreement.interval(f"weighted_kappa_{name}", codes)
        rows.append((name, told.value, told.low, told.high, len(codes)))
    schema = {"weights": pl.String, **dict.fromkeys(("value", "low", "high"), pl.Float64), "n": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").fill_nan(None)


def summary(kind: Kind) -> quality.Summary:
    """What the grades of a set come to, as the paper tells it of its own (AAC-10)."""
    return quality.summary(quality.grades(_labels(project(kind))[0], tasks_of(kind)).grades)
