"""Quality control as tasks: items to raters, their answers to flags on the items (ReCAM, section 3.6, appendix E)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import polars as pl

from pipeline import warehouse
from pipeline.errors import Missing
from pipeline.examples.recam import quality_control
from pipeline.label import grading, questionnaire, simulated
from pipeline.tasks.labelling import projects
from pipeline.tasks.labelling.projects import Assignment, Project, Studio, Tool
from pipeline.tasks.recam import readers
from pipeline.tasks.record import runs

STEP = "cloze_ratings"
_FLAGS = ("is_unanswerable", "is_ambiguous")


def get_project(subtask: str) -> Project:
    """Return the labelling project of a subtask."""
    return Project(f"cloze_{subtask}", questionnaire.FORM, lang="en")


def select(subtask: str, day: str, count: int | None = None, run_id: str = "cli") -> int:
    """Select items of a subtask for raters, all or the first `count` by id; return the count of all tasks."""
    timer = runs.start()
    items = readers.read_all_items(subtask)
    if not items.height:
        raise Missing(f"cloze_items holds nothing of {subtask} to rate; make some: `undertone cloze build`")
    tasks = questionnaire.build_tasks(items.head(count) if count else items)
    tasks = tasks.join(items.select("item_id", "source", "thread_id"), on="item_id", how="inner")
    tasks = tasks.rename({"item_id": "comment_id"})
    return projects.select(get_project(subtask).name, day, tasks, {"count": count}, run_id, timer)


def read_tasks(subtask: str) -> pl.DataFrame:
    """Read the tasks of a subtask whose items still have the same options, with item_id, for the raters' tools."""
    command = f"`undertone cloze rate {subtask}`"
    tasks = projects.read_tasks(get_project(subtask).name, f"no items of {subtask} were given to raters: {command}")
    current_tasks = questionnaire.build_tasks(readers.read_all_items(subtask))
    return tasks.rename({"comment_id": "item_id"}).join(current_tasks.select("task_id"), on="task_id", how="semi")


def export(subtask: str, folder: Path, sheets: Sequence[str] = ()) -> int:
    """Write tasks.jsonl, the guidelines, and a sheet for each named rater; return the task count."""
    tasks = read_tasks(subtask)
    files = {"guidelines.md": "cloze", "hiring.md": "cloze_hiring"}
    guidelines = {file: grading.read_guidelines(name, "en") for file, name in files.items()}
    return projects.export(folder, tasks, questionnaire.FORM, guidelines, dict.fromkeys(sheets, tasks), "en")


def assign_tasks(subtask: str, day: str, tool: Tool, studio: Studio | None = None, run_id: str = "cli") -> Assignment:
    """Give the items of a subtask to raters through a tool, each once."""
    select(subtask, day, run_id=run_id)
    return projects.assign(get_project(subtask), read_tasks(subtask), tool, studio, partial(export, subtask))


def collect(
    subtask: str, paths: Sequence[Path] = (), tool: Tool = "files", studio: Studio | None = None, run_id: str = "cli"
) -> int:
    """Add answers from files or from a tool to the table `labels`; return the label count; see `projects.fetch`."""
    tasks = read_tasks(subtask)

    def simulate() -> pl.DataFrame:
        return simulated.answer(tasks, readers.read_all_items(subtask).select("item_id", "label"))

    fetched = projects.fetch(get_project(subtask), tasks, tool, simulate, paths, studio)
    return projects.add_labels(get_project(subtask).name, fetched.labels, run_id)


def flag(subtask: str, run_id: str = "cli") -> tuple[pl.DataFrame, quality_control.Selection]:
    """Write the flags of valid answers to `cloze_items`; return `quality_control.measure_noise` and `select`.

    Where people answered, simulated raters do not count.
    """
    tasks, name = read_tasks(subtask), get_project(subtask).name
    items = readers.read_all_items(subtask)
    items = items.join(tasks.select("item_id"), on="item_id", how="semi", maintain_order="left")
    labels = projects.read_labels(name).join(tasks.select("task_id", "item_id"), on="task_id")
    labels, simulated_labels = projects.prefer_people(labels)
    answers = questionnaire.build_answers(labels.drop("item_id"), tasks)
    selection = quality_control.select(answers, items)
    row_key = pl.format("{}/{}", "item_id", "rater_id")
    simulated_answers = simulated_labels.select(reason=pl.lit(simulated.TOOL), row_key=row_key).unique()
    selection = selection._replace(dropped=pl.concat([selection.dropped, simulated_answers]))
    noise = quality_control.measure_noise(selection.answers, answers, items)
    flags = noise.select("item_id", *_FLAGS).lazy()

    def join_flags(current_items: pl.LazyFrame) -> pl.LazyFrame:
        columns = current_items.collect_schema().names()
        return current_items.drop(_FLAGS).join(flags, on="item_id", how="left").select(columns)

    warehouse.replace("cloze_items", warehouse.make_slice(subtask=subtask), join_flags, run_id)
    projects.record_step(name, STEP, int(noise["n"].sum()), selection.dropped, run_id)
    return noise, selection


def collect_answers(subtask: str, _day: str, tool: Tool, studio: Studio | None, run_id: str) -> int:
    """Collect what a tool has and flag the items, for a DAG; return the label count."""
    count = collect(subtask, (), tool, studio, run_id)
    flag(subtask, run_id)
    return count
