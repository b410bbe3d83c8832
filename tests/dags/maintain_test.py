"""The upkeep DAG on tables with rows: a mapped task a table, one damaged table apart from the others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline import sample, warehouse

Run = Callable[..., Any]


def test_one_damaged_table_does_not_stop_the_others(run: Run, home: Path, capfd: Any) -> None:
    """The task of the damaged table fails on its first try and names the file; that of the other succeeds."""
    run("collect", day=sample.DAY, path="sample", source="weibo")
    (path,) = (home / "warehouse" / "undertone" / "comments" / "data").rglob("*.parquet")
    path.unlink()
    dag_run = run("maintain", tables=["articles", "comments"], quiet_hours=0, small_files=1)
    states = {(ti.task_id, ti.map_index): (str(ti.state), ti.try_number) for ti in dag_run.get_task_instances()}
    assert [states["tidy", n] for n in (0, 1)] == [("success", 1), ("failed", 1)]
    assert states["scratch", -1][0] == "success"
    assert path.name in "".join(capfd.readouterr())
    assert warehouse.scan("articles").collect().height > 0


def test_hasty_limits_fail_before_anything_is_touched(run: Run) -> None:
    """Limits shorter than a run may last fail the first task, and no table gets a task."""
    dag_run = run("maintain", grace_hours=1)
    assert {ti.task_id: str(ti.state) for ti in dag_run.get_task_instances()}["tables"] == "failed"
