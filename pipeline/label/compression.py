"""How whole a compression is, given its sentence: grades of syntax and of semantics as a labelling task (NDD, appendix
F; NDD-36).

Raters see a sentence and what is left of it, and grade both from 0 to 5. The paper has one list of criteria for both;
here each has its own, in our words. Nothing that raters see tells which system compressed: a task is of a sentence and
a compression, and systems that leave the same words share it. Which systems those are is kept apart, in a key.
"""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.label import assignment, grading, schema
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
        "syntax": Field(
            "syntax", GRADES, "压缩后的句子通顺吗？", "Is the short version a sound sentence?", _NAMES["syntax"]
        ),
        "semantics": Field(
            "semantics", GRADES, "原句的意思还在吗？", "How much of what the sentence says is still there?",
            _NAMES["semantics"],
        ),
    },
    notes={},
    spans={},
    headers={"text": ("压缩后", "Short version"), "context": ("原句", "Sentence")},
)  # fmt: skip
"""Both questions, for `task_files`, `label_files` and `label_studio`."""

COUNT = 100
"""Sentences in the paper; it does not say how many people graded each."""
SEED = 42
EMPTY: Bilingual = ("（什么也没有留下）", "(nothing is left)")
"""What raters see where a system kept no word."""
UNSPACED = ("zh", "ja")  # languages without blanks between words

GRADED: dict[str, pl.DataType] = {
    "item_id": pl.String(), "system": pl.String(), "task_id": pl.String(), "field": pl.String(), "grade": pl.Float64(),
    "grades": pl.List(pl.Int64()), "raters": pl.List(pl.String()), "n": pl.Int64(),
}  # fmt: skip


class Tasks(NamedTuple):
    """The tasks that raters get, and the key that they must not see."""

    tasks: pl.DataFrame  # task_id, item_id, text (the compression), context (the sentence), lang, schema_version
    key: pl.DataFrame  # task_id, item_id, system: whose compression a task is of, sorted


class Grades(NamedTuple):
    """The grades of systems, and the labels that do not count."""

    grades: pl.DataFrame  # `GRADED`
    dropped: pl.DataFrame  # task_id, rater_id, field, round, stage, reason


def sample(compressions: pl.DataFrame, count: int = COUNT, seed: int = SEED) -> pl.DataFrame:
    """Sample the rows of `count` sentences, or all if fewer, that every system has compressed.

    Sentences are sampled in the order of a hash of seed and id: the order of rows does not matter, a larger sample
    contains the smaller one, and new sentences do not change the order of the others.

    Args:
        compressions: item_id, system; other columns are kept.
        count: of sentences.
        seed: another one draws others.
    """
    systems = compressions["system"].n_unique()
    shared = compressions.group_by("item_id").agg(pl.col("system").n_unique()).filter(pl.col("system") == systems)
    sampled_ids = sorted(shared["item_id"], key=lambda item_id: grading.make_task_id(seed, item_id))[:count]
    return compressions.filter(pl.col("item_id").is_in(sampled_ids))


def build_tasks(compressions: pl.DataFrame) -> Tasks:
    """Build tasks for raters, and a separate key of the systems.

    A task's id is a hash of all that it shows and of the sentence's id: it does not reveal systems, and a grade of a
    changed text belongs to no task. Tasks are in the order of their ids, which is random.

    Args:
        compressions: item_id, system, lang, words (of the sentence), kept (which of them stay).

    Raises:
        BadInput: naming sentence and system, where there are no words, or not as many truth values; or a system
            compresses a sentence twice, or systems do not have the same words.
    """
    rows = [
        (_build_task(row), row["system"])
        for row in compressions.select("item_id", "system", "lang", "words", "kept").iter_rows(named=True)
    ]
    columns = ["task_id", "item_id", "text", "context", "lang"]
    task_systems = pl.DataFrame(
        [(*task, system) for task, system in rows], dict.fromkeys([*columns, "system"], pl.String), orient="row"
    )
    if (repeats := task_systems.filter(pl.struct("item_id", "system").is_duplicated())).height:
        raise BadInput(f"item {repeats['item_id'][0]}, system {repeats['system'][0]!r}: is repeated, expected once")
    if (differing := task_systems.filter(pl.struct("context", "lang").n_unique().over("item_id") > 1)).height:
        raise BadInput(f"item {differing['item_id'][0]}: expected the same words and language from each system")
    tasks = task_systems.select(columns).unique("task_id").sort("task_id")
    key = task_systems.select("task_id", "item_id", "system").sort("item_id", "system")
    return Tasks(tasks.with_columns(schema_version=pl.lit(schema.hash_schema(FORM))), key)


def _build_task(row: dict[str, object]) -> tuple[str, str, str, str, str]:
    words, flags, lang = row["words"], row["kept"], str(row["lang"])
    location = f"item {row['item_id']}, system {row['system']!r}"
    if not isinstance(words, list) or None in words or not "".join(words).strip():
        raise BadInput(f"{location}: field 'words' should hold the sentence's words, found {words!r:.60}")
    if (
        not isinstance(flags, list)
        or len(flags) != len(words)
        or not all(isinstance(is_kept, bool) for is_kept in flags)
    ):
        raise BadInput(
            f"{location}: field 'kept' should hold true or false for {len(words)} words, found {flags!r:.60}"
        )
    separator = "" if lang in UNSPACED else " "
    sentence = separator.join(words)
    compression = separator.join(word for word, stays in zip(words, flags, strict=True) if stays).strip()
    text = compression or EMPTY[lang not in UNSPACED]
    return grading.make_task_id(row["item_id"], sentence, text), str(row["item_id"]), text, sentence, lang


def assign(
    tasks: pl.DataFrame, raters: Sequence[str], per_item: int = assignment.PER_TASK, seed: int = SEED,
    assigned: pl.DataFrame | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Assign all compressions of a sentence to the same raters, so that no system gets milder ones.

    Args:
        tasks: task_id, item_id: rows of `Tasks.tasks`.
        raters: their ids.
        per_item: how many grade each sentence's compressions.
        seed: the same tasks, raters and seed give the same rows.
        assigned: task_id, rater_id as an earlier call returned it; sentences that are in it keep their raters.

    Returns:
        task_id, rater_id, sorted.

    Raises:
        BadInput: as of `assignment.assign`.
    """
    item_of_task = tasks.select("task_id", "item_id")
    item_raters = None
    if assigned is not None:
        item_raters = assigned.join(item_of_task, on="task_id").select(task_id="item_id", rater_id="rater_id").unique()
        item_raters = item_raters.sort("task_id", "rater_id")
    item_rows = assignment.assign(item_of_task["item_id"], raters, per_item, seed, item_raters).rename(
        {"task_id": "item_id"}
    )
    return item_rows.join(item_of_task, on="item_id").select("task_id", "rater_id").sort("task_id", "rater_id")


def list_rater_tasks(
    tasks: pl.DataFrame, rater_id: str, assigned: pl.DataFrame | None = None, seed: int = SEED
) -> pl.DataFrame:
    """List the tasks of one rater in a random order by a hash, for `task_files.write_wide` with `form=FORM`.

    Args:
        tasks: rows of `Tasks.tasks`.
        rater_id: the rater.
        assigned: task_id, rater_id as of `assign`; without it each rater gets all tasks.
        seed: of the order.
    """
    if assigned is not None:
        tasks = tasks.join(assigned.filter(rater_id=rater_id), on="task_id", how="semi")
    order = [grading.make_task_id(seed, rater_id, task_id) for task_id in tasks["task_id"]]
    return tasks.with_columns(order=pl.Series(order, dtype=pl.String)).sort("order").drop("order")


def collect_grades(labels: pl.DataFrame, key: pl.DataFrame) -> Grades:
    """Collect the grades of each system's compressions, each rater's latest answer.

    Labels that do not count are dropped with a reason (`grading.pick_latest`).

    Args:
        labels: see `grading.pick_latest`.
        key: task_id, item_id, system: of `build_tasks`.

    Returns:
        `GRADED`, a row a compression and field, in order of sentence, system and field: the mean grade, null without
        any, the grades and raters in order of rater, and how many there are. A compression that systems share has a row
        for each of them.

    Raises:
        BadInput: see `grading.pick_latest`.
    """
    rows, dropped = grading.pick_latest(labels, key["task_id"], FORM)
    task_grades = (
        rows.sort("rater_id").group_by("task_id", "field", maintain_order=True)
        .agg(grades=pl.col("value").cast(pl.Int64), raters="rater_id")
    )  # fmt: skip
    compressions = key.join(pl.DataFrame({"field": FIELDS}), how="cross").join(
        task_grades, on=["task_id", "field"], how="left"
    )
    compressions = compressions.with_columns(pl.col("grades", "raters").fill_null([]))
    grades = compressions.with_columns(grade=pl.col("grades").list.mean(), n=pl.col("grades").list.len().cast(pl.Int64))
    dropped = dropped.sort("task_id", "rater_id", "field", "reason")
    return Grades(grades.select(list(GRADED)).sort("item_id", "system", pl.col("field").cast(pl.Enum(FIELDS))), dropped)
