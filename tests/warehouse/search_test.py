"""Searching: what is packed is opened a block at a time, and what cannot be opened is told and stops nothing."""

import bz2
import gzip
import io
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from pipeline import warehouse

searching = sys.modules["pipeline.warehouse.search"]  # the package has a function of this name
SECRET = "zq-the-erased-words"


def zipped(path: Path, method: int, **members: str) -> None:
    """A zip of these members."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def changed(path: Path, value: bytes, at: int, at_central: int | None = None) -> None:
    """Write something else into the first member of a zip, and the same into the directory at the end."""
    content = bytearray(path.read_bytes())
    central = content.index(b"PK\x01\x02")
    for start in (at, central + at_central) if at_central else (at,):
        content[start : start + len(value)] = value
    path.write_bytes(content)


def found(home: Path, closed: set[str]) -> list[str]:
    """Names of the files that hold the secret."""
    return sorted(str(Path(place.path).relative_to(home)) for place in warehouse.search([SECRET], None, closed))


def test_what_cannot_be_opened_is_told(home: Path) -> None:
    """Encrypted members, unknown methods, damaged bytes and archives in archives in archives are named; the other
    members of the same archive and other files are searched.
    """
    home.mkdir()
    zipped(home / "encrypted.zip", zipfile.ZIP_DEFLATED, a="x", b=SECRET * 9)
    changed(home / "encrypted.zip", b"\x01\x00", 6, 8)  # APPNOTE 4.4.4: bit 0 of the flags
    zipped(home / "shut.zip", zipfile.ZIP_DEFLATED, a=SECRET * 9)
    changed(home / "shut.zip", b"\x01\x00", 6, 8)
    zipped(home / "unknown.zip", zipfile.ZIP_DEFLATED, a=SECRET * 9)
    changed(home / "unknown.zip", b"\x63\x00", 8, 10)  # APPNOTE 4.4.5: the method
    zipped(home / "lzma.zip", zipfile.ZIP_LZMA, a=SECRET * 9)
    changed(home / "lzma.zip", b"\xff" * 5, 30 + 1 + 4)  # APPNOTE 5.8.8: the properties, after the member's name
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
    assert found(home, closed) == ["encrypted.zip", "plain.txt", "whole.bz2"]
    assert {Path(path).name for path in closed} == {
        "a.7z",
        "cut.bz2",
        "cut.gz",
        "deep.gz",
        "lzma.zip",
        "shut.zip",
        "unknown.zip",
    }


def test_what_unpacks_into_too_much_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes that unpack into more than the limit are named, whether in one member, in many, or in an archive
    within.
    """
    home.mkdir()
    monkeypatch.setattr(searching, "_BLOCK", 1 << 16)
    monkeypatch.setattr(searching, "_UNPACKED", 1 << 20)
    monkeypatch.setattr(searching, "_HELD", 1 << 14)
    much = " " * (3 << 20)
    (home / "much.gz").write_bytes(gzip.compress(much.encode()))
    zipped(home / "many.zip", zipfile.ZIP_DEFLATED, **{str(n): " " * (1 << 18) for n in range(9)})
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("a", " " * (1 << 15))
    (home / "within.gz").write_bytes(gzip.compress(inner.getvalue() * 4))
    (home / "some.gz").write_bytes(gzip.compress(b" " * (1 << 19) + SECRET.encode()))
    closed: set[str] = set()
    assert found(home, closed) == ["some.gz"]
    assert {Path(path).name for path in closed} == {"much.gz", "many.zip", "within.gz"}


def test_packed_files_are_read_in_blocks(home: Path) -> None:
    """A word that lies across two blocks is met, and no more than some blocks are in memory at once."""
    home.mkdir()
    before = " " * (searching._BLOCK - len(SECRET) // 2)
    zipped(home / "a.zip", zipfile.ZIP_DEFLATED, a=before + SECRET + " " * (48 << 20))
    with gzip.open(home / "b.gz", "wb") as file:
        file.write(before.encode() + SECRET.encode() + b" " * (48 << 20))
    (home / "c.gz").write_bytes(gzip.compress(b" " * (96 << 20)))
    tracemalloc.start()
    try:
        assert found(home, set()) == ["a.zip", "b.gz"]
        assert tracemalloc.get_traced_memory()[1] < 8 * searching._BLOCK
    finally:
        tracemalloc.stop()
