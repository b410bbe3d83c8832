"""Run a function that reads files of strangers in a child process with limits on memory and time."""

import contextlib
import json
import logging
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, NamedTuple

import psutil

from pipeline import errors, left_out, settings
from pipeline.errors import BadInput, UndertoneError
from pipeline.explanations import BUG
from pipeline.progress import OnProgress

log = logging.getLogger(__name__)
POLL_SECONDS = 0.03
SHARE_BYTES = 100_000  # a file may take `Bounds.seconds`, and one more second for every so many bytes
WALL_SECONDS = 900  # and ten times the CPU seconds: a busy machine or a slow disk is no reason to refuse a file
_TAIL_BYTES = 4_000  # of what the child writes to standard error
_CRASHES = {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP}
_START = "import sys; sys.path[:] = sys.argv[1:]; from pipeline.tasks.daily.bounded_child import main; main()"


class Bounds(NamedTuple):
    """Limits of a child: resident memory in megabytes, and CPU seconds for a file of up to `SHARE_BYTES`."""

    megabytes: int
    seconds: float


def run_bounded(
    name: str, arguments: Mapping[str, Any], bounds: Bounds, on_progress: OnProgress = lambda _: None
) -> Any:
    """Call a function in a child process and return its result, plain JSON.

    `name` is `module:function`. The function also gets `on_progress(count)`, which calls `on_progress` here, and
    `on_file(name, size)`, which starts a new allowance of time for the file that errors name. The arguments are plain
    JSON.

    BadInput if a limit was reached or a native reader crashed, with file, limit and setting. Else UndertoneError with
    the class and message that the function raised; an error of the system or of a database by its exit code; a bug as
    the root class with exit code 70, its places in the log.
    """
    return _Child(name, arguments, bounds, on_progress).run()


class _Child:
    def __init__(self, name: str, arguments: Mapping[str, Any], bounds: Bounds, on_progress: OnProgress) -> None:
        self.bounds, self.on_progress = bounds, on_progress
        self.file, self.byte_count, self.cpu_before = name, 0, 0.0
        self.outcome: dict[str, Any] | None = None
        self.tail = b""
        self.request = {
            "function": name, "arguments": dict(arguments), "megabytes": bounds.megabytes, "parent": os.getpid(),
            "level": logging.getLogger("pipeline").getEffectiveLevel(),
        }  # fmt: skip

    def run(self) -> Any:
        """Start the child, wait for its end, and return its result or raise its error."""
        command = [sys.executable, "-P", "-c", _START, *(path or str(Path.cwd()) for path in sys.path)]
        environment = settings.environment()
        self.process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment, start_new_session=True)
        self.started_at = time.monotonic()
        try:
            assert self.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it died; its standard error has the reason
                self.process.stdin.write(json.dumps(self.request).encode() + b"\n")
                self.process.stdin.flush()  # and stays open: the child ends when it closes
            for message in self._messages():
                self._handle(message)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses to signal an ended group
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()  # type: ignore[union-attr]
        return self._result()

    def _messages(self) -> Iterator[dict[str, Any]]:
        out, err = self.process.stdout, self.process.stderr
        assert out is not None
        assert err is not None
        partial_line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            selector.register(err, selectors.EVENT_READ)
            checked_at = 0.0
            while out.fileno() in selector.get_map():
                for key, _ in selector.select(POLL_SECONDS):
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is err:
                        self.tail = (self.tail + data)[-_TAIL_BYTES:]
                    else:
                        *lines, partial_line = (partial_line + data).split(b"\n")
                        yield from map(json.loads, lines)
                if time.monotonic() - checked_at >= POLL_SECONDS:
                    self._check_limits()
                    checked_at = time.monotonic()
        self.process.wait()
        while data := os.read(err.fileno(), 1 << 16):
            self.tail = (self.tail + data)[-_TAIL_BYTES:]

    def _handle(self, message: dict[str, Any]) -> None:
        from structlog.contextvars import bound_contextvars

        match message["kind"]:
            case "file":
                self.file, self.byte_count = message["name"], message["size"]
                self.cpu_before = self._cpu_seconds()
            case "progress":
                self.on_progress(message["count"])
            case "left_out":
                left_out.add(message["records"])
            case "log":
                with bound_contextvars(**message["fields"]):
                    logging.getLogger(message["logger"]).log(message["level"], "%s", message["text"])
            case _:
                self.outcome = message

    def _cpu_seconds(self) -> float:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(self.process.pid).cpu_times()
            return float(times.user + times.system)
        return self.cpu_before

    def _check_limits(self) -> None:
        with contextlib.suppress(psutil.Error):
            resident = psutil.Process(self.process.pid).memory_info().rss
            if resident > self.bounds.megabytes * 1_000_000:
                raise self._memory_error()
        allowance = self.bounds.seconds + self.byte_count / SHARE_BYTES
        if self._cpu_seconds() - self.cpu_before > allowance:
            problem = f"takes more than {allowance:,.0f} CPU seconds, too many for {self.byte_count:,} bytes"
            advice = f"if you trust the file, set UNDERTONE_IMPORT_SECONDS={10 * self.bounds.seconds:.0f}"
            raise BadInput(f"{self.file}: {problem}; {advice}")
        if (seconds := time.monotonic() - self.started_at) > WALL_SECONDS + 10 * allowance:
            advice = "look for a slow disk or a locked database, then run it again"
            raise UndertoneError(f"{self.file}: not done after {seconds:,.0f} seconds, most of them idle; {advice}")

    def _memory_error(self) -> BadInput:
        advice = f"if you trust it, set UNDERTONE_IMPORT_MEMORY={2 * self.bounds.megabytes} (megabytes)"
        problem = f"takes more than {self.bounds.megabytes:,} MB of memory; cut the file into parts"
        return BadInput(f"{self.file}: {problem} or, {advice}")

    def _result(self) -> Any:
        if stderr := self.tail.decode("utf-8", "replace").strip():
            log.info("the child process wrote: %s", stderr)
        if self.outcome is None:
            raise self._crash(stderr)
        if self.outcome["kind"] == "result":
            return self.outcome["value"]
        name, message = self.outcome["class"], self.outcome["message"]
        if name == "MemoryError":
            raise self._memory_error()
        if name == "PanicException":
            raise BadInput(f"{self.file}: its reader stopped ({message}); the file is damaged")
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, UndertoneError):
            raise kind(message)
        bug = UndertoneError(f"{self.file}: a bug in Undertone: {name}; --verbose prints where; please report it")
        bug.exit_code = BUG
        raise bug

    def _crash(self, stderr: str) -> UndertoneError:
        code = self.process.returncode
        if "memory allocation of" in stderr:  # Rust writes it before it aborts
            return self._memory_error()
        end = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        if code < 0 and -code in _CRASHES:
            return BadInput(f"{self.file}: the reader of this format crashed ({end}); the file is damaged")
        if code == -signal.SIGKILL:
            problem = "the import was killed from outside (SIGKILL), as a system does that runs out of memory"
            advice = f"set UNDERTONE_IMPORT_MEMORY below {self.bounds.megabytes} (megabytes), or add memory"
            return UndertoneError(f"{self.file}: {problem}; {advice}")
        return UndertoneError(f"{self.file}: the import ended without a result ({end}): {stderr[-300:]}")
