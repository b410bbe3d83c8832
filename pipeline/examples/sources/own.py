"""A user's own sentences."""

from pathlib import Path

import polars as pl

from pipeline.collect.privacy.anonymise import scrub_ids
from pipeline.collect.privacy.particulars import scrub_column
from pipeline.examples.sources.files import find_files, read_table
from pipeline.examples.sources.layout import Read, finish, is_filled, map_labels, refuse
from pipeline.text.language import detect_language


def read_own(path: Path) -> Read:
    """Read a csv, tsv, jsonl or parquet file with a column `text`; others: explicit, label, lang, prompt, item_id.

    By default the label is implicit, the script of the text decides lang, and item_id is `<file>:<row>`.
    """
    names = ("explicit", "label", "lang", "prompt")
    optional = {name: (name,) for name in names} | {"id": ("item_id",)}
    rows = read_table(find_files(path, "*.csv", "*.tsv", "*.jsonl", "*.parquet"), {"text": ("text",)}, optional)
    labels = {name: name for name in ("implicit", "explicit", "neither")}
    label = map_labels(rows, "label", labels).fill_null("implicit")
    is_code = pl.col("lang").str.strip_chars().str.contains("^[a-z]{2,3}$")
    refuse(rows, is_filled("lang") & ~is_code, "lang", "two or three small letters, such as en")
    fields = {name: pl.when(is_filled(name)).then(pl.col(name).str.strip_chars()) for name in ("id", "lang", "prompt")}
    rows = rows.with_columns(label=label, item_id=pl.coalesce(fields["id"], "item_id"))
    rows = rows.with_columns(
        *(scrub_column(rows[name]) for name in ("text", "explicit", "prompt")), scrub_ids(rows["item_id"], "own", None)
    )
    return finish(rows, fields["prompt"], lang=pl.coalesce(fields["lang"], detect_language("text")))
