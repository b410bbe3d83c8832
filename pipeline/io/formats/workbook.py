"""The parts of an xlsx file, unpacked a block at a time and parsed as they come, and what a cell's value means.

An xlsx file is a zip of XML. A small one can unpack into gigabytes, use one long text in a million cells, or hold cells
a billion rows apart; so nothing is laid out, and all that comes out of it is counted.
"""

import math
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple
from xml.parsers import expat

from pipeline.errors import BadInput
from pipeline.io.formats.chunk import Source
from pipeline.io.lines import check_size

_BLOCK = 1 << 16
_MOST_PARTS = 10_000
_ELEMENT_BYTES = 64  # of an element, in memory and for the time it takes
_LONGEST_TAG = 1 << 20
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")  # how a control character is written
_DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}  # ECMA-376, 18.8.30
_NOT_DATE = re.compile(r'"[^"]*"|\\.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)  # texts, colours, currencies
_DATE = re.compile(r"[dmyhs]", re.IGNORECASE)
_EXACT = 2**53  # a spreadsheet's numbers are doubles, and skip whole numbers above
_MOST_DIGITS = 10**15  # Excel keeps 15 digits of a number, and writes long ones with an exponent
_WHOLE = re.compile(r"^-?[0-9]{1,16}$")


class CellError(str):
    """What a cell shows in place of a value, such as `#N/A`."""

    __slots__ = ()


class RoundedNumber(str):
    """A number with more digits than a spreadsheet keeps."""

    __slots__ = ()


class Sheet(NamedTuple):
    """A sheet of a workbook: its name, the part that holds it, and whether it is hidden."""

    name: str
    part: str
    is_hidden: bool


class Workbook:
    """An open xlsx file."""

    def __init__(self, source: Source, archive: zipfile.ZipFile) -> None:
        self.source, self.archive = source, archive
        names = archive.namelist()
        if len(names) > _MOST_PARTS or len(set(names)) < len(names):
            raise BadInput(f"{source.path}: {len(names):,} parts, too many for a workbook, or one of them twice")
        self.names = {name.lower(): name for name in names}
        self.unpacked = 0
        self.is_1904 = False

    def parse(
        self,
        part: str,
        start: Callable[[str, Mapping[str, str]], None],
        end: Callable[[str], None] = lambda _: None,
        text: Callable[[str], None] = lambda _: None,
    ) -> Iterator[None]:
        """Parse a part block by block; the handlers get names of elements without their namespace."""
        if (name := self.names.get(part.lower())) is None:
            raise BadInput(f"{self.source.path}: not a readable xlsx file: it has no part {part:.80}")
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        elements = silent = 0  # since the last block; bytes since the last tag or text

        def on_start(name: str, attributes: Mapping[str, str]) -> None:
            nonlocal elements, silent
            elements, silent = elements + 1, 0
            start(name.rpartition(" ")[2], attributes)

        def on_text(characters: str) -> None:
            nonlocal silent
            silent = 0
            text(characters)

        def refuse(*_: object) -> None:
            raise BadInput(f"{self.source.path}: {part} declares entities, as no workbook does")

        parser.StartElementHandler = on_start
        parser.EndElementHandler = lambda name: end(name.rpartition(" ")[2])
        parser.CharacterDataHandler = on_text
        parser.StartDoctypeDeclHandler = refuse
        with self.archive.open(name) as file:
            while block := file.read(_BLOCK):
                elements, silent = 0, silent + len(block)
                parser.Parse(block)
                if silent > _LONGEST_TAG:  # the parser begins anew at a tag's first byte with each block
                    raise BadInput(f"{self.source.path}: {part} has a tag of more than {_LONGEST_TAG:,} bytes")
                self.unpacked += len(block)
                check_size(self.source.path, self.unpacked, self.source.limits, "unpacks to at least ")
                self.source.count_unpacked(len(block) + _ELEMENT_BYTES * elements)
                yield
            parser.Parse(b"", True)
            yield

    def sheets(self) -> list[Sheet]:
        """The sheets in their order, wherever the file keeps them."""
        root = self._relations("_rels/.rels", "")
        book = next((part for kind, part in root.values() if kind == "officeDocument"), "xl/workbook.xml")
        folder, name = posixpath.split(book)
        relations = self._relations(f"{folder}/_rels/{name}.rels", folder)
        sheets: list[Sheet] = []

        def start(name: str, attributes: Mapping[str, str]) -> None:
            if name == "workbookPr":
                self.is_1904 = attributes.get("date1904") in ("1", "true")
            elif name == "sheet":
                reference = next((value for key, value in attributes.items() if key.endswith(" id")), "")
                kind, part = relations.get(reference, ("", ""))
                if kind == "worksheet":
                    sheets.append(
                        Sheet(attributes.get("name", ""), part, attributes.get("state", "visible") != "visible")
                    )

        for _ in self.parse(book, start):
            pass
        self.parts = dict(relations.values())
        return sheets

    def _relations(self, part: str, folder: str) -> dict[str, tuple[str, str]]:
        """What a part of relations points to: kind and part by id."""
        relations: dict[str, tuple[str, str]] = {}

        def start(name: str, attributes: Mapping[str, str]) -> None:
            if name == "Relationship" and attributes.get("TargetMode") != "External":
                target = attributes.get("Target", "")
                target = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
                relations[attributes.get("Id", "")] = (attributes.get("Type", "").rpartition("/")[2], target)

        for _ in self.parse(part, start):
            pass
        return relations

    @cached_property
    def texts(self) -> list[str]:
        """The shared texts, which cells refer to by number."""
        if "sharedStrings" not in self.parts:
            return []
        texts: list[str] = []
        runs = TextRuns()

        def start(name: str, _: Mapping[str, str]) -> None:
            if name == "si":
                runs.clear()
            runs.start(name)

        def end(name: str) -> None:
            runs.end(name)
            if name == "si":
                texts.append(runs.value())

        for _ in self.parse(self.parts["sharedStrings"], start, end, runs.add):
            pass
        return texts

    @cached_property
    def date_styles(self) -> set[str]:
        """Numbers of the styles that show a number as a date or time."""
        if "styles" not in self.parts:
            return set()
        formats: dict[str, str] = {}
        styles: list[str] = []
        is_cell_style = False

        def start(name: str, attributes: Mapping[str, str]) -> None:
            nonlocal is_cell_style
            if name == "numFmt":
                formats[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
            elif name in ("cellXfs", "cellStyleXfs", "cellStyles", "dxfs"):
                is_cell_style = name == "cellXfs"
            elif name == "xf" and is_cell_style:
                styles.append(attributes.get("numFmtId", "0"))

        for _ in self.parse(self.parts["styles"], start):
            pass
        return {str(index) for index, number in enumerate(styles) if _is_date(number, formats.get(number))}

    def value(self, kind: str, text: str, style: str) -> str | None:
        """The value of a cell as text; a number that a spreadsheet may have rounded keeps its exponent."""
        if kind == "s":
            return self._shared(text)
        if kind == "e":
            return CellError(text or "#ERROR")
        if kind in ("str", "inlineStr", "d"):
            return _ESCAPE.sub(_unescape, text) or None
        if kind == "b":
            return {"1": "true", "0": "false"}.get(text.strip(), text)
        return self._number(text.strip(), style) if text.strip() else None

    def _number(self, text: str, style: str) -> str:
        try:
            number = float(text)
        except ValueError as why:
            raise BadInput(f"{self.source.path}: a cell holds the number {text!r:.40}, which is none") from why
        return self._date(number) if style in self.date_styles else _digits(text, number)

    def _shared(self, text: str) -> str | None:
        if not text.strip().isdecimal() or int(text.strip()[:12]) >= len(self.texts):
            raise BadInput(f"{self.source.path}: a cell refers to the shared text {text!r:.40}, which is not there")
        return self.texts[int(text.strip())] or None

    def _date(self, number: float) -> str:
        """A day count since 1900, in which the 29th of February of that year is counted too, or since 1904."""
        day_zero = datetime.fromisoformat(
            "1904-01-01" if self.is_1904 else "1899-12-30" if number >= 61 else "1899-12-31"
        )
        try:
            moment = day_zero + timedelta(milliseconds=round(number * 86_400_000))
        except (OverflowError, ValueError) as why:
            raise BadInput(f"{self.source.path}: a cell shows {number!r} as a date, which is none") from why
        return moment.isoformat(" ", "milliseconds" if moment.microsecond else "seconds")


class TextRuns:
    """The text of an entry that may consist of runs; its reading aid (`rPh`) is no part of it."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin an entry."""
        self.parts: list[str] = []
        self.is_text, self.aids = False, 0

    def start(self, name: str) -> None:
        """An element begins."""
        self.aids += name == "rPh"
        self.is_text = name == "t" and not self.aids

    def end(self, name: str) -> None:
        """An element ends."""
        self.aids -= name == "rPh"
        self.is_text = False

    def add(self, text: str) -> None:
        """Characters between two tags."""
        if self.is_text:
            self.parts.append(text)

    def value(self) -> str:
        """The entry's text."""
        return _ESCAPE.sub(_unescape, "".join(self.parts))


def _unescape(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return escape.group() if "\ud800" <= character <= "\udfff" else character


def _is_date(number: str, code: str | None) -> bool:
    if code is not None:
        return bool(_DATE.search(_NOT_DATE.sub("", code.partition(";")[0])))
    return number.isdecimal() and int(number[:6]) in _DATE_FORMATS


def _digits(text: str, number: float) -> str:
    """A number as text: whole ones without a point, and with an exponent where digits may have been lost."""
    if not math.isfinite(number):
        return CellError(text)
    if abs(number) > _EXACT or (abs(number) >= _MOST_DIGITS and "e" in text.lower()):
        return RoundedNumber(f"{number:.16e}")
    if _WHOLE.match(text):
        return text
    return str(int(number)) if number.is_integer() else repr(number)
