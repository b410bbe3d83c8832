"""The same steps in one process, and how their tables compare."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
from polars.testing import assert_frame_equal

from pipeline.commands.operate import stack
from tests.distributed.cluster import Cluster
from tests.distributed.steps import Step


def start(cluster: Cluster, step: Step) -> None:
    """Set a step off."""
    rest = cluster.rest
    if step.day:
        rest.trigger(step.dag, step.day, step.conf, is_keyed=step.is_keyed)
    else:
        rest.call("POST", f"/dags/{step.dag}/dagRuns", json={"logical_date": None, "conf": step.conf})


def embedded(folder: Path, told: str, resources: str) -> "subprocess.Popen[bytes]":
    """The same steps in a process of their own, started."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "UNDERTONE_", "AWS_"))}
    env = {
        **own, "UNDERTONE_HOME": str(folder / "home"), "UNDERTONE_RESOURCES": resources,
        "AIRFLOW_HOME": str(folder / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(stack.dags_folder()), "PYTHONPATH": str(Path(__file__).parents[2]),
    }  # fmt: skip
    folder.mkdir()
    with (folder / "embedded.log").open("wb") as log:
        asked = [sys.executable, "-m", "tests.distributed.embedded", told]
        return subprocess.Popen(asked, env=env, cwd=folder, stdout=log, stderr=log)


def unequal(one: pl.DataFrame, other: pl.DataFrame) -> str:
    """What differs, or nothing."""
    try:
        assert_frame_equal(one, other, check_exact=True)
    except AssertionError as why:
        return str(why)
    return ""
