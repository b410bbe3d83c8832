"""Label Studio's formats: its labelling form, its tasks, its JSON export. `studio_client` does the network calls.

Found by trying version 1.23.2: a rater can answer twice, and the later answer stands; an empty answer takes a place
(`Export.full_tasks`); older editors count offsets in UTF-16 units, so a span is compared with the words it marks.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET  # written, never read

import polars as pl

from pipeline.errors import BadInput, refuse_damage
from pipeline.io.lines import parse_value, read_text
from pipeline.label import label_files, schema, stages, task_files
from pipeline.label.schema import CSD, Form

TOOL = "label_studio"
RATERS = {1: stages.RATERS, 2: 1}  # raters a task is given to, by stage (CSD-15)
NO_CONTEXT = "—"  # the import refuses null, and an empty text is not shown
_VERDICTS = {"again": ("重新标注", "label anew"), "delete": ("删除", "delete")}
_HEADERS = {"labels": ("三人的标注", "Labels so far"), "asked": ("请回答", "Please answer")}


class Export(NamedTuple):
    """What an export holds."""

    labels: pl.DataFrame  # a row a label: label_files.COLUMNS
    skipped: pl.DataFrame  # a row each thing left out: task_id, annotation_id, field (null: all of it), reason
    full_tasks: pl.DataFrame  # a row a task that the stream gives to no rater any more: task_id, studio_id


_REMEDY = "export it again, as JSON"
_SKIPPED = {"task_id": pl.String, "annotation_id": pl.String, "field": pl.String, "reason": pl.String}
_FULL = {"task_id": pl.String, "studio_id": pl.String}
_Skip = tuple[str, str | None, str | None, str]


class _Answer(NamedTuple):
    task_id: str
    label: dict[str, Any]  # what its labels have in common: all columns but field and value
    id: str
    asked_fields: list[str]
    result: list[Any]


def make_marker(stage: int = 1, form: Form = CSD) -> str:
    """Hash schema, fields and stage to a word that marks a form."""
    content = f"{schema.hash_schema(form)} {stage} {' '.join(form.fields)}"
    return f"undertone-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def build_config(lang: str = "zh", stage: int = 1, *, is_partial: bool = False, form: Form = CSD) -> str:
    """Build the labelling form: context, text, the marks for spans, a required choice a field, and a text box a note.

    A field that is answered first comes first with the text, and the rest is shown as soon as there is an answer. Stage
    2 shows the labels so far and adds the choices again and delete. If `is_partial` is set, each task lists the fields
    that it asks for, and no choice is required.
    """
    root = later = ET.Element("View", className=make_marker(stage, form))
    if form.first:
        _show(root, "text", form, lang)
        _ask(root, form.first, stage, lang, form, is_required=not is_partial)
        choices = ",".join(_list_choices(form.first, stage, lang, form).values())
        attributes = {"visibleWhen": "choice-selected", "whenTagName": form.first, "whenChoiceValue": choices}
        later = ET.SubElement(root, "View", attributes)
    parts = {"context": True, "text": not form.first, "labels": stage == 2, "asked": is_partial}
    for name in [name for name, is_shown in parts.items() if is_shown]:
        _show(later, name, form, lang)
    for name in form.fields:
        if name != form.first:
            _ask(later, name, stage, lang, form, is_required=not is_partial)
    for name in [name for name in form.notes if name not in form.spans]:
        ET.SubElement(later, "Header", value=form.get_question(name, lang))
        ET.SubElement(later, "TextArea", name=name, toName="text", rows="2", maxSubmissions="1", editable="true")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode")


def _show(part: ET.Element, name: str, form: Form, lang: str) -> None:
    ET.SubElement(part, "Header", value={**form.headers, **_HEADERS}[name][lang == "en"])
    if name == form.marked and form.spans:
        marks = ET.SubElement(part, "Labels", name=next(iter(form.spans)), toName=name, choice="single")
        for span, names in form.spans.items():
            ET.SubElement(marks, "Label", value=names[lang == "en"], alias=span, maxUsages="1")
    # text, not a URL to fetch
    ET.SubElement(part, "Text", name=name, value=f"${name}", valueType="text", granularity="symbol")


def _ask(part: ET.Element, name: str, stage: int, lang: str, form: Form, *, is_required: bool) -> None:
    question = form.get_question(name, lang)
    ET.SubElement(part, "Header", value=question)
    attributes = {"name": name, "toName": "text", "choice": "single-radio", "showInline": "true"}
    if is_required:
        attributes |= {"required": "true", "requiredMessage": question}
    choices = ET.SubElement(part, "Choices", attributes)
    for value, display_name in _list_choices(name, stage, lang, form).items():
        ET.SubElement(choices, "Choice", value=display_name, alias=value)


def _list_choices(name: str, stage: int, lang: str, form: Form) -> dict[str, str]:
    choices = {value: schema.get_value_name(name, value, lang, form) for value in form.fields[name].values}
    return choices | ({verdict: names[lang == "en"] for verdict, names in _VERDICTS.items()} if stage == 2 else {})


def build_tasks(rows: Iterable[Mapping[str, Any]], lang: str = "zh", form: Form = CSD) -> list[dict[str, Any]]:
    """Convert rows of `task_files.build_rows` to tasks for Label Studio; texts are data, never part of the form."""
    tasks = []
    for row in rows:
        data = {name: row[name] for name in ("task_id", "text", "lang", "round", "schema_version")}
        data |= {"context": row["context"] or NO_CONTEXT, "stage": row.get("stage", 1), "fields": list(row["fields"])}
        data["asked"] = "\n".join(form.get_question(name, lang) for name in row["fields"])
        if data["stage"] == 2:
            data["labels"] = task_files.format_labels(row, lang, form)
        tasks.append({"data": data})
    return tasks


def read_export(path: Path) -> list[dict[str, Any]]:
    """Read the tasks of a JSON export (not JSON_MIN, not CSV). BadInput: the file is no such export."""
    tasks = parse_value(read_text(path), path)
    if not isinstance(tasks, list) or not all(isinstance(t, dict) and isinstance(t.get("data"), dict) for t in tasks):
        raise BadInput(f"{path}: expected a JSON export of Label Studio, a list of tasks with `data`")
    return tasks


def parse_export(
    export: Iterable[Mapping[str, Any]], tasks: pl.DataFrame, *, name: str = "export", form: Form = CSD
) -> Export:
    """Parse the labels of a JSON export; a rater is `ls-` and Label Studio's id, and no mail address is kept.

    Left out, with a reason: cancelled (the rater skipped the task), empty, no_rater (the user was deleted), superseded
    (the rater answered again later), and of an answer: unknown_control (what our form does not have), second_span,
    span_mismatch (the offsets are not of the words marked), empty (a text box). Predictions and drafts are listed, too,
    and so is a field that was not answered; the answer's other fields are labels, and `stages.decide` decides whether
    they count. BadInput: a task that is not ours, a rater without an id, or a value outside the schema.
    """
    skipped: list[_Skip] = []
    start = datetime.min.replace(tzinfo=UTC)
    latest: dict[tuple[str, int, str], _Answer] = {}
    full_tasks: list[tuple[str, str]] = []
    for task in export:
        with refuse_damage(f"{name}, task {task.get('id')!s:.60}", _REMEDY):
            answers = _parse_answers(task, skipped, name)
            submitted = [a for a in task.get("annotations") or () if not a.get("was_cancelled")]
            users = {_get_user_id(annotation.get("completed_by")) for annotation in submitted} - {None}
            if len(users) >= RATERS[label_files.parse_number("stage", task["data"].get("stage"))]:
                full_tasks.append((task["data"]["task_id"], str(task.get("id"))))
        for answer in answers:
            key = answer.task_id, answer.label["round"], answer.label["rater_id"]
            first, last = sorted(
                [latest.get(key, answer), answer], key=lambda a: (a.label["labelled_at"] or start, len(a.id), a.id)
            )
            if first is not last:
                skipped.append((first.task_id, first.id, None, "superseded"))
            latest[key] = last
    texts = dict(tasks.select("task_id", pl.col(form.marked).fill_null("")).iter_rows())
    rows = []
    for answer in latest.values():
        with refuse_damage(f"{name}, task {answer.task_id}, annotation {answer.id}", _REMEDY):
            rows += _parse_labels(answer, texts.get(answer.task_id, ""), skipped, form)
    labels = label_files.check_rows(rows, tasks, name=name, form=form)
    return Export(labels, pl.DataFrame(skipped, _SKIPPED, orient="row"), pl.DataFrame(full_tasks, _FULL, orient="row"))


def _parse_answers(task: Mapping[str, Any], skipped: list[_Skip], name: str) -> list[_Answer]:
    data = task.get("data")
    task_id = data.get("task_id") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(task_id, str):
        raise BadInput(f"{name}, task {task.get('id')}: no task_id in its data; expected a task that we gave out")
    for kind in ("predictions", "drafts"):
        skipped += [(task_id, None, None, kind.removesuffix("s"))] * len(task.get(kind) or ())
    answers = []
    for annotation in task.get("annotations") or ():
        id_, result, user = str(annotation.get("id")), annotation.get("result"), annotation.get("completed_by")
        reasons = {"cancelled": annotation.get("was_cancelled"), "no_rater": user is None, "empty": not result}
        if reason := next((reason for reason, is_fault in reasons.items() if is_fault), None):
            skipped.append((task_id, id_, None, reason))
            continue
        label: dict[str, Any] = {"task_id": task_id, "tool": TOOL}
        try:
            label |= {column: label_files.parse_number(column, data.get(column)) for column in ("round", "stage")}
            label["labelled_at"] = label_files.parse_utc(annotation.get("updated_at") or annotation.get("created_at"))
            if not (user_id := _get_user_id(user)) or not str(user_id).isdigit():
                raise BadInput("completed_by: found a user without an id, expected an id")
            label["rater_id"] = f"ls-{user_id}"
        except BadInput as why:
            raise BadInput(f"{name}, task {task_id}, annotation {id_}: {why}") from why
        answers.append(_Answer(task_id, label, id_, data.get("fields") or [], result))
    return answers


def _get_user_id(user: Any) -> Any:
    return user.get("id") if isinstance(user, Mapping) else user


def _parse_labels(answer: _Answer, text: str, skipped: list[_Skip], form: Form) -> list[tuple[str, dict[str, Any]]]:
    rows, fields = [], set()
    for region in answer.result:
        field, value = region.get("from_name"), region.get("value") or {}
        if field == next(iter(form.spans), "") and len(form.spans) > 1:  # the name of the marks, each with a label
            label = " and ".join(map(str, value.get("labels") or ["no label"]))
            field = next((span for span, names in form.spans.items() if label in (span, *names)), label)
        label_value, reason = _parse_region(field, value, text, form)
        if field in form.spans and field in fields:
            label_value, reason = None, "second_span"
        if label_value is None:
            skipped.append((answer.task_id, answer.id, field, reason))
            continue
        fields.add(field)
        row = answer.label | {"field": field, "value": label_value}
        rows.append((f"task {answer.task_id}, annotation {answer.id}", row))
    skipped += [(answer.task_id, answer.id, name, "unanswered") for name in answer.asked_fields if name not in fields]
    return rows


def _parse_region(field: Any, value: Mapping[str, Any], text: str, form: Form) -> tuple[str | None, str]:
    if field in form.spans:
        return _parse_span(value, text), "span_mismatch"
    if field in form.notes:
        box_texts = value.get("text")
        content = "\n".join(map(str, box_texts)) if isinstance(box_texts, list) else str(box_texts or "")
        return content.strip() or None, "empty"
    if field not in form.fields:
        return None, "unknown_control"
    # two choices are no value: `check_rows` refuses the joined text
    choice = " and ".join(map(str, value.get("choices") or []))
    # results of a form without aliases hold the readable name
    value_by_name = {name: v for lang in ("zh", "en") for v, name in _list_choices(field, 2, lang, form).items()}
    return value_by_name.get(choice, choice), "empty"


def _parse_span(value: Mapping[str, Any], text: str) -> str | None:
    """Return `start-end` of a region in characters of the text; None if the marked words differ."""
    start, end, marked = value.get("start"), value.get("end"), value.get("text")
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end:
        return None
    if end <= len(text) and marked in (None, text[start:end]):
        return f"{start}-{end}"
    units = text.encode("utf-16-le")
    before, inside = (units[a:b].decode("utf-16-le", "replace") for a, b in ((0, 2 * start), (2 * start, 2 * end)))
    return f"{len(before)}-{len(before) + len(inside)}" if inside and inside == marked else None
