"""Rows of the sheets of an xlsx file. The first row that is not empty is the header; hidden sheets are left out."""

import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from xml.parsers import expat

from pipeline.errors import BadInput
from pipeline.io.formats.chunk import BadRow, Chunk, Row, Source, check_header, chunk_rows, find_unnamed_value
from pipeline.io.formats.workbook import CellError, Workbook, is_run

_REFERENCE = re.compile(r"^\$?([A-Za-z]{1,3})\$?([0-9]{1,7})$")
_LAST_ROW, _LAST_COLUMN = 1_048_576, 16_384
# what damaged archives, streams and XML raise
_DAMAGE = (zipfile.BadZipFile, zlib.error, expat.ExpatError, OSError, EOFError, RuntimeError, LookupError, ValueError)
Cells = dict[int, str]  # by column, counted from 0; empty cells are not there


def read(source: Source) -> Iterator[Chunk]:
    """Chunks of each sheet that can be seen."""
    try:
        with zipfile.ZipFile(source.path) as archive:
            workbook = Workbook(source, archive)
            for sheet, part, is_hidden in workbook.sheets():
                if is_hidden:
                    source.ignore(f"the hidden sheet {sheet!r:.60}")
                    continue
                place = f"{source.path}, sheet {sheet!r:.60}"
                cells = _cells(source, workbook, part, place)
                number, first = next(cells, (0, {}))
                if first:
                    header = [first.get(column, "") for column in range(max(first) + 1)]
                    check_header(header, f"{place}, row {number}")
                    rows, names = _rows(source, cells, header, place), [name for name in header if name]
                    yield from chunk_rows(source, sheet, rows, names)
    except _DAMAGE as why:
        raise BadInput(f"{source.path}: not a readable xlsx file: {why}") from why


def _rows(source: Source, rows: Iterator[tuple[int, Cells]], header: list[str], place: str) -> Iterator[Row | BadRow]:
    for number, cells in rows:
        values = [cells.get(column) for column in range(len(header))]
        if (last := max(cells)) >= len(header):
            message = f"column {last + 1} holds {cells[last]!r:.40}, beyond the header, which has {len(header)} columns"
            yield source.drop("field_count", number, f"{place}, row {number}: {message}")
        elif unnamed := find_unnamed_value(source, header, values):
            yield source.drop("unnamed_column", number, f"{place}, row {number}: {unnamed}")
        else:
            by_name = {name: value for name, value in zip(header, values, strict=True) if name}
            yield (number, by_name, 2 * sum(map(len, cells.values())))


def _cells(source: Source, workbook: Workbook, part: str, place: str) -> Iterator[tuple[int, Cells]]:
    row = 0
    values: list[tuple[str, str | None]] = []  # of a row, with their references
    texts: defaultdict[str, list[str]] = defaultdict(list)  # of a cell: its value, formula and inline text
    for name, parent, attributes, text in workbook.parse(part):
        if name in ("v", "f") or is_run(name, parent):
            texts[name].append(text)
        elif name == "c":
            if parent != "row":
                raise BadInput(f"{place}: a cell stands outside of any row, below row {row}")
            kind = attributes.get("t", "n")
            value = "".join(texts.get("v" if "v" in texts or kind != "inlineStr" else "t", ()))
            is_uncomputed = "f" in texts and ("v" not in texts or (not value.strip() and kind != "str"))
            advice = "a formula without a value; open the file in a spreadsheet and save it"
            cell = CellError(advice) if is_uncomputed else workbook.value(kind, value, attributes.get("s", ""))
            values.append((attributes.get("r", ""), cell))
            texts.clear()
        elif name == "row":
            number = attributes.get("r", str(row + 1))
            row = int(number) if number.isdecimal() and len(number) < 20 else 0
            if not 0 < row <= _LAST_ROW:
                raise BadInput(f"{place}: {number!r:.30} is no row of a sheet")
            if cells := _place(source, values, row, place):
                yield row, cells
            values.clear()


def _place(source: Source, values: list[tuple[str, str | None]], row: int, place: str) -> Cells:
    cells: Cells = {}
    column = -1
    for reference, value in values:
        column = _find_column(reference, row, place) if reference else column + 1
        if column >= _LAST_COLUMN:
            raise BadInput(f"{place}, row {row}: more than {_LAST_COLUMN:,} columns")
        if value is not None:
            if len(value) > (longest := source.limits.line):
                raise BadInput(f"{place}, row {row}: a cell longer than {longest:,} characters")
            source.count_unpacked(len(value))
            if column in cells:
                raise BadInput(f"{place}, row {row}: column {column + 1} is there twice")
            cells[column] = value
    return cells


def _find_column(reference: str, row: int, place: str) -> int:
    match = _REFERENCE.match(reference)
    if match is None or int(match[2]) != row:
        raise BadInput(f"{place}, row {row}: {reference!r:.30} is no cell of this row")
    column = 0
    for letter in match[1].upper():
        column = 26 * column + ord(letter) - 64
    return column - 1
