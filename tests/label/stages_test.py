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
from pipeline.label import stages
from pipeline.label.schema import EMOTIONS, FIELDS, NOTES, TAGS
from pipeline.label.stages import AGAIN, DELETE, Decisions, decide

TRIPLES = list(itertools.product(TAGS, repeat=3))
ANSWERS = (None, *TAGS, AGAIN, DELETE)
START = datetime(2026, 11, 19, tzinfo=UTC)
Row = dict[str, Any]


def task(number: int) -> str:
    """An id as the contract wants it."""
    return f"{number:032x}"


def row(number: int, rater: str, field: str, value: str, **more: Any) -> Row:
    """One label; `at` in minutes, null without it."""
    at = more.pop("at", None)
    told = {"round": 1, "stage": 1, "tool": "test"} | more
    when = None if at is None else START + timedelta(minutes=at)
    return {"task_id": task(number), "rater_id": rater, "field": field, "value": value, "labelled_at": when} | told


def whole(number: int, rater: str, at: int | None = None, **said: str) -> list[Row]:
    """A rater's labels of a whole task in round 1: no, and no emotion, unless something else is said."""
    values = {name: "None" if name == "emotion" else "-1" for name in FIELDS} | said
    return [row(number, rater, name, value, at=at) for name, value in values.items()]


def three(number: int, values: Sequence[str], field: str = "subtext") -> list[Row]:
    """Three raters' labels of a whole task who agree in all but one field."""
    return [told for n, value in enumerate(values) for told in whole(number, f"r{n}", n, **{field: value})]


def frame(rows: list[Row]) -> pl.DataFrame:
    """Labels as in the contract, without project."""
    types = {name: kind for name, kind in tables.empty("labels").schema.items() if name != "project"}
    return pl.DataFrame(rows, schema=types)


def decided(rows: list[Row], count: int = 1) -> Decisions:
    """What becomes of tasks 0, 1, …"""
    return decide(pl.Series("task_id", [task(n) for n in range(count)]), frame(rows))


def reasons(found: Decisions) -> list[tuple[str, str, int, str]]:
    """Rater, field, round and reason of what was dropped."""
    return [*found.dropped.select("rater_id", "field", "round", "reason").iter_rows()]


def of(found: Decisions, field: str = "subtext", number: int = 0) -> tuple[str, str | None, str, int, str]:
    """State, value, reason, round and pattern of a field."""
    row = found.annotations.filter(task_id=task(number), field=field)
    return row.select("state", "value", "reason", "round", "pattern").row(0)


# what CSD, section 3.2, and the rules of the process say, by answer and round; V is the adjudicator's value
PARTLY = {
    (None, 1): ("open", "to_adjudicate"),
    (None, 2): ("open", "to_adjudicate"),
    ("V", 1): ("adjudicated", "adjudicator"),
    ("V", 2): ("adjudicated", "adjudicator"),
    (AGAIN, 1): ("open", "to_relabel"),
    (AGAIN, 2): ("deleted", "specious_twice"),
    (DELETE, 1): ("deleted", "adjudicator_deleted"),
    (DELETE, 2): ("deleted", "adjudicator_deleted"),
}
TABLE = {
    "partly": PARTLY,
    "different": PARTLY | dict.fromkeys([(DELETE, 1), (DELETE, 2)], ("deleted", "all_different")),
}


def verdict(values: Sequence[str], answer: str | None, in_round: int) -> tuple[str, str | None, str, int, str]:
    """State, value, reason, round and pattern of one field, by the table."""
    if len(values) < 3:  # nothing is decided, and no answer is heard
        return "open", None, "too_few_raters" if in_round == 1 else "to_relabel", in_round, "none"
    if len(set(values)) == 1:  # adopted, whatever anybody answers
        return "adopted", values[0], "unanimous", in_round, "same"
    pattern = "partly" if len(set(values)) == 2 else "different"
    state, reason = TABLE[pattern][answer if answer in (None, AGAIN, DELETE) else "V", in_round]
    return state, answer if state == "adjudicated" else None, reason, in_round, pattern


def history(number: int, rounds: Sequence[tuple[Sequence[str], str | None]], field: str = "subtext") -> list[Row]:
    """Labels of one field in one or two rounds, each with an answer or none, in order of time."""
    rows = []
    for in_round, (values, answer) in enumerate(rounds, 1):
        if in_round == 1:
            rows += three(number, values, field)
        else:
            rows += [row(number, f"s{n}", field, v, round=2, at=20 + n) for n, v in enumerate(values)]
        if answer:
            rows.append(row(number, "judge", field, answer, round=in_round, stage=2, at=in_round * 15 + 5))
    return rows


def by_hand(rounds: Sequence[tuple[Sequence[str], str | None]]) -> tuple[str, str | None, str, int, str]:
    """What the table makes of the same, round by round."""
    first = verdict(*rounds[0], 1)
    return verdict(*[*rounds, ((), None)][1], 2) if first[2] == "to_relabel" else first


def test_tables_are_decided_as_single_fields() -> None:
    """For all triples, answers and rounds the table's verdict is the single field's; the rest is adopted."""
    ways = [[(values, answer)] for values, answer in itertools.product(TRIPLES, ANSWERS)]
    ways += [[(("1", "0", "-1"), AGAIN), *way] for way in ways]
    found = decided([told for number, way in enumerate(ways) for told in history(number, way)], len(ways))
    tables.Annotations.validate(found.annotations.with_columns(project=pl.lit("demo")))
    assert found.annotations.height == len(ways) * 8
    judged = found.annotations.filter(field="subtext").sort("task_id")
    columns = judged.select("state", "value", "reason", "round", "pattern").rows()
    assert columns == [by_hand(way) for way in ways]
    assert set(found.annotations.filter(pl.col("field") != "subtext")["reason"]) == {"unanimous"}


emotions = st.lists(st.sampled_from(EMOTIONS[:4]), min_size=0, max_size=3)
emotion_rounds = st.tuples(emotions, st.none() | st.sampled_from([*EMOTIONS, AGAIN, DELETE]))


@given(st.lists(st.lists(emotion_rounds, min_size=1, max_size=2), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_histories_are_decided_as_single_fields(ways: list[list[tuple[list[str], str | None]]]) -> None:
    """Tables of any histories, unfinished ones too, are decided as each field alone, and nothing is lost."""
    rows = [told for number, way in enumerate(ways) for told in history(number, way, "emotion")]
    found = decided(rows, len(ways))
    assert found.kept.height + found.dropped.height == len(rows)
    for number, way in enumerate(ways):
        assert of(found, "emotion", number) == by_hand(way)


@given(
    st.tuples(*[st.sampled_from(TAGS)] * 3), st.tuples(*[st.sampled_from(TAGS)] * 3), *[st.sampled_from(ANSWERS)] * 2
)
@settings(max_examples=60, deadline=None)
def test_no_path_keeps_a_field_open(
    first: tuple[str, ...], second: tuple[str, ...], one: str | None, two: str | None
) -> None:
    """Label by label a field either has ended for good or waits for somebody; two failed rounds delete it (CSD-15)."""
    rows = history(0, [(first, one), (second, two)])
    # the same task again and again, with one label more each time
    steps = [0, 8, 16, *range(24, len(rows) + 1)]
    found = decided([told | {"task_id": task(n)} for n, stop in enumerate(steps) for told in rows[:stop]], len(steps))
    path = [of(found, number=number) for number in range(len(steps))]
    waits = {"too_few_raters": {1}, "to_adjudicate": {1, 2}, "to_relabel": {2}}
    for before, after in itertools.pairwise(path):
        assert before[0] == "open" or before == after
        assert before[3] <= after[3] <= 2
    for state, value, reason, in_round, _ in path:
        assert in_round in waits[reason] if state == "open" else state in {"adopted", "adjudicated", "deleted"}
        assert (value is not None) == (state in {"adopted", "adjudicated"})
    if one and two:
        assert path[-1][0] != "open"
    if one == two == AGAIN and len(set(first)) > 1 and len(set(second)) > 1:
        assert path[-1][:4] == ("deleted", None, "specious_twice", 2)


def test_a_repeated_label_counts_once() -> None:
    """A rater who says the same twice is heard once, with the time of the first."""
    found = decided([*three(0, "111"), row(0, "r0", "subtext", "1", at=9), row(0, "r0", "subtext", "1")])
    assert reasons(found) == [("r0", "subtext", 1, "duplicate")] * 2
    assert found.kept.filter(rater_id="r0", field="subtext")["labelled_at"].item() == START
    assert of(found) == ("adopted", "1", "unanimous", 1, "same")


def test_the_later_label_counts() -> None:
    """A rater who says something else later has changed their mind; what was said before is kept as a reason only."""
    more = [row(0, "r0", "subtext", "-1", at=9), row(0, "r0", "subtext", "1", at=10)]
    assert of(decided([*three(0, ("1", "1", "1")), more[0]])) == ("open", None, "to_adjudicate", 1, "partly")
    found = decided([*three(0, ("1", "1", "1")), *more])
    assert reasons(found) == [("r0", "subtext", 1, "duplicate"), ("r0", "subtext", 1, "superseded")]
    assert of(found)[1] == "1"


@pytest.mark.parametrize("at", [None, 0])
def test_contradictions_are_refused(at: int | None) -> None:
    """Two values of one rater without times, or at the same time, are named: nobody knows which counts."""
    rows = [*three(0, ("1", "1", "1")), row(0, "r0", "subtext", "-1", at=at)]
    with pytest.raises(
        BadInput, match=f"task {task(0)}, rater r0, subtext, round 1: said '-1' and '1', and labelled_at"
    ):
        decided(rows)
    with pytest.raises(BadInput, match="said '-1' and '1'"):
        decided(rows[::-1])
    with pytest.raises(BadInput, match="said '-1' and '1'"):
        decided([told | {"labelled_at": None} for told in rows])


def test_only_the_first_three_count() -> None:
    """A fourth rater is late, by the time of finishing, whatever the name."""
    rows = [*three(0, ("1", "1", "1")), *whole(0, "a", 7), row(0, "a", "plain", "too late", at=7)]
    found = decided(rows)
    assert reasons(found) == [("a", name, 1, "late") for name in sorted([*FIELDS, "plain"])]
    assert of(found)[0] == "adopted"


def test_who_finishes_late_takes_no_place() -> None:
    """A rater who begins first and finishes last does not change the three whom the adjudicator saw."""
    slow = whole(0, "slow", -5)
    slow[-1]["labelled_at"] = START + timedelta(minutes=99)
    rows = [*three(0, ("1", "1", "-1")), row(0, "judge", "subtext", "0", stage=2, at=50)]
    for begun in (slow[:-1], slow):
        found = decided([*begun, *rows])
        assert of(found) == ("adjudicated", "0", "adjudicator", 1, "partly")
        assert {(r[0], r[3]) for r in reasons(found)} == {("slow", "incomplete" if begun != slow else "late")}


def test_without_times_names_decide() -> None:
    """Raters without times come after those with, in order of their names, in any order of the rows."""
    rows = [told for rater in "dbca" for told in whole(0, rater)]
    assert {r[0] for r in reasons(decided(rows))} == {"d"}
    assert {r[0] for r in reasons(decided([*rows, *whole(0, "z", 5)]))} == {"c", "d"}
    half = [*whole(0, "z", 5)[:-1], whole(0, "z")[-1]]  # one time missing: when z finished is not known
    assert {r[0] for r in reasons(decided([*rows, *half]))} == {"d", "z"}


def test_incomplete_raters_do_not_count() -> None:
    """All that a rater says who left out a field is set aside, so that the three are the same in all fields."""
    rows = [*three(0, ("1", "1", "1"))[:-1], row(0, "r2", "plain", "not heard")]
    found = decided(rows)
    assert {(r[0], r[3]) for r in reasons(found)} == {("r2", "incomplete")}
    assert found.dropped.height == 8
    assert set(found.annotations["reason"]) == {"too_few_raters"}
    again = decided([*rows, *whole(0, "r3", 9, subtext="1")])
    assert set(again.annotations["reason"]) == {"unanimous"}


def test_the_adjudicator_is_a_fourth_person() -> None:
    """An answer by one of the three is void, and the field still waits; one by a late rater is heard."""
    rows = three(0, ("1", "1", "-1"))
    found = decided([*rows, row(0, "r2", "subtext", "-1", stage=2, at=30), row(0, "r2", "plain", "mine", stage=2)])
    assert reasons(found) == [
        ("r2", "plain", 1, "adjudicator_was_rater"),
        ("r2", "subtext", 1, "adjudicator_was_rater"),
    ]
    assert of(found)[2] == "to_adjudicate"
    found = decided([*rows, *whole(0, "r9", 9), row(0, "r9", "subtext", "-1", stage=2, at=30)])
    assert of(found)[2] == "adjudicator"


def test_the_first_answer_counts() -> None:
    """A second adjudicator of a field is late; of another field they are heard."""
    rows = three(0, ("1", "1", "-1"))
    rows += [row(0, "r0", "other", "1", at=1)]  # a change of mind: `other` is partly different too
    rows += [row(0, "b", "subtext", "0", stage=2, at=30), row(0, "a", "subtext", "1", stage=2, at=31)]
    found = decided([*rows, row(0, "a", "other", "-1", stage=2, at=31)])
    assert reasons(found) == [("a", "subtext", 1, "late"), ("r0", "other", 1, "superseded")]
    assert (of(found)[1], of(found, "other")[1]) == ("0", "-1")


def test_answers_to_nothing_are_dropped() -> None:
    """An answer to a field in which three agree, or that has no three yet, does not count."""
    rows = [*three(0, ("1", "1", "1")), row(0, "judge", "subtext", DELETE, stage=2, at=30)]
    assert reasons(decided(rows)) == [("judge", "subtext", 1, "nothing_to_adjudicate")]
    assert of(decided(rows))[1] == "1"
    assert ("judge", "subtext", 1, "too_few_raters") in reasons(decided(rows[8:]))


def test_round_2_is_for_fields_sent_there() -> None:
    """Only the field sent to round 2 is labelled anew; labels and notes of what was not sent were not asked."""
    rows = history(0, [(("1", "0", "-1"), AGAIN)])
    sent = decided(rows)
    assert stages.list_to_relabel(sent.annotations).rows() == [(task(0), "subtext")]
    anew = [row(0, f"r{n}", "subtext", "1", round=2) for n in range(3)]  # the same people may label again
    found = decided([*rows, *anew, row(0, "r0", "sarcasm", "1", round=2), row(0, "r0", "plain", "so", round=2)])
    assert reasons(found) == [("r0", "sarcasm", 2, "not_asked")]
    assert of(found) == ("adopted", "1", "unanimous", 2, "same")
    assert of(found, "sarcasm")[1] == "-1"
    calm = decided([*three(0, ("1", "1", "1")), *anew, row(0, "r0", "plain", "so", round=2)])
    assert {r[3] for r in reasons(calm)} == {"not_asked"}
    assert calm.dropped.height == 4


def test_unknown_tasks_are_dropped() -> None:
    """Labels of tasks that the project does not have are reported; tasks without labels wait for raters."""
    found = decided(three(7, ("1", "1", "1")), 1)
    assert {r[3] for r in reasons(found)} == {"unknown_task"}
    assert found.dropped.height == 24
    assert set(found.annotations["reason"]) == {"too_few_raters"}
    assert found.annotations["field"].to_list() == [*FIELDS]


@pytest.mark.parametrize(
    ("field", "value", "stage", "told"),
    [
        ("subtext", AGAIN, 1, "subtext, stage 1: expected 1, 0, -1, found 'again'"),
        ("subtext", "joy", 2, "subtext, stage 2: expected 1, 0, -1, again, delete, found 'joy'"),
        ("emotion", "1", 1, "emotion, stage 1: expected anger, .*, None, found '1'"),
        ("irony", "1", 1, "irony, stage 1: expected a field of subtext, "),
    ],
)
def test_values_of_no_set_are_refused(field: str, value: str, stage: int, told: str) -> None:
    """A value that is not the field's, `again` from a rater, and a field that there is not: refused by name."""
    with pytest.raises(BadInput, match=f"task {task(0)}, rater r0, {told}"):
        decided([*three(0, ("1", "1", "1"))[1:], row(0, "r0", field, value, stage=stage)])


@pytest.mark.parametrize("more", [{"round": 3}, {"stage": 3}])
def test_there_are_two_rounds_and_two_stages(more: dict[str, int]) -> None:
    """A label of a third round or stage is refused, not passed over."""
    with pytest.raises(BadInput, match=r"rater r0, plain: (round|stage) should be 1 or 2, found 3"):
        decided([row(0, "r0", "plain", "so", **more)])


@st.composite
def messes(draw: st.DrawFn) -> list[Row]:
    """Labels with all kinds of trouble: times are unlike each other, so that no contradiction is without an answer."""
    people, numbers = st.sampled_from("abcdef"), st.integers(0, 2)
    rows: list[Row] = []
    for number, names in draw(st.lists(st.tuples(numbers, st.lists(people, max_size=5)), max_size=4)):
        for name in names:
            part = whole(number, name, 0, subtext=draw(st.sampled_from(TAGS)), emotion=draw(st.sampled_from(EMOTIONS)))
            rows += part[draw(st.sampled_from((0, 0, 0, 1))) :]
    one = st.tuples(
        numbers, people, st.sampled_from(("subtext", "emotion", "plain", "span")), st.sampled_from((1, 2)),
        st.sampled_from((1, 2, 2)),
    )  # fmt: skip
    for number, name, field, in_round, stage in draw(st.lists(one, max_size=30)):
        more = (AGAIN, DELETE) if stage == 2 else ()
        allowed = (*FIELDS[field].values, *more) if field in FIELDS else ("x", "yy")
        rows.append(row(number, name, field, draw(st.sampled_from(allowed)), round=in_round, stage=stage))
    times = draw(st.permutations(range(len(rows))))
    return [told | {"labelled_at": START + timedelta(minutes=at)} for told, at in zip(rows, times, strict=True)]


@given(messes(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_no_label_is_lost(rows: list[Row], chance: Any) -> None:
    """Every label is kept or dropped with a reason; order makes no difference; the kept ones keep the rules."""
    found = decided(rows, 2)  # task 2 is unknown
    assert found.kept.height + found.dropped.height == len(rows)
    assert found.dropped["reason"].null_count() == 0
    mixed = chance.sample(rows, len(rows))
    for one, other in zip(found, decided(mixed, 2), strict=True):
        assert one.equals(other)
    again = decide(pl.Series([task(0), task(1)]), found.kept)
    assert again.dropped.height == 0
    assert again.annotations.equals(found.annotations)
    assert again.kept.equals(found.kept)

    tables.Annotations.validate(found.annotations.with_columns(project=pl.lit("demo")))
    fields = found.kept.filter(~pl.col("field").is_in([*NOTES]))
    cells = fields.group_by("task_id", "round", "stage", "field").agg(pl.col("rater_id").sort())
    raters = cells.filter(stage=1)
    assert raters["rater_id"].list.len().max() in {None, 1, 2, 3}
    assert raters["rater_id"].list.eval(pl.element().is_duplicated().any()).list.first().sum() == 0
    assert raters.group_by("task_id", "round").agg(pl.col("rater_id").n_unique())["rater_id"].max() in {None, 1}
    assert cells.filter(stage=2)["rater_id"].list.len().max() in {None, 1}
    person = ["task_id", "round", "rater_id"]
    assert found.kept.filter(stage=2).join(found.kept.filter(stage=1), on=person, how="semi").height == 0
    assert stages.is_finished(found.annotations) == ("open" not in found.annotations["state"])


def test_nothing_to_decide_is_no_error() -> None:
    """No tasks and no labels give frames without rows."""
    found = decided([], 0)
    assert [part.height for part in found] == [0, 0, 0]
    assert stages.list_to_adjudicate(found).columns == ["task_id", "round", "field", "a", "b", "c"]
    assert stages.is_finished(found.annotations)
    assert stages.release(found.annotations).values.height == stages.choose_notes(found.kept).height == 0


def test_adjudicators_see_no_names() -> None:
    """Fields that wait have three values in an order that tells no rater: one in a task, mixed between tasks."""
    rows = []
    for number in range(60):
        for n, (tag, emotion) in enumerate(zip(TAGS, EMOTIONS, strict=False)):
            rows += whole(number, f"r{n}", n, subtext=tag, emotion=emotion)
    found = decided([*rows, *three(60, ("1", "1", "1"))], 61)
    waiting = stages.list_to_adjudicate(found)
    assert waiting.columns == ["task_id", "round", "field", "a", "b", "c"]
    assert waiting.select("task_id", "round", "field").rows() == [
        (task(number), 1, field) for number in range(60) for field in ("subtext", "emotion")
    ]
    tags, felt = (waiting.filter(field=name).select("a", "b", "c").rows() for name in ("subtext", "emotion"))
    assert [[TAGS.index(tag) for tag in told] for told in tags] == [[EMOTIONS.index(e) for e in told] for told in felt]
    assert set(tags) == set(itertools.permutations(TAGS))


def test_adjudicators_see_the_round_that_waits() -> None:
    """In round 2 the three new values are shown, not those of round 1; what is answered waits no more."""
    way = [(("1", "0", "-1"), AGAIN), (("1", "1", "0"), None)]
    waiting = stages.list_to_adjudicate(decided(history(0, way)))
    assert waiting["round"].to_list() == [2]
    assert sorted(waiting.select("a", "b", "c").row(0)) == ["0", "1", "1"]
    assert stages.list_to_adjudicate(decided(history(0, [way[0], (("1", "1", "0"), "1")]))).height == 0


def test_release_leaves_out_deleted_tasks() -> None:
    """A task whose required field was deleted is left out; a deleted field that is not required becomes null."""
    rows = history(0, [(("1", "0", "-1"), DELETE)]) + history(1, [(("1", "1", "-1"), DELETE)], "sarcasm")
    rows += history(2, [(("1", "1", "-1"), "0")])
    annotations = decided(rows, 3).annotations
    values, left_out = stages.release(annotations)
    assert left_out.rows() == [(task(0), "subtext", "all_different")]
    assert values.columns == ["task_id", *FIELDS]
    assert values.select("task_id", "subtext", "sarcasm", "emotion").rows() == [
        (task(1), "-1", None, "None"), (task(2), "0", "-1", "None"),
    ]  # fmt: skip
    strict = stages.release(annotations, stages.ALL)
    assert strict.left_out.rows()[1] == (task(1), "sarcasm", "adjudicator_deleted")
    assert strict.values["task_id"].to_list() == [task(2)]
    assert stages.release(annotations, ()).values.height == 3


def test_release_leaves_out_unfinished_tasks() -> None:
    """A task with an open field is not released yet, required or not; that it was deleted is said first."""
    rows = history(0, [(("1", "0", "-1"), None)], "sarcasm")
    rows += history(1, [(("1", "0", "-1"), DELETE)])
    rows += [row(1, "r0", "sarcasm", "1", at=1)]  # a change of mind: task 1 has an open field too
    values, left_out = stages.release(decided(rows, 2).annotations)
    assert left_out.rows() == [(task(0), "sarcasm", "unfinished"), (task(1), "subtext", "all_different")]
    assert values.height == 0


def test_release_refuses_unknown_fields() -> None:
    """A required field that there is not is named."""
    with pytest.raises(BadInput, match="no field 'irony'"):
        stages.release(decided([]).annotations, ("subtext", "irony"))


def note(rater: str, field: str, value: str, **more: Any) -> Row:
    """A note on task 0."""
    return row(0, rater, field, value, **more)


@pytest.mark.parametrize(
    ("given_notes", "chosen"),
    [
        ([("a", "xxx", 1, 1), ("b", "y", 1, 1), ("c", "y", 1, 1)], "y"),  # most
        ([("a", "x", 1, 1), ("b", "yy", 1, 1)], "yy"),  # longest
        ([("a", "y", 1, 1), ("b", "x", 1, 1)], "x"),  # text
        ([("a", "y", 1, 1), ("b", "y", 1, 1), ("d", "z", 1, 2)], "z"),  # the adjudicator's
        ([("d", "long", 1, 2), ("e", "z", 2, 2)], "z"),  # the adjudicator's of round 2
        ([("a", "y", 1, 1), ("a", "y", 2, 1), ("b", "xx", 1, 1)], "xx"),  # a rater counts once
    ],
)
def test_one_note_is_chosen(given_notes: list[tuple[str, str, int, int]], chosen: str) -> None:
    """The adjudicator's note, else the one most raters gave, else the longest, else the first in order of text."""
    rows = [note(who, "meaning", value, round=r, stage=s) for who, value, r, s in given_notes]
    for order in itertools.permutations(rows):
        found = stages.choose_notes(frame(list(order)))
        assert found.columns == ["task_id", *NOTES]
        assert found.rows() == [(task(0), None, None, chosen, None)]


def test_the_widest_span_is_the_longest() -> None:
    """Of spans the one that covers most is chosen, not the one with most digits."""
    assert stages.choose_notes(frame([note("a", "span", "10-12"), note("b", "span", "2-9")]))["span"].item() == "2-9"
