"""What forms that ask for grades share: the guidelines, the ids of tasks, and which labels count."""

import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
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
    """Build the tasks of items from task_id, item_id, text and context."""
    tasks = pl.DataFrame(rows, schema=dict.fromkeys(("task_id", "item_id", "text", "context"), pl.String), orient="row")
    return tasks.with_columns(lang=pl.lit(lang), schema_version=pl.lit(hash_schema(form)))


def pick_latest(labels: pl.DataFrame, task_ids: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pick the label that was given last of each rater, task and field, and return the other labels with a reason too.

    Reasons are `unknown_task`, and those of `stages.drop_repeats`.
    """
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


ASSIGNED: dict[str, pl.DataType] = {"task_id": pl.String(), "rater_id": pl.String()}
SEED = 42
PER_TASK = 2
RATERS = 5  # raters of a comment, and raters there are, in the paper (AAC-08)
_Ints = npt.NDArray[np.int64]


def assign(
    task_ids: Iterable[str],
    raters: Sequence[str],
    per_task: int = PER_TASK,
    seed: int = SEED,
    assigned: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Give each task to `per_task` different raters; return task_id, rater_id, sorted, with those of `assigned`.

    The task counts of raters differ by at most one, those of tasks that two raters share by little more. A rater who
    joins later gets more until all have as many. The same tasks and raters give the same rows. BadInput: a rater is
    there twice, or there are too few.
    """
    if len(set(raters)) < len(raters):
        raise BadInput(f"raters: {max(raters, key=list(raters).count)!r} is repeated, expected once")
    if not 1 <= per_task <= len(raters):
        raise BadInput(f"per_task should be in 1-{len(raters)}, the number of raters, found {per_task}")
    names = np.array(sorted(raters))
    existing_rows = pl.DataFrame(schema=ASSIGNED) if assigned is None else assigned.select(list(ASSIGNED))
    new_tasks = sorted(set(task_ids) - set(existing_rows["task_id"]))
    rng = np.random.default_rng([seed, existing_rows["task_id"].n_unique()])
    rows = existing_rows.filter(pl.col("rater_id").is_in(names))
    places_by_task = rows.select("task_id", place=pl.Series(np.searchsorted(names, rows["rater_id"].to_numpy())))
    pairs = places_by_task.join(places_by_task, on="task_id").select("place", "place_right").to_numpy()
    meetings = np.zeros((len(names), len(names)), np.int64)
    np.add.at(meetings, tuple(pairs.T), 1)
    places = rng.permutation(_deal_groups(len(new_tasks), per_task, meetings, rng))
    columns = {"task_id": np.repeat(new_tasks, per_task).tolist(), "rater_id": names[places.ravel()].tolist()}
    return pl.concat([existing_rows, pl.DataFrame(columns, schema=ASSIGNED)]).sort("task_id", "rater_id")


def _deal_groups(count: int, per_task: int, meetings: _Ints, rng: np.random.Generator) -> _Ints:
    """Choose groups of raters one by one, with least work first, then fewest meetings, which are counted in place."""
    groups = np.array([*combinations(range(len(meetings)), per_task)])
    first, second = np.triu_indices(groups.shape[1], 1)
    indices = np.empty(count, np.int64)
    for position in range(count):
        load = np.diag(meetings)[groups].sum(axis=1)
        shared = meetings[groups[:, first], groups[:, second]]
        indices[position] = np.lexsort((rng.random(len(groups)), (shared**2).sum(axis=1), load))[0]
        group = groups[indices[position]]
        meetings[np.ix_(group, group)] += 1
    return groups[indices]
