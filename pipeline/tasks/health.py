"""Health: what the view `pipeline_health` says of the last days, as a frame and as a page."""

from datetime import timedelta

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput
from pipeline.slices import parse_day

DAYS = 14


def table(day: str, days: int = DAYS) -> pl.DataFrame:
    """Rows of `pipeline_health` of so many days until a day, by day and step.

    Raises:
        BadInput: days is less than 1.
    """
    return warehouse.query(
        "select * from pipeline_health where day between ? and ? order by day, step", _span(day, days)
    )


def _span(day: str, days: int) -> list[object]:
    last = parse_day(day)
    if days < 1:
        raise BadInput(f"days: expected 1 or more, found {days}")
    return [last - timedelta(days=days - 1), last]


def write(day: str, days: int = DAYS) -> str:
    """Write the page of so many days until a day below the reports folder; return its path."""
    from pipeline.report import health
    from pipeline.tasks import report

    dropped = warehouse.query(
        "select step, dropped_at, reason, sum(row_count)::bigint as row_count from funnel "
        "where reason is not null and day between ? and ? group by all",
        _span(day, days),
    )
    page = health.health(health.Inputs(parse_day(day), days, table(day, days), dropped))
    return report.keep(f"health-{day}.html", page)
