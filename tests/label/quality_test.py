"""Grades of comments: the form, tasks out and labels in, and what they come to (AAC-08 to 10)."""

import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from pipeline.label import grading, quality, schema, task_files
from pipeline.label.quality import FORM, collect_grades, encode_grades, summarise
from pipeline.metrics.labelling.agreement import measure
from pipeline.papers.commenting import GRADES
from tests.support.rows.labels import EXAMPLES, build_grades

ITEMS = pl.DataFrame(
    {
        "item_id": ["a", "b", "c"],
        "title": ["市图书馆\n将开放到午夜", None, "=1+1"],
        "content": ["从十月起开放到午夜。\n周日闭馆。", "The <b>library</b> stays open. $text {{x}}", ""],
        "text": ["我们更想要周日开门。", "<script>alert(1)</script>", "@SUM(A1)"],
    }
)
TASKS = quality.build_tasks(ITEMS)
A, B, C = TASKS["task_id"]


def build_labels(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """Build labels from task, rater, grade, and maybe minutes."""
    return build_grades(*((task, rater, "quality", *rest) for task, rater, *rest in rows))


BY_HAND = build_labels((A, "bo", 4), (A, "amy", 3), (B, "cy", 5))


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_guidelines_explain_each_grade(lang: str) -> None:
    """The question, and of each grade name, criterion and three examples stand there as the form has them (AAC-08)."""
    text = grading.read_guidelines("quality", lang)
    assert f"| `quality` | {FORM.get_question('quality', lang)} | `1` `2` `3` `4` `5` |" in text
    examples = text.split("## Examples" if lang == "en" else "## 例子")[1]
    for grade in quality.GRADES:
        name = re.escape(schema.get_value_name("quality", grade, lang, FORM))
        assert re.search(rf"^\| `{grade}` \| {name} \| .+ \|$", text, re.MULTILINE)
        assert len(re.findall(rf"^\| `{grade}` \|", examples, re.MULTILINE)) == 3


def test_an_item_is_a_task() -> None:
    """The comment is the text, title and content the context, no id is shown; what changes is another task."""
    rows = [*task_files.build_rows(TASKS, form=FORM)]
    assert [row["text"] for row in rows] == ITEMS["text"].to_list()
    assert [row["context"] for row in rows] == [
        "市图书馆 将开放到午夜\n\n从十月起开放到午夜。\n周日闭馆。", ITEMS["content"][1], "=1+1",
    ]  # fmt: skip
    assert all(set(row) == {"task_id", "text", "context", "lang", "round", "schema_version", "fields"} for row in rows)
    assert all(re.fullmatch("[0-9a-f]{32}", row["task_id"]) for row in rows)
    assert (rows[0]["fields"], rows[0]["schema_version"]) == (["quality"], schema.hash_schema(FORM))
    assert TASKS["item_id"].to_list() == ["a", "b", "c"]
    assert quality.build_tasks(ITEMS.reverse())["task_id"].to_list() == [C, B, A]
    for name in ("item_id", "title", "content", "text"):
        changed = quality.build_tasks(ITEMS.with_columns(pl.col(name).fill_null("") + "x"))
        assert not set(changed["task_id"]) & {A, B, C}
    assert quality.build_tasks(ITEMS.clear()).schema == TASKS.schema


def test_an_items_grade_is_the_mean_of_two() -> None:
    """Mean, sd and the share of 5 by hand: 3 and 4 are 3.5, sd the root of a half; no grade is null, not 0."""
    grades, dropped = collect_grades(BY_HAND, TASKS)
    assert grades.rows() == [
        ("a", 3.5, [3, 4], ["amy", "bo"], pytest.approx(0.5**0.5), False, 2),
        ("b", 5.0, [5], ["cy"], None, True, 1),
        ("c", None, [], [], None, None, 0),
    ]
    assert grades.schema == pl.Schema(quality.GRADED)
    assert dropped.is_empty()


def test_the_first_two_raters_count() -> None:
    """A third is late, who grades again keeps the place with the last grade, and nothing is lost silently."""
    labels = build_labels(
        (A, "amy", 1, 0), (A, "bo", 2, 1), (A, "cy", 5, 2), (A, "amy", 4, 9), (A, "bo", 2, 8),
        (B, "amy", 3), (B, "bo", 3, 7), (B, "aaa", 5), ("f" * 32, "amy", 5),
    )  # fmt: skip
    grades, dropped = collect_grades(labels, TASKS)
    assert grades.select("item_id", "grades", "raters").rows()[:2] == [
        ("a", [4, 2], ["amy", "bo"]), ("b", [5, 3], ["aaa", "bo"]),
    ]  # fmt: skip
    assert {*dropped.select("task_id", "rater_id", "reason").rows()} == {
        (A, "amy", "superseded"), (A, "bo", "duplicate"), (A, "cy", "late"), (B, "amy", "late"),
        ("f" * 32, "amy", "unknown_task"),
    }  # fmt: skip
    first = pl.DataFrame({"task_id": [A], "rater_id": ["cy"]})  # who counted before does so again
    assert collect_grades(labels, TASKS, first=first).grades["raters"][0].to_list() == ["amy", "cy"]


@settings(deadline=None, max_examples=30)
@given(
    st.dictionaries(st.tuples(st.sampled_from([A, B, C]), st.sampled_from("pqrs")), st.integers(1, 5)),
    st.randoms(use_true_random=False),
)
def test_each_label_counts_or_is_dropped(values: dict[tuple[str, str], int], random) -> None:
    """In any order of rows grades and drops are the same, and together they are the labels."""
    rows = [(task, rater, value) for (task, rater), value in values.items()]
    grades, dropped = collect_grades(build_labels(*rows), TASKS)
    mixed = collect_grades(build_labels(*random.sample(rows, len(rows))), TASKS)
    assert mixed.grades.equals(grades)
    assert mixed.dropped.equals(dropped)
    assert grades["n"].sum() + dropped.height == len(rows)
    assert grades["n"].max() <= 2


def test_summary_by_hand() -> None:
    """Means, sd and shares by hand, and of the 52 printed grades: below 3.6, two are a 5 (AAC-32)."""
    summary = summarise(collect_grades(BY_HAND, TASKS).grades)
    assert summary == pytest.approx((2, 4.25, 1.0606602, 1.0, 0.5))
    assert summarise(collect_grades(BY_HAND.clear(), TASKS).grades) == (0, None, None, None, None)
    assert GRADES.items == 43_470  # AAC-07
    for name, fives, mean in (("table_8", 0, 89 / 26), ("table_9", 2, 88 / 26)):
        grades = EXAMPLES[name]
        assert (len(grades), grades.count(5)) == (26, fives)
        assert sum(grades) / 26 == pytest.approx(mean)
        assert mean < GRADES.mean


def test_codes_are_columns_of_raters() -> None:
    """From 0, -1 where a rater did not grade; of two raters kappa is scikit-learn's; without labels it is undefined."""
    labels = build_labels((A, "bo", 4), (A, "amy", 3), (B, "amy", 1), (B, "bo", 1), (C, "bo", 5))
    codes = encode_grades(collect_grades(labels, TASKS).grades)
    assert codes.tolist() == [[2, 3], [0, 0], [-1, 4]]
    expected = cohen_kappa_score([3, 1], [4, 1], labels=range(1, 6), weights="quadratic")
    assert measure("weighted_kappa_quadratic", codes) == pytest.approx(expected)
    no_codes = encode_grades(collect_grades(labels.clear(), TASKS).grades)
    assert no_codes.tolist() == [[-1, -1]] * 3
    assert np.isnan(measure("weighted_kappa_quadratic", no_codes))
