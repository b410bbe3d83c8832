"""Rows of csv and tsv, read strictly (RFC 4180): whatever is no row of the header's width is named, never passed over.

A field in quotes may span lines and holds quotes doubled; a quote anywhere else is stray. Python's reader takes a stray
quote for the beginning of a field and swallows rows up to the next one. Here reading goes on at the line after the one
where the quote was opened, so that a stray quote costs one row. As no quote stands outside quotes, an odd number of
them opens or closes a field: a line is read twice at most, and the time is linear.
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


class _Record(NamedTuple):
    lines: list[tuple[int, str]]
    fields: list[str]
    spans: list[_Span]


class _Fault(Exception):
    """A record that is none. `line_count` of its lines are dropped; the others are read again."""

    def __init__(self, reason: str, line: int, character: int, message: str, line_count: int = 1) -> None:
        super().__init__(message)
        self.reason, self.line, self.character, self.line_count = reason, line, character, line_count


def read(source: Source) -> Iterator[Chunk]:
    """Chunks of a csv or tsv file; its first record is the header."""
    table = _Table(source, "\t" if source.path.suffix.lower() == ".tsv" else ",")
    names = [name for name in table.header if name]
    yield from chunk_rows(source, source.path.stem, table.rows(), names)


class _Table:
    """The records of a file, one after another."""

    def __init__(self, source: Source, delimiter: str) -> None:
        self.source, self.delimiter = source, delimiter
        self.plain = re.compile(rf'[^"{delimiter}\r\n]*')
        self.lines = read_lines(source.path, source.encoding, source.limits)
        self.returned: deque[tuple[int, str]] = deque()  # lines to read again
        self.held: list[tuple[int, str]] = []  # lines of the record that is being read
        self.header: list[str] = []
        try:
            while self.header in ([], [""]):
                self.header = self._record().fields
        except StopIteration as why:
            raise BadInput(f"{source.path}: the file holds no rows") from why
        except _Fault as fault:
            raise BadInput(self._message(fault)) from fault
        self.ends_in_return = self.held[-1][1].endswith("\r")
        check_header(self.header, f"{source.path}, line 1")

    def rows(self) -> Iterator[Row | BadRow]:
        """The rows after the header; row 1 is the header."""
        number, width, unnamed = 1, len(self.header), "" in self.header
        while True:
            number += 1
            try:
                record = self._record()
                self._check_end(record)
                if record.fields == [""] and width > 1:  # a blank line
                    number -= 1
                    continue
                self._check(record, width)
                if unnamed:
                    self._check_unnamed(record)
            except StopIteration:
                return
            except _Fault as fault:
                self.returned.extendleft(reversed(self.held[fault.line_count :]))
                yield self.source.drop(fault.reason, number, self._message(fault))
                continue
            values = dict(zip(self.header, record.fields, strict=True))
            values.pop("", None)
            yield Row(number, values, sum(map(len, record.fields)))

    def _message(self, fault: _Fault) -> str:
        place = f"{self.source.path}, line {fault.line}" + (f", character {fault.character}" if fault.character else "")
        return f"{place}: {fault}"

    def _line(self) -> str:
        """The next line of a record; StopIteration at the end of the file."""
        self.held.append(self.returned.popleft() if self.returned else next(self.lines))
        number, line = self.held[-1]
        if "\0" in line:
            raise _Fault("nul_character", number, line.index("\0") + 1, "a NUL character; is it another encoding?")
        return line

    def _record(self) -> _Record:
        self.held = []
        line = self._line()
        if '"' not in line:
            return _Record(self.held, line.rstrip("\r\n").split(self.delimiter), [])
        fields: list[str] = []
        spans: list[_Span] = []
        position = 0
        while True:
            if line.startswith('"', position):
                first, character = len(self.held) - 1, position + 1
                value, line, position = self._quoted(line, position)
                if (last := len(self.held) - 1) > first:
                    spans.append(_Span(len(fields), first, last, character))
            else:
                match = self.plain.match(line, position)
                assert match is not None  # it matches the empty text
                value, position = match.group(), match.end()
            fields.append(value)
            following = line[position : position + 1]
            if following == self.delimiter:
                position += 1
            elif following in ("", "\r", "\n"):
                return _Record(self.held, fields, spans)
            else:
                self._refuse_after(line, position, following)

    def _refuse_after(self, line: str, position: int, following: str) -> None:
        number = self.held[-1][0]
        if following == '"':
            why = "a quote in a field that does not begin with one; put the field in quotes and double those in it"
        else:
            why = (
                f"found {line[position:].rstrip()!r:.40} after a closing quote, expected {self.delimiter!r} or the end"
            )
        raise _Fault("stray_quote", number, position + 1, why)

    def _quoted(self, line: str, position: int) -> tuple[str, str, int]:
        """The value of a field in quotes, the line on which it ends, and the position after its closing quote."""
        first_line, character, parts, length = self.held[-1][0], position + 1, [], 0
        position += 1
        while True:
            match = _INSIDE.match(line, position)
            assert match is not None  # it matches the empty text
            parts.append(match.group())
            length += len(match.group())
            if match.end() < len(line):
                return "".join(parts).replace('""', '"'), line, match.end() + 1
            if length > (longest := self.source.limits.line):
                raise self._unclosed(first_line, character, f"the field is longer than {longest:,} characters")
            if len(self.held) > _MOST_LINES:
                raise self._unclosed(first_line, character, f"the field has more than {_MOST_LINES:,} lines")
            try:
                line, position = self._line(), 0
            except StopIteration:
                raise self._unclosed(first_line, character, "it lasts to the end of the file") from None

    def _unclosed(self, line: int, character: int, why: str) -> _Fault:
        return _Fault("unclosed_quote", line, character, f"the quote opened here is not closed: {why}",
                      line - self.held[0][0] + 1)  # fmt: skip

    def _check_end(self, record: _Record) -> None:
        """Refuse a carriage return that ends a record where line feeds end the others, or the other way round.

        It stands in a value that was written without quotes.
        """
        number, line = record.lines[-1]
        if line[-1:] == ("\n" if self.ends_in_return else "\r"):
            why = "a carriage return and a line feed as ends of lines; put the field that holds one in quotes"
            raise _Fault("mixed_line_ends", number, len(line), why, len(record.lines))

    def _check(self, record: _Record, width: int) -> None:
        for span in record.spans:
            if self._swallows_rows(record, span, width):
                raise _Fault(
                    "stray_quote", record.lines[span.first][0], span.character,
                    f"the quote opened here is closed {span.last - span.first} lines further on, and the lines between "
                    "look like rows of their own; double it, or if it is right write the file as jsonl",
                    span.first + 1,
                )  # fmt: skip
        if len(record.fields) != width:
            message = f"{len(record.fields)} fields where the header has {width}"
            raise _Fault("field_count", record.lines[0][0], 0, message, len(record.lines))

    def _check_unnamed(self, record: _Record) -> None:
        if unnamed := find_unnamed_value(self.source, self.header, record.fields):
            position, value = unnamed
            message = f"column {position + 1} has no name in the header, and here holds {value!r:.40}; name the column"
            raise _Fault("unnamed_column", record.lines[0][0], 0, message, len(record.lines))

    def _swallows_rows(self, record: _Record, span: _Span, width: int) -> bool:
        """Whether a quoted field over several lines rather is two stray quotes and the rows between them.

        Lines of a text look like rows where they have as many fields as the header. In prose with commas that happens
        by chance, so their values must also look like those of the file's other rows, in each regular column: a number
        where there are only numbers, one of the labels where there are only these. The field's first line proves
        something by the columns after it, its last line by those before it, as the others are its record's own.
        More than half such lines make a swallowed table. Where no column is regular (free texts alone), at least four
        out of five lines must have the header's width, and be at least four. In a table of one column every line has
        it, which proves nothing.
        """
        if width == 1:
            return False
        inner = [line.rstrip("\r\n") for _, line in record.lines[span.first : span.last + 1]]
        first, between, last = inner[0], inner[1:-1], inner[-1]
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
        """Whether a line has as many fields as the header, and in these columns values like those of other rows."""
        values = line.split(self.delimiter)
        return len(values) == len(self.header) and all(
            _shape(values[column]) in self._shapes[column] for column in columns
        )

    @cached_property
    def _shapes(self) -> dict[int, set[str]]:
        """The shapes of the values in each regular column, from the first lines that hold no quote."""
        whole_file = read_lines(self.source.path, self.source.encoding, self.source.limits)
        sample = (line.rstrip("\r\n").split(self.delimiter) for _, line in islice(whole_file, 1, 10 * _SAMPLE)
                  if '"' not in line)  # fmt: skip
        rows = list(islice((values for values in sample if len(values) == len(self.header)), _SAMPLE))
        if len(rows) < _FEWEST:
            return {}
        regular = {}
        for column in range(len(self.header)):
            shapes = Counter(_shape(values[column]) for values in rows)
            usual = shapes.most_common(_SHAPES)
            if sum(count for _, count in usual) >= _REGULAR * len(rows) and len(usual) * 4 <= len(rows):
                regular[column] = {shape for shape, _ in usual}
        return regular


def _shape(value: str) -> str:
    """A value with each run of digits as 0: `2023-11-14` and `1999-1-1` have one shape, `pos` and `neg` two."""
    return re.sub(r"[0-9]+", "0", value)
