"""Defaults of all DAGs: assets, tags, default arguments, alerts, and the task that resolves the day."""

import datetime as dt
import os
from enum import StrEnum
from typing import Any

from airflow.sdk import (
    Asset,
    AsyncCallback,
    CronPartitionTimetable,
    CronTriggerTimetable,
    DeadlineAlert,
    DeadlineReference,
    ExceptionRetryPolicy,
    RetryAction,
    RetryRule,
    task,
)

from pipeline import private, settings

COMMENTS, TOKENS, MODELS, SCORES, LABELS = (
    Asset(name=name, uri=f"iceberg://undertone/{name}")
    for name in ("comments", "tokens", "models", "scores", "annotated_comments")
)


class Tag(StrEnum):
    """The tags of the DAGs."""

    COLLECT = "collect"
    TEXT = "text"
    LABEL = "label"
    TRAIN = "train"
    SCORE = "score"
    REPORT = "report"
    UPKEEP = "upkeep"


_FINAL = ("BadInput", "SchemaDrift", "Refused", "Missing")  # a retry changes nothing


def alert_failure(context: Any) -> None:
    """Report to the webhook or the log that a task failed for good: names and the type of the error, not its text."""
    from pipeline import alerts

    ti, run, error = context["ti"], context.get("dag_run"), context.get("exception")
    day = getattr(run, "partition_key", None)
    name = type(error).__name__ if error else "WorkerLost"  # the DAG processor calls without an exception
    alerts.report_failed_task(ti.dag_id, ti.task_id, ti.run_id, day, ti.try_number, name)


def deadline() -> DeadlineAlert | None:
    """Build an alert for a run that has not ended some hours after it was queued (UNDERTONE_DEADLINE_HOURS).

    None by default. Not counted from the day, so that a backfill of old days is not late before it starts.
    """
    hours = settings.deadline_hours()
    if hours is None:
        return None
    return DeadlineAlert(
        name="in time",
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=dt.timedelta(hours=hours),
        callback=AsyncCallback("pipeline.alerts.deadline_missed"),
    )


def mark_attempt(context: Any) -> None:
    """Record the attempt: one that lost its worker, and still runs, must not overwrite its retry."""
    ti = context["ti"]
    # with the index: tasks mapped side by side do not overtake each other
    os.umask(private.MASK)  # of this process, which runs this task alone
    settings.begin(f"{ti.dag_id}.{ti.task_id}.{ti.map_index}", ti.start_date)


# No start_date, and `partition_cron` or `plain_cron`: unpausing must not start a run at once.
# Lost races are normal; the retries resolve them.
DEFAULTS: dict[str, Any] = {
    "catchup": False,
    "default_args": {
        "owner": "undertone",
        "retries": 3,
        "pre_execute": mark_attempt,
        "retry_delay": dt.timedelta(seconds=5),
        "on_failure_callback": alert_failure,
        "retry_policy": ExceptionRetryPolicy(
            rules=[RetryRule(exception=f"pipeline.errors.{name}", action=RetryAction.FAIL) for name in _FINAL]
        ),
    },
}


def build_options(tag: Tag, doc: str | None, **more: Any) -> dict[str, Any]:
    """Build the arguments of a DAG."""
    return {**DEFAULTS, "tags": [tag], "doc_md": doc, **more}


def build_daily(tag: Tag, doc: str | None) -> dict[str, Any]:
    """Build the arguments of a DAG of the daily chain."""
    return build_options(tag, doc, deadline=deadline())


# Airflow treats False, its default, as None: a DAG that is unpaused within a tenth of the interval after a tick,
# such as a weekly one on Monday afternoon, would run at once.
_NEVER_AT_ONCE = dt.timedelta(0)


def partition_cron(cron: str) -> CronPartitionTimetable:
    """Build a schedule whose partition key is the day before the tick."""
    options = {"run_offset": -1, "key_format": "%Y-%m-%d", "run_immediately": _NEVER_AT_ONCE}
    return CronPartitionTimetable(cron, timezone="UTC", **options)


def plain_cron(cron: str) -> CronTriggerTimetable:
    """Build a schedule of runs without a day."""
    return CronTriggerTimetable(cron, timezone="UTC", run_immediately=_NEVER_AT_ONCE)


@task(task_id="day")
def resolve_day(dag_run: Any = None, params: Any = None, dag: Any = None) -> str:
    """Resolve the one day that this run reads and writes; all other tasks get it from here."""
    from pipeline import slices

    slices.check_params(dag_run.conf, dag.params)
    return slices.resolve(dag_run.partition_key, params["day"], dag_run.run_after)


def _get_connection(connection: str) -> Any:
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        return Connection.get(connection)
    except AirflowNotFoundException:
        return None


def secret(connection: str) -> str | None:
    """Get the password of an Airflow connection, or None without such a connection; Airflow masks it in logs."""
    login = _get_connection(connection)
    return login and login.password


def service(connection: str, path: str = "/v1") -> tuple[str | None, str | None]:
    """Get address and key of a connection, or None and None without such a connection.

    The host may be a complete address (`http://127.0.0.1:8000/v1`). Else the port, `path` and a scheme are added: http
    if schema or connection type is http, else https.
    """
    login = _get_connection(connection)
    if login is None:
        return None, None
    host = login.host or ""
    scheme = next((name for name in (login.schema, login.conn_type) if name in {"http", "https"}), "https")
    url = host if "://" in host else f"{scheme}://{host}"
    if host and url.count(":") < 2 and login.port:
        url = f"{url}:{login.port}"
    if host and not url.partition("://")[2].partition("/")[2]:
        url = f"{url.rstrip('/')}{path}"
    return (url if host else None), login.password
