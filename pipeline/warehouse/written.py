"""What this process has written into tables: a log line each, and a count of bytes for `runs`."""

import logging
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar

from pipeline import logs, settings

log = logging.getLogger(__name__)

WRITTEN: deque[dict[str, object]] = deque(maxlen=1000)
"""The last slices that this process has written: table, rows, bytes, and dag, task and run, for lineage."""
_BYTES: ContextVar[int] = ContextVar("bytes_written", default=0)


def bytes_written() -> int:
    """Bytes of the files that this thread has put into tables so far."""
    return _BYTES.get()


def tell(name: str, where: Mapping[str, object], rows: int, byte_count: int, seconds: float, run_id: str) -> None:
    """Say and count that a slice was written."""
    _BYTES.set(_BYTES.get() + byte_count)
    here: dict[str, object] = {"table": name, "rows": rows, "bytes": byte_count, **settings.airflow_task()}
    WRITTEN.append(here)
    told = {column: str(value) for column, value in where.items()}
    logs.event(
        log, f"{name}: {rows} rows in {told}", table=name, slice=told, rows=rows, bytes=byte_count,
        seconds=round(seconds, 3), run=run_id,
    )  # fmt: skip
