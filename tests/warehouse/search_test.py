"""Searching: what is packed is opened a block at a time, and what cannot be opened is named and stops nothing."""

import bz2
import gzip
import io
import sqlite3
import sys
import tracemalloc
import zipfile
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from pipeline import warehouse

searching = sys.modules["pipeline.warehouse.search"]  # the package has a function of this name
SECRET = "zq-the-erased-words"


@pytest.fixture(autouse=True)
def folder(home: Path) -> None:
    """The home as an empty folder."""
    home.mkdir()


def write_zip(path: Path, method: int, **members: str) -> None:
    """Write a zip of these members."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def change(path: Path, value: bytes, place: int, central_place: int | None = None) -> None:
    """Write something else into the first member of a zip, and the same into the directory at the end."""
    content = bytearray(path.read_bytes())
    central = content.index(b"PK\x01\x02")
    for start in (place, central + central_place) if central_place else (place,):
        content[start : start + len(value)] = value
    path.write_bytes(content)


def find(*words: str, closed: set[str] | None = None) -> list[str]:
    """Names of the files that hold one of the words, by default the secret."""
    return sorted(Path(place.path).name for place in warehouse.search(words or [SECRET], None, closed))


def test_packed_words_are_found(home: Path) -> None:
    """The search opens zip, gzip, SQLite, lists of words and of records, and meets the spelling of other formats."""
    write_zip(home / "a.zip", zipfile.ZIP_DEFLATED, inner=SECRET * 100)
    (home / "b.gz").write_bytes(gzip.compress(SECRET.encode()))
    with closing(sqlite3.connect(home / "c.sqlite")) as connection, connection:
        connection.execute("create table t (x)")
        connection.execute("insert into t values (?)", ["-" * 9_000 + SECRET])
    pl.DataFrame({"words": [["zq-the", "erased", "words"]]}).write_parquet(home / "d.parquet")
    replies = [[{"texts": [{"text": f"{'-' * 90}{SECRET[:7]} {n} {SECRET}"}]}] for n in range(9)]  # packed, unlike one
    pl.DataFrame({"replies": replies}).write_parquet(home / "g.parquet")
    assert SECRET.encode() not in (home / "g.parquet").read_bytes()
    pages = [f"{'-' * 90}{SECRET[:7]} {n} {SECRET}".encode() for n in range(9)]
    pl.DataFrame({"page": pages}).write_parquet(home / "h.parquet", statistics=False)
    assert SECRET.encode() not in (home / "h.parquet").read_bytes()
    (home / "e.csv").write_text("别人没有说过的话，一个人说的", encoding="gb18030")
    (home / "f.html").write_text("a &lt;b&gt; &amp; c\\u4e00")
    (home / "none.txt").write_text("others")
    assert find(SECRET, "zq-the erased words") == ["a.zip", "b.gz", "c.sqlite", "d.parquet", "g.parquet", "h.parquet"]
    assert find("没有说过的话") == ["e.csv"]
    assert find(*warehouse.list_spellings("a <b> & c")) == ["f.html"]
    assert warehouse.search([]) == []


def test_what_cannot_be_opened_is_named(home: Path) -> None:
    """Encrypted, unknown, damaged or nested members are named; other members and files are searched."""
    write_zip(home / "encrypted.zip", zipfile.ZIP_DEFLATED, a="x", b=SECRET * 9)
    change(home / "encrypted.zip", b"\x01\x00", 6, 8)  # APPNOTE 4.4.4: bit 0 of the flags
    write_zip(home / "shut.zip", zipfile.ZIP_DEFLATED, a=SECRET * 9)
    change(home / "shut.zip", b"\x01\x00", 6, 8)
    write_zip(home / "unknown.zip", zipfile.ZIP_DEFLATED, a=SECRET * 9)
    change(home / "unknown.zip", b"\x63\x00", 8, 10)  # APPNOTE 4.4.5: the method
    write_zip(home / "lzma.zip", zipfile.ZIP_LZMA, a=SECRET * 9)
    change(home / "lzma.zip", b"\xff" * 5, 30 + 1 + 4)  # APPNOTE 5.8.8: the properties, after the member's name
    (home / "cut.gz").write_bytes(gzip.compress(SECRET.encode() * 99)[:-12])
    deep = SECRET.encode()
    for _ in range(searching._DEEP + 1):
        deep = gzip.compress(deep)
    (home / "deep.gz").write_bytes(deep)
    (home / "cut.bz2").write_bytes(bz2.compress(SECRET.encode() * 99)[:-12])
    (home / "whole.bz2").write_bytes(bz2.compress(SECRET.encode() * 99))
    (home / "a.7z").write_bytes(b"7z\xbc\xaf\x27\x1c and so on")
    (home / "plain.txt").write_text(SECRET)
    closed: set[str] = set()
    assert find(closed=closed) == ["encrypted.zip", "plain.txt", "whole.bz2"]
    names = {"a.7z", "cut.bz2", "cut.gz", "deep.gz", "lzma.zip", "shut.zip", "unknown.zip"}
    assert {Path(path).name for path in closed} == names


def test_what_unpacks_into_too_much_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that unpack into more than the limit are named: in one member, in many, or in an archive within."""
    for name, limit in {"_BLOCK": 1 << 16, "_UNPACKED": 1 << 20, "_HELD": 1 << 14}.items():
        monkeypatch.setattr(searching, name, limit)
    (home / "much.gz").write_bytes(gzip.compress(b" " * (3 << 20)))
    write_zip(home / "many.zip", zipfile.ZIP_DEFLATED, **{str(n): " " * (1 << 18) for n in range(9)})
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("a", " " * (1 << 15))
    (home / "within.gz").write_bytes(gzip.compress(inner.getvalue() * 4))
    (home / "some.gz").write_bytes(gzip.compress(b" " * (1 << 19) + SECRET.encode()))
    closed: set[str] = set()
    assert find(closed=closed) == ["some.gz"]
    assert {Path(path).name for path in closed} == {"much.gz", "many.zip", "within.gz"}


def test_packed_files_are_read_in_blocks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that lies across two blocks is met, and no more than some blocks are in memory at once."""
    monkeypatch.setattr(searching, "_BLOCK", 1 << 19)
    text = " " * (searching._BLOCK - len(SECRET) // 2) + SECRET + " " * (6 << 20)
    write_zip(home / "a.zip", zipfile.ZIP_DEFLATED, a=text)
    (home / "b.gz").write_bytes(gzip.compress(text.encode()))
    (home / "c.gz").write_bytes(gzip.compress(b" " * (12 << 20)))
    tracemalloc.start()
    try:
        assert find() == ["a.zip", "b.gz"]
        assert tracemalloc.get_traced_memory()[1] < 8 * searching._BLOCK
    finally:
        tracemalloc.stop()
