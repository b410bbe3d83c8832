"""Alerts reach the webhook, or the log; they carry names and times and nothing else."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from pipeline import alerts, settings
from pipeline.errors import BadInput

PATH = "/hooks/secret-token"
CONTEXT: dict[str, Any] = {
    "dag_run": {
        "dag_id": "score", "dag_run_id": "scheduled__1", "partition_key": "2026-11-19", "state": "running",
        "conf": {"cookie": "of-somebody"},
    },
    "deadline": {"id": "1", "deadline_time": "2026-11-20T06:00:00+00:00"},
}  # fmt: skip


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[int], list[Any]]]:
    """A webhook that answers with the given statuses, then 200; and the bodies it got."""
    statuses: list[int] = []
    bodies: list[Any] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
            self.send_response(statuses.pop(0) if statuses else 200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("UNDERTONE_ALERT_URL", f"http://127.0.0.1:{server.server_port}{PATH}")
        monkeypatch.setattr(alerts, "WAIT", 0.0)
        yield statuses, bodies
        server.shutdown()


def test_a_missed_deadline_is_posted(webhook: Any) -> None:
    """The note names DAG, day, run, state and deadline, and not the run's parameters."""
    asyncio.run(alerts.deadline_missed(CONTEXT))
    [(path, body)] = webhook[1]
    assert path == PATH
    assert body == {
        "text": "undertone: score of 2026-11-19 was not done by 2026-11-20T06:00:00+00:00", "kind": "deadline_missed",
        "dag": "score", "run": "scheduled__1", "day": "2026-11-19", "state": "running",
        "deadline": "2026-11-20T06:00:00+00:00",
    }  # fmt: skip


def test_a_failed_task_is_posted(webhook: Any) -> None:
    """The note names the task and the type of the error."""
    alerts.report_failed_task("score", "publish", "r1", None, 3, "Retry")
    [(_, body)] = webhook[1]
    assert body == {
        "text": "undertone: publish of score failed: Retry", "kind": "task_failed", "dag": "score", "task": "publish",
        "run": "r1", "day": None, "tries": 3, "error": "Retry",
    }  # fmt: skip


@pytest.mark.parametrize(("statuses", "line"), [([503, 429], ""), ([500] * alerts.ATTEMPTS, "answered 500")])
def test_a_fault_is_tried_again(webhook: Any, caplog: pytest.LogCaptureFixture, statuses: list[int], line: str) -> None:
    """Two refusals are no reason to give up; after three the status is in the log, without the address."""
    webhook[0][:] = statuses
    alerts.post("it rains", {})
    assert (len(webhook[1]), line in caplog.text, "secret-token" in caplog.text) == (3, True, False)


@pytest.mark.parametrize(
    ("url", "told"), [(None, ""), ("http://127.0.0.1:1/secret-token", "ConnectError"), ("no address", "Unsupported")]
)
def test_without_a_webhook_it_is_a_log_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, url: str | None, told: str
) -> None:
    """Where nobody takes the note it is an ERROR line as JSON; nothing is raised, and the address is not told."""
    monkeypatch.setattr(alerts, "WAIT", 0.0)
    if url:
        monkeypatch.setenv("UNDERTONE_ALERT_URL", url)
    alerts.post("it rains", {"dag": "score"})
    first, *rest = [record for record in caplog.records if record.name == alerts.log.name]
    assert first.levelname == "ERROR"
    assert json.loads(first.getMessage()) == {"text": "undertone: it rains", "dag": "score"}
    assert told in "".join(record.getMessage() for record in rest)
    assert "secret-token" not in caplog.text


@pytest.mark.parametrize("given", ["soon", "0", "-1", "nan"])
def test_hours_are_a_number(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    """Hours that are none are refused by name."""
    monkeypatch.setenv("UNDERTONE_DEADLINE_HOURS", given)
    with pytest.raises(BadInput, match="UNDERTONE_DEADLINE_HOURS"):
        settings.deadline_hours()
