"""Cleaning that keeps what carries tone: full-width punctuation, emoji, [doge], repeated letters, script.

NFC rather than NFKC, which would turn ， into a comma and ① into 1. Only digits and Latin letters are folded to normal
width, entities decoded, invisible characters taken out (but U+200D, which holds emoji together), blanks collapsed.
"""

import hashlib
import html
from collections import Counter

import polars as pl

from pipeline.collect.anonymise import FULL, HALF, scrub_column
from pipeline.text.language import language

MAX_CHARACTERS = 10_000  # longer "comments" are dumps, not comments

# zero-width, directional marks and controls other than blanks; bidi overrides can make a page read backwards
_INVISIBLE = (
    r"[\x{200B}\x{200C}\x{200E}\x{200F}\x{202A}-\x{202E}\x{2060}-\x{2069}\x{FEFF}\x{00AD}"
    r"\x00-\x08\x0B\x0C\x0E-\x1F\x7F]"
)
_ONLY_TOKENS = r"^(\s|\[(URL|EMAIL|ID|PHONE|HANDLE|MENTION)\])*$"


def text_hash(texts: pl.Series) -> pl.Series:
    """128-bit BLAKE2 of each text, as 32 hexadecimal digits."""
    return pl.Series(
        texts.name, [hashlib.blake2b(t.encode(), digest_size=16).hexdigest() for t in texts], dtype=pl.String
    )


def normalised(texts: pl.Series, counts: Counter[str] | None = None) -> pl.Series:
    """Each text normalised and scrubbed of private particulars; nulls stay null."""
    texts = _plain(texts)
    while len(rows := texts.str.contains("&", literal=True).fill_null(value=False).arg_true()):
        before = texts.gather(rows)  # an entity may stand for an entity, or for what _plain takes out
        after = _plain(pl.Series(texts.name, [html.unescape(text) for text in before], dtype=pl.String))
        if after.equals(before):
            break
        texts = texts.scatter(rows, after)
    return scrub_column(texts, counts).str.strip_chars()


def _plain(texts: pl.Series) -> pl.Series:
    """Invisible characters out, digits and letters of normal width, then NFC, which can only now join what belongs."""
    name = texts.name
    return texts.to_frame().select(
        pl.col(name)
        .str.replace_all(_INVISIBLE, "")
        .str.replace_many(list(FULL), list(HALF))
        .str.normalize("NFC")
        .str.replace_all(r"\s+", " ")
        .str.strip_chars()
    )[name]


def clean(comments: pl.DataFrame, counts: Counter[str] | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Comments with `text` and `context` cleaned, `lang` and `text_hash` added; and the dropped (reason, row_key)."""
    cleaned = comments.with_columns(
        normalised(comments["text"].fill_null(""), counts), normalised(comments["context"], counts)
    ).with_columns(
        lang=language(),
        reason=pl.when(pl.col("text") == "")
        .then(pl.lit("empty"))
        .when(pl.col("text").str.contains(_ONLY_TOKENS))
        .then(pl.lit("only_placeholders"))
        .when(pl.col("text").str.len_chars() > MAX_CHARACTERS)
        .then(pl.lit("too_long")),
    )
    kept = cleaned.filter(pl.col("reason").is_null()).drop("reason")
    dropped = cleaned.filter(pl.col("reason").is_not_null()).select("reason", "row_key")
    return kept.with_columns(text_hash(kept["text"]).alias("text_hash")), dropped
