"""Text as cells of csv that no spreadsheet runs as a formula, and back."""

import re

FORMULA = r"^'*[=+\-@\t\r＝＋－＠]"
"""How a cell begins that would be run, or becomes one without its apostrophes; some locales take full-width signs."""

_FORMULA = re.compile(FORMULA)
_ESCAPED = re.compile(FORMULA.replace("*", "+", 1))


def escape_formula(text: str) -> str:
    """The text as a csv cell that no spreadsheet evaluates; `unescape_formula` is its inverse."""
    return f"'{text}" if _FORMULA.match(text) else text  # one more, so that a text that begins with one comes back


def unescape_formula(cell: str) -> str:
    """The text of a csv cell, with the apostrophe of `escape_formula` taken off."""
    return cell[1:] if _ESCAPED.match(cell) else cell
