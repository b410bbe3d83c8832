"""Simulated raters: labels that fit the contracts, the same for a task whatever the other tasks are."""

import hashlib
from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import tables
from pipeline.label import assignment, compression, label_files, quality, questionnaire, schema, simulated, stages
from pipeline.label.questionnaire import FORM
from pipeline.label.schema import AGAIN, DELETE, FIELDS, NOTES, Form

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


def four_errors(share: float, count: int) -> float:
    """Return four standard errors of a share."""
    return 4 * float((share * (1 - share) / count) ** 0.5) + 1e-9


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
    """Labels are those of earlier versions, digit by digit: a demonstration shows the same numbers after an update."""
    answers = simulated.adjudicate(stages.list_to_adjudicate(DECISIONS))
    labels = [LABELS, answers, ANSWERS, GRADES, BOTH_GRADES]
    hashes = [hashlib.sha256(frame.write_ndjson().encode()).hexdigest()[:8] for frame in labels]
    assert hashes == ["dd461dff", "f4ade6ca", "d623c52d", "d4fa40cc", "0cdd7e50"]


def test_notes_are_sound() -> None:
    """Some of those who see a subtext leave notes, and who sees another figure names it; spans are mostly marked."""
    assert DECISIONS.dropped.height == 0
    notes = LABELS.filter(pl.col("field").is_in([*NOTES]))
    assert set(notes["field"]) == set(NOTES)
    person = ["task_id", "rater_id"]
    subtexts, meanings = LABELS.filter(field="subtext", value="1"), notes.filter(field="meaning")
    assert meanings.join(subtexts, on=person, how="anti").height == 0
    assert 0.4 < meanings.height / subtexts.height < 0.6  # half of them; 4 standard errors of about 630 are 0.08
    figures = LABELS.filter(field="other", value="1").select(person).sort(person)
    assert notes.filter(field="rhetoric").select(person).sort(person).equals(figures)
    spans = ANSWERS.filter(pl.col("field").is_in([*FORM.notes]))
    assert 0.9 < spans.height / (400 * len(simulated.READERS) * 2) < 1


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


def test_rounds_and_raters_differ() -> None:
    """Raters copy neither each other nor, in round 2, themselves."""
    second_round = simulated.label(TASKS, TASKS.select("task_id", field=pl.lit("subtext")))
    columns = [
        tuple(labels.filter(rater_id=rater, field="subtext").sort("task_id")["value"])
        for labels in (LABELS, second_round)
        for rater in simulated.RATER_IDS
    ]
    assert len(set(columns)) == 6


@pytest.mark.parametrize("accuracy", [0.0, 0.5, 0.9, 1.0])
def test_raters_are_as_accurate_as_set(accuracy: float) -> None:
    """In each field the share of true labels is the accuracy, within four standard errors; at 1 all are unanimous."""
    labels = simulated.label(TASKS, accuracy=accuracy)
    true_values = simulated.draw_truth(TASKS["task_id"]).rename({"value": "true"})
    compared = labels.join(true_values, on=["task_id", "field"])
    shares = compared.group_by("field").agg(share=(pl.col("value") == pl.col("true")).mean())
    assert shares.height == 8
    assert all(share == pytest.approx(accuracy, abs=four_errors(accuracy, 1800)) for share in shares["share"])
    if accuracy == 0:  # a wrong label is any other value
        assert compared.filter(field="emotion", true="None")["value"].n_unique() == 8
    if accuracy == 1:
        assert set(stages.decide(TASKS["task_id"], labels).annotations["reason"]) == {"unanimous"}


def test_classes_are_skewed() -> None:
    """Most comments play on no sound, a third or so have subtext; every value of every field occurs somewhere."""
    truth = simulated.draw_truth(build_tasks(4000)["task_id"])
    share = {row[:2]: row[2] / 4000 for row in truth.group_by("field", "value").len().iter_rows()}
    assert share["homophonic", "-1"] == pytest.approx(0.95, abs=0.015)
    assert share["subtext", "1"] == pytest.approx(0.35, abs=0.031)
    assert set(share) == {(name, value) for name, field in FIELDS.items() for value in field.values}


def test_the_process_comes_to_an_end() -> None:
    """After raters, adjudicator, and both again, nothing is open, no label was in vain, and each end occurs."""
    labels, task_ids = LABELS, TASKS["task_id"]
    for in_round in (1, 2):
        waiting = stages.list_to_adjudicate(stages.decide(task_ids, labels))
        assert set(waiting["round"]) == {in_round}
        labels = pl.concat([labels, simulated.adjudicate(waiting, again_share=0.3)])
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


def test_an_adjudicator_answers_all_that_waits() -> None:
    """One answer for each waiting field, whatever the order; again and delete in their shares; else the truth."""
    waiting = stages.list_to_adjudicate(DECISIONS)

    def adjudicate(rows: pl.DataFrame) -> pl.DataFrame:
        return simulated.adjudicate(rows, accuracy=1, again_share=0.2, delete_share=0.1)

    answers, cell = adjudicate(waiting), ["task_id", "round", "field"]
    assert answers.select(cell).sort(cell).equals(waiting.select(cell).sort(cell))
    assert answers.equals(adjudicate(waiting.reverse()))
    assert answers[:5].equals(adjudicate(waiting.join(answers[:5], on=cell, how="semi")))
    assert (answers["value"] == AGAIN).mean() == pytest.approx(0.2, abs=four_errors(0.2, waiting.height))
    assert (answers["value"] == DELETE).mean() == pytest.approx(0.1, abs=four_errors(0.2, waiting.height))
    values = answers.filter(~pl.col("value").is_in([AGAIN, DELETE]))
    assert values.join(simulated.draw_truth(TASKS["task_id"]), on=["task_id", "field", "value"], how="anti").height == 0


def test_nothing_to_do_is_no_error() -> None:
    """No tasks, no readers, or nothing that waits, give no rows of the same columns."""
    for labels in (
        simulated.label(TASKS.clear()),
        simulated.label(TASKS, TASKS.clear().select("task_id", field="text")),
        simulated.adjudicate(stages.list_to_adjudicate(DECISIONS).clear()),
        simulated.answer(CLOZE, ITEMS, readers={}),
        simulated.answer(CLOZE.clear(), ITEMS),
        simulated.grade(TASKS.clear()),
        simulated.grade(TASKS, []),
    ):
        assert labels.schema == LABELS.schema


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_readers_are_as_accurate_as_set(share: float) -> None:
    """After reading a sound item the share of right answers is the reader's, before it a third, in four errors."""
    answers = questionnaire.build_answers(simulated.answer(CLOZE, ITEMS, readers={"amy": share}), CLOZE)
    flaws = CLOZE.select("task_id", "item_id").join(simulated.draw_flaws(CLOZE["task_id"]), on="task_id")
    sound = answers.join(flaws.filter(pl.col("flaw").is_null()), on="item_id").join(ITEMS, on="item_id")
    assert 290 < sound.height < 350  # 320 expected; 4 standard deviations are 32
    assert (sound["after"] == sound["label"]).mean() == pytest.approx(share, abs=four_errors(share, sound.height))
    assert (sound["before"] == sound["label"]).mean() == pytest.approx(0.33, abs=0.11)
    assert not (answers["after"] == answers["second"]).any()


@pytest.mark.parametrize("form", [quality.FORM, compression.FORM])
def test_assigned_raters_grade_alone(form: Form) -> None:
    """Who is assigned a task grades it as all would; the means are those of the papers (AAC-10, NDD-36)."""
    grades = simulated.grade(TASKS, form=form)
    assigned = assignment.assign(TASKS["task_id"], simulated.GRADERS)
    of_assigned = simulated.grade(TASKS, assigned=assigned, form=form)
    assert of_assigned.select("task_id", "rater_id").unique(maintain_order=True).equals(assigned)
    pair = ["task_id", "rater_id"]
    assert of_assigned.equals(grades.join(assigned, on=pair, how="semi", maintain_order="left"))
    means = dict(grades.group_by("field").agg(pl.col("value").cast(pl.Int64).mean()).rows())
    # sds of about 1.4 over 600 tasks, and one grade off at the ends: four standard errors are .23
    papers = {"quality": 3.6} if form is quality.FORM else {"syntax": 3.19, "semantics": 2.67}
    assert means == pytest.approx(papers, abs=0.12 if form is quality.FORM else 0.23)


@pytest.mark.parametrize("accuracy", [0.0, 0.8, 1.0])
@pytest.mark.parametrize("form", [quality.FORM, compression.FORM])
def test_graders_scatter_around_the_truth(form: Form, accuracy: float) -> None:
    """The share of true grades of a field is the accuracy; no grade is off by more than one, inwards at the ends."""
    place = pl.int_range(pl.len())
    grades = {"quality": place % 5 + 1, "syntax": place % 6, "semantics": 5 - place % 6}
    truth = pl.concat([TASKS.select("task_id", field=pl.lit(field), grade=grades[field]) for field in form.fields])
    labels = simulated.grade(TASKS, accuracy=accuracy, truth=truth, form=form)
    compared = labels.join(truth, on=["task_id", "field"]).with_columns(pl.col("value").cast(pl.Int64))
    for field, field_schema in form.fields.items():
        rows = compared.filter(field=field)
        offset = rows["value"] - rows["grade"]
        assert (offset == 0).mean() == pytest.approx(accuracy, abs=four_errors(accuracy, 3000))
        assert set(offset) == ({-1, 0, 1} if accuracy == 0.8 else {0} if accuracy else {-1, 1})
        assert set(rows["value"]) == {*map(int, field_schema.values)}


def test_a_form_with_one_grade_is_graded_as_comments_are() -> None:
    """The first field draws what the only one draws: another scale moves the grades, and no draw is taken twice."""
    truth = TASKS.select("task_id", grade=pl.lit(3))

    def grade(form: Form) -> pl.DataFrame:
        fields = [truth.with_columns(field=pl.lit(field)) for field in form.fields]
        return simulated.grade(TASKS, truth=pl.concat(fields), form=form)

    both = grade(compression.FORM)
    first, second = (both.filter(field=field)["value"] for field in compression.FIELDS)
    assert first.equals(grade(quality.FORM)["value"])  # at 3 neither scale has an end within one
    assert 0.55 < (first == second).mean() < 0.8  # both true .64, both wrong alike .02; 4 standard errors are .035
