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
    path: Path, read: Callable[[bool], Iterable[Item]], list_rows: Callable[[Item], Any]
) -> Iterator[Item]:
    """Take the apostrophes of `escape_formula` off the rows of items, in columns where no formula is without one.

    The first such cell makes the file be read again (`read(True)`), to see whether its column has a bare formula.
    """
    columns: set[str] | None = None
    count = 0
    for item in read(False):
        for row in list_rows(item):
            for name in [name for name, cell in row.items() if cell and cell[0] == "'" and _ESCAPED.match(cell)]:
                if columns is None:
                    kinds = {kind for again in read(True) for row in list_rows(again) for kind in _list_kinds(row)}
                    columns = {column for column, is_bare in kinds if (column, True) not in kinds}
                if name in columns:
                    row[name] = row[name][1:]
                    count += 1
        yield item
    if count:
        left_out.record_note(f"{path}: removed the apostrophe that csv has before a formula character: {count:,} cells")


def _list_kinds(row: dict[str, str | None]) -> list[tuple[str, bool]]:
    formulas = [(n, cell) for n, cell in row.items() if cell and _FORMULA.match(cell) and not _NUMBER.match(cell)]
    return [(name, cell[0] != "'") for name, cell in formulas]
