"""Grades of compressions: the form, who gets what, systems that stay hidden, and the way back to them (NDD-36)."""

import re
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.label import compression, grading, schema
from pipeline.label.compression import FIELDS, FORM, GRADES, assign, collect_grades, list_rater_tasks, sample
from tests.support.rows.labels import build_grades


def build_row(item_id: str, system: str, words: list[Any], flags: list[bool], lang: str = "en") -> dict[str, Any]:
    return {"item_id": item_id, "system": system, "lang": lang, "words": words, "kept": flags}


CAT, WALK = ["The", "old", "cat", "slept", "."], ["我们", "昨天", "去", "公园", "。"]
COMPRESSIONS = pl.DataFrame([
    build_row("a", "ndd", CAT, [True, False, True, True, True]),
    build_row("a", "ppl", CAT, [True, True, False, True, True]),
    build_row("a", "gold", CAT, [True, False, True, True, True]),
    build_row("b", "ndd", WALK, [True, False, True, True, True], "zh"),
    build_row("b", "ppl", WALK, [False] * 5, "zh"), build_row("b", "gold", WALK, [True] * 5, "zh"),
])  # fmt: skip
TASKS, KEY = compression.build_tasks(COMPRESSIONS)
TASK_OF = {(item, system): task for task, item, system in KEY.iter_rows()}


def build_compressions(count: int) -> pl.DataFrame:
    """Build compressions of so many sentences, another one by each of three systems."""
    return pl.DataFrame([
        build_row(f"{n:03}", system, ["one", f"{n:03}", "two"], [place <= last for place in range(3)])
        for n in range(count) for last, system in enumerate(("ndd", "ppl", "gold"))
    ])  # fmt: skip


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_guidelines_explain_each_grade(lang: str) -> None:
    """Questions and names of grades stand there as in the form; each grade has its own criterion, and an example."""
    text = grading.read_guidelines("compression", lang)
    for name in FIELDS:
        assert f"| `{name}` | {FORM.get_question(name, lang)} | `0` `1` `2` `3` `4` `5` |" in text
        criteria = set()
        for grade in GRADES:
            value_name = re.escape(schema.get_value_name(name, grade, lang, FORM))
            criteria |= {*re.findall(rf"^\| `{grade}` \| {value_name} \| (.+) \|$", text, re.MULTILINE)}
        assert len(criteria) == 6
    examples = re.findall(r"^\| `(\d)` \| `(\d)` \| (.+?) \|", text, re.MULTILINE)
    assert {syntax for syntax, _, _ in examples} == {semantics for _, semantics, _ in examples} == {*GRADES}


def test_tasks_show_sentence_and_compression() -> None:
    """Words with blanks between them, in Chinese without; where nothing is left raters read so."""
    texts = {item: {*rows["text"]} for (item,), rows in TASKS.group_by("item_id")}
    assert texts == {
        "a": {"The cat slept .", "The old slept ."}, "b": {"我们去公园。", "我们昨天去公园。", "（什么也没有留下）"}
    }  # fmt: skip
    assert {*TASKS.select("item_id", "context", "lang").rows()} == {
        ("a", "The old cat slept .", "en"), ("b", "我们昨天去公园。", "zh"),
    }  # fmt: skip
    nothing = compression.build_tasks(pl.DataFrame([build_row("a", "x", CAT, [False] * 5)])).tasks
    assert nothing["text"].to_list() == ["(nothing is left)"]


def test_tasks_do_not_reveal_systems() -> None:
    """Renamed systems and other orders make the same tasks; another sentence or compression is another task."""
    assert "system" not in TASKS.columns
    assert not any(name in TASKS.write_json() for name in ("ndd", "ppl", "gold"))
    renamed = COMPRESSIONS.with_columns(pl.col("system").replace({"ndd": "x", "ppl": "gold", "gold": "y"})).reverse()
    assert compression.build_tasks(renamed).tasks.equals(TASKS)
    assert all(re.fullmatch("[0-9a-f]{32}", task) for task in TASKS["task_id"])
    assert TASK_OF["a", "ndd"] == TASK_OF["a", "gold"] != TASK_OF["a", "ppl"]
    assert (TASKS.height, KEY.height) == (5, 6)
    assert {*KEY["task_id"]} == {*TASKS["task_id"]}
    words, flags = pl.concat_list("words", pl.lit("x")), pl.concat_list("kept", pl.lit(value=False))
    for changed in (COMPRESSIONS.with_columns(words, flags), COMPRESSIONS.with_columns(pl.col("item_id") + "x")):
        assert not {*compression.build_tasks(changed).tasks["task_id"]} & {*TASKS["task_id"]}
    empty = compression.build_tasks(COMPRESSIONS.clear())
    assert (empty.tasks.schema, empty.key.schema) == (TASKS.schema, KEY.schema)


def test_systems_compress_the_same_sentences() -> None:
    """A system with other words under the id of a sentence is refused."""
    rows = [build_row("i", "s", CAT, [True] * 5), build_row("i", "t", WALK, [True] * 5)]
    with pytest.raises(BadInput, match="item i: expected the same words"):
        compression.build_tasks(pl.DataFrame(rows))


def test_a_sample_has_the_same_sentences_of_each_system() -> None:
    """Of those that all systems have; a larger sample holds the smaller one, whatever the order of rows."""
    rows = build_compressions(40).filter(~((pl.col("item_id") == "007") & (pl.col("system") == "ppl")))
    small, large = sample(rows, 10), sample(rows, 25)
    assert small.group_by("system").agg(pl.col("item_id").sort())["item_id"].n_unique() == 1
    assert (small["item_id"].n_unique(), small.height) == (10, 30)
    assert {*small["item_id"]} < {*large["item_id"]}
    assert {*sample(rows.reverse(), 10)["item_id"]} == {*small["item_id"]}
    assert {*sample(rows, 100)["item_id"]} == {*rows["item_id"]} - {"007"}
    assert compression.COUNT == 100


def test_a_sentence_goes_to_the_same_raters_for_all_systems() -> None:
    """Two raters a sentence, even loads, and who joins or what is added later changes nothing that was assigned."""
    tasks, raters = compression.build_tasks(build_compressions(20)).tasks, ["amy", "bo", "cy"]
    assigned = assign(tasks, raters)
    by_item = assigned.join(tasks, on="task_id").group_by("item_id").agg(pl.col("rater_id").n_unique(), n=pl.len())
    assert by_item["rater_id"].unique().to_list() == [2]
    assert by_item["n"].unique().to_list() == [6]
    loads = assigned.group_by("rater_id").len()["len"]
    assert loads.max() - loads.min() <= 3  # type: ignore[operator]
    assert assigned.equals(assign(tasks.reverse(), raters))
    more = compression.build_tasks(build_compressions(24)).tasks
    later = assign(more, [*raters, "dee"], assigned)
    assert assigned.join(later, on=["task_id", "rater_id"], how="anti").is_empty()
    assert later.height == 24 * 3 * 2
    few = tasks.filter(pl.int_range(pl.len()).over("item_id") < 2)
    assert assign(tasks, raters, assign(few, raters)).equals(assigned)


def test_each_rater_has_an_order() -> None:
    """All the tasks that are theirs, shuffled by rater: the same each time, and not that of another."""
    tasks = compression.build_tasks(build_compressions(20)).tasks
    amy, bo = list_rater_tasks(tasks, "amy"), list_rater_tasks(tasks, "bo")
    assert amy.equals(list_rater_tasks(tasks.reverse(), "amy"))
    assert amy["task_id"].to_list() != bo["task_id"].to_list()
    assert amy.sort("task_id").equals(bo.sort("task_id"))
    assert any(item != next_item for item, next_item in pairwise(amy["item_id"]))
    assigned = assign(tasks, ["amy", "bo", "cy"])
    amy = list_rater_tasks(tasks, "amy", assigned)
    assert {*amy["task_id"]} == {*assigned.filter(rater_id="amy")["task_id"]}
    assert amy.columns == TASKS.columns


def test_grades_come_back_to_systems() -> None:
    """The mean of all raters by hand, for both systems that share a compression; without grades null, not 0."""
    shared, single = TASK_OF["a", "ndd"], TASK_OF["b", "ppl"]
    labels = build_grades(
        (shared, "bo", "syntax", 4), (shared, "amy", "syntax", 5), (shared, "amy", "semantics", 3),
        (single, "cy", "syntax", 0),
    )  # fmt: skip
    grades, dropped = collect_grades(labels, KEY)
    rows = {
        row[:3]: row[3:] for row in grades.select("item_id", "system", "field", "grade", "grades", "raters", "n").rows()
    }
    for system in ("ndd", "gold"):
        assert rows["a", system, "syntax"] == (4.5, [5, 4], ["amy", "bo"], 2)
        assert rows["a", system, "semantics"][0] == 3
    assert rows["b", "ppl", "syntax"][0] == 0
    assert rows["a", "ppl", "syntax"] == (None, [], [], 0)
    assert grades.schema == pl.Schema(compression.GRADED)
    assert grades["field"].to_list() == [*FIELDS] * 6
    assert dropped.is_empty()
