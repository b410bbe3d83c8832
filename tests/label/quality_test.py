"""Grades of comments: the form, tasks out and labels in, and what they come to (AAC-08 to 10)."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from pipeline.errors import BadInput
from pipeline.label import assignment, grading, label_files, label_studio, quality, schema, simulated, task_files
from pipeline.label.quality import FORM, collect_grades, encode_grades, summarise
from pipeline.metrics.labelling import agreement
from pipeline.papers.commenting import EXAMPLES, GRADES

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
START = datetime(2026, 11, 20, 8, tzinfo=UTC)


def label(task: str, rater: str, value: object, minute: int | None = None, **change: Any) -> dict[str, Any]:
    """A label of a long table."""
    at = None if minute is None else START + timedelta(minutes=minute)
    said = {"task_id": task, "rater_id": rater, "field": "quality", "value": str(value), "labelled_at": at}
    return {**said, "round": 1, "stage": 1, "tool": "file", **change}


def labels(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=label_files.COLUMNS)


# -------------------------------------------------------------------------------------------------------------- form


def test_the_form_asks_for_one_grade() -> None:
    """Five grades, each with a name and a criterion in two languages; the article is the context (appendix A.1)."""
    assert {name: field.values for name, field in FORM.fields.items()} == {"quality": ("1", "2", "3", "4", "5")}
    assert (FORM.headers["text"][1], FORM.headers["context"][1]) == ("Comment", "Article")
    for lang in ("zh", "en"):
        assert len({schema.get_value_name("quality", grade, lang, FORM) for grade in quality.GRADES}) == 5
    assert schema.hash_schema(FORM) != schema.hash_schema()


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_guidelines_tell_each_grade(lang: str) -> None:
    """The question, and of each grade name, criterion and three examples stand there as the form has them (AAC-08)."""
    text, english = grading.read_guidelines("quality", lang), lang == "en"
    field = FORM.fields["quality"]
    assert f"| `quality` | {field.en if english else field.zh} | `1` `2` `3` `4` `5` |" in text
    examples = text.split("## Examples" if english else "## 例子")[1]
    for grade in quality.GRADES:
        name = re.escape(schema.get_value_name("quality", grade, lang, FORM))
        assert re.search(rf"^\| `{grade}` \| {name} \| .+ \|$", text, re.MULTILINE)
        assert len(re.findall(rf"^\| `{grade}` \|", examples, re.MULTILINE)) == 3


# ------------------------------------------------------------------------------------------------------------- tasks


def test_an_item_is_a_task() -> None:
    """The comment is the text, title and content are the context, and the item's id is not shown."""
    rows = [*task_files.build_rows(TASKS, form=FORM)]
    assert [row["text"] for row in rows] == ITEMS["text"].to_list()
    assert [row["context"] for row in rows] == [
        "市图书馆 将开放到午夜\n\n从十月起开放到午夜。\n周日闭馆。", ITEMS["content"][1], "=1+1",
    ]  # fmt: skip
    assert all(set(row) == {"task_id", "text", "context", "lang", "round", "schema_version", "fields"} for row in rows)
    assert all(re.fullmatch("[0-9a-f]{32}", row["task_id"]) for row in rows)
    assert (rows[0]["fields"], rows[0]["schema_version"]) == (["quality"], schema.hash_schema(FORM))
    assert TASKS["item_id"].to_list() == ["a", "b", "c"]


def test_an_item_that_changes_is_another_task() -> None:
    """A grade of another text, article or item is of another task; order does not matter."""
    assert quality.build_tasks(ITEMS.reverse())["task_id"].to_list() == [C, B, A]
    for name in ("item_id", "title", "content", "text"):
        changed = quality.build_tasks(ITEMS.with_columns(pl.col(name).fill_null("") + "x"))
        assert not set(changed["task_id"]) & {A, B, C}
    assert quality.build_tasks(ITEMS.clear()).schema == TASKS.schema


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"text": " \n"}, "item i: field 'text' should be a text"),
        ({"text": None}, "item i: field 'text' should be a text"),
        ({"title": None, "content": " "}, "item i: field 'title or content' should be a text"),
    ],
)
def test_an_item_without_all_it_needs_is_told(change: dict[str, Any], told: str) -> None:
    """A comment, and a title or content; the message names item and field."""
    with pytest.raises(BadInput, match=told):
        quality.build_tasks(pl.DataFrame([{"item_id": "i", "title": "t", "content": "c", "text": "x", **change}]))


def test_an_item_that_is_there_twice_is_told() -> None:
    """Two items of one id would be one in the grades."""
    with pytest.raises(BadInput, match="item a is repeated"):
        quality.build_tasks(pl.concat([ITEMS, ITEMS[:1]]))


# ------------------------------------------------------------------------------------------------------ label studio


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_label_studio_asks_for_the_grade(lang: str) -> None:
    """Article, comment and one required choice of five, shown by name and kept by grade; an answer comes back."""
    root = ET.fromstring(label_studio.build_config(lang=lang, form=FORM))  # noqa: S314  # our own
    assert [text.get("value") for text in root.iter("Text")] == ["$context", "$text"]
    (asked,) = root.iter("Choices")
    assert (asked.get("name"), asked.get("required")) == ("quality", "true")
    assert tuple(choice.get("alias") for choice in asked) == quality.GRADES
    (task, *_) = label_studio.to_tasks(task_files.build_rows(TASKS, form=FORM), lang, FORM)
    said = {"id": "x", "from_name": "quality", "to_name": "text", "type": "choices", "value": {"choices": ["4"]}}
    answer = {"id": 1, "completed_by": 11, "updated_at": "2026-11-20T08:00:00Z", "result": [said]}
    found = label_studio.parse_export([{"id": 7, **task, "annotations": [answer]}], TASKS, form=FORM)
    assert found.labels.select("task_id", "rater_id", "value").rows() == [(A, "ls-11", "4")]


# ------------------------------------------------------------------------------------------------------------ grades


def test_an_items_grade_is_the_mean_of_two() -> None:
    """Mean, sd and the share of 5 by hand: 3 and 4 are 3.5, sd the root of a half; no grade is null, not 0."""
    found = collect_grades(labels(label(A, "bo", 4), label(A, "amy", 3), label(B, "cy", 5)), TASKS)
    assert found.grades.rows() == [
        ("a", 3.5, [3, 4], ["amy", "bo"], pytest.approx(0.5**0.5), False, 2),
        ("b", 5.0, [5], ["cy"], None, True, 1),
        ("c", None, [], [], None, None, 0),
    ]
    assert found.grades.schema == pl.Schema(quality.GRADED)
    assert found.dropped.is_empty()


def test_the_first_two_raters_count() -> None:
    """A third is late, one who says it anew keeps the place with the last grade, and nothing is lost silently."""
    rows = [
        label(A, "amy", 1, 0), label(A, "bo", 2, 1), label(A, "cy", 5, 2), label(A, "amy", 4, 9), label(A, "bo", 2, 8),
        label(B, "amy", 3), label(B, "bo", 3, 7), label(B, "aaa", 5), label("f" * 32, "amy", 5),
    ]  # fmt: skip
    found = collect_grades(labels(*rows), TASKS)
    assert found.grades.select("item_id", "grades", "raters").rows()[:2] == [
        ("a", [4, 2], ["amy", "bo"]), ("b", [5, 3], ["aaa", "bo"]),
    ]  # fmt: skip
    told = {(A, "amy", "superseded"), (A, "bo", "duplicate"), (A, "cy", "late"), (B, "amy", "late")}
    assert {*found.dropped.select("task_id", "rater_id", "reason").rows()} == {*told, ("f" * 32, "amy", "unknown_task")}
    assert collect_grades(labels(*rows), TASKS, per_item=3).grades["n"].to_list() == [3, 3, 0]


@settings(deadline=None, max_examples=30)
@given(
    st.dictionaries(st.tuples(st.sampled_from([A, B, C]), st.sampled_from("pqrs")), st.integers(1, 5)),
    st.randoms(use_true_random=False),
)
def test_each_label_counts_or_is_dropped(said: dict[tuple[str, str], int], random) -> None:
    """In any order of rows grades and drops are the same, and together they are the labels."""
    rows = [label(task, rater, value) for (task, rater), value in said.items()]
    found = collect_grades(labels(*rows), TASKS)
    again = collect_grades(labels(*random.sample(rows, len(rows))), TASKS)
    assert again.grades.equals(found.grades)
    assert again.dropped.equals(found.dropped)
    assert found.grades["n"].sum() + found.dropped.height == len(rows)
    assert found.grades["n"].max() <= 2


def test_summary_by_hand() -> None:
    """Of means 3.5 and 5 the mean is 4.25, the sd 1.06; of 3, 4, 5 it is 1; one of two has a 5; ungraded are out."""
    found = summarise(collect_grades(labels(label(A, "bo", 4), label(A, "amy", 3), label(B, "cy", 5)), TASKS).grades)
    assert found == pytest.approx((2, 4.25, 1.0606602, 1.0, 0.5))
    assert summarise(collect_grades(labels(), TASKS).grades) == (0, None, None, None, None)
    assert GRADES.items == 43_470  # AAC-07


def test_the_papers_examples() -> None:
    """The 26 printed grades of each article are below the 3.6 told for all, and 2 of the 52 are a 5 (AAC-32)."""
    for name, fives, mean in (("table_8", 0, 89 / 26), ("table_9", 2, 88 / 26)):
        given_there = EXAMPLES[name]
        assert (len(given_there), given_there.count(5)) == (26, fives)
        assert sum(given_there) / 26 == pytest.approx(mean)
        assert mean < GRADES.mean


def test_from_assignment_to_kappa() -> None:
    """Five simulated raters, two a comment: kappa of the codes is that of their grades, and rises with accuracy."""
    items = pl.DataFrame({"item_id": [f"{n:03}" for n in range(400)], "title": "t", "content": "c", "text": "x"})
    tasks = quality.build_tasks(items)
    asked = assignment.assign(tasks["task_id"], ["r1", "r2", "r3", "r4", "r5"])
    found = {}
    for accuracy in (0.5, 0.8, 1.0):
        graded = collect_grades(simulated.grade(tasks, assigned=asked, accuracy=accuracy), tasks)
        assert graded.dropped.is_empty()
        assert set(graded.grades["n"]) == {2}
        found[accuracy] = agreement.weighted_kappa(encode_grades(graded.grades), "linear")
    assert found[0.5] < found[0.8] < found[1.0] == pytest.approx(1)
    assert summarise(graded.grades).mean == pytest.approx(GRADES.mean, abs=0.2)


def test_codes_are_columns_of_raters() -> None:
    """From 0, -1 where a rater did not grade; of two raters kappa is scikit-learn's; without labels it is undefined."""
    said = [label(task, rater, value) for task, rater, value in
            ((A, "bo", 4), (A, "amy", 3), (B, "amy", 1), (B, "bo", 1), (C, "bo", 5))]  # fmt: skip
    found = encode_grades(collect_grades(labels(*said), TASKS).grades)
    assert found.tolist() == [[2, 3], [0, 0], [-1, 4]]
    expected = cohen_kappa_score([3, 1], [4, 1], labels=range(1, 6), weights="quadratic")
    assert agreement.weighted_kappa(found) == pytest.approx(expected)
    nobody = encode_grades(collect_grades(labels(), TASKS).grades)
    assert nobody.tolist() == [[-1, -1]] * 3
    assert np.isnan(agreement.weighted_kappa(nobody))
