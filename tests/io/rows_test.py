"""Reading files of every format in chunks, and saying clearly what cannot be read."""

from pathlib import Path

import polars as pl
import pytest

from pipeline import left_out
from pipeline.commands.terminal import files
from pipeline.errors import BadInput
from pipeline.examples.sources.files import read_table
from pipeline.io.rows import number_rows, read_chunks
from tests.support.rows.row_files import WRITERS, write_rows

ROWS = [{"id": "9007199254740993", "text": "一，\n二"}, {"id": "2", "text": '"三"'}, {"id": "3", "text": "four"}]


@pytest.mark.parametrize("ending", WRITERS)
def test_every_format_gives_the_same_rows(ending: str, tmp_path: Path) -> None:
    """Long ids, newlines and quotes come out of each format as they went in, two rows at a time."""
    path = write_rows(tmp_path / f"a#b 100%{ending}", *ROWS)
    found = list(read_chunks(path, size=2))
    assert [{"id": r["id"], "text": r["text"]} for chunk in found for r in chunk.rows] == ROWS
    assert [len(chunk.rows) for chunk in found] == [2, 1]
    first = 2 if ending in (".csv", ".tsv", ".xlsx") else 1  # line 1 of a table is its header
    assert [chunk.numbers[0] for chunk in found] == [first, first + 2]


def test_numbers_of_a_sheet_come_as_text(tmp_path: Path) -> None:
    """A cell that holds a number gives its digits, not a rounded number; a row has its number in the sheet."""
    path = write_rows(tmp_path / "a.xlsx", {"id": None, "likes": None}, {"id": 5012345678901234, "likes": 3})
    assert list(number_rows(path)) == [(3, {"id": "5012345678901234", "likes": "3"})]


def test_lines_of_text(tmp_path: Path) -> None:
    """A text file is one comment a line; one longer than Python's csv limit of 131,072 characters is read from csv."""
    path = tmp_path / "a.txt"
    path.write_bytes("一\r\n二\n".encode())
    assert next(read_chunks(path)).rows == [{"text": "一"}, {"text": "二"}]
    path = tmp_path / "a.csv"
    path.write_text(f"text\n{'长' * 200_000}\n", encoding="utf-8")
    assert len(next(read_chunks(path)).rows[0]["text"]) == 200_000


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-8-sig"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    """The encoding is the one said; a byte-order mark is no part of the first column's name."""
    path = tmp_path / "a.csv"
    path.write_text("text\n蛋挞\n", encoding=encoding)
    assert next(read_chunks(path, encoding)).rows == [{"text": "蛋挞"}]


GOOD = '{"text": "好"}\n'


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.csv", b"", "a.csv: the file is empty; expected rows"),
        ("a.csv", b"text\n", "a.csv: the file holds no rows"),
        ("a.csv", "text\n蛋\n".encode("gb18030"), r"a.csv, line 2: byte 0x\w\w is not UTF-8; .*--encoding"),
        ("a.jsonl", (GOOD * 6 + '{"text": \n').encode(), "a.jsonl, line 7: broken JSON at character"),
        ("a.jsonl", b'"text"\n', 'a.jsonl, line 1: expected a JSON object, found "text"'),
        ("a.json", b'[\n{"a": 1},\n{"a"}]', r"a.json, line 3: broken JSON at character 5: .*\.jsonl"),
        ("a.json", b'{"a": 1}', "a.json: expected a JSON list of objects"),
        ("a.parquet", b"PAR1", "a.parquet: not a readable Parquet file"),
        ("a.xlsx", b"PK", "a.xlsx: not a readable xlsx file"),
        ("a.db", b"not a database at all", "a.db: not a readable SQLite file"),
        ("a.doc", b"x", "a.doc: cannot read .doc; expected .csv, "),
        ("a", b"x", "a: cannot read a file without an ending"),
    ],
)
def test_bad_files(name: str, content: bytes, why: str, tmp_path: Path) -> None:
    """What cannot be read is one BadInput with the file, the line and what was expected."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=why):
        list(read_chunks(tmp_path / name))


FORMULAS = ["- Are you well?", "'=1+1", "''@you", "+ more", "it's plain", "-5", "'tis", ""]


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_texts_that_begin_as_formulas_come_back(ending: str, tmp_path: Path) -> None:
    """Written and read again, in chunks and as a data set, each text is as it was; both sides count the apostrophes."""
    left_out.clear()
    path = tmp_path / f"texts{ending}"
    files.write_table(pl.DataFrame({"text": FORMULAS, "id": range(8)}), path)
    assert [row["text"] for chunk in read_chunks(path, size=2) for row in chunk.rows] == FORMULAS
    assert read_table([path], {"text": ("text",)})["text"].to_list() == FORMULAS
    written, read = left_out.list_lines()[:2]
    assert written.endswith("(.jsonl and .parquet need none); texts: 4")
    assert read == f"{path}: removed the apostrophe that csv has before a formula character: 4 cells"


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_column_with_a_bare_formula_was_not_defused(ending: str, tmp_path: Path) -> None:
    """An apostrophe stays where another cell of the column, even far below, begins as a formula."""
    rows = [{"text": "'- quoted", "note": "'=1"}, {"text": "b", "note": "-5"}, {"text": "- bare", "note": "c"}]
    path = write_rows(tmp_path / f"texts{ending}", *rows)
    texts = [tuple(row.values()) for chunk in read_chunks(path, size=1) for row in chunk.rows]
    assert texts == [("'- quoted", "=1"), ("b", "-5"), ("- bare", "c")]
