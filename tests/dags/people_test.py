"""A DAG run waits for people by a required action, reminds of it, and goes on with or without their answers."""

import datetime as dt
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskAwaitingInput

from pipeline import alerts, settings
from pipeline.tasks.recam import ratings
from pipeline.tasks.studies import rows
from tests.support.dag_run import DAGS, dag_run

PROBE = """
from airflow.sdk import dag, task
from dag_defaults import DAY, DEFAULTS, ask_people, resolve_day, tool_param
@dag(dag_id="probe", schedule=None, params={"day": DAY, "tool": tool_param("files", "simulated")}, **DEFAULTS)
def probe():
    @task(trigger_rule="none_failed")
    def after():
        pass
    ask_people("people", "recam.ratings", ["imperceptibility"], resolve_day(), "cloze", "cloze_items") >> after()
probe()
"""
DAY = "2026-11-19"


@pytest.fixture
def actions(airflow_db: None, tables: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Bodies of the required actions, whose answer is Reject, and questionnaires of three rows."""
    from airflow.providers.standard.operators.hitl import ApprovalOperator

    bodies: list[str] = []

    def respond(self: Any, context: Any) -> Any:
        bodies.append(self.body)
        event = {"chosen_options": ["Reject"], "params_input": {}, "responded_at": dt.datetime.now(dt.UTC)}
        return ApprovalOperator.execute_complete(self, context, {**event, "responded_by_user": None})

    monkeypatch.setattr(ApprovalOperator, "execute", respond)
    assignment = {"project": "cloze", "place": "/home/cloze", "tasks": 5, "waiting": 3}
    for module in (ratings, rows):
        monkeypatch.setattr(module, "assign_tasks", lambda *_: assignment)
    monkeypatch.setattr(rows, "write_report", lambda _: "")
    monkeypatch.setattr(ratings, "collect_answers", lambda *_: 7)
    return bodies


@pytest.mark.parametrize(
    ("name", "tool", "states", "count"),
    [
        ("probe", "none", ["skipped", "skipped", "skipped"], 0),
        ("probe", "files", ["success", "success", "skipped"], 1),
        ("probe", "simulated", ["success", "success", "success"], 0),
        ("studies", "none", ["skipped", "skipped", "skipped"], 0),
        ("studies", "files", ["success", "success", "skipped"], 2),
    ],
)
def test_people_are_asked_once(
    actions: list[str], tmp_path: Path, monkeypatch: Any, name: str, tool: str, states: list[str], count: int
) -> None:
    """Without a tool none is asked; simulated people answer at once; else one action links tool, page and rows."""
    (tmp_path / "probe.py").write_text(PROBE, encoding="utf-8")
    folder, conf, page, last = {
        "probe": (tmp_path, {}, "cloze", "after"),
        "studies": (DAGS, {"studies": []}, "studies", "page"),
    }[name]
    monkeypatch.setattr("airflow.settings.DAGS_FOLDER", str(folder))
    run = dag_run(folder / f"{name}.py", {"day": DAY, "tool": tool, **conf})
    tasks = {ti.task_id: str(ti.state) for ti in run.get_task_instances()}
    assert [tasks[f"people.{name}"] for name in ("give", "approve", "collect")] == states
    assert tasks[last] == "success"
    assert len(actions) == bool(count)
    for body in actions:
        assert body.count("Project `cloze`: **3 of 5 rows wait** for answers. Tool: /home/cloze") == count
        assert f"{settings.reports()}/{page}-{DAY}.html" in body


def test_an_action_without_an_answer_is_reminded_of(airflow_db: None, caplog: pytest.LogCaptureFixture) -> None:
    """After the setting's days the alert is sent, and the action waits again for as long."""
    from dag_defaults import Approval

    action = Approval(task_id="approve", subject="Publish?")
    ti = SimpleNamespace(dag_id="csd", task_id="approve", run_id="r", xcom_pull=lambda **_: DAY)
    with pytest.raises(TaskAwaitingInput) as awaiting:
        action.execute_complete({"ti": ti}, {"error": "no response", "error_type": "timeout"})
    assert (awaiting.value.method_name, awaiting.value.timeout) == ("execute_complete", dt.timedelta(days=3))
    expected = {"kind": "people_waited_for", "dag": "csd", "task": "approve", "run": "r", "day": DAY}
    assert json.loads(caplog.messages[-1]).items() >= expected.items()


def test_a_sensor_that_waits_is_reminded_of(
    airflow_db: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first poke sends nothing, nor do pokes within the days, nor one that waits for no row; the next one does."""
    import dag_defaults

    store: dict[str, str] = {}
    state = SimpleNamespace(get=store.get, set=lambda name, value, **_: store.update({name: value}))
    ti = SimpleNamespace(dag_id="csd", task_id="raters.collect", run_id="r", xcom_pull=lambda **_: DAY)
    monkeypatch.setattr(dag_defaults, "get_current_context", lambda: {"task_state_store": state, "ti": ti})
    for age, waiting, count in ((0, 0, 0), (0, 4, 0), (2, 4, 0), (3, 0, 0), (3, 4, 1), (0, 4, 1)):
        if store and age:
            store["reminded_at"] = (dt.datetime.now(dt.UTC) - dt.timedelta(days=age)).isoformat()
        dag_defaults.remind(waiting)
        assert [record.name for record in caplog.records].count(alerts.log.name) == count
