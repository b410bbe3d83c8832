"""How the command ends: its streams, what it left out, what it says of a bug, a signal, a closed pipe, a full disk."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy.exc

from pipeline import cli, left_out, warehouse
from pipeline.explanations import BUG
from tests.commands.conftest import Run

CODE = "from pipeline.cli import main; main()"


def shell(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A shell command in which `$U` is the command `undertone`."""
    environment = {**os.environ, "U": f"{sys.executable} -c '{CODE}'", **variables}
    return subprocess.run(
        ["bash", "-c", command.replace("$U", f"{sys.executable} -c '{CODE}'")],
        capture_output=True, text=True, check=False, env=environment, timeout=300,
    )  # fmt: skip


def raising(error: BaseException) -> Callable[..., None]:
    """A function that fails."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(28, "No space left on device", "/data/x"), 75, "/data/x: there is no space left"),
        (pl.exceptions.ComputeError("x: No space left on device (os error 28)"), 75, "no space left"),
        (PermissionError(13, "Permission denied", "/data/x"), 2, "/data/x: permission denied"),
        (OSError(30, "Read-only file system", "/data/x"), 2, "the file system is read-only"),
        (IsADirectoryError(21, "Is a directory", "/data/x"), 2, "expected a file, found a folder"),
        (FileNotFoundError(2, "No such file or directory", "/data/x"), 4, "/data/x: no such file"),
        (MemoryError(), 75, "not enough memory"),
        (RecursionError(), 2, "nested too deeply"),
        (UnicodeEncodeError("utf-8", "caf\udce9", 3, 4, "surrogates not allowed"), 2, "caf\\udce9"),
        (sqlite3.OperationalError("database is locked"), 75, "locked by another process"),
        (
            sqlalchemy.exc.OperationalError("select 'secret'", {}, sqlite3.OperationalError("disk I/O error")),
            75,
            "cannot be read or written",
        ),
        (sqlite3.DatabaseError("file is not a database"), 2, "not a SQLite database"),
        (KeyboardInterrupt(), 130, "Ctrl-C"),
        (ValueError("odd\nthing"), 70, "a bug in Undertone: ValueError: odd thing"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_what_is_raised_ends_in_a_line_and_a_code(
    error: BaseException, code: int, said: str, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors of the system, a database or a library get our codes; none shows a statement's values or a traceback."""
    monkeypatch.setattr(warehouse, "list_checks", raising(error))
    ended = run("check").check(code, said)
    assert len(ended.err.strip().splitlines()) == 1
    assert "secret" not in ended.err
    assert (home / "errors").exists() == (code == BUG)


def test_a_bug_leaves_a_private_report_without_words(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of a bug names places in the code and no message, for its owner alone; `--debug` prints it instead."""
    monkeypatch.setattr(warehouse, "list_checks", raising(ValueError("a comment's words")))
    for _ in range(25):
        assert run("check").code == BUG
    reports = list((home / "errors").iterdir())
    assert len(reports) == 20
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in reports)
    text = reports[0].read_text(encoding="utf-8")
    assert "cli.py" in text
    assert "a comment's words" not in text
    assert "Traceback" in run("--debug", "check").err
    monkeypatch.setenv("UNDERTONE_DEBUG", "1")
    assert "Traceback" in run("check").err


def test_closed_and_full_outputs(tables: Path) -> None:
    """A reader that goes away gives 141 and no word; a full disk below standard output gives 75 and one line."""
    many = "select unnest(range(100000)) as n"
    for words in (f'query "{many}" --json', "--help"):
        ended = shell(f"$U {words} | true; exit ${{PIPESTATUS[0]}}")
        assert (ended.returncode, ended.stderr) in {(141, ""), (0, "")}, ended.stderr
    ended = shell("$U tables --json > /dev/full")
    assert ended.returncode == 75
    assert ended.stderr == "undertone: there is no space left; free some and run the command again\n"


def test_terminals_without_unicode(tables: Path) -> None:
    """Chinese in a pipe is UTF-8 whatever the locale is; an ASCII terminal or a name that is not UTF-8 never fails.

    Where nobody watches, an error is one line however long it is, so that its path can be copied from a log.
    """
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = shell("""$U query "select chr(20320) || chr(128512) as word" --json""", **ascii_only)
    assert json.loads(ended.stdout) == {"word": "你😀"}, ended.stderr
    folder = "a-long-name-" * 20
    ended = shell(f"""$U import $'/{folder}/caf\\xe9.csv'""", **ascii_only)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
    assert "not UTF-8" in ended.stderr
    assert f"/{folder}/caf" in ended.stderr


@pytest.fixture
def in_foreground() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also if a shell began the tests in the background and ignores it."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("in_foreground")
@pytest.mark.parametrize("in_destructor", [False, True])
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_end_in_a_line(
    sent: signal.Signals, code: int, in_destructor: bool, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C and SIGTERM, also inside a destructor, end the command in a line; what it was writing is tidied up."""
    tidied = []

    class Owner:
        def __del__(self) -> None:
            signal.raise_signal(sent)

    def busy() -> list[str]:
        try:
            Owner() if in_destructor else signal.raise_signal(sent)
            time.sleep(10 * in_destructor)
            return []
        finally:
            tidied.append(1)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(warehouse, "list_checks", busy)
    ended = run("check")
    assert (ended.code, tidied) == (code, [1])
    assert ended.err.startswith("undertone: stopped by")
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_was_left_out_is_printed(run: Run, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons by count with what to do, ten at most; `--json` gives them as the last object; a repeat counts once."""

    def checks() -> list[str]:
        for _ in range(2):
            left_out.record_rows("labels", {"not_asked": 369, "late": 40}, "csd")
            left_out.record_columns("a.csv", ["colour"])
        left_out.record_rows("labels", {"late": 2}, "other")
        left_out.record_rows("many", {f"reason_{number}": 1 for number in range(12)})
        return []

    monkeypatch.setattr(warehouse, "list_checks", checks)
    lines = run("check").err.splitlines()
    assert lines[0].startswith("labels: left out 369 as not_asked: ")
    assert lines[1].startswith("labels: left out 42 as late: ")
    assert lines[10:] == [
        "left out 4 for 4 other reasons; the table `dropped` lists them",
        "a.csv: ignored columns: colour",
    ]
    monkeypatch.setattr(cli.sys, "argv", [])
    monkeypatch.setattr("pipeline.tasks.upkeep.count_rows", lambda: pl.DataFrame({"n": checks()}))
    facts = json.loads(run("tables", "--json").out.splitlines()[-1])
    assert [facts["dropped"][0][name] for name in ("step", "reason", "row_count")] == ["labels", "not_asked", 369]
    assert facts["ignored"] == ["a.csv: ignored columns: colour"]
    assert "left out" not in run("down").err
