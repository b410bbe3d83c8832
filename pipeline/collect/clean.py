"""Cleaning that keeps what carries tone: full-width punctuation, emoji, [doge], repeated letters, script.

NFC, as NFKC would turn ， into a comma; U+200D stays in emoji, and U+200C in scripts that write words with it.
"""

from collections import Counter

import polars as pl

from pipeline.collect.privacy.particulars import TOKENS, scrub_column
from pipeline.collect.sites.markup import ROUNDS, unescape
from pipeline.io import hashes
from pipeline.io.visible import BLANK
from pipeline.reasons import choose_first, split_off
from pipeline.text.language import detect_language

MAX_CHARACTERS = 10_000  # longer "comments" are dumps, not comments
# zero-width, directional marks and controls other than blanks; bidi overrides can make a page read backwards
_INVISIBLE = (
    r"[\x{200B}\x{200E}\x{200F}\x{202A}-\x{202E}\x{2060}-\x{2069}\x{FEFF}\x{00AD}"
    r"\x00-\x08\x0B\x0C\x0E-\x1F\x7F]"
)
# Persian and the scripts of India write words with a non-joiner; elsewhere it hides what stands around it
_JOINED = (
    r"([\p{Arabic}\p{Syriac}\p{Mongolian}\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Oriya}\p{Tamil}"
    r"\p{Telugu}\p{Kannada}\p{Malayalam}\p{Sinhala}])\x{200C}"
)
_ONLY_TOKENS = rf"^(\s|\[({'|'.join(TOKENS)})\])*$"
_HALF = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FULL = "".join(chr(ord(letter) + 0xFEE0) for letter in _HALF)  # their full-width twins


def hash_text(texts: pl.Series) -> pl.Series:
    """Hash each text."""
    return pl.Series(texts.name, [*map(hashes.hash_text, texts.to_list())], dtype=pl.String)


def normalise(texts: pl.Series, counts: Counter[str] | None = None) -> pl.Series:
    """Each text normalised and scrubbed of private particulars; nulls stay null."""
    return scrub_column(_decode(_normalise(texts)), counts).str.strip_chars()


def _decode(texts: pl.Series) -> pl.Series:
    """Texts without entities. One may stand for another, or for what `_normalise` takes out: decode until none is left.

    Each round costs the length of the text, and a text can ask for as many rounds as it has letters. What is still
    nested after `ROUNDS` is no page that was escaped twice: its ampersands become full-width ones.
    """
    rows = texts.str.contains("&", literal=True).fill_null(value=False).arg_true()
    for _ in range(ROUNDS):
        before = texts.gather(rows)
        after = _normalise(pl.Series(texts.name, [unescape(text) for text in before], dtype=pl.String))
        changed = (after != before).arg_true()
        if not len(changed):
            return texts
        rows = rows.gather(changed)
        texts = texts.scatter(rows, after.gather(changed))
    return texts.scatter(rows, _normalise(texts.gather(rows).str.replace_all("&", "＆", literal=True)))


def _normalise(texts: pl.Series) -> pl.Series:
    """Invisible characters out, digits and letters of normal width, then NFC, which can only now join what belongs."""
    visible = texts.str.replace_all(_INVISIBLE, "")
    if texts.str.contains("\u200c", literal=True).any():
        visible = visible.str.replace_all(_JOINED, "$1\0").str.replace_all("\u200c", "", literal=True)
        visible = visible.str.replace_all("\0", "\u200c", literal=True)
    narrow = visible.str.replace_many(list(_FULL), list(_HALF)).str.normalize("NFC")
    return narrow.str.replace_all(r"\s+", " ").str.strip_chars()


def clean(comments: pl.DataFrame, counts: Counter[str] | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Comments with `text` and `context` cleaned, `lang` and `text_hash` added; and the dropped (reason, row_key)."""
    texts = normalise(comments["text"].fill_null(""), counts), normalise(comments["context"], counts)
    cleaned = comments.with_columns(*texts).with_columns(lang=detect_language())
    faults = {
        "empty": pl.col("text").str.contains(BLANK),
        "only_placeholders": pl.col("text").str.contains(_ONLY_TOKENS),
        "too_long": pl.col("text").str.len_chars() > MAX_CHARACTERS,
    }
    rows, dropped = split_off(cleaned, choose_first(faults), ["reason", "row_key"])
    return rows.with_columns(hash_text(rows["text"]).alias("text_hash")), dropped
