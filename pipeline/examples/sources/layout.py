"""What every reader of a data set gives, and the last steps they share: clean the texts, drop with a reason."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.text.entities import unescape

COLUMNS = ("item_id", "lang", "text", "label", "explicit", "prompt")


class Read(NamedTuple):
    """What a data set holds; rows of `sentences` and `dropped` together are the rows read."""

    sentences: pl.DataFrame  # item_id, lang, text, label, explicit, prompt
    dropped: pl.DataFrame  # reason, row_key (what item_id would have been)


class Source(NamedTuple):
    """A data set of Table 6."""

    read: Callable[[Path], Read]  # a file, or the folder of the published files
    prompt: str | None  # prompt file that asks for the explicit form; None where labels give it
    table6: int  # pairs of Table 6
    how: str  # "labels", or the model that wrote the explicit forms


def clean(column: str, *, entities: bool = False) -> pl.Expr:
    """A text without blank ends and with single blanks; of tweets and posts also without HTML entities."""
    text = pl.col(column)
    if entities:
        text = text.map_elements(unescape, return_dtype=pl.String)
    return text.str.replace_all(r"\s+", " ").str.strip_chars()


def is_filled(column: str) -> pl.Expr:
    """Whether a text is there and not blank."""
    return (pl.col(column).str.strip_chars().str.len_chars() > 0).fill_null(value=False)


def refuse(rows: pl.DataFrame, bad: pl.Expr, field: str, expected: str) -> None:
    """BadInput that names the first bad row's file, line and field, if there is one."""
    for row in rows.filter(bad).head(1).iter_rows(named=True):
        raise BadInput(
            f"{row['file']}, line {row['line']}: field {field!r} should be {expected} but is {row[field]!r:.60}"
        )


def parse_numbers(rows: pl.DataFrame, column: str, low: float, high: float) -> pl.DataFrame:
    """The column as numbers, null where blank; BadInput for what is no number from `low` to `high`."""
    value = pl.col(column).str.strip_chars().cast(pl.Float64, strict=False)
    is_in_range = value.is_between(low, high).fill_null(value=False)
    refuse(rows, is_filled(column) & ~is_in_range, column, f"a number from {low:g} to {high:g}")
    return rows.with_columns(value.alias(column))


def map_labels(rows: pl.DataFrame, column: str, labels: dict[str, str]) -> pl.Expr:
    """The label that a value stands for, null where blank; BadInput for a value that is not among them."""
    value = pl.col(column).str.strip_chars().str.to_lowercase()
    label_by_name = {name.lower(): label for name, label in labels.items()}
    refuse(rows, is_filled(column) & ~value.is_in(list(label_by_name)), column, f"one of {', '.join(labels)}")
    return value.replace_strict(label_by_name, default=None, return_dtype=pl.String)


def finish(
    rows: pl.DataFrame, prompt: str | pl.Expr | None = None, *, lang: str | pl.Expr = "en", entities: bool = False
) -> Read:
    """Sentences and the dropped, of rows that have file, line, item_id, text, label and may have explicit, reason.

    A row is dropped for the reason it has; else as `blank_text`, `no_label`, or `same_text` where its explicit form
    says the same words. `prompt` stays on implicit sentences that have no explicit form.
    """
    refuse(rows, ~is_filled("item_id"), "item_id", "an id")
    refuse(rows, ~pl.col("item_id").is_first_distinct(), "item_id", "one that no other row has")
    absent = [pl.lit(None, pl.String).alias(name) for name in ("explicit", "reason") if name not in rows.columns]
    rows = rows.with_columns(*absent).with_columns(
        clean(name, entities=entities).replace("", None) for name in ("text", "explicit")
    )
    reason = (
        pl.when(pl.col("reason").is_not_null()).then("reason")
        .when(pl.col("text").is_null()).then(pl.lit("blank_text"))
        .when(pl.col("label").is_null()).then(pl.lit("no_label"))
        .when(pl.col("explicit") == pl.col("text")).then(pl.lit("same_text"))
    )  # fmt: skip
    needs_prompt = (pl.col("label") == "implicit") & pl.col("explicit").is_null()
    rows = rows.with_columns(
        reason=reason,
        lang=lang if isinstance(lang, pl.Expr) else pl.lit(lang),
        prompt=pl.when(needs_prompt).then(prompt if isinstance(prompt, pl.Expr) else pl.lit(prompt, pl.String)),
    )
    return Read(
        rows.filter(pl.col("reason").is_null()).select(COLUMNS),
        rows.filter(pl.col("reason").is_not_null()).select("reason", row_key="item_id"),
    )


def filter_sentences(source_rows: Read, keep: pl.Expr) -> Read:
    """Only the sentences for which the expression holds; the others are dropped as `filtered` (IMP-18)."""
    holds = keep.fill_null(value=False)
    dropped = source_rows.sentences.filter(~holds).select(reason=pl.lit("filtered"), row_key="item_id")
    return Read(source_rows.sentences.filter(holds), pl.concat([source_rows.dropped, dropped]))
