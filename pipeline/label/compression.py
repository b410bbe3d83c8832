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
from pipeline.label.schema import Field, Form, Said

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
"""Sentences in the paper; it does not tell how many people graded each."""
SEED = 42
EMPTY: Said = ("（什么也没有留下）", "(nothing is left)")
"""What raters see where a system kept no word."""
UNSPACED = ("zh", "ja")  # languages without blanks between words

GRADED: dict[str, pl.DataType] = {
    "item_id": pl.String(), "system": pl.String(), "task_id": pl.String(), "field": pl.String(), "grade": pl.Float64(),
    "grades": pl.List(pl.Int64()), "raters": pl.List(pl.String()), "n": pl.Int64(),
}  # fmt: skip


class Tasks(NamedTuple):
    """What raters get, and what they must not see."""

    tasks: pl.DataFrame  # task_id, item_id, text (the compression), context (the sentence), lang, schema_version
    key: pl.DataFrame  # task_id, item_id, system: whose compression a task is of, sorted


class Graded(NamedTuple):
    """Grades of systems, and the labels that do not count."""

    grades: pl.DataFrame  # `GRADED`
    dropped: pl.DataFrame  # task_id, rater_id, field, round, stage, reason


def sample(compressions: pl.DataFrame, count: int = COUNT, seed: int = SEED) -> pl.DataFrame:
    """The rows of so many sentences that every system has compressed, all of them if they are fewer.

    Sentences are taken in the order of a hash of seed and id: the order of rows does not matter, a larger sample holds
    the smaller one, and sentences that come in besides leave the order of the others as it is.

    Args:
        compressions: item_id, system; other columns are kept.
        count: of sentences.
        seed: another one draws others.
    """
    systems = compressions["system"].n_unique()
    shared = compressions.group_by("item_id").agg(pl.col("system").n_unique()).filter(pl.col("system") == systems)
    drawn = sorted(shared["item_id"], key=lambda item_id: grading.task_id(seed, item_id))[:count]
    return compressions.filter(pl.col("item_id").is_in(drawn))


def tasks(compressions: pl.DataFrame) -> Tasks:
    """Compressions as tasks for raters, and apart from them whose they are.

    A task's id is a hash of all that it shows and of the sentence's id: it tells nothing of systems, and a grade of
    what has changed is of no task there is. Tasks stand in the order of their ids, which is random.

    Args:
        compressions: item_id, system, lang, words (of the sentence), kept (which of them stay).

    Raises:
        BadInput: naming sentence and system, where there are no words, or not as many truth values; or a system
            compresses a sentence twice, or systems do not have the same words.
    """
    rows = [
        (_task(row), row["system"])
        for row in compressions.select("item_id", "system", "lang", "words", "kept").iter_rows(named=True)
    ]
    columns = ["task_id", "item_id", "text", "context", "lang"]
    found = pl.DataFrame(
        [(*task, system) for task, system in rows], dict.fromkeys([*columns, "system"], pl.String), orient="row"
    )
    if (twice := found.filter(pl.struct("item_id", "system").is_duplicated())).height:
        raise BadInput(f"item {twice['item_id'][0]}, system {twice['system'][0]!r}: is there twice, expected once")
    if (apart := found.filter(pl.struct("context", "lang").n_unique().over("item_id") > 1)).height:
        raise BadInput(f"item {apart['item_id'][0]}: expected the same words and language from each system")
    once = found.select(columns).unique("task_id").sort("task_id")
    key = found.select("task_id", "item_id", "system").sort("item_id", "system")
    return Tasks(once.with_columns(schema_version=pl.lit(schema.version(FORM))), key)


def _task(row: dict[str, object]) -> tuple[str, str, str, str, str]:
    words, kept, lang = row["words"], row["kept"], str(row["lang"])
    where = f"item {row['item_id']}, system {row['system']!r}"
    if not isinstance(words, list) or None in words or not "".join(words).strip():
        raise BadInput(f"{where}: field 'words' should hold the sentence's words, found {words!r:.60}")
    if not isinstance(kept, list) or len(kept) != len(words) or not all(isinstance(each, bool) for each in kept):
        raise BadInput(f"{where}: field 'kept' should hold true or false for {len(words)} words, found {kept!r:.60}")
    between = "" if lang in UNSPACED else " "
    sentence = between.join(words)
    left = between.join(word for word, stays in zip(words, kept, strict=True) if stays).strip()
    shown = left or EMPTY[lang not in UNSPACED]
    return grading.task_id(row["item_id"], sentence, shown), str(row["item_id"]), shown, sentence, lang


def assign(
    tasks: pl.DataFrame, raters: Sequence[str], per_item: int = assignment.PER_TASK, seed: int = SEED,
    given: pl.DataFrame | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Who grades what: all compressions of a sentence go to the same raters, so that no system meets a milder one.

    Args:
        tasks: task_id, item_id: rows of `Tasks.tasks`.
        raters: their ids.
        per_item: how many grade each sentence's compressions.
        seed: the same tasks, raters and seed give the same rows.
        given: task_id, rater_id as an earlier call returned it; sentences that are in it keep their raters.

    Returns:
        task_id, rater_id, sorted.

    Raises:
        BadInput: as of `assignment.assign`.
    """
    of_item = tasks.select("task_id", "item_id")
    before = None
    if given is not None:
        before = given.join(of_item, on="task_id").select(task_id="item_id", rater_id="rater_id").unique()
        before = before.sort("task_id", "rater_id")
    dealt = assignment.assign(of_item["item_id"], raters, per_item, seed, before).rename({"task_id": "item_id"})
    return dealt.join(of_item, on="item_id").select("task_id", "rater_id").sort("task_id", "rater_id")


def for_rater(
    tasks: pl.DataFrame, rater_id: str, assigned: pl.DataFrame | None = None, seed: int = SEED
) -> pl.DataFrame:
    """The tasks of one rater in an order of their own, by a hash: what `task_files.write_wide` takes, with `form=FORM`.

    Args:
        tasks: rows of `Tasks.tasks`.
        rater_id: who they are for.
        assigned: task_id, rater_id as of `assign`; without it everybody gets all.
        seed: of the order.
    """
    if assigned is not None:
        tasks = tasks.join(assigned.filter(rater_id=rater_id), on="task_id", how="semi")
    order = [grading.task_id(seed, rater_id, task_id) for task_id in tasks["task_id"]]
    return tasks.with_columns(order=pl.Series(order, dtype=pl.String)).sort("order").drop("order")


def grades(labels: pl.DataFrame, key: pl.DataFrame) -> Graded:
    """Grades of each system's compressions: of each rater the answer that was given last.

    Labels that do not count are dropped with a reason (`grading.latest`).

    Args:
        labels: see `grading.latest`.
        key: task_id, item_id, system: of `tasks`.

    Returns:
        `GRADED`, a row a compression and field, in order of sentence, system and field: the mean grade, null without
        any, the grades and raters in order of rater, and how many there are. A compression that systems share has a row
        for each of them.

    Raises:
        BadInput: see `grading.latest`.
    """
    rows, dropped = grading.latest(labels, key["task_id"], FORM)
    given = (
        rows.sort("rater_id").group_by("task_id", "field", maintain_order=True)
        .agg(grades=pl.col("value").cast(pl.Int64), raters="rater_id")
    )  # fmt: skip
    every = key.join(pl.DataFrame({"field": FIELDS}), how="cross").join(given, on=["task_id", "field"], how="left")
    every = every.with_columns(pl.col("grades", "raters").fill_null([]))
    found = every.with_columns(grade=pl.col("grades").list.mean(), n=pl.col("grades").list.len().cast(pl.Int64))
    dropped = dropped.sort("task_id", "rater_id", "field", "reason")
    return Graded(found.select(list(GRADED)).sort("item_id", "system", pl.col("field").cast(pl.Enum(FIELDS))), dropped)
