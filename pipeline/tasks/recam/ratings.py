"""Quality control as tasks: items to raters, their answers to flags on the items (ReCAM, section 3.6, appendix E)."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput
from pipeline.examples.recam import quality_control
from pipeline.label import questionnaire, simulated
from pipeline.tasks.labelling import projects
from pipeline.tasks.labelling.projects import Project, Studio, Tool
from pipeline.tasks.recam import readers
from pipeline.tasks.record import runs

STEP = "cloze_ratings"
_FLAGS = ("is_unanswerable", "is_ambiguous")


class Rated(NamedTuple):
    """What raters said of items."""

    items: pl.DataFrame  # of quality_control.noise
    raters: pl.DataFrame  # of quality_control.select
    dropped: pl.DataFrame  # reason, row_key: answers that do not count


def get_project(subtask: str) -> Project:
    """The labelling project of a subtask."""
    return Project(f"cloze_{subtask}", questionnaire.FORM, lang="en")


def select(subtask: str, day: str, count: int | None = None, run_id: str = "cli") -> int:
    """Give items of a subtask to raters, all or so many by the order of their ids, which is random; the tasks in all.

    Items that were given before stay; one whose options have changed is another task. What was withdrawn on request
    does not come back.
    """
    started_at = runs.start()
    items = readers.read_all_items(subtask)
    tasks = questionnaire.tasks(items.head(count) if count else items)
    tasks = tasks.join(items.select("item_id", "source", "thread_id"), on="item_id", how="inner")
    tasks = tasks.rename({"item_id": "comment_id"})
    return projects.select(get_project(subtask).name, day, tasks, {"count": count}, run_id, started_at)


def read_tasks(subtask: str) -> pl.DataFrame:
    """The tasks of a subtask whose items still have the same options, as raters' tools take them, with item_id."""
    how = f"`undertone cloze rate {subtask}`"
    given = projects.read_tasks(get_project(subtask).name, f"no items of {subtask} were given to raters: {how}")
    now = questionnaire.tasks(readers.read_all_items(subtask))
    return given.rename({"comment_id": "item_id"}).join(now.select("task_id"), on="task_id", how="semi")


def export(subtask: str, folder: Path, sheets: Sequence[str] = ()) -> int:
    """Write tasks.jsonl, the guidelines, and a sheet for each rater named; how many tasks."""
    tasks = read_tasks(subtask)
    names = {"raters": "guidelines.md", "hiring": "hiring.md"}
    guidelines = {name: questionnaire.guidelines(reader) for reader, name in names.items()}
    return projects.export(folder, tasks, questionnaire.FORM, guidelines, dict.fromkeys(sheets, tasks), "en")


def push(subtask: str, studio: Studio | None) -> int:
    """Give the tasks to Label Studio, those that it has not; how many."""
    return projects.push(get_project(subtask), read_tasks(subtask), studio)


def collect(
    subtask: str, paths: Sequence[Path] = (), tool: Tool = "files", studio: Studio | None = None, run_id: str = "cli"
) -> int:
    """Add answers of files or of a tool to the table `labels`; how many labels there are.

    Of two by one rater about one thing the later counts.

    Raises:
        BadInput: naming file, row and field.
    """
    tasks = read_tasks(subtask)
    if tool == "files" and not paths:
        raise BadInput("expected files with answers, or a tool to fetch them from")

    def simulate() -> pl.DataFrame:
        return simulated.answer(tasks, readers.read_all_items(subtask).select("item_id", "label"))

    fetched = projects.fetch(get_project(subtask), tasks, tool, simulate, paths, studio)
    return projects.add_labels(get_project(subtask).name, fetched.labels, run_id)


def flag(subtask: str, run_id: str = "cli") -> Rated:
    """Put what the answers that count say of the items into `cloze_items`; answers that do not are in `dropped`.

    Items that too few answered have no flag, as have items that nobody was asked about.
    """
    rated = judge_answers(subtask)
    said = rated.items.select("item_id", *_FLAGS).lazy()

    def with_flags(present: pl.LazyFrame) -> pl.LazyFrame:
        columns = present.collect_schema().names()
        return present.drop(_FLAGS).join(said, on="item_id", how="left").select(columns)

    warehouse.replace("cloze_items", warehouse.slice_of(subtask=subtask), with_flags, run_id)
    projects.record_step(get_project(subtask).name, STEP, int(rated.items["n"].sum()), rated.dropped, run_id)
    return rated


def judge_answers(subtask: str) -> Rated:
    """What the labels of a subtask's project come to."""
    tasks = read_tasks(subtask)
    items = readers.read_all_items(subtask).join(
        tasks.select("item_id"), on="item_id", how="semi", maintain_order="left"
    )
    mine = projects.read_labels(get_project(subtask).name).join(tasks.select("task_id"), on="task_id", how="semi")
    answers = questionnaire.answers(mine, tasks)
    chosen = quality_control.select(answers, items)
    noise = quality_control.noise(chosen.answers, answers, items)
    return Rated(noise, chosen.raters, chosen.dropped)
