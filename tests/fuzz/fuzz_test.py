"""The fuzz suite in small: a few thousand inputs; `make fuzz` takes a million. And what it once found, by name."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st

from pipeline.collect import importers
from pipeline.collect.sites.adapters import parse
from pipeline.errors import BadInput, SchemaDrift
from pipeline.io.lines import MAX_DEPTH, Limits, parse_json, parse_value, read_lines, read_text
from pipeline.io.rows import read_chunks
from pipeline.io.spreadsheets import escape_formula, unescape_formula
from pipeline.io.visible import escape_invisible, unescape_invisible
from tests.fuzz import run
from tests.fuzz.corpus import workbook
from tests.fuzz.run import Finding, fuzz
from tests.fuzz.targets import TARGETS, Target

INPUTS = 4_000  # over all targets


def test_the_shares_come_to_a_million() -> None:
    """What `make fuzz` does by default is at least a million inputs."""
    assert sum(target.share for target in TARGETS.values()) >= 1_000_000


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_our_own_errors(name: str, tmp_path: Path) -> None:
    """Each target reads hostile inputs, or refuses them by an error of `pipeline.errors`."""
    shares = sum(target.share for target in TARGETS.values())
    outcomes = [*fuzz(name, max(5, INPUTS * TARGETS[name].share // shares), 1, tmp_path)]
    assert [outcome for outcome in outcomes if isinstance(outcome, Finding)] == []
    assert len(outcomes) >= 5


def test_a_finding_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An error that is none of ours is a finding with its target, the input's number and the place."""
    monkeypatch.setitem(TARGETS, "bad", Target(1, lambda rng, _: 1 // (rng.random() < 2 and 0)))
    first, *_ = fuzz("bad", 3, 1, tmp_path)
    assert isinstance(first, Finding)
    assert (first.target, first.number) == ("bad", 0)
    assert first.what.startswith("ZeroDivisionError")


@pytest.mark.parametrize("end", ["os._exit(0)", "os.abort()", "os.kill(os.getpid(), 9)"])
def test_a_dead_worker_is_a_finding_and_the_next_goes_on(
    end: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What an input does to the process is a finding with its number; all other inputs are tried."""
    script = tmp_path / "worker.py"
    script.write_text(
        "import json, os, sys\n"
        "first, count = (int(sys.argv[sys.argv.index(name) + 1]) for name in ('--from', '--inputs'))\n"
        f"for number in range(first, first + count):\n    if number == 12:\n        {end}\n"
        "    os.write(1, json.dumps('read').encode() + b'\\n')\n"
    )
    monkeypatch.setattr(run, "__file__", str(script))
    totals = run.fuzz_in_workers("clean", 10, 1, tmp_path, first=8)
    assert totals.outcomes == {"read": 9, "finding": 1}
    (finding,) = totals.findings.values()
    assert (finding.target, finding.number) == ("clean", 12)


# ------------------------------------------------------------------------------------------------- what it once found


SHEET = "worksheets/sheet1.xml"


@pytest.mark.parametrize("cell", ["XFD1048576", "A99999999999999999999", "a5000000000", "AAAAAAAAAAAA9"])
def test_a_cell_far_off_takes_no_process_down(tmp_path: Path, cell: str) -> None:
    """A cell that is not in its row is refused; a sheet laid out up to it took half a terabyte."""
    path = tmp_path / "far.xlsx"
    workbook(path, (SHEET, b'r="A2"', f'r="{cell}"'.encode()))
    with pytest.raises(BadInput, match=r"far\.xlsx, sheet .*is no (cell of this row|row of a sheet)"):
        list(read_chunks(path))


def test_parquet_beyond_limits(tmp_path: Path) -> None:
    """A Parquet column that unpacks into more than the limit, or a time beyond Python, is refused."""
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"text": ["a" * 4_000_000]}), path, compression="zstd")
    assert path.stat().st_size < 10_000
    with pytest.raises(BadInput, match=r"a column of a row group unpacks to [\d,]+ bytes"):
        list(read_chunks(path, limits=Limits(whole=1_000_000)))
    assert len(next(read_chunks(path)).rows) == 1
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a"], "created_at": pa.array([2**45], pa.timestamp("s"))}), path)
    with pytest.raises(BadInput, match="not a readable Parquet file"):
        list(importers.read(path, None, {}, None))


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    """A line, a cell and a whole file longer than their limits are refused by name, line and setting."""
    path = tmp_path / "long.jsonl"
    path.write_text('{"text": "a"}\n{"text": "' + "a" * 100 + '"}\n', encoding="utf-8")
    with pytest.raises(BadInput, match=r"long\.jsonl, line 2: longer than 50 characters.*UNDERTONE_IMPORT_CHARACTERS"):
        list(read_chunks(path, limits=Limits(line=50)))
    with pytest.raises(BadInput, match=r"long\.jsonl: 127 bytes, more than the 60.*UNDERTONE_IMPORT_BYTES=127"):
        read_text(path, limits=Limits(whole=60))
    table = tmp_path / "cell.csv"
    table.write_text('text\n"' + "a\n" * 60 + '"\n', encoding="utf-8")
    with pytest.raises(BadInput, match="longer than 50 characters"):
        list(read_chunks(table, limits=Limits(line=50)))


@pytest.mark.parametrize("column", ["create table g (text as (hex(zeroblob(9000))), a)", "create table g (a)"])
def test_hostile_databases_are_read_only_as_tables(tmp_path: Path, column: str) -> None:
    """Views and triggers are not run and nothing is written; a value too large is refused, stored or computed."""
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as con:
        con.executescript(
            "create table t (text); insert into t values ('a'); create view v as select 1 as text;"
            "create trigger r after insert on t begin delete from t; end;"
        )
    before = path.read_bytes()
    assert [chunk.table for chunk in read_chunks(path)] == ["t"]
    assert path.read_bytes() == before
    with closing(sqlite3.connect(path)) as con:
        con.execute(column)
        con.execute("insert into g (a) values (?)", ["a" * 5000])
        con.commit()
    with pytest.raises(BadInput, match=r"x\.db: not a readable SQLite file: .*too big"):
        list(read_chunks(path, limits=Limits(line=4000)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"text": "a", "text": "b"}', "field 'text' is there twice in one object"),
        ('{"a": ' + "1" * 5000 + "}", "Exceeds the limit"),
        ("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), f"nested deeper than {MAX_DEPTH}"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 300 + "1" + "}" * 300, "nested"),
    ],
)
def test_json_that_loses_or_overflows(tmp_path: Path, text: str, said: str) -> None:
    """A doubled field, a number without end and nesting that Python cannot go down are bad input by file and line."""
    with pytest.raises(BadInput, match=rf"x\.json, line 7: .*{said}"):
        parse_value(text, tmp_path / "x.json", 7)


def test_json_as_deep_as_it_may_be() -> None:
    """Nesting up to the limit is read."""
    value = parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    for _ in range(MAX_DEPTH - 1):
        (value,) = value
    assert value == []


@pytest.mark.parametrize(
    "encoding", ["hex", "utf-7", "idna", "punycode", "x\0y", "no-such", "utf-16", "raw_unicode_escape"]
)
def test_odd_encodings(tmp_path: Path, encoding: str) -> None:
    """What is no encoding of text files, or gives half an emoji, is refused; so is UTF-16 without its mark."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc+2AA-\n")
    with pytest.raises(BadInput, match=r"a\.txt"):
        list(read_lines(path, encoding))


def test_ids_that_are_objects() -> None:
    """An object for an id is drift, not the text of a dictionary."""
    body = {"ok": 1, "data": {"data": [{"id": 1, "text": "a", "user": {"id": {"x": 1}}}]}}
    with pytest.raises(SchemaDrift, match="an id should be a number or text"):
        parse("weibo", body, "https://m.weibo.cn/x?id=1", None)


@given(st.text())
def test_cells_come_back(text: str) -> None:
    """A text as a cell is never a formula, in any locale, and comes back as it was."""
    assert unescape_formula(escape_formula(text)) == text
    assert escape_formula(text)[:1] not in set("=+-@\t\r＝＋－＠")


@given(st.text(st.one_of(st.characters(), st.sampled_from("\u202e\u200b\x1b\u2066\ufeff⟨U+202E⟩"))))
def test_what_is_unseen_is_shown(text: str) -> None:
    """A shown text has no control, override or zero-width character; other characters stay; it can be undone."""
    shown = escape_invisible(text)
    assert escape_invisible(shown) == shown
    assert not set(shown) & set("\x00\x07\x1b\x9b\u200b\u200e\u202a\u202e\u2066\u2069\ufeff\u2028\x85")
    if "⟨" not in text:
        assert unescape_invisible(shown) == text


def test_emoji_and_line_ends_stay() -> None:
    """The joiner inside emoji, line ends and tabs are no secrets."""
    assert escape_invisible("👨\u200d👩\tb\r\nc\nd") == "👨\u200d👩\tb\r\nc\nd"
    assert escape_invisible("a\u202eb\x1b[2J\r") == "a⟨U+202E⟩b⟨U+001B⟩[2J⟨U+000D⟩"


def test_sheets_are_read_as_they_were(tmp_path: Path) -> None:
    """Formula cells of a workbook come as the values they were saved with; nothing is evaluated."""
    path = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_string(0, 0, "text")
        sheet.write_formula(1, 0, '=HYPERLINK("http://example.org")', None, "saved")
    assert next(read_chunks(path)).rows == [{"text": "saved"}]
