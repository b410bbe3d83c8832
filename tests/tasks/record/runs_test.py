"""What a step told of itself: rows of `runs` that add up, with what it took."""

import json
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from pipeline import warehouse
from pipeline.slices import Staged
from pipeline.tables import PROVENANCE
from pipeline.tasks.record import runs

DAY = "2026-11-19"
TOOK = [*PROVENANCE[1:]]


class Spent(NamedTuple):
    """Of a language model."""

    input_tokens: int = 70
    output_tokens: int = 7
    cost_usd: float | None = 0.5


def read_runs() -> pl.DataFrame:
    return warehouse.scan("runs").sort("source", "step").collect()


def test_a_step_tells_what_it_left_out_and_took(tables: Path) -> None:
    """Rows, reasons, seconds with those of shards, tokens and cost; told again, the rows are replaced."""
    dropped = pl.DataFrame({"source": ["weibo"] * 2, "reason": ["empty", "late"], "row_key": ["1", "2"]})
    for run_id in ("r1", "r2"):
        timed = runs.time_shard(runs.start(), Staged(path="b", rows=1))
        began = runs.start([Staged(path="a", rows=1, seconds=30.0), timed, Staged(path="c", rows=1)])
        runs.record_step("weibo", DAY, "inbox", "ask", 5, dropped, {"model": "小"}, run_id, began, Spent())
    row = read_runs().row(0, named=True)
    assert read_runs().height == 1
    assert (row["read_count"], row["kept_count"], row["dropped_count"], row["run_id"]) == (7, 5, 2, "r2")
    assert json.loads(row["config"]) == {"model": "小"}
    assert 30 <= row["seconds"] < 300
    assert row["byte_count"] > 0  # of `dropped`
    assert (row["input_tokens"], row["output_tokens"], row["cost_usd"]) == (70, 7, 0.5)
    assert began.time == row["started_at"]
    assert sorted(warehouse.scan("dropped").collect()["reason"]) == ["empty", "late"]


def test_what_is_not_known_is_null(tables: Path) -> None:
    """A step that counts no seconds and asks nobody has none; a price that is unknown is no cost of 0."""
    runs.record_step("weibo", DAY, "inbox", "select", 5, None, {}, "r1")
    runs.record_step("zhihu", DAY, "inbox", "ask", 5, None, {}, "r1", spent=Spent(cost_usd=None))
    first, second = read_runs().select(TOOK).rows(named=True)
    assert set(first.values()) == {None}
    assert (second["input_tokens"], second["cost_usd"]) == (70, None)
    assert warehouse.get_snapshot_id("dropped") is None  # a step that leaves nothing out writes no slice of it


def test_what_a_step_took_is_shared_out(tables: Path) -> None:
    """Seconds and tokens of a step over several sources are shared out by rows read, and add up; a source may go."""
    three = pl.DataFrame({"source": ["a", "b", "c"], "kept_count": [1, 1, 1]})
    runs.record_counts(three, DAY, "model", "score", {}, "r1", runs.start())
    began = runs.start([Staged(path="a", rows=1, seconds=100.0)])
    counts = pl.DataFrame({"source": ["a", "b"], "kept_count": [3, 0], "dropped_count": [0, 1]})
    runs.record_counts(counts, DAY, "model", "score", {}, "r1", began, Spent())
    rows = read_runs()
    assert rows["source"].to_list() == ["a", "b"]
    first, second = rows["seconds"]
    assert first == pytest.approx(3 * second, rel=1e-3)
    assert 100 <= first + second < 400
    assert rows["input_tokens"].sum() in {70, 71}  # whole tokens
    assert rows["cost_usd"].to_list() == [0.375, 0.125]


def test_what_was_told_is_at_hand_for_lineage(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process remembers its rows with DAG, task and run, and neither parameters nor more than a hundred."""
    monkeypatch.setenv("AIRFLOW_CTX_DAG_ID", "score")
    runs.record_step("weibo", DAY, "inbox", "select", 5, None, {"name": "somebody"}, "r1")
    record = runs.RECENT_ROWS[-1]
    facts = {"dag": "score", "run": "r1", "day": DAY, "step": "select", "kept_count": 5}
    assert {name: record[name] for name in facts} == facts
    assert "somebody" not in str(record)
