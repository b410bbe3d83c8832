"""What all our DAGs share: assets, tags, default arguments, and the task that resolves the day."""

import datetime as dt
from enum import StrEnum
from typing import Any

from airflow.sdk import Asset, CronPartitionTimetable, ExceptionRetryPolicy, Param, RetryAction, RetryRule, task

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

# No start_date: unpausing must not start a run at once. Lost races are normal traffic; the retry is the redo loop.
HOUSE: dict[str, Any] = {
    "catchup": False,
    "default_args": {
        "owner": "undertone",
        "retries": 3,
        "retry_delay": dt.timedelta(seconds=5),
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


def every(cron: str) -> CronPartitionTimetable:
    """A schedule whose partition key is the day before the tick."""
    return CronPartitionTimetable(cron, timezone="UTC", run_offset=-1, key_format="%Y-%m-%d")


@task(task_id="day")
def the_day(dag_run: Any = None, params: Any = None, dag: Any = None) -> str:
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
        found = Connection.get(connection)
    except AirflowNotFoundException:
        return None, None
    host = found.host or ""
    scheme = next((name for name in (found.schema, found.conn_type) if name in {"http", "https"}), "https")
    whole = host if "://" in host else f"{scheme}://{host}"
    if host and whole.count(":") < 2 and found.port:
        whole = f"{whole}:{found.port}"
    if host and not whole.partition("://")[2].partition("/")[2]:
        whole = f"{whole.rstrip('/')}{path}"
    return (whole if host else None), found.password
