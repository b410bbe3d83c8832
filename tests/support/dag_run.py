"""Running a DAG in this process, as `airflow dags test` does."""

import datetime as dt
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

DAGS = Path(__file__).resolve().parents[2] / "dags"


def prepared() -> None:
    """Airflow's own database, the pool of the heavy tasks, and what DAG files import."""
    from airflow.models.pool import Pool
    from airflow.utils.db import initdb

    sys.path.append(str(DAGS))  # the DAG processor and tasks do so too, at the end
    initdb()
    Pool.create_or_update_pool("gpu", 1, "", include_deferred=False)


def dag_run(path: Path, conf: dict[str, Any], logical_date: dt.datetime | None = None) -> Any:
    """The run of the DAG in a file, when all its tasks have ended.

    The file is parsed anew, since `dag.test` leaks its parameters into later calls on the same object. `dag.test`
    parses and writes down every DAG of the folder each time, two CPU seconds, for those that start one another; none of
    ours does, so it finds the one file alone.
    """
    from airflow.dag_processing import dagbag

    bundle = dagbag.BundleDagBag
    with mock.patch.object(dagbag, "BundleDagBag", lambda **options: bundle(**options | {"dag_folder": path})):
        [dag] = dagbag.DagBag(dag_folder=str(path)).dags.values()
        with warnings.catch_warnings():  # each `dag.test` is a version of the DAG
            warnings.filterwarnings("ignore", "Multiple rows returned with uselist=False")
            return dag.test(logical_date=logical_date, run_conf=conf)
