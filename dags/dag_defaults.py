"""What all our DAGs share: assets, tags, default arguments, alerts, and the task that resolves the day."""

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
    Param,
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
    """The only tags our DAGs bear."""

    COLLECT = "collect"
    TEXT = "text"
    LABEL = "label"
    TRAIN = "train"
    SCORE = "score"
    REPORT = "report"
    UPKEEP = "upkeep"


_FINAL = ("BadInput", "SchemaDrift", "Refused", "Missing")  # asking again changes nothing


def alert_failure(context: Any) -> None:
    """Tell the webhook or the log that a task failed for good: its names and the error's type, not its words."""
    from pipeline import alerts

    ti, run, error = context["ti"], context.get("dag_run"), context.get("exception")
    day = getattr(run, "partition_key", None)
    name = type(error).__name__ if error else "WorkerLost"  # then the DAG processor calls, and knows of no exception
    alerts.task_failed(ti.dag_id, ti.task_id, ti.run_id, day, ti.try_number, name)


def deadline() -> DeadlineAlert | None:
    """An alert where a run is not done so many hours after it was queued (UNDERTONE_DEADLINE_HOURS); none by default.

    Counted from there and not from the day, so that a backfill of old days is not late before it begins.
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
    """Say which attempt this is: one whose worker was lost, and which lives on, must not write over its retry."""
    ti = context["ti"]
    # with the index: tasks mapped side by side do not overtake each other
    os.umask(private.MASK)  # for this process, which is the task's own
    settings.begin(f"{ti.dag_id}.{ti.task_id}.{ti.map_index}", ti.start_date)


# No start_date, and `every` or `plain_cron`: unpausing must not start a run at once.
# Lost races are normal traffic; the retry is the redo loop.
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

DAY = Param(
    None,
    type=["null", "string"],
    format="date",
    title="Day",
    description="UTC day to work on, as YYYY-MM-DD. Empty: the run's partition key, else yesterday.",
)


# Airflow takes False, its default, for None: a DAG that is unpaused within a tenth of the interval after a tick,
# such as a weekly one on Monday afternoon, would run at once.
_NEVER_AT_ONCE = dt.timedelta(0)


def partition_cron(cron: str) -> CronPartitionTimetable:
    """A schedule whose partition key is the day before the tick."""
    return CronPartitionTimetable(
        cron, timezone="UTC", run_offset=-1, key_format="%Y-%m-%d", run_immediately=_NEVER_AT_ONCE
    )


def plain_cron(cron: str) -> CronTriggerTimetable:
    """A schedule of runs about no day."""
    return CronTriggerTimetable(cron, timezone="UTC", run_immediately=_NEVER_AT_ONCE)


@task(task_id="day")
def resolve_day(dag_run: Any = None, params: Any = None, dag: Any = None) -> str:
    """The one day this run reads and writes; every other task gets it from here."""
    from pipeline import slices

    slices.known_params(dag_run.conf, dag.params)
    return slices.resolve(dag_run.partition_key, params["day"], dag_run.run_after)


def secret(connection: str) -> str | None:
    """The password of an Airflow connection, or None if there is no such connection; Airflow masks it in logs."""
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        return Connection.get(connection).password
    except AirflowNotFoundException:
        return None


def service(connection: str, path: str = "/v1") -> tuple[str | None, str | None]:
    """Address and key of a connection, or None and None if there is no such connection.

    The host may be a whole address (`http://127.0.0.1:8000/v1`). Else it is completed by the port, by `path`, and by
    http where schema or connection type say so, else https.
    """
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        login = Connection.get(connection)
    except AirflowNotFoundException:
        return None, None
    host = login.host or ""
    scheme = next((name for name in (login.schema, login.conn_type) if name in {"http", "https"}), "https")
    url = host if "://" in host else f"{scheme}://{host}"
    if host and url.count(":") < 2 and login.port:
        url = f"{url}:{login.port}"
    if host and not url.partition("://")[2].partition("/")[2]:
        url = f"{url.rstrip('/')}{path}"
    return (url if host else None), login.password
