"""Ratings from any file: long, a sheet of each rater, or a column for each rater; own columns and own values.

The columns show the layout: with rater_id and value a row is a label, with rater_id alone a task and rater.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from pipeline import left_out
from pipeline.errors import BadInput
from pipeline.io.formats.chunk import list_names
from pipeline.io.rows import read_chunks
from pipeline.label.label_files import MAX_FAULTS, OTHER_COLUMNS
from pipeline.label.task_files import NOT_ASKED

Level = Literal["nominal", "ordinal", "interval"]
ROLES = ("task_id", "rater_id", "field", "value")
MISSING = ("", NOT_ASKED, "NA", "N/A", "NaN", "nan", "null")
"""Cells that hold no label; `None` is a value, as it is CSD's name of no emotion."""
MOST_RATERS = 20
MOST_VALUES = 100  # values of a field; of numbers at the level interval there may be more
_DECIMAL = re.compile(r"[+-]?[0-9]{0,9}\.[0-9]{1,9}")
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,14})(\.0+)?")
Ratings = pl.Schema(dict.fromkeys(ROLES, pl.String()))


class Reading(NamedTuple):
    """How the ratings of a file are to be read."""

    mapping: Mapping[str, str] = {}  # our column (`ROLES`) to theirs
    # those with labels: of raters, or of fields where there is a rater_id; by default all others
    columns: Sequence[str] = ()
    level: Level = "nominal"
    values: Sequence[str] = ()  # that a label may have, in their order; any by default
    missing: Sequence[str] = MISSING


def read(path: Path, reading: Reading) -> pl.DataFrame:
    """Read the ratings of a file (`Ratings`), a row a label; BadInput for labels that are wrong or allow no measure."""
    chunks = list(read_chunks(path))
    if other_tables := sorted({chunk.table for chunk in chunks} - {chunks[0].table}):
        left_out.record_note(f"{path}: read {chunks[0].table} alone, not {', '.join(other_tables)}")
    chunks = [chunk for chunk in chunks if chunk.table == chunks[0].table]
    rows = [(f"row {n}", row) for chunk in chunks for n, row in zip(chunk.numbers, chunk.rows, strict=True)]
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    places: dict[tuple[str, str, str], str] = {}
    labels, faults = [], []
    for place, (*key, cell) in _split_rows(path, rows, names, reading):
        value = clean(cell, reading.level)
        if value in reading.missing:
            continue
        task, rater, field = (clean(part) for part in key)
        fault = _find_fault(task, rater, value, reading)
        if earlier := places.get((task, rater, field)):
            fault = fault or f"expected one label of a rater for a task and field, found another in {earlier}"
        places[task, rater, field] = place
        labels.append((task, rater, field, value))
        if fault:
            faults.append(f"{path}, {place}, rater {rater!r}, field {field!r}: {fault}")
        if len(faults) == MAX_FAULTS:
            break
    if faults:
        raise BadInput("\n".join(faults))
    ratings = pl.DataFrame(labels, Ratings, orient="row")
    check_ratings(path, ratings, reading)
    return ratings


def _split_rows(
    path: Path, rows: Sequence[tuple[str, Mapping[str, Any]]], names: Sequence[str], reading: Reading
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    column = {role: reading.mapping.get(role, role) for role in ROLES}
    if absent := [name for name in (*reading.mapping.values(), *reading.columns) if name not in names]:
        raise BadInput(f"{path}: no column {', '.join(map(repr, absent))}; there are {list_names(names)}")
    other_columns = [name for name in names if name not in {*column.values(), *OTHER_COLUMNS}]
    is_sheet = column["rater_id"] in names
    is_long = is_sheet and column["value"] in names and not reading.columns
    if "value" in reading.mapping and not is_sheet:
        problem = f"no column rater_id, expected one with {column['value']}"
        raise BadInput(f"{path}: {problem}; name it by --map rater_id=COLUMN")
    if column["task_id"] not in names and (is_sheet or not reading.columns):
        problem = f"no column {column['task_id']}; there are {list_names(names)}"
        raise BadInput(f"{path}: {problem}; name it by --map task_id=COLUMN, or the columns of raters by --columns")
    label_columns = [column["value"]] if is_long else [*reading.columns] or other_columns
    if not is_sheet and not reading.columns:
        left_out.record_note(f"{path}: each column is a rater: {list_names(label_columns)}; name others by --columns")
    for place, row in rows:
        task = row.get(column["task_id"], place)
        field = row.get(column["field"], column["value"] if is_long else "label")
        for name in label_columns:
            rater = row.get(column["rater_id"]) if is_sheet else name
            yield place, (task, rater, name if is_sheet and not is_long else field, row.get(name))


def clean(cell: object, level: Level = "nominal") -> str:
    """Strip a cell; a whole number loses its zeros (1.0), and so does any number of a level with an order (2.50)."""
    text = "" if cell is None else str(cell).strip()
    if _WHOLE.fullmatch(text):
        return str(int(float(text)))
    return repr(float(text)) if level != "nominal" and _DECIMAL.fullmatch(text) else text


def _find_fault(task: str, rater: str, value: str, reading: Reading) -> str:
    if not task or not rater:
        return f"found no {'rater_id' if task else 'task_id'}, expected one"
    if reading.values and value not in reading.values:
        return f"found {value[:40]!r}, expected one of {', '.join(reading.values)}"
    if reading.level == "interval" and not _is_number(value):
        return f"found {value[:40]!r}, expected a number"
    return ""


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def check_ratings(path: Path, ratings: pl.DataFrame, reading: Reading) -> None:
    """Refuse ratings that allow no measure: of too few raters or too many, or of too many values."""
    if not ratings.height:
        raise BadInput(f"{path}: no cell holds a label; expected the labels of 2 to {MOST_RATERS} raters")
    raters = ratings["rater_id"].unique()
    if not 2 <= len(raters) <= MOST_RATERS:
        problem = f"labels of {len(raters)} raters ({list_names(raters)}), expected 2 to {MOST_RATERS}"
        raise BadInput(f"{path}: {problem}; the columns of raters can be named by --columns")
    if not ratings.select("task_id", "field").is_duplicated().any():
        raise BadInput(f"{path}: no task has labels of two raters; expected the same task_id in the rows of a task")
    for (field,), group in ratings.group_by("field", maintain_order=True):
        values = group["value"].unique()
        if len(values) > MOST_VALUES and reading.level != "interval":
            advice = "numbers need --level interval, and columns without labels are left out by --columns"
            problem = f"{len(values)} values, expected at most {MOST_VALUES}"
            raise BadInput(f"{path}, field {field!r}: {problem}; {advice}")
        if reading.level == "ordinal" and not reading.values and not all(map(_is_number, values)):
            advice = "name all values in their order, such as --values low,middle,high"
            raise BadInput(f"{path}, field {field!r}: the order of {list_names(values)} is unknown; {advice}")
