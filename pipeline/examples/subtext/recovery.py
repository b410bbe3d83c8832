"""The meaning of comments, from files: references, and choices between readings (CSD-03).

CSD gives neither data nor measure for subtext recovery. This module reads raters' notes (`plain`, `meaning`), and
CN-SarcasmBench, whose explanations of sarcastic comments and choice questions stand in for them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.sources.files import find_files, read_table
from pipeline.examples.splits import SEED
from pipeline.io.lines import parse_value, read_json_lines, read_text

_TEXT: dict[str, pl.DataType] = {"item_id": pl.String(), "text": pl.String(), "context": pl.String()}
_CHOICE: dict[str, pl.DataType] = {
    "question": pl.String(), "options": pl.List(pl.String()), "answers": pl.List(pl.Int64()),
}  # fmt: skip
REFERENCES = _TEXT | {"plains": pl.List(pl.String()), "meanings": pl.List(pl.String())}
CHOICES = _TEXT | _CHOICE
SARCASM_BENCH = _TEXT | {"kind": pl.String(), "meanings": pl.List(pl.String())} | _CHOICE
LETTERS = "ABCD"  # CN-SarcasmBench's options


def read(path: Path) -> pl.DataFrame:
    """Read references of csv, tsv or jsonl files: text, meaning, and where present context and plain.

    Rows of the same text and context, such as several raters' notes, are one item with several references.

    Returns:
        A row an item, in the files' order: item_id (`<file name>:<row>`, of the first), text, context (null where
        there is none), plains and meanings (distinct; plains may be empty).

    Raises:
        BadInput: naming file, line and field.
    """
    rows = read_table(
        find_files(path, "*.jsonl", "*.csv", "*.tsv"),
        {"text": ("text",), "meaning": ("meaning",)},
        {"context": ("context",), "plain": ("plain",)},
    )
    stripped = rows.with_columns(pl.col("text", "meaning", "context", "plain").str.strip_chars().replace("", None))
    for row in stripped.filter(pl.col("text").is_null() | pl.col("meaning").is_null()).head(1).iter_rows(named=True):
        field = "text" if row["text"] is None else "meaning"
        raise BadInput(f"{row['file']}, line {row['line']}: field {field!r} should be a text that is not blank")
    references = stripped.group_by("text", "context", maintain_order=True).agg(
        pl.col("item_id").first(),
        plains=pl.col("plain").drop_nulls().unique(maintain_order=True),
        meanings=pl.col("meaning").unique(maintain_order=True),
    )
    return references.select(*REFERENCES)


def read_choices(path: Path) -> pl.DataFrame:
    """Read choices of a jsonl file, `{"text": str, "options": [str], "answer": int or [int]}` a line.

    `answer` is the index from 0 of the right option, or of all that are right; `context` and `question` are optional.

    Returns:
        A row a choice: item_id (`<file name>:<line>`), text, context, question (null where there are none), options,
        answers (the indices in order).

    Raises:
        BadInput: naming file, line and field.
    """
    optional = ("context", "question")
    rows = []
    for number, entry in read_json_lines(path):
        location = f"{path}, line {number}"
        answer = entry.get("answer")
        rows.append({
            "item_id": f"{path.name}:{number}",
            "text": _check_text(entry, "text", location),
            **{name: _check_text(entry, name, location) if entry.get(name) else None for name in optional},
            **_check_choice(entry.get("options"), answer if isinstance(answer, list) else [answer], location),
        })  # fmt: skip
    if not rows:
        raise BadInput(f"{path}: the file holds no choices")
    return pl.DataFrame(rows, schema=CHOICES)


def read_sarcasm_bench(path: Path) -> pl.DataFrame:
    """CN-SarcasmBench as published: threads whose last comment is sarcastic, what it means, and a choice of readings.

    Several of the four readings may be right. In 1,250 of the 1,251 items A is one of them, so that where an option
    stands gives the answer away: ask about `shuffle_options` ones.

    Args:
        path: `CN-SarcasmBench.json`, or its folder.

    Returns:
        A row an item: item_id (`sarcasmbench:<id>`), text (the last comment), context (those before it, a line each;
        null where there are none), kind (of sarcasm), meanings (the one explanation), question, options, answers.

    Raises:
        BadInput: naming file, item (its place, from 1) and field.
    """
    (file,) = find_files(path, "CN-SarcasmBench.json", is_each_needed=True)
    entries = parse_value(read_text(file), file)
    if not isinstance(entries, list) or not entries:
        raise BadInput(f"{file}: expected a list of items")
    rows = [_parse_item(entry, f"{file}, item {number}") for number, entry in enumerate(entries, 1)]
    items = pl.DataFrame(rows, schema=SARCASM_BENCH)
    for name in items.filter(pl.col("item_id").is_duplicated())["item_id"].head(1):
        raise BadInput(
            f"{file}: field 'id' should differ between items; {name.removeprefix('sarcasmbench:')} is repeated"
        )
    return items


def _parse_item(entry: object, location: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise BadInput(f"{location}: expected an object, found {entry!r:.60}")
    comments, number, letters = entry.get("comments"), entry.get("id"), entry.get("Answer")
    if (
        not isinstance(comments, list)
        or not comments
        or not all(isinstance(comment, str) and comment.strip() for comment in comments)
    ):
        raise BadInput(f"{location}: field 'comments' should be a list of texts, found {comments!r:.60}")
    if not isinstance(number, int) or isinstance(number, bool):
        raise BadInput(f"{location}: field 'id' should be a whole number, found {number!r:.60}")
    if not isinstance(letters, str) or not letters or not set(letters) <= set(LETTERS):
        raise BadInput(f"{location}: field 'Answer' should be letters of {LETTERS}, found {letters!r:.60}")
    return {
        "item_id": f"sarcasmbench:{number}",
        "text": comments[-1].strip(),
        "context": "\n".join(comment.strip() for comment in comments[:-1]) or None,
        "kind": _check_text(entry, "classification", location),
        "meanings": [_check_text(entry, "explanation", location)],
        "question": _check_text(entry, "question", location),
        **_check_choice(
            [_check_text(entry, letter, location) for letter in LETTERS], [*map(LETTERS.index, letters)], location
        ),
    }


def _check_text(entry: Mapping[str, Any], field: str, location: str) -> str:
    value = entry.get(field)
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{location}: field {field!r} should be a text that is not blank, found {value!r:.60}")
    return value.strip()


def _check_choice(options: object, answers: list[Any], location: str) -> dict[str, list[Any]]:
    if not isinstance(options, list) or not all(isinstance(option, str) and option.strip() for option in options):
        raise BadInput(f"{location}: field 'options' should be a list of texts, found {options!r:.60}")
    if len(options) < 2 or len(set(options)) < len(options):
        raise BadInput(f"{location}: field 'options' should hold at least two, all different")
    are_places = all(isinstance(a, int) and not isinstance(a, bool) and 0 <= a < len(options) for a in answers)
    if not answers or not are_places or len(set(answers)) < len(answers):
        raise BadInput(
            f"{location}: field 'answer' should be the index of the right option, from 0 to {len(options) - 1}, or a "
            f"list of such; found {answers!r:.60}"
        )
    return {"options": options, "answers": sorted(answers)}


def shuffle_options(choices: pl.DataFrame, seed: int = SEED) -> pl.DataFrame:
    """Put each row's options in random order, so that their position tells nothing.

    Args:
        choices: rows with item_id, options, answers; the order of the rows does not change the order of options.
        seed: of the draw.
    """
    rng = np.random.default_rng(seed)
    shuffled_by_item = {}
    for item, options, answers in choices.sort("item_id").select("item_id", "options", "answers").iter_rows():
        order = rng.permutation(len(options)).tolist()
        shuffled_by_item[item] = [options[old] for old in order], sorted(order.index(a) for a in answers)
    shuffled = [shuffled_by_item[item] for item in choices["item_id"]]
    return choices.with_columns(
        options=pl.Series([options for options, _ in shuffled], dtype=pl.List(pl.String)),
        answers=pl.Series([answers for _, answers in shuffled], dtype=pl.List(pl.Int64)),
    )
