"""Defaults of all DAGs: schedules, tags, default arguments, alerts, and the tasks that all begin with."""

import datetime as dt
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import (
    NEVER_EXPIRE,
    AsyncCallback,
    CronPartitionTimetable,
    CronTriggerTimetable,
    DeadlineAlert,
    DeadlineReference,
    ExceptionRetryPolicy,
    Param,
    PartitionedAssetTimetable,
    PartitionedAtRuntime,
    RetryAction,
    RetryRule,
    get_current_context,
    task,
    task_group,
)
from airflow.sdk.exceptions import AirflowSkipException, TaskAwaitingInput

from dag_assets import PAGES, TABLES, announce, locate_page, tables
from pipeline import private, settings


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


def prepare(context: Any) -> None:
    """Record the attempt, and look for the GPU that the task is meant for."""
    mark_attempt(context)
    if context["task"].queue == GPU["queue"]:
        from pipeline.tasks.record import due

        due.check_gpu()


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
        "pre_execute": prepare,
        "post_execute": announce,
        "retry_delay": dt.timedelta(seconds=5),
        "on_failure_callback": alert_failure,
        "retry_policy": ExceptionRetryPolicy(
            rules=[RetryRule(exception=f"pipeline.errors.{name}", action=RetryAction.FAIL) for name in _FINAL]
        ),
    },
}


def param(default: Any, title: str, description: str, **schema: Any) -> Param:
    """Build a parameter of the type of its default, or one of the values of an `enum`."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    kind = {} if "enum" in schema else {"type": kinds[type(default)]}
    return Param(default, title=title, description=description, **{**kind, **schema})


def optional_param(kind: str, title: str, description: str, **schema: Any) -> Param:
    """Build a parameter that is empty by default."""
    return Param(None, type=["null", kind], title=title, description=description, **schema)


DAY = optional_param(
    "string",
    "Day",
    "UTC day, as YYYY-MM-DD. Empty: the partition key of the run, or yesterday.",
    format="date",
)

GPU = {"queue": "gpu", "pool": "gpu"}  # of tasks that import torch: they wait as scheduled, and never starve
_UNFOLDED = 3  # parameters of a form
_COMMON = f"""
**In all DAGs.**

- `{settings.reports()}/health-<day>.html` is the page of the recent days of all DAGs.
- The task *due* skips a scheduled run if too few days have passed or too few rows are new; its log has the reason.
- A run that waits in `approve` waits for people, in the UI under *Required actions*.
- A task that stays *scheduled* needs the pool `gpu`: `airflow pools set gpu 1 GPU`.
- An interrupted training continues after its last complete epoch.
"""

# Airflow treats False, its default, as None: a DAG that is unpaused within a tenth of the interval after a tick,
# such as a weekly one on Monday afternoon, would run at once.
_NEVER_AT_ONCE = dt.timedelta(0)


def partition_cron(cron: str) -> CronPartitionTimetable:
    """Build a schedule whose partition key is the day before the tick."""
    options = {"run_offset": -1, "key_format": "%Y-%m-%d", "run_immediately": _NEVER_AT_ONCE}
    return CronPartitionTimetable(cron, timezone="UTC", **options)


def schedule(dag_id: str, *, has_day: bool) -> Any:
    """Build the schedule of a DAG from the settings; a DAG without a day has runs without a partition key."""
    value = settings.schedule(dag_id)
    if value == "off":
        return PartitionedAtRuntime() if has_day else None  # by hand, also by a partition key
    if value in TABLES:
        return PartitionedAssetTimetable(assets=TABLES[value])
    if has_day:
        return partition_cron(value)
    return CronTriggerTimetable(value, timezone="UTC", run_immediately=_NEVER_AT_ONCE)


def build(
    dag_id: str, tag: Tag, doc: str | None, params: Mapping[str, Param] | None = None, *, is_daily: bool = False
) -> dict[str, Any]:
    """Build the arguments of a DAG; of the daily chain it has a deadline. The form folds all but three parameters."""
    params = params or {}
    for param in list(params.values())[_UNFOLDED:]:
        param.schema["section"] = "More"
    return {
        **DEFAULTS,
        "dag_id": dag_id,
        "schedule": schedule(dag_id, has_day="day" in params),
        "params": params,
        "tags": [tag],
        "dag_display_name": f"{dag_id}: {re.split('[:,;.(]', doc or '', maxsplit=1)[0].strip()}",
        "description": (doc or "").partition("\n")[0],
        "doc_md": f"{doc}{_COMMON}",
        "deadline": deadline() if is_daily else None,
    }


@task(task_id="day")
def resolve_day(dag_run: Any = None, params: Any = None, dag: Any = None) -> str:
    """Resolve the one day that this run reads and writes; all other tasks get it from here."""
    from pipeline import slices

    slices.check_params(dag_run.conf, dag.params)
    return slices.resolve(dag_run.partition_key, params["day"], dag_run.run_after)


@contextmanager
def skip_missing(reason: str = "{}", dag_run: Any = None) -> Iterator[None]:
    """Skip the task if something that it needs is Missing; the reason has the message in its place `{}`.

    With `dag_run`, the task of a run that was triggered by hand fails instead.
    """
    from pipeline.errors import Missing

    try:
        yield
    except Missing as error:
        if dag_run and dag_run.run_type == "manual":
            raise
        raise AirflowSkipException(reason.format(error)) from error


@task.short_circuit(task_id="due", ignore_downstream_trigger_rules=True)
def check_due(day: str, dag: Any = None, dag_run: Any = None) -> bool:
    """Skip the rest of a run that was not triggered by hand, unless enough rows are new; the log has the reason."""
    from pipeline.tasks.record import due

    return dag_run.run_type == "manual" or due.is_due(dag.dag_id, day)


class Approval(ApprovalOperator):
    """A required action, which holds no worker; every UNDERTONE_REMIND_DAYS an alert reports that it waits."""

    def __init__(self, **options: Any) -> None:
        super().__init__(response_timeout=dt.timedelta(days=settings.remind_days()), **options)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Continue with the answer; without one, send the alert and wait again."""
        if event.get("error_type") != "timeout":
            return super().execute_complete(context, event)
        alert_waiting(context)
        raise TaskAwaitingInput(method_name="execute_complete", timeout=self.response_timeout)


class AnswersApproval(Approval):
    """The required action of `ask_people`; simulated people answer at once."""

    def execute(self, context: Any) -> None:
        """Wait for people."""
        if context["params"]["tool"] != "simulated":
            super().execute(context)


def alert_waiting(context: Any) -> None:
    """Report to the webhook or the log that a run waits for people."""
    from pipeline import alerts

    ti, day = context["ti"], context["ti"].xcom_pull(task_ids="day")
    note = {"kind": "people_waited_for", "dag": ti.dag_id, "task": ti.task_id, "run": ti.run_id, "day": day}
    alerts.post(f"{ti.task_id} of {ti.dag_id} of {day} waits for people", note)


def remind(waiting_count: int) -> None:
    """Send the alert of a sensor, UNDERTONE_REMIND_DAYS after its first poke and its last alert, if people must act."""
    if not waiting_count:
        return
    context = get_current_context()
    store, now = context["task_state_store"], dt.datetime.now(dt.UTC)
    last = store.get("reminded_at")
    if last and now - dt.datetime.fromisoformat(last) < dt.timedelta(days=settings.remind_days()):
        return
    if last:
        alert_waiting(context)
    store.set("reminded_at", now.isoformat(), retention=NEVER_EXPIRE)


_ASK = "How people answer; files: in a folder, simulated: made up, none: nobody is asked"
_REQUEST = """{% set request = ti.xcom_pull(task_ids='GROUP.give') %}
{% for work in request.assignments %}
- Project `{{ work.project }}`: **{{ work.waiting }} of {{ work.tasks }} rows wait** for answers. Tool: {{ work.place }}
{% endfor %}

The run writes its page at the end: `{{ request.page }}`.

*Approve* collects and publishes the answers so far. *Reject* continues without them."""


def tool_param(*tools: str) -> Param:
    """Build the parameter that asks people."""
    return Param("none", enum=["none", *tools], title="People", description=_ASK)


def ask_people(group: str, module: str, names: Sequence[str], day: Any, page: str, table: str, **options: Any) -> Any:
    """Build the tasks that give work to people, wait for one required action, and collect the answers there are.

    The module of `pipeline.tasks` has `assign_tasks` and `collect_answers`, both of a name, such as a subtask, with the
    day, tool, studio and run. `page` is a name of `PAGES`, `table` the one of the results; `options` are of
    the task `collect`.
    """

    @task(task_id="give", outlets=tables("label_tasks dropped runs"), trigger_rule="none_failed")
    def give_all(names: Any, day: str, params: Any = None, run_id: Any = None) -> dict[str, Any]:
        if params["tool"] == "none":
            raise AirflowSkipException("no people are asked: the parameter tool is none")
        give = import_module(f"pipeline.tasks.{module}").assign_tasks
        assignments = [give(name, day, params["tool"], find_studio(), run_id) for name in names]
        return {"assignments": assignments, "page": locate_page(PAGES[page], day)}

    @task(task_id="collect", outlets=tables(f"labels dropped runs {table}"), **options)
    def collect_all(names: Any, day: str, params: Any = None, run_id: Any = None) -> dict[str, Any]:
        collect = import_module(f"pipeline.tasks.{module}").collect_answers
        return {name: collect(name, day, params["tool"], find_studio(), run_id) for name in names}

    @task_group(group_id=group)
    def build_tasks() -> None:
        body = _REQUEST.replace("GROUP", group)
        approve = AnswersApproval(task_id="approve", subject="Collect the answers of people?", body=body)
        give_all(names, day) >> approve >> collect_all(names, day)

    return build_tasks()


def find_studio() -> Any:
    """Find the Label Studio of the connection `undertone_label_studio`, else of the environment; None without one."""
    from pipeline.tasks.labelling import projects

    return projects.find_studio(*service("undertone_label_studio", ""))


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
