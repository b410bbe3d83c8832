"""Progress of long work, where somebody watches and elsewhere."""

import io

import pytest
from rich.console import Console

from pipeline.commands.terminal import console


def test_lines_have_a_rate_and_an_estimate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Into a file or pipe a line now and then says how much is done, how fast, and how long the rest takes."""
    times = iter([0.0, 10.0, 70.0, 70.0, 71.0, 71.0, 71.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(times))
    with console.progress("scoring", 100) as advance:
        advance(5)
        advance(15)
    assert "scoring: 20 of 100, 0.3 a second, about 280 s to go" in capsys.readouterr().err


def test_a_terminal_has_a_bar_with_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets a bar with what is done and the rate."""
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(console, "err", terminal)
    with console.progress("scoring", 100) as advance:
        advance(20)
    assert "/s" in terminal.file.getvalue()  # type: ignore[attr-defined]
