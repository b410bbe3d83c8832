"""The whole pipeline on a cluster and in one process: every table is the same."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import warehouse
from pipeline.slices import parse_day
from pipeline.tables import PROVENANCE
from tests.distributed import steps as given
from tests.distributed.cluster import UPKEEP, Cluster
from tests.distributed.comparison import embedded, start, unequal
from tests.distributed.steps import DAY, REAL, Step

OWN = (*PROVENANCE, "row_id")  # the last is random, so that nobody can tell who wrote a comment
"""Columns in which two runs may differ. Everything else is equal, to the last bit."""


def contents() -> dict[str, pl.DataFrame]:
    """Every table's rows without `OWN`, in an order of their own."""
    found = {}
    for name in warehouse.names():
        frame = warehouse.scan(name).collect().drop(OWN, strict=False)
        flat = frame.with_columns(
            pl.col(c).map_elements(repr, pl.String) for c, t in frame.schema.items() if t.is_nested()
        )
        found[name] = frame[flat.select(pl.struct(flat.columns).arg_sort()).to_series()] if frame.height else frame
    return found


def ended(cluster: Cluster, steps: Iterable[Step], timeout: float = 900) -> dict[str, int]:
    """Wait until the runs of these steps ended well and none of their DAGs is at work; approve what `csd` asks.

    Returns:
        The most memory that was seen in use, in bytes by part.
    """
    wanted = Counter((step.dag, step.day if step.is_keyed else None) for step in steps)
    end, peak, looks = time.monotonic() + timeout, cluster.memory(), 0
    while time.monotonic() < end:
        runs = [(dag, run) for dag in {dag for dag, _ in wanted} for run in cluster.rest.runs(dag)]
        failed = {(dag, run["dag_run_id"]) for dag, run in runs if run["state"] == "failed"}
        assert not failed, {one: cluster.rest.failures(*one) for one in failed}
        done = Counter((dag, run["partition_key"]) for dag, run in runs if run["state"] == "success")
        if wanted <= done and done.total() == len(runs):
            return peak
        for run in cluster.rest.runs("csd"):
            if run["state"] == "running":
                cluster.rest.approve("csd", run["dag_run_id"], cluster.asleep)
        time.sleep(2)
        if (looks := looks + 1) % 5 == 0:
            peak = max(peak, cluster.memory(), key=lambda found: sum(found.values()))
    raise AssertionError(f"after {timeout:.0f} s {wanted - done} are not done")


@pytest.mark.slow
@pytest.mark.alone
def test_every_table_equals_the_embedded_ones(
    cluster: Cluster, wordnet: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample through every DAG and real comments through the chain: on PostgreSQL, Redis, an object store and two
    queues every table has the rows it has on SQLite in one process; what needs torch ran on the GPU worker alone.
    """
    told = tmp_path / "given"
    told.mkdir()
    assert not any(frame.height for frame in contents().values()), "this test comes first on its cluster"
    steps = given.given(told, Path(data) if (data := os.environ.get("UNDERTONE_DATA")) else None)
    began = time.monotonic()
    beside = embedded(tmp_path / "embedded", given.as_json(steps), cluster.environment["UNDERTONE_RESOURCES"])
    try:
        peak = through(cluster, steps)
        seconds = time.monotonic() - began
        ran = {(task["queue"], task["hostname"]) for task in instances(cluster)}
        assert ran == {("default", "worker-default"), ("gpu", "worker-gpu")}
        there = contents()
        log = tmp_path / "embedded" / "embedded.log"
        assert beside.wait(timeout=1800) == 0, log.read_text(errors="replace")[-3000:]
    finally:
        beside.kill()
        beside.wait()
    warehouse.close()
    for name in [name for name in os.environ if name.startswith(("UNDERTONE_", "AWS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UNDERTONE_HOME", str(tmp_path / "embedded" / "home"))
    here = contents()
    rows = {name: frame.height for name, frame in there.items()}
    print(json.dumps({"seconds": round(seconds), "rows": rows, "MiB": {k: v >> 20 for k, v in peak.items()}}))  # noqa: T201
    differing = {name: why for name in here if (why := unequal(there[name], here[name]))}
    assert not differing, "\n".join(f"{name}: {why}" for name, why in differing.items())
    assert {name for name, count in rows.items() if not count} <= EMPTY
    for home in (cluster.home, tmp_path / "embedded" / "home"):
        for page in ("cloze", "commenting", "ndd", "labels", "studies"):
            assert (home / "reports" / f"{page}-{'csd' if page == 'labels' else DAY}.html").is_file(), page
    every_dag_did_its_work(there)
    if steps.real:
        comments = [json.loads(line)["comments"] for line in (told / "real.jsonl").read_text("utf-8").splitlines()]
        of_real = (pl.col("day") == parse_day(REAL)) & (pl.col("source") == "checked_weibo")
        kept, dropped = (there[name].filter(of_real).height for name in ("comments", "dropped"))
        assert kept + dropped == sum(map(len, comments))


def every_dag_did_its_work(found: dict[str, pl.DataFrame]) -> None:
    """What the DAGs are for is in the tables."""
    assert found["cloze_items"]["subtask"].n_unique() == 2
    cells = found["evaluations"].filter(pl.col("subset").is_in(["imperceptibility", "nonspecificity"]))
    assert cells.filter(metric="accuracy").height == 4
    assert set(found["generated_comments"]["system"]) == {"ir_t", "seq2seq", "human"}
    assert found["metric_scores"]["is_weighted"].any()
    assert {"masked_lm_zh", "impscore"} <= set(found["models"]["kind"])
    shifted = found["scores"].filter(metric="context_shift")
    assert shifted.height > 0
    assert shifted["value"].is_between(0, 1).all()
    assert set(found["compressions"]["system"]) == {"gold", "unedited", "head", "tail", "random", "fast_ndd"}
    assert set(found["studies"]["study"]) >= {
        "correlation", "compression", "similarity", "pruning", "predicates", "context_shift"
    }  # fmt: skip
    assert 0 < found["annotated_comments"].height <= 100


def through(cluster: Cluster, steps: given.Steps) -> dict[str, int]:
    """Do the steps on the cluster, side by side where they may be; see `ended`."""
    rest = cluster.rest
    rest.pause("tokenize")  # which loses what is announced meanwhile: for `heal` to find
    for step in steps.before:
        start(cluster, step)
    ended(cluster, steps.before)
    for step in steps.meanwhile:
        start(cluster, step)
    rest.unpause("tokenize", *UPKEEP)
    start(cluster, Step("heal", "", {}))
    ended(cluster, [Step("heal", "", {}), *steps.healed])
    if steps.real:
        rest.pause("report")
        start(cluster, steps.real[0])
        ended(cluster, steps.real)
    for step in (*steps.after, given.UPKEEP):
        start(cluster, step)
    return ended(cluster, [*steps.meanwhile, *steps.after, given.UPKEEP])


EMPTY = {"sentences", "erasures", "model_erasures"}  # what no step writes


def instances(cluster: Cluster) -> list[dict[str, Any]]:
    """All task instances that a worker ran."""
    found: list[dict[str, Any]] = []
    path, limit = "/dags/~/dagRuns/~/taskInstances", 100
    while True:
        page = cluster.rest.call("GET", path, params={"limit": limit, "offset": len(found)})["task_instances"]
        found += page
        if len(page) < limit:
            return [task for task in found if task["hostname"]]
