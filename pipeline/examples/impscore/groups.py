"""Graded groups: one intent in several wordings, from the most explicit to the most implicit (ImpScore, section 6.1).

The paper's groups are not public. Those of the sample are ours, balanced so that neither length nor punctuation gives
the level away; their order is the writers' judgement.
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
        BadInput: another format, a repeated group, or a repeated sentence in a group, with file and line.
    """
    rows: list[tuple[str, int, str]] = []
    names: set[str] = set()
    for number, entry in read_json_lines(path):
        location = f"{path}, line {number}"
        name, sentences = entry.get("group"), entry.get("sentences")
        if not isinstance(name, str) or not name or name in names:
            raise BadInput(f"{location}: field 'group' should be a name that no other line has")
        names.add(name)
        sentences = check_texts(sentences, f"{location}: field 'sentences'")
        rows += [(name, level, sentence) for level, sentence in enumerate(sentences, 1)]
    if not rows:
        raise BadInput(f"{path}: the file holds no groups")
    return pl.DataFrame(rows, schema={"group": pl.String, "level": pl.Int64, "text": pl.String}, orient="row")


def check_texts(texts: object, location: str) -> list[str]:
    """Return the value of a field; BadInput unless it is a list of at least two texts, all different."""
    if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise BadInput(f"{location} should be a list of texts")
    if len(texts) < 2 or len(set(texts)) < len(texts):
        raise BadInput(f"{location} should hold at least two, all different")
    return texts


def add_split(groups: pl.DataFrame) -> pl.DataFrame:
    """Add `split` by a hash of the group's name: of seven groups one to test, one to validation, five to train.

    A group keeps its split when others are added, so that no model is trained on groups that another was measured on.
    """
    splits = ("test", "validation", "train", "train", "train", "train", "train")
    split_of = {name: splits[zlib.crc32(name.encode()) % 7] for name in groups["group"].unique()}
    return groups.with_columns(split=pl.col("group").replace_strict(split_of, return_dtype=pl.String))


def find_language() -> pl.Expr:
    """Return the language of most sentences of a group, so that one measure compares all of them."""
    return detect_language().mode().sort().first().over("group")


def read_ratings(path: Path, groups: pl.DataFrame) -> pl.DataFrame:
    """Read lines of JSON `{"rater": str, "group": str, "ranks": [one a sentence, 1 the most explicit]}`.

    Equal ranks are ties; all raters should have ranked the same groups, rows of `read`. Returns rater, group, level,
    rank. BadInput with line and field for a fault.
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
        if not isinstance(ranks, list) or len(ranks) != sizes[group] or not {type(r) for r in ranks} <= {int, float}:
            raise BadInput(f"{location}: field 'ranks' should be {sizes[group]} numbers, one a sentence")
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
