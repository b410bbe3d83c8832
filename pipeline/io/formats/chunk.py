"""Rows on their way out of a file: chunks of bounded size, rows that are broken, columns without a name."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import BadInput
from pipeline.io.lines import LIMITS, UTF8, Limits

log = logging.getLogger(__name__)
CHUNK = 20_000  # rows
CHUNK_BYTES = 1 << 25  # of the rows of a chunk, as they are in memory
WIDEST = 16_384  # columns, as many as Excel has
_CELL_BYTES = 64  # of a cell in memory, besides its text
_FREE_BYTES = 1 << 26  # any file may unpack into so many bytes,
_MOST_UNPACKED = 200  # a larger one into so many times its size: real tables stay below 50
_INDEX = re.compile(r"^-?[0-9]{1,18}$")
_LISTED = 20  # names in a message
_MESSAGES = 10  # about bad rows, of a file
Row = tuple[int, dict[str, Any], int]
"""The number of a row as a person would count it, its values, and their bytes: a plain tuple, a million a file."""


class BadRow(NamedTuple):
    """A record that is no row of its table: a word for why, its number, and a sentence with file and line."""

    reason: str
    number: int
    message: str


class Chunk(NamedTuple):
    """Some rows of one table of a file.

    `numbers` are those of the rows, from 1 as a person counts: dropped rows and empty rows of a sheet leave gaps.
    `columns` are the names of the header, in formats that have one.
    """

    table: str
    rows: list[dict[str, Any]]
    numbers: Sequence[int]
    bad_rows: Sequence[BadRow]
    columns: Sequence[str]


@dataclass(kw_only=True)
class Source:
    """A file to read and how.

    `ignored` collects what is left out of it on purpose, in words, and `messages` those about the first bad rows.
    `choose` names the columns to read, given a table and all its columns; formats that store columns apart obey it.
    """

    path: Path
    encoding: str = UTF8
    size: int = CHUNK
    limits: Limits = LIMITS
    skip_bad_rows: bool = False
    ignored: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    choose: Callable[[str, Sequence[str]], Iterable[str]] = lambda _, names: names
    unpacked: int = 0

    def drop(self, reason: str, number: int, message: str) -> BadRow:
        """A broken record, dropped; where rows must not be skipped it is BadInput."""
        if not self.skip_bad_rows:
            raise BadInput(message)
        if len(self.messages) < _MESSAGES:
            self.messages.append(message)
        return BadRow(reason, number, message)

    def ignore(self, what: str) -> None:
        """Note what is left out, once."""
        if what not in self.ignored:
            self.ignored.append(what)
            log.info("%s: left out %s", self.path, what)

    def count_unpacked(self, byte_count: int) -> None:
        """Count bytes that come out of a compressed or computed file; BadInput where they pass all measure."""
        self.unpacked += byte_count
        if self.unpacked > (most := self._most_unpacked):
            measure = f"{_MOST_UNPACKED} times what a table of this size may"
            raise BadInput(f"{self.path}: unpacks into more than {most:,} bytes, {measure}; write it as jsonl or csv")

    @cached_property
    def _most_unpacked(self) -> int:
        return max(_FREE_BYTES, _MOST_UNPACKED * self.path.stat().st_size)


def chunk_rows(
    source: Source, table: str, rows: Iterable[Row | BadRow], columns: Sequence[str] = ()
) -> Iterator[Chunk]:
    """Rows in chunks, cut by their count and by their bytes."""
    batch, numbers, bad_rows, names, byte_count = list[dict[str, Any]](), list[int](), list[BadRow](), set[str](), 0

    def chunk() -> Chunk:
        return Chunk(table, batch, numbers, bad_rows, columns)

    for row in rows:
        if isinstance(row, BadRow):
            bad_rows.append(row)
        else:
            number, values, value_bytes = row
            batch.append(values)
            numbers.append(number)
            byte_count += value_bytes + _CELL_BYTES * len(values)
            if not names.issuperset(values):
                names.update(values)
                if len(names) > WIDEST:
                    raise BadInput(f"{source.path}: more than {WIDEST:,} columns; is a name of a field data?")
        # as a frame, each row has a cell for each name
        if len(batch) + len(bad_rows) >= source.size or byte_count + 16 * len(names) * len(batch) > CHUNK_BYTES:
            yield chunk()
            batch, numbers, bad_rows, names, byte_count = [], [], [], set(), 0
    if batch or bad_rows:
        yield chunk()


def check_header(names: Sequence[str], place: str) -> None:
    """Refuse a header of too many columns, or with a name twice: of two columns a row would lose one."""
    if len(names) > WIDEST:
        raise BadInput(f"{place}: {len(names):,} columns, more than {WIDEST:,}; is it one row a line?")
    if repeated := [name for name, count in Counter(names).items() if name and count > 1]:
        raise BadInput(f"{place}: the column {repeated[0]!r:.60} is there twice; rename one")


def find_unnamed_value(source: Source, header: Sequence[str], values: Sequence[Any]) -> str | None:
    """What is wrong with the first cell that would be lost, since its column has no name; None if none would.

    pandas writes the index of a frame as a first column without a name: it is left out. So is an empty column.
    """
    for position, name in enumerate(header) if "" in header else ():
        value = values[position]
        if name or value in (None, ""):
            continue
        if position or not _INDEX.match(str(value)):
            return f"column {position + 1} has no name in the header, and here holds {value!r:.40}; name the column"
        source.ignore("the first column, which has no name: a running index, as pandas writes")
    return None


def list_names(names: Iterable[str]) -> str:
    """Names for a message: the first few of very many, each shortened."""
    ordered = sorted(map(str, names))
    more = f" and {len(ordered) - _LISTED:,} more" if len(ordered) > _LISTED else ""
    return ", ".join(f"{name:.60}" for name in ordered[:_LISTED]) + more
