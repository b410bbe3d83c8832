"""The daily chain on a cluster: when its runs have ended."""

import time
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tests.distributed.cluster import Cluster

CHAIN = ("collect", "tokenize", "score")
GOING_ON = """
select (select count(*) from dag_run where state in ('queued', 'running'))
    + (select count(*) from asset_partition_dag_run where created_dag_run_id is null and partition_key in :days)
"""  # the second: what was announced of a day and is no run yet


def quiet(cluster: Cluster, days: Sequence[str], timeout: float = 3600) -> None:
    """Wait until nothing is going on, and nothing is announced of these days.

    The time is a limit for what hangs, not for a busy machine.
    """
    engine = sa.create_engine(cluster.database("airflow"), poolclass=sa.NullPool)
    query = sa.text(GOING_ON).bindparams(sa.bindparam("days", list(days), expanding=True))
    end, run_count = time.monotonic() + timeout, 1
    while run_count and time.monotonic() < end:
        time.sleep(1)
        with engine.connect() as connection:  # in one statement, so that nothing slips from one count into the other
            run_count = connection.execute(query).scalar_one()
    assert not run_count, f"after {timeout:.0f} s {run_count} runs have not ended"


def settled(cluster: Cluster, days: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The runs of these days by DAG of the chain, all of them done and well."""
    quiet(cluster, days)
    runs = {dag: [r for r in cluster.rest.runs(dag) if r["partition_key"] in days] for dag in CHAIN}
    failed = [(dag, r["dag_run_id"]) for dag in CHAIN for r in runs[dag] if r["state"] != "success"]
    assert not failed, {run: cluster.rest.failures(*run) for run in failed}
    assert {dag: {r["partition_key"] for r in runs[dag]} for dag in CHAIN} == {dag: set(days) for dag in CHAIN}
    return runs
