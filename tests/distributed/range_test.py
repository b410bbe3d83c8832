"""A backfill on the cluster, backwards and beside other runs of its days: the tables of one pass in order."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import warehouse
from pipeline.slices import parse_day
from pipeline.tables import PROVENANCE
from pipeline.tasks.daily import score
from pipeline.tasks.operate import backfill
from tests.distributed.chain import CHAIN, settled
from tests.distributed.cluster import Cluster
from tests.distributed.comparison import list_differences, put_in_force

DAYS = ("2026-10-05", "2026-10-06", "2026-10-07")  # of no other test of the cluster
SOURCE = "notes"


def fill(inbox: Path) -> None:
    """Three days of comments, of which one comes up every day."""
    for n, day in enumerate(DAYS):
        folder = inbox / SOURCE / day
        folder.mkdir(parents=True)
        rows = [f"t,1,what a lovely queue\nt,{n + 2},第{n}天也迟到，真准时\nt,9{n},it is day {n}"]
        (folder / "export.csv").write_text("\n".join(["thread_id,comment_id,text", *rows]), encoding="utf-8")


def contents() -> dict[str, pl.DataFrame]:
    """What the tables hold of these days and this source, without provenance."""
    condition = (pl.col("source") == SOURCE) & pl.col("day").is_in([parse_day(day) for day in DAYS])
    frames = {}
    for name in ("comments", "dropped", "tokens", "scores", "runs"):
        frame = warehouse.scan(name, condition).drop(PROVENANCE, strict=False).collect()
        frames[name] = frame.sort([c for c in frame.columns if not frame.schema[c].is_nested()])
    return frames


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.nightly
def test_a_range_in_any_order_equals_one_pass(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backwards through REST beside runs by hand of two of the days, then forwards by the command: the same rows."""
    fill(Path(cluster.environment["UNDERTONE_HOME"]) / "inbox")
    rest = cluster.rest
    rest.unpause(*CHAIN)
    rest.pause("report")  # dozens of tasks a day that write no table
    window: dict[str, Any] = {"from_date": f"{DAYS[0]}T00:00:00Z", "to_date": f"{DAYS[-1]}T00:00:00Z"}
    options = {"run_backwards": True, "max_active_runs": 2, "reprocess_behavior": "completed"}
    rest.trigger("collect", DAYS[1], {"source": SOURCE})
    body = {"dag_id": "collect", **window, **options, "dag_run_conf": {"source": SOURCE}}
    rest.call("POST", "/backfills", json=body)
    rest.trigger("collect", DAYS[2], {"source": SOURCE})
    before = settled(cluster, DAYS)["collect"]
    assert len(before) >= 4  # a backfill leaves out a day of which a run is going on, as the first one by hand is
    first = contents()
    words = ["--dag-id", "collect", "--from-date", DAYS[0], "--to-date", DAYS[-1], "--reprocess-behavior", "completed"]
    words += ["--dag-run-conf", f'{{"source": "{SOURCE}"}}']
    airflow = Path(sys.executable).with_name("airflow")
    subprocess.run([airflow, "backfill", "create", *words], env=cluster.environment, check=True, capture_output=True)
    assert len(settled(cluster, DAYS)["collect"]) == len(before) + len(DAYS)
    assert list_differences(first, contents()) == []
    (model_id,) = first["scores"]["model_id"].unique()
    models = cluster.environment.get("UNDERTONE_MODELS") or f"{cluster.environment['UNDERTONE_HOME']}/models"

    put_in_force(monkeypatch, {"UNDERTONE_HOME": str(tmp_path / "home"), "UNDERTONE_MODELS": models})
    fill(tmp_path / "home" / "inbox")
    warehouse.create()
    for day in DAYS:
        backfill.run(day, CHAIN[:2], SOURCE)
        pinned = score.pin(day, model_id)
        score.publish([score.score_shard(shard, pinned) for shard in score.plan_shards(day, pinned)], day, pinned)
    frames = contents()
    assert list_differences(first, frames) == []
    assert frames["scores"].height == frames["comments"].height == 9
