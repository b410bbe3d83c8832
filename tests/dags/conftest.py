"""The DAGs as Airflow sees them, and running one in this process."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DAGS = Path(__file__).resolve().parents[2] / "dags"


@pytest.fixture(scope="session")
def airflow_db() -> None:
    """Airflow's own database, once a test session."""
    from airflow.utils.db import initdb

    sys.path.append(str(DAGS))  # the DAG processor and tasks do so too, at the end
    initdb()
    from airflow.models.pool import Pool

    Pool.create_or_update_pool("gpu", 1, "", include_deferred=False)


def load(path: Path = DAGS) -> Any:
    """The DAG files parsed anew: `dag.test` leaks its parameters into later calls on the same object."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=str(path))


@pytest.fixture(scope="session")
def dag_files(airflow_db: None) -> dict[str, Path]:
    """The file of each DAG."""
    return {dag_id: Path(dag.fileloc) for dag_id, dag in load().dags.items()}


@pytest.fixture
def run(dag_files: dict[str, Path], tables: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`run("score", day=…)`: the DAG run after `dag.test`, on fresh tables.

    `dag.test` parses and writes down every DAG of the folder each time, for those that start one another; none of ours
    does, so it finds the one file alone.
    """
    from airflow.dag_processing import dagbag

    whole = dagbag.BundleDagBag

    def once(dag_id: str, *, logical_date: Any = None, **conf: Any) -> Any:
        path = dag_files[dag_id]
        monkeypatch.setattr(dagbag, "BundleDagBag", lambda **given: whole(**given | {"dag_folder": path}))
        return load(path).dags[dag_id].test(logical_date=logical_date, run_conf=conf)

    return once
