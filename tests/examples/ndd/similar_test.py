"""Sentence pairs with a similarity: both layouts, errors, and the overlap against a plain table (NDD-11, 13)."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.ndd import similar
from pipeline.examples.ndd.similar import OVERLAP, add_overlap, overlap, read

words = st.lists(st.sampled_from("abcA"), min_size=1, max_size=9)


def written(path: Path, text: str) -> Path:
    """The file with a text in it."""
    path.write_text(text, encoding="utf-8", newline="")
    return path


def longest(one: list[str], other: list[str]) -> int:
    """Length of the longest common subsequence by the textbook's table."""
    above = [0] * (len(other) + 1)
    for a in one:
        row = [0]
        for j, b in enumerate(other):
            row.append(above[j] + 1 if a == b else max(above[j + 1], row[j]))
        above = row
    return above[-1]


@given(words, words)
def test_overlap_is_the_table_s(one: list[str], other: list[str]) -> None:
    """The longest common subsequence over the shorter sentence, whichever comes first, capitals as they stand."""
    assert overlap(one, other) == overlap(other, one) == longest(one, other) / min(len(one), len(other))


@given(words, st.data())
def test_overlap_of_a_part_is_one(one: list[str], data: st.DataObject) -> None:
    """What is left when words are struck out overlaps fully; sentences without a common word do not."""
    keep = data.draw(st.lists(st.booleans(), min_size=len(one), max_size=len(one)).filter(any))
    assert overlap(one, [word for word, kept in zip(one, keep, strict=True) if kept]) == 1
    assert overlap(one, ["x"] * 3) == 0


def test_overlap_by_hand() -> None:
    """Three and four of the five words of the shorter one, in order; more than 64 words; no words are refused."""
    assert overlap([*"THcat"], [*"hcxayzt"]) == 3 / 5
    assert overlap([*"Hcat."], [*"hxcayt."]) == OVERLAP == 4 / 5
    assert overlap([*"ab"] * 100, [*"ba"] * 70) == 1
    with pytest.raises(ValueError, match="two sentences with words"):
        overlap([], ["a"])


def test_csv(tmp_path: Path) -> None:
    """Quoted commas, quotes and line ends stay in sentences; a pair is named by the line where it begins."""
    path = written(
        tmp_path / "a.csv", '"Well, it rained.","He said ""no"".",2.5\r\n\r\n"Two\nlines",一 条,0\nrain,snow,5\n'
    )
    found = read(path)
    assert found.rows.rows() == [
        ("a.csv:1", "Well, it rained.", 'He said "no".', 2.5, "en", ["Well", ",", "it", "rained", "."],
         ["He", "said", '"', "no", '"', "."]),
        ("a.csv:3", "Two\nlines", "一 条", 0.0, "en", ["Two", "lines"], ["一", "条"]),
        ("a.csv:5", "rain", "snow", 5.0, "en", ["rain"], ["snow"]),
    ]  # fmt: skip
    assert len(found.dropped) == 0


def test_jsonl(tmp_path: Path) -> None:
    """The language is what the file says, else what the script does; words are cut as told; empty ones are dropped."""
    entries = [
        {"one": "下雨 了", "other": "下雪 了", "similarity": 2},
        {"one": "rain", "other": "Regen", "similarity": 4.5, "lang": "de"},
        {"one": " ", "other": "rain", "similarity": 0},
    ]
    path = written(tmp_path / "a.jsonl", "".join(json.dumps(entry) + "\n" for entry in entries))
    found = read(path, cut=str.split)
    assert found.rows.select("pair_id", "lang", "one_words", "similarity").rows() == [
        ("a.jsonl:1", "zh", ["下雨", "了"], 2.0), ("a.jsonl:2", "de", ["rain"], 4.5),
    ]  # fmt: skip
    assert found.dropped.rows() == [("no_words", "a.jsonl:3")]
    assert add_overlap(found.rows)["overlap"].to_list() == [0.5, 0.0]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.csv", "a,b,1\nc,d\n", "a.csv, line 2: expected two sentences and their similarity, found 2 fields"),
        ("a.csv", "a,b,1\nc,d,5.1\n", "a.csv, line 2: field 'similarity' should be a number from 0 to 5, found '5.1'"),
        ("a.csv", "a,b,nan\n", "a.csv, line 1: field 'similarity'"),
        ("a.csv", "a,b,high\n", "a.csv, line 1: field 'similarity'"),
        ("a.csv", 'a,b,1\n"a"b,c,1\n', "a.csv, line 2: broken csv"),
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
        read(written(tmp_path / name, text))


def test_an_absent_and_an_empty_file(tmp_path: Path) -> None:
    """The first is refused, the second has no pairs, and both columns all the same."""
    with pytest.raises(BadInput, match="there is no such file"):
        read(tmp_path / "a.csv")
    found = add_overlap(read(written(tmp_path / "a.csv", "")).rows)
    assert found.schema == {**similar.SCHEMA, "overlap": pl.Float64}
    assert len(found) == 0


def test_stsb(data: Path) -> None:
    """Numbers of STS-B's pairs are as published (5,749 and 1,500); those of the supervised test were counted here."""
    found = [read(data / "stsb" / f"stsb-en-{part}.csv") for part in ("train", "dev")]
    assert [(len(each.rows), len(each.dropped)) for each in found] == [(5749, 0), (1500, 0)]
    rows = add_overlap(pl.concat([each.rows for each in found]))
    chosen = rows.filter(pl.col("overlap") >= OVERLAP)
    assert len(chosen) == 1265
    assert chosen["similarity"].mean() == pytest.approx(3.584, abs=5e-4)
    assert rows["similarity"].mean() == pytest.approx(2.631, abs=5e-4)
