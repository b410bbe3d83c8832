"""Quality control as tasks: items to raters, their answers to flags on the items (ReCAM, section 3.6, appendix E)."""

import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.recam import quality_control
from pipeline.label import exchange, label_studio, questionnaire, simulated, studio_client
from pipeline.slices import parse_day
from pipeline.tasks.labelling import csd
from pipeline.tasks.labelling.csd import Studio, Tool
from pipeline.tasks.recam import readers
from pipeline.tasks.record import runs

STEP = "cloze_ratings"
_FLAGS = ("is_unanswerable", "is_ambiguous")


class Rated(NamedTuple):
    """What raters said of items."""

    items: pl.DataFrame  # of quality_control.noise
    raters: pl.DataFrame  # of quality_control.select
    dropped: pl.DataFrame  # reason, row_key: answers that do not count


def project(subtask: str) -> str:
    """The labelling project of a subtask."""
    return f"cloze_{subtask}"


def select(subtask: str, day: str, count: int | None = None, run_id: str = "cli") -> int:
    """Give items of a subtask to raters, all or so many by the order of their ids, which is random; the tasks in all.

    Items that were given before stay; one whose options have changed is another task.
    """
    began = runs.start()
    rows = readers.every(subtask)
    asked = questionnaire.tasks(rows.head(count) if count else rows)
    rows = rows.select("item_id", "source", "thread_id")
    told = asked.join(rows, on="item_id", how="inner").rename({"item_id": "comment_id"})
    fresh = told.with_columns(project=pl.lit(project(subtask)), day=pl.lit(parse_day(day)))

    def with_known(present: pl.LazyFrame) -> pl.DataFrame:
        known = present.collect()
        new = fresh.join(known, on="task_id", how="anti")
        new = new.with_columns(row_id=pl.Series([secrets.token_hex(8) for _ in range(new.height)], dtype=pl.String))
        return pl.concat([known, new.select(known.columns)])

    count = warehouse.replace("label_tasks", warehouse.slice_of(project=project(subtask)), with_known, run_id)
    name = project(subtask)
    runs.tell(name, day, csd.origin(name), "select", fresh.height, None, {"count": count}, run_id, began)
    return count


def tasks_of(subtask: str) -> pl.DataFrame:
    """The tasks of a subtask whose items still have the same options, as raters' tools take them, with item_id."""
    rows = warehouse.scan("label_tasks", pl.col("project") == project(subtask)).sort("task_id").collect()
    if not rows.height:
        raise Missing(f"no items of {subtask} were given to raters: `undertone cloze rate {subtask}`")
    now = questionnaire.tasks(readers.every(subtask))
    return rows.rename({"comment_id": "item_id"}).join(now.select("task_id"), on="task_id", how="semi")


def export(subtask: str, folder: Path, sheets: Sequence[str] = ()) -> int:
    """Write tasks.jsonl, the guidelines, and a sheet for each rater named; how many tasks."""
    tasks = tasks_of(subtask)
    csd.named(sheets)
    folder.mkdir(parents=True, exist_ok=True)
    text = questionnaire.guidelines()
    for rater in sheets:
        where = folder / f"{rater}.xlsx"
        exchange.write_wide(where, tasks, rater, lang="en", guidelines=text, form=questionnaire.FORM)
    (folder / "guidelines.md").write_text(text, encoding="utf-8")
    (folder / "hiring.md").write_text(questionnaire.guidelines("hiring"), encoding="utf-8")
    return exchange.write_tasks(folder / "tasks.jsonl", tasks, form=questionnaire.FORM)


def push(subtask: str, at: Studio | None) -> int:
    """Give the tasks to Label Studio, those that it has not; how many."""
    with csd.connected(at) as client:
        here = studio_client.project(
            client, project(subtask), label_studio.config_xml(lang="en", form=questionnaire.FORM)
        )
        given = exchange.tasks_rows(tasks_of(subtask), form=questionnaire.FORM)
        return studio_client.push(client, here, label_studio.to_tasks(given, "en", questionnaire.FORM))


def collect(
    subtask: str, paths: Sequence[Path] = (), tool: Tool = "files", at: Studio | None = None, run_id: str = "cli"
) -> int:
    """Add answers of files or of a tool to the table `labels`; how many labels there are.

    Of two by one rater about one thing the later counts.

    Raises:
        BadInput: naming file, row and field.
    """
    tasks = tasks_of(subtask)
    return csd.keep(project(subtask), _fetched(subtask, tasks, paths, tool, at), run_id)


def _fetched(subtask: str, tasks: pl.DataFrame, paths: Sequence[Path], tool: Tool, at: Studio | None) -> pl.DataFrame:
    if tool == "simulated":
        return simulated.answer(tasks, readers.every(subtask).select("item_id", "label"))
    if tool == "label_studio":
        with csd.connected(at) as client, tempfile.TemporaryDirectory() as scratch:
            form = label_studio.config_xml(lang="en", form=questionnaire.FORM)
            here = studio_client.project(client, project(subtask), form)
            path = Path(scratch) / "export.json"  # it has the raters' addresses, and is not kept
            studio_client.export(client, here, path)
            return label_studio.from_export(label_studio.read_export(path), tasks, form=questionnaire.FORM).labels
    if not paths:
        raise BadInput("expected files with answers, or a tool to fetch them from")
    return pl.concat([exchange.read(path, tasks, form=questionnaire.FORM) for path in paths])


def flag(subtask: str, run_id: str = "cli") -> Rated:
    """Put what the answers that count say of the items into `cloze_items`; answers that do not are in `dropped`.

    Items that too few answered have no flag, as have items that nobody was asked about.
    """
    rated = ratings(subtask)
    said = rated.items.select("item_id", *_FLAGS).lazy()

    def with_flags(present: pl.LazyFrame) -> pl.LazyFrame:
        columns = present.collect_schema().names()
        return present.drop(_FLAGS).join(said, on="item_id", how="left").select(columns)

    warehouse.replace("cloze_items", warehouse.slice_of(subtask=subtask), with_flags, run_id)
    day = (
        warehouse.scan("label_tasks", pl.col("project") == project(subtask))
        .select(pl.col("day").min())
        .collect()
        .item()
    )
    gone = rated.dropped.select(pl.lit(project(subtask)).alias("source"), "reason", "row_key")
    kept = int(rated.items["n"].sum())
    runs.tell(project(subtask), day.isoformat(), csd.origin(project(subtask)), STEP, kept, gone, {}, run_id)
    return rated


def ratings(subtask: str) -> Rated:
    """What the labels of a subtask's project come to."""
    tasks = tasks_of(subtask)
    items = readers.every(subtask).join(tasks.select("item_id"), on="item_id", how="semi", maintain_order="left")
    mine = csd.labels_of(project(subtask)).join(tasks.select("task_id"), on="task_id", how="semi")
    answers = questionnaire.answers(mine, tasks)
    chosen = quality_control.select(answers, items)
    noise = quality_control.noise(chosen.answers, answers, items)
    return Rated(noise, chosen.raters, chosen.dropped)
