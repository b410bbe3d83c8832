"""What the children of bounded_test.py do; they import this module, which is light."""

import ctypes
import errno
import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline import errors, left_out, logs

Progress = Callable[[int], None]
File = Callable[[str, int], None]


def answer(key: str, on_progress: Progress, on_file: File) -> dict[str, Any]:
    """Report, log, print, and return what an observer of this process sees."""
    print("this is no message")  # noqa: T201
    on_file("a.csv", 10)
    on_progress(2)
    left_out.record_rows("clean", {"empty": 3}, "mine")
    logs.log_event(logging.getLogger("pipeline.collect"), "two rows", rows=2)
    command = Path("/proc/self/cmdline")
    return {"length": len(key), "command": command.read_text() if command.exists() else "", "pid": os.getpid()}


def fail(error: str, message: str, on_progress: Progress, on_file: File) -> None:
    """Raise."""
    on_file("a.csv", 10)
    foreseen = {
        "full": OSError(errno.ENOSPC, "No space left on device", "/scratch/x"),
        "name": UnicodeEncodeError("utf-8", "caf\udce9", 3, 4, "surrogates not allowed"),
        "no memory": OSError(errno.ENOMEM, "Cannot allocate memory"),
    }
    raise foreseen.get(error) or getattr(errors, error, ValueError)(message)


def misbehave(act: str, on_progress: Progress, on_file: File) -> None:
    """Take memory or time, of which a large file has more, or crash."""
    on_file("a.csv", 100_000 if act == "time" else 10)
    if act == "memory":
        chunks = []
        while True:
            chunks.append(os.urandom(1 << 20))
    elif act == "one allocation":
        bytearray(1 << 42)
    elif act == "time":
        while True:
            pass
    elif act == "wait":
        Path("pid").write_text(str(os.getpid()))
        time.sleep(600)
    elif act == "abort":
        os.abort()
    elif act == "segfault":
        ctypes.string_at(0)
    elif act == "exit":
        os._exit(3)
    else:
        os.kill(os.getpid(), signal.SIGKILL)
