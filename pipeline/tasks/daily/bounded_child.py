"""The child process of `bounded.run_bounded`: a request on standard input, messages on output, as lines of JSON."""

import contextlib
import ctypes
import errno
import importlib
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONGEST_MESSAGE = 4_000  # characters of an error
_PR_SET_PDEATHSIG = 1
Send = Callable[..., None]


def main() -> None:
    """Call the function that standard input names, and send its result or error."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock = threading.Lock()

    def send(kind: str, **fields: Any) -> None:
        line = json.dumps({"kind": kind, **fields})
        with lock:
            pipe.write(f"{line}\n")
            pipe.flush()

    request = json.loads(sys.stdin.buffer.readline())
    with contextlib.suppress(OSError, AttributeError):  # Linux: works also while a reader holds the interpreter
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def wait_for_end() -> None:
        os.read(0, 1)  # the parent sends nothing more: this returns when the parent has ended
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait_for_end, daemon=True).start()
    if os.getppid() != request["parent"]:
        os._exit(1)
    logging.getLogger().addHandler(_LogMessages(send))
    logging.getLogger("pipeline").setLevel(request["level"])
    logging.captureWarnings(capture=True)
    try:
        from pipeline import left_out

        module, _, function = request["function"].partition(":")
        call = getattr(importlib.import_module(module), function)
        limit_memory(request["megabytes"] * 1_000_000)
        value = call(
            **request["arguments"],
            on_progress=lambda count: send("progress", count=count),
            on_file=lambda name, size: send("file", name=str(name), size=size),
        )
        send("left_out", records=left_out.export())
        send("result", value=value)
    except BaseException as error:  # noqa: BLE001  # a panic of a reader in Rust is no Exception
        _send_error(send, error)
    os._exit(0)  # threads of native libraries may hang where Python ends in order


def _send_error(send: Send, error: BaseException) -> None:
    """Send an error with the class that the parent raises; log the places of a bug: its message may quote a row."""
    from pipeline.errors import BadInput, Missing, Retry, UndertoneError
    from pipeline.explanations import explain, list_places

    name, message = type(error).__name__, str(error)
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        name = "MemoryError"
    elif not isinstance(error, UndertoneError | MemoryError) and name != "PanicException":
        if failure := explain(error):
            classes = {kind.exit_code: kind.__name__ for kind in (BadInput, Missing, Retry)}
            name, message = classes[failure.code], failure.message
        else:
            logging.getLogger("pipeline").info("places of a bug:\n%s", "".join(list_places(error)))
    send("error", **{"class": name, "message": message[:LONGEST_MESSAGE]})


class _LogMessages(logging.Handler):
    def __init__(self, send: Send) -> None:
        super().__init__()
        self.send = send

    def emit(self, record: logging.LogRecord) -> None:
        structlog = sys.modules.get("structlog")
        fields = structlog.contextvars.get_contextvars() if structlog else {}
        fields = {name: value if isinstance(value, int | float) else str(value) for name, value in fields.items()}
        self.send("log", logger=record.name, level=record.levelno, text=self.format(record), fields=fields)


def limit_memory(size: int) -> None:
    """Refuse single allocations far above the limit, before the parent looks; reserved address space counts."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold texts
        status = Path("/proc/self/status").read_text(encoding="ascii")
        (reserved,) = (int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmData:"))
        resource.setrlimit(resource.RLIMIT_DATA, (reserved + 3 * size, reserved + 3 * size))
