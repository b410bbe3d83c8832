"""The thirteen data sets that ImpScore was trained on (section 4, table 6), and a user's own sentences.

In: files as published. Out: rows of `sentences` without `source`, and dropped rows with a reason.
"""

from pathlib import Path

import polars as pl

from pipeline.collect.privacy.anonymise import scrub_ids
from pipeline.collect.privacy.particulars import scrub_column
from pipeline.errors import check_name
from pipeline.examples.sources import published
from pipeline.examples.sources.files import Source, find_files, finish, is_filled, map_labels, read_table, refuse
from pipeline.examples.sources.published import LUDWIG_ALTERNATIVE
from pipeline.reasons import Read
from pipeline.text.language import detect_language

__all__ = ["LUDWIG_ALTERNATIVE", "READERS", "SOURCES", "Read", "Source", "read", "read_own"]
LABELS = "labels"
GPT35 = "gpt-3.5-turbo-0125"  # the footnote of Table 6
GPT4 = "gpt-4o"

SOURCES: dict[str, Source] = {  # by name, in the order of Table 6
    "toxigen": Source(published.read_toxigen, published.HATE_PROMPT, 2_648, GPT35),
    "latent_hatred": Source(published.read_latent_hatred, None, 12_036, LABELS),
    "dghsd": Source(published.read_dghsd, published.HATE_PROMPT, 3_415, GPT35),
    "ishate": Source(published.read_ishate, published.HATE_PROMPT, 25_193, GPT35),
    "sbic": Source(published.read_sbic, None, 8_316, LABELS),
    "implicatures": Source(published.read_implicatures, published.DIALOGUE_PROMPT, 955, GPT35),
    "imppres": Source(published.read_imppres, None, 300, LABELS),
    "ludwig": Source(published.read_ludwig, None, 718, GPT35),  # see published.LUDWIG_ALTERNATIVE
    "semeval_irony": Source(published.read_semeval_irony, "irony_en", 1_316, GPT4),
    "absa": Source(published.read_absa, "review_en", 933, GPT35),
    "snarks": Source(published.read_snarks, "sarcasm_en", 180, GPT4),
    "r3": Source(published.read_r3, None, 150, LABELS),  # "Original" there, but the text speaks of prompting (IMP-15)
    "pdtb": Source(published.read_pdtb, None, 130, LABELS),
}
READERS = {name: source.read for name, source in SOURCES.items()} | {"davidson": published.read_davidson}
"""Of these and of Davidson, whose implicitness is measured (section 7.1), and of which no pair is built."""


def read(name: str, path: Path, keep: pl.Expr | None = None) -> Read:
    """Read the sentences of one of the `READERS` from its published file or folder.

    Sentences that do not fulfil `keep`, a condition on the columns of the result, are dropped as `filtered`: for pairs
    that differ in entailment but not in implicitness (IMP-18). BadInput for an unknown name, absent files, or a fault
    in the layout, with file, line and field.
    """
    return _check(name, READERS[check_name("source", name, READERS)](path), keep)


def read_own(path: Path, keep: pl.Expr | None = None) -> Read:
    """Read a csv, tsv, jsonl or parquet file with a column `text`; others: explicit, label, lang, prompt, item_id.

    By default the label is implicit, the script of the text decides lang, and item_id is `<file>:<row>`. `keep` is as
    in `read`.
    """
    optional = {name: (name,) for name in ("explicit", "label", "lang", "prompt")} | {"id": ("item_id",)}
    rows = read_table(find_files(path, "*.csv", "*.tsv", "*.jsonl", "*.parquet"), {"text": ("text",)}, optional)
    label = map_labels(rows, "label", {name: name for name in ("implicit", "explicit", "neither")})
    is_code = pl.col("lang").str.strip_chars().str.contains("^[a-z]{2,3}$")
    refuse(rows, is_filled("lang") & ~is_code, "lang", "two or three small letters, such as en")
    fields = {name: pl.when(is_filled(name)).then(pl.col(name).str.strip_chars()) for name in ("id", "lang", "prompt")}
    rows = rows.with_columns(label=label.fill_null("implicit"), item_id=pl.coalesce(fields["id"], "item_id"))
    scrubbed = (scrub_column(rows[name]) for name in ("text", "explicit", "prompt"))
    rows = rows.with_columns(*scrubbed, scrub_ids(rows["item_id"], "own", None))
    language = pl.coalesce(fields["lang"], detect_language("text"))
    return _check("own", finish(rows, fields["prompt"], lang=language), keep)


def _check(name: str, rows: Read, keep: pl.Expr | None) -> Read:
    from pipeline.tables import Sentences

    Sentences.validate(rows.rows.with_columns(source=pl.lit(name)))
    if keep is None:
        return rows
    is_kept = keep.fill_null(value=False)
    dropped = rows.rows.filter(~is_kept).select(reason=pl.lit("filtered"), row_key="item_id")
    return Read(rows.rows.filter(is_kept), pl.concat([rows.dropped, dropped]))
