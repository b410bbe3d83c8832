"""Label Studio's formats: the form, the tasks, and an export with all that raters do to it."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.label import label_files, label_studio, quality, questionnaire, schema, task_files
from pipeline.label.label_studio import Export
from pipeline.label.schema import VERDICTS
from tests.support.servers.studio import build_result

TEXT = "😀你可真准时，才迟到一小时"
TASK = "0" * 31 + "1"
TASKS = pl.DataFrame({"task_id": [TASK, "0" * 31 + "2"], "text": [TEXT, "Lovely weather & <b>rain</b>"]})
WHOLE = TASKS.with_columns(context=None, lang=pl.lit("zh"), schema_version=pl.lit("1"))


def build_export(*annotations: dict[str, Any], **task: Any) -> list[dict[str, Any]]:
    """Build an export of one task, as version 1.23 writes it."""
    data = {"task_id": TASK, "text": TEXT, "context": "—", "round": 1, "stage": 1}
    return [{"id": 7, "data": data, "annotations": list(annotations), "predictions": [], "drafts": [], **task}]


def annotate(rater: Any = 11, *results: dict[str, Any], number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": number, "completed_by": rater, "was_cancelled": False, "lead_time": 4.5, "result": list(results),
        "created_at": "2026-11-20T08:00:00.000000Z", "updated_at": f"2026-11-20T08:{number:02}:00.000000Z", **more,
    }  # fmt: skip


def parse(*results: dict[str, Any]) -> Export:
    """Parse the answer of one rater."""
    return label_studio.parse_export(build_export(annotate(11, *results)), TASKS)


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("stage", [1, 2])
def test_the_form_asks_each_field_once(lang: str, stage: int) -> None:
    """Each of the eight fields (CSD-09) is a required single choice of exactly its values, kept as aliases."""
    form = ET.fromstring(label_studio.build_config(lang=lang, stage=stage))  # noqa: S314  # our own
    choices_by_name = {choices.get("name"): choices for choices in form.iter("Choices")}
    assert list(choices_by_name) == list(schema.FIELDS)
    for name, choices in choices_by_name.items():
        assert [choices.get(key) for key in ("required", "choice", "toName")] == ["true", "single-radio", "text"]
        assert choices.get("requiredMessage") == getattr(schema.FIELDS[name], lang)
        assert tuple(c.get("alias") for c in choices) == schema.FIELDS[name].values + VERDICTS * (stage == 2)
        assert len({c.get("value") for c in choices}) == len(choices)
    texts = [t.get("value") for t in form.iter("Text")]
    assert texts == ["$context", "$text", *(["$labels"] if stage == 2 else [])]
    assert {t.get("valueType") for t in form.iter("Text")} == {"text"}
    assert [t.get("name") for t in form.iter("TextArea")] == ["plain", "meaning", "rhetoric"]


def test_the_marker_tells_forms_apart() -> None:
    """Stage and fields change the marker, the language does not: labels of both languages are the same."""
    forms = [(1, schema.CSD), (2, schema.CSD), (1, quality.FORM), (1, questionnaire.FORM)]
    assert len({label_studio.make_marker(stage, form) for stage, form in forms}) == 4
    for stage, form in forms:
        for lang in ("zh", "en"):
            assert label_studio.make_marker(stage, form) in label_studio.build_config(lang, stage, form=form)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_form_for_what_is_disputed_requires_nothing(lang: str) -> None:
    """Where tasks ask for some fields alone, the form lets the others be left out and each task says which it asks."""
    whole, part = (label_studio.build_config(lang=lang, stage=2, is_partial=some) for some in (False, True))
    assert (whole.count('required="true"'), part.count('required="true"')) == (len(schema.FIELDS), 0)
    assert ('value="$asked"' in whole, 'value="$asked"' in part) == (False, True)
    rows = task_files.build_rows(WHOLE.with_columns(fields=pl.lit(["subtext", "emotion"])))
    questions = label_studio.build_tasks(rows, lang)[0]["data"]["asked"].split("\n")
    assert questions == [getattr(schema.FIELDS[name], lang) for name in ("subtext", "emotion")]


def test_the_adjudicator_sees_the_labels() -> None:
    """In stage 2 a task shows what the three said, by letter, in words."""
    values = {"amy": 1, "bo": 1, "cy": -1}
    rows = [("", {"task_id": TASK, "rater_id": r, "field": "sarcasm", "value": value}) for r, value in values.items()]
    labels = label_files.check_rows(rows, TASKS, name="x")
    tasks = label_studio.build_tasks(task_files.build_rows(WHOLE.with_columns(fields=["sarcasm"]), labels))
    first, second = (task["data"] for task in tasks)
    assert [part[0] for part in first["labels"].removeprefix("sarcasm: ").split(" · ")] == ["A", "B", "C"]
    assert first["labels"].count("有") == 3  # 有, 有, 没有
    assert first["labels"].count("没有") == 1
    assert not any(name in json.dumps(first) for name in values)
    assert second["labels"] == "sarcasm: —"
    assert first["stage"] == 2


def test_an_answer_becomes_labels() -> None:
    """Choices, text boxes and the span of an answer are one label each, with rater, time and tool."""
    values = {"sarcasm": "1", "emotion": "None", "meaning": "嫌他迟到", "span": "1-6"}
    export = parse(*(build_result(name, value) for name, value in values.items()))
    assert dict(export.labels.select("field", "value").iter_rows()) == values
    assert set(export.labels["rater_id"]) == {"ls-11"}
    assert set(export.labels["tool"]) == {"label_studio"}
    assert export.labels["labelled_at"][0].isoformat() == "2026-11-20T08:01:00+00:00"
    assert export.skipped.is_empty()
    assert export.labels.schema == label_files.COLUMNS
    empty = label_studio.parse_export(build_export(), TASKS)
    assert (empty.labels.height, empty.labels.schema) == (0, label_files.COLUMNS)


@pytest.mark.parametrize("name", ["有", "yes", "1"])
def test_a_readable_name_is_the_value(name: str) -> None:
    """A form whose aliases somebody took off gives readable names; they are the same values."""
    assert parse(build_result("sarcasm", name)).labels["value"].to_list() == ["1"]


def test_what_does_not_count_has_a_reason() -> None:
    """Nothing is left out without a reason: skipped tasks, deleted users, empty answers, predictions, drafts."""
    export = build_export(
        annotate(11, build_result("sarcasm", "1"), number=1),
        annotate(12, build_result("sarcasm", "1"), number=2, was_cancelled=True),
        annotate(None, build_result("sarcasm", "1"), number=3),
        annotate(13, number=4),
        annotate(14, build_result("mood", "x"), build_result("plain", " "), build_result("subtext", "0"), number=5),
        predictions=[{"result": [build_result("sarcasm", "-1")]}] * 2,
        drafts=[{"result": [build_result("sarcasm", "-1")]}],
    )
    labels, skipped, _ = label_studio.parse_export(export, TASKS)
    assert labels.select("rater_id", "field").rows() == [("ls-11", "sarcasm"), ("ls-14", "subtext")]
    assert sorted(skipped.select("annotation_id", "field", "reason").rows(), key=str) == sorted([
        ("2", None, "cancelled"), ("3", None, "no_rater"), ("4", None, "empty"), ("5", "mood", "unknown_control"),
        ("5", "plain", "empty"), (None, None, "prediction"), (None, None, "prediction"), (None, None, "draft"),
    ], key=str)  # fmt: skip


def test_a_field_that_was_asked_and_not_answered_is_listed() -> None:
    """The server takes an answer without the field a task asks for (measured, 1.23.2); its other fields are labels."""
    data = {"task_id": TASK, "text": TEXT, "round": 2, "stage": 1, "fields": ["sarcasm", "emotion"]}
    answers = [
        annotate(11, build_result("sarcasm", "1"), build_result("emotion", "joy"), number=1),
        annotate(12, build_result("sarcasm", "1"), build_result("subtext", "0"), number=2),
        annotate(13, build_result("plain", "直说"), number=3),
    ]
    labels, skipped, _ = label_studio.parse_export(build_export(*answers, data=data), TASKS)
    expected = [("2", "emotion", "unanswered"), ("3", "emotion", "unanswered"), ("3", "sarcasm", "unanswered")]
    assert sorted(skipped.select("annotation_id", "field", "reason").rows()) == expected
    assert labels.filter(rater_id="ls-12").select("field", "value").rows() == [("sarcasm", "1"), ("subtext", "0")]


def test_the_later_answer_of_a_rater_stands() -> None:
    """The server takes two answers of a rater (measured, 1.23): the one changed last counts, whole."""
    answers = [
        annotate(11, build_result("sarcasm", "1"), build_result("plain", "直说"), number=3),
        annotate(11, build_result("sarcasm", "-1"), number=9),
        annotate(11, build_result("sarcasm", "0"), number=10, updated_at="2026-11-20T08:05:00.000000Z"),
    ]
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        labels, skipped, _ = label_studio.parse_export(build_export(*(answers[n] for n in order)), TASKS)
        assert labels.select("field", "value").rows() == [("sarcasm", "-1")]
        assert sorted(skipped.select("annotation_id", "reason").rows()) == [("10", "superseded"), ("3", "superseded")]


def test_a_rater_goes_by_an_id() -> None:
    """A rater goes by Label Studio's id; an address alone is refused, and is in no frame or message."""
    user = {"id": 11, "email": "a@example.org"}
    export = build_export(annotate(user, build_result("sarcasm", "1")))
    assert label_studio.parse_export(export, TASKS).labels["rater_id"].to_list() == ["ls-11"]
    export = build_export(annotate("a@example.org", build_result("sarcasm", "1")))
    message = r"e\.json, task .*completed_by: found a user without an id"
    with pytest.raises(BadInput, match=message) as error:
        label_studio.parse_export(export, TASKS, name="e.json")
    assert "example.org" not in str(error.value)


@pytest.mark.parametrize(
    ("span", "marked", "expected"),
    [
        ("1-6", "你可真准时", "1-6"), ("1-6", None, "1-6"),
        ("2-7", "你可真准时", "1-6"),  # UTF-16 units, the emoji being two
        ("0-2", "😀", "0-1"), ("1-6", "别的字", None), ("5-99", None, None), ("6-6", None, None),
    ],
)  # fmt: skip
def test_a_span_is_where_the_words_are(span: str, marked: str | None, expected: str | None) -> None:
    """Offsets count characters, older editors' UTF-16 units are turned into them, others are left out and listed."""
    export = parse(build_result("span", span, **({"text": marked} if marked else {})))
    assert export.labels["value"].to_list() == ([expected] if expected else [])
    assert export.skipped["reason"].to_list() == ([] if expected else ["span_mismatch"])


@given(st.text(min_size=1, max_size=12), st.data())
def test_both_ways_of_counting_find_any_span(text: str, data: st.DataObject) -> None:
    """Of any text, the words that either count of offsets marks are the span in characters."""
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    units = [len(text[:n].encode("utf-16-le")) // 2 for n in (start, end)]
    for a, b in ((start, end), units):
        span = label_studio._parse_span({"start": a, "end": b, "text": text[start:end]}, text)
        assert span is not None
        span_start, span_end = map(int, span.split("-"))
        assert text[span_start:span_end] == text[start:end]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"result": [build_result("sarcasm", "maybe")]}, "sarcasm should be one of 1, 0, -1, found 'maybe'"),
        ({"result": [build_result("sarcasm", "again")]}, "sarcasm should be"),  # only an adjudicator may
        ({"result": [{"from_name": "sarcasm", "value": {"choices": ["1", "-1"]}}]}, "found '1 and -1'"),
        ({"result": [{"from_name": "sarcasm", "value": {}}]}, "sarcasm should be"),
        ({"updated_at": "yesterday"}, "labelled_at: found 'yesterday'"),
    ],
)
def test_an_answer_outside_the_schema_is_an_error(change: dict[str, Any], message: str) -> None:
    """A value that no field has, two values for one, or a bad time is an error, with task and annotation."""
    answer = {**annotate(11, build_result("sarcasm", "1")), **change}
    with pytest.raises(BadInput, match=f"e.json, task {TASK}, annotation 1: .*{message}"):
        label_studio.parse_export(build_export(answer), TASKS, name="e.json")


def test_the_adjudicator_may_ask_again() -> None:
    """In stage 2 again and delete are answers (CSD-15)."""
    data = {"task_id": TASK, "text": TEXT, "stage": 2, "round": 2}
    answer = annotate(14, build_result("sarcasm", "again"), build_result("subtext", "删除"))
    labels = label_studio.parse_export(build_export(answer, data=data), TASKS).labels
    assert labels.select("round", "stage", "field", "value").rows() == [
        (2, 2, "sarcasm", "again"), (2, 2, "subtext", "delete"),
    ]  # fmt: skip


@pytest.mark.parametrize("data", [{"text": "别人的"}, {"task_id": 5}, {"task_id": "f" * 32}])
def test_a_task_of_others_is_an_error(data: dict[str, Any]) -> None:
    """A task without our id, or with one that was not given out, is refused."""
    with pytest.raises(BadInput, match="task_id"):
        label_studio.parse_export(build_export(annotate(11, build_result("sarcasm", "1")), data=data), TASKS)


@pytest.mark.parametrize("text", ["{}", "[1]", '[{"id": 1}]', "[", '[{"task_id": 1, "sarcasm": "1"}]'])
def test_another_export_is_refused(tmp_path: Path, text: str) -> None:
    """JSON_MIN, CSV or half a file is no JSON export; the error names the file."""
    path = tmp_path / "export.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=r"export\.json"):
        label_studio.read_export(path)
