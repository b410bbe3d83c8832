"""Graded groups: the reader, and the balance of those shipped."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline import sample
from pipeline.errors import BadInput
from pipeline.examples.impscore import groups
from pipeline.metrics.impscore.ranking import kendall_tau

GOOD = {"group": "tea", "sentences": ["Make me some tea.", "Is the kettle still warm?", "My hands are so cold."]}


def write(path: Path, *entries: object) -> Path:
    """A file with a line for each entry."""
    path.write_text("\n".join(e if isinstance(e, str) else json.dumps(e) for e in entries), encoding="utf-8")
    return path


def test_a_row_a_sentence(tmp_path: Path) -> None:
    """Sentences come out with their level, from 1, the most explicit (IMP-31)."""
    found = groups.read(write(tmp_path / "g.jsonl", GOOD, "", {**GOOD, "group": "more"}))
    assert found.rows()[:3] == [("tea", level, text) for level, text in enumerate(GOOD["sentences"], 1)]
    assert found["group"].n_unique() == 2


@pytest.mark.parametrize(
    ("entry", "said"),
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
def test_a_bad_line_is_named(tmp_path: Path, entry: object, said: str) -> None:
    """What is not a group is bad input that names file, line and what was expected."""
    with pytest.raises(BadInput, match=said) as caught:
        groups.read(write(tmp_path / "g.jsonl", GOOD, entry))
    assert "g.jsonl, line 2" in str(caught.value)


def test_no_file_and_no_groups(tmp_path: Path) -> None:
    """A missing and an empty file are named."""
    for path, said in ((tmp_path / "none.jsonl", "no such file"), (write(tmp_path / "e.jsonl", "", ""), "no groups")):
        with pytest.raises(BadInput, match=said):
            groups.read(path)


@pytest.mark.parametrize(("lang", "count"), [("en", 941), ("zh", 606)])
def test_the_shipped_groups_are_balanced(lang: str, count: int) -> None:
    """Five levels, all sentences different, and neither length nor question marks tell the level."""
    found = groups.read(sample.GROUPS[lang])
    assert found["group"].n_unique() == count
    assert found["text"].n_unique() == len(found) == 5 * count
    parts = found.with_columns(size=pl.col("text").str.len_chars()).partition_by("group")
    assert abs(np.mean([kendall_tau(p["level"].to_list(), p["size"].to_list()) for p in parts])) < 0.06
    lengths = found.group_by("level").agg(pl.col("text").str.len_chars().mean())["text"]
    assert lengths.max() < 1.1 * lengths.min()
    asks = [sum(bool(re.search("[?？]", t)) for t in found.filter(level=level)["text"]) for level in range(1, 6)]
    assert max(asks) - min(asks) < count / 5
