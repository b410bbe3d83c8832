"""Text as cells of csv that no spreadsheet runs as a formula, and back."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pipeline import left_out

FORMULA = r"^'*[=+\-@\t\r＝＋－＠]"
"""How a cell begins that would be run, or becomes one without its apostrophes; some locales take full-width signs."""

NUMBER = r"^[+-]?[0-9]+([.,][0-9]+)?$"

_FORMULA = re.compile(FORMULA)
_NUMBER = re.compile(NUMBER)

Item = TypeVar("Item")  # of a file, with some of its rows
_ESCAPED = re.compile(FORMULA.replace("*", "+", 1))


def escape_formula(text: str) -> str:
    """The text as a csv cell that no spreadsheet evaluates; `unescape_formula` is its inverse."""
    return f"'{text}" if _FORMULA.match(text) else text  # one more, so that a text that begins with one comes back


def unescape_formula(cell: str) -> str:
    """The text of a csv cell, with the apostrophe of `escape_formula` taken off."""
    return cell[1:] if _ESCAPED.match(cell) else cell


def restore_texts(
    path: Path, items: Iterable[Item], read_again: Callable[[], Iterable[Item]], list_rows: Callable[[Item], Any]
) -> Iterator[Item]:
    """Take the apostrophes of `escape_formula` off the rows of items, in columns where no formula is without one.

    The first such cell makes the file be read a second time, to see whether its column has a bare formula.
    """
    columns: set[str] | None = None
    count = 0
    for item in items:
        for row in list_rows(item):
            for name, cell in row.items():
                if not cell or (text := unescape_formula(cell)) == cell:
                    continue
                if columns is None:
                    columns = _find_defused(row for again in read_again() for row in list_rows(again))
                if name in columns:
                    row[name] = text
                    count += 1
        yield item
    if count:
        left_out.record_note(f"{path}: removed the apostrophe that csv has before a formula character: {count:,} cells")


def _find_defused(rows: Iterable[dict[str, str | None]]) -> set[str]:
    names: dict[bool, set[str]] = {True: set(), False: set()}  # by whether formulas have an apostrophe
    for row in rows:
        for name, cell in row.items():
            if cell and _FORMULA.match(cell) and not _NUMBER.match(cell):
                names[_ESCAPED.match(cell) is not None].add(name)
    return names[True] - names[False]
