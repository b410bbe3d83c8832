"""Label Studio's formats: its labelling form, its tasks, its JSON export. No network here; see `studio_client`.

Found by trying version 1.23.2: `maximum_annotations` makes the stream give a task to that many raters, but nothing
stops one of them from answering twice, so the later answer stands. An answer that says nothing takes a place too: its
task then waits for somebody whom the stream sends no more (`Export.taken`). An alias takes the place of a choice's
value in results, so the form shows the readable name and results hold the value we keep. Offsets of a region count
characters as Python does, but older editors counted UTF-16 units (label-studio issue 1347), so a span is compared with
the words it marks.

Marks of a text are all of one `Labels`, as editors of two kept both their labels selected and marked one part twice. A
part of the form that waits for an answer is hidden by the editor alone: the text is on the page, and the answer can be
changed afterwards.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET  # written, never read

import polars as pl

from pipeline.errors import BadInput
from pipeline.io.lines import parse_value, read_text
from pipeline.label import label_files, schema, stages, task_files
from pipeline.label.schema import CSD, Form

TOOL = "label_studio"
RATERS = {1: stages.RATERS, 2: 1}
"""Raters a task is given to, by stage (CSD-15)."""
NO_CONTEXT = "—"  # the import refuses null, and an empty text is not shown

_VERDICTS = {"again": ("重新标注", "label anew"), "delete": ("删除", "delete")}
_HEADERS = {
    "labels": ("三人的标注", "Labels so far"),
    "asked": ("请回答", "Please answer"),
}


class Export(NamedTuple):
    """What an export holds."""

    labels: pl.DataFrame  # a row a label: label_files.COLUMNS
    skipped: pl.DataFrame  # a row each thing left out: task_id, annotation_id, field (null: all of it), reason
    taken: pl.DataFrame  # a row a task that the stream gives to nobody any more: task_id, round, stage, studio_id


_SKIPPED = {"task_id": pl.String, "annotation_id": pl.String, "field": pl.String, "reason": pl.String}
_TAKEN = {"task_id": pl.String, "round": pl.Int64, "stage": pl.Int64, "studio_id": pl.String}


class _Answer(NamedTuple):
    """One annotation that was not cancelled."""

    task_id: str
    round: int
    stage: int
    rater_id: str
    id: str
    labelled_at: datetime | None
    asked: list[str]
    result: list[Any]

    @property
    def where(self) -> str:
        return f"task {self.task_id}, annotation {self.id}"


# --------------------------------------------------------------------------------------------------------------- out


def marker(stage: int = 1, form: Form = CSD) -> str:
    """A word in the form that tells under which schema, for which fields and stage it was made."""
    told = f"{schema.version(form)} {stage} {' '.join(form.fields)}"
    return f"undertone-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def config_xml(lang: str = "zh", stage: int = 1, *, is_partial: bool = False, form: Form = CSD) -> str:
    """The labelling form: context, text, the marks for spans, a required choice a field, and a text box a note.

    Where a field is answered first, text and field come first, and the rest is shown as soon as there is an answer.

    Args:
        lang: language of questions and names, zh or en.
        stage: 2 shows the labels so far and adds the choices again and delete.
        is_partial: each task asks for some of the fields; it says which, and no choice is required.
        form: what is asked.
    """
    root = later = ET.Element("View", className=marker(stage, form))
    first = [name for name in form.fields if name == form.first]
    for name in first:
        _show(root, "text", form, lang)
        _ask(root, name, stage, lang, form, is_required=not is_partial)
        shown = ",".join(_choices(name, stage, lang, form).values())
        later = ET.SubElement(root, "View", visibleWhen="choice-selected", whenTagName=name, whenChoiceValue=shown)
    shown_too = [name for name, is_shown in (("labels", stage == 2), ("asked", is_partial)) if is_shown]
    for name in ("context", *([] if first else ["text"]), *shown_too):
        _show(later, name, form, lang)
    for name in form.fields:
        if name not in first:
            _ask(later, name, stage, lang, form, is_required=not is_partial)
    for name, told in form.notes.items():
        if name not in form.spans:
            ET.SubElement(later, "Header", value=told[lang == "en"])
            ET.SubElement(later, "TextArea", name=name, toName="text", rows="2", maxSubmissions="1", editable="true")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode")


def _show(part: ET.Element, name: str, form: Form, lang: str) -> None:
    """What a task has under a name, with the marks for spans where it is what they are of."""
    english = lang == "en"
    ET.SubElement(part, "Header", value={**form.headers, **_HEADERS}[name][english])
    if name == form.marked and form.spans:
        marks = ET.SubElement(part, "Labels", name=_marks(form), toName=name, choice="single")
        for span, told in form.spans.items():
            ET.SubElement(marks, "Label", value=told[english], alias=span, maxUsages="1")
    # text, not a URL to fetch
    ET.SubElement(part, "Text", name=name, value=f"${name}", valueType="text", granularity="symbol")


def _ask(part: ET.Element, name: str, stage: int, lang: str, form: Form, *, is_required: bool) -> None:
    field = form.fields[name]
    question = field.en if lang == "en" else field.zh
    ET.SubElement(part, "Header", value=question)
    asked = {"name": name, "toName": "text", "choice": "single-radio", "showInline": "true"}
    if is_required:
        asked |= {"required": "true", "requiredMessage": question}
    choices = ET.SubElement(part, "Choices", asked)
    for value, shown in _choices(name, stage, lang, form).items():
        ET.SubElement(choices, "Choice", value=shown, alias=value)


def _choices(name: str, stage: int, lang: str, form: Form) -> dict[str, str]:
    """What may be said of a field, and what raters read for it."""
    values = task_files.values_of(name, stage, form)
    verdicts = {value: names[lang == "en"] for value, names in _VERDICTS.items()}
    return {v: verdicts[v] if v in verdicts else schema.value_name(name, v, lang, form) for v in values}


def _marks(form: Form) -> str:
    """What the control that marks spans is called: as the first of them."""
    return next(iter(form.spans), "")


def to_tasks(rows: Iterable[Mapping[str, Any]], lang: str = "zh", form: Form = CSD) -> list[dict[str, Any]]:
    """Tasks for Label Studio's import of rows of `task_files.tasks_rows`; texts are data, never part of the form."""
    tasks = []
    for row in rows:
        data = {name: row[name] for name in ("task_id", "text", "lang", "round", "schema_version")}
        data |= {"context": row["context"] or NO_CONTEXT, "stage": row.get("stage", 1)}
        asked = [form.fields[name] for name in row["fields"]]
        data["fields"] = list(row["fields"])
        data["asked"] = "\n".join(field.en if lang == "en" else field.zh for field in asked)
        if data["stage"] == 2:
            data["labels"] = task_files.labels_told(row, lang, form)
        tasks.append({"data": data})
    return tasks


# ---------------------------------------------------------------------------------------------------------------- in


def read_export(path: Path) -> list[dict[str, Any]]:
    """The tasks of a JSON export (not JSON_MIN, not CSV).

    Raises:
        BadInput: the file is not one.
    """
    tasks = parse_value(read_text(path), path)
    if not isinstance(tasks, list) or not all(isinstance(t, dict) and isinstance(t.get("data"), dict) for t in tasks):
        raise BadInput(f"{path}: expected a JSON export of Label Studio, a list of tasks with `data`")
    return tasks


def from_export(
    export: Iterable[Mapping[str, Any]], tasks: pl.DataFrame, *, name: str = "export", form: Form = CSD
) -> Export:
    """Labels of a JSON export; a rater is `ls-` and Label Studio's id, and no address gets into a frame.

    Left out, with a reason: cancelled (the rater skipped the task), empty, no_rater (the user was deleted), superseded
    (the rater answered again later), and of an answer: unknown_control (what our form does not have), second_span,
    span_mismatch (the offsets are not of the words marked), empty (a text box). Predictions and drafts are told as
    prediction and draft. A field that was asked for and not answered is told as unanswered; the answer's other fields
    are labels, and whether they count is for `stages.decide` to say.

    Args:
        export: tasks with `data` and `annotations`.
        tasks: a row a task: task_id, and what the form's spans are of, text or context.
        name: of the export, for messages.
        form: what was asked.

    Raises:
        BadInput: a task that is not ours, a rater without an id, or a value outside the schema.
    """
    skipped: list[tuple[str, str | None, str | None, str]] = []
    latest: dict[tuple[str, int, str], _Answer] = {}
    taken: list[tuple[str, int, int, str]] = []
    for task in export:
        with _known(f"{name}, task {task.get('id')!s:.60}"):
            found = _answers(task, skipped, name)
            taken += _taken(task)
        for answer in found:
            key = answer.task_id, answer.round, answer.rater_id
            first, last = sorted([latest.get(key, answer), answer], key=_age)
            if first is not last:
                skipped.append((first.task_id, first.id, None, "superseded"))
            latest[key] = last
    texts = dict(tasks.select("task_id", pl.col(form.marked).fill_null("")).iter_rows())
    rows = []
    for answer in latest.values():
        with _known(f"{name}, {answer.where}"):
            rows += _labels(answer, texts.get(answer.task_id, ""), skipped, form)
    labels = label_files.checked(rows, tasks, name=name, form=form)
    return Export(labels, pl.DataFrame(skipped, _SKIPPED, orient="row"), pl.DataFrame(taken, _TAKEN, orient="row"))


@contextmanager
def _known(where: str) -> Iterator[None]:
    """BadInput for what is not of the shape that Label Studio exports."""
    try:
        yield
    except (AttributeError, TypeError, LookupError, ValueError, OverflowError) as why:
        raise BadInput(f"{where}: another shape than Label Studio's exports have ({why!r:.200})") from why


def _answers(
    task: Mapping[str, Any], skipped: list[tuple[str, str | None, str | None, str]], name: str
) -> list[_Answer]:
    data = task.get("data")
    task_id = data.get("task_id") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(task_id, str):
        raise BadInput(f"{name}, task {task.get('id')}: no task_id in its data; expected a task that we gave out")
    for kind in ("predictions", "drafts"):
        skipped += [(task_id, None, None, kind.removesuffix("s"))] * len(task.get(kind) or ())
    answers = []
    for found in task.get("annotations") or ():
        id_, result = str(found.get("id")), found.get("result") or []
        user = found.get("completed_by")
        reason = (
            "cancelled" if found.get("was_cancelled") else "no_rater" if user is None else "" if result else "empty"
        )
        if reason:
            skipped.append((task_id, id_, None, reason))
            continue
        try:
            round_, stage = (label_files.number_of(name, data.get(name)) for name in ("round", "stage"))
            when = label_files.utc(found.get("updated_at") or found.get("created_at"))
            rater = _rater(user)
        except BadInput as why:
            raise BadInput(f"{name}, task {task_id}, annotation {id_}: {why}") from why
        answers.append(_Answer(task_id, round_, stage, rater, id_, when, data.get("fields") or [], result))
    return answers


def _taken(task: Mapping[str, Any]) -> list[tuple[str, int, int, str]]:
    """The task's row, if as many people as its stage wants have submitted something, whatever it says."""
    round_, stage = (label_files.number_of(name, task["data"].get(name)) for name in ("round", "stage"))
    given = [found.get("completed_by") for found in task.get("annotations") or () if not found.get("was_cancelled")]
    people = {user.get("id") if isinstance(user, Mapping) else user for user in given} - {None}
    is_taken = len(people) >= RATERS[stage]
    return [(task["data"]["task_id"], round_, stage, str(task.get("id")))] if is_taken else []


def _age(answer: _Answer) -> tuple[datetime, int, str]:
    """What the later of two answers of a rater has more of: time, then id."""
    return answer.labelled_at or datetime.min.replace(tzinfo=UTC), len(answer.id), answer.id


def _rater(user: Any) -> str:
    """Our id of a user, whom Label Studio tells by id or with an address beside."""
    number = user.get("id") if isinstance(user, Mapping) else user
    if not number or not str(number).isdigit():
        raise BadInput("completed_by: found a user without an id, expected an id")
    return f"ls-{number}"


def _labels(
    answer: _Answer, text: str, skipped: list[tuple[str, str | None, str | None, str]], form: Form
) -> list[tuple[str, dict[str, Any]]]:
    """The answer's labels as rows for `label_files.checked`."""
    rows, fields = [], set()
    for region in answer.result:
        field, value = region.get("from_name"), region.get("value") or {}
        if field == _marks(form):
            field = _mark(value, form)
        said, reason = _said(field, value, text, form)
        if field in form.spans and field in fields:
            said, reason = None, "second_span"
        if said is None:
            skipped.append((answer.task_id, answer.id, field, reason))
            continue
        fields.add(field)
        row = {"task_id": answer.task_id, "rater_id": answer.rater_id, "round": answer.round, "stage": answer.stage,
               "labelled_at": answer.labelled_at, "tool": TOOL, "field": field, "value": said}  # fmt: skip
        rows.append((answer.where, row))
    skipped += [(answer.task_id, answer.id, name, "unanswered") for name in answer.asked if name not in fields]
    return rows


def _mark(value: Mapping[str, Any], form: Form) -> str:
    """Which of the spans a region is, by its label; of one, whatever the label."""
    if len(form.spans) == 1:
        return _marks(form)
    label = " and ".join(map(str, value.get("labels") or ["no label"]))
    return next((span for span, names in form.spans.items() if label in (span, *names)), label)


def _said(field: Any, value: Mapping[str, Any], text: str, form: Form) -> tuple[str | None, str]:
    """What is said of a field, or why it is left out."""
    if field in form.spans:
        span = _span(value, text)
        return span, "span_mismatch"
    if field in form.notes:
        told = value.get("text")
        said = "\n".join(map(str, told)) if isinstance(told, list) else str(told or "")
        return said.strip() or None, "empty"
    if field not in form.fields:
        return None, "unknown_control"
    choices = value.get("choices") or []
    # of two choices neither is the field's value: `checked` refuses the two together
    said = " and ".join(map(str, choices))
    return _value(field, said, form), "empty"


def _value(field: str, said: str, form: Form) -> str:
    """The value we keep, where an import of a form without aliases holds the readable name."""
    if said in task_files.values_of(field, 2, form):
        return said
    shown = {name: value for lang in ("zh", "en") for value, name in _choices(field, 2, lang, form).items()}
    return shown.get(said, said)


def _span(value: Mapping[str, Any], text: str) -> str | None:
    """`start-end` of a region in characters of the text; None where that is not what was marked."""
    start, end, marked = value.get("start"), value.get("end"), value.get("text")
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end:
        return None
    if end <= len(text) and marked in (None, text[start:end]):
        return f"{start}-{end}"
    units = text.encode("utf-16-le")
    before, inside = (units[a:b].decode("utf-16-le", "replace") for a, b in ((0, 2 * start), (2 * start, 2 * end)))
    return f"{len(before)}-{len(before) + len(inside)}" if inside and inside == marked else None
