"""Rows of a file as dictionaries, in chunks, whatever its format; memory does not grow with the file.

csv, tsv, jsonl, json (a list), parquet, xlsx and SQLite. What cannot be read is BadInput with file and line.
"""

import csv
import re
import sqlite3
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import BadInput
from pipeline.text.lines import LIMITS, UTF8, Limits, json_lines, json_value, lines, small_enough, whole

CHUNK = 20_000  # rows
_DATABASES = (".db", ".sqlite", ".sqlite3")
ENDINGS = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx", *_DATABASES)
_CELL = 32  # bytes of a cell of a sheet, which is laid out from the first used one to the last, empty or not
_REFERENCE = re.compile(rb"\br\s*=\s*[\"']\s*\$?([A-Za-z]*)\$?([0-9]+)")  # r="XFD1048576" of a cell, r="7" of a row


class Chunk(NamedTuple):
    """Some rows of one table of a file. `first` is the number of the first row, counted from 1 as a person would."""

    table: str
    first: int
    rows: list[dict[str, Any]]


def chunks(path: Path, encoding: str = UTF8, size: int = CHUNK, limits: Limits = LIMITS) -> Iterator[Chunk]:
    """The file's rows, `size` at a time; `limits` say how much of it may be in memory at once."""
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
    for chunk in reader(path, encoding, size, limits):
        empty = False
        yield chunk
    if empty:
        raise BadInput(f"{path}: the file holds no rows")


def _batched(rows: Iterator[dict[str, Any]], table: str, first: int, size: int) -> Iterator[Chunk]:
    while batch := list(islice(rows, size)):
        yield Chunk(table, first, batch)
        first += len(batch)


def _csv(path: Path, encoding: str, size: int, limits: Limits) -> Iterator[Chunk]:
    csv.field_size_limit(limits.line)  # Python's own limit of 128 KiB breaks on long posts
    dialect = "excel-tab" if path.suffix.lower() == ".tsv" else "excel"
    reader = csv.DictReader((line for _, line in lines(path, encoding, limits)), dialect=dialect, restkey="_rest")

    def rows() -> Iterator[dict[str, Any]]:
        try:
            _refuse_twice(reader.fieldnames or [], f"{path}, line 1")
            for row in reader:
                if "_rest" in row or None in row.values():
                    wanted = len(reader.fieldnames or [])
                    given = sum(v is not None for k, v in row.items() if k != "_rest") + len(row.get("_rest") or [])
                    raise BadInput(f"{path}, line {reader.line_num}: {given} fields where the header has {wanted}")
                yield row
        except csv.Error as why:
            raise BadInput(f"{path}, line {reader.line_num}: {why}") from why

    yield from _batched(rows(), path.stem, 2, size)  # row 1 is the header


def _refuse_twice(names: Sequence[str], where: str) -> None:
    """Of two columns of a name a row would keep one and lose the other."""
    if twice := [name for name in names if name and names.count(name) > 1]:
        raise BadInput(f"{where}: the column {twice[0]!r:.60} is there twice")


def _txt(path: Path, encoding: str, size: int, limits: Limits) -> Iterator[Chunk]:
    rows = ({"text": line.rstrip("\r\n")} for _, line in lines(path, encoding, limits))
    yield from _batched(rows, path.stem, 1, size)


def _jsonl(path: Path, encoding: str, size: int, limits: Limits) -> Iterator[Chunk]:
    yield from _batched((row for _, row in json_lines(path, encoding, limits)), path.stem, 1, size)


def _json(path: Path, encoding: str, size: int, limits: Limits) -> Iterator[Chunk]:
    try:
        value = json_value(whole(path, encoding, limits), path)
    except BadInput as why:
        raise BadInput(f"{why}; is it one object a line (.jsonl)?") from why
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BadInput(f"{path}: expected a JSON list of objects")
    yield from _batched(iter(value), path.stem, 1, size)


def _parquet(path: Path, encoding: str, size: int, limits: Limits) -> Iterator[Chunk]:  # noqa: ARG001
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file, first = pq.ParquetFile(path), 1
        _refuse_twice(file.schema_arrow.names, str(path))
        for place in range(file.num_row_groups):
            group = file.metadata.row_group(place)
            unpacked = max((group.column(c).total_uncompressed_size for c in range(group.num_columns)), default=0)
            small_enough(path, unpacked, limits, "a column of a row group unpacks to ")
        for batch in file.iter_batches(batch_size=size):
            small_enough(path, batch.nbytes, limits, f"{len(batch):,} rows unpack to ")
            rows = batch.to_pylist()
            yield Chunk(path.stem, first, rows)
            first += len(rows)
    # times that Python has no number for, and texts that are no UTF-8, show only when a row is made of them
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, LookupError, TypeError) as why:
        raise BadInput(f"{path}: not a readable Parquet file: {why}") from why


def _xlsx(path: Path, encoding: str, size: int, limits: Limits) -> Iterator[Chunk]:  # noqa: ARG001
    import polars as pl

    try:
        _refuse_bomb(path, limits)
        sheets = pl.read_excel(path, sheet_id=0, infer_schema_length=0, raise_if_empty=False)
    except (KeyboardInterrupt, SystemExit, BadInput):
        raise
    except BaseException as why:  # the reader has errors of its own kinds, and its panics are no Exception
        if isinstance(why, Exception) or type(why).__name__ == "PanicException":
            raise BadInput(f"{path}: not a readable xlsx file: {why}") from why
        raise
    for name, sheet in sheets.items():
        yield from _batched(sheet.iter_rows(named=True), name, 2, size)


def _refuse_bomb(path: Path, limits: Limits) -> None:
    """BadInput for a workbook that unpacks into too many bytes, or whose cells lie too far apart.

    The reader is in Rust and aborts the process where it gets no memory: a cell in the last column of the last row
    takes half a terabyte.
    """
    with zipfile.ZipFile(path) as book:
        unpacked = 0
        for name in book.namelist():
            columns, rows, tail = 1, 1, b""
            with book.open(name) as part:
                while block := part.read(1 << 20):
                    unpacked += len(block)
                    small_enough(path, unpacked, limits, "unpacks to at least ")
                    if "sheets/" in name.lower():
                        tail += block
                        for column, row in _REFERENCE.findall(tail):
                            columns, rows = max(columns, _number(column)), max(rows, int(row[:20]))
                        tail = tail[-200:]
            small_enough(path, columns * rows * _CELL, limits, f"the cells of {name} from the first to the last take ")


def _number(column: bytes) -> int:
    """A column's number: 1 for A, 27 for AA."""
    number = 0
    for letter in column.upper():
        number = 26 * number + letter - 64
    return number


@contextmanager
def _database(path: Path, limits: Limits = LIMITS) -> Iterator[sqlite3.Connection]:
    con = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    con.row_factory = sqlite3.Row
    con.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.line)  # of a value, in bytes
    try:
        # the file is a stranger's: its schema may call functions, and its pages may be broken
        con.executescript("pragma trusted_schema = off; pragma cell_size_check = on; pragma mmap_size = 0")
        yield con
    except (sqlite3.Error, UnicodeDecodeError) as why:  # names in its schema may be no UTF-8
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
        names = [str(row[0]) for row in con.execute(listing)]
        return {name: {row["name"] for row in con.execute(f"pragma table_info({_quoted(name)})")} for name in names}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sqlite(path: Path, encoding: str, size: int, limits: Limits) -> Iterator[Chunk]:  # noqa: ARG001
    with _database(path, limits) as con:
        for table in tables(path):
            cursor = con.execute(f"select * from {_quoted(table)}")  # noqa: S608  # a table's own name, quoted
            yield from _batched((dict(row) for row in cursor), table, 1, size)
