"""What raters are asked of a cloze item, and what their answers come to (ReCAM, section 3.6 and appendix A; REC-23)."""

import polars as pl

from pipeline.label import grading
from pipeline.label.schema import Field, Form

OPTIONS = 5
LETTERS = "ABCDE"
NO_OTHER = "none"
RELATIONS = ("summarise", "paraphrase", "others")
DIFFICULTIES = ("easy", "medium", "difficult")
_PLACES = {letter: place for place, letter in enumerate(LETTERS)}
_LETTERS = tuple((letter, letter) for letter in LETTERS)
FORM = Form(
    fields={
        field.name: field
        for field in (
            Field("before", tuple(LETTERS), "读文章之前：选哪个词？", "Before you read: which word fits?", _LETTERS),
            Field("after", tuple(LETTERS), "读文章之后：选哪个词？", "After you have read: which word fits?", _LETTERS),
            Field(
                "second", (*LETTERS, NO_OTHER), "还有别的词也合适吗？", "Is there another word that fits?",
                (*_LETTERS, ("没有", "no other answer")),
            ),
            Field(
                "relation", RELATIONS, "答案和支持它的那段文字是什么关系？",
                "How does your answer relate to the part that supports it?",
                (("概括", "summarises it"), ("换种说法", "paraphrases it"), ("其他", "others")),
            ),
            Field(
                "difficulty", DIFFICULTIES, "这道题难吗？", "How difficult was it?",
                (("容易", "easy"), ("中等", "medium"), ("难", "difficult")),
            ),
        )
    },
    notes={
        "span_1": ("文章的哪一段支持你的答案？请粘贴原文", "Which part of the passage supports your answer? Paste it"),
        "span_2": (
            "文章的哪一段概括了答案的意思？请粘贴原文",
            "Which part of the passage sums up what your answer says? Paste it",
        ),
    },
    spans={"span_1": ("支持答案", "Supports the answer"), "span_2": ("概括答案", "Sums up the answer")},
    headers={"text": ("题目", "Question"), "context": ("文章", "Passage")},
    marked="context",
    may_quote=True,
    first="before",
)  # fmt: skip
"""The questionnaire, for `task_files`, `label_files` and `label_studio` (REC-23)."""
ANSWERS: dict[str, pl.DataType] = {
    "item_id": pl.String(), "rater_id": pl.String(),
    **dict.fromkeys(("before", "after", "second"), pl.Int64()),
    **dict.fromkeys(("span_1", "span_2", "relation", "difficulty"), pl.String()),
}  # fmt: skip


def build_tasks(items: pl.DataFrame) -> pl.DataFrame:
    """Build tasks for raters from cloze items, for `task_files.build_rows`; they do not show the right option.

    A task's id is a hash of all that the item shows and of its id: should the options change, an answer to the old ones
    is of no task that there is.
    """
    rows = []
    for item in items.select("item_id", "article", "question", "options").iter_rows():
        item_id, article, question, options = item
        # an option is one line: a line break in it would look like another option
        lines = [f"{letter}. {' '.join(option.split())}" for letter, option in zip(LETTERS, options, strict=True)]
        text = "\n".join([" ".join(question.split()), "", *lines])
        rows.append((grading.make_task_id(*item), item_id, text, article))
    return grading.build_tasks(rows, "en", FORM)


def build_answers(labels: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Build answers (`ANSWERS`) from labels, a row an item and rater who said anything of it.

    Options are places from 0, null for no other answer and what was not answered; spans are the words themselves.
    """
    values = (pl.col("value").filter(field=name).first().alias(name) for name in (*FORM.fields, *FORM.notes))
    rater_rows = labels.group_by("task_id", "rater_id").agg(*values)
    places = pl.col("before", "after", "second").replace_strict(_PLACES, default=None, return_dtype=pl.Int64)
    answers = rater_rows.join(tasks.select("task_id", "item_id", "context"), on="task_id").with_columns(places)
    for name in FORM.spans:
        start, end = (pl.col(name).str.split("-").list.get(place, null_on_oob=True).cast(pl.Int64) for place in (0, 1))
        answers = answers.with_columns(pl.col("context").str.slice(start, end - start).alias(name))
    return answers.select(*ANSWERS).sort("item_id", "rater_id")
