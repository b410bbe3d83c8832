"""Graded groups: one intent in several wordings, from the most explicit to the most implicit (ImpScore, section 6.1).

The paper's own groups are not public. Those of the sample were written for Undertone, balanced so that neither length
nor punctuation gives the level away. The order is the writers' judgement.
"""

import zlib
from pathlib import Path

import polars as pl

from pipeline.errors import BadInput
from pipeline.io.lines import read_json_lines
from pipeline.text.language import detect_language


def read(path: Path) -> pl.DataFrame:
    """Read groups of a JSON Lines file, `{"group": str, "sentences": [from most explicit to most implicit]}` a line.

    Returns:
        A row a sentence: group, level (from 1), text.

    Raises:
        BadInput: naming file and line, for another format, a repeated group, or a repeated sentence in a group.
    """
    rows: list[tuple[str, int, str]] = []
    names: set[str] = set()
    for number, entry in read_json_lines(path):
        location = f"{path}, line {number}"
        name, sentences = (entry.get(key) for key in ("group", "sentences"))
        if not isinstance(name, str) or not name or name in names:
            raise BadInput(f"{location}: field 'group' should be a name that no other line has")
        if not isinstance(sentences, list) or not all(isinstance(text, str) and text.strip() for text in sentences):
            raise BadInput(f"{location}: field 'sentences' should be a list of texts")
        if len(sentences) < 2 or len(set(sentences)) < len(sentences):
            raise BadInput(f"{location}: field 'sentences' should hold at least two, all different")
        names.add(name)
        rows += [(name, level, sentence) for level, sentence in enumerate(sentences, 1)]
    if not rows:
        raise BadInput(f"{path}: the file holds no groups")
    return pl.DataFrame(rows, schema={"group": pl.String, "level": pl.Int64, "text": pl.String}, orient="row")


def add_split(groups: pl.DataFrame) -> pl.DataFrame:
    """Add `split` by a hash of the group's name: of seven groups one to test, one to validation, five to train.

    A group keeps its split when others are added, so that no model is trained on what another was measured on.
    """
    places = {name: zlib.crc32(name.encode()) % 7 for name in groups["group"].unique()}
    place = pl.col("group").replace_strict(places, return_dtype=pl.Int64)
    split = pl.when(place == 0).then(pl.lit("test")).when(place == 1).then(pl.lit("validation"))
    return groups.with_columns(split=split.otherwise(pl.lit("train")))


def majority_language() -> pl.Expr:
    """Give the language of most sentences of a group, so that one measure compares all of them."""
    return detect_language().mode().sort().first().over("group")


def read_ratings(path: Path, groups: pl.DataFrame) -> pl.DataFrame:
    """Read raters' orders of groups, `{"rater": str, "group": str, "ranks": [one a sentence, 1 the most explicit]}`.

    Equal ranks are ties. All raters should have ranked the same groups.

    Args:
        path: a JSON Lines file.
        groups: rows of `read`.

    Returns:
        A row a sentence and rater: rater, group, level, rank.

    Raises:
        BadInput: naming file, line and field.
    """
    sizes = dict(groups.group_by("group").len().iter_rows())
    rows: list[tuple[str, str, int, float]] = []
    for number, entry in read_json_lines(path):
        location = f"{path}, line {number}"
        rater, group, ranks = (entry.get(key) for key in ("rater", "group", "ranks"))
        if not isinstance(rater, str) or not rater:
            raise BadInput(f"{location}: field 'rater' should be a name")
        if not isinstance(group, str) or group not in sizes:
            raise BadInput(f"{location}: field 'group' is {group!r}, expected one of the {len(sizes)} groups")
        if not isinstance(ranks, list) or len(ranks) != sizes[group] or not all(_is_number(rank) for rank in ranks):
            raise BadInput(f"{location}: field 'ranks' should be {sizes[group]} numbers, one a sentence")
        rows += [(rater, group, level, float(rank)) for level, rank in enumerate(ranks, 1)]
    schema = {"rater": pl.String, "group": pl.String, "level": pl.Int64, "rank": pl.Float64}
    ratings = pl.DataFrame(rows, schema=schema, orient="row")
    ranked = ratings.select("rater", "group", "level")
    if not ranked.height or ranked.is_duplicated().any():
        raise BadInput(
            f"{path}: expected one order of a group from each rater" if rows else f"{path}: holds no ratings"
        )
    if ratings.group_by("group").agg(pl.col("rater").n_unique())["rater"].n_unique() > 1:
        raise BadInput(f"{path}: some raters ranked groups that others did not; keep the groups that all ranked")
    return ratings


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
