"""Tasks out to raters, whatever tool they use: tasks.jsonl, and sheets as csv or xlsx.

Out goes what a rater needs and no more: no id of a platform, a user or a thread. The form is that of CSD unless another
is given.
"""

import csv
import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import BadInput, Missing
from pipeline.io.spreadsheets import escape_formula
from pipeline.io.visible import escape_invisible
from pipeline.label import schema
from pipeline.label.schema import CSD, Form
from pipeline.label.stages import AGAIN, DELETE

VERDICTS = (AGAIN, DELETE)
"""What an adjudicator may say of a field instead of a value: label it anew, or drop the task (CSD-15)."""

NOT_ASKED = "—"
"""In a sheet's cell: this field of the task is asked of nobody now. It is no answer, as an empty cell is none."""

_CELL = 32_767  # characters; a spreadsheet drops the rest


def build_rows(tasks: pl.DataFrame, labels: pl.DataFrame | None = None, form: Form = CSD) -> Iterator[dict[str, Any]]:
    """What raters are given, a dictionary a task.

    Args:
        tasks: a row a task: task_id, text, context, lang, schema_version; where they differ from the usual also round
            (1) and fields (a list of names; all).
        labels: what raters said (`COLUMNS`); then the tasks are for the adjudicator, who sees the labels of stage 1 of
            the task's round. Raters are called A, B, C by a hash of task and rater, so that no letter is a person.
        form: what they are asked.
    """
    labels_by_task = _group_labels(labels) if labels is not None else None
    for row in tasks.iter_rows(named=True):
        task = {
            "task_id": row["task_id"],
            "text": row["text"],
            "context": row["context"],
            "lang": row["lang"],
            "round": row.get("round") or 1,
            "schema_version": row["schema_version"],
            "fields": list(row.get("fields") or form.fields),
        }
        if labels_by_task is not None:
            names = {*task["fields"], *form.notes}
            rater_labels = labels_by_task.get((task["task_id"], task["round"]), [])
            task["stage"] = 2
            task["labels"] = [
                {"rater": _make_letter(n), **{name: value for name, value in values.items() if name in names}}
                for n, values in enumerate(rater_labels)
            ]
        yield task


def _group_labels(labels: pl.DataFrame) -> dict[tuple[str, int], list[dict[str, str]]]:
    """Of each task and round the labels of each rater, in an order that tells nothing of who they are."""
    raters: dict[tuple[str, int], dict[str, dict[str, str]]] = {}
    for row in labels.filter(pl.col("stage") == 1).iter_rows(named=True):
        labels_by_rater = raters.setdefault((row["task_id"], row["round"]), {})
        labels_by_rater.setdefault(row["rater_id"], {})[row["field"]] = row["value"]
    return {
        task: [
            labels_by_rater[rater]
            for rater in sorted(labels_by_rater, key=lambda r: hashlib.sha256(f"{task}{r}".encode()).digest())
        ]
        for task, labels_by_rater in raters.items()
    }


def _make_letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else f"R{number + 1}"


def write_tasks(path: Path, tasks: pl.DataFrame, labels: pl.DataFrame | None = None, form: Form = CSD) -> int:
    """Write tasks.jsonl, one JSON object a line (see `build_rows`); how many were written."""
    draft, count = path.with_name(f".{secrets.token_hex(4)}.{path.name}"), 0
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        for row in build_rows(tasks, labels, form):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    draft.replace(path)
    return count


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
    """Write a sheet (.csv or .xlsx) for one rater, a row a task, with empty columns for fields and notes.

    They stand after what is shown, but for a field that is answered first: it stands before the context.

    What cannot be seen in a text is shown (⟨U+202E⟩). A spreadsheet evaluates none of it: in csv a text that looks like
    a formula gets an apostrophe, which `read` takes off again; in xlsx every cell is text. An xlsx file lets fields be
    picked from lists, and has a second sheet with questions, values and the guidelines.

    Args:
        path: the sheet.
        tasks: see `build_rows`.
        rater_id: who it is for.
        labels: see `build_rows`; with them it is the adjudicator's sheet.
        lang: language of questions and names, zh or en.
        guidelines: text for the second sheet, line by line.
        form: what is asked.

    Returns:
        How many tasks it holds.

    Raises:
        BadInput: the ending is another, or a text is too long for a cell of xlsx.
        Missing: xlsxwriter is not installed.
    """
    writers = {".csv": _write_csv, ".xlsx": _write_xlsx}
    if (write := writers.get(path.suffix.lower())) is None:
        raise BadInput(f"{path}: cannot write {path.suffix or 'a file without an ending'}; expected .csv or .xlsx")
    sheet = _build_sheet(tasks, rater_id, labels, lang, form)
    draft = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    write(draft, sheet, lang, guidelines)
    draft.replace(path)
    return len(sheet.rows)


class _Sheet(NamedTuple):
    """A sheet before it is written."""

    columns: list[str]
    rows: list[dict[str, str]]  # what is given, or a dash; the columns that a row lacks are to be filled in
    stage: int
    form: Form

    @property
    def empty(self) -> list[str]:
        """The columns to be filled in."""
        return [name for name in self.columns if name in self.form.fields or name in self.form.notes]


def _build_sheet(tasks: pl.DataFrame, rater_id: str, labels: pl.DataFrame | None, lang: str, form: Form) -> _Sheet:
    stage = 1 if labels is None else 2
    task_rows = list(build_rows(tasks, labels, form))
    asked_fields = [name for name in form.fields if any(name in row["fields"] for row in task_rows)]
    first = [name for name in asked_fields if name == form.first]
    columns = [
        "task_id", "rater_id", "round", "stage", "text", *first, "context", *(["labels"] if stage == 2 else []),
        *(name for name in asked_fields if name not in first), *form.notes,
    ]  # fmt: skip
    rows = [
        {
            "task_id": row["task_id"], "rater_id": rater_id, "round": str(row["round"]), "stage": str(stage),
            "text": escape_invisible(row["text"]), "context": escape_invisible(row["context"] or ""),
            **({"labels": escape_invisible(format_labels(row, lang, form))} if stage == 2 else {}),
            **{name: NOT_ASKED for name in asked_fields if name not in row["fields"]},
        }
        for row in task_rows
    ]  # fmt: skip
    return _Sheet(columns, rows, stage, form)


def format_labels(row: Mapping[str, Any], lang: str, form: Form = CSD) -> str:
    """The labels of an adjudicator's task (see `build_rows`) as text, a line a field or note."""
    lines = []
    for name in [*row["fields"], *form.notes]:
        values_by_rater = [(label["rater"], label[name]) for label in row["labels"] if name in label]
        if name in form.notes:
            lines += [f"{name} {rater}: {value}" for rater, value in values_by_rater]
        else:
            values = " · ".join(
                f"{rater} {schema.get_value_name(name, value, lang, form)}" for rater, value in values_by_rater
            )
            lines.append(f"{name}: {values or '—'}")
    return "\n".join(lines)


def list_values(field: str, stage: int, form: Form = CSD) -> tuple[str, ...]:
    """What may be said of a field: its values, and in stage 2 also `VERDICTS`."""
    return form.fields[field].values + (VERDICTS if stage == 2 else ())


def _write_csv(path: Path, sheet: _Sheet, lang: str, guidelines: str) -> None:  # noqa: ARG001
    with path.open("w", encoding="utf-8-sig", newline="") as file:  # Excel takes csv without the mark for GBK
        writer = csv.writer(file)
        writer.writerow(sheet.columns)
        writer.writerows([escape_formula(row.get(name, "")) for name in sheet.columns] for row in sheet.rows)


def _write_xlsx(path: Path, sheet: _Sheet, lang: str, guidelines: str) -> None:
    try:
        import xlsxwriter  # type: ignore[import-untyped]
    except ImportError as why:
        raise Missing("xlsxwriter is not installed: pip install xlsxwriter, or write .csv") from why
    for row in sheet.rows:
        if (longest := max(map(len, row.values()))) > _CELL:
            raise BadInput(
                f"{path}: task {row['task_id']} has a text of {longest} characters, a cell holds {_CELL}; write .csv"
            )
    with xlsxwriter.Workbook(path, {"strings_to_formulas": False, "strings_to_urls": False}) as book:
        page, wrapped = book.add_worksheet("labels"), book.add_format({"text_wrap": True, "valign": "top"})
        for column, name in enumerate(sheet.columns):
            page.write_string(0, column, name, book.add_format({"bold": True}))
            if name in ("text", "context", "labels"):
                page.set_column(column, column, 50)
            if name in sheet.form.fields and sheet.rows:
                rule = {"validate": "list", "source": list(list_values(name, sheet.stage, sheet.form)),
                        "input_title": name, "input_message": _format_question(name, sheet, lang)[:255]}  # fmt: skip
                page.data_validation(1, column, len(sheet.rows), column, rule)
        for number, row in enumerate(sheet.rows, 1):
            for name, cell in row.items():
                page.write_string(number, sheet.columns.index(name), cell, wrapped)
        page.freeze_panes(1, 0)
        guide = book.add_worksheet("guidelines")
        questions = [(name, _format_question(name, sheet, lang)) for name in sheet.empty]
        for number, (name, line) in enumerate([*questions, *(("", line) for line in guidelines.splitlines())]):
            guide.write_string(number, 0, name)
            guide.write_string(number, 1, line[:_CELL], wrapped)
        guide.set_column(1, 1, 100)


def _format_question(name: str, sheet: _Sheet, lang: str) -> str:
    """What is asked, and what each value means."""
    form = sheet.form
    if name in form.notes:
        return form.notes[name][lang == "en"]
    field = form.fields[name]
    names = [
        value if value in VERDICTS else f"{value} = {schema.get_value_name(name, value, lang, form)}"
        for value in list_values(name, sheet.stage, form)
    ]
    return f"{field.en if lang == 'en' else field.zh} {', '.join(names)}"
