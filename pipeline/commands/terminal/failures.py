"""How a command ends when something fails: one line for people and an exit code, whatever was raised.

`explanations` knows the errors of the system, the database and libraries. All else is a bug of Undertone: 70, and a
file says where it happened. That file holds places in the code and no message, since a message may quote a comment.
"""

import contextlib
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from pipeline import settings
from pipeline.errors import UndertoneError
from pipeline.explanations import BUG, Failure, flatten_message, list_places
from pipeline.private import make_folder

INTERRUPTED = 130
CLOSED = 141  # as a shell says of a program whose reader went away
TERMINATED = 143
STOPPED = {
    INTERRUPTED: "stopped by Ctrl-C; what was not finished was not written, run it again",
    TERMINATED: "stopped by SIGTERM; what was not finished was not written, run it again",
}
_REPORTS = 20  # that are kept


def bug(error: BaseException, *, is_written: bool = True) -> Failure:
    """An error that nothing foresaw, and the file that says where it happened, unless the traceback is printed."""
    path = _report(error) if is_written else None
    place = f"; {path} says where" if path else "; --debug prints where" if is_written else ""
    return Failure(
        BUG, f"a bug in Undertone: {type(error).__name__}: {flatten_message(error)}{place}; please report it"
    )


def _report(error: BaseException) -> Path | None:
    """Write the places in the code that an error went through, for its owner alone; None if that fails too."""
    try:
        folder = settings.home() / "errors"
        make_folder(folder)
        path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}.txt"
        with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
            file.writelines(list_places(error))
        for old in sorted(folder.glob("*.txt"))[:-_REPORTS]:
            old.unlink(missing_ok=True)
    except (OSError, UndertoneError, ValueError):
        return None
    return path


def is_closed(error: BaseException) -> bool:
    """Whether the reader of our output went away, as `| head` does; typer and rich make an exit of that."""
    return isinstance(error.__context__ if isinstance(error, SystemExit) else error, BrokenPipeError)


def silence() -> None:
    """Send what is left in the buffers of both streams nowhere, so that the interpreter's last flush cannot fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                os.dup2(null, stream.fileno())
        os.close(null)
