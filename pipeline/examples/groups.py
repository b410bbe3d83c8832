"""Graded groups: one intent said in several ways, from the most explicit to the most implicit (ImpScore, section 6.1).

The paper's own groups are not public with it; those shipped with the sample were written for Undertone, balanced so
that neither length nor punctuation gives the level away. The order is their writers' judgement.
"""

import json
import zlib
from pathlib import Path

import polars as pl

from pipeline.errors import BadInput


def read(path: Path) -> pl.DataFrame:
    """Groups of a JSON Lines file, `{"group": str, "sentences": [from most explicit to most implicit]}` a line.

    Returns:
        A row a sentence: group, level (from 1), text.

    Raises:
        BadInput: naming file and line, for what is not such a line, a group named twice or a sentence twice in one.
    """
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    rows: list[tuple[str, int, str]] = []
    names: set[str] = set()
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as why:
            raise BadInput(f"{where}: broken JSON: {why.msg}") from why
        name, sentences = (
            (entry.get(key) for key in ("group", "sentences")) if isinstance(entry, dict) else (None, None)
        )
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
