"""Simulated raters: labels that fit the contracts, the same for a task whatever the other tasks are."""

import hashlib
from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import tables
from pipeline.label import compression, grading, label_files, quality, questionnaire, schema, simulated, stages
from pipeline.label.questionnaire import FORM
from pipeline.label.schema import Form

TEXTS = ("这效率真是没谁了", "Sure, take your time, it is only a fire.", "好", "🙂👍")


def build_tasks(count: int) -> pl.DataFrame:
    return pl.DataFrame({"task_id": [f"{n:032x}" for n in range(count)], "text": [TEXTS[n % 4] for n in range(count)]})


TASKS = build_tasks(600)
LABELS = simulated.label(TASKS)
DECISIONS = stages.decide(TASKS["task_id"], LABELS)
ITEMS = pl.DataFrame({
    "item_id": [f"i{n}" for n in range(400)], "article": [f"{n} {TEXTS[n % 4]}" for n in range(400)],
    "question": "@placeholder .", "options": [["one", "two", "three", "four", "five"]] * 400,
    "label": [n % 5 for n in range(400)],
})  # fmt: skip
CLOZE = questionnaire.build_tasks(ITEMS)
ANSWERS = simulated.answer(CLOZE, ITEMS)
GRADES = simulated.grade(TASKS)
BOTH_GRADES = simulated.grade(TASKS, form=compression.FORM)


@pytest.mark.parametrize(
    ("labels", "tasks", "form", "raters"),
    [
        (LABELS, TASKS.with_columns(context=pl.lit("")), schema.CSD, simulated.RATER_IDS),
        (ANSWERS, CLOZE, FORM, simulated.READERS),
        (GRADES, None, quality.FORM, simulated.GRADERS),
        (BOTH_GRADES, None, compression.FORM, simulated.GRADERS),
    ],
)
def test_labels_fit_contract_and_form(
    labels: pl.DataFrame, tasks: pl.DataFrame | None, form: Form, raters: set[str]
) -> None:
    """Each rater labels each field of each task, plainly named as simulated; each value of the form occurs."""
    tables.Labels.validate(labels.with_columns(project=pl.lit("demo")))
    rows = (("", row) for row in labels.iter_rows(named=True))
    assert label_files.check_rows(rows, tasks, name="x", form=form).equals(labels)
    assert set(labels["rater_id"]) == set(raters)
    assert set(labels["tool"]) == {"simulated"}
    fields = labels.filter(pl.col("field").is_in([*form.fields]))
    assert fields.height == labels["task_id"].n_unique() * len(raters) * len(form.fields)
    values = {(name, value) for name, field in form.fields.items() for value in field.values}
    assert set(fields.select("field", "value").rows()) == values


def test_draws_are_stable() -> None:
    """Labels are those of earlier versions, digit by digit; an adjudicator answers each waiting field once."""
    answers = simulated.adjudicate(stages.list_to_adjudicate(DECISIONS))
    labels = [LABELS, answers, ANSWERS, GRADES, BOTH_GRADES]
    hashes = [hashlib.sha256(frame.write_ndjson().encode()).hexdigest()[:8] for frame in labels]
    assert hashes == ["dd461dff", "f4ade6ca", "d623c52d", "d4fa40cc", "0cdd7e50"]
    waiting = stages.list_to_adjudicate(DECISIONS)
    answers, cell = simulated.adjudicate(waiting), ["task_id", "round", "field"]
    assert answers.select(cell).sort(cell).equals(waiting.select(cell).sort(cell))
    assert answers.equals(simulated.adjudicate(waiting.reverse()))
    assert answers[:5].equals(simulated.adjudicate(waiting.join(answers[:5], on=cell, how="semi")))


@pytest.mark.parametrize(
    ("draw", "tasks"),
    [
        (simulated.label, TASKS),
        (simulated.grade, TASKS),
        (lambda tasks: simulated.answer(tasks, ITEMS.reverse()), CLOZE),
        (lambda tasks: simulated.grade(tasks, form=compression.FORM), TASKS),
    ],
)
@given(rows=st.lists(st.integers(0, 399), min_size=1, max_size=8, unique=True))
@settings(max_examples=8, deadline=None)
def test_a_task_does_not_depend_on_others(
    draw: Callable[[pl.DataFrame], pl.DataFrame], tasks: pl.DataFrame, rows: list[int]
) -> None:
    """Any tasks in any order get the labels that they get among all others."""
    expected = draw(tasks).join(tasks[rows], on="task_id", how="semi", maintain_order="left")
    assert draw(tasks[rows]).equals(expected)


def test_the_process_comes_to_an_end() -> None:
    """After raters, adjudicator, and both again, nothing is open, no label was in vain, and each end occurs."""
    labels, task_ids = LABELS, TASKS["task_id"]
    for in_round in (1, 2):
        waiting = stages.list_to_adjudicate(stages.decide(task_ids, labels))
        assert set(waiting["round"]) == {in_round}
        labels = pl.concat([labels, simulated.adjudicate(waiting)])
        tables.Labels.validate(labels.with_columns(project=pl.lit("demo")))
        sent_back = stages.list_to_relabel(stages.decide(task_ids, labels).annotations)
        if in_round == 1:
            assert sent_back.height > 0
            labels = pl.concat([labels, simulated.label(TASKS, sent_back)])
    decisions = stages.decide(task_ids, labels)
    assert sent_back.height == decisions.dropped.height == 0
    assert "open" not in decisions.annotations["state"]
    ends = {"unanimous", "adjudicator", "adjudicator_deleted", "all_different", "specious_twice"}
    assert set(decisions.annotations["reason"]) == ends


@pytest.mark.parametrize("form", [quality.FORM, compression.FORM])
def test_assigned_raters_grade_alone(form: Form) -> None:
    """Who is assigned a task grades it as all would; the means are those of the papers (AAC-10, NDD-36)."""
    grades = simulated.grade(TASKS, form=form)
    assigned = grading.assign(TASKS["task_id"], simulated.GRADERS)
    of_assigned = simulated.grade(TASKS, assigned=assigned, form=form)
    assert of_assigned.select("task_id", "rater_id").unique(maintain_order=True).equals(assigned)
    pair = ["task_id", "rater_id"]
    assert of_assigned.equals(grades.join(assigned, on=pair, how="semi", maintain_order="left"))
    means = dict(grades.group_by("field").agg(pl.col("value").cast(pl.Int64).mean()).rows())
    # sds of about 1.4 over 600 tasks, and one grade off at the ends: four standard errors are .23
    papers = {"quality": 3.6} if form is quality.FORM else {"syntax": 3.19, "semantics": 2.67}
    assert means == pytest.approx(papers, abs=0.12 if form is quality.FORM else 0.23)
