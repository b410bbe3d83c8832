"""Attempts at tasks, each a process that a server with everything imported forks; tests kill, stop and watch it."""

import importlib
import json
import multiprocessing
import os
import signal
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.tasks.daily import bounded

PRELOADED = [
    "tests.faults.whole", "polars", "pyarrow.dataset", "pyiceberg.catalog.sql", "pyiceberg.io.pyarrow", "psycopg2",
    "torch", "sklearn.linear_model", "nltk", "jieba", "openai", "duckdb", "matplotlib.figure",
    "pipeline.tasks.commenting.generated", "pipeline.tasks.impscore.train", "pipeline.training.impscore.fit",
    "pipeline.training.impscore.heads", "pipeline.models.encoder", "pipeline.models.subtext.seq2seq",
    "pipeline.training.commenting.retrieval", "pipeline.training.recam.readers",
]  # fmt: skip
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(PRELOADED)


class Call(NamedTuple):
    """A call of a task: `MODULE:NAME` or a function below `pipeline.tasks`, such as `score.pin`."""

    task: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]


class Outcome(NamedTuple):
    """How an attempt ended: done (with what the task returned), an error's name, or killed by a signal."""

    word: str
    value: Any = None


class Attempt:
    """One attempt at a task."""

    def __init__(self, call: Call, env: Mapping[str, str]) -> None:
        self.task = call.task
        self._reads, writes = _FORKS.Pipe(duplex=False)
        self.process = _FORKS.Process(target=_run, args=(json.dumps(call), dict(env), writes))
        self.process.start()
        writes.close()

    def signal(self, number: signal.Signals) -> bool:
        """Send it a signal; whether it was still at work."""
        if self.process.exitcode is not None or self._reads.poll():
            return False
        try:
            os.kill(self.process.pid or 0, number)
        except ProcessLookupError:
            return False
        return True

    def wait(self, seconds: float) -> bool:
        """Wait so long for its end; whether it came."""
        return self._reads.poll(seconds)

    def outcome(self) -> Outcome:
        """Wait for its end."""
        try:
            word, value = self._reads.recv()
        except (EOFError, ConnectionError):
            word, value = "killed", None
        self._reads.close()
        self.process.join()
        self.process.close()
        return Outcome(word, value)


def _run(call: str, env: dict[str, str], writes: Connection) -> None:
    """In the process: do the task, and send the outcome."""
    os.environ.update(env)
    log = os.open(env["FAULTS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    watch_commits()
    watching = f"from {__name__} import watch_commits; watch_commits(is_child=True); main()"
    bounded._START = bounded._START.replace("main()", watching)
    task, args, options = json.loads(call)
    module, _, name = task.partition(":") if ":" in task else f"pipeline.tasks.{task}".rpartition(".")
    try:
        value = getattr(importlib.import_module(module), name)(*args, **options)
        outcome = ("done", json.loads(json.dumps(value, default=str)))
    except BaseException as error:  # noqa: BLE001  # sent, whatever it is
        traceback.print_exc()
        outcome = (type(error).__name__, str(error))
    writes.send(outcome)


def list_server_threads() -> list[str]:
    """List the names of the threads of the process that forks attempts; called in an attempt."""
    return [path.read_text().strip() for path in Path(f"/proc/{os.getppid()}/task").glob("*/comm")]


def watch_commits(*, is_child: bool = False) -> None:
    """Record every snapshot that is published, and die, with its parent if a child, after FAULTS_DIES_AFTER of them."""
    from pyiceberg.catalog.sql import SqlCatalog

    path = Path(os.environ.get("FAULTS_COMMITS", os.devnull))
    commit, remaining = SqlCatalog.commit_table, [int(os.environ.get("FAULTS_DIES_AFTER", "0"))]

    def commit_watched(self: Any, table: Any, *arguments: Any) -> Any:
        response = commit(self, table, *arguments)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([table.name()[-1], response.metadata.current_snapshot_id]) + "\n")
        remaining[0] -= 1
        if remaining[0] == 0:
            if is_child:
                os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        return response

    SqlCatalog.commit_table = commit_watched  # type: ignore[method-assign]
