"""Files of rows in every format that is read."""

import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import xlsxwriter

Rows = list[dict[str, Any]]


def _write_separated(path: Path, rows: Rows) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        names = dict.fromkeys(name for row in rows for name in row)
        writer = csv.DictWriter(file, names, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)


def _write_lines(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n\n" for row in rows), encoding="utf-8")


def _write_sqlite(path: Path, rows: Rows) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f'create table "a table" ({", ".join(rows[0])})')
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f'insert into "a table" values ({marks})', [list(row.values()) for row in rows])


def write_sheet(path: Path, *cells: list[Any]) -> None:
    """A workbook of one sheet with these rows of cells."""
    with xlsxwriter.Workbook(path, {"strings_to_formulas": False}) as book:
        sheet = book.add_worksheet("s")
        for number, row in enumerate(cells):
            sheet.write_row(number, 0, row)
        book.add_worksheet("空")  # as Excel adds of itself


WRITERS: dict[str, Callable[[Path, Rows], object]] = {
    ".csv": _write_separated, ".tsv": _write_separated, ".jsonl": _write_lines,
    ".json": lambda path, rows: path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8"),
    ".parquet": lambda path, rows: pq.write_table(pa.Table.from_pylist(rows), path), ".db": _write_sqlite,
    ".xlsx": lambda path, rows: write_sheet(path, list(rows[0]), *(list(row.values()) for row in rows)),
}  # fmt: skip


def write_rows(path: Path, *rows: dict[str, Any]) -> Path:
    """Write rows, of the same keys but in text, in the format that the ending names, over what is there."""
    path.unlink(missing_ok=True)
    WRITERS[path.suffix](path, list(rows))
    return path
