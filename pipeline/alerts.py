"""Alerts as JSON to a webhook (UNDERTONE_ALERT_URL), or as an ERROR line: a missed deadline, a failed task, a wait.

Names and times of ours are sent: no parameters of a run, and no words of an exception, which may quote a comment.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

from pipeline import settings

log = logging.getLogger(__name__)

TIMEOUT = 10.0  # seconds
ATTEMPTS = 3
WAIT = 1.0  # seconds before the second attempt; twice as many before each later one


async def deadline_missed(context: Mapping[str, Any]) -> None:
    """Report that a run was not done in time; the callback of `DeadlineAlert`, which runs in the triggerer.

    Airflow's context holds dag_run (as JSON: dag_id, dag_run_id, partition_key, state) and deadline (deadline_time).
    """
    run, deadline = context["dag_run"], context.get("deadline") or {}
    dag, day, due = run.get("dag_id"), run.get("partition_key"), deadline.get("deadline_time")
    fields = {"run": run.get("dag_run_id"), "day": day, "state": run.get("state"), "deadline": due and str(due)}
    text = f"{dag}{f' of {day}' if day else ''} was not done by {due}"
    await asyncio.to_thread(post, text, {"kind": "deadline_missed", "dag": dag, **fields})


def report_failed_task(dag: str, task: str, run: str, day: str | None, tries: int, error: str) -> None:
    """Report that a task failed for good, after so many tries; `error` is the name of the exception's type."""
    fields = {"dag": dag, "task": task, "run": run, "day": day, "tries": tries, "error": error}
    text = f"{task} of {dag}{f' of {day}' if day else ''} failed: {error}"
    post(text, {"kind": "task_failed", **fields})


def post(text: str, note: Mapping[str, object]) -> None:
    """Post a note with its `text`, which is an ERROR line too.

    It never raises: an alert that fails must not fail what it reports.
    """
    import httpx
    import tenacity

    body = {"text": f"undertone: {text}", **note}
    log.error("%s", json.dumps(body, ensure_ascii=False))
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log the address
    waits = tenacity.wait_exponential(multiplier=WAIT)
    attempts = tenacity.Retrying(stop=tenacity.stop_after_attempt(ATTEMPTS), wait=waits, reraise=True)
    try:
        if url := settings.alert_url():
            attempts(lambda: httpx.post(url, json=body, timeout=TIMEOUT).raise_for_status())
    except httpx.HTTPStatusError as why:
        log.error("the alert was not taken: the webhook answered %d", why.response.status_code)
    except Exception as why:  # noqa: BLE001 (an address that is none, no connection, no answer in time)
        log.error("the alert could not be posted: %s", type(why).__name__)
