"""Files of people that an erasure cuts: hostile or damaged ones end no erasure, and take time that grows with them."""

import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from pipeline.tasks.erasure import files
from pipeline.tasks.erasure.rules import LEAST_BYTES, Targets
from tests.support.growth import check_growth, repeated

TEXT = "what somebody said and wants to have back"
TARGETS = Targets(texts=pl.Series([TEXT, "1"]), raw_ids=["77"], marks=[TEXT])


def clean(path: Path, content: str, *, is_hit: bool = True) -> int:
    """Write content to a file (of a workbook: to its sheet) and clean it; return the count of erased records."""
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("xl/worksheets/sheet1.xml", content)
            archive.writestr("xl/sharedStrings.xml", content)
    else:
        path.write_text(content)
    return files.clean_file(path, TARGETS, is_hit=is_hit)


def nested(size: int) -> str:
    """Objects within objects."""
    return '{"a":' * (size // 6) + "1" + "}" * (size // 6)


def long_name(size: int) -> str:
    """A name of half the size, with many values."""
    return '{"' + "a" * (size // 2) + '": [' + "1," * (size // 4) + "1]}"


def deep_list(size: int) -> str:
    """Many values in lists within lists."""
    return "[" * 90 + "1," * (size // 2) + "1" + "]" * 90


@pytest.mark.parametrize(
    ("text", "row", "is_found"),
    [
        ("a" * (LEAST_BYTES - 1), "fine,{}", False), ("a" * LEAST_BYTES, "fine,{}", True), ("+1", "'{},fine", True),
        ("+1", "fine,{}", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_short_text_is_erased_only_where_texts_stand(
    text: str, row: str, is_found: bool, tmp_path: Path, encoding: str
) -> None:
    """From `LEAST_BYTES` on, a text is erased in any field; an apostrophe before a formula hides none."""
    path = tmp_path / "a.csv"
    path.write_text(f"text,label\n{row.format(text)}\nfine,b\n", encoding)
    files.clean_file(path, Targets(texts=pl.Series([text]), raw_ids=[], marks=[]), is_hit=False)
    assert (text not in path.read_text(encoding)) == is_found


PARTS = ("<row ", "<row>", "<row/>", "<row><c>", "<row><c r='", "<si>", "<!--")
HOSTILE: dict[str, list[Callable[[int], str]]] = {
    ".xlsx": [
        *map(repeated, PARTS),
        *(repeated(part, "<row>") for part in ("<c ", "<c>", '<c r="A')),
        *(repeated(part, "<row><c>") for part in ("<v>", "<t>", "</c>")),
        repeated("<t>", "<si>"),
    ],
    ".json": [nested, long_name, deep_list, repeated("["), repeated('{"a":')],
    ".jsonl": [nested, long_name, deep_list, repeated("["), repeated("{}\n")],
    ".csv": [repeated(","), repeated("\n"), repeated('"'), repeated('"a,'), repeated("a" * 50 + ",", after="\n1")],
}


@pytest.mark.parametrize("suffix", HOSTILE)
def test_time_grows_with_the_length(suffix: str, tmp_path: Path) -> None:
    """Ten times the file takes about ten times as long, whatever the file."""
    for text in HOSTILE[suffix]:
        check_growth(lambda content: clean(tmp_path / f"a{suffix}", content, is_hit=False), text)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
@pytest.mark.parametrize("is_hit", [True, False])
def test_json_that_is_nested_too_deep_ends_no_erasure(name: str, is_hit: bool, tmp_path: Path) -> None:
    """It goes where it holds something erased, and stays otherwise."""
    content = "[" * 5_000 + json.dumps(TEXT if is_hit else "fine") + "]" * 5_000 + "\n"
    path = tmp_path / name
    assert clean(path, content, is_hit=is_hit) == is_hit
    assert TEXT not in (path.read_text() if path.exists() else "")
    assert is_hit or path.read_text() == content


DATABASE = """pragma journal_mode = wal;
create table c (thread_id, comment_id, text, twice as (text || text));
create trigger g before delete on c begin select raise(fail, 'it ran'); end;
insert into c values ('t', '8', 'by all'), ('t', '9', 'by all'), ('t', '7', '1');
create table d (n, comment_id text, text, primary key (comment_id, n)) without rowid;
insert into d values (1, '4', '1'), (2, '4', 'by all');
create table e (_rowid_, text);
insert into e values (5, '1'), (5, 'by all')"""


def test_rows_of_a_database_are_cut(tmp_path: Path) -> None:
    """Rows of SQLite go by a short text or an id, whatever names a row, those in its log too; triggers do not run."""
    path, keys = tmp_path / "b.db", pl.DataFrame({"source": "s", "thread_id": "t", "comment_id": "9"})
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.executescript(DATABASE)
        for end in ("", "-wal"):
            shutil.copy(tmp_path / f"a.db{end}", f"{path}{end}")
    assert files.clean_file(path, TARGETS._replace(comment_keys=keys), is_hit=False) == 4
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select comment_id from c union all select type from sqlite_master").fetchall()
        others = connection.execute("select text from d union all select text from e").fetchall()
    assert (rows[:1], rows[-1:], [*tmp_path.glob("b.db?*")]) == ([("8",)], [("trigger",)], [])
    assert others == [("by all",), ("by all",)]


def test_half_an_emoji_costs_no_other_record(tmp_path: Path) -> None:
    """Of a list with a lone surrogate in it only the records that are meant go, also the one with HTML in its text."""
    path, markup = tmp_path / "a.json", TEXT.replace(" ", " <img alt='' src=u><br/>")
    assert clean(path, f'[{{"text": "\\ud83d"}}, {{"text": "{TEXT}"}}, {{"text": "{markup}"}}]', is_hit=False) == 2
    assert len(json.loads(path.read_text())) == 1
    for name in ("a.json", "a.jsonl"):  # nor other comments of an article
        comments = [{"text": TEXT}, {"text": "fine", "replies": [{"text": TEXT}, {"text": "too"}]}]
        assert clean(tmp_path / name, json.dumps({"title": "t", "comments": comments}), is_hit=False) == 2
        remaining = {"title": "t", "comments": [{"text": "fine", "replies": [{"text": "too"}]}]}
        assert json.loads((tmp_path / name).read_text()) == remaining


SHEET = (
    '<sheetData><row r="1"><c r="A1"><v>5</v></c><c r="B1" s="1"/><c r="C1" t="str"><v>text</v></c></row>'
    '<row r="2"/><row r="3"><c r="A3" s="1"/><c r="C3"><v>1</v></c></row>'
    '<row r="4"><c r="A4"><v>1</v></c><c r="C4" t="str"><v>fine</v></c></row></sheetData>'
)


def test_empty_cells_and_rows_of_a_sheet_move_nothing(tmp_path: Path) -> None:
    """An empty cell or row takes no content of the next: columns keep their names, and others' rows stay."""
    path = tmp_path / "a.xlsx"
    assert clean(path, SHEET) == 1
    with zipfile.ZipFile(path) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    assert sheet == SHEET.replace('<row r="3"><c r="A3" s="1"/><c r="C3"><v>1</v></c></row>', "").replace(
        '<row r="4"><c r="A4"><v>1</v></c><c r="C4"', '<row r="3"><c r="A3"><v>1</v></c><c r="C3"'
    )


def test_a_workbook_that_names_no_shared_text_goes(tmp_path: Path) -> None:
    """A cell that leads to a shared text that is not there ends no erasure: the file cannot be cut, so it goes."""
    path = tmp_path / "a.xlsx"
    assert clean(path, '<row><c t="s"><v>9</v></c></row>') == 1
    assert not path.exists()
