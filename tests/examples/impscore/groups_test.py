"""Graded groups: the reader, and the balance of those shipped."""

from pathlib import Path

import pytest

from pipeline.errors import BadInput
from pipeline.examples.impscore import groups
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
        ("{", "line 2: broken JSON"), ([], "line 2: expected a JSON object, found \\[\\]"), ({}, "field 'group'"),
        ({**GOOD, "group": "tea"}, "no other line has"), ({"group": "x", "sentences": ["one", " "]}, "a list of texts"),
        ({"group": "x", "sentences": ["one", "one"]}, "all different"),
        ({"group": "x", "sentences": ["one", "\u200b"]}, "none blank"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(tmp_path: Path, entry: object, message: str) -> None:
    """What is not a group is bad input that names file, line and what was expected."""
    with pytest.raises(BadInput, match=message) as caught:
        groups.read(jsonl(tmp_path / "g.jsonl", GOOD, entry))
    assert "g.jsonl, line 2" in str(caught.value)
