"""Grades of a compression's syntax and semantics as a labelling task (NDD, appendix F; NDD-36)."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.label import grading, schema
from pipeline.label.schema import Bilingual, Field, Form

FIELDS = ("syntax", "semantics")
GRADES = ("0", "1", "2", "3", "4", "5")
_NAMES = {
    "syntax": (
        ("词语堆积", "a heap of words"), ("只有短语", "phrases at best"), ("明显有病", "plainly broken"),
        ("一处磕绊", "one stumble"), ("小毛病", "a small flaw"), ("通顺", "faultless"),
    ),
    "semantics": (
        ("看不出", "nothing"), ("只有话题", "the topic"), ("丢了主要意思", "a part"),
        ("缺重要内容", "the main point"), ("缺细节", "nearly all"), ("完整", "all that matters"),
    ),
}  # fmt: skip
FORM = Form(
    fields={
        name: Field(name, GRADES, zh, en, _NAMES[name])
        for name, zh, en in (
            ("syntax", "压缩后的句子通顺吗？", "Is the short version a sound sentence?"),
            ("semantics", "原句的意思还在吗？", "How much of what the sentence says is still there?"),
        )
    },
    headers={"text": ("压缩后", "Short version"), "context": ("原句", "Sentence")},
)
"""Both questions, for `task_files`, `label_files` and `label_studio`."""
COUNT = 100  # sentences in the paper; it does not say how many people graded each
SEED = 42
EMPTY: Bilingual = ("（什么也没有留下）", "(nothing is left)")  # what raters see where a system kept no word
UNSPACED = ("zh", "ja")  # languages without blanks between words
GRADED: dict[str, pl.DataType] = {
    "item_id": pl.String(), "system": pl.String(), "task_id": pl.String(), "field": pl.String(), "grade": pl.Float64(),
    "grades": pl.List(pl.Int64()), "raters": pl.List(pl.String()), "n": pl.Int64(),
}  # fmt: skip


class Tasks(NamedTuple):
    """The tasks that raters get, and the key, which they must not see."""

    tasks: pl.DataFrame  # task_id, item_id, text (the compression), context (the sentence), lang, schema_version
    key: pl.DataFrame  # task_id, item_id, system: whose compression a task is of, sorted


def sample(compressions: pl.DataFrame, count: int = COUNT) -> pl.DataFrame:
    """Sample by a hash the rows of `count` sentences, or all if fewer, that every system has compressed."""
    is_shared = pl.col("system").n_unique().over("item_id") == compressions["system"].n_unique()
    shared_ids = compressions.filter(is_shared)["item_id"].unique()
    sampled_ids = sorted(shared_ids, key=lambda item_id: grading.make_task_id(SEED, item_id))[:count]
    return compressions.filter(pl.col("item_id").is_in(sampled_ids))


def build_tasks(compressions: pl.DataFrame) -> Tasks:
    """Build tasks for raters, in the order of their ids, which is random, and a separate key of the systems.

    A task's id is a hash of all that it shows and of the sentence's id: it does not reveal systems, and a grade of a
    changed text belongs to no task. `compressions` has item_id, system, lang, words and kept (a truth value a word).
    """
    rows = [_build_task(row) for row in compressions.iter_rows(named=True)]
    columns = ["task_id", "item_id", "text", "context", "lang"]
    task_systems = pl.DataFrame(rows, dict.fromkeys([*columns, "system"], pl.String), orient="row")
    if (differing := task_systems.filter(pl.struct("context", "lang").n_unique().over("item_id") > 1)).height:
        raise BadInput(f"item {differing['item_id'][0]}: expected the same words and language from each system")
    tasks = task_systems.select(columns).unique("task_id").sort("task_id")
    key = task_systems.select("task_id", "item_id", "system").sort("item_id", "system")
    return Tasks(tasks.with_columns(schema_version=pl.lit(schema.hash_schema(FORM))), key)


def _build_task(row: dict[str, Any]) -> tuple[str, str, str, str, str, str]:
    words, flags, lang = row["words"], row["kept"], row["lang"]
    separator = "" if lang in UNSPACED else " "
    sentence, compression = (separator.join(part) for part in (words, itertools.compress(words, flags)))
    text = compression.strip() or EMPTY[lang not in UNSPACED]
    task_id = grading.make_task_id(row["item_id"], sentence, text)
    return task_id, row["item_id"], text, sentence, lang, row["system"]


def assign(tasks: pl.DataFrame, raters: Sequence[str], assigned: pl.DataFrame | None = None) -> pl.DataFrame:
    """Assign all compressions of a sentence to the same two raters, who keep those of `assigned`."""
    item_of_task = tasks.select("task_id", "item_id")
    item_raters = None
    if assigned is not None:
        item_raters = assigned.join(item_of_task, on="task_id").select(task_id="item_id", rater_id="rater_id").unique()
        item_raters = item_raters.sort("task_id", "rater_id")
    item_rows = grading.assign(item_of_task["item_id"], raters, assigned=item_raters)
    rows = item_of_task.join(item_rows.rename({"task_id": "item_id"}), on="item_id")
    return rows.select("task_id", "rater_id").sort("task_id", "rater_id")


def list_rater_tasks(tasks: pl.DataFrame, rater_id: str, assigned: pl.DataFrame | None = None) -> pl.DataFrame:
    """List the tasks of one rater, by default all, in a random order by a hash, for `task_files.write_wide`."""
    if assigned is not None:
        tasks = tasks.join(assigned.filter(rater_id=rater_id), on="task_id", how="semi")
    order = [grading.make_task_id(SEED, rater_id, task_id) for task_id in tasks["task_id"]]
    return tasks.sort(pl.Series(order, dtype=pl.String))


def collect_grades(labels: pl.DataFrame, key: pl.DataFrame) -> grading.Grades:
    """Collect the grades of each system's compressions (`GRADED`), each rater's latest (`grading.pick_latest`)."""
    rows, dropped = grading.pick_latest(labels, key["task_id"])
    fields = pl.DataFrame({"field": FIELDS})
    grades = grading.join_grades(key.join(fields, how="cross"), rows, ["task_id", "field"]).select(list(GRADED))
    grades = grades.sort("item_id", "system", pl.col("field").cast(pl.Enum(FIELDS)))
    return grading.Grades(grades, dropped.sort("task_id", "rater_id", "field", "reason"))
