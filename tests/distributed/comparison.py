"""The same steps in one process, and how their tables compare."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import warehouse
from tests.distributed.cluster import Cluster, outside
from tests.distributed.steps import Step


def put_in_force(monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]) -> None:
    """Read and write other tables from here on."""
    warehouse.close()
    for name in [name for name in os.environ if name.startswith(("UNDERTONE_", "AWS_"))]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        if name.startswith(("UNDERTONE_", "AWS_")):
            monkeypatch.setenv(name, value)


def start(cluster: Cluster, step: Step) -> None:
    """Start the run of a step."""
    rest = cluster.rest
    if step.day:
        rest.trigger(step.dag, step.day, step.conf)
    else:
        rest.call("POST", f"/dags/{step.dag}/dagRuns", json={"logical_date": None, "conf": step.conf})


class Embedded:
    """The same steps in a process of their own, started."""

    def __init__(self, folder: Path, steps: str, resources: str) -> None:
        self.home, self.log = folder / "home", folder / "embedded.log"
        env = {
            **outside(), "UNDERTONE_HOME": str(self.home), "UNDERTONE_RESOURCES": resources,
            "AIRFLOW_HOME": str(folder / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(Path(__file__).parents[2] / "dags"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }  # fmt: skip
        folder.mkdir()
        with self.log.open("wb") as log:
            command = [sys.executable, "-m", "tests.distributed.embedded", steps]
            self.process = subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log)

    def wait(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Wait for the end, and put its tables in force."""
        assert self.process.wait(timeout=1800) == 0, self.log.read_text(errors="replace")[-3000:]
        put_in_force(monkeypatch, {"UNDERTONE_HOME": str(self.home)})


def list_differences(tables: Mapping[str, pl.DataFrame], others: Mapping[str, pl.DataFrame]) -> list[str]:
    """What differs, to the last bit."""
    differences = []
    for name, frame in tables.items():
        try:
            assert_frame_equal(frame, others[name], check_exact=True)
        except AssertionError as error:
            differences.append(f"{name}: {error}")
    return differences
