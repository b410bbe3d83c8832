"""Rows of a file as dictionaries, in chunks, whatever its format; memory does not grow with the file.

csv, tsv, jsonl, json (a list), parquet, xlsx and SQLite. What cannot be read is BadInput with file and line.
"""

import csv
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import BadInput
from pipeline.text.lines import UTF8, json_lines, json_value, lines

CHUNK = 20_000  # rows
_DATABASES = (".db", ".sqlite", ".sqlite3")
ENDINGS = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx", *_DATABASES)
_FIELD_LIMIT = 16 * 1024 * 1024  # characters of one csv field; Python's own limit of 128 KiB breaks on long posts


class Chunk(NamedTuple):
    """Some rows of one table of a file. `first` is the number of the first row, counted from 1 as a person would."""

    table: str
    first: int
    rows: list[dict[str, Any]]


def chunks(path: Path, encoding: str = UTF8, size: int = CHUNK) -> Iterator[Chunk]:
    """The file's rows, `size` at a time."""
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    if path.stat().st_size == 0:
        raise BadInput(f"{path}: the file is empty; expected rows")
    readers = {
        ".csv": _csv, ".tsv": _csv, ".txt": _txt, ".jsonl": _jsonl, ".ndjson": _jsonl, ".json": _json,
        ".parquet": _parquet, ".xlsx": _xlsx, **dict.fromkeys(_DATABASES, _sqlite),
    }  # fmt: skip
    if (reader := readers.get(path.suffix.lower())) is None:
        raise BadInput(
            f"{path}: cannot read {path.suffix or 'a file without an ending'}; expected {', '.join(readers)}"
        )
    empty = True
    for chunk in reader(path, encoding, size):
        empty = False
        yield chunk
    if empty:
        raise BadInput(f"{path}: the file holds no rows")


def _batched(rows: Iterator[dict[str, Any]], table: str, first: int, size: int) -> Iterator[Chunk]:
    while batch := list(islice(rows, size)):
        yield Chunk(table, first, batch)
        first += len(batch)


def _csv(path: Path, encoding: str, size: int) -> Iterator[Chunk]:
    csv.field_size_limit(_FIELD_LIMIT)
    dialect = "excel-tab" if path.suffix.lower() == ".tsv" else "excel"
    reader = csv.DictReader((line for _, line in lines(path, encoding)), dialect=dialect, restkey="_rest")

    def rows() -> Iterator[dict[str, Any]]:
        try:
            for row in reader:
                if "_rest" in row or None in row.values():
                    wanted = len(reader.fieldnames or [])
                    given = sum(v is not None for k, v in row.items() if k != "_rest") + len(row.get("_rest") or [])
                    raise BadInput(f"{path}, line {reader.line_num}: {given} fields where the header has {wanted}")
                yield row
        except csv.Error as why:
            raise BadInput(f"{path}, line {reader.line_num}: {why}") from why

    yield from _batched(rows(), path.stem, 2, size)  # row 1 is the header


def _txt(path: Path, encoding: str, size: int) -> Iterator[Chunk]:
    rows = ({"text": line.rstrip("\r\n")} for _, line in lines(path, encoding))
    yield from _batched(rows, path.stem, 1, size)


def _jsonl(path: Path, encoding: str, size: int) -> Iterator[Chunk]:
    yield from _batched((row for _, row in json_lines(path, encoding)), path.stem, 1, size)


def _json(path: Path, encoding: str, size: int) -> Iterator[Chunk]:
    text = "".join(line for _, line in lines(path, encoding))
    try:
        value = json_value(text, path)
    except BadInput as why:
        raise BadInput(f"{why}; is it one object a line (.jsonl)?") from why
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BadInput(f"{path}: expected a JSON list of objects")
    yield from _batched(iter(value), path.stem, 1, size)


def _parquet(path: Path, encoding: str, size: int) -> Iterator[Chunk]:  # noqa: ARG001
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        first = 1
        for batch in pq.ParquetFile(path).iter_batches(batch_size=size):
            rows = batch.to_pylist()
            yield Chunk(path.stem, first, rows)
            first += len(rows)
    except (pa.ArrowException, OSError) as why:
        raise BadInput(f"{path}: not a readable Parquet file: {why}") from why


def _xlsx(path: Path, encoding: str, size: int) -> Iterator[Chunk]:  # noqa: ARG001
    import polars as pl

    try:
        sheets = pl.read_excel(path, sheet_id=0, infer_schema_length=0, raise_if_empty=False)
    except Exception as why:  # the reader has errors of its own kinds
        raise BadInput(f"{path}: not a readable xlsx file: {why}") from why
    for name, sheet in sheets.items():
        yield from _batched(sheet.iter_rows(named=True), name, 2, size)


@contextmanager
def _database(path: Path) -> Iterator[sqlite3.Connection]:
    con = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    con.row_factory = sqlite3.Row
    try:
        yield con
    except sqlite3.DatabaseError as why:
        raise BadInput(f"{path}: not a readable SQLite file: {why}") from why
    finally:
        con.close()


def tables(path: Path) -> dict[str, set[str]]:
    """Tables of a SQLite file with their columns; empty for a file of another kind."""
    if path.suffix.lower() not in _DATABASES or not path.is_file() or not path.stat().st_size:
        return {}
    with _database(path) as con:
        listing = (
            "select name from sqlite_master where type = 'table' and name not like 'sqlite~_%' escape '~' order by 1"
        )
        names = [row[0] for row in con.execute(listing)]
        return {name: {row["name"] for row in con.execute(f"pragma table_info({_quoted(name)})")} for name in names}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sqlite(path: Path, encoding: str, size: int) -> Iterator[Chunk]:  # noqa: ARG001
    with _database(path) as con:
        for table in tables(path):
            cursor = con.execute(f"select * from {_quoted(table)}")  # noqa: S608  # a table's own name, quoted
            yield from _batched((dict(row) for row in cursor), table, 1, size)
