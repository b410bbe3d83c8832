"""Graded groups: the reader, and the balance of those shipped."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline import sample
from pipeline.errors import BadInput
from pipeline.examples.impscore import groups
from pipeline.metrics.impscore.ranking import kendall_tau
from tests.examples.sources.writing import jsonl

GOOD = {"group": "tea", "sentences": ["Make me some tea.", "Is the kettle still warm?", "My hands are so cold."]}


def test_a_row_a_sentence(tmp_path: Path) -> None:
    """Sentences come out with their level, from 1, the most explicit (IMP-31)."""
    rows = groups.read(jsonl(tmp_path / "g.jsonl", GOOD, "", {**GOOD, "group": "more"}))
    assert rows.rows()[:3] == [("tea", level, text) for level, text in enumerate(GOOD["sentences"], 1)]
    assert rows["group"].n_unique() == 2


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{", "line 2: broken JSON"),
        ([], "line 2: expected a JSON object, found \\[\\]"),
        ({}, "field 'group'"),
        ({**GOOD, "group": "tea"}, "no other line has"),
        ({"group": "x", "sentences": "one"}, "a list of texts"),
        ({"group": "x", "sentences": ["one", " "]}, "a list of texts"),
        ({"group": "x", "sentences": ["one"]}, "at least two"),
        ({"group": "x", "sentences": ["one", "one"]}, "all different"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, entry: object, message: str) -> None:
    """What is not a group is bad input that names file, line and what was expected."""
    with pytest.raises(BadInput, match=message) as caught:
        groups.read(jsonl(tmp_path / "g.jsonl", GOOD, entry))
    assert "g.jsonl, line 2" in str(caught.value)


def test_no_file_and_no_groups(tmp_path: Path) -> None:
    """A missing and an empty file are named."""
    with pytest.raises(BadInput, match="no such file"):
        groups.read(tmp_path / "none.jsonl")
    with pytest.raises(BadInput, match="no groups"):
        groups.read(jsonl(tmp_path / "e.jsonl", "", ""))


@pytest.mark.parametrize(("lang", "count"), [("en", 1781), ("zh", 1446)])
def test_the_shipped_groups_are_balanced(lang: str, count: int) -> None:
    """Five levels, all sentences different, and neither length nor question marks tell the level."""
    rows = groups.read(sample.GROUPS[lang])
    assert rows["group"].n_unique() == count
    assert rows["text"].n_unique() == len(rows) == 5 * count
    parts = rows.with_columns(size=pl.col("text").str.len_chars()).partition_by("group")
    assert abs(np.mean([kendall_tau(p["level"].to_list(), p["size"].to_list()) for p in parts])) < 0.06
    lengths = rows.group_by("level").agg(pl.col("text").str.len_chars().mean())["text"]
    assert lengths.max() < 1.1 * lengths.min()
    asks = [sum(bool(re.search("[?？]", t)) for t in rows.filter(level=level)["text"]) for level in range(1, 6)]
    assert max(asks) - min(asks) < count / 5
