"""End a command that fails with one line for people and an exit code.

An error that `explanations` does not know is a bug: 70, and a file with its places in the code and no message.
"""

import contextlib
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer
from typing import Any

from pipeline import settings
from pipeline.errors import UndertoneError
from pipeline.explanations import BUG, Failure, flatten_message, list_places
from pipeline.private import make_folder

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
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                os.dup2(null, stream.fileno())
        os.close(null)
