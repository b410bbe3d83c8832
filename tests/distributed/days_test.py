"""Three days through all families by schedule alone, then again by a backfill in reverse: tables as by the commands."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.slices import parse_day
from pipeline.tables import PROVENANCE
from pipeline.tasks.operate import backfill
from tests.distributed.chain import quiet
from tests.distributed.cluster import Cluster, missing
from tests.distributed.comparison import list_differences, put_in_force

DAYS = ("2026-10-05", "2026-10-06", "2026-10-07")
SCHEDULES = "recam=articles; commenting=tokens; ndd=comments; impscore=articles; studies=scores"
FAMILIES = ("collect", "tokenize", "score", "report", "recam", "commenting", "ndd", "impscore", "studies")
DAILY = ("articles", "comments", "tokens", "scores")  # what each day makes; trainings are due on the first alone


def fill(inbox: Path) -> None:
    """Fill three days: comments, of which one comes up every day, and articles with summaries."""
    summaries = sample.SUMMARIES.read_text(encoding="utf-8").splitlines(keepends=True)
    for n, day in enumerate(DAYS):
        notes = (
            f"thread_id,comment_id,text\nt,1,what a lovely queue\nt,{n + 2},第{n}天也迟到，真准时\nt,9{n},it is day {n}"
        )
        for name, text in {
            "notes/day/export.csv": notes,
            "news/day/news.jsonl": "".join(summaries[4 * n : 4 * n + 4]),
        }.items():
            file = inbox / name.replace("day/", f"{day}/")
            file.parent.mkdir(parents=True)
            file.write_text(text, encoding="utf-8")


def contents() -> dict[str, pl.DataFrame]:
    """What the daily tables hold of these days, without provenance; of scores, those that do not count the corpus."""
    frames = {}
    for name in DAILY:
        is_day = pl.col("day").is_in([parse_day(day) for day in DAYS])
        frame = warehouse.scan(name, is_day).drop((*PROVENANCE, "row_id"), strict=False).collect()
        frame = frame.filter(metric="implicitness") if name == "scores" else frame
        frames[name] = frame.sort([c for c in frame.columns if not frame.schema[c].is_nested()])
    return frames


def wait(cluster: Cluster) -> dict[str, set[str]]:
    """Wait for the end; return the days of the runs by DAG. No run failed."""
    quiet(cluster, DAYS)
    runs = [(dag, run) for dag in FAMILIES for run in cluster.rest.runs(dag)]
    failed = [(dag, run["dag_run_id"]) for dag, run in runs if run["state"] != "success"]
    assert not failed, {key: cluster.rest.failures(*key) for key in failed}
    return {dag: {run["partition_key"] for name, run in runs if name == dag} for dag in FAMILIES}


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.nightly
def test_three_days_by_schedule_alone(
    tmp_path: Path, resources: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each day arrives by its partition key; every family follows, trainings on the first day alone. A backfill in
    reverse and the command give the same rows.
    """
    if lacking := missing():
        pytest.skip(lacking)
    settings = {
        "UNDERTONE_SCHEDULES": SCHEDULES, "UNDERTONE_LEAST_NEW_ROWS": "1", "UNDERTONE_RESOURCES": str(resources),
    }  # fmt: skip
    with Cluster(tmp_path / "cluster", heartbeat=60, **settings) as cluster:
        put_in_force(monkeypatch, cluster.environment)
        fill(cluster.home / "inbox")
        for day in DAYS:
            cluster.rest.trigger("collect", day)
            days = wait(cluster)
        assert days == {dag: set(DAYS) for dag in FAMILIES}
        for table in ("cloze_items", "compressions"):
            assert warehouse.scan(table).select(pl.len()).collect().item(), table
        readers = warehouse.scan("models", pl.col("kind").str.starts_with("reader_")).collect()
        assert set(readers["day"]) == {parse_day(DAYS[0])}
        first = contents()
        window: dict[str, Any] = {"from_date": f"{DAYS[0]}T00:00:00Z", "to_date": f"{DAYS[-1]}T00:00:00Z"}
        options = {"run_backwards": True, "max_active_runs": 1, "reprocess_behavior": "completed"}
        cluster.rest.call("POST", "/backfills", json={"dag_id": "collect", **window, **options})
        wait(cluster)
        assert list_differences(first, contents()) == []
        warehouse.close()

    put_in_force(monkeypatch, {"UNDERTONE_HOME": str(tmp_path / "home"), **settings})
    fill(tmp_path / "home" / "inbox")
    warehouse.create()
    for day in DAYS:
        backfill.run(day, ("collect", "tokenize", "score"))
    assert list_differences(first, contents()) == []
