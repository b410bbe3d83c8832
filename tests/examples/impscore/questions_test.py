"""Choice questions: the reader, and questions made from graded groups."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.impscore import groups
from tests.examples.sources.writing import jsonl

GOOD = {"reference": "Make me some tea.", "options": ["My hands are so cold.", "That bus is late."], "answer": 0}


def test_a_row_a_question(tmp_path: Path) -> None:
    """Questions come out as they stand; the answer is counted from 0."""
    rows = groups.read_questions(jsonl(tmp_path / "q.jsonl", GOOD, "", GOOD | {"answer": 1}))
    assert rows.rows(named=True) == [GOOD, GOOD | {"answer": 1}]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{", "broken JSON"),
        ([], r"expected a JSON object, found \[\]"),
        (GOOD | {"reference": " "}, "field 'reference' should be a text"),
        (GOOD | {"reference": "\u200b"}, "field 'reference' should be a text that is not blank"),
        (GOOD | {"options": ["one", 2]}, "field 'options' should be a list of texts"),
        (GOOD | {"options": ["one", "one"]}, "field 'options' should be at least two texts, all different"),
        (
            GOOD | {"options": ["one", "\u3164"]},
            "field 'options' should be at least two texts, all different, none blank",
        ),
        (GOOD | {"answer": 2}, "field 'answer' should be the index of the right option, from 0 to 1"),
        (GOOD | {"answer": True}, "from 0 to 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, entry: object, message: str) -> None:
    """What is not a question is bad input that names file, line, field and what was expected."""
    with pytest.raises(BadInput, match=message) as caught:
        groups.read_questions(jsonl(tmp_path / "q.jsonl", GOOD, entry))
    assert "q.jsonl, line 2: " in str(caught.value)


def test_no_file_no_questions_no_text(tmp_path: Path) -> None:
    """A missing file, an empty one and one in another encoding are named."""
    other = tmp_path / "gb.jsonl"
    other.write_bytes(json.dumps(GOOD).encode() + b"\n" + "你好".encode("gb18030"))
    for path, message in (
        (tmp_path / "none.jsonl", "no such file"),
        (jsonl(tmp_path / "e.jsonl", "", ""), "no questions"),
        (other, "line 2: byte 0x.. is not UTF-8"),
    ):
        with pytest.raises(BadInput, match=message):
            groups.read_questions(path)


def graded(count: int) -> pl.DataFrame:
    rows = [(f"g{group}", level, f"{group} at {level}") for group in range(count) for level in (1, 2, 3)]
    return pl.DataFrame(rows, schema=["group", "level", "text"], orient="row")


@settings(deadline=None)
@given(st.integers(2, 12), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_questions_of_groups(count: int, options: int, seed: int) -> None:
    """A group's most explicit sentence asks for its most implicit among those of other groups (IMP-33)."""
    if options > count:
        with pytest.raises(BadInput, match=f"no more than the {count}"):
            groups.build_questions(graded(count), options, seed)
        return
    rows = groups.build_questions(graded(count), options, seed)
    assert rows["group"].to_list() == sorted(f"g{g}" for g in range(count))
    for row in rows.iter_rows(named=True):
        number = row["group"].removeprefix("g")
        assert row["reference"] == f"{number} at 1"
        assert row["options"][row["answer"]] == f"{number} at 3"
        assert len(set(row["options"])) == options
        assert set(row["options"]) <= {f"{g} at 3" for g in range(count)}
    assert rows.equals(groups.build_questions(graded(count).reverse(), options, seed))


def test_the_right_place_is_drawn() -> None:
    """Each place is right about as often; a most implicit sentence of two groups is no wrong option of either."""
    rows = groups.build_questions(graded(300))
    assert all(70 < (rows["answer"] == place).sum() < 130 for place in range(3))
    assert not rows.equals(groups.build_questions(graded(300), seed=1))
    alike = graded(6).with_columns(text=pl.col("text").replace("5 at 3", "4 at 3"))
    for seed in range(5):
        for options in groups.build_questions(alike, 3, seed)["options"]:
            assert len(set(options)) == 3
