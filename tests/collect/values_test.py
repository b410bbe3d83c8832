"""Values are kept exactly or refused, whatever format they come from."""

import sqlite3
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from pipeline.collect.importers import LeftOut, read
from pipeline.collect.sites.record import Comment
from pipeline.errors import BadInput
from tests.support.rows.row_files import WRITERS, write_rows


def comment(path: Path, **options: Any) -> Comment:
    """The only comment of a file."""
    (batch,) = read(path, "mine", {}, None, **options)
    (only,) = batch.page.comments
    return only


@pytest.mark.parametrize("ending", WRITERS)
def test_numbers_in_every_format(ending: str, tmp_path: Path) -> None:
    """A large count is kept to its last digit, a negative one refused, no time made up, and an id that went through a
    floating-point number refused, in every format.
    """
    path = tmp_path / f"a{ending}"
    count = 2**53 + 1 if ending != ".xlsx" else 2**53 - 1  # a spreadsheet's numbers end there
    write_rows(path, {"text": "a", "like_count": count})
    assert (comment(path).like_count, comment(path).created_at) == (count, None)
    write_rows(path, {"text": "a", "like_count": -5})
    with pytest.raises(BadInput, match=r"field 'like_count': expected a count of 0 or more, found '-5'"):
        comment(path)
    write_rows(path, {"text": "a", "comment_id": 1.2345678901234568e17})
    with pytest.raises(BadInput, match=r"field 'comment_id': expected an id as text, found .*lost digits"):
        comment(path)
    write_rows(path, {"text": "a", "comment_id": "a123456789012345678"})
    assert comment(path).comment_id == "a123456789012345678"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"text": ["a", "b"]}, r"field 'text': expected text, found a list .*--map comments="),
        ({"text": {"a": 1}}, "field 'text': expected text, found an object"),
        ({"text": True}, "field 'text': expected text, found true or false"),
        ({"text": b"a"}, "field 'text': expected text, found bytes"),
        ({"text": date(2026, 11, 19)}, "field 'text': expected text, found date"),
        ({"text": float("inf")}, "field 'text': expected text or a number, found inf"),
        ({"text": "a", "context": [1]}, "field 'context': expected text, found a list"),
        ({"text": "a", "like_count": True}, "field 'like_count': expected text, found true or false"),
        ({"text": "a", "like_count": 1e300}, "field 'like_count': .*lost digits"),
        ({"text": "a", "created_at": 45234}, "field 'created_at': .*'45234', which is 1970-"),
        ({"text": "a", "created_at": "1989-12-31"}, "field 'created_at': expected a time from 1990 to tomorrow"),
        ({"text": "a", "created_at": [1]}, r"field 'created_at': expected a time \(epoch or ISO 8601\), found a list"),
    ],
)
def test_values_that_are_no_text(row: dict[str, Any], why: str, tmp_path: Path) -> None:
    """A value of another kind is refused with file, row and field."""
    with pytest.raises(BadInput, match=rf"a\.parquet, row 1, {why}"):
        comment(write_rows(tmp_path / "a.parquet", row))


def test_values_of_parquet(tmp_path: Path) -> None:
    """Decimals and floats are their digits, times are read to the microsecond; NaN, blanks and 0 are none."""
    row = {"text": "a", "thread_id": Decimal("12345678901234567890"), "user": 7.0, "comment_id": "  ", "created_at": 0}
    read_back = comment(write_rows(tmp_path / "a.parquet", row | {"like_count": float("nan")}))
    assert (read_back.thread_id, read_back.user, read_back.comment_id) == ("12345678901234567890", "7", "a.parquet-1")
    assert (read_back.created_at, read_back.like_count) == (None, None)
    path = tmp_path / "a.parquet"
    times = pa.array([1_700_000_000_000_001_999], pa.timestamp("ns"))
    exotic = pa.array([1_700_000_000_000_001_999], pa.duration("ns"))
    pq.write_table(pa.table({"text": ["a"], "created_at": times, "crawled": times, "spent": exotic}), path)
    assert str(comment(path).created_at) == "2023-11-14 22:13:20.000001+00:00"


def test_bad_rows_are_skipped_where_asked(tmp_path: Path) -> None:
    """Broken lines and values are dropped, each with its reason and key; the first of them are told in words."""
    path, left_out = tmp_path / "a.jsonl", LeftOut()
    path.write_text('{"text": "a", "like_count": 1}\n{"text": \n{"text": ["b"]}\n{"text": "c"}\n', encoding="utf-8")
    (batch,) = read(path, "mine", {}, None, skip_bad_rows=True, left_out=left_out)
    assert [one.comment_id for one in batch.page.comments] == ["a.jsonl-1", "a.jsonl-4"]
    assert batch.page.skipped == [("broken_json", "a.jsonl-2"), ("bad_value", "a.jsonl-3")]
    assert [message.partition(", ")[2][:6] for message in left_out.bad_rows] == ["line 2", "row 3,"]


def test_sheets_say_what_they_hold(tmp_path: Path) -> None:
    """Of a workbook hidden sheets are left out by name; errors, repeated headers and cells beyond them are refused."""
    path, left_out = tmp_path / "a.xlsx", LeftOut()
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("seen").write_column(0, 0, ["text", "a"])
        hidden = book.add_worksheet("lists")
        hidden.write_column(0, 0, ["x", "y"])
        hidden.hide()
    assert [len(batch.page.comments) for batch in read(path, None, {}, None, left_out=left_out)] == [1]
    assert left_out.ignored == ["the hidden sheet 'lists'"]
    for header, cell, why in (
        (["text", "text"], "a", "the column 'text' is there twice"),
        (["text"], "#N/A", r"field 'text': expected text, found CellError \(#N/A\)"),
        (["", "text"], "a", "column 1 has no name"),
    ):
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet()
            sheet.write_row(0, 0, header)
            sheet.write_formula(1, 0, "=NA()", None, cell)
        with pytest.raises(BadInput, match=why):
            list(read(path, None, {}, None))


def test_computed_tables_are_left_out(tmp_path: Path) -> None:
    """Views and computed columns of a database are not run, but named."""
    path, left_out = tmp_path / "a.db", LeftOut()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table t (text, big as (printf('%.*c', 1000000, 'x')))")
        connection.execute("insert into t values ('a')")
        connection.execute(
            "create view v as with recursive r(n) as (select 1 union all select n from r) select * from r"
        )
    assert [len(batch.page.comments) for batch in read(path, None, {}, None, left_out=left_out)] == [1]
    assert left_out.ignored == ["the computed column 'big' of table 't'", "the view 'v'"]


def _dictionary(path: Path) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 6_000, pa.int32()), pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table({"text": values}), path, compression="zstd")


def _nulls(path: Path) -> None:
    pq.write_table(pa.table({"text": pa.nulls(10_000_000)}), path, compression="zstd")


def _one_list(path: Path) -> None:
    lists = pa.ListArray.from_arrays([0, 3_000_000], pa.nulls(3_000_000, pa.string()))
    pq.write_table(pa.table({"text": ["a"], "comments": lists}), path)


def test_a_wide_parquet_file_that_is_mostly_empty(tmp_path: Path) -> None:
    """Of a Parquet file only the mapped columns count: hundreds of empty or constant ones beside them are no bomb."""
    count, path = 10_000, tmp_path / "a.parquet"
    constant = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array(["x" * 50]))
    more = {f"null{n}": pa.nulls(count, pa.string()) for n in range(300)} | {f"same{n}": constant for n in range(100)}
    pq.write_table(pa.table({"text": [f"nice hat {n}" for n in range(count)], **more}), path)
    assert sum(len(batch.page.comments) for batch in read(path, None, {}, None)) == count
    assert sum(len(batch.page.comments) for batch in read(path, None, {"text": "text", "user": "null7"}, None)) == count


LONG_IDS = [4_987_654_321_098_765 + 7_919 * n for n in range(8)]  # as Weibo gives comments
LONGER_IDS = [1_234_567_890_123_456_789 + 10_007 * n for n in range(5)]


def _excel(number: int) -> str:
    """A whole number as Excel keeps it: 15 digits, and zeros."""
    digits = str(number)
    return digits[:15] + "0" * (len(digits) - 15)


def _write_ids(path: Path, ids: Sequence[object], column: str = "comment_id") -> None:
    write_rows(path, *({"text": f"nice hat {n}", column: str(value)} for n, value in enumerate(ids)))


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
@pytest.mark.parametrize("ids", [LONG_IDS, LONGER_IDS])
@pytest.mark.parametrize("column", ["comment_id", "user"])
def test_ids_that_a_spreadsheet_cut(name: str, ids: list[int], column: str, tmp_path: Path) -> None:
    """A column whose long ids all end in the zeros that Excel leaves is refused; with a single whole id it is not."""
    _write_ids(tmp_path / name, ["", 7, *map(_excel, ids)], column)
    expected = rf"{name}, row 4, field '{column}': expected ids as text, found '{_excel(ids[0])}'.*export ids as text"
    with pytest.raises(BadInput, match=expected):
        list(read(tmp_path / name, "mine", {}, None, size=3, skip_bad_rows=True))
    _write_ids(tmp_path / name, [*map(_excel, ids), ids[0]], column)
    (batch,) = read(tmp_path / name, "mine", {}, None)
    assert len(batch.page.comments) == len(ids) + 1


@pytest.mark.parametrize(("name", "ids"), [
    ("a.csv", LONG_IDS), ("a.csv", LONGER_IDS),
    ("a.csv", [_excel(n) for n in LONG_IDS[:7]]),  # by chance once in ten million
    ("a.csv", [_excel(LONGER_IDS[0])] * 100),  # an id proves no more for being there often
    ("a.csv", [_excel(n) for n in LONGER_IDS[:4]]),
    ("a.csv", [f"{n}000" for n in range(10**11, 10**11 + 50)]),  # 15 digits are kept
    ("a.jsonl", [_excel(n) for n in LONGER_IDS]),  # which no spreadsheet writes
])  # fmt: skip
def test_ids_that_end_as_they_please(name: str, ids: list[object], tmp_path: Path) -> None:
    """Ids as sites give them pass, zeros that may be there by chance, and those that really are in a jsonl file."""
    _write_ids(tmp_path / name, ids, "user")
    (batch,) = read(tmp_path / name, "mine", {}, None)
    assert [c.user for c in batch.page.comments] == [*map(str, ids)]


def _book(path: Path, sheet: str, texts: str = "") -> None:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("_rels/.rels", f'<r><Relationship Id="a" Type="{kind}/officeDocument" Target="xl/b.xml"/></r>')
        book.writestr("xl/b.xml", f'<w xmlns:r="{kind}"><sheet name="s" r:id="a"/></w>')
        book.writestr(
            "xl/_rels/b.xml.rels",
            f'<r><Relationship Id="a" Type="{kind}/worksheet" Target="odd.bin"/>'
            f'<Relationship Id="b" Type="{kind}/sharedStrings" Target="t.xml"/></r>',
        )
        book.writestr("xl/t.xml", f"<sst>{texts}</sst>")
        head = '<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c></row>'
        book.writestr("xl/odd.bin", f"<w>{head}{sheet}</w>")


@pytest.mark.parametrize(
    ("field", "cell", "why"),
    [
        ("text", "<f>1+1</f><v/>", "a formula without a value"),
        ("text", "<v>520131452013145201</v>", "which has lost digits"),
        ("comment_id", "<v>4.98765432109876E+15</v>", "which has lost digits"),
    ],
)
def test_cells_that_lost_their_value(field: str, cell: str, why: str, tmp_path: Path) -> None:
    """A formula that was never computed and a number that was rounded cost their row alone, which is counted."""
    path, left_out = tmp_path / "a.xlsx", LeftOut()
    _book(path, f'<row r="2"><c r="A2" t="inlineStr"><is><t>b</t></is></c></row><row r="3"><c r="A3">{cell}</c></row>')
    mapping = {"text": "text", field: "text"}
    with pytest.raises(BadInput, match=f"row 3, field 'text': .*{why}"):
        list(read(path, "mine", mapping, None))
    (batch,) = read(path, "mine", mapping, None, skip_bad_rows=True, left_out=left_out)
    assert ([c.text for c in batch.page.comments], batch.page.skipped) == (["b"], [("bad_value", "a.xlsx/s-3")])


def test_characters_that_a_sheet_escapes(tmp_path: Path) -> None:
    """What a sheet writes as _x000A_ is the character; a text that holds such a code escapes its first letter."""
    rows = [("a_x000A_b", "a\nb"), ("_x005F_x0041_", "_x0041_")]
    cells = "".join(
        f'<row r="{n}"><c r="A{n}" t="inlineStr"><is><t>{text}</t></is></c></row>'
        for n, (text, _) in enumerate(rows, 2)
    )
    _book(tmp_path / "a.xlsx", cells)
    (batch,) = read(tmp_path / "a.xlsx", None, {}, None)
    assert [c.text for c in batch.page.comments] == [text for _, text in rows]


def _shared(path: Path) -> None:
    cells = "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(2, 3_000))
    _book(path, cells, f"<si><t>{'x' * 1_000_000}</t></si>")


@pytest.mark.parametrize(
    ("name", "write", "why"),
    [
        ("a.parquet", _dictionary, "unpacks into more than"),
        ("a.parquet", _nulls, "unpacks into more than"),
        ("a.parquet", _one_list, "unpacks into more than"),
        ("a.xlsx", _shared, "unpacks into more than"),
        ("a.xlsx", lambda path: _book(path, '<row r="9"><c r="XFD9"><v>1</v></c></row>'), "beyond the header"),
        ("a.xlsx", lambda path: _book(path, f'<c a="{"x" * 3_000_000}"/>'), "a tag of more than"),
        ("a.xlsx", lambda path: _book(path, '<c r="A2"><v>1</v></c>'), "a cell stands outside of any row"),
        ("a.json", lambda path: path.write_text(f"[{'[],' * 1_000_000}[]]"), "expected a JSON list of objects"),
        ("a.jsonl", lambda path: write_rows(path, {f"k{n}": n for n in range(20_000)}), "more than 16,384 columns"),
        ("a.jsonl", lambda path: path.write_text('{"a":1,' + ",".join(f'"k{n}":1' for n in range(20_000)) + ',"a":2}'),
         "field 'a' is there twice"),
    ],
)  # fmt: skip
def test_small_files_that_stand_for_much(name: str, write: Callable[[Path], Any], why: str, tmp_path: Path) -> None:
    """A small file that would take gigabytes or minutes is refused before it does."""
    write(tmp_path / name)
    with pytest.raises(BadInput, match=why):
        list(read(tmp_path / name, None, {}, None))
