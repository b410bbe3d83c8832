"""What machines read of a log line: fields beside the words."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pipeline import logs

log = logging.getLogger("pipeline.test")
Said = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[Said]:
    """The lines that were logged so far, as JSON."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logs.create_formatter())
    log.addHandler(handler)
    caplog.set_level(logging.INFO, logger="pipeline")
    yield lambda: [json.loads(line) for line in out.getvalue().splitlines()]
    log.removeHandler(handler)


def test_fields_stand_beside_the_words(said: Said) -> None:
    """A line has time, level, logger, words and fields; what is not known is left out, and the next line has none."""
    logs.log_event(log, "comments: 3 rows %s", table="comments", rows=3, bytes=None, slice={"source": "微博"})
    log.warning("%d rows", 2)
    first, second = said()
    assert first.pop("timestamp") <= second.pop("timestamp")
    assert first == {
        "level": "info", "logger": "pipeline.test", "event": "comments: 3 rows %s", "table": "comments", "rows": 3,
        "slice": {"source": "微博"},
    }  # fmt: skip
    assert second == {"level": "warning", "logger": "pipeline.test", "event": "2 rows"}


def test_a_task_of_airflow_is_named(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    """DAG, task and run come from what Airflow tells its tasks; a run given goes before."""
    for name, value in (("DAG_ID", "score"), ("TASK_ID", "publish"), ("DAG_RUN_ID", "r1")):
        monkeypatch.setenv(f"AIRFLOW_CTX_{name}", value)
    logs.log_event(log, "done")
    logs.log_event(log, "done", run="r2")
    assert [(one["dag"], one["task"], one["run"]) for one in said()] == [
        ("score", "publish", "r1"), ("score", "publish", "r2"),
    ]  # fmt: skip


def test_an_error_is_one_line(said: Said) -> None:
    """A traceback is a field, so that a line is a record."""
    try:
        raise ValueError("no")
    except ValueError:
        log.exception("failed")
    [one] = said()
    assert "ValueError: no" in one["exception"]
