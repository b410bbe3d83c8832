"""Read the meaning of comments from files: references, and choices between readings (CSD-03).

CSD gives neither data nor measure for it: raters' notes and CN-SarcasmBench, whose explanations of sarcastic comments
and choice questions stand in for them. What cannot be read is BadInput with file, line or item, and field.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.sources.files import find_files, read_table
from pipeline.examples.sources.layout import is_filled, refuse
from pipeline.examples.splits import SEED
from pipeline.io.fields import check_choice, check_field, check_text, is_index, is_text_list
from pipeline.io.lines import parse_value, read_json_lines, read_text

REFERENCES = ("item_id", "text", "context", "plains", "meanings")
_CHOICE = {"question": pl.String, "options": pl.List(pl.String), "answers": pl.List(pl.Int64)}
CHOICES: dict[str, Any] = dict.fromkeys(("item_id", "text", "context"), pl.String) | _CHOICE
SARCASM_BENCH = CHOICES | {"kind": pl.String, "meanings": pl.List(pl.String)}
LETTERS = "ABCD"  # CN-SarcasmBench's options


def read(path: Path) -> pl.DataFrame:
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
    for number, entry in read_json_lines(path):
        location = f"{path}, line {number}"
        names = ["text", *(name for name in ("context", "question") if entry.get(name))]
        row = {name: check_text(entry, name, location) for name in names}
        rows.append({"item_id": f"{path.name}:{number}", **row, **_check_choice(entry, location)})
    if not rows:
        raise BadInput(f"{path}: the file holds no choices")
    return pl.DataFrame(rows, schema=CHOICES)


def read_sarcasm_bench(path: Path) -> pl.DataFrame:
    """Read CN-SarcasmBench (the file or its folder): threads whose last comment is sarcastic, and readings of it.

    In 1,250 of the 1,251 items the first option is right: use `shuffle_options`. Context is the other comments, a line
    each.
    """
    (file,) = find_files(path, "CN-SarcasmBench.json", is_each_needed=True)
    entries = parse_value(read_text(file), file)
    if not isinstance(entries, list) or not entries:
        raise BadInput(f"{file}: expected a list of items")
    rows = [_parse_item(entry, f"{file}, item {number}") for number, entry in enumerate(entries, 1)]
    items = pl.DataFrame(rows, schema=SARCASM_BENCH)
    for name in items.filter(pl.col("item_id").is_duplicated())["item_id"].head(1):
        number = name.removeprefix("sarcasmbench:")
        raise BadInput(f"{file}: field 'id' should differ between items; {number} is repeated")
    return items


def _parse_item(entry: object, location: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise BadInput(f"{location}: expected an object, found {entry!r:.60}")
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
        "item_id": f"sarcasmbench:{number}",
        "text": comments[-1].strip(),
        "context": "\n".join(comment.strip() for comment in comments[:-1]) or None,
        "kind": check_text(entry, "classification", location),
        "meanings": [check_text(entry, "explanation", location)],
        "question": check_text(entry, "question", location),
        **_check_choice({"options": options, "answer": answers}, location),
    }


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
    rng = np.random.default_rng(SEED)
    rows = []
    for row in choices.with_row_index("row").sort("item_id").iter_rows(named=True):
        order = rng.permutation(len(row["options"])).tolist()
        options = [row["options"][index] for index in order]
        rows.append(row | {"options": options, "answers": sorted(order.index(index) for index in row["answers"])})
    return pl.DataFrame(rows, schema={"row": pl.UInt32} | dict(choices.schema)).sort("row").drop("row")
