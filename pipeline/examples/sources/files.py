"""Published files as frames of text and as XML elements, and what all readers share: clean, drop with a reason.

A fault is BadInput with file and line.
"""

import fnmatch
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import polars as pl

from pipeline import left_out
from pipeline.collect.sites.markup import unescape
from pipeline.errors import BadInput
from pipeline.io.lines import read_json_lines, read_records
from pipeline.io.spreadsheets import restore_texts
from pipeline.reasons import Read, choose_first, split_off

PLACE = ("file", "line", "item_id")  # of a row: its file's path, its line there, and `<file name>:<row>`
_Names = Mapping[str, tuple[str, ...]]  # our name of each column, and its names in published files
_Rows = Iterator[tuple[int, Mapping[str, Any]]]  # the line a row begins on, and its fields


def find_files(path: Path, *patterns: str, is_each_needed: bool = False) -> list[Path]:
    """List the file itself, or the files of a folder that match a pattern, with `is_each_needed` every pattern."""
    if path.is_file():
        return [path]
    expected = (" and " if is_each_needed else " or ").join(patterns)
    if not path.is_dir():
        raise BadInput(f"{path}: there is no such file or folder; expected {expected}")
    names = [file.name for file in path.iterdir() if file.is_file()]
    matches = {pattern: fnmatch.filter(names, pattern) for pattern in patterns}
    missing = [pattern for pattern in patterns if not matches[pattern]]
    if len(missing) == len(patterns) or (is_each_needed and missing):
        raise BadInput(f"{path}: the folder holds no {(' and no ' if is_each_needed else ' or ').join(missing)}")
    return sorted(path / name for name in set(chain.from_iterable(matches.values())))


def read_table(
    paths: Iterable[Path], columns: _Names, optional: _Names | None = None, *, quoted: bool = True
) -> pl.DataFrame:
    """Read rows of csv, tsv, txt (tabs), jsonl or parquet files of one layout as text; BadInput with file and line.

    `columns` has our name of each column, and its names in published files, in any order and case; optional columns may
    be absent and are null then. With `quoted`, quotation marks in csv and tsv enclose fields.
    """
    optional = optional or {}
    rows: list[tuple[Any, ...]] = []
    for path in paths:
        names: dict[str, str | None] = {}
        columns_read: dict[str, None] = {}
        for row, (line, fields) in enumerate(_read_rows(path, quoted), 1):
            if not names or path.suffix.lower() == ".jsonl":  # each line of jsonl has its own fields
                names = _map_columns(path, line, fields, columns, optional)
                columns_read |= dict.fromkeys(fields)
            values = (None if key is None else _format_cell(path, line, key, fields.get(key)) for key in names.values())
            rows.append((str(path), line, f"{path.name}:{row}", *values))
        left_out.record_columns(path, [name for name in columns_read if name not in names.values()])
        if not names:
            raise BadInput(f"{path}: the file holds no rows")
    schema = {name: pl.Int64 if name == "line" else pl.String for name in (*PLACE, *columns, *optional)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _map_columns(
    path: Path, line: int, fields: Mapping[str, Any], columns: _Names, optional: _Names
) -> dict[str, str | None]:
    key_by_name = {key.strip().lower(): key for key in fields}
    names = {
        column: next((key_by_name[name.lower()] for name in file_names if name.lower() in key_by_name), None)
        for column, file_names in {**columns, **optional}.items()
    }
    if absent := [" or ".join(map(repr, columns[column])) for column in columns if names[column] is None]:
        location = f"{path}, line {line}" if path.suffix.lower() == ".jsonl" else f"{path}"
        raise BadInput(f"{location}: expected the column {', '.join(absent)}; found {', '.join(map(repr, fields))}")
    return names


def _format_cell(path: Path, line: int, name: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    raise BadInput(f"{path}, line {line}: field {name!r} should be text or a number but is {value!r:.60}")


def _read_rows(path: Path, quoted: bool) -> _Rows:
    name = path.name.lower()
    if ".parquet" in name:  # also .parquet.gzip, whose pages are compressed and not the file
        try:
            return enumerate(pl.read_parquet(path).iter_rows(named=True), 1)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise BadInput(f"{path}: not a parquet file: {error}") from error
    if name.endswith(".jsonl"):
        return read_json_lines(path)
    if name.endswith((".csv", ".tsv", ".txt")):
        separator = "," if name.endswith(".csv") else "\t"
        return restore_texts(path, lambda _: _read_csv(path, separator, quoted), lambda item: [item[1]])
    ending = path.suffix or "a file without an ending"
    raise BadInput(f"{path}: cannot read {ending}; expected csv, tsv, jsonl, parquet")


def _read_csv(path: Path, separator: str, quoted: bool) -> _Rows:
    records = read_records(path, separator, is_quoted=quoted)
    line, header = next(records, (1, []))
    if repeated := [name for name in header if name and header.count(name) > 1]:
        raise BadInput(f"{path}, line {line}: the column {repeated[0]!r} is repeated")
    for line, fields in records:
        yield line, dict(zip(header, fields, strict=True))


class Element(NamedTuple):
    """An XML element: its name, line, attributes, and the texts inside."""

    tag: str
    line: int
    attributes: dict[str, str]
    texts: list[str]


def read_elements(path: Path, item: str) -> list[list[Element]]:
    """List each element with the tag `item`, followed by those inside; BadInput for broken XML, none, or an entity."""
    items: list[list[Element]] = []
    stack: list[Element] = []
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == item:
            items.append([])
        stack.append(Element(tag, parser.CurrentLineNumber, attributes, []))
        if any(element.tag == item for element in stack):
            items[-1].append(stack[-1])

    def text(data: str) -> None:
        for element in stack:
            element.texts.append(data)

    def refuse(name: str, *_: object) -> None:
        raise BadInput(f"{path}, line {parser.CurrentLineNumber}: the entity {name!r}; expected none")

    parser.StartElementHandler, parser.CharacterDataHandler = start, text
    parser.EndElementHandler = lambda _: stack.pop()
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as error:
        raise BadInput(f"{path}, line {error.lineno}: broken XML: {expat.ErrorString(error.code)}") from error
    if not items:
        raise BadInput(f"{path}: the file holds no element {item!r}")
    return items


def join_texts(elements: Iterable[Element], tag: str) -> str:
    """Join the texts of the elements with a tag."""
    return " ".join("".join(element.texts) for element in elements if element.tag == tag)


COLUMNS = ("item_id", "lang", "text", "label", "explicit", "prompt")  # of the rows that are read


class Source(NamedTuple):
    """A data set of Table 6."""

    read: Callable[[Path], Read]  # a file, or the folder of the published files
    prompt: str | None  # prompt file that asks for the explicit form; None if labels have it
    table6: int  # pairs of Table 6
    writer: str  # "labels", or the model that wrote the explicit forms


def clean(column: str, *, entities: bool = False) -> pl.Expr:
    """Strip a text and make its blanks single; of tweets and posts also resolve HTML entities."""
    text = pl.col(column).map_elements(unescape, return_dtype=pl.String) if entities else pl.col(column)
    return text.str.replace_all(r"\s+", " ").str.strip_chars()


def is_filled(column: str) -> pl.Expr:
    """Test whether a text is present and not blank."""
    return (pl.col(column).str.strip_chars().str.len_chars() > 0).fill_null(value=False)


def refuse(rows: pl.DataFrame, bad: pl.Expr, field: str, expected: str, name: str = "") -> None:
    """Raise BadInput with file, line and field, or its name in the file, of the first bad row, if there is one."""
    for file, line, value in rows.filter(bad).select("file", "line", field).head(1).iter_rows():
        raise BadInput(f"{file}, line {line}: field {name or field!r} should be {expected} but is {value!r:.60}")


def parse_numbers(
    rows: pl.DataFrame, column: str, low: float = -math.inf, high: float = math.inf, name: str = ""
) -> pl.DataFrame:
    """Parse a column as numbers, null where blank; BadInput for a value that is no number from `low` to `high`."""
    value = pl.col(column).str.strip_chars().cast(pl.Float64, strict=False)
    is_in_range = value.is_between(low, high).fill_null(value=False)
    expected = f"a number from {low:g} to {high:g}" if math.isfinite(low) else "a number"
    refuse(rows, is_filled(column) & ~is_in_range, column, expected, name)
    return rows.with_columns(value.alias(column))


def map_labels(rows: pl.DataFrame, column: str, labels: dict[str, str]) -> pl.Expr:
    """Map values to their labels, null where blank; BadInput for a value that is not among them."""
    value = pl.col(column).str.strip_chars().str.to_lowercase()
    label_by_name = {name.lower(): label for name, label in labels.items()}
    refuse(rows, is_filled(column) & ~value.is_in(list(label_by_name)), column, f"one of {', '.join(labels)}")
    return value.replace_strict(label_by_name, default=None, return_dtype=pl.String)


def finish(
    rows: pl.DataFrame, prompt: str | pl.Expr | None = None, *, lang: str | pl.Expr = "en", entities: bool = False
) -> Read:
    """Separate sentences and dropped rows: rows with file, line, item_id, text, label, perhaps explicit and reason.

    A row is dropped for its reason; else as `blank_text`, `no_label`, or `same_text` if its explicit form is the same
    text. `prompt` stays on implicit sentences without an explicit form.
    """
    refuse(rows, ~is_filled("item_id"), "item_id", "an id")
    refuse(rows, ~pl.col("item_id").is_first_distinct(), "item_id", "one that no other row has")
    absent = [pl.lit(None, pl.String).alias(name) for name in ("explicit", "reason") if name not in rows.columns]
    texts = [clean(name, entities=entities).replace("", None) for name in ("text", "explicit")]
    rows = rows.with_columns(*absent).with_columns(texts)
    faults = {"blank_text": pl.col("text").is_null(), "no_label": pl.col("label").is_null()}
    faults["same_text"] = pl.col("explicit") == pl.col("text")
    needs_prompt = (pl.col("label") == "implicit") & pl.col("explicit").is_null()
    rows = rows.with_columns(
        lang=lang if isinstance(lang, pl.Expr) else pl.lit(lang),
        prompt=pl.when(needs_prompt).then(prompt if isinstance(prompt, pl.Expr) else pl.lit(prompt, pl.String)),
    )
    reason = pl.coalesce("reason", choose_first(faults))
    sentences, dropped = split_off(rows, reason, ["reason", pl.col("item_id").alias("row_key")])
    return Read(sentences.select(COLUMNS), dropped)
