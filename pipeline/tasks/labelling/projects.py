"""Labelling projects of any form: tasks to raters by files, by Label Studio or made up, and their labels back.

A family of tasks describes its project (`Project`), selects tasks, and makes something of the labels; how tasks and
labels travel is here. Who rates and where is never part of a task, and what came in once is not taken twice.
"""

import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.label import assignment, label_files, label_studio, simulated, stages, studio_client, task_files
from pipeline.label.schema import Form
from pipeline.slices import parse_day
from pipeline.tables import SOURCE, empty
from pipeline.tasks.record import runs

if TYPE_CHECKING:
    import httpx

KEY = ["task_id", "round", "stage", "rater_id", "field"]
"""What a label is known by within a project."""
_SKIPPED = {"reason": pl.String(), "row_key": pl.String()}
_TAKEN = {"task_id": pl.String(), "studio_id": pl.String()}
_ASSIGNED = "assigned.csv"
_RATER = re.compile(r"[\w-]{1,40}")

Tool = Literal["files", "label_studio", "simulated"]


class Studio(NamedTuple):
    """A Label Studio: its address and the token of its API."""

    address: str
    token: str

    def __repr__(self) -> str:
        return f"Studio(address={self.address!r}, token='***')"


@dataclass(frozen=True)
class Project:
    """What tools need to know of a labelling project, or of a step of one."""

    name: str  # in `label_tasks` and `labels`
    form: Form
    lang: str = "zh"  # of Label Studio's form
    step: tuple[int, int] | None = (
        None  # round, and stage: raters (1) or adjudicator (2); None: all is round 1, stage 1
    )
    rater_count: int | None = None  # people whom Label Studio gives a task to; as many as the stage needs by default

    @property
    def title(self) -> str:
        """What it is called in Label Studio."""
        who = {1: "raters", 2: "adjudicator"}
        return f"{self.name} round {self.step[0]} {who[self.step[1]]}" if self.step else self.name

    @property
    def folder(self) -> Path:
        """Where its files lie; labels are looked for in `labels` below it."""
        folder = settings.labelling() / check_name(self.name)
        return folder / "round{}_stage{}".format(*self.step) if self.step else folder


class Fetched(NamedTuple):
    """What a tool has."""

    labels: pl.DataFrame  # `label_files.COLUMNS`
    skipped: pl.DataFrame  # reason, row_key: what it has besides
    taken: pl.DataFrame  # task_id, studio_id: tasks that it gives to nobody any more


def check_name(name: str) -> str:
    """A project's or a release's name, if it is one: it becomes part of a path."""
    if not re.fullmatch(SOURCE, name):
        raise BadInput(f"{name!r:.60} is no name; use small letters, digits and _, a letter first")
    return name


def format_origin(name: str) -> str:
    """Where steps of a project say they come from, in `runs` and `dropped`."""
    return f"label:{name}"


# ------------------------------------------------------------------------------------------------------------- tasks


def read_tasks(name: str, missing: str = "") -> pl.DataFrame:
    """All tasks that were given to a project, in the order of their ids; without any Missing, if there is a message."""
    tasks = warehouse.scan("label_tasks", pl.col("project") == name).sort("task_id").collect()
    if missing and not tasks.height:
        raise Missing(missing)
    return tasks


def is_withdrawn(name: str) -> pl.Expr:
    """Whether a task was taken out of a project on request: it does not come back."""
    withdrawn = warehouse.scan("dropped", (pl.col("origin") == format_origin(name)) & (pl.col("step") == "withdraw"))
    return pl.col("task_id").is_in(withdrawn.select("row_key").collect()["row_key"].implode())


def add_tasks(name: str, tasks: pl.DataFrame, run_id: str = "cli") -> int:
    """Add tasks to a project, each under a random id, and return how many it has; those that it has stay as they are.

    Args:
        name: of the project.
        tasks: the columns of `label_tasks` but project and row_id; others are passed over.
        run_id: of Airflow.
    """

    def with_new(lazy: pl.LazyFrame) -> pl.DataFrame:
        current = lazy.collect()
        new = tasks.join(current, on="task_id", how="anti").with_columns(project=pl.lit(name))
        new = new.with_columns(row_id=pl.Series([secrets.token_hex(8) for _ in range(new.height)], dtype=pl.String))
        return pl.concat([current, new.select(current.columns)])

    return warehouse.replace("label_tasks", warehouse.slice_of(project=name), with_new, run_id)


def select(
    name: str, day: str, tasks: pl.DataFrame, config: Mapping[str, object], run_id: str, started_at: runs.Start
) -> int:
    """Add a day's tasks to a project, except those that were withdrawn, and record it; return the tasks in all."""
    fresh = tasks.filter(~is_withdrawn(name))
    count = add_tasks(name, fresh.with_columns(day=pl.lit(parse_day(day))), run_id)
    runs.record_step(name, day, format_origin(name), "select", fresh.height, None, config, run_id, started_at)
    return count


# ------------------------------------------------------------------------------------------------------------- files


def export(
    folder: Path,
    tasks: pl.DataFrame,
    form: Form,
    guidelines: Mapping[str, str],
    sheets: Mapping[str, pl.DataFrame],
    lang: str = "zh",
    labels: pl.DataFrame | None = None,
) -> int:
    """Write tasks.jsonl, the guidelines, and a sheet for each rater; return how many tasks there are.

    Args:
        folder: where to; it is made.
        tasks: see `task_files.build_rows`.
        form: what is asked.
        guidelines: texts by the name of their file; that of `guidelines.md` is in the sheets, too.
        sheets: a rater's tasks by the rater's name.
        lang: of the sheets, zh or en.
        labels: what an adjudicator decides on.
    """
    check_raters(tuple(sheets))
    folder.mkdir(parents=True, exist_ok=True)
    for file_name, text in guidelines.items():
        (folder / file_name).write_text(text, encoding="utf-8")
    guide = guidelines.get("guidelines.md", "")
    for rater, of_rater in sheets.items():
        path = folder / f"{rater}.xlsx"
        task_files.write_wide(path, of_rater, rater, labels, lang=lang, guidelines=guide, form=form)
    return task_files.write_tasks(folder / "tasks.jsonl", tasks, labels, form)


def check_raters(raters: Sequence[str]) -> None:
    """Refuse a rater's name that cannot be the name of a file."""
    if wrong := [name for name in raters if not _RATER.fullmatch(name)]:
        raise BadInput(f"a rater's name should be letters, digits, _ and -, not {wrong[0]!r}: it names a file")


def check_sheets(folder: Path, raters: Sequence[str], graded: str) -> None:
    """Refuse sheets that cannot be dealt: a name that is none, too few raters, or a sheet that is there already."""
    check_raters(raters)
    if raters and len(raters) < assignment.PER_TASK:
        raise BadInput(f"{assignment.PER_TASK} people grade each {graded}; name as many, found {len(raters)}")
    if existing := [str(path) for rater in raters if (path := folder / f"{rater}.xlsx").exists()]:
        raise BadInput(f"{existing[0]}: is there and may hold grades; put it aside, or give another folder")


def update_assignment(project: Project, assign: Callable[[pl.DataFrame | None], pl.DataFrame]) -> pl.DataFrame:
    """Who gets which tasks (task_id, rater_id), kept in the project's folder; `assign` goes on from what it keeps."""
    assigned, path = assign(_read_assigned(project)), project.folder / _ASSIGNED
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    assigned.write_csv(draft)
    draft.replace(path)
    return assigned


def _read_assigned(project: Project) -> pl.DataFrame | None:
    if not (path := project.folder / _ASSIGNED).is_file():
        return None
    assigned = pl.read_csv(path, infer_schema=False)
    if (columns := assigned.columns) != list(assignment.ASSIGNED):
        raise BadInput(f"{path}: expected columns {', '.join(assignment.ASSIGNED)}, found {', '.join(columns)}")
    return assigned


def _read_files(project: Project, tasks: pl.DataFrame, paths: Sequence[Path]) -> pl.DataFrame:
    """Labels of files, or of what lies in the project's folder."""
    inbox = (project.folder / "labels").glob("*")
    paths = paths or sorted(path for path in inbox if path.is_file() and path.name[0] not in ".~")
    parts = [label_files.read(path, tasks, form=project.form) for path in paths]
    if project.step is None:
        assigned = _read_assigned(project)
        for path, labels in zip(paths, parts, strict=True):
            _check_file(path, labels, assigned)
    return pl.concat([label_files.COLUMNS.to_frame(), *parts])


def _check_file(path: Path, labels: pl.DataFrame, assigned: pl.DataFrame | None) -> None:
    """Refuse grades of another round, made up ones, and where tasks were dealt those by who did not get the task."""
    if (later := labels.filter((pl.col("round") != 1) | (pl.col("stage") != 1))).height:
        row = later.select("task_id", "rater_id", "round", "stage").row(0)
        raise BadInput("{}: task {}, rater {!r}: expected round 1 and stage 1, found {} and {}".format(path, *row))
    if (made_up := labels.filter(pl.col("tool") == simulated.TOOL)).height:
        raise BadInput(f"{path}: task {made_up['task_id'][0]}: grades of a file are people's, not {simulated.TOOL}")
    if assigned is None:
        return
    strangers = labels.join(assigned, on=assigned.columns, how="anti").select(assigned.columns)
    if (strangers := strangers.unique(maintain_order=True)).height:
        task_id, rater = strangers.row(0)
        raise BadInput(f"{path}: task {task_id} was not given to rater {rater!r}, nor {strangers.height - 1} others")


# ------------------------------------------------------------------------------------------------------------- tools


def find_studio(address: str | None = None, token: str | None = None) -> Studio | None:
    """A Label Studio: as given, else as the environment says; None if neither says anything.

    The environment's token goes to the environment's address only.
    """
    if not address:
        address, token = settings.studio_uri(), settings.studio_key()
    return Studio(address, token or "") if address else None


@contextmanager
def _connect(project: Project, studio: Studio | None) -> "Iterator[tuple[httpx.Client, int]]":
    """A client of Label Studio, and the id of the project there."""
    if studio is None:
        raise Missing(
            "no Label Studio: set UNDERTONE_STUDIO_URL and UNDERTONE_STUDIO_KEY, or the Airflow connection "
            "undertone_label_studio"
        )
    in_round, stage = project.step or (1, 1)
    is_partial = (in_round, stage) != (1, 1)  # all steps but the first ask for what is disputed alone
    form = label_studio.build_config(project.lang, stage, is_partial=is_partial, form=project.form)
    with studio_client.connect(*studio) as client:
        yield client, studio_client.get_project(client, project.title, form, stage, project.rater_count)


def push(project: Project, tasks: pl.DataFrame, studio: Studio | None, labels: pl.DataFrame | None = None) -> int:
    """Give tasks to Label Studio, and to an adjudicator the labels with them; return how many it did not have yet."""
    with _connect(project, studio) as (client, number):
        rows = task_files.build_rows(tasks, labels, project.form)
        return studio_client.push(client, number, label_studio.to_tasks(rows, project.lang, project.form))


def fetch(
    project: Project,
    tasks: pl.DataFrame,
    tool: Tool,
    simulate: Callable[[], pl.DataFrame],
    paths: Sequence[Path] = (),
    studio: Studio | None = None,
) -> Fetched:
    """Fetch the labels that a tool has.

    Args:
        project: where tasks were given.
        tasks: what labels may be of: task_id, text, context.
        tool: files, Label Studio, or simulated raters.
        simulate: makes labels up.
        paths: files of labels; those in the project's folder by default.
        studio: Label Studio, for that tool.

    Raises:
        BadInput: naming file, row and field.
        Retry: the tool cannot be reached just now.
    """
    skipped, taken = pl.DataFrame(schema=_SKIPPED), pl.DataFrame(schema=_TAKEN)
    if tool == "simulated":
        return Fetched(simulate(), skipped, taken)
    if tool == "files":
        return Fetched(_read_files(project, tasks, paths), skipped, taken)
    with _connect(project, studio) as (client, number), tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "export.json"  # it has the raters' addresses, and is not kept
        studio_client.export(client, number, path)
        answers = label_studio.parse_export(label_studio.read_export(path), tasks, form=project.form)
    row_key = pl.concat_str("task_id", "annotation_id", "field", separator="/", ignore_nulls=True)
    skipped = answers.skipped.select("reason", row_key=row_key)
    return Fetched(answers.labels, skipped, answers.taken.select(taken.columns))


# ------------------------------------------------------------------------------------------------------------ labels


def read_labels(name: str) -> pl.DataFrame:
    """All labels of a project, without its name."""
    return warehouse.scan("labels", pl.col("project") == name).select(list(label_files.COLUMNS)).collect()


def find_replaced(current: pl.DataFrame, fresh: pl.DataFrame) -> pl.DataFrame:
    """Keys of labels that say something else now, where times do not tell that they are later."""
    both = current.join(fresh.select(*KEY, now="value", at="labelled_at"), on=KEY, how="inner")
    untimed = pl.col("labelled_at").is_null() | pl.col("at").is_null()
    return both.filter(untimed & (pl.col("now") != pl.col("value"))).select(KEY).unique()


def add_labels(name: str, labels: pl.DataFrame, run_id: str = "cli") -> int:
    """Add labels to those of a project that has one stage; return how many it has.

    Of two by one rater about one thing the later counts, and where times do not tell, the one that came now. What is
    there already writes nothing.
    """

    def with_new(lazy: pl.LazyFrame) -> pl.DataFrame:
        current = lazy.select(list(label_files.COLUMNS)).collect()
        fresh = labels.select(current.columns)
        current = current.join(find_replaced(current, fresh), on=KEY, how="anti")
        once, _ = stages.drop_repeats(pl.concat([current, fresh]).unique(maintain_order=True))
        return once.with_columns(project=pl.lit(name)).select(empty("labels").columns)

    current = warehouse.scan("labels", pl.col("project") == name)
    if with_new(current).sort(KEY).equals(rows := current.collect().sort(KEY)):
        return rows.height
    return warehouse.replace("labels", warehouse.slice_of(project=name), with_new, run_id)


def prefer_people(labels: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Labels that count, and those of simulated raters, which do not where people labelled."""
    is_made_up = pl.col("tool") == simulated.TOOL
    people = labels.filter(~is_made_up)
    return (people, labels.filter(is_made_up)) if people.height else (labels, labels.clear())


def read_simulated_assignment(name: str, tasks: pl.DataFrame, graded: str) -> pl.DataFrame:
    """Which simulated raters graded which tasks; BadInput where people graded, who make simulated raters pointless."""
    labels = read_labels(name)
    if labels.filter(pl.col("tool") != simulated.TOOL).height:
        raise BadInput(f"people have graded {graded}: simulated raters would add nothing")
    return labels.select(list(assignment.ASSIGNED)).unique().join(tasks, on="task_id", how="semi")


def record_step(name: str, step: str, kept: int, dropped: pl.DataFrame, run_id: str) -> None:
    """Record a step of a project: how many labels it kept, and which it dropped (reason, row_key)."""
    day = min(read_tasks(name)["day"]).isoformat()
    runs.record_step(name, day, format_origin(name), step, kept, dropped.with_columns(source=pl.lit(name)), {}, run_id)


def publish(
    table: str, key: Sequence[str], name: str, rows: pl.DataFrame, step: str, kept: int, dropped: pl.DataFrame,
    run_id: str,
) -> None:  # fmt: skip
    """Put what the labels of a project come to in place, unless it is there, and record which labels count.

    Args:
        table: where the rows go.
        key: columns that tell its rows apart.
        name: of the project, whose rows they are.
        rows: the table's columns but project; others are passed over.
        step: that is recorded.
        kept: labels that count.
        dropped: reason, row_key of those that do not.
        run_id: of Airflow.
    """
    rows = rows.with_columns(project=pl.lit(name)).select(empty(table).columns)
    current = warehouse.scan(table, pl.col("project") == name).collect()
    if rows.sort(key).equals(current.sort(key)):
        runs.report_dropped(step, dropped, name)
        return
    record_step(name, step, kept, dropped, run_id)
    warehouse.overwrite(table, warehouse.slice_of(project=name), rows, run_id)  # last: it is looked at
