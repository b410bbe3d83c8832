"""The result of every reader of a data set, and the steps that they share: clean the texts, drop with a reason."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.collect.sites.markup import unescape
from pipeline.errors import BadInput
from pipeline.reasons import choose_first, split_off

COLUMNS = ("item_id", "lang", "text", "label", "explicit", "prompt")


class Read(NamedTuple):
    """The rows of a data set: those of `sentences` and `dropped` together are the rows read."""

    sentences: pl.DataFrame  # item_id, lang, text, label, explicit, prompt
    dropped: pl.DataFrame  # reason, row_key (the item_id)


class Source(NamedTuple):
    """A data set of Table 6."""

    read: Callable[[Path], Read]  # a file, or the folder of the published files
    prompt: str | None  # prompt file that asks for the explicit form; None if labels have it
    table6: int  # pairs of Table 6
    writer: str  # "labels", or the model that wrote the explicit forms


def clean(column: str, *, entities: bool = False) -> pl.Expr:
    """Strip a text and make its blanks single; of tweets and posts also resolve HTML entities."""
    text = pl.col(column).map_elements(unescape, return_dtype=pl.String) if entities else pl.col(column)
    return text.str.replace_all(r"\s+", " ").str.strip_chars()


def is_filled(column: str) -> pl.Expr:
    """Test whether a text is present and not blank."""
    return (pl.col(column).str.strip_chars().str.len_chars() > 0).fill_null(value=False)


def refuse(rows: pl.DataFrame, bad: pl.Expr, field: str, expected: str, name: str = "") -> None:
    """Raise BadInput with file, line and field, or its name in the file, of the first bad row, if there is one."""
    for file, line, value in rows.filter(bad).select("file", "line", field).head(1).iter_rows():
        raise BadInput(f"{file}, line {line}: field {name or field!r} should be {expected} but is {value!r:.60}")


def parse_numbers(
    rows: pl.DataFrame, column: str, low: float = -math.inf, high: float = math.inf, name: str = ""
) -> pl.DataFrame:
    """Parse a column as numbers, null where blank; BadInput for a value that is no number from `low` to `high`."""
    value = pl.col(column).str.strip_chars().cast(pl.Float64, strict=False)
    is_in_range = value.is_between(low, high).fill_null(value=False)
    expected = f"a number from {low:g} to {high:g}" if math.isfinite(low) else "a number"
    refuse(rows, is_filled(column) & ~is_in_range, column, expected, name)
    return rows.with_columns(value.alias(column))


def map_labels(rows: pl.DataFrame, column: str, labels: dict[str, str]) -> pl.Expr:
    """Map values to their labels, null where blank; BadInput for a value that is not among them."""
    value = pl.col(column).str.strip_chars().str.to_lowercase()
    label_by_name = {name.lower(): label for name, label in labels.items()}
    refuse(rows, is_filled(column) & ~value.is_in(list(label_by_name)), column, f"one of {', '.join(labels)}")
    return value.replace_strict(label_by_name, default=None, return_dtype=pl.String)


def finish(
    rows: pl.DataFrame, prompt: str | pl.Expr | None = None, *, lang: str | pl.Expr = "en", entities: bool = False
) -> Read:
    """Separate sentences and dropped rows: rows with file, line, item_id, text, label, perhaps explicit and reason.

    A row is dropped for its reason; else as `blank_text`, `no_label`, or `same_text` if its explicit form is the same
    text. `prompt` stays on implicit sentences without an explicit form.
    """
    refuse(rows, ~is_filled("item_id"), "item_id", "an id")
    refuse(rows, ~pl.col("item_id").is_first_distinct(), "item_id", "one that no other row has")
    absent = [pl.lit(None, pl.String).alias(name) for name in ("explicit", "reason") if name not in rows.columns]
    rows = rows.with_columns(*absent).with_columns(
        clean(name, entities=entities).replace("", None) for name in ("text", "explicit")
    )
    faults = {
        "blank_text": pl.col("text").is_null(),
        "no_label": pl.col("label").is_null(),
        "same_text": pl.col("explicit") == pl.col("text"),
    }
    needs_prompt = (pl.col("label") == "implicit") & pl.col("explicit").is_null()
    rows = rows.with_columns(
        lang=lang if isinstance(lang, pl.Expr) else pl.lit(lang),
        prompt=pl.when(needs_prompt).then(prompt if isinstance(prompt, pl.Expr) else pl.lit(prompt, pl.String)),
    )
    reason = pl.coalesce("reason", choose_first(faults))
    sentences, dropped = split_off(rows, reason, ["reason", pl.col("item_id").alias("row_key")])
    return Read(sentences.select(COLUMNS), dropped)
