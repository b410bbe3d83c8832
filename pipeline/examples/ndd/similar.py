"""Sentence pairs with their similarity by people, 0 to 5, and their overlap (NDD, section 3; NDD-11, 13).
STS-B as csv without a header (sentence, sentence, similarity), and our own jsonl with one, other, similarity and
optionally lang. Of STS-B's 7,249 train and development pairs 1,265 overlap by .8 or more: the supervised test.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.ndd.compression import Read
from pipeline.examples.recam.items import DROPPED
from pipeline.io.fields import check_field, check_text
from pipeline.io.lines import read_json_lines, read_records
from pipeline.text.language import detect_language
from pipeline.text.segment import UNIT

SCHEMA: dict[str, pl.DataType] = {
    "pair_id": pl.String(), "one": pl.String(), "other": pl.String(), "similarity": pl.Float64(), "lang": pl.String(),
    "one_words": pl.List(pl.String()), "other_words": pl.List(pl.String()),
}  # fmt: skip
HIGHEST = 5.0  # similarity
OVERLAP = 0.8  # of the supervised test, or more (section 3)


def read(path: Path) -> Read:
    """Read pairs of a csv or jsonl file, as `<file name>:<line>`; those without words are dropped as no_words."""
    readers = {".csv": _read_csv, ".jsonl": _read_jsonl}
    if path.suffix not in readers:
        raise BadInput(f"{path}: expected the name of a csv or jsonl file")
    rows, dropped = [], []
    for line, (first_text, second_text, similarity, lang) in readers[path.suffix](path):
        name, words = f"{path.name}:{line}", (UNIT.findall(first_text), UNIT.findall(second_text))
        if all(words):
            rows.append((name, first_text, second_text, similarity, lang, *words))
        else:
            dropped.append(("no_words", name))
    pairs = pl.DataFrame(rows, SCHEMA, orient="row").with_columns(lang=pl.coalesce("lang", detect_language("one")))
    return Read(pairs, pl.DataFrame(dropped, DROPPED, orient="row"))


_Row = tuple[str, str, float, str | None]


def _read_csv(path: Path) -> Iterator[tuple[int, _Row]]:
    for line, row in read_records(path, ","):
        location = f"{path}, line {line}"
        if len(row) != 3:
            raise BadInput(f"{location}: expected two sentences and their similarity, found {len(row)} fields")
        yield line, (row[0].strip(), row[1].strip(), _parse_similarity(row[2], location), None)


def _read_jsonl(path: Path) -> Iterator[tuple[int, _Row]]:
    for line, entry in read_json_lines(path):
        location = f"{path}, line {line}"
        similarity = _parse_similarity(entry.get("similarity"), location)
        first_text, second_text = (check_text(entry, name, location, may_be_blank=True) for name in ("one", "other"))
        lang = check_text(entry, "lang", location, may_be_blank=True) if entry.get("lang") is not None else None
        yield line, (first_text, second_text, similarity, lang)


def _parse_similarity(value: object, location: str) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    expected = f"a number from 0 to {HIGHEST:g}"
    check_field({"similarity": value}, "similarity", location, expected, 0 <= number <= HIGHEST)
    return number


def measure_overlap(first_words: Sequence[str], second_words: Sequence[str]) -> float:
    """Compute the share of the shorter sentence's words in the longest common subsequence: from 0 to 1.
    Capitals count, and marks are words. Bit i of the row is 0 where the word at i of `first_words` makes the
    subsequence longer (Hyyrö, 2004). A sentence without words is a ValueError.
    """
    if not first_words or not second_words:
        raise ValueError("expected two sentences with words")
    places: dict[str, int] = defaultdict(int)
    for i, word in enumerate(first_words):
        places[word] |= 1 << i
    full = row = (1 << len(first_words)) - 1
    for word in second_words:
        hit = row & places.get(word, 0)
        row = ((row + hit) | (row - hit)) & full
    return (len(first_words) - row.bit_count()) / min(len(first_words), len(second_words))


def add_overlap(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `overlap` to pairs with one_words and other_words."""
    values = [measure_overlap(*words) for words in pairs.select("one_words", "other_words").iter_rows()]
    return pairs.with_columns(overlap=pl.Series(values, dtype=pl.Float64))
