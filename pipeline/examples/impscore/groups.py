"""Graded groups: one intent in several wordings, from the most explicit to the most implicit (ImpScore, section 6.1).

The paper's are not public. Those of the sample are ours, so that neither length nor punctuation gives the level away.
Its choice questions (which option means the same as the reference? IMP-33) are read from a file or built from groups.
"""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.splits import SEED
from pipeline.io.fields import check_choice, check_field, check_text, is_index
from pipeline.io.hashes import hash_text
from pipeline.io.lines import read_json_lines
from pipeline.text.language import detect_language


def read(path: Path) -> pl.DataFrame:
    """Read groups of a JSON Lines file, `{"group": str, "sentences": [from most explicit to most implicit]}` a line.

    Returns a row a sentence: group, level (from 1), text. BadInput with file and line for another format, a repeated
    group, or a repeated sentence in a group.
    """
    rows: list[tuple[str, int, str]] = []
    names: set[str] = set()
    for number, entry in read_json_lines(path, "groups"):
        location, name = f"{path}, line {number}", entry.get("group")
        is_new_name = isinstance(name, str) and name and name not in names
        names.add(check_field(entry, "group", location, "a name that no other line has", is_new_name))
        sentences = check_choice(entry, "sentences", location)
        rows += [(str(name), level, sentence) for level, sentence in enumerate(sentences, 1)]
    return pl.DataFrame(rows, schema={"group": pl.String, "level": pl.Int64, "text": pl.String}, orient="row")


def add_split(groups: pl.DataFrame) -> pl.DataFrame:
    """Add `split` by a hash of the name, so that a group keeps it: of seven one to test, one to validation."""
    splits = ("test", "validation", *["train"] * 5)
    split_of = {name: splits[zlib.crc32(name.encode()) % 7] for name in groups["group"].unique()}
    return groups.with_columns(split=pl.col("group").replace_strict(split_of, return_dtype=pl.String))


def hash_groups(*groups: pl.DataFrame) -> list[str]:
    """Hash the most explicit sentence of each group, shortly: the configuration of a model lists those it learned."""
    return [hash_text(text)[:8] for rows in groups for text in rows.filter(level=1)["text"]]


def find_language() -> pl.Expr:
    """Return the language of most sentences of a group, so that one measure compares all of them."""
    return detect_language().mode().sort().first().over("group")


def read_ratings(path: Path, groups: pl.DataFrame) -> pl.DataFrame:
    """Read lines of JSON `{"rater": str, "group": str, "ranks": [one a sentence, 1 the most explicit, ties equal]}`.

    All raters should have ranked the same groups. Returns rater, group, level, rank. BadInput with line and field.
    """
    sizes = dict(groups.group_by("group").len().iter_rows())
    rows: list[tuple[str, str, int, float]] = []
    for number, entry in read_json_lines(path, "ratings"):
        location = f"{path}, line {number}"
        values: list[Any] = [entry.get(key) for key in ("rater", "group", "ranks")]
        rater, group, ranks = values
        check_field(entry, "rater", location, "a name", isinstance(rater, str) and rater)
        is_group = isinstance(group, str) and group in sizes
        check_field(entry, "group", location, f"one of the {len(sizes)} groups", is_group)
        is_ranking = isinstance(ranks, list) and len(ranks) == sizes[group] and {*map(type, ranks)} <= {int, float}
        check_field(entry, "ranks", location, f"{sizes[group]} numbers, one a sentence", is_ranking)
        rows += [(rater, group, level, float(rank)) for level, rank in enumerate(ranks, 1)]
    schema = {"rater": pl.String, "group": pl.String, "level": pl.Int64, "rank": pl.Float64}
    ratings = pl.DataFrame(rows, schema=schema, orient="row")
    if ratings.select("rater", "group", "level").is_duplicated().any():
        raise BadInput(f"{path}: expected one order of a group from each rater")
    if ratings.group_by("group").agg(pl.col("rater").n_unique())["rater"].n_unique() > 1:
        raise BadInput(f"{path}: some raters ranked groups that others did not; keep the groups that all ranked")
    return ratings


OPTIONS = 3
SCHEMA: dict[str, pl.DataType] = {"reference": pl.String(), "options": pl.List(pl.String), "answer": pl.Int64()}


def read_questions(path: Path) -> pl.DataFrame:
    """Read lines of JSON `{"reference": str, "options": [str], "answer": index}`; BadInput with line and field."""
    rows = []
    for number, entry in read_json_lines(path, "questions"):
        location = f"{path}, line {number}"
        check_text(entry, "reference", location)
        count = len(check_choice(entry, "options", location))
        expected = f"the index of the right option, from 0 to {count - 1}"
        check_field(entry, "answer", location, expected, is_index(entry.get("answer"), count))
        rows.append({name: entry[name] for name in SCHEMA})
    return pl.DataFrame(rows, schema=SCHEMA)


def build_questions(groups: pl.DataFrame, options: int = OPTIONS, seed: int = SEED) -> pl.DataFrame:
    """Build a question from each graded group: which most implicit sentence means its most explicit one?

    The wrong options are drawn from other groups, and so is the index of the right one. Returns rows as of
    `read_questions`, and group, by the groups' names. BadInput if there are too few groups whose most implicit
    sentences differ.
    """
    ends = groups.sort("group", "level").group_by("group", maintain_order=True)
    questions = ends.agg(reference=pl.col("text").first(), hint=pl.col("text").last())
    hints = questions["hint"].unique().sort().to_list()
    if not 2 <= options <= len(hints):
        raise BadInput(f"{options} options: expected 2 or more, and no more than the {len(hints)} groups that differ")
    rng = np.random.default_rng(seed)
    rows = []
    for group, reference, hint in questions.iter_rows():
        candidates = [hints[i] for i in rng.choice(len(hints), options, replace=False)]
        choices = [text for text in candidates if text != hint][: options - 1]
        answer = int(rng.integers(options))
        choices.insert(answer, hint)
        rows.append({"reference": reference, "options": choices, "answer": answer, "group": group})
    return pl.DataFrame(rows, schema=SCHEMA | {"group": pl.String()})
