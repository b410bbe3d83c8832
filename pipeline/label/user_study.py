"""What people are asked of graded groups and of choice questions (ImpScore, section 6.2 and appendix A.5; IMP-38).

Sentences stand under letters in random order. Equal places are ties, equal numbers mean the same.
"""

import string
import zlib

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.label import grading
from pipeline.label.schema import Field, Form

CHOICE, MEANING = "choice", "meaning"
KINDS = ("ranking", CHOICE, MEANING)
SEED = 42


def make_form(kind: str, size: int) -> Form:
    """Make the form for groups, or for questions with options, of a size."""
    values = tuple(str(number) for number in range(1, size + 1))
    if kind == CHOICE:
        names = tuple((value, f"option {value}") for value in values)
        field = Field(CHOICE, values, "哪一句和它意思相同？", "Which option means the same?", names)
        return Form({CHOICE: field}, headers={"text": ("选项", "Options"), "context": ("句子", "Sentence")})
    ends, name = {}, MEANING
    if kind != MEANING:
        ends, name = {"1": ("最直白", "the most explicit"), values[-1]: ("最隐晦", "the most implicit")}, "place"
    names = tuple(ends.get(value, (value, f"{name} {value}")) for value in values)
    chinese = "{} 是哪个意思？" if kind == MEANING else "{} 排第几？"
    fields = [
        Field(f"{name}_{letter.lower()}", values, chinese.format(letter), f"Which {name} has {letter}?", names)
        for letter in string.ascii_uppercase[:size]
    ]
    headers = {"text": ("句子", "Sentences"), "context": ("情境", "Situation")}
    return Form({field.name: field for field in fields}, headers=headers)


def build_tasks(kind: str, items: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, Form]:
    """Build tasks, for `task_files.build_rows`, the key that raters must not see, and the form of one of `KINDS`.

    Items of choices have reference, options and answer (index of the right one), others group, level and text. The
    key's grade is the level of the sentence under a letter, 1 for a meaning, or the number of the right option.
    BadInput: items of several sizes.
    """
    if kind == CHOICE:
        rows = items.with_row_index("number", offset=1).select(
            item_id=pl.format("question_{}", "number"), context="reference", texts="options", grades="answer"
        )
    else:
        ordered = [pl.col(name).sort_by("level") for name in ("text", "level")]
        groups = items.group_by("group", maintain_order=True).agg(texts=ordered[0], grades=ordered[1])
        rows = groups.select(pl.lit(None, pl.String).alias("context"), "texts", "grades", item_id="group")
    sizes = rows["texts"].list.len().unique().sort().to_list()
    if len(sizes) != 1:
        raise BadInput(f"people need items of one size, found items with {' and '.join(map(str, sizes))} sentences")
    form = make_form(kind, sizes[0])
    tasks, key = [], []
    for item_id, context, texts, grades in rows.select("item_id", "context", "texts", "grades").iter_rows():
        order = list(range(sizes[0]))
        if kind != CHOICE:
            order = np.random.default_rng([SEED, zlib.crc32(item_id.encode())]).permutation(sizes[0]).tolist()
        marks = string.ascii_uppercase if kind != CHOICE else string.digits[1:]
        text = "\n".join(f"{marks[place]}. {' '.join(texts[index].split())}" for place, index in enumerate(order))
        task_id = grading.make_task_id(kind, item_id, context, text)
        tasks.append((task_id, item_id, text, context))
        levels = [grades + 1] if kind == CHOICE else [1 if kind == MEANING else grades[index] for index in order]
        key += [(task_id, field, item_id, level) for field, level in zip(form.fields, levels, strict=True)]
    schema = {**dict.fromkeys(("task_id", "field", "item_id"), pl.String), "grade": pl.Int64}
    return grading.build_tasks(tasks, "en", form), pl.DataFrame(key, schema=schema, orient="row"), form


def collect_answers(labels: pl.DataFrame, key: pl.DataFrame, form: Form) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Collect item_id, grade (of the key), rater, value; and the labels that do not count, with a reason.

    Of each rater the latest answer counts, to each item that is answered as a whole (`incomplete` else).
    """
    rows, dropped = grading.pick_latest(labels, key["task_id"].unique())
    is_whole = pl.len().over("task_id", "rater_id") == len(form.fields)
    incomplete = rows.filter(~is_whole).with_columns(reason=pl.lit("incomplete")).select(dropped.columns)
    answers = rows.filter(is_whole).join(key, on=["task_id", "field"]).sort("rater_id", "item_id", "grade")
    answers = answers.select("item_id", "grade", rater="rater_id", value=pl.col("value").cast(pl.Float64))
    return answers, pl.concat([dropped, incomplete])
