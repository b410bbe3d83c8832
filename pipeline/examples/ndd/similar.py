"""Sentence pairs with the similarity that people saw in them, and how far they overlap (NDD, section 3; NDD-11, 13).

Two layouts: STS-B as stsb-multi-mt has it, csv without a header (sentence, sentence, similarity), and our own, jsonl
with one, other, similarity and perhaps lang. Similarity goes from 0 to 5 in both.

Of the 7,249 English pairs of STS-B's train and development parts, with 11.9 words a sentence, 1,265 overlap by .8 or
more of the shorter sentence, which is the paper's supervised test.
"""

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.recam.items import DROPPED
from pipeline.io.lines import read_json_lines, read_lines
from pipeline.text.language import detect_language
from pipeline.text.segment import UNIT

SCHEMA: dict[str, pl.DataType] = {
    "pair_id": pl.String(), "one": pl.String(), "other": pl.String(), "similarity": pl.Float64(), "lang": pl.String(),
    "one_words": pl.List(pl.String()), "other_words": pl.List(pl.String()),
}  # fmt: skip
HIGHEST = 5.0  # similarity
OVERLAP = 0.8  # of the supervised test, or more (section 3)

Cut = Callable[[str], list[str]]


class Read(NamedTuple):
    """Pairs that are kept and those that are not; together they are the pairs that came in."""

    rows: pl.DataFrame
    """pair_id (`<file name>:<line>`), one, other, similarity (0 to 5), lang, one_words, other_words (at least one)."""
    dropped: pl.DataFrame
    """reason (no_words), row_key (the pair_id)."""


def read(path: Path, cut: Cut = UNIT.findall) -> Read:
    """Pairs of a csv or jsonl file, by the end of its name.

    Args:
        path: the file.
        cut: the words of a sentence; by default Chinese characters, words of other writing, and marks.

    Raises:
        BadInput: naming file, line and field; a file that is neither csv nor jsonl.
    """
    readers = {".csv": _of_csv, ".jsonl": _of_jsonl}
    if path.suffix not in readers:
        raise BadInput(f"{path}: expected the name of a csv or jsonl file")
    rows, dropped = [], []
    for line, (one, other, similarity, lang) in readers[path.suffix](path):
        name, words = f"{path.name}:{line}", (cut(one), cut(other))
        if all(words):
            rows.append((name, one, other, similarity, lang, *words))
        else:
            dropped.append(("no_words", name))
    told = pl.coalesce("lang", detect_language("one"))
    return Read(pl.DataFrame(rows, SCHEMA, orient="row").with_columns(lang=told),
                pl.DataFrame(dropped, DROPPED, orient="row"))  # fmt: skip


_Row = tuple[str, str, float, str | None]


def _of_csv(path: Path) -> Iterator[tuple[int, _Row]]:
    found = csv.reader((text for _, text in read_lines(path)), strict=True)
    line = 1
    try:
        for row in found:
            where = f"{path}, line {line}"
            if row and len(row) != 3:
                raise BadInput(f"{where}: expected two sentences and their similarity, found {len(row)} fields")
            if row:
                yield line, (row[0].strip(), row[1].strip(), _similarity(row[2], where), None)
            line = found.line_num + 1
    except csv.Error as why:
        raise BadInput(f"{path}, line {line}: broken csv: {why}") from why


def _of_jsonl(path: Path) -> Iterator[tuple[int, _Row]]:
    for line, entry in read_json_lines(path):
        where = f"{path}, line {line}"
        similarity = _similarity(entry.get("similarity"), where)
        lang = _text(entry, "lang", where) if entry.get("lang") is not None else None
        yield line, (_text(entry, "one", where), _text(entry, "other", where), similarity, lang)


def _similarity(value: object, where: str) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= HIGHEST:
        raise BadInput(f"{where}: field 'similarity' should be a number from 0 to {HIGHEST:g}, found {value!r:.60}")
    return number


def _text(entry: dict[str, Any], field: str, where: str) -> str:
    value = entry.get(field)
    if not isinstance(value, str):
        raise BadInput(f"{where}: field {field!r} should be a text, found {value!r:.60}")
    return value.strip()


def overlap(one: Sequence[str], other: Sequence[str]) -> float:
    """Share of the shorter sentence's words that are in the longest common subsequence: from 0 to 1.

    Capitals count, and marks are words. Bit i of the row is 0 where one word more of `one`, the one at i, makes the
    subsequence longer (Hyyrö, 2004).

    Raises:
        ValueError: a sentence without words.
    """
    if not one or not other:
        raise ValueError("expected two sentences with words")
    places: dict[str, int] = defaultdict(int)
    for i, word in enumerate(one):
        places[word] |= 1 << i
    full = row = (1 << len(one)) - 1
    for word in other:
        hit = row & places.get(word, 0)
        row = ((row + hit) | (row - hit)) & full
    return (len(one) - row.bit_count()) / min(len(one), len(other))


def with_overlap(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `overlap` to pairs with one_words and other_words."""
    values = [overlap(*both) for both in pairs.select("one_words", "other_words").iter_rows()]
    return pairs.with_columns(overlap=pl.Series(values, dtype=pl.Float64))
