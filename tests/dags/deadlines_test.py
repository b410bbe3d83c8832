"""The daily chain carries deadlines, and a missed one or a failed task reaches the webhook."""

import asyncio
import datetime as dt
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import alerts
from tests.dags.conftest import load

PROBE = """
from airflow.sdk import dag
from dag_defaults import DEFAULTS, partition_cron, deadline
@dag(dag_id="probe", schedule=partition_cron("0 0 * * *"), deadline=deadline(), **DEFAULTS)
def probe():
    pass
probe()
"""
CHAIN = {"collect", "tokenize", "score", "report"}


def test_the_daily_chain_has_deadlines(airflow_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each DAG of the chain, and no other, has an alert six hours after it was queued, by a function of the package."""
    from airflow.sdk import DeadlineReference

    monkeypatch.setenv("UNDERTONE_DEADLINE_HOURS", "6")
    deadlines = {dag.dag_id: dag.deadline for dag in load().dags.values() if dag.deadline}
    assert set(deadlines) == CHAIN
    for [alert] in deadlines.values():
        assert alert.interval == dt.timedelta(hours=6)
        assert alert.reference == DeadlineReference.DAGRUN_QUEUED_AT
        assert alert.callback.path == f"{alerts.deadline_missed.__module__}.{alerts.deadline_missed.__name__}"


def test_nobody_is_told_who_did_not_ask(dags: dict[str, Any]) -> None:
    """Without UNDERTONE_DEADLINE_HOURS no DAG has a deadline, which `airflow dags test` would stumble over."""
    assert not any(dag.deadline for dag in dags.values())


def test_a_missed_deadline_reaches_the_callback(
    airflow_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A queued run has its deadline in Airflow's database; missed, what the triggerer runs tells of DAG and day.

    The scheduler's own loop and the triggerer are not part of it: what they call is. The DAG is one of the test's own,
    so that other tests find one version of ours in the database.
    """
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.deadline import Deadline
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.triggers.callback import CallbackTrigger
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType
    from sqlalchemy import select

    monkeypatch.setenv("UNDERTONE_DEADLINE_HOURS", "6")
    (tmp_path / "probe.py").write_text(PROBE, encoding="utf-8")
    DagBundlesManager().sync_bundles_to_db()
    sync_bag_to_db(DagBag(dag_folder=str(tmp_path)), "dags-folder", None)
    now = dt.datetime.now(dt.UTC)
    with create_session() as session:
        dag = SerializedDagModel.get_dag("probe", session=session)
        run = dag.create_dagrun(
            run_id="late", run_after=now, run_type=DagRunType.MANUAL, state=DagRunState.QUEUED, session=session,
            triggered_by=DagRunTriggeredByType.TEST, partition_key="2026-11-19", conf={"name": "no-name"},
        )  # fmt: skip
        session.flush()
        deadline = session.scalars(select(Deadline).where(Deadline.dagrun_id == run.id)).one()
        assert deadline.deadline_time == run.queued_at + dt.timedelta(hours=6)
        deadline.handle_miss(session)
        assert deadline.missed
        callback = deadline.callback.data
        trigger = CallbackTrigger(callback_path=callback["path"], callback_kwargs=callback["kwargs"])

    async def runs() -> list[Any]:
        return [event.payload["state"] async for event in trigger.run()]

    assert asyncio.run(runs()) == ["running", "success"]
    [record] = [item for item in caplog.records if item.name == alerts.log.name]
    alert = json.loads(record.getMessage())
    assert (alert["dag"], alert["run"], alert["day"], alert["state"]) == ("probe", "late", "2026-11-19", "queued")
    assert "no-name" not in record.getMessage()


def test_a_lost_worker_is_told(airflow_db: None, caplog: pytest.LogCaptureFixture) -> None:
    """The DAG processor tells of a task whose worker was lost, and has no exception to name."""
    from dag_defaults import alert_failure

    alert_failure({"ti": SimpleNamespace(dag_id="score", task_id="publish", run_id="r", try_number=4)})
    alert = json.loads(caplog.messages[-1])
    assert (alert["task"], alert["run"], alert["error"]) == ("publish", "r", "WorkerLost")
