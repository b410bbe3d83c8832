"""Tasks, workers and the scheduler of a cluster are killed at random points; Airflow brings it all to its end.

`make faults` kills 200 times (FAULTS_KILLS), CI 20 times. What is killed, and when, follows from FAULTS_SEED and from
how fast the machine is; counts by kind and outcome are printed, and written to FAULTS_REPORT.
"""

import contextlib
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pipeline import warehouse
from tests.distributed.cluster import WORKERS, Cluster, missing
from tests.distributed.comparison import Embedded, list_differences, put_in_force, start
from tests.distributed.steps import DAY, IMPSCORE, Step
from tests.faults.disturbed import every_row

KILLS = int(os.environ.get("FAULTS_KILLS", "20"))
SEED = int(os.environ.get("FAULTS_SEED", "8"))
KINDS = {"task": 12, "worker": 3, "worker, its tasks live on": 2, "scheduler": 2, "same day again": 1}
READ = {"comments": "source", "pairs": "source", "tokens": "day", "scores": "day"}  # written whole, a slice at a time
LIMIT = 3600 if KILLS > 20 else 1200
ROUND = [
    Step("collect", DAY, {"path": "sample"}),  # sets off tokenize, score and report
    Step("csd", DAY, {"tool": "simulated", "limit": 6}),
]
QUIET = 5  # looks in a row at which no run was going on: an asset starts the next run a moment after the last ended
FIRST = Step("impscore", DAY, IMPSCORE)
CHAIN = ("collect", "tokenize", "score", "report", "csd")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster of its own, which notices deaths within seconds."""
    if lacking := missing():
        pytest.skip(lacking)
    with Cluster(tmp_path / "all", heartbeat=10) as running:
        put_in_force(monkeypatch, running.environment)
        yield running
        warehouse.close()


def count_slices() -> set[tuple[str, object, int]]:
    """How many rows each slice of the tables that are read has."""
    scans = {name: warehouse.scan(name).group_by(column).len() for name, column in READ.items()}
    return {(name, *row) for name, counts in scans.items() for row in counts.collect().iter_rows()}


class Chaos:
    """What happens to a cluster, and how often."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.dice = cluster, random.Random(SEED)
        self.counts: Counter[str] = Counter()
        self.ghosts: list[psutil.Process] = []
        self.states: set[tuple[str, object, int]] = set()
        self.failed: set[str] = set()
        self.asleep: dict[tuple[str, int], float] = {}
        self.kills = 0

    def strike(self) -> None:
        """Kill something; tasks only while some are at work."""
        kind = self.dice.choices(list(KINDS), list(KINDS.values()))[0]
        if kind == "scheduler":
            self.cluster.restart("scheduler")
        elif kind == "same day again":
            start(self.cluster, ROUND[0])
        elif kind == "task":
            tasks = self.cluster.tasks()
            if not tasks:
                return
            with contextlib.suppress(psutil.NoSuchProcess):
                self.dice.choice(tasks).kill()
        else:
            name = self.dice.choice(WORKERS)
            tasks = self.cluster.tasks(name) if kind != "worker" else []
            self.ghosts += tasks
            self.counts["tasks that lived on"] += len(tasks)
            self.cluster.kill(name, tasks=kind == "worker")
            self.cluster.start(name)
        self.counts[kind] += 1
        self.kills += kind != "same day again"

    def look(self) -> None:
        """Read tables as a reader would, and remember how many rows each slice has."""
        self.states |= count_slices()

    def is_quiet(self) -> bool:
        """Whether every run has ended; approves what asks, and starts anew what was killed oftener than it retries."""
        rest, is_busy = self.cluster.rest, False
        for dag, run in [(name, run) for name in CHAIN for run in rest.runs(name)]:
            if run["state"] == "failed" and run["dag_run_id"] not in self.failed:
                self.failed.add(run["dag_run_id"])
                self.counts[f"runs that failed for good: {dag}"] += 1
                steps = [step for step in ROUND if step.dag == dag]
                start(self.cluster, *(steps or [Step(dag, DAY, {})]))
                is_busy = True
            is_busy = is_busy or run["state"] in ("queued", "running")
            if dag == "csd" and run["state"] == "running":
                rest.approve(dag, run["dag_run_id"], self.asleep)
        return not is_busy

    def until_done(self) -> None:
        """Strike until all kills are done and labels were made, then wait until all has ended by itself."""
        end, quiet, rounds = time.monotonic() + LIMIT, 0, 1
        while quiet < QUIET and time.monotonic() < end:
            if self.kills < KILLS:
                time.sleep(self.dice.uniform(0.5, 4))
                self.strike()
            else:
                time.sleep(1)
            self.look()
            is_quiet = self.is_quiet()
            quiet = quiet + 1 if is_quiet else 0
            if quiet == QUIET and (self.kills < KILLS or rounds < 2):
                for step in ROUND:
                    start(self.cluster, step)
                quiet, rounds = 0, rounds + 1
        assert time.monotonic() < end, f"not done after {LIMIT} s: {self.counts}"


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.nightly
def test_whatever_is_killed_the_tables_are_those_of_an_undisturbed_run(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills, ghosts and runs of the same day at once: no row is lost or doubled, and no slice was ever half there."""
    start(cluster, FIRST)
    assert cluster.rest.wait_run("impscore", DAY, set())["state"] == "success"
    chaos = Chaos(cluster)
    start(cluster, ROUND[0])
    chaos.until_done()
    psutil.wait_procs(chaos.ghosts, timeout=120)
    rows = every_row()
    report = [f"seed {SEED}, {chaos.kills} kills", *(f"{kind}: {n}" for kind, n in sorted(chaos.counts.items()) if n)]
    print("\n".join(report))  # noqa: T201
    if path := os.environ.get("FAULTS_REPORT"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write("\n".join(report) + "\n")

    steps = [FIRST, ROUND[0], *(Step(dag, DAY, {}) for dag in CHAIN[1:4]), ROUND[1]]
    Embedded(tmp_path / "embedded", json.dumps(steps), str(tmp_path / "resources")).wait(monkeypatch)
    assert list_differences(rows, every_row()) == []
    assert chaos.states <= count_slices()
