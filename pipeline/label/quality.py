"""How good a comment is, given its article: five grades as a labelling task (commenting, section 3 and appendix A.1).

Raters read title and content, then the comment, and give one grade (AAC-08). The criteria are the paper's in our words.
A task is of one comment, real or generated: nothing that raters see tells where it came from (AAC-26).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput
from pipeline.label import grading, schema
from pipeline.label.assignment import PER_TASK
from pipeline.label.schema import Field, Form

FIELD = "quality"
GRADES = ("1", "2", "3", "4", "5")
_NAMES = (
    ("读不通或不成句", "hard to read, or no sentence"),
    ("通顺但无关，或是广告", "fluent, but irrelevant or advertising"),
    ("有些关系，但笼统", "somewhat relevant, but vague"),
    ("针对文章，有意义", "specific and meaningful"),
    ("充实、新颖、有见地", "rich, novel, insightful"),
)
FORM = Form(
    fields={FIELD: Field(FIELD, GRADES, "这条评论写得怎么样？", "How good is the comment?", _NAMES)},
    notes={},
    spans={},
    headers={"text": ("评论", "Comment"), "context": ("文章", "Article")},
)
"""The question, for `task_files`, `label_files` and `label_studio`."""

GRADED: dict[str, pl.DataType] = {
    "item_id": pl.String(), "grade": pl.Float64(), "grades": pl.List(pl.Int64()), "raters": pl.List(pl.String()),
    "sd": pl.Float64(), "has_five": pl.Boolean(), "n": pl.Int64(),
}  # fmt: skip


class Grades(NamedTuple):
    """Grades of items, and the labels that do not count."""

    grades: pl.DataFrame  # `GRADED`
    dropped: pl.DataFrame  # task_id, rater_id, field, round, stage, reason


class Summary(NamedTuple):
    """What the grades of many comments come to; None where it is not told or undefined."""

    items: int  # with at least one grade
    mean: float | None  # of the comments' mean grades
    sd: float | None  # of the comments' mean grades
    grade_sd: float | None  # of single grades: what the paper's sd may be as well
    five_share: float | None  # of the comments, those with at least one 5


def build_tasks(items: pl.DataFrame, lang: str = "zh") -> pl.DataFrame:
    """Comments as tasks for raters.

    Args:
        items: item_id, title (may be null), content (may be null or empty), text (the comment).
        lang: language of the comments.

    Returns:
        A row an item, in order: task_id, item_id, text, context (title, an empty line, content), lang, schema_version;
        what `task_files.build_rows` takes, with `form=FORM`.

    Raises:
        BadInput: an item has no comment or no article, or an id that another has.
    """
    columns = ("item_id", "title", "content", "text")
    ids, contexts = [], []
    for item_id, title, content, text in items.select(columns).iter_rows():
        context = "\n\n".join(part for part in (" ".join((title or "").split()), (content or "").strip()) if part)
        for name, value in (("text", text), ("title or content", context)):
            if not (value or "").strip():
                raise BadInput(f"item {item_id}: field {name!r} should be a text, found {value!r:.60}")
        ids.append(grading.make_task_id(item_id, context, text))
        contexts.append(context)
    if repeated := items.filter(pl.col("item_id").is_duplicated())["item_id"].head(1).to_list():
        raise BadInput(f"items: item {repeated[0]} is repeated, expected once")
    return items.select(
        pl.Series("task_id", ids, dtype=pl.String), "item_id", "text", pl.Series("context", contexts, dtype=pl.String),
        lang=pl.lit(lang), schema_version=pl.lit(schema.hash_schema(FORM)),
    )  # fmt: skip


def collect_grades(
    labels: pl.DataFrame, tasks: pl.DataFrame, per_item: int = PER_TASK, first: pl.DataFrame | None = None
) -> Grades:
    """Grades of each item: of the raters who were first to grade it, the answer that each gave last.

    Labels that do not count are dropped, for a reason of `grading.pick_latest` or as `late` (raters beyond `per_item`).

    Args:
        labels: see `grading.pick_latest`.
        tasks: task_id, item_id: rows of `build_tasks`.
        per_item: raters that count. Who was first goes by labelled_at, nulls last, then by rater_id.
        first: task_id, rater_id of raters who counted before, and were first whatever the times now say: of a revised
            grade the earlier time is gone.

    Returns:
        `GRADED`, a row a task in order of item_id: the mean grade, the grades and raters in order of rater, their
        standard deviation (null for a single one), whether one is a 5, and how many there are; without any, `grade`,
        `sd` and `has_five` are null.

    Raises:
        BadInput: see `grading.pick_latest`.
    """
    person = ["task_id", "rater_id"]
    rows, dropped = grading.pick_latest(labels, tasks["task_id"], FORM)
    started_at = labels.group_by(person).agg(began=pl.col("labelled_at").min())
    earlier_pairs = pl.DataFrame(schema=dict.fromkeys(person, pl.String)) if first is None else first.select(person)
    rows = rows.join(started_at, on=person, how="left").join(
        earlier_pairs.with_columns(is_new=pl.lit(value=False)), on=person, how="left"
    )
    rows = rows.with_columns(pl.col("is_new").fill_null(value=True))
    rows = rows.sort("task_id", "is_new", "began", "rater_id", nulls_last=True)
    rows = rows.with_columns(place=pl.int_range(pl.len()).over("task_id"))
    late = rows.filter(pl.col("place") >= per_item).with_columns(reason=pl.lit("late")).select(dropped.columns)
    task_grades = (
        rows.filter(pl.col("place") < per_item).sort("rater_id").group_by("task_id", maintain_order=True)
        .agg(grades=pl.col("value").cast(pl.Int64), raters="rater_id")
    )  # fmt: skip
    graded_tasks = tasks.select("task_id", "item_id").join(task_grades, on="task_id", how="left")
    graded_tasks = graded_tasks.with_columns(pl.col("grades", "raters").fill_null([]))
    grade_list = pl.col("grades").list
    grades = graded_tasks.with_columns(
        grade=grade_list.mean(),
        sd=grade_list.std(),
        n=grade_list.len().cast(pl.Int64),
        has_five=pl.when(grade_list.len() > 0).then(grade_list.max() == 5),
    )
    order = ["task_id", "rater_id", "reason"]
    return Grades(grades.select(list(GRADED)).sort("item_id"), pl.concat([dropped, late]).sort(order))


def encode_grades(grades: pl.DataFrame) -> npt.NDArray[np.int8]:
    """Grades as `metrics.labelling.agreement.weighted_kappa` takes them: [items, raters], from 0, -1 for none.

    Args:
        grades: rows of `collect_grades`; columns are those of the raters' ids in order, and never fewer than two.
    """
    raters = sorted({*grades["raters"].explode(empty_as_null=False)})
    codes = np.full((grades.height, max(2, len(raters))), -1, np.int8)
    for column, rater in enumerate(raters):
        place = pl.col("raters").list.eval(pl.element() == rater).list.arg_max()
        grade = pl.when(pl.col("raters").list.contains(rater)).then(pl.col("grades").list.get(place))
        codes[:, column] = grades.select(grade.fill_null(0) - 1).to_series().to_numpy()
    return codes


def summarise(grades: pl.DataFrame) -> Summary:
    """What `papers.commenting.GRADES` has of the paper's test set, of the items that were graded (AAC-10).

    Args:
        grades: rows of `collect_grades`.
    """
    graded = grades.filter(pl.col("n") > 0)
    single_grades = graded["grades"].explode()
    numbers = (graded["grade"].mean(), graded["grade"].std(), single_grades.std(), graded["has_five"].mean())
    return Summary(graded.height, *(None if number is None else float(number) for number in numbers))  # type: ignore[arg-type]
