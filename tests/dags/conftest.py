"""The DAGs as Airflow sees them, and running one in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.warehouse.write import WRITTEN
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
def dag_files(airflow_db: None) -> dict[str, Path]:
    """The file of each DAG."""
    return {dag_id: Path(dag.fileloc) for dag_id, dag in load().dags.items()}


@pytest.fixture
def run(dag_files: dict[str, Path], tables: Path) -> Callable[..., Any]:
    """`run("score", day=…)`: the DAG run when its tasks have ended, on fresh tables. What it wrote, it announces."""

    def once(dag_id: str, *, logical_date: Any = None, **conf: Any) -> Any:
        WRITTEN.clear()
        ended_run = dag_run(dag_files[dag_id], conf, logical_date)
        outlets = [asset for task in ended_run.dag.tasks for asset in task.outlets]
        names = {
            asset["name"] if isinstance(asset, dict) else asset.name for asset in outlets
        }  # of mapped tasks: dicts
        assert {write["table"] for write in WRITTEN if write.get("dag") == dag_id} <= names
        return ended_run

    return once
