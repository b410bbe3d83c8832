"""Forms for people who rank graded groups or choose the sentence of the same meaning (ImpScore, appendix A.5)."""

import re

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.label import grading, label_files, user_study
from pipeline.papers.impscore import RECRUITING, TABLE_5

GROUPS = pl.DataFrame(
    [
        (name, level, f"{name} said {how}")
        for name in ("tea", "rent")
        for level, how in enumerate(("openly", "so", "no"))
    ],
    schema=["group", "level", "text"],
    orient="row",
).with_columns(pl.col("level") + 1)
QUESTIONS = pl.DataFrame({"reference": ["Tea!"], "options": [["Brr.", "I am parched.\nSo."]], "answer": [1]})


def build_labels(tasks: pl.DataFrame, values: dict[str, str], rater: str = "anna") -> pl.DataFrame:
    """The answers of a rater: the same values for each task."""
    rows = [(task, rater, field, value) for task in tasks["task_id"] for field, value in values.items()]
    labels = pl.DataFrame(rows, schema=["task_id", "rater_id", "field", "value"], orient="row")
    others = {"round": pl.lit(1), "stage": pl.lit(1), "labelled_at": pl.lit(None), "tool": pl.lit("file")}
    return labels.with_columns(**others).select(list(label_files.COLUMNS)).cast(dict(label_files.COLUMNS))


def test_a_ranking_hides_the_order() -> None:
    """Sentences stand under letters, in an order of their own that stays; the key has the level of each letter."""
    tasks, key, form = user_study.build_tasks("ranking", GROUPS)
    assert list(form.fields) == ["place_a", "place_b", "place_c"]
    assert tasks["item_id"].to_list() == ["tea", "rent"]
    for task_id, item_id, text in tasks.select("task_id", "item_id", "text").iter_rows():
        levels = key.filter(task_id=task_id)["grade"].to_list()
        expected = [GROUPS.filter(group=item_id, level=level)["text"][0] for level in levels]
        assert text.split("\n") == [f"{letter}. {line}" for letter, line in zip("ABC", expected, strict=True)]
    assert any(key.filter(item_id=name)["grade"].to_list() != [1, 2, 3] for name in ("tea", "rent"))
    assert user_study.build_tasks("ranking", GROUPS)[0].equals(tasks)


def test_a_choice_numbers_the_options() -> None:
    """Options are numbered lines behind the reference, and the key has the right one; sizes may not differ."""
    tasks, key, form = user_study.build_tasks("choice", QUESTIONS)
    assert tasks.select("item_id", "context", "text").rows() == [
        ("question_1", "Tea!", "1. Brr.\n2. I am parched. So.")
    ]
    assert key["grade"].to_list() == [2]
    assert form.fields["choice"].values == ("1", "2")
    with pytest.raises(BadInput, match="items of one size, found items with 2 and 3 sentences"):
        user_study.build_tasks("ranking", GROUPS[:5])


def test_whole_answers_count() -> None:
    """All places of a group make an order; ties are allowed, and a rater who left a letter out is dropped."""
    tasks, key, form = user_study.build_tasks("ranking", GROUPS)
    tied, partial = {"place_a": "1", "place_b": "1", "place_c": "3"}, {"place_a": "2"}
    labels = pl.concat([build_labels(tasks, tied), build_labels(tasks[:1], partial, "ben")])
    answers, dropped = user_study.collect_answers(labels, key, form)
    assert answers.select("rater", "item_id").unique().sort("item_id").rows() == [("anna", "rent"), ("anna", "tea")]
    assert answers.filter(item_id="tea")["grade"].to_list() == [1, 2, 3]
    assert sorted(answers.filter(item_id="tea")["value"]) == [1, 1, 3]
    assert dropped.select("rater_id", "reason").rows() == [("ben", "incomplete")]


def test_the_guides_have_the_papers_numbers() -> None:
    """The rules for recruiting have the numbers of appendix A.5, and both guidelines name each field's answers."""
    text = " ".join(grading.read_guidelines("groups_hiring", "en").split())
    assert RECRUITING["people"] == RECRUITING["sets"] * RECRUITING["people_per_set"] == 10
    for part in (
        "Native or proficient", "bachelor's degree", f"More than {RECRUITING['surveys']} earlier surveys",
        "approval rate of 100 %",
        "{people} people in {sets} sets, {people_per_set} people for each set".format(**RECRUITING),
        "{items_per_set} groups to rank and {items_per_set} questions".format(**RECRUITING),
        f"{RECRUITING['pilots']} pilots",
    ):  # fmt: skip
        assert part in text
    assert re.search(r"`1` for the most explicit", grading.read_guidelines("ranking", "en"))
    assert "exactly one option" in grading.read_guidelines("choice", "en")


def test_claims_about_table_5() -> None:
    """People's mean accuracy is .80 and .88 and ImpScore is no better than the best person (section 6.3; IMP-34)."""
    means = [sum(numbers["accuracy"][:5]) / 5 for numbers in TABLE_5.values()]
    assert means == pytest.approx([0.80, 0.88])
    assert all(max(row[:5]) >= row[5] > min(row[:5]) for n in TABLE_5.values() for row in list(n.values())[:2])
