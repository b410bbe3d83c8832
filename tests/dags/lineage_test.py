"""Lineage: what Airflow's OpenLineage provider says of our tasks, into a file."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import lineage, sample
from pipeline.tasks.record import runs
from pipeline.warehouse import write as writing
from tests.support.dag_run import DAGS

DAY = sample.DAY
CANARY = "quoted-words-of-somebody"
# a process of its own, since the provider reads its settings once; a run that succeeds, and one that fails
RUN = f"""
import sys
sys.path += {[str(DAGS), str(DAGS.parent)]!r}
from pathlib import Path
from tests.support.dag_run import dag_run
from pipeline import warehouse
warehouse.create()
for conf in ({{"source": "weibo", "path": "sample"}}, {{"{CANARY}": "x"}}):
    print(dag_run(Path({str(DAGS / "collect.py")!r}), {{"day": "{DAY}", **conf}}).state)
"""


@pytest.fixture
def events(airflow_db: None, tmp_path: Path) -> list[dict[str, Any]]:
    """The events of both runs, with the settings that README names."""
    transport = {
        "type": "transform", "transformer_class": "pipeline.lineage.Quiet",
        "transport": {"type": "file", "log_file_path": str(tmp_path / "events.jsonl"), "append": True},
    }  # fmt: skip
    env = {
        **os.environ, "UNDERTONE_HOME": str(tmp_path / "home"), "UNDERTONE_USER_KEY": CANARY,
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport), "AIRFLOW__OPENLINEAGE__NAMESPACE": "undertone",
        "AIRFLOW__OPENLINEAGE__EXTRACTORS": "pipeline.lineage.Tables",
    }  # fmt: skip
    process = subprocess.run([sys.executable, "-c", RUN], env=env, capture_output=True, text=True, check=False)
    states = [line for line in process.stdout.splitlines() if line in {"success", "failed"}]
    assert states == ["success", "failed"], process.stdout + process.stderr
    return [json.loads(line) for line in (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()]


def of_task(events: list[dict[str, Any]], task: str, kind: str) -> dict[str, Any]:
    """The first event of a task of a kind."""
    return next(event for event in events if event["job"]["name"] == f"collect.{task}" and event["eventType"] == kind)


@pytest.mark.slow
@pytest.mark.nightly
def test_events_of_tasks_and_runs(events: list[dict[str, Any]]) -> None:
    """Each task starts and completes or fails, and so do the runs.

    What a task publishes is a dataset by its asset's address, and its row of `runs` is a run facet. Neither the
    sample's comments nor a key, a parameter or the words of an exception are in any event.
    """
    for task in ("day", "sources", "collect_source", "publish"):
        assert of_task(events, task, "START")["job"]["namespace"] == "undertone"
        assert of_task(events, task, "COMPLETE")
    assert of_task(events, "day", "FAIL")
    assert [event["eventType"] for event in events if event["job"]["name"] == "collect"] == ["COMPLETE", "FAIL"]
    published = {(output["namespace"], output["name"]) for output in of_task(events, "publish", "COMPLETE")["outputs"]}
    names = ("articles", "comments", "dropped", "raw_pages", "runs")
    assert published == {("iceberg://undertone", name) for name in names}
    [row] = of_task(events, "collect_source", "COMPLETE")["run"]["facets"]["undertone_runs"]["rows"]
    assert (row["step"], row["source"], row["day"]) == ("collect", "weibo", DAY)
    assert row["read_count"] == row["kept_count"] + row["dropped_count"] > 0
    content = json.dumps(events, ensure_ascii=False)
    failed = of_task(events, "day", "FAIL")["run"]["facets"]
    assert failed["errorMessage"]["message"] == lineage.FAILED
    assert "conf" not in failed["airflow"]["dagRun"]
    assert CANARY not in content
    assert not re.search(r"[\u4e00-\u9fff]", content)  # the sample of this site is Chinese, and nothing of ours is


def test_outputs_are_what_the_task_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and bytes of a table's slices are summed; what other tasks of the process wrote is not told."""
    fields, other = ({"dag": "d", "task": name, "run": "r"} for name in ("mine", "other"))
    wrote = [
        {"table": "tokens", "rows": 3, "bytes": 10, **fields}, {"table": "runs", "rows": 1, "bytes": 5, **fields},
        {"table": "tokens", "rows": 4, "bytes": 20, **fields}, {"table": "scores", "rows": 9, "bytes": 9, **other},
    ]  # fmt: skip
    monkeypatch.setattr(writing, "WRITTEN", wrote)
    monkeypatch.setattr(runs, "RECENT_ROWS", [{"step": "tokenize", **fields}, {"step": "score", **other}])
    assets = [SimpleNamespace(uri=f"iceberg://undertone/{name}") for name in ("comments", "tokens")]
    operator = SimpleNamespace(inlets=[assets[0], SimpleNamespace(uri="s3://elsewhere/x")], outlets=[assets[1]])
    task = SimpleNamespace(dag_id="d", task_id="mine", run_id="r")
    outputs = lineage.Tables(operator).extract_on_complete(task)
    assert [data_set.name for data_set in outputs.inputs] == ["comments"]
    statistics = {data_set.name: data_set.outputFacets["outputStatistics"] for data_set in outputs.outputs}
    sizes = {name: (data_set.rowCount, data_set.size) for name, data_set in statistics.items()}
    assert sizes == {"tokens": (7, 30), "runs": (1, 5)}
    assert outputs.run_facets["undertone_runs"].rows == [{"step": "tokenize", **fields}]
    assert [data_set.name for data_set in lineage.Tables(operator).extract().outputs] == ["tokens"]
