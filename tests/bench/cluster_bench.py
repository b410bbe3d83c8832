"""One day of a million comments tokenized by 1, 2 and 4 tasks at once on the Celery cluster of the tests.

Beside them the same work in one process, on the same store: what a cluster of one task takes longer is the price of
orchestration. Each round has other texts, since a text is cut once. Wall seconds, so it needs a quiet machine. The
argument is the count of comments. `make cluster` says what must be installed.
"""

import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pytest

from pipeline import warehouse
from pipeline.tasks.daily import tokenize
from tests.bench.browse_bench import write_day
from tests.bench.texts import generate_comments
from tests.distributed.chain import quiet
from tests.distributed.cluster import Cluster, missing
from tests.distributed.comparison import put_in_force

ROWS = 1_000_000
SLOTS = (1, 2, 4)
OTHERS = ("collect", "score", "report", "recam", "commenting", "ndd", "impscore", "studies", "csd")


def run_day(cluster: Cluster, day: str, slots: int) -> dict[str, Any]:
    """Tokenize a day with so many tasks at once; return wall seconds of the run, and of its tasks in all."""
    cluster.slots = slots
    cluster.restart("worker-default")
    cluster.rest.pool("default_pool", slots)
    run = cluster.rest.trigger("tokenize", day, {})
    quiet(cluster, [day])
    tasks = cluster.rest.call("GET", f"/dags/tokenize/dagRuns/{run}/taskInstances", params={"limit": 100})
    assert {task["state"] for task in tasks["task_instances"]} == {"success"}, cluster.rest.failures("tokenize", run)
    (ended,) = [row for row in cluster.rest.runs("tokenize") if row["dag_run_id"] == run]
    start, end = (datetime.fromisoformat(ended[name]) for name in ("start_date", "end_date"))
    return {"wall": (end - start).total_seconds(), "tasks": sum(task["duration"] for task in tasks["task_instances"])}


def main(rows: int) -> None:
    """Measure the bare process and each number of tasks."""
    if lacking := missing():
        raise SystemExit(lacking)
    print(f"{rows:,} comments a day, {tokenize.ROWS_PER_SHARD:,} a task, {os.cpu_count()} cores, "
          f"load {os.getloadavg()[0]:.1f} at {datetime.now(UTC):%H:%M}", flush=True)  # fmt: skip
    with (
        tempfile.TemporaryDirectory(prefix="undertone-bench-") as folder,
        pytest.MonkeyPatch.context() as patch,
        Cluster(Path(folder) / "cluster", heartbeat=120) as cluster,
    ):
        put_in_force(patch, cluster.environment)
        cluster.rest.pause(*OTHERS)
        for number in range(1 + len(SLOTS)):
            write_day(number, [*generate_comments(rows, seed=number)])
        start = time.monotonic()
        tokenize.run("2026-11-01")
        bare = time.monotonic() - start
        print(f"one process: {bare:.0f} s", flush=True)
        first = 0.0
        for number, slots in enumerate(SLOTS, 1):
            seconds = run_day(cluster, f"2026-11-{number + 1:02}", slots)
            first = first or seconds["wall"]
            print(f"{slots} at once: {seconds['wall']:.0f} s, {first / seconds['wall']:.2f}x; beside one process "
                  f"{bare / seconds['wall']:.2f}x; {seconds['tasks']:.0f} s in tasks", flush=True)  # fmt: skip
        warehouse.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
