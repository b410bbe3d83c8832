"""Invisible characters as text: what reverses a line, hides in a word, or moves a terminal's cursor.

Tables keep a text as it is; what shows one to people shows these as ⟨U+202E⟩.
"""

import re

# controls but tab and line ends; soft hyphen; zero-width ones but the joiner of emoji; marks and overrides of
# direction; separators of lines; fillers like blanks; tags, which spell ASCII unseen; halves of surrogate pairs
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]|\r(?!\n)"
)
# a text of these alone shows nothing: blanks, controls, formats, fillers, variation selectors (polars' syntax)
BLANK = (
    r"^[\s\p{Z}\p{Cc}\p{Cf}\x{34f}\x{115f}\x{1160}\x{17b4}\x{17b5}\x{180b}-\x{180f}\x{2800}\x{3164}\x{fe00}-\x{fe0f}"
    r"\x{ffa0}\x{e0100}-\x{e01ef}]*$"
)
_MARK = re.compile("[!-~\u4e00-\u9fff]")  # of most texts; to ask polars about one text takes 50 µs
_ESCAPED = re.compile(r"⟨U\+([0-9A-F]{4,6})⟩")


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing, by the pattern `BLANK`."""
    import polars as pl

    return not _MARK.search(text) and bool(pl.select(pl.lit(text).str.contains(BLANK)).item())


def escape_invisible(text: str) -> str:
    """The text with its invisible characters shown as ⟨U+202E⟩; one that has none comes back as it is."""
    return _INVISIBLE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def unescape_invisible(text: str) -> str:
    """The inverse of `escape_invisible`; what it shows of other characters stays."""
    codes = {match[0]: int(match[1], 16) for match in _ESCAPED.finditer(text)}
    characters = {
        escape: chr(code) for escape, code in codes.items() if code < 0x110000 and _INVISIBLE.match(chr(code))
    }
    return _ESCAPED.sub(lambda match: characters.get(match[0], match[0]), text)
