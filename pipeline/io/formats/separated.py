"""Rows of csv and tsv, read strictly (RFC 4180): whatever is no row of the header's width is named, never passed over.

A quote inside an unquoted field is stray and costs one row: reading goes on at the line after it was opened.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from pipeline.errors import BadInput
from pipeline.io.formats.chunk import BadRow, Chunk, Row, Source, check_header, chunk_rows, find_unnamed_value
from pipeline.io.lines import read_lines

_INSIDE = re.compile(r'[^"]*(?:""[^"]*)*')
_MOST_LINES = 100_000  # of a record
_SAMPLE = 2_000  # lines that tell how the values of a column look
_FEWEST = 20  # lines without which nothing is concluded from them
_SHAPES = 20  # a column whose values have no more shapes than these is regular: numbers, dates, ids, categories
_REGULAR = 0.95
_LIKE_ROWS = 4  # lines in a field that look like rows, where no column is regular


class _Span(NamedTuple):
    """A quoted field over several lines: its column, its first and last line within the record, where it begins."""

    column: int
    first: int
    last: int
    character: int


class _Fault(Exception):
    def __init__(self, reason: str, message: str, line_count: int) -> None:
        super().__init__(message)
        self.reason, self.line_count = reason, line_count


def read(source: Source) -> Iterator[Chunk]:
    """Chunks of a csv or tsv file; its first record is the header."""
    table = _Table(source)
    yield from chunk_rows(source, source.path.stem, table.rows(), [name for name in table.header if name])


class _Table:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.delimiter = "\t" if source.path.suffix.lower() == ".tsv" else ","
        self.plain = re.compile(rf'[^"{self.delimiter}\r\n]*')
        self.following = read_lines(source.path, source.encoding, source.limits)
        self.returned: deque[tuple[int, str]] = deque()  # lines to read again
        self.lines: list[tuple[int, str]] = []  # of the record that is being read
        self.header: list[str] = []
        try:
            while self.header in ([], [""]):
                self.header, _ = self._record()
        except StopIteration as why:
            raise BadInput(f"{source.path}: the file holds no rows") from why
        except _Fault as fault:
            raise BadInput(str(fault)) from fault
        number, line = self.lines[0]
        separator = re.search(r"[,;|\t]", line) if '"' not in line else None  # in quotes it is part of a name
        if separator and len(self.header) == 1:
            message = f"the separator looks like {separator[0]!r}, expected {self.delimiter!r}"
            raise BadInput(f"{source.path}, line {number}: {message}; csv has commas and tsv tabs")
        self.ends_in_return = self.lines[-1][1].endswith("\r")
        check_header(self.header, f"{source.path}, line 1")

    def rows(self) -> Iterator[Row | BadRow]:
        """The rows after the header; row 1 is the header."""
        number = 2
        while True:
            try:
                fields, spans = self._record()
                line_number, line = self.lines[-1]
                if line[-1:] == ("\n" if self.ends_in_return else "\r"):
                    why = "a carriage return and a line feed as ends of lines; put the field that holds one in quotes"
                    raise self._fault("mixed_line_ends", line_number, len(line), why, len(self.lines))
                if fields == [""] and len(self.header) > 1:  # a blank line
                    continue
                self._check_fields(fields, spans)
            except StopIteration:
                return
            except _Fault as fault:
                self.returned.extendleft(reversed(self.lines[fault.line_count :]))
                yield self.source.drop(fault.reason, number, str(fault))
            else:
                values = dict(zip(self.header, fields, strict=True))
                values.pop("", None)
                yield (number, values, sum(map(len, fields)))
            number += 1

    def _fault(self, reason: str, line: int, character: int, message: str, line_count: int = 1) -> _Fault:
        place = f"{self.source.path}, line {line}" + (f", character {character}" if character else "")
        return _Fault(reason, f"{place}: {message}", line_count)

    def _line(self) -> str:
        self.lines.append(self.returned.popleft() if self.returned else next(self.following))
        number, line = self.lines[-1]
        if "\0" in line:
            raise self._fault("nul_character", number, line.index("\0") + 1, "a NUL character; is it another encoding?")
        return line

    def _record(self) -> tuple[list[str], list[_Span]]:
        self.lines = []
        line = self._line()
        if '"' not in line:
            return line.rstrip("\r\n").split(self.delimiter), []
        fields: list[str] = []
        spans: list[_Span] = []
        position = 0
        while True:
            if line.startswith('"', position):
                first, character = len(self.lines) - 1, position + 1
                value, line, position = self._quoted(line, position)
                if (last := len(self.lines) - 1) > first:
                    spans.append(_Span(len(fields), first, last, character))
            else:
                match = self.plain.match(line, position)
                assert match is not None  # it matches the empty text
                value, position = match.group(), match.end()
            fields.append(value)
            following = line[position : position + 1]
            if following in ("", "\r", "\n"):
                return fields, spans
            if following != self.delimiter:
                why = "a quote in a field that does not begin with one; put the field in quotes and double those in it"
                if following != '"':
                    rest = f"{line[position:].rstrip()!r:.40}"
                    why = f"found {rest} after a closing quote, expected {self.delimiter!r} or the end"
                raise self._fault("stray_quote", self.lines[-1][0], position + 1, why)
            position += 1

    def _quoted(self, line: str, position: int) -> tuple[str, str, int]:
        number, character, parts, length = self.lines[-1][0], position + 1, [], 0
        position += 1
        while True:
            match = _INSIDE.match(line, position)
            assert match is not None  # it matches the empty text
            parts.append(match.group())
            length += len(match.group())
            if match.end() < len(line):
                return "".join(parts).replace('""', '"'), line, match.end() + 1
            if length > (longest := self.source.limits.line):
                why = f"the field is longer than {longest:,} characters"
            elif len(self.lines) > _MOST_LINES:
                why = f"the field has more than {_MOST_LINES:,} lines"
            else:
                try:
                    line, position = self._line(), 0
                    continue
                except StopIteration:
                    why = "it lasts to the end of the file"
            message = f"the quote opened here is not closed: {why}"
            raise self._fault("unclosed_quote", number, character, message, number - self.lines[0][0] + 1)

    def _check_fields(self, fields: list[str], spans: list[_Span]) -> None:
        for span in spans:
            if self._swallows_rows(span):
                why = f"the quote opened here is closed {span.last - span.first} lines further on, and the lines "
                why += "between look like rows of their own; double it, or if it is right write the file as jsonl"
                raise self._fault("stray_quote", self.lines[span.first][0], span.character, why, span.first + 1)
        first, line_count = self.lines[0][0], len(self.lines)
        if len(fields) != len(self.header):
            why = f"{len(fields)} fields where the header has {len(self.header)}"
            raise self._fault("field_count", first, 0, why, line_count)
        if unnamed := find_unnamed_value(self.source, self.header, fields):
            raise self._fault("unnamed_column", first, 0, unnamed, line_count)

    def _swallows_rows(self, span: _Span) -> bool:
        """Whether a quoted field over several lines rather is two stray quotes and the rows between them."""
        width = len(self.header)
        if width == 1:
            return False
        first, *between, last = (line.rstrip("\r\n") for _, line in self.lines[span.first : span.last + 1])
        if not self._shapes:
            row_like_count = sum(bool(line.strip()) and line.count(self.delimiter) == width - 1 for line in between)
            return row_like_count >= _LIKE_ROWS and row_like_count > 0.8 * len(between)
        evidence = [self._is_like_row(line, self._shapes.keys()) for line in between]
        if after := [column for column in self._shapes if column > span.column]:
            evidence.append(self._is_like_row(first, after))
        if before := [column for column in self._shapes if column < span.column]:
            evidence.append(self._is_like_row(last, before))
        return sum(evidence) * 2 > len(evidence)

    def _is_like_row(self, line: str, columns: Iterable[int]) -> bool:
        values = line.split(self.delimiter)
        is_like = (_shape(values[column]) in self._shapes[column] for column in columns)
        return len(values) == len(self.header) and all(is_like)

    @cached_property
    def _shapes(self) -> dict[int, set[str]]:
        """The shapes of the values in each regular column, from the first lines that hold no quote."""
        lines = islice(read_lines(self.source.path, self.source.encoding, self.source.limits), 1, 10 * _SAMPLE)
        records = (line.rstrip("\r\n").split(self.delimiter) for _, line in lines if '"' not in line)
        rows = list(islice((values for values in records if len(values) == len(self.header)), _SAMPLE))
        regular = {}
        for column, values in enumerate(zip(*rows, strict=True)) if len(rows) >= _FEWEST else ():
            usual = Counter(map(_shape, values)).most_common(_SHAPES)
            if sum(count for _, count in usual) >= _REGULAR * len(rows) and len(usual) * 4 <= len(rows):
                regular[column] = {shape for shape, _ in usual}
        return regular


def _shape(value: str) -> str:
    """A value with each run of digits as 0: `2023-11-14` and `1999-1-1` have one shape, `pos` and `neg` two."""
    return re.sub(r"[0-9]+", "0", value)
