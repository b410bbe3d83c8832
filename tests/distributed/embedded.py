"""The embedded installation: the same DAGs in one process, on a SQLite catalog and a local folder.

Run as `python embedded.py STEPS`, with UNDERTONE_HOME and AIRFLOW_HOME set; see `steps.as_json`.
"""

import datetime as dt
import json
import sys
import time
from typing import Any

from pipeline import warehouse
from pipeline.commands import stack


def main(steps: list[list[Any]]) -> None:
    """Do the steps; stop at the first that fails."""
    from airflow.dag_processing.dagbag import DagBag
    from airflow.models.pool import Pool
    from airflow.providers.standard.operators.hitl import ApprovalOperator
    from airflow.utils.db import initdb

    def approved(self: Any, context: Any) -> Any:
        by = {"id": "1", "name": "admin"}
        answer = {"chosen_options": [ApprovalOperator.APPROVE], "params_input": {}, "timedout": False}
        return self.execute_complete(
            context, {**answer, "responded_at": dt.datetime.now(dt.UTC), "responded_by_user": by}
        )

    initdb()
    Pool.create_or_update_pool("gpu", 1, "", include_deferred=False)
    ApprovalOperator.execute = approved  # type: ignore[method-assign]  # nobody is there to be asked
    sys.path.append(str(stack.dags_folder()))
    warehouse.create()
    for dag_id, day, conf, _ in steps:
        start = time.monotonic()
        dag = DagBag(dag_folder=str(stack.dags_folder() / f"{FILES.get(dag_id, dag_id)}.py")).dags[dag_id]
        done = dag.test(logical_date=None, run_conf={**conf, **({"day": day} if day else {})})
        print(f"STEP {dag_id} {done.state} {time.monotonic() - start:.1f} s", flush=True)  # noqa: T201
        if done.state != "success":
            raise SystemExit(1)


FILES = {"tokenize": "segment"}

if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
