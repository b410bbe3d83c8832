"""Labels back from raters, whatever tool they use: long and wide tables, spreadsheets, exports."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import left_out
from pipeline.collect.privacy.anonymise import scrub_id
from pipeline.collect.privacy.particulars import scrub
from pipeline.errors import BadInput
from pipeline.io.rows import CHUNK, read_chunks
from pipeline.io.visible import escape_invisible, unescape_invisible
from pipeline.label.schema import CSD, VERDICTS, Form, normalise_value, parse_span
from pipeline.label.stages import KEY
from pipeline.label.task_files import NOT_ASKED
from pipeline.tables import Labels

# of the types alone: an empty frame would start polars' threads, which a fork after the import lacks
COLUMNS = pl.Schema({name: column.dtype for name, column in Labels.columns().items() if name != "project"})
"""Columns of a frame of labels: the contract Labels without the project."""
_LONG = {"task_id", "rater_id", "field", "value"}
OTHER_COLUMNS = {*COLUMNS, "text", "context", "lang", "labels", "schema_version"}
"""Columns of a wide sheet that are no label."""
_OPTIONAL = ("round", "stage", "labelled_at", "tool")
_ANY = "?" * 1_000_000  # in place of a text that is not at hand
MAX_FAULTS = 10  # in one message
BLANK = "0 labels: every row is blank; fill in the fields and import the file again"
Place = tuple[str, Mapping[str, Any]]  # where a row was found, such as `row 7`, and its cells by column


def read_all(paths: Sequence[Path], tasks: pl.DataFrame, **options: Any) -> list[pl.DataFrame]:
    """Read the labels of each file by `read`; BadInput if no file has any."""
    parts = [read(path, tasks, **options) for path in paths]
    if not any(map(len, parts)):
        raise BadInput("\n".join(f"{path}: {BLANK}" for path in paths))
    return parts


def read(
    path: Path, tasks: pl.DataFrame | None, form: Form = CSD, three_values: Mapping[Any, Any] = {}
) -> pl.DataFrame:
    """Read labels (`COLUMNS`) from a file, long (a row a label) or wide (a row a task and rater) by its columns.

    `tasks` are those that labels may be of: task_id, text, and context where the form has spans of it. None takes any
    task, and any length for a span. An adjudicator cannot choose among `three_values` of a task and field.
    A file without labels is noted. BadInput: the first ten rows that are wrong, by file, row and field.
    """
    is_workbook = path.suffix.lower() == ".xlsx"  # its sheets without tasks, such as guidelines, are passed over
    chunks = (chunk for chunk in read_chunks(path) if not is_workbook or "task_id" in chunk.rows[0])
    first = next(chunks, None)
    if first is None or "task_id" not in first.rows[0]:
        raise BadInput(f"{path}: no column task_id; expected labels, a row each, or a row a task and rater")
    all_chunks = chain([first], chunks)
    rows: Iterator[Place]
    rows = ((f"row {n}", row) for chunk in all_chunks for n, row in zip(chunk.numbers, chunk.rows, strict=True))
    if "field" in first.rows[0]:
        left_out.record_columns(path, [name for name in first.rows[0] if name not in {*_LONG, *_OPTIONAL}])
    else:
        lacking = [name for name in form.fields if name not in first.columns]
        is_first_round = {parse_number(name, first.rows[0].get(name)) for name in ("round", "stage")} == {1}
        if lacking and tasks is not None and is_first_round and {*first.columns} - OTHER_COLUMNS:
            raise BadInput(f"{path}: no column {', '.join(lacking)}; expected one for each of {', '.join(form.fields)}")
        rows = _split_wide_rows(path, rows, tasks, form)
    labels = check_rows(rows, tasks, name=str(path), form=form, three_values=three_values)
    if labels.is_empty():
        left_out.record_note(f"{path}: {BLANK}")
    return labels


def is_of_csd(path: Path) -> bool:
    """Whether a file looks like labels of CSD: it has task_id and rater_id, and no field that the form lacks."""
    names, fields = set[str](), set[str]()
    for chunk in read_chunks(path):
        names |= {name for row in chunk.rows for name in row}
        fields |= {_strip_value(row["field"]) for row in chunk.rows if "field" in row}
    fields = fields or names - OTHER_COLUMNS
    return {"task_id", "rater_id"} <= names and bool(fields) and fields <= {*CSD.fields, *CSD.notes}


def _split_wide_rows(path: Path, rows: Iterable[Place], tasks: pl.DataFrame | None, form: Form) -> Iterator[Place]:
    texts = {task_id: escape_invisible(text) for task_id, text in (_index_texts(tasks, "text") or {}).items()}
    all_texts = set(texts.values())
    for location, row in rows:
        if "rater_id" not in row:
            raise BadInput(f"{path}, {location}: no rater_id; expected who gave the labels")
        if not set(row) - OTHER_COLUMNS:
            raise BadInput(f"{path}, {location}: no column of what was asked; expected {', '.join(form.fields)}")
        sheet_text, text = str(row.get("text") or ""), texts.get(_strip_value(row.get("task_id")))
        if text is not None and sheet_text != text and sheet_text in all_texts:
            problem = f"the text is another task's: found {sheet_text[:40]!r}, expected {text[:40]!r}"
            raise BadInput(f"{path}, {location}: {problem}; was a column sorted alone?")
        task_columns = {name: row.get(name) for name in ("task_id", "rater_id", *_OPTIONAL)}
        for name, value in row.items():
            if name not in OTHER_COLUMNS and _strip_value(value) not in ("", NOT_ASKED):
                yield location, {**task_columns, "field": name, "value": value}
                if name not in (*form.fields, *form.notes):
                    return  # a fault of the header is the same in each row


def check_rows(
    rows: Iterable[Place], tasks: pl.DataFrame | None, *, name: str, form: Form = CSD,
    three_values: Mapping[Any, Any] = {},
) -> pl.DataFrame:  # fmt: skip
    """Check rows and return their labels (`COLUMNS`), as `read` does; the first ten faults are BadInput by `name`."""
    texts = _index_texts(tasks, form.marked)
    locations: dict[tuple[Any, ...], str] = {}
    faults: list[str] = []

    def list_labels() -> Iterator[tuple[Any, ...]]:
        for location, row in rows:
            try:
                label = _parse_label(row, texts, form)
                key = label[: len(KEY)]
                values = three_values.get((key[0], key[-1]), ()) if key[1:3] == (1, 2) else ()
                if values and label[len(KEY)] not in VERDICTS:
                    problem = f"{key[-1]}: found {label[len(KEY)]!r}, expected {' or '.join(VERDICTS)}"
                    raise BadInput(f"{problem}, as the raters gave {', '.join(values)}")
                if key in locations:
                    place = f"this rater's {key[-1]} of task {key[0]} is also in {locations[key]}"
                    raise BadInput(f"{place}; expected it once")
            except BadInput as why:
                faults.append(f"{location}: {why}")
                if len(faults) == MAX_FAULTS:
                    return
                continue
            locations[key] = location
            yield label

    schema = {column: COLUMNS[column] for column in (*KEY, "value", "labelled_at", "tool")}
    labels, frames = list_labels(), [COLUMNS.to_frame()]
    while batch := list(islice(labels, CHUNK)):
        frames.append(pl.DataFrame(batch, schema, orient="row").select(COLUMNS.names()))
    if faults:
        raise BadInput(f"{name}, " + f"\n{name}, ".join(faults))
    return pl.concat(frames)


def _index_texts(tasks: pl.DataFrame | None, column: str) -> dict[str, str] | None:
    return None if tasks is None else dict(tasks.select("task_id", pl.col(column).fill_null("")).iter_rows())


def _parse_label(row: Mapping[str, Any], texts: Mapping[str, str] | None, form: Form) -> tuple[Any, ...]:
    if lacking := sorted(_LONG - row.keys()):
        raise BadInput(f"no {', '.join(lacking)}; expected {', '.join(sorted(_LONG))}")
    task_id, rater, field = (_strip_value(row[name]) for name in ("task_id", "rater_id", "field"))
    if not task_id:
        raise BadInput("task_id: found nothing, expected that of a task")
    if texts is not None and task_id not in texts:
        raise BadInput(f"task_id: found {task_id[:40]!r}, expected one of the {len(texts)} tasks given out")
    if not rater:
        raise BadInput("rater_id: found nothing, expected who gave the label")
    in_round, stage = (parse_number(name, row.get(name)) for name in ("round", "stage"))
    value = _parse_value(field, _strip_value(row.get("value")), stage, _ANY if texts is None else texts[task_id], form)
    rater = scrub_id(rater, "raters", None)  # a mail address, say
    labelled_at = parse_utc(row.get("labelled_at"))
    return task_id, in_round, stage, rater, field, value, labelled_at, _strip_value(row.get("tool")) or "file"


def _parse_value(field: str, value: str, stage: int, text: str, form: Form) -> str:
    if field in form.notes and not value:
        raise BadInput(f"{field}: found nothing, expected text; leave the row out where there is no note")
    if field in form.spans:
        words = unescape_invisible(value) if form.may_quote else value  # a sheet shows what is unseen
        return "{}-{}".format(*parse_span(words, text, field, may_quote=form.may_quote))
    if field in form.notes:
        return scrub(value)
    if stage == 2 and field in form.fields and value.casefold() in VERDICTS:
        return value.casefold()
    return normalise_value(field, value, form)


def parse_number(name: str, value: Any) -> int:
    """Parse a round or stage, 1 or 2; 1 for nothing, BadInput for anything else."""
    text = _strip_value(value)
    if text not in ("", "1", "1.0", "2", "2.0"):
        raise BadInput(f"{name}: found {text[:40]!r}, expected 1 or 2")
    return int(text[:1] or 1)


def parse_utc(value: Any) -> datetime | None:
    """Parse a time, or its text of ISO 8601, as UTC; nothing for nothing, BadInput for anything else."""
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
