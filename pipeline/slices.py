"""A slice is what one run reads and writes: one UTC day, written as an ISO date. A shard is a part of it.

Both travel between tasks as plain JSON (a string, a TypedDict), so Airflow needs no allow-list to read them back.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NotRequired, TypedDict

from pipeline.errors import BadInput

LIST_DAYS = '`undertone query "select distinct day from comments"` lists the days'


class Staged(TypedDict):
    """A scratch file that a shard has written."""

    path: str
    rows: int
    seconds: NotRequired[float]  # of work, for the row of `runs` that tells of all shards


class Shard(Staged):
    """One mapped task's share of the texts of a day: a scratch file that the task before has written."""

    day: str


def parse_day(text: str) -> date:
    """`2026-11-19` as a date; anything else, even other ISO forms, is BadInput."""
    try:
        day = date.fromisoformat(text)
    except ValueError as why:
        raise BadInput(f"not a day: {text!r}; write it as YYYY-MM-DD") from why
    if day.isoformat() != text:  # fromisoformat also takes 20261119 and 2026-W47-4
        raise BadInput(f"write the day as YYYY-MM-DD, not {text!r}")
    return day


def parse_window(first: str | None, last: str | None) -> tuple[date, date]:
    """Parse the first and the last day of a window, both included; without one there is no bound."""
    start, end = parse_day(first) if first else date.min, parse_day(last) if last else date.max
    if end < start:
        raise BadInput(f"the last day, {last}, is before the first, {first}")
    return start, end


def resolve(partition_key: str | None, param: str | None, run_after: datetime) -> str:
    """The day a run is about: its partition key, else the parameter, else the last whole UTC day before `run_after`."""
    if partition_key and param and partition_key != param:
        raise BadInput(f"partition key {partition_key} and parameter day={param} disagree; give one")
    text = partition_key or param or (run_after.astimezone(UTC).date() - timedelta(days=1)).isoformat()
    return parse_day(text).isoformat()


def check_params(conf: Mapping[str, object] | None, declared: Mapping[str, object]) -> None:
    """Refuse run parameters that the DAG does not declare: Airflow takes a misspelt one and runs on the default."""
    if unknown := sorted(set(conf or {}) - set(declared)):
        raise BadInput(f"unknown parameters: {', '.join(unknown)}; this DAG has {', '.join(sorted(declared))}")
