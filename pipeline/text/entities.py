"""HTML entities to characters, in time that grows with the text alone."""

import html
import re

ROUNDS = 20  # of entities inside entities; pages that were escaped again and again have two or three
_LEADING_ZEROS = re.compile(r"&#0+(?=[0-9])")
_NO_CHARACTER = re.compile(r"&#[0-9]{8,}")  # Python refuses to read a number of more than 4,300 digits


def shorten_numbers(text: str) -> str:
    """Numeric entities of any length as ones that `html` reads; what is no character stays none."""
    return _NO_CHARACTER.sub("&#9999999", _LEADING_ZEROS.sub("&#", text)) if "&#" in text else text


def unescape(text: str) -> str:
    """The text with its entities decoded once."""
    return html.unescape(shorten_numbers(text))
