"""Read comments in context with a label, for subtext recognition (CSD-01, CSD-02), from several layouts.

All readers return item_id, text, context (may be empty), label (yes and no are `1` and `0`), topic, split (null where
none is given). Rows without text or label, and duplicates in the same context, are left out.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from pipeline import left_out
from pipeline.errors import BadInput
from pipeline.examples.sources.files import find_files, read_table
from pipeline.examples.sources.layout import clean, is_filled, map_labels, refuse
from pipeline.examples.splits import NAMES, SEED, find_middles, find_parts
from pipeline.io.fields import check_field
from pipeline.io.lines import parse_value, read_text
from pipeline.reasons import choose_first, split_off

COLUMNS = ("item_id", "text", "context", "label", "topic", "split")
SHARES = (0.6, 0.2, 0.2)  # of train, validation and test
_SPLITS = {**{name: name for name in NAMES}, "dev": "validation", "valid": "validation", "val": "validation"}
_YES_NO = {"true": "1", "false": "0"}


def read_own(path: Path) -> pl.DataFrame:
    """Read `text`, `context`, `label`, and where given `topic` and `split`, of a csv, tsv, jsonl or parquet file.

    A label is any name; true and false become 1 and 0, and 1.0 becomes 1. `split_by_topic` keeps a topic together; the
    context is the topic where none is given. Splits are train, validation (also dev, valid, val) and test.
    """
    names = {name: (name,) for name in ("text", "context", "label")}
    rows = read_table([path], names, {name: (name,) for name in ("topic", "split")})
    label = pl.col("label").str.strip_chars().str.replace(r"^(-?\d+)\.0+$", "$1")  # spreadsheets write 1.0 for 1
    label = label.str.to_lowercase().replace_strict(_YES_NO, default=label).replace("", None)
    return _finish(rows.with_columns(label=label, split=map_labels(rows, "split", _SPLITS)))


def read_published(path: Path) -> pl.DataFrame:
    """Read the published data set (`tables.AnnotatedComments`) in csv, tsv, jsonl or parquet.

    The tags 1 and -1 of `subtext` become the labels 1 and 0. Rows whose raters were unsure or disagreed are left out,
    as `is_subtext` is null there.
    """
    columns = {"row_id": ("row_id",), "text": ("text",), "context": ("context",), "label": ("subtext",)}
    rows = read_table([path], columns).with_columns(item_id="row_id")
    refuse(rows, ~is_filled("row_id"), "row_id", "an id")
    label = map_labels(rows, "label", {"1": "1", "-1": "0", "0": "unsure"})
    return _finish(rows.with_columns(label=label.replace({"unsure": None})))


def read_tosarcasm(path: Path) -> pl.DataFrame:
    """Read ToSarcasm (Liang et al., 2022): lists of {topic, text, label 0 or 1}; the topic is the context.

    The files train.json, dev.json and test.json were split by comment: of 444 topics of the test part 412 stand in
    train as well, so see `split_by_topic`.
    """
    rows = []
    for file in find_files(path, "train.json", "dev.json", "test.json", is_each_needed=True):
        entries = parse_value(read_text(file), file)
        if not isinstance(entries, list):
            raise BadInput(f"{file}: expected a JSON list of objects")
        for number, entry in enumerate(entries, 1):
            fields = entry if isinstance(entry, dict) else {}
            for name in ("text", "topic", "label"):
                check_field(fields, name, f"{file}, entry {number}", "text", isinstance(fields.get(name), str | int))
            text, topic, label = (str(fields[name]) for name in ("text", "topic", "label"))
            check_field(fields, "label", f"{file}, entry {number}", "0 or 1", label in {"0", "1"})
            rows.append((f"{file.name}:{number}", text, topic, label, _SPLITS.get(file.stem)))
    return _finish(pl.DataFrame(rows, schema=("item_id", "text", "context", "label", "split"), orient="row"))


def read_cold(path: Path) -> pl.DataFrame:
    """Read COLD (Deng et al., 2022): `TEXT`, `label` (1 offensive) and `topic` (one of three), the context."""
    columns = {"text": ("TEXT",), "context": ("topic",), "label": ("label",), "split": ("split",)}
    rows = read_table(find_files(path, "*.csv"), columns)
    label = map_labels(rows, "label", {"0": "0", "1": "1"})
    return _finish(rows.with_columns(label=label, split=map_labels(rows, "split", _SPLITS)))


SOURCES: dict[str, Callable[[Path], pl.DataFrame]] = {
    "own": read_own,
    "published": read_published,
    "tosarcasm": read_tosarcasm,
    "cold": read_cold,
}
"""Readers by name."""


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    absent = [pl.lit(None, pl.String).alias(name) for name in ("topic", "split") if name not in rows.columns]
    rows = rows.with_columns(clean("text"), clean("context").fill_null(""), *absent)
    rows = rows.with_columns(topic=pl.when(is_filled("topic")).then(clean("topic")).otherwise("context"))
    is_first = pl.struct("text", "context", "label").is_first_distinct()
    faults = {"blank_text": ~is_filled("text"), "no_label": ~is_filled("label"), "repeated_row": ~is_first}
    kept, dropped = split_off(rows.select(COLUMNS), choose_first(faults), ["reason"])
    left_out.record_rows("labelled comments", dict(dropped["reason"].value_counts().iter_rows()))
    return kept


def split_by_topic(rows: pl.DataFrame) -> pl.DataFrame:
    """Split rows of text and topic so that no topic is in two splits, in any order; a row without one is its own."""
    topic = pl.when(is_filled("topic")).then("topic").otherwise(pl.lit("\0") + pl.col("text"))
    sizes = rows.group_by(topic=topic).len("size").sort("topic")
    topics = sizes[np.random.default_rng(SEED).permutation(len(sizes))]
    parts = find_parts(np.cumsum(SHARES) / sum(SHARES) * len(rows), find_middles(topics["size"]))
    return rows.with_columns(split=topic.replace_strict(topics["topic"], parts, return_dtype=pl.String))
