"""The DAGs as Airflow sees them, and running one in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.warehouse.write import WRITTEN
from tests.support.commands import import_here
from tests.support.dag_run import DAGS, dag_run, prepared


@pytest.fixture(scope="session")
def airflow_db() -> None:
    """Airflow's own database, once a test session."""
    prepared()


def load(path: Path = DAGS) -> Any:
    """The DAG files parsed anew."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=str(path))


@pytest.fixture(scope="session")
def bag(airflow_db: None) -> Any:
    """The DAG files parsed once."""
    return load()


@pytest.fixture(scope="session")
def dags(bag: Any) -> dict[str, Any]:
    """Each DAG."""
    return dict(bag.dags)


@pytest.fixture
def run(dags: dict[str, Any], tables: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`run("score", day=…)`: the DAG run when its tasks have ended, on fresh tables. What it wrote, it announces."""
    import_here(monkeypatch)

    def once(dag_id: str, *, logical_date: Any = None, **conf: Any) -> Any:
        WRITTEN.clear()
        ended_run = dag_run(Path(dags[dag_id].fileloc), conf, logical_date)
        outlets = {asset.name for task in dags[dag_id].tasks for asset in task.outlets}
        assert {write["table"] for write in WRITTEN if write.get("dag") == dag_id} <= outlets
        return ended_run

    return once
