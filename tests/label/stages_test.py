"""The two-stage process: its truth table, its ends, which labels count, and what is released (CSD-15)."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import tables
from pipeline.errors import BadInput
from pipeline.label import label_files, stages
from pipeline.label.schema import AGAIN, DELETE, EMOTIONS, FIELDS, NOTES, TAGS
from pipeline.label.stages import Decisions, decide

TRIPLES = list(itertools.product(TAGS, repeat=3))
ANSWERS = (None, *TAGS, AGAIN, DELETE)
START = datetime(2026, 11, 19, tzinfo=UTC)
Row = dict[str, Any]
Rounds = Sequence[tuple[Sequence[str], str | None]]


def task_id(number: int) -> str:
    """Return an id as the contract wants it."""
    return f"{number:032x}"


def build_row(number: int, rater: str, field: str, value: str, minute: int | None = None, **more: Any) -> Row:
    """Build one label, without a time by default."""
    time = None if minute is None else START + timedelta(minutes=minute)
    row = {"task_id": task_id(number), "rater_id": rater, "field": field, "value": value, "labelled_at": time}
    return row | {"round": 1, "stage": 1, "tool": "test"} | more


def label_task(number: int, rater: str, minute: int | None = None, **changes: str) -> list[Row]:
    """Build a rater's labels of a whole task in round 1: no, and no emotion, but for the changes."""
    values = dict.fromkeys(FIELDS, "-1") | {"emotion": "None"} | changes
    return [build_row(number, rater, name, value, minute) for name, value in values.items()]


def label_thrice(number: int, values: Sequence[str], field: str = "subtext") -> list[Row]:
    """Build the labels of three raters of a whole task who agree in all but one field."""
    return [row for n, value in enumerate(values) for row in label_task(number, f"r{n}", n, **{field: value})]


def build_frame(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=label_files.COLUMNS)


def decide_tasks(rows: list[Row], count: int = 1) -> Decisions:
    """Decide tasks 0, 1, …"""
    return decide(pl.Series("task_id", [task_id(n) for n in range(count)]), build_frame(rows))


def list_dropped(decisions: Decisions) -> list[tuple[str, str, int, str]]:
    """List rater, field, round and reason of what was dropped."""
    return decisions.dropped.select("rater_id", "field", "round", "reason").rows()


def list_reasons(rows: list[Row]) -> set[tuple[str, str]]:
    """List the raters whose labels of task 0 are dropped, with the reasons."""
    return set(decide_tasks(rows).dropped.select("rater_id", "reason").rows())


def get_verdict(decisions: Decisions, field: str = "subtext", number: int = 0) -> tuple[str, str | None, str, int, str]:
    """Return state, value, reason, round and pattern of a field."""
    row = decisions.annotations.filter(task_id=task_id(number), field=field)
    return row.select("state", "value", "reason", "round", "pattern").row(0)


# what CSD, section 3.2, and the rules of the process say, by answer and round; V is the adjudicator's value
PARTLY = {
    (None, 1): ("open", "to_adjudicate"), (None, 2): ("open", "to_adjudicate"),
    ("V", 1): ("adjudicated", "adjudicator"), ("V", 2): ("adjudicated", "adjudicator"),
    (AGAIN, 1): ("open", "to_relabel"), (AGAIN, 2): ("deleted", "specious_twice"),
    (DELETE, 1): ("deleted", "adjudicator_deleted"), (DELETE, 2): ("deleted", "adjudicator_deleted"),
}  # fmt: skip
TABLE = {
    "partly": PARTLY,
    "different": PARTLY  # of three values none is chosen, and three values in round 2 are specious twice
    | {("V", 1): PARTLY[None, 1], (DELETE, 1): ("deleted", "all_different")}
    | dict.fromkeys([(None, 2), ("V", 2), (AGAIN, 2), (DELETE, 2)], ("deleted", "specious_twice")),
}


def look_up(values: Sequence[str], answer: str | None, in_round: int) -> tuple[str, str | None, str, int, str]:
    """Look up state, value, reason, round and pattern of one field in the table."""
    if len(values) < 3:  # nothing is decided, and no answer is heard
        return "open", None, "too_few_raters" if in_round == 1 else "to_relabel", in_round, "none"
    if len(set(values)) == 1:  # adopted, whatever the adjudicator answers
        return "adopted", values[0], "unanimous", in_round, "same"
    pattern = "partly" if len(set(values)) == 2 else "different"
    state, reason = TABLE[pattern][answer if answer in (None, AGAIN, DELETE) else "V", in_round]
    return state, answer if state == "adjudicated" else None, reason, in_round, pattern


def look_up_rounds(rounds: Rounds) -> tuple[str, str | None, str, int, str]:
    """Look up what becomes of a field, round by round."""
    first = look_up(*rounds[0], 1)
    return look_up(*[*rounds, ((), None)][1], 2) if first[2] == "to_relabel" else first


def build_history(number: int, rounds: Rounds, field: str = "subtext") -> list[Row]:
    """Build the labels of one field in one or two rounds, each with an answer or none, in order of time."""
    rows = []
    for in_round, (values, answer) in enumerate(rounds, 1):
        if in_round == 1:
            rows += label_thrice(number, values, field)
        else:
            rows += [build_row(number, f"s{n}", field, v, 20 + n, round=2) for n, v in enumerate(values)]
        if answer:
            rows.append(build_row(number, "judge", field, answer, in_round * 15 + 5, round=in_round, stage=2))
    return rows


def test_tables_are_decided_as_single_fields() -> None:
    """For all triples, answers and rounds the table's verdict is the single field's; the rest is adopted."""
    ways: list[Rounds] = [[(values, answer)] for values, answer in itertools.product(TRIPLES, ANSWERS)]
    ways += [[(("1", "0", "-1"), AGAIN), *way] for way in ways]
    decisions = decide_tasks([row for number, way in enumerate(ways) for row in build_history(number, way)], len(ways))
    tables.Annotations.validate(decisions.annotations.with_columns(project=pl.lit("demo")))
    assert decisions.annotations.height == len(ways) * 8
    judged = decisions.annotations.filter(field="subtext").sort("task_id")
    columns = judged.select("state", "value", "reason", "round", "pattern").rows()
    assert columns == [look_up_rounds(way) for way in ways]
    assert set(decisions.annotations.filter(pl.col("field") != "subtext")["reason"]) == {"unanimous"}


emotions = st.lists(st.sampled_from(EMOTIONS[:4]), min_size=0, max_size=3)
emotion_rounds = st.tuples(emotions, st.none() | st.sampled_from([*EMOTIONS, AGAIN, DELETE]))


@given(st.lists(st.lists(emotion_rounds, min_size=1, max_size=2), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_histories_are_decided_as_single_fields(ways: list[list[tuple[list[str], str | None]]]) -> None:
    """Tables of any histories, unfinished ones too, are decided as each field alone, and nothing is lost."""
    rows = [row for number, way in enumerate(ways) for row in build_history(number, way, "emotion")]
    decisions = decide_tasks(rows, len(ways))
    assert decisions.labels.height + decisions.dropped.height == len(rows)
    for number, way in enumerate(ways):
        assert get_verdict(decisions, "emotion", number) == look_up_rounds(way)


def test_repeats_and_changes_of_mind() -> None:
    """Who says the same twice is heard once, with the first time; of two values the later counts."""
    repeats = [build_row(0, "r0", "subtext", "1", 9), build_row(0, "r0", "subtext", "1")]
    decisions = decide_tasks([*label_thrice(0, "111"), *repeats])
    assert list_dropped(decisions) == [("r0", "subtext", 1, "duplicate")] * 2
    assert decisions.labels.filter(rater_id="r0", field="subtext")["labelled_at"].item() == START
    assert get_verdict(decisions) == ("adopted", "1", "unanimous", 1, "same")
    more = [build_row(0, "r0", "subtext", "-1", 9), build_row(0, "r0", "subtext", "1", 10)]
    verdict = get_verdict(decide_tasks([*label_thrice(0, "111"), more[0]]))
    assert verdict == ("open", None, "to_adjudicate", 1, "partly")
    decisions = decide_tasks([*label_thrice(0, "111"), *more])
    assert list_dropped(decisions) == [("r0", "subtext", 1, "duplicate"), ("r0", "subtext", 1, "superseded")]
    assert get_verdict(decisions)[1] == "1"


@pytest.mark.parametrize("minute", [None, 0])
def test_contradictions_are_refused(minute: int | None) -> None:
    """Two values of one rater without times, or at the same time, are named: which counts is unknown."""
    rows = [*label_thrice(0, "111"), build_row(0, "r0", "subtext", "-1", minute)]
    message = f"task {task_id(0)}, rater r0, subtext, round 1: has the values '-1' and '1', and labelled_at"
    for contradiction in (rows, rows[::-1], [row | {"labelled_at": None} for row in rows]):
        with pytest.raises(BadInput, match=message):
            decide_tasks(contradiction)


def test_who_finishes_late_takes_no_place() -> None:
    """A rater who begins first and finishes last does not change the three whom the adjudicator saw."""
    slow = label_task(0, "slow", -5)
    slow[-1]["labelled_at"] = START + timedelta(minutes=99)
    rows = [*label_thrice(0, ("1", "1", "-1")), build_row(0, "judge", "subtext", "0", 50, stage=2)]
    for begun, reason in ((slow[:-1], "incomplete"), (slow, "late")):
        decisions = decide_tasks([*begun, *rows])
        assert get_verdict(decisions) == ("adjudicated", "0", "adjudicator", 1, "partly")
        assert {(r[0], r[3]) for r in list_dropped(decisions)} == {("slow", reason)}


def test_without_times_names_decide() -> None:
    """Raters without times come after those with, in order of their names, in any order of the rows."""
    rows = [row for rater in "dbca" for row in label_task(0, rater)]
    assert list_reasons(rows) == {("d", "late")}
    assert list_reasons([*rows, *label_task(0, "z", 5)]) == {("c", "late"), ("d", "late")}
    half = [*label_task(0, "z", 5)[:-1], label_task(0, "z")[-1]]  # one time missing: when z finished is not known
    assert list_reasons([*rows, *half]) == {("d", "late"), ("z", "late")}


def test_incomplete_raters_do_not_count() -> None:
    """All that a rater says who left out a field is set aside, so that the three are the same in all fields."""
    rows = [*label_thrice(0, "111")[:-1], build_row(0, "r2", "plain", "not heard")]
    decisions = decide_tasks(rows)
    assert list_reasons(rows) == {("r2", "incomplete")}
    assert decisions.dropped.height == 8
    assert set(decisions.annotations["reason"]) == {"too_few_raters"}
    complete = decide_tasks([*rows, *label_task(0, "r3", 9, subtext="1")])
    assert set(complete.annotations["reason"]) == {"unanimous"}


def test_the_adjudicator_is_a_fourth_person() -> None:
    """An answer by one of the three is void, and the field still waits; one by a late rater is heard."""
    rows = label_thrice(0, ("1", "1", "-1"))
    void = [build_row(0, "r2", "subtext", "-1", 30, stage=2), build_row(0, "r2", "plain", "a note", stage=2)]
    decisions = decide_tasks([*rows, *void])
    assert list_dropped(decisions) == [("r2", field, 1, "adjudicator_was_rater") for field in ("plain", "subtext")]
    assert get_verdict(decisions)[2] == "to_adjudicate"
    late = [*label_task(0, "r9", 9), build_row(0, "r9", "subtext", "-1", 30, stage=2)]
    assert get_verdict(decide_tasks([*rows, *late]))[2] == "adjudicator"


def test_the_first_answer_counts() -> None:
    """A second adjudicator of a field is late; an answer to a field that does not wait does not count."""
    rows = label_thrice(0, ("1", "1", "-1"))
    rows += [build_row(0, "r0", "other", "1", 1)]  # a change of mind: `other` is partly different too
    for rater, field, value, minute in (("b", "subtext", "0", 30), ("a", "subtext", "1", 31), ("a", "other", "-1", 31)):
        rows.append(build_row(0, rater, field, value, minute, stage=2))
    decisions = decide_tasks(rows)
    assert list_dropped(decisions) == [("a", "subtext", 1, "late"), ("r0", "other", 1, "superseded")]
    assert (get_verdict(decisions)[1], get_verdict(decisions, "other")[1]) == ("0", "-1")
    rows = [*label_thrice(0, "111"), build_row(0, "judge", "subtext", DELETE, 30, stage=2)]
    decisions = decide_tasks(rows)
    assert list_dropped(decisions) == [("judge", "subtext", 1, "nothing_to_adjudicate")]
    assert get_verdict(decisions)[1] == "1"
    assert ("judge", "subtext", 1, "too_few_raters") in list_dropped(decide_tasks(rows[8:]))


def test_round_2_is_for_fields_sent_there() -> None:
    """Only the field sent to round 2 is labelled again; labels and notes of what was not sent were not asked."""
    rows = build_history(0, [(("1", "0", "-1"), AGAIN)])
    assert stages.list_to_relabel(decide_tasks(rows).annotations).rows() == [(task_id(0), "subtext")]
    more = [build_row(0, f"r{n}", "subtext", "1", round=2) for n in range(3)]  # the same people may label again
    more += [build_row(0, "r0", "plain", "so", round=2)]
    decisions = decide_tasks([*rows, *more, build_row(0, "r0", "sarcasm", "1", round=2)])
    assert list_dropped(decisions) == [("r0", "sarcasm", 2, "not_asked")]
    assert get_verdict(decisions) == ("adopted", "1", "unanimous", 2, "same")
    assert get_verdict(decisions, "sarcasm")[1] == "-1"
    unsent = decide_tasks([*label_thrice(0, "111"), *more])
    assert [r[3] for r in list_dropped(unsent)] == ["not_asked"] * 4


@st.composite
def messes(draw: st.DrawFn) -> list[Row]:
    """Labels with all kinds of trouble: times are unlike each other, so that no contradiction is without an answer."""
    people, numbers = st.sampled_from("abcdef"), st.integers(0, 2)
    rows: list[Row] = []
    for number, names in draw(st.lists(st.tuples(numbers, st.lists(people, max_size=5)), max_size=4)):
        for name in names:
            changes = {"subtext": draw(st.sampled_from(TAGS)), "emotion": draw(st.sampled_from(EMOTIONS))}
            rows += label_task(number, name, 0, **changes)[draw(st.sampled_from((0, 0, 0, 1))) :]
    labels = st.tuples(
        numbers, people, st.sampled_from(("subtext", "emotion", "plain", "span")), st.sampled_from((1, 2)),
        st.sampled_from((1, 2, 2)),
    )  # fmt: skip
    for number, name, field, in_round, stage in draw(st.lists(labels, max_size=30)):
        more = (AGAIN, DELETE) if stage == 2 else ()
        allowed = (*FIELDS[field].values, *more) if field in FIELDS else ("x", "yy")
        rows.append(build_row(number, name, field, draw(st.sampled_from(allowed)), round=in_round, stage=stage))
    minutes = draw(st.permutations(range(len(rows))))
    return [row | {"labelled_at": START + timedelta(minutes=n)} for row, n in zip(rows, minutes, strict=True)]


@given(messes(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_no_label_is_lost(rows: list[Row], chance: Any) -> None:
    """Every label counts or is dropped with a reason; order makes no difference; those that count keep the rules."""
    decisions = decide_tasks(rows, 2)  # task 2 is unknown
    labels, raters, answers = decisions.labels, decisions.labels.filter(stage=1), decisions.labels.filter(stage=2)
    assert labels.height + decisions.dropped.height == len(rows)
    assert decisions.dropped["reason"].null_count() == 0
    mixed = decide_tasks(chance.sample(rows, len(rows)), 2)
    assert all(part.equals(mixed_part) for part, mixed_part in zip(decisions, mixed, strict=True))
    repeated = decide(pl.Series([task_id(0), task_id(1)]), labels)
    assert repeated.dropped.height == 0
    assert repeated.annotations.equals(decisions.annotations)
    assert repeated.labels.equals(labels)

    tables.Annotations.validate(decisions.annotations.with_columns(project=pl.lit("demo")))
    cell, person = ["task_id", "round", "field"], ["task_id", "round", "rater_id"]
    is_note = pl.col("field").is_in([*NOTES])
    assert not raters.select(*person, "field").is_duplicated().any()
    cells = raters.filter(~is_note).group_by(cell).agg(pl.col("rater_id").sort())
    assert cells["rater_id"].list.len().max() in {None, 1, 2, 3}
    assert cells.group_by("task_id", "round").agg(pl.col("rater_id").n_unique())["rater_id"].max() in {None, 1}
    assert not answers.filter(~is_note).select(cell).is_duplicated().any()
    assert answers.join(raters, on=person, how="semi").height == 0


def test_adjudicators_see_no_names() -> None:
    """Fields that wait have three values of their round in an order that reveals no rater, mixed between tasks."""
    rows = []
    for number in range(60):
        for n, (tag, emotion) in enumerate(zip(TAGS, EMOTIONS, strict=False)):
            rows += label_task(number, f"r{n}", n, subtext=tag, emotion=emotion)
    waiting = stages.list_to_adjudicate(decide_tasks([*rows, *label_thrice(60, "111")], 61))
    assert waiting.columns == ["task_id", "round", "field", "a", "b", "c"]
    assert waiting.select("task_id", "round", "field").rows() == [
        (task_id(number), 1, field) for number in range(60) for field in ("subtext", "emotion")
    ]
    tags, feelings = (waiting.filter(field=name).select("a", "b", "c").rows() for name in ("subtext", "emotion"))
    assert [[*map(TAGS.index, values)] for values in tags] == [[*map(EMOTIONS.index, values)] for values in feelings]
    assert set(tags) == set(itertools.permutations(TAGS))
    first = (("1", "0", "-1"), AGAIN)
    waiting = stages.list_to_adjudicate(decide_tasks(build_history(0, [first, (("1", "1", "0"), None)])))
    assert waiting["round"].to_list() == [2]
    assert sorted(waiting.select("a", "b", "c").row(0)) == ["0", "1", "1"]
    answered = decide_tasks(build_history(0, [first, (("1", "1", "0"), "1")]))
    assert stages.list_to_adjudicate(answered).height == 0


def test_release_leaves_out_deleted_tasks() -> None:
    """A task whose required field was deleted is left out; a deleted field that is not required becomes null."""
    rows = build_history(0, [(("1", "0", "-1"), DELETE)])
    rows += build_history(1, [(("1", "1", "-1"), DELETE)], "sarcasm") + build_history(2, [(("1", "1", "-1"), "0")])
    annotations = decide_tasks(rows, 3).annotations
    values, dropped = stages.release(annotations)
    assert dropped.rows() == [(task_id(0), "subtext", "all_different")]
    assert values.columns == ["task_id", *FIELDS]
    assert values.select("task_id", "subtext", "sarcasm", "emotion").rows() == [
        (task_id(1), "-1", None, "None"), (task_id(2), "0", "-1", "None"),
    ]  # fmt: skip
    strict = stages.release(annotations, stages.ALL)
    assert strict.dropped.rows()[1] == (task_id(1), "sarcasm", "adjudicator_deleted")
    assert strict.rows["task_id"].to_list() == [task_id(2)]
    assert stages.release(annotations, ()).rows.height == 3


def test_release_leaves_out_unfinished_tasks() -> None:
    """A task with an open field is not released, required or not; an unknown required field is named."""
    rows = build_history(0, [(("1", "0", "-1"), None)], "sarcasm") + build_history(1, [(("1", "0", "-1"), DELETE)])
    rows += [build_row(1, "r0", "sarcasm", "1", 1)]  # a change of mind: task 1 has an open field too
    values, dropped = stages.release(decide_tasks(rows, 2).annotations)
    assert dropped.rows() == [(task_id(0), "sarcasm", "unfinished"), (task_id(1), "subtext", "all_different")]
    assert values.height == 0
    with pytest.raises(BadInput, match="no field 'irony'"):
        stages.release(decide_tasks([]).annotations, ("subtext", "irony"))


@pytest.mark.parametrize(
    ("field", "notes", "expected"),
    [
        ("meaning", [("a", "xxx", 1, 1), ("b", "y", 1, 1), ("c", "y", 1, 1)], "y"),  # most
        ("meaning", [("a", "x", 1, 1), ("b", "yy", 1, 1)], "yy"),  # longest
        ("meaning", [("a", "y", 1, 1), ("b", "x", 1, 1)], "x"),  # text
        ("meaning", [("a", "y", 1, 1), ("b", "y", 1, 1), ("d", "z", 1, 2)], "z"),  # the adjudicator's
        ("meaning", [("d", "long", 1, 2), ("e", "z", 2, 2)], "z"),  # the adjudicator's of round 2
        ("meaning", [("a", "y", 1, 1), ("a", "y", 2, 1), ("b", "xx", 1, 1)], "xx"),  # a rater counts once
        ("span", [("a", "10-12", 1, 1), ("b", "2-9", 1, 1)], "2-9"),  # covers most, with fewer digits
    ],
)
def test_one_note_is_chosen(field: str, notes: list[tuple[str, str, int, int]], expected: str) -> None:
    """The adjudicator's note, else the one most raters gave, else the longest, else the first in order of text."""
    rows = [build_row(0, rater, field, value, round=r, stage=s) for rater, value, r, s in notes]
    for order in itertools.permutations(rows):
        notes_of_task = stages.choose_notes(build_frame(list(order))).to_dicts()
        assert notes_of_task == [{"task_id": task_id(0)} | dict.fromkeys(NOTES) | {field: expected}]
