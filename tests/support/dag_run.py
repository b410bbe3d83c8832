"""Running a DAG in this process, as `airflow dags test` does."""

import datetime as dt
import json
import sys
import warnings
from functools import cache
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
    ours does, so it finds the one file alone. The schema of a parameter is checked once, not for each task.
    """
    from airflow.dag_processing import dagbag
    from jsonschema.validators import Draft202012Validator as Validator

    bundle, check = dagbag.BundleDagBag, cache(lambda schema: check_schema(json.loads(schema)))
    check_schema = Validator.check_schema
    with (
        mock.patch.object(dagbag, "BundleDagBag", lambda **options: bundle(**options | {"dag_folder": path})),
        mock.patch.object(Validator, "check_schema", lambda schema: check(json.dumps(schema))),
    ):
        [dag] = dagbag.DagBag(dag_folder=str(path)).dags.values()
        with warnings.catch_warnings():  # each `dag.test` is a version of the DAG
            warnings.filterwarnings("ignore", "Multiple rows returned with uselist=False")
            return dag.test(logical_date=logical_date, run_conf=conf)
