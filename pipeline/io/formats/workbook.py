"""The parts of an xlsx file, unpacked a block at a time and parsed as they come, and what a cell's value means.

A small file can unpack into gigabytes: nothing is laid out, and all that comes out of it is counted.
"""

import math
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property
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


Element = tuple[str, str, Mapping[str, str], str]
"""Name and its parent's name, without their namespaces, attributes, and the text after the last tag inside it."""


class Workbook:
    """An open xlsx file."""

    def __init__(self, source: Source, archive: zipfile.ZipFile) -> None:
        self.source, self.archive = source, archive
        names = archive.namelist()
        if len(names) > _MOST_PARTS or len(set(names)) < len(names):
            raise BadInput(f"{source.path}: {len(names):,} parts, too many for a workbook, or one of them twice")
        self.names = {name.lower(): name for name in names}
        self.unpacked, self.is_1904 = 0, False

    def parse(self, part: str) -> Iterator[Element]:
        """Parse a part block by block; an element comes when it ends."""
        if (name := self.names.get(part.lower())) is None:
            raise BadInput(f"{self.source.path}: not a readable xlsx file: it has no part {part:.80}")
        open_elements: list[tuple[str, Mapping[str, str]]] = [("", {})]
        elements: list[Element] = []
        texts: list[str] = []  # since the last tag
        fed = 0

        def on_start(tag: str, attributes: Mapping[str, str]) -> None:
            open_elements.append((tag.rpartition(" ")[2], attributes))
            texts.clear()

        def on_end(_: str) -> None:
            name, attributes = open_elements.pop()
            elements.append((name, open_elements[-1][0], attributes, "".join(texts)))
            texts.clear()

        def refuse(*_: object) -> None:
            raise BadInput(f"{self.source.path}: {part} declares entities, as no workbook does")

        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = on_start, on_end
        parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = texts.append, refuse
        with self.archive.open(name) as file:
            while block := file.read(_BLOCK):
                depth, fed = len(open_elements), fed + len(block)
                parser.Parse(block)
                if fed - parser.CurrentByteIndex > _LONGEST_TAG:  # each block starts again at the tag's first byte
                    raise BadInput(f"{self.source.path}: {part} has a tag of more than {_LONGEST_TAG:,} bytes")
                self.unpacked += len(block)
                check_size(self.source.path, self.unpacked, self.source.limits, "unpacks to at least ")
                started_count = len(open_elements) - depth + len(elements)
                self.source.count_unpacked(len(block) + _ELEMENT_BYTES * started_count)
                yield from elements
                elements.clear()
            parser.Parse(b"", True)

    def sheets(self) -> list[tuple[str, str, bool]]:
        """The sheets in their order, wherever the file keeps them: name, part, and whether it is hidden."""
        root = self._relations("_rels/.rels", "")
        book = next((part for kind, part in root.values() if kind == "officeDocument"), "xl/workbook.xml")
        folder, book_name = posixpath.split(book)
        relations = self._relations(f"{folder}/_rels/{book_name}.rels", folder)
        self.parts = dict(relations.values())
        sheets = []
        for name, _, attributes, _ in self.parse(book):
            if name == "workbookPr":
                self.is_1904 = attributes.get("date1904") in ("1", "true")
            elif name == "sheet":
                reference = next((value for key, value in attributes.items() if key.endswith(" id")), "")
                kind, part = relations.get(reference, ("", ""))
                if kind == "worksheet":
                    is_hidden = attributes.get("state", "visible") != "visible"
                    sheets.append((attributes.get("name", ""), part, is_hidden))
        return sheets

    def _relations(self, part: str, folder: str) -> dict[str, tuple[str, str]]:
        relations = {}
        for name, _, attributes, _ in self.parse(part):
            if name == "Relationship" and attributes.get("TargetMode") != "External":
                target = attributes.get("Target", "")
                target = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
                relations[attributes.get("Id", "")] = (attributes.get("Type", "").rpartition("/")[2], target)
        return relations

    @cached_property
    def texts(self) -> list[str]:
        """The shared texts, which cells refer to by number."""
        texts: list[str] = []
        runs: list[str] = []
        for name, parent, _, text in self.parse(self.parts["sharedStrings"]) if "sharedStrings" in self.parts else ():
            if is_run(name, parent):
                runs.append(text)
            elif name == "si":
                texts.append(_ESCAPE.sub(_unescape, "".join(runs)))
                runs.clear()
        return texts

    @cached_property
    def date_styles(self) -> set[str]:
        """Numbers of the styles that show a number as a date or time."""
        formats: dict[str, str] = {}
        styles = []
        for name, parent, attributes, _ in self.parse(self.parts["styles"]) if "styles" in self.parts else ():
            if name == "numFmt":
                formats[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
            elif name == "xf" and parent == "cellXfs":
                styles.append(attributes.get("numFmtId", "0"))
        dates = {str(number) for number in _DATE_FORMATS if str(number) not in formats}
        dates |= {number for number, code in formats.items() if _DATE.search(_NOT_DATE.sub("", code.partition(";")[0]))}
        return {str(index) for index, number in enumerate(styles) if number in dates}

    def value(self, kind: str, text: str, style: str) -> str | None:
        """The value of a cell as text; a number that a spreadsheet may have rounded keeps its exponent."""
        if kind == "e":
            return CellError(text or "#ERROR")
        if kind in ("str", "inlineStr", "d"):
            return _ESCAPE.sub(_unescape, text) or None
        stripped = text.strip()
        if kind == "s":
            if not stripped.isdecimal() or int(stripped[:12]) >= len(self.texts):
                raise BadInput(f"{self.source.path}: a cell refers to the shared text {text!r:.40}, which is not there")
            return self.texts[int(stripped)] or None
        if kind == "b":
            return {"1": "true", "0": "false"}.get(stripped, text)
        if not stripped:
            return None
        try:
            number = float(stripped)
        except ValueError as why:
            raise BadInput(f"{self.source.path}: a cell holds the number {stripped!r:.40}, which is none") from why
        return self._date(number) if style in self.date_styles else _digits(stripped, number)

    def _date(self, number: float) -> str:
        """A day count since 1900, in which the 29th of February of that year is counted too, or since 1904."""
        day_zero = "1904-01-01" if self.is_1904 else "1899-12-30" if number >= 61 else "1899-12-31"
        try:
            moment = datetime.fromisoformat(day_zero) + timedelta(milliseconds=round(number * 86_400_000))
        except (OverflowError, ValueError) as why:
            raise BadInput(f"{self.source.path}: a cell shows {number!r} as a date, which is none") from why
        return moment.isoformat(" ", "milliseconds" if moment.microsecond else "seconds")


def is_run(name: str, parent: str) -> bool:
    """Whether an element is text of an entry; its reading aid (`rPh`) is no part of it."""
    return name == "t" and parent != "rPh"


def _unescape(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return escape.group() if "\ud800" <= character <= "\udfff" else character


def _digits(text: str, number: float) -> str:
    if not math.isfinite(number):
        return CellError(text)
    if abs(number) > _EXACT or (abs(number) >= _MOST_DIGITS and "e" in text.lower()):
        return RoundedNumber(f"{number:.16e}")
    if _WHOLE.match(text):
        return text
    return str(int(number)) if number.is_integer() else repr(number)
