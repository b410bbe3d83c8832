"""Tasks out to raters: tasks.jsonl, and sheets as csv or xlsx, with no id of a platform, a user or a thread."""

import csv
import hashlib
import json
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import BadInput, Missing
from pipeline.io.atomic import replace_file
from pipeline.io.spreadsheets import escape_formula
from pipeline.io.visible import escape_invisible
from pipeline.label import schema
from pipeline.label.schema import CSD, VERDICTS, Form

NOT_ASKED = "—"  # in a sheet's cell: this field of the task waits for no answer. It is read as an empty cell is.
_CELL = 32_767  # characters; a spreadsheet drops the rest


def build_rows(tasks: pl.DataFrame, labels: pl.DataFrame | None = None, form: Form = CSD) -> Iterator[dict[str, Any]]:
    """Build what raters are given, a dictionary a task; tasks may have round (1) and fields (all) of their own.

    With `labels` (`label_files.COLUMNS`) the tasks are for the adjudicator, who sees the labels of stage 1 of the
    task's round. Raters are called A, B, C by a hash of task and rater, so that no letter is a person.
    """
    labels_by_task = None if labels is None else _group_labels(labels)
    for row in tasks.iter_rows(named=True):
        fields, in_round = list(row.get("fields") or form.fields), row.get("round") or 1
        task = {name: row[name] for name in ("task_id", "text", "context", "lang")}
        task |= {"round": in_round, "schema_version": row["schema_version"], "fields": fields}
        if labels_by_task is not None:
            names = {*fields, *form.notes}
            rater_labels = labels_by_task.get((row["task_id"], in_round), [])
            task["stage"] = 2
            task["labels"] = [
                {"rater": letter, **{name: value for name, value in values.items() if name in names}}
                for letter, values in zip(string.ascii_uppercase, rater_labels, strict=False)
            ]
        yield task


def _group_labels(labels: pl.DataFrame) -> dict[tuple[str, int], list[dict[str, str]]]:
    groups: dict[tuple[str, int], dict[str, dict[str, str]]] = {}
    for row in labels.filter(stage=1).iter_rows(named=True):
        labels_by_rater = groups.setdefault((row["task_id"], row["round"]), {})
        labels_by_rater.setdefault(row["rater_id"], {})[row["field"]] = row["value"]
    labels_by_task = {}
    for task, labels_by_rater in groups.items():
        raters = sorted(labels_by_rater, key=lambda rater: hashlib.sha256(f"{task}{rater}".encode()).digest())
        labels_by_task[task] = [labels_by_rater[rater] for rater in raters]
    return labels_by_task


def write_tasks(path: Path, tasks: pl.DataFrame, labels: pl.DataFrame | None = None, form: Form = CSD) -> int:
    """Write tasks.jsonl, one JSON object a line (see `build_rows`); return the task count."""
    with replace_file(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in build_rows(tasks, labels, form))
    return tasks.height


def write_wide(
    path: Path,
    tasks: pl.DataFrame,
    rater_id: str,
    labels: pl.DataFrame | None = None,
    *,
    lang: str = "zh",
    guidelines: str = "",
    form: Form = CSD,
) -> int:
    """Write a sheet (.csv or .xlsx) for one rater, a row a task, with empty columns for fields; return the task count.

    They stand after what is shown, but for a field that is answered first: it stands before the context. What cannot be
    seen in a text is shown (⟨U+202E⟩). A spreadsheet evaluates none of it: in csv a text that looks like a formula gets
    an apostrophe, which `read` takes off again; in xlsx every cell is text. An xlsx file lets fields be picked from
    lists, and has a second sheet with questions, values and the guidelines. With labels it is the adjudicator's sheet.
    BadInput: the ending is another, or a text is too long for a cell of xlsx. Missing: xlsxwriter is not installed.
    """
    if path.suffix.lower() not in (".csv", ".xlsx"):
        raise BadInput(f"{path}: cannot write {path.suffix or 'a file without an ending'}; expected .csv or .xlsx")
    sheet = _build_sheet(tasks, rater_id, labels, lang, form)
    is_workbook = path.suffix.lower() == ".xlsx"
    for row in sheet.rows:
        if is_workbook and (longest := max(map(len, row.values()))) > _CELL:
            problem = f"task {row['task_id']} has a text of {longest} characters, a cell holds {_CELL}"
            raise BadInput(f"{path}: {problem}; write .csv")
    with replace_file(path) as draft:
        if is_workbook:
            _write_xlsx(draft, sheet, guidelines)
        else:
            with draft.open("w", encoding="utf-8-sig", newline="") as file:  # Excel takes csv without the mark for GBK
                writer = csv.writer(file)
                writer.writerow(sheet.columns)
                writer.writerows([escape_formula(row.get(name, "")) for name in sheet.columns] for row in sheet.rows)
    return len(sheet.rows)


class _Sheet(NamedTuple):
    columns: list[str]
    rows: list[dict[str, str]]  # what is shown, or a dash; the columns that a row lacks are to be filled in
    stage: int
    form: Form
    lang: str

    def format_question(self, name: str) -> str:
        question = self.form.get_question(name, self.lang)
        if name in self.form.notes:
            return question
        names = [
            value if value in VERDICTS else f"{value} = {schema.get_value_name(name, value, self.lang, self.form)}"
            for value in schema.list_values(name, self.stage, self.form)
        ]
        return f"{question} {', '.join(names)}"


def _build_sheet(tasks: pl.DataFrame, rater_id: str, labels: pl.DataFrame | None, lang: str, form: Form) -> _Sheet:
    stage = 1 if labels is None else 2
    task_rows = list(build_rows(tasks, labels, form))
    fields = [name for name in form.fields if any(name in row["fields"] for row in task_rows)]
    first = [name for name in fields if name == form.first]
    other_fields = [name for name in fields if name != form.first]
    columns = ["task_id", "rater_id", "round", "stage", "text", *first, "context", *(["labels"] if stage == 2 else [])]
    columns += [*other_fields, *form.notes]
    rows = []
    for task in task_rows:
        row = {"task_id": task["task_id"], "rater_id": rater_id, "round": str(task["round"]), "stage": str(stage)}
        row |= {name: escape_invisible(task[name] or "") for name in ("text", "context")}
        if stage == 2:
            row["labels"] = escape_invisible(format_labels(task, lang, form))
        asked_names = {note for note in form.notes if form.notes_of.get(note) in (None, *task["fields"])}
        asked_names |= {*task["fields"]}
        rows.append(row | {name: NOT_ASKED for name in (*fields, *form.notes) if name not in asked_names})
    return _Sheet(columns, rows, stage, form, lang)


def format_labels(row: Mapping[str, Any], lang: str, form: Form = CSD) -> str:
    """Format the labels of an adjudicator's task (see `build_rows`) as text, a line a field or note."""
    lines = []
    for name in [*row["fields"], *form.notes]:
        values_by_rater = [(label["rater"], label[name]) for label in row["labels"] if name in label]
        if name in form.notes:
            lines += [f"{name} {rater}: {value}" for rater, value in values_by_rater]
        else:
            values = [f"{rater} {schema.get_value_name(name, value, lang, form)}" for rater, value in values_by_rater]
            is_open = len({value for _, value in values_by_rater}) == 3  # none can be chosen (CSD-15)
            verdicts = f" → {' / '.join(VERDICTS)}" if is_open else ""
            lines.append(f"{name}: {' · '.join(values) or '—'}{verdicts}")
    return "\n".join(lines)


def _write_xlsx(path: Path, sheet: _Sheet, guidelines: str) -> None:
    try:
        import xlsxwriter  # type: ignore[import-untyped]
    except ImportError as why:
        raise Missing("xlsxwriter is not installed: pip install xlsxwriter, or write .csv") from why
    form = sheet.form
    with xlsxwriter.Workbook(path, {"strings_to_formulas": False, "strings_to_urls": False}) as book:
        page, wrapped = book.add_worksheet("labels"), book.add_format({"text_wrap": True, "valign": "top"})
        grey = book.add_format({"bg_color": "#d9d9d9", "font_color": "#7f7f7f", "align": "center", "valign": "top"})
        for column, name in enumerate(sheet.columns):
            page.write_string(0, column, name, book.add_format({"bold": True}))
            if name in ("text", "context", "labels"):
                page.set_column(column, column, 50)
            if name in form.fields and sheet.rows:
                rule = {"validate": "list", "source": list(schema.list_values(name, sheet.stage, form))}
                rule |= {"input_title": name, "input_message": sheet.format_question(name)[:255]}
                page.data_validation(1, column, len(sheet.rows), column, rule)
        for number, row in enumerate(sheet.rows, 1):
            for name, cell in row.items():
                page.write_string(number, sheet.columns.index(name), cell, grey if cell == NOT_ASKED else wrapped)
        page.freeze_panes(1, 0)
        guide = book.add_worksheet("guidelines")
        asked_names = [name for name in sheet.columns if name in {**form.fields, **form.notes}]
        questions = [(name, sheet.format_question(name)) for name in asked_names]
        for number, (name, line) in enumerate([*questions, *(("", line) for line in guidelines.splitlines())]):
            guide.write_string(number, 0, name)
            guide.write_string(number, 1, line[:_CELL], wrapped)
        guide.set_column(1, 1, 100)
