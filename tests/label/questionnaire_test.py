"""The questionnaire on cloze items: tasks out and answers in, through every format (REC-23)."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.label import grading, label_files, label_studio, questionnaire, schema, task_files
from pipeline.label.questionnaire import FORM, LETTERS
from tests.support.rows.labels import read_sheet
from tests.support.rows.row_files import write_rows

FERRY = "😀 The ferry stayed in\n the harbour for a third day. It would sail once the wind had dropped, it said."
PASSAGES = [FERRY, "=1+1 is what the <b>sign</b> said, and nobody knew why. $text {{x}}"]
HOSTILE = ["<script>alert(1)</script>", "$text {{task_id}}", '"/><Choices name="x"/>', "]]>&amp;", "=1+1", "s3://a/b"]
ITEM = {"item_id": "i", "article": "x", "question": "q", "options": list("abcde")}
ITEMS = pl.DataFrame(
    {
        "item_id": ["dev.jsonl:1", "dev.jsonl:2"], "article": PASSAGES,
        "question": ["Storms have caused more @placeholder on the islands .", "@placeholder is on a sign ."],
        "options": [["disruption", "enthusiasm", "growth", "ceremonies", "ownership"], HOSTILE[:5]], "label": [0, 4],
    }
)  # fmt: skip
TASKS = questionnaire.build_tasks(ITEMS)
FIRST, SECOND = TASKS["task_id"]
VALUES = {"before": "B", "after": "A", "second": "none", "relation": "summarise", "difficulty": "easy"}


def build_rows(task: str = FIRST, rater: str = "amy", **values: str) -> list[dict[str, str]]:
    """Build labels as rows."""
    return [{"task_id": task, "rater_id": rater, "field": name, "value": value} for name, value in values.items()]


def build_whole(task: str = FIRST, rater: str = "amy", **changes: str) -> list[dict[str, str]]:
    """Build a whole answer as rows."""
    return build_rows(task, rater, **{**VALUES, "span_1": "2-11", "span_2": "16-22", **changes})


def read(rows: list[dict[str, str]]) -> pl.DataFrame:
    return label_files.check_rows([(f"row {n}", row) for n, row in enumerate(rows, 2)], TASKS, name="x", form=FORM)


def build_answers(labels: pl.DataFrame) -> list[tuple[Any, ...]]:
    return questionnaire.build_answers(labels, TASKS).rows()


def test_the_form_asks_what_appendix_a_asks() -> None:
    """Five options before and after, a second or none, relation, difficulty, and two spans of the passage (REC-23)."""
    assert {name: field.values for name, field in FORM.fields.items()} == {
        "before": tuple("ABCDE"), "after": tuple("ABCDE"), "second": (*"ABCDE", "none"),
        "relation": ("summarise", "paraphrase", "others"), "difficulty": ("easy", "medium", "difficult"),
    }  # fmt: skip
    assert list(FORM.notes) == list(FORM.spans) == ["span_1", "span_2"]
    assert (FORM.marked, FORM.first) == ("context", "before")
    for name, field in FORM.fields.items():
        for lang in ("zh", "en"):
            names = {schema.get_value_name(name, value, lang, FORM) for value in field.values}
            assert len(names) == len(field.values)
    assert schema.hash_schema(FORM) not in (schema.hash_schema(), "")


def test_the_guidelines_list_all_fields_and_notes() -> None:
    """Each question stands there as the form asks it, with its values; the hirers' page has the paper's two rules."""
    text = grading.read_guidelines("cloze", "en")
    for field in FORM.fields.values():
        values = " ".join(f"`{value}`" for value in field.values)
        assert f"| `{field.name}` | {field.en} | {values} |" in text
    for name, (_, english) in FORM.notes.items():
        assert f"| `{name}` | {english} |" in text
    hiring = grading.read_guidelines("cloze_hiring", "en")
    assert "English" in hiring
    assert "90 %" in hiring


def test_an_item_is_a_task(tmp_path: Path) -> None:
    """Question and lettered options are the text, the passage the context; in another order it is another task."""
    assert task_files.write_tasks(tmp_path / "tasks.jsonl", TASKS, form=FORM) == 2
    row = json.loads((tmp_path / "tasks.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert row["text"].split("\n") == [
        "Storms have caused more @placeholder on the islands .", "", "A. disruption", "B. enthusiasm", "C. growth",
        "D. ceremonies", "E. ownership",
    ]  # fmt: skip
    assert row["context"] == FERRY
    assert row["fields"] == list(FORM.fields)
    assert row["schema_version"] == schema.hash_schema(FORM)
    assert re.fullmatch("[0-9a-f]{32}", row["task_id"])
    assert set(row) == {"task_id", "text", "context", "lang", "round", "schema_version", "fields"}
    assert "dev.jsonl" not in json.dumps(row)
    assert questionnaire.build_tasks(ITEMS.with_columns(label=pl.lit(3)))["task_id"].equals(TASKS["task_id"])
    assert questionnaire.build_tasks(ITEMS.reverse())["task_id"].to_list() == [SECOND, FIRST]
    for change in (
        pl.col("options").list.reverse(), pl.col("article") + "x", pl.col("question") + " x", pl.col("item_id") + "0",
    ):  # fmt: skip
        assert not set(questionnaire.build_tasks(ITEMS.with_columns(change))["task_id"]) & {FIRST, SECOND}


@given(st.lists(st.text(min_size=1, max_size=8), min_size=5, max_size=5), st.text(max_size=20))
def test_an_option_is_one_line(options: list[str], question: str) -> None:
    """Whatever the texts, there is one line for the question, an empty one, and one for each letter."""
    item = ITEM | {"question": question, "options": options}
    lines = questionnaire.build_tasks(pl.DataFrame([item]))["text"][0].split("\n")
    assert len(lines) == len(("".join(lines) + ".").splitlines()) + 6 == 7
    assert [line[:2] for line in lines[2:]] == [f"{letter}." for letter in LETTERS]


label_values = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(field.values) for name, field in FORM.fields.items()}
)


@given(st.dictionaries(st.tuples(st.sampled_from([0, 1]), st.sampled_from(["r1", "r2"])), label_values), st.data())
@settings(deadline=None)
def test_answers_hold_all_labels(values_by_rater: dict[tuple[int, str], dict[str, str]], data: st.DataObject) -> None:
    """Of any labels, each is in the answer of its rater and item, and what was not answered is null."""
    expected, rows = [], []
    for (item, rater), values in values_by_rater.items():
        start = data.draw(st.integers(0, len(PASSAGES[item]) - 1))
        end = data.draw(st.integers(start + 1, len(PASSAGES[item])))
        rows += build_rows(TASKS["task_id"][item], rater, **values, span_2=f"{start}-{end}")
        places = [LETTERS.find(values[name]) if name in values else -1 for name in ("before", "after", "second")]
        expected.append(
            (ITEMS["item_id"][item], rater, *(None if place < 0 else place for place in places), None,
             PASSAGES[item][start:end], values.get("relation"), values.get("difficulty"))
        )  # fmt: skip
    assert build_answers(read(rows)) == sorted(expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("before", "disruption", "before should be one of A, B, C, D, E, found 'disruption'"),
        ("after", "1", "after should be one of A, B"), ("after", "none", "after should be one of A, B"),
        ("second", "F", "second should be one of A, B, C, D, E, none, found 'F'"),
        ("difficulty", "hard", "difficulty should be one of easy, medium, difficult, found 'hard'"),
        ("relation", "again", "relation should be"),
        ("span_1", "3-999", "span_1 should be start-end within 0-.* or words that stand there, found '3-999'"),
        ("span_2", "the harbor", "span_2 should be start-end within 0-.*, found 'the harbor'"),
        ("sarcasm", "1", "no field 'sarcasm'; there are before, after, .*span_2"), ("span", "1-2", "no field 'span'"),
    ],
)  # fmt: skip
def test_a_wrong_label_is_named(tmp_path: Path, name: str, value: str, message: str) -> None:
    """The message names file, row and field, long and wide; nothing of the file comes in."""
    path = tmp_path / "labels.csv"
    wide = [{"task_id": FIRST, "rater_id": "bo", **dict.fromkeys(FORM.fields, ""), name: value}]
    for rows, number in (([*build_whole(), *build_rows(rater="bo", **{name: value})], 9), (wide, 2)):
        with pytest.raises(BadInput, match=rf"labels\.csv, row {number}: {message}"):
            label_files.read(write_rows(path, *rows), TASKS, form=FORM)


def test_a_span_is_of_its_own_passage() -> None:
    """Words are looked for in the label's own passage; spans of CSD are counted (CSD-04), and offsets win."""
    assert read(build_rows(span_1="stayed in the harbour"))["value"].to_list() == ["12-34"]
    with pytest.raises(BadInput, match="found 'stayed in the harbour'"):
        read(build_rows(SECOND, span_1="stayed in the harbour"))
    with pytest.raises(BadInput, match="span should be start-end within 0-5, found 'b'"):
        schema.parse_span("b", "a b c")
    assert schema.parse_span("0-1", "by 0-1", may_quote=True) == (0, 1)
    assert schema.parse_span("3-0", "won 3-0", may_quote=True) == (4, 7)


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_sheet_goes_out_and_comes_back(tmp_path: Path, ending: str) -> None:
    """Question and first answer stand before the passage; cells filled in, with quoted parts, are answers."""
    path, guide = tmp_path / f"amy{ending}", grading.read_guidelines("cloze", "en")
    assert task_files.write_wide(path, TASKS, "amy", lang="en", guidelines=guide, form=FORM) == 2
    first, second = read_sheet(path)
    assert list(first) == [
        "task_id", "rater_id", "round", "stage", "text", "before", "context", "after", "second", "relation",
        "difficulty", "span_1", "span_2",
    ]  # fmt: skip
    assert label_files.read(path, TASKS, form=FORM).is_empty()
    first |= {**VALUES, "span_1": " stayed in the harbour", "span_2": "12-34"}
    back = write_rows(tmp_path / f"back{ending}", first, second | {"after": "e", "span_1": "=1+1"})
    assert build_answers(label_files.read(back, TASKS, form=FORM)) == [
        ("dev.jsonl:1", "amy", 1, 0, None, "stayed in\n the harbour", "stayed in\n the harbour", "summarise", "easy"),
        ("dev.jsonl:2", "amy", None, 4, None, "=1+1", None, None, None),
    ]


def build_region(name: str, value: str, **change: Any) -> dict[str, Any]:
    """Build what the editor makes of a choice or a mark."""
    region: dict[str, Any] = {"id": "x", "from_name": name, "to_name": "text", "type": "choices"}
    if not name.startswith("span"):
        return {**region, "value": {"choices": [value]}}
    start, end = map(int, value.split("-"))
    marked = {"start": start, "end": end, "text": FERRY[start:end], "labels": [name], **change}
    return {**region, "from_name": "span_1", "to_name": "context", "type": "labels", "value": marked}


def build_export(*results: dict[str, Any]) -> list[dict[str, Any]]:
    """Build an export of the first task, answered."""
    (task, _) = label_studio.build_tasks(task_files.build_rows(TASKS, form=FORM), "en", FORM)
    answer = {"id": 1, "completed_by": 11, "updated_at": "2026-11-20T08:00:00Z", "result": list(results)}
    return [{"id": 7, **task, "annotations": [answer]}]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_passage_is_shown_after_the_first_answer(lang: str) -> None:
    """Question and first answer come first; passage, marks and the other questions wait for a choice (appendix A)."""
    root = ET.fromstring(label_studio.build_config(lang=lang, form=FORM))  # noqa: S314  # our own
    (later,) = root.findall("View")
    assert [text.get("value") for text in root.findall("Text")] == ["$text"]
    assert [choices.get("name") for choices in root.findall("Choices")] == ["before"]
    assert (later.get("visibleWhen"), later.get("whenTagName")) == ("choice-selected", "before")
    assert later.get("whenChoiceValue") == ",".join(c.get("value", "") for c in root.findall("Choices/Choice"))
    assert [text.get("value") for text in later.iter("Text")] == ["$context"]
    assert {choices.get("required") for choices in root.iter("Choices")} == {"true"}
    assert list(root.iter("TextArea")) == []
    (marks,) = later.iter("Labels")
    assert (marks.get("toName"), [label.get("alias") for label in marks]) == ("context", ["span_1", "span_2"])
    assert list(later).index(marks) < [child.get("value") for child in later].index("$context")
    values = {choices.get("name"): tuple(choice.get("alias") for choice in choices) for choices in root.iter("Choices")}
    assert list(values.items()) == [(name, field.values) for name, field in FORM.fields.items()]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_data(text: str) -> None:
    """Options, question and passage that look like markup or a variable change no form and arrive as they were."""
    item = {"item_id": "i", "article": text, "question": text, "options": [*[text] * 4, "x"]}
    rows = task_files.build_rows(questionnaire.build_tasks(pl.DataFrame([item])), form=FORM)
    (task,) = json.loads(json.dumps(label_studio.build_tasks(rows, "en", FORM)))
    assert task["data"]["context"] == text
    assert task["data"]["text"].split("\n")[2] == f"A. {text}"
    assert text not in label_studio.build_config(form=FORM)


@given(
    st.fixed_dictionaries({name: st.sampled_from(field.values) for name, field in FORM.fields.items()}),
    st.lists(st.tuples(st.integers(0, len(FERRY)), st.integers(0, len(FERRY))), min_size=2, max_size=2),
)
def test_an_answer_comes_back_from_label_studio(values: dict[str, str], ends: list[tuple[int, int]]) -> None:
    """Any answer is the same after a trip through the editor's regions as it is in a long table."""
    values = values | {f"span_{n}": f"{min(pair)}-{max(pair)}" for n, pair in enumerate(ends, 1) if pair[0] != pair[1]}
    export = build_export(*(build_region(name, value) for name, value in values.items()))
    labels, skipped, _ = label_studio.parse_export(export, TASKS, form=FORM)
    assert skipped.is_empty()
    assert set(labels["tool"]) == {"label_studio"}
    assert build_answers(labels) == build_answers(read(build_rows(rater="ls-11", **values)))
