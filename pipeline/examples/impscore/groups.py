"""Graded groups: one intent in several wordings, from the most explicit to the most implicit (ImpScore, section 6.1).

The paper's are not public. Those of the sample are ours, so that neither length nor punctuation gives the level away.
"""

import zlib
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.errors import BadInput
from pipeline.io.fields import check_choice, check_field
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
    for number, entry in read_json_lines(path):
        location, name = f"{path}, line {number}", entry.get("group")
        is_new_name = isinstance(name, str) and name and name not in names
        names.add(check_field(entry, "group", location, "a name that no other line has", is_new_name))
        sentences = check_choice(entry, "sentences", location)
        rows += [(str(name), level, sentence) for level, sentence in enumerate(sentences, 1)]
    if not rows:
        raise BadInput(f"{path}: the file holds no groups")
    return pl.DataFrame(rows, schema={"group": pl.String, "level": pl.Int64, "text": pl.String}, orient="row")


def add_split(groups: pl.DataFrame) -> pl.DataFrame:
    """Add `split` by a hash of the name, so that a group keeps it: of seven one to test, one to validation."""
    splits = ("test", "validation", "train", "train", "train", "train", "train")
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
    for number, entry in read_json_lines(path):
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
    if not rows:
        raise BadInput(f"{path}: holds no ratings")
    if ratings.select("rater", "group", "level").is_duplicated().any():
        raise BadInput(f"{path}: expected one order of a group from each rater")
    if ratings.group_by("group").agg(pl.col("rater").n_unique())["rater"].n_unique() > 1:
        raise BadInput(f"{path}: some raters ranked groups that others did not; keep the groups that all ranked")
    return ratings
