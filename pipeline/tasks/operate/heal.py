"""Heal: find days whose comments lack tokens, scores or the work of scheduled DAGs, and make what is missing."""

from collections.abc import Callable

import polars as pl

from pipeline import settings, warehouse
from pipeline.progress import iterate
from pipeline.tasks.daily import score, tokenize
from pipeline.tasks.operate.backfill import FAMILIES, Work
from pipeline.tasks.record import due

RUNS: dict[str, Callable[[str], object]] = {"tokens": tokenize.run, "scores": score.run}
RUNS |= {name: work.run for name, work in FAMILIES.items()}


def find_holes() -> dict[str, list[str]]:
    """Find the days that lack `tokens`, `scores` or the work of a scheduled DAG of a paper, each sorted."""
    days: dict[str, list[str]] = {"tokens": [], "scores": []}
    for table, day in warehouse.query("select missing, day from holes order by day").iter_rows():
        days[table].append(day.isoformat())
    for name, work in FAMILIES.items():
        if settings.schedule(name) != "off":
            days[name] = _find_unseen(name, work)
    return days


def _find_unseen(name: str, work: Work) -> list[str]:
    """Find the days collected since the work ran on them, not before its first; of work about all days the last due."""
    runs = warehouse.query(
        "select day, max(started_at) filter (step = 'collect' and kept_count > 0) as collected_at, "
        "max(started_at) filter (step = ?) as seen_at from runs group by day order by day",
        [work.step],
    )
    seen_at = pl.col("seen_at") if work.is_daily else pl.col("seen_at").max()
    is_collected = pl.col("collected_at").is_not_null()
    unseen = runs.filter((pl.col("collected_at") > seen_at) | (seen_at.is_null() & is_collected))
    if work.is_daily:
        first = runs.drop_nulls("seen_at")["day"].min()
        return [day.isoformat() for day in unseen["day"] if first and day >= first]
    last = str(runs.drop_nulls("collected_at")["day"].max())
    return [last] if unseen.height and due.is_due(name, last) else []


def heal(holes: dict[str, list[str]]) -> dict[str, int]:
    """Make what is missing, in this process; return the count of days by table or DAG."""
    for name, days in holes.items():
        for day in iterate(days, f"days without {name}"):
            RUNS[name](day)
    return {name: len(days) for name, days in holes.items()}
