"""Graded groups: one intent said in several ways, from the most explicit to the most implicit (ImpScore, section 6.1).

The paper's own groups are not public with it; those shipped with the sample were written for Undertone, balanced so
that neither length nor punctuation gives the level away. The order is their writers' judgement.
"""

import zlib
from pathlib import Path

import polars as pl

from pipeline.errors import BadInput
from pipeline.io.lines import read_json_lines
from pipeline.text.language import detect_language


def read(path: Path) -> pl.DataFrame:
    """Groups of a JSON Lines file, `{"group": str, "sentences": [from most explicit to most implicit]}` a line.

    Returns:
        A row a sentence: group, level (from 1), text.

    Raises:
        BadInput: naming file and line, for what is not such a line, a group named twice or a sentence twice in one.
    """
    rows: list[tuple[str, int, str]] = []
    names: set[str] = set()
    for number, entry in read_json_lines(path):
        where = f"{path}, line {number}"
        name, sentences = (entry.get(key) for key in ("group", "sentences"))
        if not isinstance(name, str) or not name or name in names:
            raise BadInput(f"{where}: field 'group' should be a name that no other line has")
        if not isinstance(sentences, list) or not all(isinstance(s, str) and s.strip() for s in sentences):
            raise BadInput(f"{where}: field 'sentences' should be a list of texts")
        if len(sentences) < 2 or len(set(sentences)) < len(sentences):
            raise BadInput(f"{where}: field 'sentences' should hold at least two, all different")
        names.add(name)
        rows += [(name, level, sentence) for level, sentence in enumerate(sentences, 1)]
    if not rows:
        raise BadInput(f"{path}: the file holds no groups")
    return pl.DataFrame(rows, schema={"group": pl.String, "level": pl.Int64, "text": pl.String}, orient="row")


def with_split(groups: pl.DataFrame) -> pl.DataFrame:
    """Add `split` by the group's name: of seven groups one to test, one to validation, five to train.

    A group stays where it is when others are added, so that what a model was measured on was never trained on.
    """
    places = {name: zlib.crc32(name.encode()) % 7 for name in groups["group"].unique()}
    place = pl.col("group").replace_strict(places, return_dtype=pl.Int64)
    split = pl.when(place == 0).then(pl.lit("test")).when(place == 1).then(pl.lit("validation"))
    return groups.with_columns(split=split.otherwise(pl.lit("train")))


def lang_of_most() -> pl.Expr:
    """Language of most of a group's sentences, so that all of them are compared by one measure."""
    return detect_language().mode().sort().first().over("group")


def read_ratings(path: Path, groups: pl.DataFrame) -> pl.DataFrame:
    """Raters' orders of graded groups, `{"rater": str, "group": str, "ranks": [one a sentence, 1 the most explicit]}`.

    Equal ranks are ties. Every rater should have ranked every group that another one ranked.

    Args:
        path: a JSON Lines file.
        groups: rows of `read`.

    Returns:
        A row a sentence and rater: rater, group, level, rank.

    Raises:
        BadInput: naming file, line and field.
    """
    size = dict(groups.group_by("group").len().iter_rows())
    rows: list[tuple[str, str, int, float]] = []
    for number, entry in read_json_lines(path):
        where = f"{path}, line {number}"
        rater, group, ranks = (entry.get(key) for key in ("rater", "group", "ranks"))
        if not isinstance(rater, str) or not rater:
            raise BadInput(f"{where}: field 'rater' should be a name")
        if not isinstance(group, str) or group not in size:
            raise BadInput(f"{where}: field 'group' is {group!r}, which the groups do not have")
        if not isinstance(ranks, list) or len(ranks) != size[group] or not all(_is_number(rank) for rank in ranks):
            raise BadInput(f"{where}: field 'ranks' should be {size[group]} numbers, one a sentence")
        rows += [(rater, group, level, float(rank)) for level, rank in enumerate(ranks, 1)]
    schema = {"rater": pl.String, "group": pl.String, "level": pl.Int64, "rank": pl.Float64}
    found = pl.DataFrame(rows, schema=schema, orient="row")
    ranked = found.select("rater", "group", "level")
    if not ranked.height or ranked.is_duplicated().any():
        raise BadInput(f"{path}: expected each rater's order of a group once" if rows else f"{path}: holds no ratings")
    if found.group_by("group").agg(pl.col("rater").n_unique())["rater"].n_unique() > 1:
        raise BadInput(f"{path}: some raters have ranked groups that others have not; give the groups that all ranked")
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
