"""How good a comment is, given its article: five grades as a labelling task (commenting, section 3 and appendix A.1).

The criteria are the paper's in our words; nothing that raters see reveals where a comment came from (AAC-26).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.label import grading
from pipeline.label.grading import PER_TASK
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
_QUESTION = Field(FIELD, GRADES, "这条评论写得怎么样？", "How good is the comment?", _NAMES)
FORM = Form({FIELD: _QUESTION}, headers={"text": ("评论", "Comment"), "context": ("文章", "Article")})
"""The question, for `task_files`, `label_files` and `label_studio`."""
GRADED: dict[str, pl.DataType] = {
    "item_id": pl.String(), "grade": pl.Float64(), "grades": pl.List(pl.Int64()), "raters": pl.List(pl.String()),
    "sd": pl.Float64(), "has_five": pl.Boolean(), "n": pl.Int64(),
}  # fmt: skip


class Summary(NamedTuple):
    """What the grades of many comments come to; None where it is not printed or undefined."""

    items: int  # with at least one grade
    mean: float | None  # of the comments' mean grades
    sd: float | None  # of the comments' mean grades
    grade_sd: float | None  # of single grades: what the paper's sd may be as well
    five_share: float | None  # of the comments, those with at least one 5


def build_tasks(items: pl.DataFrame) -> pl.DataFrame:
    """Build tasks for raters from comments (item_id, title, content, text), for `task_files.build_rows`."""
    rows = []
    for item_id, title, content, text in items.select("item_id", "title", "content", "text").iter_rows():
        parts = (" ".join((title or "").split()), (content or "").strip())
        context = "\n\n".join(part for part in parts if part)
        rows.append((grading.make_task_id(item_id, context, text), item_id, text, context))
    return grading.build_tasks(rows, "zh", FORM)


def collect_grades(labels: pl.DataFrame, tasks: pl.DataFrame, first: pl.DataFrame | None = None) -> grading.Grades:
    """Collect the grades of each item: of the two raters who were first to grade it, the answer that each gave last.

    Who was first goes by labelled_at, nulls last, then by rater_id. Labels that do not count are dropped, for a reason
    of `grading.pick_latest` or as `late` (other raters). Raters of `first` (task_id, rater_id) counted before, and were
    first whatever the times now say: of a revised grade the earlier time is gone. A row of `GRADED` has mean and
    standard deviation (null for a single grade), grades and raters in order of rater, and whether one is a 5.
    """
    person = ["task_id", "rater_id"]
    rows, dropped = grading.pick_latest(labels, tasks["task_id"])
    started_at = labels.group_by(person).agg(started_at=pl.col("labelled_at").min())
    earlier_pairs = pl.DataFrame(schema=dict.fromkeys(person, pl.String)) if first is None else first.select(person)
    earlier_pairs = earlier_pairs.with_columns(is_earlier=pl.lit(value=True))
    rows = rows.join(started_at, on=person, how="left").join(earlier_pairs, on=person, how="left")
    rows = rows.sort("task_id", "is_earlier", "started_at", "rater_id", nulls_last=True)
    rows = rows.with_columns(place=pl.int_range(pl.len()).over("task_id"))
    late = rows.filter(pl.col("place") >= PER_TASK).with_columns(reason=pl.lit("late")).select(dropped.columns)
    rows = rows.filter(pl.col("place") < PER_TASK)
    grades = grading.join_grades(tasks.select("task_id", "item_id"), rows, ["task_id"])
    grades = grades.with_columns(sd=pl.col("grades").list.std(), has_five=pl.col("grades").list.max() == 5)
    order = ["task_id", "rater_id", "reason"]
    return grading.Grades(grades.select(list(GRADED)).sort("item_id"), pl.concat([dropped, late]).sort(order))


def encode_grades(grades: pl.DataFrame) -> npt.NDArray[np.int8]:
    """Encode rows of `collect_grades` for `agreement.measure`: [items, two raters or more], from 0, -1 for no grade."""
    cells = grades.select("raters", "grades", row=pl.int_range(pl.len())).explode("raters", "grades").drop_nulls()
    raters = cells["raters"].unique().sort()
    codes = np.full((grades.height, max(2, len(raters))), -1, np.int8)
    columns = raters.search_sorted(cells["raters"]).to_numpy()
    codes[cells["row"].to_numpy(), columns] = cells["grades"].to_numpy() - 1
    return codes


def summarise(grades: pl.DataFrame) -> Summary:
    """Summarise the grades of `collect_grades` as `papers.commenting.GRADES` does the paper's test set (AAC-10)."""
    graded = grades.filter(pl.col("n") > 0)
    single_grades = graded["grades"].explode()
    numbers = (graded["grade"].mean(), graded["grade"].std(), single_grades.std(), graded["has_five"].mean())
    return Summary(graded.height, *(None if number is None else float(number) for number in numbers))  # type: ignore[arg-type]
