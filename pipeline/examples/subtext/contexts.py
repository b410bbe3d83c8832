"""Comments in context with a label, for subtext recognition (CSD-02), from several layouts.

Whether a sentence means more than it says depends on its context (CSD-01), so each row has one, which is empty where a
data set gives none. Labels are names of classes; yes and no of any layout are `1` and `0`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.sources.files import find_files, read_table
from pipeline.examples.sources.layout import clean, is_filled, map_labels, refuse
from pipeline.examples.splits import NAMES, SEED
from pipeline.io.lines import parse_value, read_text

COLUMNS = ("item_id", "text", "context", "label", "topic", "split")
SHARES = (0.6, 0.2, 0.2)
_SPLITS = {**{name: name for name in NAMES}, "dev": "validation", "valid": "validation", "val": "validation"}
_YES_NO = {"true": "1", "false": "0"}


class Read(NamedTuple):
    """The rows of a file: `rows` and `dropped` together are all of them."""

    rows: pl.DataFrame  # item_id, text, context (may be empty), label, topic, split (null where none is given)
    dropped: pl.DataFrame  # reason, row_key


def read_own(path: Path) -> Read:
    """Read `text`, `context`, `label`, and where given `topic` and `split`, of a csv, tsv, jsonl or parquet file.

    A label is any name; true and false become 1 and 0, and 1.0 becomes 1. `split_by_topic` keeps a topic together; the
    context is the topic where none is given. Splits are train, validation (also dev, valid, val) and test.

    Raises:
        BadInput: naming file, line and field.
    """
    names = {name: (name,) for name in ("text", "context", "label")}
    rows = read_table([path], names, {name: (name,) for name in ("topic", "split")})
    return _finish(rows.with_columns(label=_normalise_label(), split=map_labels(rows, "split", _SPLITS)))


def read_published(path: Path, field: str = "subtext") -> Read:
    """Read the published data set (`tables.AnnotatedComments`) in csv, tsv, jsonl or parquet.

    Args:
        path: the file.
        field: the kind of information that is the label, with the tags 1 and -1, which become 1 and 0. Rows whose
            raters were unsure or disagreed are dropped as `no_label`, as `is_subtext` is null there.
    """
    columns = {"row_id": ("row_id",), "text": ("text",), "context": ("context",), "label": (field,)}
    rows = read_table([path], columns).with_columns(item_id="row_id")
    refuse(rows, ~is_filled("row_id"), "row_id", "an id")
    label = map_labels(rows, "label", {"1": "1", "-1": "0", "0": "unsure"})
    return _finish(rows.with_columns(label=label.replace({"unsure": None})))


def read_tosarcasm(path: Path) -> Read:
    """Read ToSarcasm (Liang et al., 2022): lists of {topic, text, label 0 or 1}; the topic is the context.

    Args:
        path: folder of train.json, dev.json and test.json, or one of them. They were split by comment: of 444 topics
            of the test part 412 stand in train as well, so see `split_by_topic`.
    """
    rows = []
    for file in find_files(path, "train.json", "dev.json", "test.json", is_each_needed=True):
        for number, (text, topic, label) in enumerate(_read_entries(file, ("text", "topic", "label")), 1):
            if label not in {"0", "1"}:
                raise BadInput(f"{file}, entry {number}: field 'label' should be 0 or 1 but is {label!r:.60}")
            rows.append((str(file), number, f"{file.name}:{number}", text, topic, label, _SPLITS.get(file.stem)))
    names = ("file", "line", "item_id", "text", "context", "label", "split")
    return _finish(pl.DataFrame(rows, schema=names, orient="row"))


def read_cold(path: Path) -> Read:
    """Read COLD (Deng et al., 2022): `TEXT`, `label` (1 offensive) and `topic` (one of three), the context."""
    columns = {"text": ("TEXT",), "context": ("topic",), "label": ("label",), "split": ("split",)}
    rows = read_table(find_files(path, "*.csv"), columns)
    label = map_labels(rows, "label", {"0": "0", "1": "1"})
    return _finish(rows.with_columns(label=label, split=map_labels(rows, "split", _SPLITS)))


SOURCES: dict[str, Callable[[Path], Read]] = {
    "own": read_own,
    "published": read_published,
    "tosarcasm": read_tosarcasm,
    "cold": read_cold,
}
"""Readers by name."""


def _normalise_label() -> pl.Expr:
    label = pl.col("label").str.strip_chars().str.replace(r"^(-?\d+)\.0+$", "$1")  # spreadsheets write 1.0 for 1
    return label.str.to_lowercase().replace_strict(_YES_NO, default=label).replace("", None)


def _read_entries(path: Path, fields: Sequence[str]) -> list[tuple[str, ...]]:
    """Read fields of the objects of a file that is one JSON list."""
    entries = parse_value(read_text(path), path)
    if not isinstance(entries, list):
        raise BadInput(f"{path}: expected a JSON list of objects")
    for number, entry in enumerate(entries, 1):
        for name in fields:
            if not isinstance(entry, dict) or not isinstance(entry.get(name), str | int):
                value = entry.get(name) if isinstance(entry, dict) else entry
                raise BadInput(f"{path}, entry {number}: field {name!r} should be text but is {value!r:.60}")
    return [tuple(str(entry[name]) for name in fields) for entry in entries]


def _finish(rows: pl.DataFrame) -> Read:
    """Clean the texts; drop, with a reason, rows without text or label, and duplicates in the same context."""
    absent = [pl.lit(None, pl.String).alias(name) for name in ("topic", "split") if name not in rows.columns]
    rows = rows.with_columns(clean("text"), clean("context").fill_null(""), *absent)
    rows = rows.with_columns(topic=pl.when(is_filled("topic")).then(clean("topic")).otherwise("context"))
    reason = (
        pl.when(~is_filled("text")).then(pl.lit("blank_text"))
        .when(~is_filled("label")).then(pl.lit("no_label"))
        .when(~pl.struct("text", "context", "label").is_first_distinct()).then(pl.lit("duplicate"))
    )  # fmt: skip
    rows = rows.with_columns(reason=reason)
    return Read(
        rows.filter(pl.col("reason").is_null()).select(COLUMNS),
        rows.filter(pl.col("reason").is_not_null()).select("reason", row_key="item_id"),
    )


def split_by_topic(rows: pl.DataFrame, shares: Sequence[float] = SHARES, seed: int = SEED) -> pl.DataFrame:
    """Split again so that no topic is in two splits; the order of the rows does not change the result.

    A share is missed by at most half the largest topic on either end. Each row without context is its own topic.

    Args:
        rows: text, topic, split of any values.
        shares: of train, validation and test.
        seed: of the order of topics.
    """
    topic = pl.when(is_filled("topic")).then("topic").otherwise(pl.lit("\0") + pl.col("text"))
    sizes = rows.group_by(topic=topic).len("size").sort("topic")
    topics = sizes[np.random.default_rng(seed).permutation(len(sizes))]
    middle = (topics["size"].cum_sum() - topics["size"] / 2).to_numpy()
    bounds = np.cumsum(shares) / sum(shares) * len(rows)
    names = [NAMES[i] for i in np.searchsorted(bounds, middle, side="right").clip(max=len(NAMES) - 1)]
    split = topic.replace_strict(topics["topic"], pl.Series(names, dtype=pl.String), return_dtype=pl.String)
    return rows.with_columns(split=split)
