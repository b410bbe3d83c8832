"""csv and tsv: every record is a row or is named; nothing is swallowed, whoever wrote the file."""

import csv
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.io.formats.chunk import BadRow, Source
from pipeline.io.rows import read_chunks, read_source
from tests.fuzz.run import within

CELLS = st.text(st.sampled_from('ab1,\t"\n\r; 蛋\u2028'), max_size=8)
MANY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows_of(path: Path) -> list[list[str]]:
    """The values of all rows."""
    return [list(row.values()) for chunk in read_chunks(path) for row in chunk.rows]


def skipped(path: Path) -> tuple[list[dict[str, str]], list[BadRow]]:
    """Rows and dropped rows of a file."""
    parts = list(read_source(Source(path=path, skip_bad_rows=True)))
    return [row for part in parts for row in part.rows], [row for part in parts for row in part.bad_rows]


@MANY
@given(
    st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1)),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC, csv.QUOTE_NONE]),
    st.sampled_from([(".csv", ","), (".tsv", "\t")]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_what_python_writes(
    tmp_path: Path, rows: list[list[str]], quoting: int, kind: tuple[str, str], end: str
) -> None:
    """What Python's csv writes comes back as it was, or the file is refused: never fewer rows, never other values."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=kind[1], quoting=quoting, lineterminator=end)
    try:
        writer.writerow([f"c{column}" for column in range(len(rows[0]))])
        writer.writerows(rows)
    except csv.Error:  # what needs quotes cannot be written without
        return
    path = tmp_path / f"a{kind[0]}"
    path.write_text(out.getvalue(), encoding="utf-8", newline="")
    try:
        read = rows_of(path)
    except BadInput:
        assert any("\n" in cell or "\r" in cell or '"' in cell for row in rows for cell in row)
        return
    assert len(read) == len(rows)
    for values, row in zip(read, rows, strict=True):
        # Python does not quote a carriage return where a line feed ends lines: together they are one end of a line
        assert values == row or (end == "\n" and values == [*row[:-1], row[-1].removesuffix("\r")])


@MANY
@given(
    st.lists(st.tuples(CELLS, st.none() | CELLS), min_size=1, max_size=30),
    st.sampled_from(["necessary", "always", "non_numeric"]),
    st.booleans(),
)
def test_what_polars_and_pandas_write(
    tmp_path: Path, rows: list[tuple[str, str | None]], style: str, has_index: bool
) -> None:
    """What polars writes comes back as it was, and so with an index as pandas writes it, which is left out."""
    frame = pl.DataFrame(rows, schema={"text": pl.String, "b": pl.String}, orient="row")
    index = pl.Series("", range(len(rows)))
    path = tmp_path / "a.csv"
    (frame.insert_column(0, index) if has_index else frame).write_csv(path, quote_style=style)  # type: ignore[arg-type]
    try:
        assert rows_of(path) == [[text, other or ""] for text, other in rows]
    except BadInput:  # lines of a text that look like rows
        assert sum((text + (other or "")).count("\n") for text, other in rows) >= 4


def comments(count: int, **changed: str) -> str:
    """A table of numbered comments, some lines replaced: `l5='…'` is line 5."""
    lines = ["id,text", *(f"{number},comment number {number} is here" for number in range(count))]
    for name, line in changed.items():
        lines[int(name[1:]) - 1] = line
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("changed", "kept", "reasons", "where"),
    [
        ({"l102": '100,"comment'}, 999, ["unclosed_quote"], r"line 102, character 5: the quote opened here is not clo"),
        ({"l102": '100,"a "stray" one'}, 999, ["stray_quote"], r"line 102, character 9: found 'stray. one' after a cl"),
        ({"l102": '100,a "stray one'}, 999, ["stray_quote"], r"line 102, character 7: a quote in a field that does n"),
        ({"l102": "100,a,b"}, 999, ["field_count"], "line 102: 3 fields where the header has 2"),
        ({"l102": "100"}, 999, ["field_count"], "line 102: 1 fields where the header has 2"),
        ({"l102": "100,a\0b"}, 999, ["nul_character"], "line 102, character 6: a NUL character"),
        ({"l102": '100,"oops', "l500": '498,the end"'}, 998, ["stray_quote"] * 2, "line 102, character 5: .* 398 line"),
        ({"l102": '100,"oops', "l103": '101,the end"'}, 998, ["stray_quote"] * 2, "line 102, character 5: .* 1 lines"),
    ],
)
def test_a_stray_quote_costs_one_row(
    changed: dict[str, str], kept: int, reasons: list[str], where: str, tmp_path: Path
) -> None:
    """A broken row is named by line and character; skipped, it alone is dropped, and each line is a row or dropped."""
    path = tmp_path / "a.csv"
    path.write_text(comments(1_000, **changed), encoding="utf-8")
    with pytest.raises(BadInput, match=rf"a\.csv, {where}"):
        list(read_chunks(path))
    rows, bad_rows = skipped(path)
    assert (len(rows), [row.reason for row in bad_rows]) == (kept, reasons)
    assert len(rows) + len(bad_rows) == 1_000


@pytest.mark.parametrize("header", ["body;likes", "body\tlikes", '"body; likes"'])
def test_another_separator(header: str, tmp_path: Path) -> None:
    """A header of one column that holds another separator is refused by its name, unless it stands in quotes."""
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\na;1\n", encoding="utf-8")
    if '"' in header:
        assert rows_of(path) == [["a;1"]]
        return
    with pytest.raises(BadInput, match=r"line 1: the separator looks like '(;|\\t)', expected ','; csv has commas"):
        rows_of(path)


def test_texts_of_many_lines_are_no_rows(tmp_path: Path) -> None:
    """Lines of prose inside a quoted field stay its own, in the only column too, also where bad rows are skipped."""
    text = "Dear all,\nyes, I agree\nno, I do not\n\nnot yet, as it is 3, 5 or 7\n12 of us, and more"
    path = tmp_path / "a.csv"
    path.write_text(comments(100) + '100,"' + text + '"\n', encoding="utf-8")
    assert rows_of(path)[-1] == ["100", text]
    path, text = tmp_path / "a.csv", "\n".join(f"line {n}" for n in range(40))
    path.write_text(f'text\na\n"{text}"\nb\n', encoding="utf-8")
    rows, bad_rows = skipped(path)
    assert ([row["text"] for row in rows], bad_rows) == (["a", text, "b"], [])


def test_two_quotes_around_rows_of_free_text(tmp_path: Path) -> None:
    """Where no column is regular, four lines with as many fields as the header are taken for swallowed rows."""
    path = tmp_path / "a.tsv"
    path.write_text("text\tb\n" + 'x\t"oops\n' + "one\ttwo\n" * 5 + 'x\tend"\n', encoding="utf-8")
    with pytest.raises(BadInput, match="line 2, character 3: the quote opened here is closed 6 lines further on"):
        list(read_chunks(path))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (",text\nx,a\n", "column 1 has no name in the header, and here holds 'x'"),
        ("text,\na,b\n", "column 2 has no name in the header, and here holds 'b'"),
        (",".join(f"c{n}" for n in range(20_000)), "20,000 columns, more than 16,384"),
        (",".join(["text", *(f"c{n}" for n in range(9_000)), "text"]), "the column 'text' is there twice"),
    ],
)
def test_bad_headers(content: str, why: str, tmp_path: Path) -> None:
    """A column without a name that is no index, too many columns, and a name twice are refused."""
    (tmp_path / "a.csv").write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=why):
        list(read_chunks(tmp_path / "a.csv"))


def test_an_index_and_an_empty_column_are_left_out(tmp_path: Path) -> None:
    """The index that pandas writes is left out and named, in any order; a column without name and values is too."""
    (tmp_path / "a.csv").write_text(",text,\n7,a,\n3,b,\n", encoding="utf-8")
    source = Source(path=tmp_path / "a.csv")
    assert [row for chunk in read_source(source) for row in chunk.rows] == [{"text": "a"}, {"text": "b"}]
    assert source.ignored == ["the first column, which has no name: a running index, as pandas writes"]


@pytest.mark.parametrize("line", ['a","b', '"a","b', 'x,"""', '"x,y', 'x,"a\nb"'])
def test_broken_quotes_take_linear_time(line: str, tmp_path: Path) -> None:
    """However quotes are broken, a line is read twice at most, and every row is kept or dropped."""
    path, count = tmp_path / "a.csv", 8_000
    path.write_text("text,b\n" + f"{line}\n" * count, encoding="utf-8")
    with within(20.0):  # CPU seconds
        rows, bad_rows = skipped(path)
    assert count / 2 <= len(rows) + len(bad_rows) <= count


def test_real_tables(data: Path) -> None:
    """Every csv and tsv at hand gives what Python's reader gives, row by row."""
    for path in sorted([*data.rglob("*.csv"), *data.rglob("*.tsv")]):
        with path.open(encoding="utf-8-sig", newline="") as file:
            wanted = list(csv.DictReader(file, dialect="excel-tab" if path.suffix == ".tsv" else "excel"))
        read = [row for chunk in read_chunks(path) for row in chunk.rows]
        assert read == [{name: value for name, value in row.items() if name} for row in wanted], path
