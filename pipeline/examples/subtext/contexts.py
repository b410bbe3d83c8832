"""Read comments in context from several layouts: with a label (CSD-01, CSD-02), or with their meaning (CSD-03).

Readers of labels return item_id, text, context (may be empty), label (yes and no are `1` and `0`), topic, split (null
where none is given). Rows without text or label, and duplicates in the same context, are left out. CSD gives neither
data nor measure for meanings: raters' notes and CN-SarcasmBench, whose explanations of sarcastic comments and choice
questions stand in for them. What cannot be read is BadInput with file, line or item, and field.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline import left_out
from pipeline.errors import BadInput
from pipeline.examples.sources.files import clean, find_files, is_filled, map_labels, read_table, refuse
from pipeline.examples.splits import NAMES, SEED, find_middles, find_parts
from pipeline.io.fields import check_choice, check_field, check_text, is_index, is_text_list
from pipeline.io.lines import read_json_items, read_json_lines
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
        for number, (fields, _) in enumerate(read_json_items(file), 1):
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


SOURCES: dict[str, Callable[[Path], pl.DataFrame]] = {  # readers by name
    "own": read_own, "published": read_published, "tosarcasm": read_tosarcasm, "cold": read_cold,
}  # fmt: skip


def _finish(rows: pl.DataFrame) -> pl.DataFrame:
    absent = [pl.lit(None, pl.String).alias(name) for name in ("topic", "split") if name not in rows.columns]
    rows = rows.with_columns(clean("text"), clean("context").fill_null(""), *absent)
    rows = rows.with_columns(topic=pl.when(is_filled("topic")).then(clean("topic")).otherwise("context"))
    is_first = pl.struct("text", "context", "label").is_first_distinct()
    faults = {"blank_text": ~is_filled("text"), "no_label": ~is_filled("label"), "repeated_row": ~is_first}
    kept_rows, dropped = split_off(rows.select(COLUMNS), choose_first(faults), ["reason"])
    left_out.record_rows("labelled comments", dict(dropped["reason"].value_counts().iter_rows()))
    return kept_rows


def split_by_topic(rows: pl.DataFrame) -> pl.DataFrame:
    """Split rows of text and topic so that no topic is in two splits, in any order; a row without one is its own."""
    topic = pl.when(is_filled("topic")).then("topic").otherwise(pl.lit("\0") + pl.col("text"))
    sizes = rows.group_by(topic=topic).len("size").sort("topic")
    topics = sizes[np.random.default_rng(SEED).permutation(len(sizes))]
    parts = find_parts(np.cumsum(SHARES) / sum(SHARES) * len(rows), find_middles(topics["size"]))
    return rows.with_columns(split=topic.replace_strict(topics["topic"], parts, return_dtype=pl.String))


REFERENCES = ("item_id", "text", "context", "plains", "meanings")
_CHOICE = {"question": pl.String, "options": pl.List(pl.String), "answers": pl.List(pl.Int64)}
CHOICES: dict[str, Any] = dict.fromkeys(("item_id", "text", "context"), pl.String) | _CHOICE
SARCASM_BENCH = CHOICES | {"kind": pl.String, "meanings": pl.List(pl.String)}
LETTERS = "ABCD"  # CN-SarcasmBench's options


def read_references(path: Path) -> pl.DataFrame:
    """Read references of a csv, tsv or jsonl file: text, meaning, and where present context and plain.

    Rows of the same text and context, such as several raters' notes, are one item with several references, named by the
    first (`<file name>:<row>`). A .json file or a folder is CN-SarcasmBench.
    """
    if path.suffix == ".json" or path.is_dir():
        return read_sarcasm_bench(path)
    required = {"text": ("text",), "meaning": ("meaning",)}
    rows = read_table([path], required, {"context": ("context",), "plain": ("plain",)})
    for name in required:
        refuse(rows, ~is_filled(name), name, "a text that is not blank")
    stripped = rows.with_columns(pl.col("text", "meaning", "context", "plain").str.strip_chars().replace("", None))
    references = stripped.group_by("text", "context", maintain_order=True).agg(
        pl.col("item_id").first(),
        plains=pl.col("plain").drop_nulls().unique(maintain_order=True),
        meanings=pl.col("meaning").unique(maintain_order=True),
    )
    return references.select(*REFERENCES)


def read_choices(path: Path) -> pl.DataFrame:
    """Read choices of a jsonl file, `{"text": str, "options": [str], "answer": int or [int]}` a line.

    `answer` is the index from 0 of the right option, or of all that are right; `context` and `question` are optional. A
    .json file or a folder is CN-SarcasmBench, whose options are shuffled, as its first is always right.
    """
    if path.suffix == ".json" or path.is_dir():
        return shuffle_options(read_sarcasm_bench(path))
    rows: list[dict[str, Any]] = []
    for number, entry in read_json_lines(path, "choices"):
        location = f"{path}, line {number}"
        names = ["text", *(name for name in ("context", "question") if entry.get(name))]
        row = {name: check_text(entry, name, location) for name in names}
        rows.append({"item_id": f"{path.name}:{number}", **row, **_check_choice(entry, location)})
    return pl.DataFrame(rows, schema=CHOICES)


def read_sarcasm_bench(path: Path) -> pl.DataFrame:
    """Read CN-SarcasmBench (the file or its folder): threads whose last comment is sarcastic, and readings of it.

    In 1,250 of the 1,251 items the first option is right: use `shuffle_options`. Context is the other comments, a line
    each.
    """
    (file,) = find_files(path, "CN-SarcasmBench.json", is_each_needed=True)
    entries = enumerate(read_json_items(file), 1)
    rows = [_parse_item(entry, f"{file}, item {number}") for number, (entry, _) in entries]
    if not rows:
        raise BadInput(f"{file}: the file holds no items")
    items = pl.DataFrame(rows, schema=SARCASM_BENCH)
    for name in items.filter(pl.col("item_id").is_duplicated())["item_id"].head(1):
        number = name.removeprefix("sarcasmbench:")
        raise BadInput(f"{file}: field 'id' should differ between items; {number} is repeated")
    return items


def _parse_item(entry: dict[str, Any], location: str) -> dict[str, Any]:
    values: list[Any] = [entry.get(name) for name in ("comments", "id", "Answer")]
    comments, number, letters = values
    is_number = isinstance(number, int) and not isinstance(number, bool)
    has_letters = isinstance(letters, str) and letters and set(letters) <= set(LETTERS)
    check_field(entry, "comments", location, "a list of texts", comments and is_text_list(comments))
    check_field(entry, "id", location, "a whole number", is_number)
    check_field(entry, "Answer", location, f"letters of {LETTERS}", has_letters)
    options = [check_text(entry, letter, location) for letter in LETTERS]
    answers = [LETTERS.index(letter) for letter in letters]
    return {
        "item_id": f"sarcasmbench:{number}", "text": comments[-1].strip(),
        "context": "\n".join(comment.strip() for comment in comments[:-1]) or None,
        "kind": check_text(entry, "classification", location), "meanings": [check_text(entry, "explanation", location)],
        "question": check_text(entry, "question", location),
        **_check_choice({"options": options, "answer": answers}, location),
    }  # fmt: skip


def _check_choice(entry: dict[str, Any], location: str) -> dict[str, list[Any]]:
    options = check_choice(entry, "options", location)
    answer = entry.get("answer")
    answers = answer if isinstance(answer, list) else [answer]
    is_valid = answers and all(is_index(a, len(options)) for a in answers) and len(set(answers)) == len(answers)
    expected = f"the index of the right option, from 0 to {len(options) - 1}, or a list of such"
    check_field(entry, "answer", location, expected, is_valid)
    return {"options": options, "answers": sorted(answers)}


def shuffle_options(choices: pl.DataFrame) -> pl.DataFrame:
    """Shuffle each row's options, so that their position reveals nothing; the order of the rows does not matter."""
    rng, rows = np.random.default_rng(SEED), []
    for row in choices.with_row_index("row").sort("item_id").iter_rows(named=True):
        order = rng.permutation(len(row["options"])).tolist()
        options = [row["options"][index] for index in order]
        rows.append(row | {"options": options, "answers": sorted(order.index(index) for index in row["answers"])})
    return pl.DataFrame(rows, schema={"row": pl.UInt32} | dict(choices.schema)).sort("row").drop("row")
