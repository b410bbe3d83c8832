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
from pipeline.tables import PROVENANCE, TABLES
from tests.distributed import steps as planning
from tests.distributed.cluster import UPKEEP, Cluster
from tests.distributed.comparison import Embedded, list_differences, start
from tests.distributed.steps import DAY, Step

OWN = (*PROVENANCE, "row_id")  # the last is random, so that nobody can tell who wrote a comment
"""Columns in which two runs may differ. Everything else is equal, to the last bit."""


def contents() -> dict[str, pl.DataFrame]:
    """Every table's rows without `OWN`, in an order of their own."""
    frames = {}
    for name in TABLES:
        frame = warehouse.scan(name).collect().drop(OWN, strict=False)
        nested = [column for column, kind in frame.schema.items() if kind.is_nested()]
        flat = frame.with_columns(pl.col(column).map_elements(repr, pl.String) for column in nested)
        frames[name] = frame[flat.select(pl.struct(flat.columns).arg_sort()).to_series()] if frame.height else frame
    return frames


def wait_for_end(cluster: Cluster, steps: Iterable[Step], timeout: float = 900) -> None:
    """Wait until the runs of these steps ended well and none of their DAGs is at work; approve what `csd` asks."""
    expected = Counter((step.dag, step.day or None) for step in steps)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        runs = [(dag, run) for dag in {dag for dag, _ in expected} for run in cluster.rest.runs(dag)]
        failed = {(dag, run["dag_run_id"]) for dag, run in runs if run["state"] == "failed"}
        assert not failed, {run: cluster.rest.failures(*run) for run in failed}
        successes = Counter((dag, run["partition_key"]) for dag, run in runs if run["state"] == "success")
        if expected <= successes and successes.total() == len(runs):
            return
        for run in cluster.rest.runs("csd"):
            if run["state"] == "running":
                cluster.rest.approve("csd", run["dag_run_id"], cluster.asleep)
        time.sleep(1)
    raise AssertionError(f"after {timeout:.0f} s {expected - successes} are not done")


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.nightly
def test_every_table_equals_the_embedded_ones(
    cluster: Cluster, wordnet: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample and real comments through every DAG: on PostgreSQL, Redis, an object store and two
    queues every table has the rows it has on SQLite in one process; what needs torch ran on the GPU worker alone.
    """
    folder = tmp_path / "given"
    folder.mkdir()
    assert not any(frame.height for frame in contents().values()), "this test comes first on its cluster"
    steps = planning.plan(folder, Path(data) if (data := os.environ.get("UNDERTONE_DATA")) else None)
    timer = time.monotonic()
    resources = cluster.environment["UNDERTONE_RESOURCES"]
    embedded = Embedded(tmp_path / "embedded", planning.as_json(steps), resources)
    try:
        go_through(cluster, steps)
        seconds = time.monotonic() - timer
        places = {(task["queue"], task["hostname"]) for task in list_instances(cluster)}
        assert places == {("default", "worker-default"), ("gpu", "worker-gpu")}
        frames = contents()
        embedded.wait(monkeypatch)
    finally:
        embedded.process.kill()
        embedded.process.wait()
    rows = {name: frame.height for name, frame in frames.items()}
    print(json.dumps({"seconds": round(seconds), "rows": rows}))  # noqa: T201
    differences = list_differences(frames, contents())
    assert not differences, "\n".join(differences)
    assert {name for name, count in rows.items() if not count} <= EMPTY
    for home in (cluster.home, embedded.home):
        for page in ("cloze", "commenting", "ndd", "labels", "studies"):
            assert (home / "reports" / f"{page}-{'csd' if page == 'labels' else DAY}.html").is_file(), page
    check_results(frames)
    if (folder / "real.jsonl").exists():
        comments = [json.loads(line)["comments"] for line in (folder / "real.jsonl").read_text("utf-8").splitlines()]
        of_real = {"origin": "real.jsonl", "source": "checked_weibo"}
        row_count = sum(frames[name].filter(**of_real).height for name in ("comments", "dropped"))
        assert row_count == sum(map(len, comments))


def check_results(frames: dict[str, pl.DataFrame]) -> None:
    """What the DAGs are for is in the tables."""
    assert frames["cloze_items"]["subtask"].n_unique() == 2
    cells = frames["evaluations"].filter(pl.col("subset").is_in(["imperceptibility", "nonspecificity"]))
    assert cells.filter(metric="accuracy").height == 4
    assert set(frames["generated_comments"]["system"]) == {"ir_t", "seq2seq", "human"}
    assert frames["metric_scores"]["is_weighted"].any()
    assert {"masked_lm_zh", "impscore"} <= set(frames["models"]["kind"])
    shifted = frames["scores"].filter(metric="context_shift")
    assert shifted.height > 0
    assert shifted["value"].is_between(0, 1).all()
    assert set(frames["compressions"]["system"]) == {"gold", "unedited", "head", "tail", "random", "fast_ndd"}
    studies = {"correlation", "compression", "similarity", "pruning", "predicates", "context_shift"}
    assert set(frames["studies"]["study"]) >= studies
    assert 0 < frames["annotated_comments"].height <= 100


def go_through(cluster: Cluster, steps: planning.Steps) -> None:
    """Do the steps on the cluster, side by side where they may be."""
    rest = cluster.rest
    rest.pause("tokenize")  # which loses what is announced meanwhile: for `heal` to find
    for step in steps.before:
        start(cluster, step)
    wait_for_end(cluster, steps.before)
    for step in steps.meanwhile:
        start(cluster, step)
    rest.unpause("tokenize", *UPKEEP)
    start(cluster, Step("heal", "", {}))
    wait_for_end(cluster, [Step("heal", "", {}), *steps.healed])
    for step in (*steps.after, planning.UPKEEP):
        start(cluster, step)
    wait_for_end(cluster, [*steps.meanwhile, *steps.after, planning.UPKEEP])


EMPTY = {"sentences", "erasures", "model_erasures", "scores_explained", "embeddings", "projections"}  # of no step


def list_instances(cluster: Cluster) -> list[dict[str, Any]]:
    """All task instances that a worker ran."""
    tasks: list[dict[str, Any]] = []
    path, limit = "/dags/~/dagRuns/~/taskInstances", 100
    while True:
        page = cluster.rest.call("GET", path, params={"limit": limit, "offset": len(tasks)})["task_instances"]
        tasks += page
        if len(page) < limit:
            return [task for task in tasks if task["hostname"]]
