"""Airflow's REST interface, version 2, as far as the demo and the tests need it."""

import time
from typing import Any, Self

import httpx

from pipeline.commands.operate.stack import password
from pipeline.errors import Missing, Retry

_ENDED = ("success", "failed")
# Airflow 3.3 fails a task answered in the scheduler loop in which it fell asleep: it hears of the end of the first half
# when the second is queued already. A person is never that fast.
_PAUSE = 6.0


class Rest:
    """Airflow's REST interface, version 2; use it in a `with`, which closes its connections."""

    def __init__(self, url: str, secret: str | None = None) -> None:
        """Log in as admin, by default with the password of the stack of this installation."""
        credentials = {"username": "admin", "password": secret or password()[0]}
        answer = httpx.post(f"{url}/auth/token", json=credentials, timeout=30, trust_env=False)
        answer.raise_for_status()
        headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        self._http = httpx.Client(base_url=f"{url}/api/v2", headers=headers, timeout=60, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(self, method: str, path: str, accept: tuple[int, ...] = (200, 201, 204), **kwargs: Any) -> Any:
        """The answer's JSON; another status than accepted is Retry."""
        answer = self._http.request(method, path, **kwargs)
        if answer.status_code not in accept:
            raise Retry(f"Airflow: {method} {path} answered {answer.status_code}: {answer.text[:300]}")
        return answer.json() if answer.content else None

    def wait_for_dags(self, dag_ids: set[str], timeout: float = 120) -> None:
        """Wait until the DAGs are parsed."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if errors := self.call("GET", "/importErrors")["import_errors"]:
                raise Missing(f"{errors[0]['filename']} cannot be imported:\n{errors[0]['stack_trace']}")
            if dag_ids <= {dag["dag_id"] for dag in self.call("GET", "/dags", params={"limit": 100})["dags"]}:
                return
            time.sleep(0.5)
        raise Retry(f"the DAGs {', '.join(sorted(dag_ids))} were not parsed within {timeout:.0f} s")

    def pool(self, name: str, slots: int) -> None:
        """Make a pool unless it is there. A missing pool leaves tasks scheduled for ever, so pools come first."""
        body = {"name": name, "slots": slots, "description": "", "include_deferred": False}
        self.call("POST", "/pools", (200, 201, 409), json=body)

    def pause(self, *dag_ids: str, is_paused: bool = True) -> None:
        """Let DAGs run no more until they are unpaused; what their assets announce meanwhile is lost to them."""
        for dag_id in dag_ids:
            self.call("PATCH", f"/dags/{dag_id}", json={"is_paused": is_paused})

    def unpause(self, *dag_ids: str) -> None:
        """Let DAGs run."""
        self.pause(*dag_ids, is_paused=False)

    def trigger(self, dag_id: str, day: str, conf: dict[str, Any] | None = None) -> str:
        """Start a run for a day, which is its partition key; return the id of the run."""
        body = {"logical_date": None, "conf": conf or {}, "partition_key": day}
        return str(self.call("POST", f"/dags/{dag_id}/dagRuns", json=body)["dag_run_id"])

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """The DAG's runs, newest first."""
        answer = self.call("GET", f"/dags/{dag_id}/dagRuns", params={"order_by": "-id", "limit": 50})
        return list(answer["dag_runs"])

    def wait_run(
        self, dag_id: str, day: str, after: set[str], timeout: float = 600, *, approves: bool = False
    ) -> dict[str, Any]:
        """Wait for the end of a run for a day, other than those in `after`; approve what it asks, if it should."""
        end = time.monotonic() + timeout
        asleep: dict[tuple[str, int], float] = {}
        while time.monotonic() < end:
            for run in self.runs(dag_id):
                if run["dag_run_id"] in after or run["partition_key"] not in (day, None):
                    continue
                if run["state"] in _ENDED:
                    return run
                if approves:
                    self.approve(dag_id, run["dag_run_id"], asleep)
            time.sleep(0.5)
        raise Retry(f"{dag_id}: no run for {day} ended within {timeout:.0f} s")

    def approve(self, dag_id: str, run_id: str, asleep: dict[tuple[str, int], float]) -> None:
        """Approve what a run has been asking for a while; `asleep` is remembered between calls."""
        run_path = f"/dags/{dag_id}/dagRuns/{run_id}"
        for question in self.call("GET", f"{run_path}/hitlDetails")["hitl_details"]:
            task = question["task_instance"]
            if question["response_received"] or task["state"] != "awaiting_input":
                continue
            now = time.monotonic()
            if now - asleep.setdefault((task["id"], task["try_number"]), now) >= _PAUSE:
                answer = {"chosen_options": ["Approve"], "params_input": {}}
                path = f"{run_path}/taskInstances/{task['task_id']}/-1/hitlDetails"
                self.call("PATCH", path, (200, 404, 409), json=answer)

    def failures(self, dag_id: str, run_id: str) -> list[str]:
        """Names of a run's failed tasks."""
        tasks = self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")["task_instances"]
        return [task["task_id"] for task in tasks if task["state"] == "failed"]
