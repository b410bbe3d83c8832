"""What forms that ask for grades share: the guidelines, the ids of tasks, and which labels count."""

import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.io.hashes import hash_text
from pipeline.label.schema import Form, hash_schema
from pipeline.label.stages import drop_repeats


class Grades(NamedTuple):
    """Grades, and the labels that do not count."""

    grades: pl.DataFrame  # `GRADED` of the form
    dropped: pl.DataFrame  # task_id, rater_id, field, round, stage, reason


def read_guidelines(name: str, lang: str) -> str:
    """Read the guidelines of a form in Markdown, in Chinese (zh) or English (en); BadInput for another language."""
    if lang not in ("zh", "en"):
        raise BadInput(f"guidelines are in zh or en, not {lang!r}")
    return files("pipeline.label").joinpath("guidelines", f"{name}_{lang}.md").read_text(encoding="utf-8")


def make_task_id(*contents: object) -> str:
    """Hash all that a task shows and its item, so that no task has the grade of a text that has changed."""
    return hash_text(json.dumps(contents))


def build_tasks(rows: Iterable[tuple[str, str, str, str]], lang: str, form: Form) -> pl.DataFrame:
    """Build the tasks of items from task_id, item_id, text and context; BadInput if an item is repeated."""
    columns = ("task_id", "item_id", "text", "context")
    tasks = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
    repeated = tasks.filter(pl.col("item_id").is_duplicated())["item_id"]
    if len(repeated):
        raise BadInput(f"items: item {repeated[0]} is repeated, expected once")
    return tasks.with_columns(lang=pl.lit(lang), schema_version=pl.lit(hash_schema(form)))


def pick_latest(labels: pl.DataFrame, task_ids: pl.Series, form: Form) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pick the label that was given last of each rater, task and field, and return the other labels with a reason too.

    Reasons are `unknown_task`; `duplicate` and `superseded`, as `stages.drop_repeats` has them. BadInput: a field or
    value that the form does not have, or a second round or stage; a rater who said two things without times that show
    which came later.
    """
    values = next(iter(form.fields.values())).values
    is_good = pl.col("field").is_in(list(form.fields)) & pl.col("value").is_in(values)
    is_good &= (pl.col("round") == 1) & (pl.col("stage") == 1)
    faulty = labels.filter(~is_good.fill_null(value=False)).sort("task_id", "rater_id", "field")
    if faulty.height:  # imports check each label where file and row are known; here labels of another form are kept out
        row = faulty.row(0, named=True)
        expected = f"{' or '.join(form.fields)} of {', '.join(values)} in round 1 and stage 1"
        actual = f"{row['field']} {str(row['value'])[:40]!r} in {row['round']} and {row['stage']}"
        raise BadInput(f"task {row['task_id']}, rater {row['rater_id']}: expected {expected}, found {actual}")
    is_registered = pl.col("task_id").is_in(task_ids.implode())
    rows, repeated = drop_repeats(labels.filter(is_registered))
    unknown = labels.filter(~is_registered).with_columns(reason=pl.lit("unknown_task")).select(repeated.columns)
    return rows, pl.concat([repeated, unknown])


def join_grades(tasks: pl.DataFrame, labels: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Join tasks with their grades: grade (the mean), grades and raters in order of rater, n; `key` is of a task."""
    values = labels.sort("rater_id").group_by(key, maintain_order=True)
    task_grades = values.agg(grades=pl.col("value").cast(pl.Int64), raters="rater_id")
    rows = tasks.join(task_grades, on=key, how="left").with_columns(pl.col("grades", "raters").fill_null([]))
    grades = pl.col("grades").list
    return rows.with_columns(grade=grades.mean(), n=grades.len().cast(pl.Int64))
