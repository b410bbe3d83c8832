"""Tasks out to raters and labels back in, whatever tool they use: tasks.jsonl, long and wide tables, spreadsheets.

Out goes what a rater needs and no more: no id of a platform, a user or a thread. In come rows, each checked against the
form and its task; what is wrong is told by file, row and field before anything is kept. The form is that of CSD unless
another is given.
"""

import csv
import hashlib
import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import left_out
from pipeline.collect.privacy.anonymise import scrub_id
from pipeline.collect.privacy.particulars import scrub
from pipeline.errors import BadInput, Missing
from pipeline.io.lines import UTF8
from pipeline.io.rows import CHUNK, Chunk, chunks
from pipeline.io.spreadsheets import defused, plain
from pipeline.io.visible import hidden, visible
from pipeline.label import schema
from pipeline.label.schema import CSD, Form
from pipeline.label.stages import AGAIN, DELETE
from pipeline.tables import Labels

COLUMNS = pl.Schema({name: kind for name, kind in Labels.create_empty().schema.items() if name != "project"})
"""Columns of a frame of labels: the contract Labels without the project."""
VERDICTS = (AGAIN, DELETE)
"""What an adjudicator may say of a field instead of a value: label it anew, or drop the task (CSD-15)."""

NOT_ASKED = "—"
"""In a sheet's cell: this field of the task is asked of nobody now. It is no answer, as an empty cell is none."""

_KEY = ("task_id", "round", "stage", "rater_id", "field")
_LONG = {"task_id", "rater_id", "field", "value"}
_BESIDE = {*COLUMNS, "text", "context", "lang", "labels", "schema_version"}  # columns of a wide sheet that are no label
_OPTIONAL = ("round", "stage", "labelled_at", "tool")
_ANY = "?" * 1_000_000  # in place of a text that is not at hand
_TOLD = 10  # faults in one message
_CELL = 32_767  # characters; a spreadsheet drops the rest


class _Task(NamedTuple):
    """What is known of the tasks, to check labels against."""

    text: Mapping[str, str] | None  # what spans are offsets into
    raters: Collection[str] | None
    form: Form


# --------------------------------------------------------------------------------------------------------------- out


def tasks_rows(tasks: pl.DataFrame, labels: pl.DataFrame | None = None, form: Form = CSD) -> Iterator[dict[str, Any]]:
    """What raters are given, a dictionary a task.

    Args:
        tasks: a row a task: task_id, text, context, lang, schema_version; where they differ from the usual also round
            (1) and fields (a list of names; all).
        labels: what raters said (`COLUMNS`); then the tasks are for the adjudicator, who sees the labels of stage 1 of
            the task's round. Raters are called A, B, C by a hash of task and rater, so that no letter is a person.
        form: what they are asked.
    """
    said = _said(labels) if labels is not None else None
    for row in tasks.iter_rows(named=True):
        told = {
            "task_id": row["task_id"],
            "text": row["text"],
            "context": row["context"],
            "lang": row["lang"],
            "round": row.get("round") or 1,
            "schema_version": row["schema_version"],
            "fields": list(row.get("fields") or form.fields),
        }
        if said is not None:
            asked = {*told["fields"], *form.notes}
            given = said.get((told["task_id"], told["round"]), [])
            told["stage"] = 2
            told["labels"] = [
                {"rater": _letter(n), **{name: value for name, value in values.items() if name in asked}}
                for n, values in enumerate(given)
            ]
        yield told


def _said(labels: pl.DataFrame) -> dict[tuple[str, int], list[dict[str, str]]]:
    """Of each task and round the labels of each rater, in an order that tells nothing of who they are."""
    raters: dict[tuple[str, int], dict[str, dict[str, str]]] = {}
    for row in labels.filter(pl.col("stage") == 1).iter_rows(named=True):
        given = raters.setdefault((row["task_id"], row["round"]), {})
        given.setdefault(row["rater_id"], {})[row["field"]] = row["value"]
    return {
        task: [given[rater] for rater in sorted(given, key=lambda r: hashlib.sha256(f"{task}{r}".encode()).digest())]
        for task, given in raters.items()
    }


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else f"R{number + 1}"


def write_tasks(path: Path, tasks: pl.DataFrame, labels: pl.DataFrame | None = None, form: Form = CSD) -> int:
    """Write tasks.jsonl, one JSON object a line (see `tasks_rows`); how many were written."""
    draft, count = path.with_name(f".{secrets.token_hex(4)}.{path.name}"), 0
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        for row in tasks_rows(tasks, labels, form):
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
        tasks: see `tasks_rows`.
        rater_id: who it is for.
        labels: see `tasks_rows`; with them it is the adjudicator's sheet.
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
    sheet = _sheet(tasks, rater_id, labels, lang, form)
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


def _sheet(tasks: pl.DataFrame, rater_id: str, labels: pl.DataFrame | None, lang: str, form: Form) -> _Sheet:
    stage = 1 if labels is None else 2
    told = list(tasks_rows(tasks, labels, form))
    asked = [name for name in form.fields if any(name in row["fields"] for row in told)]
    first = [name for name in asked if name == form.first]
    columns = [
        "task_id", "rater_id", "round", "stage", "text", *first, "context", *(["labels"] if stage == 2 else []),
        *(name for name in asked if name not in first), *form.notes,
    ]  # fmt: skip
    rows = [
        {
            "task_id": row["task_id"], "rater_id": rater_id, "round": str(row["round"]), "stage": str(stage),
            "text": visible(row["text"]), "context": visible(row["context"] or ""),
            **({"labels": visible(labels_told(row, lang, form))} if stage == 2 else {}),
            **{name: NOT_ASKED for name in asked if name not in row["fields"]},
        }
        for row in told
    ]  # fmt: skip
    return _Sheet(columns, rows, stage, form)


def labels_told(row: Mapping[str, Any], lang: str, form: Form = CSD) -> str:
    """The labels of an adjudicator's task (see `tasks_rows`) as text, a line a field or note."""
    lines = []
    for name in [*row["fields"], *form.notes]:
        given = [(label["rater"], label[name]) for label in row["labels"] if name in label]
        if name in form.notes:
            lines += [f"{name} {rater}: {value}" for rater, value in given]
        else:
            told = " · ".join(f"{rater} {schema.value_name(name, value, lang, form)}" for rater, value in given)
            lines.append(f"{name}: {told or '—'}")
    return "\n".join(lines)


def values_of(field: str, stage: int, form: Form = CSD) -> tuple[str, ...]:
    """What may be said of a field: its values, and in stage 2 also `VERDICTS`."""
    return form.fields[field].values + (VERDICTS if stage == 2 else ())


def _write_csv(path: Path, sheet: _Sheet, lang: str, guidelines: str) -> None:  # noqa: ARG001
    with path.open("w", encoding="utf-8-sig", newline="") as file:  # Excel takes csv without the mark for GBK
        writer = csv.writer(file)
        writer.writerow(sheet.columns)
        writer.writerows([defused(row.get(name, "")) for name in sheet.columns] for row in sheet.rows)


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
                rule = {"validate": "list", "source": list(values_of(name, sheet.stage, sheet.form)),
                        "input_title": name, "input_message": _question(name, sheet, lang)[:255]}  # fmt: skip
                page.data_validation(1, column, len(sheet.rows), column, rule)
        for number, row in enumerate(sheet.rows, 1):
            for name, cell in row.items():
                page.write_string(number, sheet.columns.index(name), cell, wrapped)
        page.freeze_panes(1, 0)
        guide = book.add_worksheet("guidelines")
        told = [(name, _question(name, sheet, lang)) for name in sheet.empty]
        for number, (name, line) in enumerate([*told, *(("", line) for line in guidelines.splitlines())]):
            guide.write_string(number, 0, name)
            guide.write_string(number, 1, line[:_CELL], wrapped)
        guide.set_column(1, 1, 100)


def _question(name: str, sheet: _Sheet, lang: str) -> str:
    """What is asked, and what each value means."""
    form = sheet.form
    if name in form.notes:
        return form.notes[name][lang == "en"]
    field = form.fields[name]
    names = [
        value if value in VERDICTS else f"{value} = {schema.value_name(name, value, lang, form)}"
        for value in values_of(name, sheet.stage, form)
    ]
    return f"{field.en if lang == 'en' else field.zh} {', '.join(names)}"


# ---------------------------------------------------------------------------------------------------------------- in


def read(
    path: Path,
    tasks: pl.DataFrame | None,
    raters: Collection[str] | None = None,
    encoding: str = UTF8,
    form: Form = CSD,
) -> pl.DataFrame:
    """Labels from a file, long (a row a label) or wide (a row a task and rater) by its columns.

    Args:
        path: csv, tsv, jsonl, json, xlsx or parquet.
        tasks: a row a task that labels may be of: task_id, text, and context where the form has spans of it. None
            takes any task, and any length for a span.
        raters: ids of the raters expected; any, unless given.
        encoding: of a text file.
        form: what was asked.

    Returns:
        A row a label (`COLUMNS`).

    Raises:
        BadInput: the first ten rows that are wrong, by file, row and field.
    """
    parts = _sheets(path, encoding)
    is_long = "field" in parts[0].rows[0]
    if is_long:
        left_out.record_columns(path, [name for name in parts[0].rows[0] if name not in {*_LONG, *_OPTIONAL}])
    read_rows = _read_long if is_long else _read_wide
    return read_rows(path, parts[1], tasks, raters, form)


def read_labels(
    path: Path,
    tasks: pl.DataFrame | None,
    raters: Collection[str] | None = None,
    encoding: str = UTF8,
    form: Form = CSD,
) -> pl.DataFrame:
    """Labels from a long table: task_id, rater_id, field, value.

    There may also be round (1 where it is missing), stage (1), labelled_at (none; without a zone it is UTC) and tool
    (`file`); other columns are passed over. For arguments, result and errors see `read`.
    """
    return _read_long(path, _sheets(path, encoding)[1], tasks, raters, form)


def read_wide(
    path: Path,
    tasks: pl.DataFrame | None,
    raters: Collection[str] | None = None,
    encoding: str = UTF8,
    form: Form = CSD,
) -> pl.DataFrame:
    """Labels from a sheet, a row a task and rater: task_id, rater_id and a column a field or note.

    An empty cell is no answer, nor is a dash, which `write_wide` puts where nothing is asked. There may also be the
    other columns that `write_wide` writes; a text that is another task's shows that a column was sorted alone, and is
    an error. For arguments, result and errors see `read`.
    """
    return _read_wide(path, _sheets(path, encoding)[1], tasks, raters, form)


def _sheets(path: Path, encoding: str) -> tuple[Chunk, Iterator[Chunk]]:
    """The first chunk, to look at, and all chunks; sheets of a workbook without tasks, such as guidelines, are not."""
    books = path.suffix.lower() == ".xlsx"
    parts = (part for part in chunks(path, encoding) if not books or "task_id" in part.rows[0])
    first = next(parts, None)
    if first is None or "task_id" not in first.rows[0]:
        raise BadInput(f"{path}: no column task_id; expected labels, a row each, or a row a task and rater")
    return first, chain([first], parts)


def _rows(parts: Iterable[Chunk]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for part in parts:
        yield from enumerate(part.rows, part.first)


def _read_long(
    path: Path, parts: Iterator[Chunk], tasks: pl.DataFrame | None, raters: Collection[str] | None, form: Form
) -> pl.DataFrame:
    def found() -> Iterator[tuple[str, Mapping[str, Any]]]:
        for number, row in _rows(parts):
            if lacking := sorted(_LONG - row.keys()):
                raise BadInput(f"{path}, row {number}: no {', '.join(lacking)}; expected {', '.join(sorted(_LONG))}")
            yield f"row {number}", row

    return checked(found(), tasks, raters, name=str(path), form=form)


def _read_wide(
    path: Path, parts: Iterator[Chunk], tasks: pl.DataFrame | None, raters: Collection[str] | None, form: Form
) -> pl.DataFrame:
    texts = {task_id: visible(text) for task_id, text in (_texts(tasks, "text") or {}).items()}
    others = set(texts.values())
    is_defused = path.suffix.lower() in (".csv", ".tsv")

    def found() -> Iterator[tuple[str, Mapping[str, Any]]]:
        for number, cells in _rows(parts):
            where = f"row {number}"
            row = {name: plain(cell) for name, cell in cells.items()} if is_defused else cells
            if "rater_id" not in row:
                raise BadInput(f"{path}, {where}: no rater_id; expected who gave the labels")
            if not set(row) - _BESIDE:
                raise BadInput(f"{path}, {where}: no column of what was asked; expected {', '.join(form.fields)}")
            seen, text = str(row.get("text") or ""), texts.get(_word(row.get("task_id")))
            if text is not None and seen != text and seen in others:
                raise BadInput(
                    f"{path}, {where}: the text is another task's: found {seen[:40]!r}, expected {text[:40]!r}; was a "
                    "column sorted alone?"
                )
            beside = {name: row.get(name) for name in ("task_id", "rater_id", *_OPTIONAL)}
            for name, value in row.items():
                if name not in _BESIDE and _word(value) not in ("", NOT_ASKED):
                    yield where, {**beside, "field": name, "value": value}

    return checked(found(), tasks, raters, name=str(path), form=form)


def checked(
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    tasks: pl.DataFrame | None,
    raters: Collection[str] | None = None,
    *,
    name: str,
    form: Form = CSD,
) -> pl.DataFrame:
    """The labels in rows that say where they were found.

    Args:
        rows: where (such as `row 7`), and task_id, rater_id, field, value, maybe round, stage, labelled_at, tool.
        tasks: a row a task: task_id, and what the form's spans are of, text or context; None takes any.
        raters: ids of the raters expected; any, unless given.
        name: of the file, for messages.
        form: what was asked.

    Returns:
        A row a label (`COLUMNS`).

    Raises:
        BadInput: the first ten rows that are wrong.
    """
    known = _Task(_texts(tasks, form.marked), raters, form)
    seen: dict[tuple[Any, ...], str] = {}
    faults: list[str] = []

    def good() -> Iterator[tuple[Any, ...]]:
        for where, row in rows:
            try:
                label = _label(row, known)
                key = label[: len(_KEY)]
                if key in seen:
                    raise BadInput(f"this rater's {key[-1]} of task {key[0]} is also in {seen[key]}; expected it once")
            except BadInput as why:
                faults.append(f"{where}: {why}")
                if len(faults) == _TOLD:
                    return
                continue
            seen[key] = where
            yield label

    order = [*_KEY, "value", "labelled_at", "tool"]
    labels, frames = good(), []
    while batch := list(islice(labels, CHUNK)):
        frames.append(pl.DataFrame(batch, {column: COLUMNS[column] for column in order}, orient="row"))
    if faults:
        raise BadInput(f"{name}, " + f"\n{name}, ".join(faults))
    return pl.concat([COLUMNS.to_frame(), *(frame.select(COLUMNS.names()) for frame in frames)])


def _texts(tasks: pl.DataFrame | None, column: str) -> dict[str, str] | None:
    return None if tasks is None else dict(tasks.select("task_id", pl.col(column).fill_null("")).iter_rows())


def _label(row: Mapping[str, Any], known: _Task) -> tuple[Any, ...]:
    """One label in the order of the key, then value, time and tool."""
    task_id, rater, field = (_word(row.get(name)) for name in ("task_id", "rater_id", "field"))
    if not task_id:
        raise BadInput("task_id: found nothing, expected that of a task")
    if known.text is not None and task_id not in known.text:
        raise BadInput(f"task_id: found {task_id[:40]!r}, expected one of the {len(known.text)} tasks given out")
    if not rater:
        raise BadInput("rater_id: found nothing, expected who gave the label")
    if known.raters is not None and rater not in known.raters:
        raise BadInput(f"rater_id: found {rater[:40]!r}, expected one of {', '.join(sorted(known.raters))}")
    round_, stage = (number_of(name, row.get(name)) for name in ("round", "stage"))
    text = _ANY if known.text is None else known.text[task_id]
    value = _value(field, row.get("value"), stage, text, known.form)
    rater = scrub_id(rater, "raters", None)  # a mail address, say
    return task_id, round_, stage, rater, field, value, utc(row.get("labelled_at")), _word(row.get("tool")) or "file"


def _value(field: str, value: Any, stage: int, text: str, form: Form) -> str:
    said = _word(value)
    if field in form.notes:
        if not said:
            raise BadInput(f"{field}: found nothing, expected text; leave the row out where there is no note")
        is_span = field in form.spans
        said = hidden(said) if is_span and form.may_quote else said  # quoted from a sheet that shows what is unseen
        return "{}-{}".format(*schema.span_of(said, text, field, may_quote=form.may_quote)) if is_span else scrub(said)
    if stage == 2 and field in form.fields and said.casefold() in VERDICTS:
        return said.casefold()
    return schema.checked(field, said, form)


def number_of(name: str, value: Any) -> int:
    """A round or stage, 1 or 2; 1 for nothing, BadInput for anything else."""
    said = _word(value)
    if said in ("", "1", "1.0"):
        return 1
    if said in ("2", "2.0"):
        return 2
    raise BadInput(f"{name}: found {said[:40]!r}, expected 1 or 2")


def utc(value: Any) -> datetime | None:
    """A time, or its text of ISO 8601, as UTC; nothing for nothing, BadInput for anything else."""
    said = _word(value)
    if not said:
        return None
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(said)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as why:
        raise BadInput(f"labelled_at: found {said[:40]!r}, expected a time such as 2026-11-20T08:00:00Z") from why


def _word(value: Any) -> str:
    return "" if value is None else str(value).strip()
