"""A text as its reader sees it: without the characters that hide a number or a name from a pattern.

Patterns look at the plain form; what they match is replaced in the original.
"""

import html
import re
import unicodedata
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

# letters, signs and blanks that stand for themselves: a text of these alone is its own plain form
_PLAIN = (
    "\t\n\r\x20-\x7e·–—‘’“”…\u3001-\u301f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
    "\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff5e"
)
_ODD = re.compile(f"[^{_PLAIN}]")
_MARKUP = re.compile(
    r"<(?:/?(?:a|b|em|font|i|mark|s|span|strong|u)\b)[^<>]*>|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,31});?|"
    f"[^{_PLAIN}]"
)
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters without a shape
_LOOK_ALIKE = str.maketrans(  # of Cyrillic, Greek and Latin
    "аеорсухіјѕһԁԛԝвкмнтАВЕКМНОРСТУХІЈЅԚԜοαρνικΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɡƖ\u2010\u2011\u2012\u2212⁺",
    "aeopcyxijshdqwbkmhtABEKMHOPCTYXIJSQWoapvikABEZHIKMNOPTYXigl----+",
)
for _first, _letter in ((0x1F110, "A"), (0x1F150, "A"), (0x1F170, "A"), (0x249C, "a")):  # squared, circled, in brackets
    _LOOK_ALIKE |= {_first + i: ord(_letter) + i for i in range(26)}


class Form(NamedTuple):
    """The plain form and, for each of its characters, where it begins and ends in the original; None: the same."""

    text: str
    begins: "array[int] | None" = None
    ends: "array[int] | None" = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the original that a part of the plain form stands for, with the invisible that follows it."""
        if self.begins is None or self.ends is None:
            return start, end
        return self.begins[start], self.ends[end - 1]


def reveal(text: str, *, markup: bool = False) -> Form:
    """The text as its reader sees it; with `markup` also without inline tags, and with entities decoded."""
    is_markup = markup and ("&" in text or "<" in text)
    if not is_markup and not _ODD.search(text):
        return Form(text)
    parts: list[str] = []
    begins, ends, place = array("q"), array("q"), 0
    for start, end, character in _list_pieces(text, _MARKUP if is_markup else _ODD):
        parts += [text[place:start], character]
        begins.extend(range(place, start))
        ends.extend(range(place + 1, start + 1))
        if character:
            begins.append(start)
            ends.append(end)
        elif ends and end - start == 1 and ends[-1] == start:
            ends[-1] = end
        place = end
    begins.extend(range(place, len(text)))
    ends.extend(range(place + 1, len(text) + 1))
    plain = "".join([*parts, text[place:]])
    return Form(text) if plain == text else Form(plain, begins, ends)


def _list_pieces(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int, str]]:
    for piece in pattern.finditer(text):
        start, end = piece.span()
        value = html.unescape(piece[0]) if piece[0][0] == "&" else piece[0]
        if len(value) < 2:  # none for an entity of a character that HTML forbids
            yield start, end, read_character(value)
        elif value[0] == "<":
            yield start, end, ""
        else:  # no entity after all
            yield from ((start + i, start + i + 1, read_character(c)) for i, c in enumerate(piece[0]))


@lru_cache(maxsize=1 << 16)
def read_character(character: str) -> str:
    """The plain character that a reader takes this one for; empty for what is not visible."""
    if not _ODD.match(character):
        return character
    if unicodedata.category(character) in ("Cc", "Cf", "Mn", "Me", "Cs") or character in _FILLERS:
        return ""
    if (digit := unicodedata.digit(character, None)) is not None:
        return str(digit)
    composed = unicodedata.normalize("NFKC", character)
    return (composed if len(composed) == 1 else character).translate(_LOOK_ALIKE)
