"""Who may read what the command writes."""

import os
from pathlib import Path

import polars as pl
import pytest

from pipeline import private, warehouse
from tests.support.commands import run

DAY = "2026-11-19"


def rights(path: Path) -> int:
    """The mode's last nine bits."""
    return path.stat().st_mode & 0o777


FLOW = (
    ("collect", "--path", "sample", "--source", "weibo", "--day", DAY),
    ("tokenize", "--day", DAY),
    ("train", "count-lm", "--lang", "zh"),
    ("health", "--day", DAY, "--page"),
    ("label", "export", "--day", DAY, "--limit", "5", "--rater", "anna"),
    ("label", "export", "--day", DAY, "--limit", "5", "--rater", "anna", "-o", "{folder}/sheets"),
    ("query", "select * from comments", "-o", "{folder}/comments.csv"),
)


@pytest.mark.slow
def test_the_home_is_its_owners_alone(home: Path, tmp_path: Path) -> None:
    """Under an open umask nothing below the home may be read by others; what a person names elsewhere follows it."""
    done = run(*([word.format(folder=tmp_path) for word in words] for words in FLOW), umask=0o002)
    assert done.returncode == 0, done.stderr
    assert private.list_readable(home) == []
    assert rights(tmp_path / "comments.csv") == 0o664
    for path in (tmp_path / "sheets").rglob("*"):
        assert rights(path) == (0o775 if path.is_dir() else 0o664)


def test_a_library_makes_the_home_private_and_leaves_the_umask(home: Path) -> None:
    """Somebody who imports the library has a home that nobody else enters, and files elsewhere as ever."""
    mask = os.umask(0o022)
    try:
        warehouse.create()
        warehouse.query("select 1 as comments")
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(mask)
        warehouse.close()
    assert rights(home) == 0o700


def test_init_mends_an_open_home(home: Path) -> None:
    """A home of an earlier version is closed by `init`, which says so; the doctor names it before."""
    mask = os.umask(0o022)
    try:
        home.mkdir()
        (home / "ledger.db").touch()
    finally:
        os.umask(mask)
    (home / "link").symlink_to("/etc/passwd")
    assert private.list_readable(home) == [home, home / "ledger.db"]
    assert private.tighten(home) == 2
    assert (rights(home), rights(home / "ledger.db")) == (0o700, 0o600)
    assert private.list_readable(home) == []


@pytest.mark.parametrize("home_name", ["elsewhere", "out/home"])
def test_what_was_there_before_keeps_its_rights(tmp_path: Path, home_name: str) -> None:
    """Of a folder that a person names, only what the command wrote follows the umask, and never what is in the home."""
    folder, home = tmp_path / "out", tmp_path / home_name
    folder.mkdir(mode=0o700)
    (folder / "mine.txt").touch(mode=0o600)
    (folder / "read.csv").touch(mode=0o604)
    output = private.Output(folder, home)
    with private.set_umask() as mask:
        for name in ("mine.txt", "read.csv", "new.csv"):
            (folder / name).unlink(missing_ok=True)
            pl.DataFrame({"a": [1]}).write_csv(folder / name)
        private.make_folder(home)
        (home / "ledger.db").touch()
        output.share(mask)
        assert private.list_readable(home) == []
    assert rights(folder / "new.csv") == 0o666 & ~mask
    assert (rights(folder / "mine.txt"), rights(folder / "read.csv"), rights(folder)) == (0o600, 0o604, 0o700)
