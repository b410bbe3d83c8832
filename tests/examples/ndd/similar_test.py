"""Sentence pairs with a similarity: both layouts, errors, and the overlap against a plain table (NDD-11, 13)."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.ndd import pairs
from pipeline.examples.ndd.pairs import OVERLAP, add_overlap, measure_overlap, read_graded
from tests.examples.sources import writing
from tests.support.oracles.overlap_cases import measure_longest

words = st.lists(st.sampled_from("abcA"), min_size=1, max_size=9)


@given(words, words)
def test_overlap_is_the_table_s(first: list[str], second: list[str]) -> None:
    """The longest common subsequence over the shorter sentence, whichever comes first, capitals as they stand."""
    expected = measure_longest(first, second) / min(len(first), len(second))
    assert measure_overlap(first, second) == measure_overlap(second, first) == expected


def test_overlap_by_hand() -> None:
    """Three and four of the five words of the shorter one, in order; more than 64 words; no words are refused."""
    assert measure_overlap([*"THcat"], [*"hcxayzt"]) == 3 / 5
    assert measure_overlap([*"Hcat."], [*"hxcayt."]) == OVERLAP == 4 / 5
    assert measure_overlap([*"ab"] * 100, [*"ba"] * 70) == 1
    assert measure_overlap([*"ab"], [*"xyz"]) == 0
    with pytest.raises(ValueError, match="two sentences with words"):
        measure_overlap([], ["a"])


def test_csv(tmp_path: Path) -> None:
    """Quoted commas, quotes and line ends stay in sentences; a pair is named by the line where it begins."""
    text = '"Well, it rained.","He said ""no"".",2.5\r\n\r\n"Two\nlines",一 条,0\nrain,snow,5\n'
    rows, dropped = read_graded(writing.text(tmp_path / "a.csv", text))
    assert rows.rows() == [
        ("a.csv:1", "Well, it rained.", 'He said "no".', 2.5, "en", ["Well", ",", "it", "rained", "."],
         ["He", "said", '"', "no", '"', "."]),
        ("a.csv:3", "Two\nlines", "一 条", 0.0, "en", ["Two", "lines"], ["一", "条"]),
        ("a.csv:5", "rain", "snow", 5.0, "en", ["rain"], ["snow"]),
    ]  # fmt: skip
    assert dropped.is_empty()


def test_jsonl(tmp_path: Path) -> None:
    """The language is what the file says, else what the script does; sentences without words are dropped."""
    entries = [
        {"one": "下雨了", "other": "下雪了", "similarity": 2},
        {"one": "rain", "other": "Regen", "similarity": 4.5, "lang": "de"},
        {"one": " ", "other": "rain", "similarity": 0},
    ]
    rows, dropped = read_graded(
        writing.text(tmp_path / "a.jsonl", "".join(json.dumps(entry) + "\n" for entry in entries))
    )
    assert rows.select("pair_id", "lang", "one_words", "similarity").rows() == [
        ("a.jsonl:1", "zh", ["下", "雨", "了"], 2.0), ("a.jsonl:2", "de", ["rain"], 4.5),
    ]  # fmt: skip
    assert dropped.rows() == [("no_words", "a.jsonl:3")]
    assert add_overlap(rows)["overlap"].to_list() == [2 / 3, 0.0]
    rows = add_overlap(read_graded(writing.text(tmp_path / "a.csv", "")).rows)
    assert rows.schema == {**pairs.GRADED_SCHEMA, "overlap": pl.Float64}
    assert rows.is_empty()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.csv", "a,b,1\nc,d\n", "a.csv, line 2: expected 3 fields as in the first row, found 2"),
        ("a.csv", "a,b,1\nc,d,5.1\n", "a.csv, line 2: field 'similarity' should be a number from 0 to 5, found '5.1'"),
        ("a.csv", "a,b,nan\n", "a.csv, line 1: field 'similarity'"),
        ("a.jsonl", '{"one": "a", "other": 3, "similarity": 1}', "a.jsonl, line 1: field 'other' should be a text"),
        ("a.jsonl", '{"one": "a", "other": "b", "similarity": true}', "field 'similarity' should be a number"),
        ("a.jsonl", '{"one": "a", "other": "b"}', "found None"),
        ("a.jsonl", '{"one": "a", "other": "b", "similarity": 1, "lang": 1}', "field 'lang' should be a text"),
        ("a.tsv", "a\tb\t1\n", "expected the name of a csv or jsonl file"),
    ],
)  # fmt: skip
def test_bad_input(tmp_path: Path, name: str, text: str, why: str) -> None:
    """File, line and field are named, with what was found."""
    with pytest.raises(BadInput, match=why):
        read_graded(writing.text(tmp_path / name, text))


def test_stsb(data: Path) -> None:
    """Numbers of STS-B's pairs are as published (5,749 and 1,500); those of the supervised test were counted here."""
    parts = [read_graded(data / "stsb" / f"stsb-en-{part}.csv") for part in ("train", "dev")]
    assert [(len(part.rows), len(part.dropped)) for part in parts] == [(5749, 0), (1500, 0)]
    rows = add_overlap(pl.concat([part.rows for part in parts]))
    similar_pairs = rows.filter(pl.col("overlap") >= OVERLAP)
    assert len(similar_pairs) == 1265
    assert similar_pairs["similarity"].mean() == pytest.approx(3.584, abs=5e-4)
    assert rows["similarity"].mean() == pytest.approx(2.631, abs=5e-4)
