"""Simulated raters: labels that fit the contracts, the same for a task whatever the other tasks are."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import tables
from pipeline.errors import BadInput
from pipeline.label import assignment, compression, label_files, quality, questionnaire, schema, simulated, stages
from pipeline.label.questionnaire import FORM
from pipeline.label.schema import FIELDS, NOTES

TEXTS = ("这效率真是没谁了", "Sure, take your time, it is only a fire.", "好", "🙂👍")


def some(count: int) -> pl.DataFrame:
    """Tasks with texts."""
    return pl.DataFrame({"task_id": [f"{n:032x}" for n in range(count)], "text": [TEXTS[n % 4] for n in range(count)]})


TASKS = some(600)
LABELS = simulated.label(TASKS)
DECIDED = stages.decide(TASKS["task_id"], LABELS)


def test_labels_fit_the_contract() -> None:
    """Three raters label each field of each task, plainly named as simulated, with values of the schema."""
    tables.Labels.validate(LABELS.with_columns(project=pl.lit("demo")))
    fields = LABELS.filter(pl.col("field").is_in([*FIELDS]))
    assert fields.height == 600 * 3 * 8
    assert set(LABELS["rater_id"]) == {"simulated_1", "simulated_2", "simulated_3"}
    assert set(LABELS["tool"]) == {"simulated"}
    assert all(schema.normalise_value(*row) == row[1] for row in fields.select("field", "value").unique().iter_rows())
    assert DECIDED.dropped.height == 0


def test_notes_are_sound() -> None:
    """Some of those who see a subtext leave notes; spans lie within the text; who sees another figure names it."""
    notes = LABELS.filter(pl.col("field").is_in([*NOTES])).join(TASKS, on="task_id")
    assert set(notes["field"]) == set(NOTES)
    for value, text in notes.filter(field="span").select("value", "text").iter_rows():
        schema.parse_span(value, text)
    person = ["task_id", "rater_id"]
    saw = LABELS.filter(field="subtext", value="1").select(person)
    gave = notes.filter(field="meaning")
    assert gave.join(saw, on=person, how="anti").height == 0
    assert 0.4 < gave.height / saw.height < 0.6  # half of them; 4 standard errors of about 630 are 0.08
    named = LABELS.filter(field="other", value="1").select(person).sort(person)
    assert notes.filter(field="rhetoric").select(person).sort(person).equals(named)


@given(st.lists(st.integers(0, 599), min_size=1, max_size=8, unique=True), st.integers(0, 3))
@settings(max_examples=15, deadline=None)
def test_a_task_does_not_depend_on_others(chosen: list[int], seed: int) -> None:
    """Any tasks in any order get the labels that they get among all others; twice the same."""
    few = simulated.label(TASKS[chosen], seed=seed)
    everyone = LABELS if seed == 0 else simulated.label(TASKS[:600], seed=seed)
    assert few.equals(everyone.join(TASKS[chosen], on="task_id", how="semi", maintain_order="left"))


def test_seed_round_and_rater_make_a_difference() -> None:
    """Another seed gives another truth; raters copy neither each other nor, in round 2, themselves."""
    assert not simulated.draw_truth(TASKS["task_id"], 1).equals(simulated.draw_truth(TASKS["task_id"], 0))
    asked = TASKS.select("task_id", field=pl.lit("subtext"))
    said = {}
    for in_round, labels in ((1, LABELS), (2, simulated.label(TASKS, asked))):
        for rater in simulated.RATER_IDS:
            said[in_round, rater] = tuple(labels.filter(rater_id=rater, field="subtext").sort("task_id")["value"])
    assert len(set(said.values())) == 6


@pytest.mark.parametrize("accuracy", [0.0, 0.5, 0.9, 1.0])
def test_raters_are_as_accurate_as_told(accuracy: float) -> None:
    """In each field the share of true labels is the accuracy, within four standard errors."""
    labels = simulated.label(TASKS, accuracy=accuracy)
    both = labels.join(simulated.draw_truth(TASKS["task_id"]).rename({"value": "true"}), on=["task_id", "field"])
    shares = both.group_by("field").agg(share=(pl.col("value") == pl.col("true")).mean())
    assert shares.height == 8
    error = 4 * (accuracy * (1 - accuracy) / 1800) ** 0.5
    assert all(share == pytest.approx(accuracy, abs=error + 1e-9) for share in shares["share"])
    if accuracy == 0:  # a wrong label is any other value
        wrong = both.filter(field="emotion")
        assert wrong.filter(true="None")["value"].n_unique() == 8


def test_classes_are_skewed() -> None:
    """Most comments play on no sound, a third or so have subtext; every value of every field occurs somewhere."""
    true = simulated.draw_truth(some(4000)["task_id"])
    share = {row[:2]: row[2] / 4000 for row in true.group_by("field", "value").len().iter_rows()}
    assert share["homophonic", "-1"] == pytest.approx(0.95, abs=0.015)
    assert share["subtext", "1"] == pytest.approx(0.35, abs=0.031)
    assert set(share) == {(name, value) for name, field in FIELDS.items() for value in field.values}


def test_perfect_raters_agree() -> None:
    """With accuracy 1 all fields are adopted in round 1, and the values are the truth."""
    decided = stages.decide(TASKS["task_id"], simulated.label(TASKS, accuracy=1))
    assert set(decided.annotations["reason"]) == {"unanimous"}
    columns = ["task_id", "field", "value"]
    assert (
        decided.annotations.select(columns).sort(columns).equals(simulated.draw_truth(TASKS["task_id"]).sort(columns))
    )


def test_the_process_comes_to_an_end() -> None:
    """After raters, adjudicator, and both anew, nothing is open, no label was in vain, and each end occurs."""
    labels, task_ids = LABELS, TASKS["task_id"]
    for in_round in (1, 2):
        waiting = stages.list_to_adjudicate(stages.decide(task_ids, labels))
        assert set(waiting["round"]) == {in_round}
        labels = pl.concat([labels, simulated.adjudicate(waiting, again=0.3)])
        tables.Labels.validate(labels.with_columns(project=pl.lit("demo")))
        asked = stages.list_to_relabel(stages.decide(task_ids, labels).annotations)
        if in_round == 1:
            assert asked.height > 0
            labels = pl.concat([labels, simulated.label(TASKS, asked)])
    decided = stages.decide(task_ids, labels)
    assert asked.height == decided.dropped.height == 0
    assert stages.is_finished(decided.annotations)
    ends = {"unanimous", "adjudicator", "adjudicator_deleted", "all_different", "specious_twice"}
    assert set(decided.annotations["reason"]) == ends


def test_an_adjudicator_answers_all_that_waits() -> None:
    """One answer for each waiting field, whatever the order; again and delete in the shares told; else the truth."""
    waiting = stages.list_to_adjudicate(DECIDED)
    said = simulated.adjudicate(waiting, accuracy=1, again=0.2, delete=0.1)
    cell = ["task_id", "round", "field"]
    assert said.select(cell).sort(cell).equals(waiting.select(cell).sort(cell))
    assert said.equals(simulated.adjudicate(waiting.reverse(), accuracy=1, again=0.2, delete=0.1))
    assert said[:5].equals(simulated.adjudicate(waiting.join(said[:5], on=cell, how="semi"), 0, 1, 0.2, 0.1))
    error = 4 * (0.2 * 0.8 / waiting.height) ** 0.5
    assert (said["value"] == stages.AGAIN).mean() == pytest.approx(0.2, abs=error)
    assert (said["value"] == stages.DELETE).mean() == pytest.approx(0.1, abs=error)
    values = said.filter(~pl.col("value").is_in([stages.AGAIN, stages.DELETE]))
    assert values.join(simulated.draw_truth(TASKS["task_id"]), on=["task_id", "field", "value"], how="anti").height == 0


def test_nothing_to_do_is_no_error() -> None:
    """No tasks, or nothing that waits, give no rows of the same columns."""
    assert simulated.label(TASKS.clear()).schema == LABELS.schema
    assert simulated.adjudicate(stages.list_to_adjudicate(DECIDED).clear()).schema == LABELS.schema
    assert simulated.label(TASKS, TASKS.clear().select("task_id", field="text")).schema == LABELS.schema


def test_shares_are_checked() -> None:
    """A probability beyond 1, or shares that are more than 1 together, are refused by name."""
    with pytest.raises(BadInput, match=r"accuracy should be in 0-1, found 1\.5"):
        simulated.label(TASKS, accuracy=1.5)
    with pytest.raises(BadInput, match="accuracy should be in 0-1, found nan"):
        simulated.label(TASKS, accuracy=float("nan"))
    with pytest.raises(BadInput, match=r"again \+ delete should be in 0-1"):
        simulated.adjudicate(stages.list_to_adjudicate(DECIDED), again=0.6, delete=0.5)


ITEMS = pl.DataFrame({
    "item_id": [f"i{n}" for n in range(400)], "article": [f"{n} {TEXTS[n % 4]}" for n in range(400)],
    "question": "@placeholder .", "options": [["one", "two", "three", "four", "five"]] * 400,
    "label": [n % 5 for n in range(400)],
})  # fmt: skip
CLOZE = questionnaire.build_tasks(ITEMS)
ANSWERS = simulated.answer(CLOZE, ITEMS)


def test_answers_fit_contract_and_form() -> None:
    """Each reader answers each question of each item, plainly named as simulated; spans lie within the passage."""
    tables.Labels.validate(ANSWERS.with_columns(project=pl.lit("demo")))
    again = label_files.check_rows((("", row) for row in ANSWERS.iter_rows(named=True)), CLOZE, name="x", form=FORM)
    assert again.equals(ANSWERS)
    fields = ANSWERS.filter(pl.col("field").is_in([*FORM.fields]))
    assert fields.height == 400 * len(simulated.READERS) * len(FORM.fields)
    assert set(ANSWERS["rater_id"]) == set(simulated.READERS)
    assert set(ANSWERS["tool"]) == {"simulated"}
    assert {(f, v) for f, v in fields.select("field", "value").iter_rows()} == {
        (name, value) for name, field in FORM.fields.items() for value in field.values
    }
    spans = ANSWERS.filter(pl.col("field").is_in([*FORM.notes]))
    assert 0.9 < spans.height / (400 * len(simulated.READERS) * 2) < 1


@given(st.lists(st.integers(0, 399), min_size=1, max_size=8, unique=True), st.integers(0, 3))
@settings(max_examples=15, deadline=None)
def test_answers_to_an_item_do_not_depend_on_others(chosen: list[int], seed: int) -> None:
    """Any items in any order get the answers that they get among all others; another seed gives others."""
    few = simulated.answer(CLOZE[chosen], ITEMS.reverse(), seed)
    everyone = ANSWERS if seed == 0 else simulated.answer(CLOZE, ITEMS, seed)
    assert few.equals(everyone.join(CLOZE[chosen], on="task_id", how="semi", maintain_order="left"))
    assert few.equals(ANSWERS.join(few, on="task_id", how="semi", maintain_order="left")) == (seed == 0)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_readers_are_as_accurate_as_told(share: float) -> None:
    """After reading a sound item the share of right answers is the reader's, before it a third, in four errors."""
    said = questionnaire.build_answers(simulated.answer(CLOZE, ITEMS, readers={"amy": share}), CLOZE)
    known = said.join(CLOZE, on="item_id").join(simulated.draw_flaws(CLOZE["task_id"]), on="task_id")
    sound = known.filter(pl.col("flaw").is_null()).join(ITEMS, on="item_id")
    assert 290 < sound.height < 350  # 320 expected; 4 standard deviations are 32
    error = 4 * (share * (1 - share) / sound.height) ** 0.5
    assert (sound["after"] == sound["label"]).mean() == pytest.approx(share, abs=error + 1e-9)
    assert (sound["before"] == sound["label"]).mean() == pytest.approx(0.33, abs=0.11)
    assert not (said["after"] == said["second"]).any()


def test_readers_are_checked() -> None:
    """A probability beyond 1 or a task without an item is refused; no readers and no tasks are no error."""
    with pytest.raises(BadInput, match=r"amy should be in 0-1, found 1\.5"):
        simulated.answer(CLOZE, ITEMS, readers={"amy": 1.5})
    with pytest.raises(BadInput, match=f"task {CLOZE['task_id'][0]}: expected one of the 399 items"):
        simulated.answer(CLOZE, ITEMS[1:])
    assert simulated.answer(CLOZE, ITEMS, readers={}).schema == ANSWERS.schema
    assert simulated.answer(CLOZE.clear(), ITEMS).schema == ANSWERS.schema


GRADES = simulated.grade(TASKS)
FIVE = ["r1", "r2", "r3", "r4", "r5"]


def test_grades_fit_contract_and_form() -> None:
    """Each of five grades each task, plainly named as simulated, and all grades occur; who is assigned grades alone."""
    tables.Labels.validate(GRADES.with_columns(project=pl.lit("demo")))
    assert GRADES.schema == LABELS.schema
    again = label_files.check_rows(
        (("", row) for row in GRADES.iter_rows(named=True)), None, name="x", form=quality.FORM
    )
    assert again.equals(GRADES)
    assert GRADES.height == 600 * 5
    assert set(GRADES["tool"]) == {"simulated"}
    assert set(GRADES["value"]) == set(quality.GRADES)
    asked = assignment.assign(TASKS["task_id"], FIVE)
    some_of_them = simulated.grade(TASKS, assigned=asked)
    assert some_of_them.select("task_id", "rater_id").equals(asked)
    assert some_of_them.equals(GRADES.join(asked, on=["task_id", "rater_id"], how="semi", maintain_order="left"))


@given(st.lists(st.integers(0, 599), min_size=1, max_size=8, unique=True), st.integers(0, 3))
@settings(max_examples=15, deadline=None)
def test_grades_of_a_task_do_not_depend_on_others(chosen: list[int], seed: int) -> None:
    """Any tasks in any order get the grades that they get among all others."""
    everyone = GRADES if seed == 0 else simulated.grade(TASKS, seed=seed)
    few = simulated.grade(TASKS[chosen], FIVE[::-1], seed=seed)
    assert few.equals(everyone.join(TASKS[chosen], on="task_id", how="semi", maintain_order="left"))


@pytest.mark.parametrize("accuracy", [0.0, 0.8, 1.0])
def test_graders_scatter_around_the_truth(accuracy: float) -> None:
    """The share of true grades is the accuracy, within four standard errors, and nobody is off by more than one."""
    truth = TASKS.select("task_id", grade=pl.int_range(pl.len()) % 5 + 1)
    both = simulated.grade(TASKS, accuracy=accuracy, truth=truth).join(truth, on="task_id")
    off = both["value"].cast(pl.Int64) - both["grade"]
    assert off.abs().max() == (accuracy < 1)
    assert (off == 0).mean() == pytest.approx(accuracy, abs=4 * (accuracy * (1 - accuracy) / 3000) ** 0.5 + 1e-9)
    if accuracy < 1:
        assert set(off) >= {-1, 1}
        assert set(both["value"]) == set(quality.GRADES)


def test_simulated_grades_are_like_the_papers() -> None:
    """The mean is near the 3.6 of AAC-10; another seed gives other grades."""
    tasks = quality.build_tasks(pl.DataFrame({"item_id": ["a"], "title": ["t"], "content": ["c"], "text": ["x"]}))
    assert simulated.grade(tasks)["task_id"].to_list() == tasks["task_id"].to_list() * 5
    assert GRADES["value"].cast(pl.Int64).mean() == pytest.approx(3.6, abs=0.12)
    assert not simulated.grade(TASKS, seed=1).equals(GRADES)


def test_grading_is_checked() -> None:
    """Accuracy beyond 1, a task without a true grade and an assignment to nobody are refused; no tasks are no error."""
    with pytest.raises(BadInput, match=r"accuracy should be in 0-1, found 1\.5"):
        simulated.grade(TASKS, accuracy=1.5)
    for grade in (None, 0, 6):
        with pytest.raises(BadInput, match=f"task {0:032x}: expected a true grade from 1 to 5, found {grade}"):
            simulated.grade(TASKS[:1], truth=TASKS[:1].select("task_id", grade=pl.lit(grade, pl.Int64)))
    for task, rater in (("x", "r1"), (f"{0:032x}", "r6")):
        with pytest.raises(BadInput, match=f"assigned, task {task}, rater {rater}: expected one of the 600 tasks"):
            simulated.grade(TASKS, assigned=pl.DataFrame({"task_id": [task], "rater_id": [rater]}))
    assert simulated.grade(TASKS.clear()).schema == LABELS.schema
    assert simulated.grade(TASKS, []).schema == LABELS.schema


BOTH = simulated.grade(TASKS, form=compression.FORM)


def test_several_grades_fit_contract_and_form() -> None:
    """Each rater gives a task each grade that a form asks for, plainly named as simulated; who is assigned alone."""
    tables.Labels.validate(BOTH.with_columns(project=pl.lit("demo")))
    rows = (("", row) for row in BOTH.iter_rows(named=True))
    assert label_files.check_rows(rows, None, name="x", form=compression.FORM).equals(BOTH)
    assert set(BOTH.group_by("task_id", "rater_id").agg(pl.col("field"))["field"].list.join(" ")) == {
        "syntax semantics"
    }  # fmt: skip
    assert set(BOTH.select("field", "value").iter_rows()) == {
        (field, grade) for field in compression.FIELDS for grade in compression.GRADES
    }
    asked = assignment.assign(TASKS["task_id"], FIVE)
    told = simulated.grade(TASKS, assigned=asked, form=compression.FORM)
    assert told.height == 2 * asked.height
    assert told.equals(BOTH.join(asked, on=["task_id", "rater_id"], how="semi", maintain_order="left"))
    few = simulated.grade(TASKS[[5, 2]], form=compression.FORM)
    assert few.equals(BOTH.join(TASKS[[5, 2]], on="task_id", how="semi", maintain_order="left"))


def test_a_form_with_one_grade_is_graded_as_comments_are() -> None:
    """The first field draws what the only one draws: another scale moves the grades, and no draw is taken twice."""
    truth = TASKS.select("task_id", grade=pl.lit(3))
    one = simulated.grade(TASKS, truth=truth)
    both = pl.concat([truth.with_columns(field=pl.lit(field)) for field in compression.FIELDS])
    two = simulated.grade(TASKS, truth=both, form=compression.FORM)
    first, second = (two.filter(field=field)["value"] for field in compression.FIELDS)
    assert first.equals(one["value"])  # at 3 neither scale has an end within one
    assert 0.55 < (first == second).mean() < 0.8  # both true .64, both wrong alike .02; 4 standard errors are .035


@pytest.mark.parametrize("accuracy", [0.0, 0.8, 1.0])
def test_true_grades_are_by_field(accuracy: float) -> None:
    """Raters scatter around the true grade of each field by one at most, 0 and 5 being the ends, as often as told."""
    place = pl.int_range(pl.len())
    truth = pl.concat([
        TASKS.select("task_id", field=pl.lit("syntax"), grade=place % 6),
        TASKS.select("task_id", field=pl.lit("semantics"), grade=5 - place % 6),
    ])  # fmt: skip
    said = simulated.grade(TASKS, accuracy=accuracy, truth=truth, form=compression.FORM)
    for field in compression.FIELDS:
        both = said.filter(field=field).join(truth, on=["task_id", "field"])
        off = both["value"].cast(pl.Int64) - both["grade"]
        assert off.abs().max() == (accuracy < 1)
        assert (off == 0).mean() == pytest.approx(accuracy, abs=4 * (accuracy * (1 - accuracy) / 3000) ** 0.5 + 1e-9)


def test_drawn_grades_of_compressions_are_like_the_papers() -> None:
    """Means are near those of the systems in table 13, 3.19 and 2.67 (NDD-36)."""
    means = BOTH.group_by("field").agg(pl.col("value").cast(pl.Int64).mean()).rows()
    # sds of about 1.4 over 600 tasks, and one grade off at the ends: four standard errors are .23
    assert dict(means) == pytest.approx({"syntax": 3.19, "semantics": 2.67}, abs=0.23)


def test_true_grades_of_each_field_are_checked() -> None:
    """A true grade that is missing or off the scale is named by task and field."""
    task = f"{0:032x}"
    good = pl.DataFrame({"task_id": task, "field": ["syntax", "semantics"], "grade": [0, 5]})
    assert simulated.grade(TASKS[:1], accuracy=1, truth=good, form=compression.FORM).height == 10
    for truth, found in ((good[:1], None), (good.with_columns(grade=pl.Series([0, 6])), 6)):
        with pytest.raises(BadInput, match=f"task {task}, semantics: expected a true grade from 0 to 5, found {found}"):
            simulated.grade(TASKS[:1], truth=truth, form=compression.FORM)
