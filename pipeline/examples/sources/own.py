"""Sentences that someone brings, beside the data sets of Table 6."""

from pathlib import Path

import polars as pl

from pipeline.collect.privacy.anonymise import scrub_ids
from pipeline.collect.privacy.particulars import scrub_column
from pipeline.examples.sources.files import find, table
from pipeline.examples.sources.layout import Read, choice, filled, finish, refuse
from pipeline.text.language import detect_language

LABELS = {name: name for name in ("implicit", "explicit", "neither")}


def own(path: Path) -> Read:
    """A csv, tsv, jsonl or parquet file with a column `text`, and as one likes explicit, label, lang, prompt, item_id.

    Where blank or absent, label is implicit, lang what the script of the text says, item_id `<file>:<row>`.
    """
    wanted = ("explicit", "label", "lang", "prompt")
    optional = {name: (name,) for name in wanted} | {"id": ("item_id",)}
    rows = table(find(path, "*.csv", "*.tsv", "*.jsonl", "*.parquet"), {"text": ("text",)}, optional)
    label = choice(rows, "label", LABELS).fill_null("implicit")
    fits = pl.col("lang").str.strip_chars().str.contains("^[a-z]{2,3}$")
    refuse(rows, filled("lang") & ~fits, "lang", "two or three small letters, such as en")
    given = {name: pl.when(filled(name)).then(pl.col(name).str.strip_chars()) for name in ("id", "lang", "prompt")}
    rows = rows.with_columns(label=label, item_id=pl.coalesce(given["id"], "item_id"))
    rows = rows.with_columns(
        *(scrub_column(rows[name]) for name in ("text", "explicit", "prompt")),
        scrub_ids(rows["item_id"], "own", None),
    )
    return finish(rows, given["prompt"], lang=pl.coalesce(given["lang"], detect_language("text")))
