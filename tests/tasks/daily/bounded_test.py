"""Functions in a limited child process: what comes back, what stops them, and that none outlives its parent."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from pipeline import left_out
from pipeline.cli import app
from pipeline.errors import BadInput, UndertoneError
from pipeline.explanations import BUG
from pipeline.tasks.daily import bounded
from pipeline.tasks.daily.bounded import Bounds, run_bounded

BOUNDS = Bounds(megabytes=400, seconds=2)
KEY = "a-key-that-nobody-may-read"


def run(
    function: str, bounds: Bounds = BOUNDS, on_progress: Callable[[int], None] = lambda _: None, **arguments: Any
) -> Any:
    """Run a function of `bounded_work`."""
    return run_bounded(f"tests.tasks.daily.bounded_work:{function}", arguments, bounds, on_progress)


def test_what_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    """Result, progress, log records and what was left out reach the parent; a key is no argument of the command."""
    import structlog

    counts: list[int] = []
    left_out.clear()
    fields: list[dict[str, Any]] = []
    caplog.set_level(logging.INFO, "pipeline")
    caplog.handler.addFilter(lambda _: fields.append(structlog.contextvars.get_contextvars()) or True)
    result = run("answer", on_progress=counts.append, key=KEY)
    assert (result["length"], counts) == (len(KEY), [2])
    assert ("pipeline.collect", logging.INFO, "two rows") in caplog.record_tuples
    assert {"rows": 2} in fields
    assert KEY not in result["command"] + caplog.text
    assert [(row.step, row.row_count) for row in left_out.list_rows()] == [("clean", 3)]
    assert "this is no message" in caplog.text
    assert not psutil.pid_exists(result["pid"])


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ("full", 75, "/scratch/x: there is no space left"), ("name", 2, "this name is not UTF-8"),
        ("no memory", 2, "takes more than 400 MB"), ("BadInput", 2, "^line 7: no x{3989}$"),
        ("Retry", 75, "^line 7: no"),
    ],
)  # fmt: skip
def test_errors_keep_their_code(error: str, code: int, message: str, caplog: pytest.LogCaptureFixture) -> None:
    """An error of ours or of the system ends an import with the code of any command, and no traceback; it is cut."""
    with pytest.raises(UndertoneError, match=message) as caught:
        run("fail", error=error, message=f"line 7: no {'x' * 100_000}")
    assert (caught.value.exit_code, caplog.text) == (code, "")


def test_a_bug_is_one_line_and_its_places_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A fault of ours names the file; its places are logged without its message, which may quote a row."""
    caplog.set_level(logging.INFO, "pipeline")
    with pytest.raises(UndertoneError, match=r"^a\.csv: a bug in Undertone: ValueError; --verbose") as caught:
        run("fail", error="none of ours", message="a comment's words")
    assert caught.value.exit_code == BUG
    assert "bounded_work.py" in caplog.text
    assert "a comment's words" not in caplog.text


@pytest.mark.parametrize(
    ("act", "kind", "message"),
    [
        ("memory", BadInput, r"a\.csv: takes more than 400 MB of memory.*UNDERTONE_IMPORT_MEMORY=800"),
        ("one allocation", BadInput, r"a\.csv: takes more than 400 MB of memory"),
        ("time", BadInput, r"a\.csv: takes more than 3 CPU seconds.*100,000 bytes.*UNDERTONE_IMPORT_SECONDS=20"),
        ("abort", BadInput, r"a\.csv: .*crashed \(SIGABRT\)"),
        ("segfault", BadInput, r"a\.csv: .*crashed \(SIGSEGV\)"),
        ("exit", UndertoneError, r"a\.csv: .*without a result \(exit code 3\)"),
        ("kill", UndertoneError, r"a\.csv: .*killed from outside \(SIGKILL\)"),
    ],
)
def test_limits_and_crashes_are_one_error(act: str, kind: type[UndertoneError], message: str) -> None:
    """What a child is stopped by is one error that names the file, the limit and the setting."""
    bounds = BOUNDS if act == "time" else BOUNDS._replace(seconds=60)  # a busy machine may need more than two
    with pytest.raises(UndertoneError, match=message) as caught:
        run("misbehave", bounds, act=act)
    assert type(caught.value) is kind


def test_an_idle_child_is_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A child that uses no CPU ends by the clock."""
    monkeypatch.setattr(bounded, "WALL_SECONDS", -19)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UndertoneError, match=r"most of them idle"):
        run("misbehave", act="wait")


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_no_child_outlives_its_parent(end: signal.Signals, tmp_path: Path) -> None:
    """Killed or ended, the parent takes its child along at once."""
    code = "from tests.tasks.daily.bounded_test import run; run('misbehave', act='wait')"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=env, stderr=subprocess.DEVNULL) as parent:
        _wait(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
        child = psutil.Process(int((tmp_path / "pid").read_text()))
        parent.send_signal(end)
        parent.wait(timeout=60)
        _wait(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "took longer than a minute"
        time.sleep(0.02)


def test_an_import_is_bounded(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`undertone import` runs in a child with the limits of the settings; one that cannot hold stops it, named."""
    path = tmp_path / "a.csv"
    path.write_text("text\nnice hat\n", encoding="utf-8")
    command = ["import", str(path), "--source", "mine"]
    assert CliRunner().invoke(app, command).exit_code == 0
    monkeypatch.setenv("UNDERTONE_IMPORT_MEMORY", "20")
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, BadInput)
    assert "20 MB of memory" in str(refused.exception)
    monkeypatch.setenv("UNDERTONE_IMPORT_MEMORY", "x")
    assert "UNDERTONE_IMPORT_MEMORY" in str(CliRunner().invoke(app, command).exception)
