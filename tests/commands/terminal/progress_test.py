"""Progress of long work, where somebody watches and elsewhere."""

import io

import pytest
from rich.console import Console

from pipeline import progress
from pipeline.commands.terminal import console


def test_lines_have_a_rate_and_an_estimate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Into a file or pipe a line now and then says how much is done, how fast, and how long the rest takes."""
    times = iter([0.0, 10.0, 70.0, 71.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    with console.show_progress("scoring", 100) as advance:
        advance(5)
        advance(15)
    assert "scoring: 20 of 100, 0.3 a second, about 5 min to go" in capsys.readouterr().err


def test_a_terminal_has_a_bar_with_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets a bar with what is done and the rate; work inside other work gets a row of its own."""
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(console, "err", terminal)
    with console.show_progress("scoring", 100) as advance, console.working("writing"):
        advance(20)
        console._BARS[0].refresh()
    shown = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "20 of 100" in shown
    assert "a second" in shown
    assert "writing" in shown


def test_a_log_gets_lines(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Outside the command line, as in a DAG's task, the lines go to the log; `iterate` yields all items."""
    times = iter([0.0, 30.0, 7300.0, 7300.0, 7300.0, 7400.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    progress.show_with(progress.show_lines)
    with caplog.at_level("INFO", logger="pipeline"):
        assert list(progress.iterate(["a", "b"], "epochs")) == ["a", "b"]
        assert [*progress.iterate([], "steps")] == []  # nothing was done, which is no line
    assert caplog.messages == ["epochs: 2 of 2, 1.0 an hour", "epochs: 2 done in 2.0 h"]
