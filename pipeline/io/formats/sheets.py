"""Rows of the sheets of an xlsx file. The first row that is not empty is the header; hidden sheets are left out."""

import re
import zipfile
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from xml.parsers import expat

from pipeline.errors import BadInput
from pipeline.io.formats.chunk import BadRow, Chunk, Row, Source, check_header, chunk_rows, find_unnamed_value
from pipeline.io.formats.workbook import CellError, Sheet, TextRuns, Workbook

_REFERENCE = re.compile(r"^\$?([A-Za-z]{1,3})\$?([0-9]{1,7})$")
_LAST_ROW, _LAST_COLUMN = 1_048_576, 16_384

Cells = dict[int, str]  # by column, counted from 0; empty cells are not there


def read(source: Source) -> Iterator[Chunk]:
    """Chunks of each sheet that can be seen."""
    try:
        with zipfile.ZipFile(source.path) as archive:
            workbook = Workbook(source, archive)
            for sheet in workbook.sheets():
                if sheet.is_hidden:
                    source.ignore(f"the hidden sheet {sheet.name!r:.60}")
                    continue
                yield from _chunks(source, workbook, sheet)
    except (zipfile.BadZipFile, zlib.error, expat.ExpatError, OSError, EOFError, RuntimeError, NotImplementedError,
            UnicodeError, LookupError, ValueError) as why:  # fmt: skip
        raise BadInput(f"{source.path}: not a readable xlsx file: {why}") from why


def _chunks(source: Source, workbook: Workbook, sheet: Sheet) -> Iterator[Chunk]:
    rows = _cells(source, workbook, sheet)
    place = f"{source.path}, sheet {sheet.name!r:.60}"
    number, first = next(rows, (0, {}))
    if not first:
        return
    header = [first.get(column, "") for column in range(max(first) + 1)]
    check_header(header, f"{place}, row {number}")
    yield from chunk_rows(source, sheet.name, _rows(source, rows, header, place), [name for name in header if name])


def _rows(source: Source, rows: Iterator[tuple[int, Cells]], header: list[str], place: str) -> Iterator[Row | BadRow]:
    has_unnamed = "" in header
    for number, cells in rows:
        if (last := max(cells)) >= len(header):
            message = f"{place}, row {number}: column {last + 1} holds {cells[last]!r:.40}, beyond the header"
            yield source.drop("field_count", number, f"{message}, which has {len(header)} columns")
            continue
        if has_unnamed:
            unnamed = find_unnamed_value(source, header, [cells.get(column) for column in range(len(header))])
            if unnamed:
                message = f"{place}, row {number}: column {unnamed[0] + 1} has no name in the header, and holds a value"
                yield source.drop("unnamed_column", number, f"{message}; name the column")
                continue
        values = {name: cells.get(column) for column, name in enumerate(header) if name}
        yield Row(number, values, 2 * sum(map(len, cells.values())))


def _cells(source: Source, workbook: Workbook, sheet: Sheet) -> Iterator[tuple[int, Cells]]:
    """The rows of a sheet that hold anything: number and cells."""
    handler = _SheetHandler(source, workbook, f"{source.path}, sheet {sheet.name!r:.60}")
    for _ in workbook.parse(sheet.part, handler.start, handler.end, handler.text):
        while handler.rows:
            yield handler.rows.popleft()


class _SheetHandler:
    """Puts cells together as the parser meets their parts."""

    def __init__(self, source: Source, workbook: Workbook, place: str) -> None:
        self.source, self.workbook, self.place = source, workbook, place
        self.rows: deque[tuple[int, Cells]] = deque()
        self.row = self.column = 0
        self.cells: Cells = {}
        self.kind = self.style = ""
        self.parts: list[str] = []
        self.is_value = self.has_value = self.has_formula = False
        self.inline = TextRuns()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins: a row, a cell, its value or its formula."""
        if name == "row":
            self.row = self._number(attributes["r"]) if "r" in attributes else self.row + 1
            self.column, self.cells = 0, {}
        elif name == "c":
            self._place(attributes.get("r", ""))
            self.kind, self.style = attributes.get("t", "n"), attributes.get("s", "")
            self.parts, self.has_value, self.has_formula = [], False, False
            self.inline.clear()
        elif name == "v":
            self.is_value = self.has_value = True
        elif name == "f":
            self.has_formula = True
        elif self.kind == "inlineStr":
            self.inline.start(name)

    def end(self, name: str) -> None:
        """An element ends."""
        if name == "v":
            self.is_value = False
        elif name == "c":
            self._finish_cell()
        elif name == "row" and self.cells:
            self.rows.append((self.row, self.cells))
            self.cells = {}
        elif self.kind == "inlineStr":
            self.inline.end(name)

    def text(self, text: str) -> None:
        """Characters between two tags."""
        if self.is_value:
            self.parts.append(text)
        elif self.kind == "inlineStr":
            self.inline.add(text)

    def _finish_cell(self) -> None:
        text = self.inline.value() if self.kind == "inlineStr" and not self.has_value else "".join(self.parts)
        is_uncomputed = self.has_formula and (not self.has_value or (not text.strip() and self.kind != "str"))
        if is_uncomputed:
            value: str | None = CellError("a formula without a value; open the file in a spreadsheet and save it")
        else:
            value = self.workbook.value(self.kind, text, self.style)
        if value is not None:
            if len(value) > self.source.limits.line:
                raise BadInput(
                    f"{self.place}, row {self.row}: a cell longer than {self.source.limits.line:,} characters"
                )
            self.source.count_unpacked(len(value))
            if self.column in self.cells:
                raise BadInput(f"{self.place}, row {self.row}: column {self.column + 1} is there twice")
            self.cells[self.column] = value
        self.column += 1
        self.kind = ""

    def _place(self, reference: str) -> None:
        """Go to the cell that a reference names; without one it is the next."""
        if reference:
            match = _REFERENCE.match(reference)
            if match is None or self._number(match[2]) != self.row:
                raise BadInput(f"{self.place}, row {self.row}: {reference!r:.30} is no cell of this row")
            self.column = _column(match[1])
        if self.column >= _LAST_COLUMN:
            raise BadInput(f"{self.place}, row {self.row}: more than {_LAST_COLUMN:,} columns")

    def _number(self, text: str) -> int:
        if not text.isdecimal() or not 0 < int(text[:8]) <= _LAST_ROW:
            raise BadInput(f"{self.place}: {text!r:.30} is no row of a sheet")
        return int(text)


def _column(letters: str) -> int:
    """A column's position: 0 for A, 26 for AA."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - 64
    return number - 1
