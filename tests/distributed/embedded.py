"""The embedded installation: the same DAGs in one process, on a SQLite catalog and a local folder.

Run as `python -m distributed.embedded STEPS`, with tests/ on the path, and UNDERTONE_HOME and AIRFLOW_HOME set; see
`steps.as_json`.
"""

import datetime as dt
import json
import sys
import time
from typing import Any

from pipeline import warehouse
from tests.support.dag_run import DAGS, dag_run, prepared


def main(steps: list[list[Any]]) -> None:
    """Do the steps; stop at the first that fails."""
    from airflow.providers.standard.operators.hitl import ApprovalOperator

    def approve(self: Any, context: Any) -> Any:
        answer = {"chosen_options": [ApprovalOperator.APPROVE], "params_input": {}, "timedout": False}
        admin = {"responded_at": dt.datetime.now(dt.UTC), "responded_by_user": {"id": "1", "name": "admin"}}
        return self.execute_complete(context, {**answer, **admin})

    prepared()
    ApprovalOperator.execute = approve  # type: ignore[method-assign]  # nobody is there to be asked
    warehouse.create()
    for dag_id, day, conf in steps:
        timer = time.monotonic()
        file = "segment" if dag_id == "tokenize" else dag_id
        run = dag_run(DAGS / f"{file}.py", {**conf, **({"day": day} if day else {})})
        print(f"STEP {dag_id} {run.state} {time.monotonic() - timer:.1f} s", flush=True)  # noqa: T201
        if run.state != "success":
            raise SystemExit(1)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
