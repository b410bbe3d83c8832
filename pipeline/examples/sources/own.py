"""Sentences that someone brings, beside the data sets of Table 6."""

from pathlib import Path

import polars as pl

from pipeline.collect.privacy.anonymise import scrub_ids
from pipeline.collect.privacy.particulars import scrub_column
from pipeline.examples.sources.files import find_files, read_table
from pipeline.examples.sources.layout import Read, finish, is_filled, map_labels, refuse
from pipeline.text.language import detect_language

LABELS = {name: name for name in ("implicit", "explicit", "neither")}


def read_own(path: Path) -> Read:
    """A csv, tsv, jsonl or parquet file with a column `text`, and as one likes explicit, label, lang, prompt, item_id.

    Where blank or absent, label is implicit, lang what the script of the text says, item_id `<file>:<row>`.
    """
    names = ("explicit", "label", "lang", "prompt")
    optional = {name: (name,) for name in names} | {"id": ("item_id",)}
    rows = read_table(find_files(path, "*.csv", "*.tsv", "*.jsonl", "*.parquet"), {"text": ("text",)}, optional)
    label = map_labels(rows, "label", LABELS).fill_null("implicit")
    is_code = pl.col("lang").str.strip_chars().str.contains("^[a-z]{2,3}$")
    refuse(rows, is_filled("lang") & ~is_code, "lang", "two or three small letters, such as en")
    fields = {name: pl.when(is_filled(name)).then(pl.col(name).str.strip_chars()) for name in ("id", "lang", "prompt")}
    rows = rows.with_columns(label=label, item_id=pl.coalesce(fields["id"], "item_id"))
    rows = rows.with_columns(
        *(scrub_column(rows[name]) for name in ("text", "explicit", "prompt")), scrub_ids(rows["item_id"], "own", None)
    )
    return finish(rows, fields["prompt"], lang=pl.coalesce(fields["lang"], detect_language("text")))
