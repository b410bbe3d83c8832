"""Labelling projects of any form: tasks to raters through files, Label Studio or simulation, and their labels back."""

import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.io.atomic import write_text
from pipeline.label import grading, label_files, label_studio, selection, simulated, stages, studio_client, task_files
from pipeline.label.schema import Form
from pipeline.slices import parse_day
from pipeline.tables import SOURCE, empty
from pipeline.tasks.record import runs

if TYPE_CHECKING:
    import httpx

_ASSIGNED = "assigned.csv"
Tool = Literal["files", "label_studio", "simulated"]


class Studio(NamedTuple):
    """A Label Studio: its address and the token of its API."""

    address: str
    token: str

    def __repr__(self) -> str:
        return f"Studio(address={self.address!r}, token='***')"


@dataclass(frozen=True)
class Project:
    """A labelling project, or a step of one, as its tools need it."""

    name: str  # in `label_tasks` and `labels`
    form: Form
    lang: str = "zh"  # of Label Studio's form
    step: tuple[int, int] | None = None  # round, and stage: raters (1) or adjudicator (2); None: a single step
    rater_count: int | None = None  # people whom Label Studio gives a task to; as many as the stage needs by default

    @property
    def title(self) -> str:
        """Its name in Label Studio."""
        if not self.step:
            return self.name
        in_round, stage = self.step
        return f"{self.name} round {in_round} {'raters' if stage == 1 else 'adjudicator'}"

    @property
    def folder(self) -> Path:
        """The folder of its files; its subfolder `labels` holds the labels."""
        folder = settings.labelling() / check_name(self.name)
        return folder / "round{}_stage{}".format(*self.step) if self.step else folder


class Fetched(NamedTuple):
    """Labels and skipped answers of a tool."""

    labels: pl.DataFrame  # `label_files.COLUMNS`
    skipped: pl.DataFrame | None = None  # reason, row_key: answers that are no labels
    full_tasks: pl.DataFrame | None = None  # task_id, studio_id: tasks that it gives to no rater any more


class Assignment(TypedDict):
    """Tasks that people have, for the required action in Airflow's UI."""

    project: str
    place: str  # the folder of the files, or the address of the project in Label Studio
    tasks: int
    waiting: int  # tasks that too few people answered


def check_name(name: str) -> str:
    """Check the name of a project or a release, as it becomes part of a path."""
    if not re.fullmatch(SOURCE, name):
        raise BadInput(f"{name!r:.60} is no name; use small letters, digits and _, a letter first")
    return name


def format_origin(name: str) -> str:
    """Format the origin of a project's steps in `runs` and `dropped`."""
    return f"label:{name}"


def is_step(name: str, step: str) -> pl.Expr:
    """Whether a row of `runs` or `dropped` is of a step of a project."""
    return (pl.col("origin") == format_origin(name)) & (pl.col("step") == step)


def read_tasks(name: str, missing: str = "") -> pl.DataFrame:
    """Read all tasks of a project in the order of their ids; without any, raise Missing if there is a message."""
    tasks = warehouse.scan("label_tasks", pl.col("project") == name).sort("task_id").collect()
    if missing and not tasks.height:
        raise Missing(missing)
    return tasks


def is_withdrawn(name: str) -> pl.Expr:
    """Whether a task was withdrawn from a project on request, so that it does not come back."""
    withdrawn = warehouse.scan("dropped", is_step(name, "withdraw")).select("row_key").collect()
    return pl.col("task_id").is_in(withdrawn["row_key"].implode())


def add_tasks(name: str, tasks: pl.DataFrame, run_id: str = "cli") -> int:
    """Add tasks to a project, each new one with a random id; return its task count. Existing tasks do not change."""

    def append(lazy: pl.LazyFrame) -> pl.DataFrame:
        current = lazy.collect()
        new = tasks.join(current, on="task_id", how="anti")
        row_ids = pl.Series([secrets.token_hex(8) for _ in range(new.height)], dtype=pl.String)
        new = new.with_columns(project=pl.lit(name), row_id=row_ids)
        return pl.concat([current, new.select(current.columns)])

    return warehouse.replace("label_tasks", warehouse.make_slice(project=name), append, run_id)


def select(
    name: str, day: str, tasks: pl.DataFrame, config: Mapping[str, object], run_id: str, started_at: runs.Start
) -> int:
    """Add a day's tasks to a project, except withdrawn ones, and record the step; return the project's task count."""
    fresh = tasks.filter(~is_withdrawn(name)).with_columns(day=pl.lit(parse_day(day)))
    count = add_tasks(name, fresh, run_id)
    runs.record_step(name, day, format_origin(name), "select", fresh.height, None, config, run_id, started_at)
    return count


def export(
    folder: Path,
    tasks: pl.DataFrame,
    form: Form,
    guidelines: Mapping[str, str],
    sheets: Mapping[str, pl.DataFrame],
    lang: str = "zh",
    labels: pl.DataFrame | None = None,
) -> int:
    """Write tasks.jsonl, the guidelines, and a sheet for each rater; return the task count.

    `guidelines` has texts by the name of their file; that of `guidelines.md` is in the sheets, too. `sheets` has a
    rater's tasks by the rater's name; their language is zh or en.
    """
    check_raters(tuple(sheets))
    folder.mkdir(parents=True, exist_ok=True)
    for file_name, text in guidelines.items():
        (folder / file_name).write_text(text, encoding="utf-8")
    guide = guidelines.get("guidelines.md", "")
    for rater, rater_tasks in sheets.items():
        path = folder / f"{rater}.xlsx"
        task_files.write_wide(path, rater_tasks, rater, labels, lang=lang, guidelines=guide, form=form)
    return task_files.write_tasks(folder / "tasks.jsonl", tasks, labels, form)


def check_raters(raters: Sequence[str]) -> None:
    """Refuse a rater's name that cannot be the name of a file."""
    if wrong := [name for name in raters if not re.fullmatch(r"[\w-]{1,40}", name)]:
        raise BadInput(f"a rater's name should be letters, digits, _ and -, not {wrong[0]!r}: it names a file")


def check_sheets(folder: Path, raters: Sequence[str], graded: str) -> None:
    """Refuse sheets with an invalid rater name, too few raters, or a sheet that exists already."""
    check_raters(raters)
    if raters and len(raters) < grading.PER_TASK:
        raise BadInput(f"{grading.PER_TASK} people grade each {graded}; name as many, found {len(raters)}")
    if existing := [str(path) for rater in raters if (path := folder / f"{rater}.xlsx").exists()]:
        raise BadInput(f"{existing[0]}: is there and may hold grades; move it away, or give another folder")


def update_assignment(project: Project, assign: Callable[[pl.DataFrame | None], pl.DataFrame]) -> pl.DataFrame:
    """Update the assignment of tasks to raters (task_id, rater_id) in the project's folder with `assign`."""
    assigned = assign(_read_assigned(project))
    write_text(project.folder / _ASSIGNED, assigned.write_csv())
    return assigned


def _read_assigned(project: Project) -> pl.DataFrame | None:
    if not (path := project.folder / _ASSIGNED).is_file():
        return None
    assigned = pl.read_csv(path, infer_schema=False)
    if (columns := assigned.columns) != list(grading.ASSIGNED):
        raise BadInput(f"{path}: expected columns {', '.join(grading.ASSIGNED)}, found {', '.join(columns)}")
    return assigned


def _read_files(project: Project, tasks: pl.DataFrame, paths: Sequence[Path]) -> pl.DataFrame:
    inbox = (project.folder / "labels").glob("*")
    if paths:
        parts = label_files.read_all(paths, tasks, form=project.form)
    else:  # sheets that are not filled in yet may be there
        paths = sorted(path for path in inbox if path.is_file() and path.name[0] not in ".~")
        parts = [label_files.read(path, tasks, project.form) for path in paths]
    assigned = _read_assigned(project)
    for path, labels in zip(paths, parts, strict=True) if project.step is None else ():
        if (later := labels.filter((pl.col("round") != 1) | (pl.col("stage") != 1))).height:
            row = later.select("task_id", "rater_id", "round", "stage").row(0)
            raise BadInput("{}: task {}, rater {!r}: expected round 1 and stage 1, found {} and {}".format(path, *row))
        if (simulated_labels := labels.filter(tool=simulated.TOOL)).height:
            task_id = simulated_labels["task_id"][0]
            raise BadInput(f"{path}: task {task_id}: grades of a file are people's, not {simulated.TOOL}")
        key = list(grading.ASSIGNED)
        unassigned = labels.clear() if assigned is None else labels.join(assigned, on=key, how="anti")
        if (unassigned := unassigned.select(key).unique(maintain_order=True)).height:
            task_id, rater = unassigned.row(0)
            raise BadInput(
                f"{path}: task {task_id} was not given to rater {rater!r}, nor {unassigned.height - 1} others"
            )
    return pl.concat([label_files.COLUMNS.to_frame(), *parts])


def find_studio(address: str | None = None, token: str | None = None) -> Studio | None:
    """Find a Label Studio: the given one, else that of the environment, with its own token; None without both."""
    if not address:
        address, token = settings.studio_uri(), settings.studio_key()
    return Studio(address, token or "") if address else None


@contextmanager
def _connect(project: Project, studio: Studio | None) -> "Iterator[tuple[httpx.Client, int]]":
    if studio is None:
        names = "UNDERTONE_STUDIO_URL and UNDERTONE_STUDIO_KEY, or the Airflow connection undertone_label_studio"
        raise Missing(f"no Label Studio: set {names}")
    _, stage = step = project.step or (1, 1)
    is_partial = step != (1, 1)  # all steps but the first ask for what is disputed alone
    form = label_studio.build_config(project.lang, stage, is_partial=is_partial, form=project.form)
    with studio_client.connect(*studio) as client:
        yield client, studio_client.get_project(client, project.title, form, stage, project.rater_count)


def push(project: Project, tasks: pl.DataFrame, studio: Studio | None, labels: pl.DataFrame | None = None) -> int:
    """Push tasks to Label Studio, for an adjudicator with their labels; return the count of new tasks."""
    with _connect(project, studio) as (client, number):
        rows = task_files.build_rows(tasks, labels, project.form)
        return studio_client.push(client, number, label_studio.build_tasks(rows, project.lang, project.form))


def assign(
    project: Project, tasks: pl.DataFrame, tool: Tool, studio: Studio | None, export: Callable[[Path], object]
) -> Assignment:
    """Give tasks to people through a tool, each once; `export` writes the files into the project's folder."""
    place = str(project.folder)
    if tool == "files":
        export(project.folder)
        (project.folder / "labels").mkdir(exist_ok=True)
    if tool == "label_studio":
        push(project, tasks, studio)
        with _connect(project, studio) as (client, number):
            place = str(client.base_url.join(f"projects/{number}/data"))
    raters = read_labels(project.name).group_by("task_id").agg(pl.col("rater_id").n_unique())
    answered = raters.filter(pl.col("rater_id") >= (project.rater_count or grading.PER_TASK))
    waiting = tasks.join(answered, on="task_id", how="anti").height
    return Assignment(project=project.name, place=place, tasks=tasks.height, waiting=waiting)


def fetch(
    project: Project,
    tasks: pl.DataFrame,
    tool: Tool,
    simulate: Callable[[], pl.DataFrame],
    paths: Sequence[Path] = (),
    studio: Studio | None = None,
) -> Fetched:
    """Fetch the labels of `tasks` that a tool has, of files those in `labels` by default; Retry if out of reach."""
    if tool != "label_studio":
        return Fetched(simulate() if tool == "simulated" else _read_files(project, tasks, paths))
    with _connect(project, studio) as (client, number), tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "export.json"  # deleted, as it has the raters' addresses
        studio_client.export(client, number, path)
        export = label_studio.parse_export(label_studio.read_export(path), tasks, form=project.form)
    row_key = pl.concat_str("task_id", "annotation_id", "field", separator="/", ignore_nulls=True)
    return Fetched(export.labels, export.skipped.select("reason", row_key=row_key), export.full_tasks)


def read_labels(name: str) -> pl.DataFrame:
    """Read all labels of a project, without its name."""
    return warehouse.scan("labels", pl.col("project") == name).select(list(label_files.COLUMNS)).collect()


def find_replaced(current: pl.DataFrame, fresh: pl.DataFrame) -> pl.DataFrame:
    """Find the keys of labels with a new value, where a time is missing so that their order is unknown."""
    pairs = current.join(fresh, on=stages.KEY, how="inner", suffix="_new")
    is_untimed = pl.col("labelled_at").is_null() | pl.col("labelled_at_new").is_null()
    return pairs.filter(is_untimed & (pl.col("value") != pl.col("value_new"))).select(stages.KEY).unique()


def add_labels(name: str, labels: pl.DataFrame, run_id: str = "cli") -> int:
    """Add labels to a project of one stage; the later of two by a rater for a field counts. Return its label count."""

    def merge(lazy: pl.LazyFrame) -> pl.DataFrame:
        current = lazy.select(list(label_files.COLUMNS)).collect()
        fresh = labels.select(current.columns)
        current = current.join(find_replaced(current, fresh), on=stages.KEY, how="anti")
        latest, _ = stages.drop_repeats(pl.concat([current, fresh]).unique(maintain_order=True))
        return latest.with_columns(project=pl.lit(name)).select(empty("labels").columns)

    current = warehouse.scan("labels", pl.col("project") == name)
    if merge(current).sort(stages.KEY).equals(rows := current.collect().sort(stages.KEY)):
        return rows.height
    return warehouse.replace("labels", warehouse.make_slice(project=name), merge, run_id)


def prefer_people(labels: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the labels that count, and simulated labels, which do not count where people labelled."""
    is_simulated = pl.col("tool") == simulated.TOOL
    people = labels.filter(~is_simulated)
    return (people, labels.filter(is_simulated)) if people.height else (labels, labels.clear())


def list_dropped(dropped: pl.DataFrame, simulated_labels: pl.DataFrame, *key: str) -> pl.DataFrame:
    """List the labels that do not count, each by a key: reason, row_key."""
    parts = [dropped, simulated_labels.with_columns(reason=pl.lit(simulated.TOOL))]
    row_key = pl.concat_str(*key, separator="/")
    return pl.concat([labels.select("reason", row_key=row_key) for labels in parts])


def read_simulated_assignment(name: str, tasks: pl.DataFrame, graded: str) -> pl.DataFrame:
    """Read which simulated raters graded which tasks; raise BadInput where people graded."""
    labels = read_labels(name)
    if labels.filter(pl.col("tool") != simulated.TOOL).height:
        raise BadInput(f"people have graded {graded}: simulated raters would add nothing")
    return labels.select(list(grading.ASSIGNED)).unique().join(tasks, on="task_id", how="semi")


def record_step(name: str, step: str, label_count: int, dropped: pl.DataFrame, run_id: str) -> None:
    """Record a step of a project: how many labels count, and the dropped labels (reason, row_key)."""
    day = min(read_tasks(name)["day"]).isoformat()
    dropped = dropped.with_columns(source=pl.lit(name))
    runs.record_step(name, day, format_origin(name), step, label_count, dropped, {}, run_id)


def publish(
    table: str,
    key: Sequence[str],
    name: str,
    rows: pl.DataFrame,
    step: str,
    label_count: int,
    dropped: pl.DataFrame,
    run_id: str,
) -> None:
    """Replace the results of a project's labels (rows by `key`) if they changed, and record which labels count."""
    rows = rows.with_columns(project=pl.lit(name)).select(empty(table).columns)
    current = warehouse.scan(table, pl.col("project") == name).collect()
    if rows.sort(key).equals(current.sort(key)):
        runs.report_dropped(step, dropped, name)
    else:
        record_step(name, step, label_count, dropped, run_id)
        # last: its rows are compared above
        warehouse.overwrite(table, warehouse.make_slice(project=name), rows, run_id)


PROJECT, FIELD = "browse", "rank"


def add_judgement(comment: Mapping[str, Any], percentile: float, rater: str, run_id: str = "cli") -> int:
    """Add or replace a rater's judgement of a comment (source, day, thread_id, comment_id); return the label count."""
    check_raters([rater])
    is_judged = pl.all_horizontal(pl.col(name) == value for name, value in comment.items())
    tasks, _ = selection.build_tasks(warehouse.scan("comments", is_judged).collect(), PROJECT)
    tasks = tasks.filter(~is_withdrawn(PROJECT)).with_columns(schema_version=pl.lit(f"{PROJECT}/1"))
    if not tasks.height:
        raise Missing("this comment is not in the tables any more; start `undertone browse` again")
    add_tasks(PROJECT, tasks, run_id)
    label = {
        "task_id": tasks["task_id"][0], "round": 1, "stage": 1, "rater_id": rater, "field": FIELD,
        "value": f"{percentile:.1f}", "labelled_at": datetime.now(UTC), "tool": PROJECT,
    }  # fmt: skip
    return add_labels(PROJECT, pl.DataFrame([label], schema=label_files.COLUMNS), run_id)
