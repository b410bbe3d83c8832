"""Text as cells of csv that no spreadsheet runs as a formula, and back."""

import re

FORMULA = r"^'*[=+\-@\t\r＝＋－＠]"
"""How a cell begins that would be run, or becomes one without its apostrophes; some locales take full-width signs."""

_FORMULA = re.compile(FORMULA)
_DEFUSED = re.compile(FORMULA.replace("*", "+", 1))


def defused(text: str) -> str:
    """The text as a csv cell that no spreadsheet evaluates; `plain` is its inverse."""
    return f"'{text}" if _FORMULA.match(text) else text  # one more, so that a text that begins with one comes back


def plain(cell: str) -> str:
    """The text of a csv cell, with the apostrophe of `defused` taken off."""
    return cell[1:] if _DEFUSED.match(cell) else cell
