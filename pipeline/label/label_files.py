"""Labels back from raters, whatever tool they use: long and wide tables, spreadsheets, exports.

In come rows, each checked against the form and its task; what is wrong is told by file, row and field before anything
is kept. The form is that of CSD unless another is given.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import left_out
from pipeline.collect.privacy.anonymise import scrub_id
from pipeline.collect.privacy.particulars import scrub
from pipeline.errors import BadInput
from pipeline.io.rows import CHUNK, Chunk, read_chunks
from pipeline.io.spreadsheets import unescape_formula
from pipeline.io.visible import escape_invisible, unescape_invisible
from pipeline.label import schema
from pipeline.label.schema import CSD, Form
from pipeline.label.task_files import NOT_ASKED, VERDICTS
from pipeline.tables import Labels

COLUMNS = pl.Schema({name: kind for name, kind in Labels.create_empty().schema.items() if name != "project"})
"""Columns of a frame of labels: the contract Labels without the project."""

_KEY = ("task_id", "round", "stage", "rater_id", "field")
_LONG = {"task_id", "rater_id", "field", "value"}
_BESIDE = {*COLUMNS, "text", "context", "lang", "labels", "schema_version"}  # columns of a wide sheet that are no label
_OPTIONAL = ("round", "stage", "labelled_at", "tool")
_ANY = "?" * 1_000_000  # in place of a text that is not at hand
_TOLD = 10  # faults in one message


def read(path: Path, tasks: pl.DataFrame | None, form: Form = CSD) -> pl.DataFrame:
    """Labels from a file, long (a row a label) or wide (a row a task and rater) by its columns.

    Args:
        path: csv, tsv, jsonl, json, xlsx or parquet.
        tasks: a row a task that labels may be of: task_id, text, and context where the form has spans of it. None
            takes any task, and any length for a span.
        form: what was asked.

    Returns:
        A row a label (`COLUMNS`).

    Raises:
        BadInput: the first ten rows that are wrong, by file, row and field.
    """
    first_chunk, parts = _read_sheets(path)
    if "field" not in first_chunk.rows[0]:
        return _read_wide(path, parts, tasks, form)
    left_out.record_columns(path, [name for name in first_chunk.rows[0] if name not in {*_LONG, *_OPTIONAL}])
    return check_rows(_list_long_rows(path, parts), tasks, name=str(path), form=form)


def _read_sheets(path: Path) -> tuple[Chunk, Iterator[Chunk]]:
    """The first chunk, to look at, and all chunks; sheets of a workbook without tasks, such as guidelines, are not."""
    books = path.suffix.lower() == ".xlsx"
    parts = (part for part in read_chunks(path) if not books or "task_id" in part.rows[0])
    first = next(parts, None)
    if first is None or "task_id" not in first.rows[0]:
        raise BadInput(f"{path}: no column task_id; expected labels, a row each, or a row a task and rater")
    return first, chain([first], parts)


def _number_rows(parts: Iterable[Chunk]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for part in parts:
        yield from enumerate(part.rows, part.first)


def _list_long_rows(path: Path, parts: Iterator[Chunk]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, row in _number_rows(parts):
        if lacking := sorted(_LONG - row.keys()):
            raise BadInput(f"{path}, row {number}: no {', '.join(lacking)}; expected {', '.join(sorted(_LONG))}")
        yield f"row {number}", row


def _read_wide(path: Path, parts: Iterator[Chunk], tasks: pl.DataFrame | None, form: Form) -> pl.DataFrame:
    """Labels from a sheet, a row a task and rater, with a column a field or note.

    An empty cell is no answer, nor is a dash, which `task_files.write_wide` puts where nothing is asked. A text that is
    another task's shows that a column was sorted alone, and is an error.
    """
    texts = {task_id: escape_invisible(text) for task_id, text in (_index_texts(tasks, "text") or {}).items()}
    all_texts = set(texts.values())
    is_defused = path.suffix.lower() in (".csv", ".tsv")

    def list_cells() -> Iterator[tuple[str, Mapping[str, Any]]]:
        for number, cells in _number_rows(parts):
            location = f"row {number}"
            row = {name: unescape_formula(cell) for name, cell in cells.items()} if is_defused else cells
            if "rater_id" not in row:
                raise BadInput(f"{path}, {location}: no rater_id; expected who gave the labels")
            if not set(row) - _BESIDE:
                raise BadInput(f"{path}, {location}: no column of what was asked; expected {', '.join(form.fields)}")
            shown_text, text = str(row.get("text") or ""), texts.get(_strip_value(row.get("task_id")))
            if text is not None and shown_text != text and shown_text in all_texts:
                raise BadInput(
                    f"{path}, {location}: the text is another task's: found {shown_text[:40]!r}, expected "
                    f"{text[:40]!r}; was a column sorted alone?"
                )
            task_columns = {name: row.get(name) for name in ("task_id", "rater_id", *_OPTIONAL)}
            for name, value in row.items():
                if name not in _BESIDE and _strip_value(value) not in ("", NOT_ASKED):
                    yield location, {**task_columns, "field": name, "value": value}

    return check_rows(list_cells(), tasks, name=str(path), form=form)


def check_rows(
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    tasks: pl.DataFrame | None,
    *,
    name: str,
    form: Form = CSD,
) -> pl.DataFrame:
    """The labels in rows that say where they were found.

    Args:
        rows: where (such as `row 7`), and task_id, rater_id, field, value, maybe round, stage, labelled_at, tool.
        tasks: a row a task: task_id, and what the form's spans are of, text or context; None takes any.
        name: of the file, for messages.
        form: what was asked.

    Returns:
        A row a label (`COLUMNS`).

    Raises:
        BadInput: the first ten rows that are wrong.
    """
    texts = _index_texts(tasks, form.marked)
    place_of_key: dict[tuple[Any, ...], str] = {}
    faults: list[str] = []

    def list_labels() -> Iterator[tuple[Any, ...]]:
        for location, row in rows:
            try:
                label = _parse_label(row, texts, form)
                key = label[: len(_KEY)]
                if key in place_of_key:
                    raise BadInput(
                        f"this rater's {key[-1]} of task {key[0]} is also in {place_of_key[key]}; expected it once"
                    )
            except BadInput as why:
                faults.append(f"{location}: {why}")
                if len(faults) == _TOLD:
                    return
                continue
            place_of_key[key] = location
            yield label

    order = [*_KEY, "value", "labelled_at", "tool"]
    labels, frames = list_labels(), []
    while batch := list(islice(labels, CHUNK)):
        frames.append(pl.DataFrame(batch, {column: COLUMNS[column] for column in order}, orient="row"))
    if faults:
        raise BadInput(f"{name}, " + f"\n{name}, ".join(faults))
    return pl.concat([COLUMNS.to_frame(), *(frame.select(COLUMNS.names()) for frame in frames)])


def _index_texts(tasks: pl.DataFrame | None, column: str) -> dict[str, str] | None:
    return None if tasks is None else dict(tasks.select("task_id", pl.col(column).fill_null("")).iter_rows())


def _parse_label(row: Mapping[str, Any], texts: Mapping[str, str] | None, form: Form) -> tuple[Any, ...]:
    """One label in the order of the key, then value, time and tool."""
    task_id, rater, field = (_strip_value(row.get(name)) for name in ("task_id", "rater_id", "field"))
    if not task_id:
        raise BadInput("task_id: found nothing, expected that of a task")
    if texts is not None and task_id not in texts:
        raise BadInput(f"task_id: found {task_id[:40]!r}, expected one of the {len(texts)} tasks given out")
    if not rater:
        raise BadInput("rater_id: found nothing, expected who gave the label")
    round_, stage = (parse_number(name, row.get(name)) for name in ("round", "stage"))
    value = _parse_value(field, row.get("value"), stage, _ANY if texts is None else texts[task_id], form)
    rater = scrub_id(rater, "raters", None)  # a mail address, say
    return (
        task_id,
        round_,
        stage,
        rater,
        field,
        value,
        parse_utc(row.get("labelled_at")),
        _strip_value(row.get("tool")) or "file",
    )


def _parse_value(field: str, value: Any, stage: int, text: str, form: Form) -> str:
    text_value = _strip_value(value)
    if field in form.notes:
        if not text_value:
            raise BadInput(f"{field}: found nothing, expected text; leave the row out where there is no note")
        is_span = field in form.spans
        text_value = (
            unescape_invisible(text_value) if is_span and form.may_quote else text_value
        )  # quoted from a sheet that shows what is unseen
        return (
            "{}-{}".format(*schema.parse_span(text_value, text, field, may_quote=form.may_quote))
            if is_span
            else scrub(text_value)
        )
    if stage == 2 and field in form.fields and text_value.casefold() in VERDICTS:
        return text_value.casefold()
    return schema.normalise_value(field, text_value, form)


def parse_number(name: str, value: Any) -> int:
    """A round or stage, 1 or 2; 1 for nothing, BadInput for anything else."""
    text = _strip_value(value)
    if text in ("", "1", "1.0"):
        return 1
    if text in ("2", "2.0"):
        return 2
    raise BadInput(f"{name}: found {text[:40]!r}, expected 1 or 2")


def parse_utc(value: Any) -> datetime | None:
    """A time, or its text of ISO 8601, as UTC; nothing for nothing, BadInput for anything else."""
    text = _strip_value(value)
    if not text:
        return None
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as why:
        raise BadInput(f"labelled_at: found {text[:40]!r}, expected a time such as 2026-11-20T08:00:00Z") from why


def _strip_value(value: Any) -> str:
    return "" if value is None else str(value).strip()
