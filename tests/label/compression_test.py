"""Grades of compressions: the form, who gets what, systems that stay hidden, and the way back to them (NDD-36)."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.label import compression, grading, label_files, schema
from pipeline.label.compression import FIELDS, FORM, GRADES, assign, collect_grades, list_rater_tasks, sample

START = datetime(2026, 11, 20, 8, tzinfo=UTC)


def row(item_id: str, system: str, words: list[str], kept: list[bool], lang: str = "en") -> dict[str, Any]:
    return {"item_id": item_id, "system": system, "lang": lang, "words": words, "kept": kept}


CAT, WALK = ["The", "old", "cat", "slept", "."], ["我们", "昨天", "去", "公园", "。"]
MADE = pl.DataFrame([
    row("a", "ndd", CAT, [True, False, True, True, True]), row("a", "ppl", CAT, [True, True, False, True, True]),
    row("a", "gold", CAT, [True, False, True, True, True]),
    row("b", "ndd", WALK, [True, False, True, True, True], "zh"),
    row("b", "ppl", WALK, [False] * 5, "zh"), row("b", "gold", WALK, [True] * 5, "zh"),
])  # fmt: skip
TASKS, KEY = compression.build_tasks(MADE)
OF = {(item, system): task for task, item, system in KEY.iter_rows()}


def label(task: str, rater: str, field: str, value: object, minute: int | None = None, **change: Any) -> dict[str, Any]:
    """A label of a long table."""
    at = None if minute is None else START + timedelta(minutes=minute)
    said = {"task_id": task, "rater_id": rater, "field": field, "value": str(value), "labelled_at": at}
    return {**said, "round": 1, "stage": 1, "tool": "file", **change}


def labels(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=label_files.COLUMNS)


def many(count: int, systems: tuple[str, ...] = ("ndd", "ppl", "gold")) -> pl.DataFrame:
    """Compressions of so many sentences, another one by each system."""
    return pl.DataFrame([
        row(f"{n:03}", system, ["one", f"{n:03}", "two"], [place <= at for place in range(3)])
        for n in range(count) for at, system in enumerate(systems)
    ])  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- form


def test_the_form_asks_for_two_grades() -> None:
    """Syntax and semantics from 0 to 5, each grade with a name of its own in both languages."""
    assert {name: field.values for name, field in FORM.fields.items()} == dict.fromkeys(FIELDS, GRADES)
    assert tuple(map(str, range(6))) == GRADES
    for lang in ("zh", "en"):
        names = [schema.get_value_name(name, grade, lang, FORM) for name in FIELDS for grade in GRADES]
        assert len({*names}) == 12
    assert schema.normalise_value("syntax", 0.0, FORM) == "0"


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_guidelines_tell_each_grade(lang: str) -> None:
    """Questions and names of grades stand there as in the form; each grade has its own criterion, and an example."""
    text, english = grading.read_guidelines("compression", lang), lang == "en"
    for name, field in FORM.fields.items():
        assert f"| `{name}` | {field.en if english else field.zh} | `0` `1` `2` `3` `4` `5` |" in text
        names = [schema.get_value_name(name, grade, lang, FORM) for grade in GRADES]
        rows = [rf"^\| `{grade}` \| {re.escape(told)} \| (.+) \|$" for grade, told in zip(GRADES, names, strict=True)]
        assert len({criterion for row in rows for criterion in re.findall(row, text, re.MULTILINE)}) == 6
    given = re.findall(r"^\| `(\d)` \| `(\d)` \| (.+?) \|", text, re.MULTILINE)
    assert {one for one, _, _ in given} == {other for _, other, _ in given} == {*GRADES}


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_examples_of_the_guidelines_are_compressions(lang: str) -> None:
    """Each leaves out words of its sentence and adds none."""
    joined = re.sub(r"(?<=\w)\n> ", " ", grading.read_guidelines("compression", lang))
    _, *parts = re.split(r"^> (.+)$", joined, flags=re.MULTILINE)
    count = 0
    for sentence, rest in zip(parts[::2], parts[1::2], strict=True):
        for shown in re.findall(r"^\| `\d` \| `\d` \| (.+?) \|", rest, re.MULTILINE):
            whole, some = (list(text) if lang == "zh" else text.casefold().split() for text in (sentence, shown))
            left = iter(whole)
            assert all(unit in left for unit in some), shown
            count += 1
    assert count == 11


# ------------------------------------------------------------------------------------------------------------- tasks


def test_tasks_show_sentence_and_compression() -> None:
    """Words with blanks between them, in Chinese without; where nothing is left raters are told so."""
    shown = {item: {*rows["text"]} for (item,), rows in TASKS.group_by("item_id")}
    assert shown == {
        "a": {"The cat slept .", "The old slept ."}, "b": {"我们去公园。", "我们昨天去公园。", "（什么也没有留下）"}
    }  # fmt: skip
    assert {*TASKS.select("item_id", "context", "lang").rows()} == {
        ("a", "The old cat slept .", "en"), ("b", "我们昨天去公园。", "zh"),
    }  # fmt: skip
    nothing = compression.build_tasks(pl.DataFrame([row("a", "x", CAT, [False] * 5)])).tasks
    assert nothing["text"].to_list() == ["(nothing is left)"]


def test_nothing_tells_of_systems() -> None:
    """Neither tasks nor ids do: renamed systems and other orders of rows make the same tasks in the same order."""
    assert "system" not in TASKS.columns
    assert not any(name in TASKS.write_json() for name in ("ndd", "ppl", "gold"))
    renamed = MADE.with_columns(pl.col("system").replace({"ndd": "x", "ppl": "gold", "gold": "y"})).reverse()
    assert compression.build_tasks(renamed).tasks.equals(TASKS)
    assert all(re.fullmatch("[0-9a-f]{32}", task) for task in TASKS["task_id"])


def test_systems_that_leave_the_same_words_share_a_task() -> None:
    """Raters see a pair once; the key has it for both systems."""
    assert OF["a", "ndd"] == OF["a", "gold"] != OF["a", "ppl"]
    assert (TASKS.height, KEY.height) == (5, 6)
    assert {*KEY["task_id"]} == {*TASKS["task_id"]}


def test_what_changes_is_another_task() -> None:
    """A grade of another sentence or compression is of another task."""
    longer = MADE.with_columns(pl.concat_list("words", pl.lit("x")), pl.concat_list("kept", pl.lit(value=False)))
    for changed in (longer, MADE.with_columns(pl.col("item_id") + "x")):
        assert not {*compression.build_tasks(changed).tasks["task_id"]} & {*TASKS["task_id"]}
    none = compression.build_tasks(MADE.clear())
    assert (none.tasks.schema, none.key.schema) == (TASKS.schema, KEY.schema)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([row("i", "s", [], [])], "item i, system 's': field 'words' should hold the sentence's words"),
        ([row("i", "s", ["a", None], [True, True])], "item i, system 's': field 'words'"),  # type: ignore[list-item]
        ([row("i", "s", CAT, [True])], "item i, system 's': field 'kept' should hold true or false for 5 words"),
        ([row("i", "s", CAT, [True] * 5)] * 2, "item i, system 's': is repeated"),
        ([row("i", "s", CAT, [True] * 5), row("i", "t", WALK, [True] * 5)], "item i: expected the same words"),
    ],
)
def test_bad_compressions_are_told(rows: list[dict[str, Any]], told: str) -> None:
    """The message names sentence, system and field."""
    with pytest.raises(BadInput, match=told):
        compression.build_tasks(pl.DataFrame(rows))


def test_a_sample_has_the_same_sentences_of_each_system() -> None:
    """Of those that all systems have; a larger sample holds the smaller one, whatever the order of rows."""
    made = many(40).filter(~((pl.col("item_id") == "007") & (pl.col("system") == "ppl")))
    found, more = sample(made, 10), sample(made, 25)
    assert found.group_by("system").agg(pl.col("item_id").sort())["item_id"].n_unique() == 1
    assert (found["item_id"].n_unique(), found.height) == (10, 30)
    assert {*found["item_id"]} < {*more["item_id"]}
    assert {*sample(made.reverse(), 10)["item_id"]} == {*found["item_id"]} != {*sample(made, 10, seed=1)["item_id"]}
    assert {*sample(made, 100)["item_id"]} == {*made["item_id"]} - {"007"}
    assert compression.COUNT == 100


def test_a_sentence_goes_to_the_same_raters_for_all_systems() -> None:
    """Two raters a sentence, even loads, and who joins or what is added later changes nothing that was given."""
    made = compression.build_tasks(many(20)).tasks
    given = assign(made, ["amy", "bo", "cy"], seed=3)
    by_item = given.join(made, on="task_id").group_by("item_id").agg(pl.col("rater_id").unique().sort(), n=pl.len())
    assert by_item["rater_id"].list.len().unique().to_list() == [2]
    assert by_item["n"].unique().to_list() == [6]
    loads = given.group_by("rater_id").len()["len"]
    assert loads.max() - loads.min() <= 3  # type: ignore[operator]
    assert given.equals(assign(made.reverse(), ["amy", "bo", "cy"], seed=3))
    more = compression.build_tasks(many(24)).tasks
    later = assign(more, ["amy", "bo", "cy", "dee"], seed=3, assigned=given)
    assert given.join(later, on=["task_id", "rater_id"], how="anti").is_empty()
    assert later.height == 24 * 3 * 2
    few = made.filter(pl.int_range(pl.len()).over("item_id") < 2)
    assert assign(made, ["amy", "bo", "cy"], assigned=assign(few, ["amy", "bo", "cy"], seed=3)).equals(given)


def test_each_rater_has_an_order() -> None:
    """All the tasks that are theirs, shuffled by rater: the same each time, and not that of another."""
    made = compression.build_tasks(many(20)).tasks
    amy, bo = list_rater_tasks(made, "amy"), list_rater_tasks(made, "bo")
    assert amy.equals(list_rater_tasks(made.reverse(), "amy"))
    assert amy["task_id"].to_list() != bo["task_id"].to_list()
    assert amy.sort("task_id").equals(bo.sort("task_id"))
    assert any(one != other for one, other in pairwise(amy["item_id"]))
    assigned = assign(made, ["amy", "bo", "cy"])
    mine = list_rater_tasks(made, "amy", assigned)
    assert {*mine["task_id"]} == {*assigned.filter(rater_id="amy")["task_id"]}
    assert mine.columns == TASKS.columns


# ------------------------------------------------------------------------------------------------------------ grades


def test_grades_come_back_to_systems() -> None:
    """The mean of all raters by hand, for both systems that share a compression; without grades null, not 0."""
    shared, alone = OF["a", "ndd"], OF["b", "ppl"]
    said = labels(
        label(shared, "bo", "syntax", 4), label(shared, "amy", "syntax", 5), label(shared, "amy", "semantics", 3),
        label(alone, "cy", "syntax", 0),
    )  # fmt: skip
    found = collect_grades(said, KEY)
    rows = {(r["item_id"], r["system"], r["field"]): r for r in found.grades.iter_rows(named=True)}
    for system in ("ndd", "gold"):
        syntax = rows["a", system, "syntax"]
        assert (syntax["grade"], syntax["grades"], syntax["raters"], syntax["n"]) == (4.5, [5, 4], ["amy", "bo"], 2)
        assert rows["a", system, "semantics"]["grade"] == 3
    assert rows["b", "ppl", "syntax"]["grade"] == 0
    missing = rows["a", "ppl", "syntax"]
    assert (missing["grade"], missing["grades"], missing["n"]) == (None, [], 0)
    assert found.grades.schema == pl.Schema(compression.GRADED)
    assert found.grades.height == 6 * 2
    assert found.grades["field"].to_list() == [*FIELDS] * 6
    assert found.dropped.is_empty()


def test_what_does_not_count_has_a_reason() -> None:
    """A task that is not there, the same twice, and what was said before the last."""
    task = OF["a", "ppl"]
    said = labels(
        label(task, "amy", "syntax", 1, 0), label(task, "amy", "syntax", 2, 5), label(task, "bo", "syntax", 4, 1),
        label(task, "bo", "syntax", 4, 2), label("f" * 32, "amy", "syntax", 5),
    )  # fmt: skip
    found = collect_grades(said, KEY)
    assert found.grades.filter(task_id=task, field="syntax")["grades"].to_list() == [[2, 4]]
    assert {*found.dropped.select("task_id", "rater_id", "reason").rows()} == {
        (task, "amy", "superseded"), (task, "bo", "duplicate"), ("f" * 32, "amy", "unknown_task")
    }  # fmt: skip
    assert found.grades["n"].sum() + found.dropped.height == said.height
