"""The terminal: progress bars, elsewhere plain log lines; tables; errors as one line, with an exit code.

An error that `explanations` does not know is a bug: 70, and a file with its places in the code and no message.
"""

import io
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from typer import echo

from pipeline import left_out, logs, settings
from pipeline.errors import UndertoneError
from pipeline.explanations import BUG, Failure, explain, flatten_message, list_places
from pipeline.io.visible import escape_invisible
from pipeline.private import make_folder
from pipeline.progress import OnProgress, describe, show_lines, show_with

if TYPE_CHECKING:
    import polars as pl

out = Console(highlight=False, width=None if sys.stdout.isatty() else 200)  # in a file or pipe nothing is cut off
err = Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else 200)
_IS_TAKEN: list[bool] = []  # whether the JSON of this command contains what was left out
_BARS: list[Any] = []  # the progress in a terminal, shared by work inside other work


def logging_to_stderr(verbose: bool, as_json: bool = False) -> None:
    """Log plain lines, or JSON with fields; other libraries log only warnings. JSON implies verbose lines."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("pipeline").setLevel(logging.INFO if verbose or as_json else logging.WARNING)
    logs.show_answers()
    show_with(show_lines if as_json else show_progress)
    if as_json:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(logs.create_formatter())


def prepare_streams() -> None:
    """Write UTF-8 to files and pipes; a terminal that lacks a character gets its number."""
    _IS_TAKEN.clear()
    logging.raiseExceptions = False  # a log line that cannot be written is lost, and the command goes on
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_whole = stream.isatty() or "utf" in stream.encoding.lower()
            stream.reconfigure(encoding=None if is_whole else "utf-8", errors="backslashreplace")


def report_failure(error: BaseException, *, is_debug: bool) -> int:
    """Print what ended the command and return its exit code."""
    if is_closed(error):
        return CLOSED
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        code, message = error.code, STOPPED.get(error.code, "")
    elif isinstance(error, KeyboardInterrupt):
        code, message = INTERRUPTED, STOPPED[INTERRUPTED]
    else:
        code, message = explain(error) or bug(error, is_written=not is_debug)
    if is_debug and not isinstance(error, SystemExit):
        traceback.print_exception(error)
    with suppress(OSError):  # standard error has no reader any more
        if message:
            report(f"undertone: {message}")
    return code


def take_left_out() -> dict[str, object]:
    """Return what the command left out, once: for the JSON object that it prints, else for a last object."""
    if _IS_TAKEN:
        return {}
    if facts := left_out.summarise():
        _IS_TAKEN.append(True)
    return facts


def print_left_out(*, as_json: bool) -> None:
    """Print what the command left out, by reason, as lines; with `as_json` also as a last JSON object."""
    facts = take_left_out() if as_json else {}
    for line in left_out.list_lines():
        report(line)
    if facts:
        out.file.write(json.dumps(facts, ensure_ascii=False) + "\n")


def report(text: str) -> None:
    """Print a line for people on standard error, so that standard output stays data."""
    lines = "\n".join(_printable(line) for line in text.split("\n"))
    err.print(escape(lines), soft_wrap=not err.is_terminal)


@contextmanager
def show_progress(name: str, total: int | None = None) -> Iterator[OnProgress]:
    """Show the progress of some work: a bar in a terminal, elsewhere a line a minute.

    The bar of work inside other work is a row below it; all rows go away at the end.
    """
    with ExitStack() as stack:
        if not err.is_terminal:
            yield stack.enter_context(show_lines(name, total, report))
            return
        if not _BARS:
            _BARS.append(stack.enter_context(_make_bars()))
            stack.callback(_BARS.clear)
        bars = _BARS[0]
        task = bars.add_task(name, total=total)
        stack.callback(bars.remove_task, task)
        yield lambda count: bars.advance(task, count)


def _make_bars() -> Any:
    from rich import progress as rich
    from rich.text import Text

    class Facts(rich.ProgressColumn):
        def render(self, task: rich.Task) -> Text:
            total = None if task.total is None else int(task.total)
            return Text(describe(int(task.completed), total, task.elapsed or 0.0) if task.completed else "")

    columns = (rich.SpinnerColumn(), rich.TextColumn("{task.description}"), rich.BarColumn(), Facts())
    return rich.Progress(*columns, console=err, transient=True)


@contextmanager
def working(name: str) -> Iterator[None]:
    """Show that some work goes on: a row in a terminal, a line elsewhere."""
    if not err.is_terminal:
        report(f"{name} …")
    with show_progress(name) if err.is_terminal else nullcontext():
        yield


def table(
    frame: "pl.DataFrame", title: str | None = None, wide: Sequence[str] = ("text",), *, is_message: bool = False
) -> None:
    """Print a frame as a table, as a message on standard error; cell contents are data, never markup."""
    from rich.table import Table
    from rich.text import Text

    console = err if is_message else out
    if title:  # a line of its own: as the table's title it would be as narrow as the table
        console.print(Text(title, "bold"), soft_wrap=not console.is_terminal)
    grid = Table(header_style="dim", box=None, pad_edge=False)
    for name, kind in frame.schema.items():
        options: Any = {"justify": "right", "no_wrap": True} if kind.is_numeric() else {"justify": "left"}
        grid.add_column(escape(_printable(name)), overflow="fold" if name in wide else "ellipsis", **options)
    for row in frame.iter_rows():
        grid.add_row(*(escape(_format_cell(value)) for value in row))
    console.print(grid)


def show(frame: "pl.DataFrame", as_json: bool) -> None:
    """Print a frame as a table for people, or as JSON Lines."""
    if as_json:
        from pipeline.commands.terminal import files

        sys.stdout.write(files.as_text(frame, ".jsonl", header=True))
    else:
        table(frame)


def print_result(frame: "pl.DataFrame", first: dict[str, object], as_json: bool) -> None:
    """Print a table for people, or one JSON object: the numbers in `first` and the table's rows."""
    if as_json:
        echo(json.dumps({**first, "rows": frame.to_dicts(), **take_left_out()}, ensure_ascii=False, default=str))
    else:
        table(frame)


def print_changes(head: str, words: Sequence[tuple[str, float]]) -> None:
    """Print words with their signed changes; in a terminal those above 0 are red, those below blue."""
    from rich.text import Text

    line = Text(_printable(head))
    for word, change in words:
        style = "red" if change >= 0.005 else "blue" if change <= -0.005 else "dim"
        line.append("  ").append(f"{_printable(word)} {change:+.2f}", style)
    out.print(line, soft_wrap=not out.is_terminal)


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else _printable(str(value))


def _printable(text: str) -> str:
    """Return a text in one line, with visible marks for the controls by which a comment could reach the terminal."""
    return escape_invisible(text.replace("\n", " ").replace("\t", " "))


INTERRUPTED = 130
CLOSED = 141  # as of a program in a shell whose reader closed the pipe
TERMINATED = 143
STOPPED = {
    INTERRUPTED: "stopped by Ctrl-C; what was not finished was not written, run it again",
    TERMINATED: "stopped by SIGTERM; what was not finished was not written, run it again",
}
_REPORTS = 20  # older ones are removed


def bug(error: BaseException, *, is_written: bool = True) -> Failure:
    """Describe an unexpected error; write a file with its places in the code, unless the traceback is printed."""
    path = _write_report(error) if is_written else None
    place = f"; {path} says where" if path else "; --debug prints where" if is_written else ""
    name, message = type(error).__name__, flatten_message(error)
    return Failure(BUG, f"a bug in Undertone: {name}: {message}{place}; please report it")


def _write_report(error: BaseException) -> Path | None:
    try:
        folder = make_folder(settings.home() / "errors")
        path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}.txt"
        with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
            file.writelines(list_places(error))
        for old_report in sorted(folder.glob("*.txt"))[:-_REPORTS]:
            old_report.unlink(missing_ok=True)
    except (OSError, UndertoneError, ValueError):
        return None
    return path


def resend(unraisable: Any) -> None:
    """Send a signal again that came inside a destructor or a callback, where Python drops every exception."""
    if number := {SystemExit: signal.SIGTERM, KeyboardInterrupt: signal.SIGINT}.get(unraisable.exc_type):
        Timer(0.05, os.kill, (os.getpid(), number)).start()
    else:
        sys.__unraisablehook__(unraisable)


def is_closed(error: BaseException) -> bool:
    """Return whether the reader of our output closed it, as `| head` does; typer and rich make an exit of that."""
    return isinstance(error.__context__ if isinstance(error, SystemExit) else error, BrokenPipeError)


def silence() -> None:
    """Discard what the buffers of both streams still hold, so that the interpreter's last flush cannot fail."""
    with suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                os.dup2(null, stream.fileno())
        os.close(null)
