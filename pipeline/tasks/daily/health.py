"""Health: what the view `pipeline_health` says of the last days, as a frame and as a page."""

from datetime import UTC, date, datetime, timedelta

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput
from pipeline.slices import parse_day

DAYS = 14
DAY = timedelta(days=1)


def build_table(day: str, days: int = DAYS) -> pl.DataFrame:
    """Rows of `pipeline_health` of so many days until a day, by day and step.

    A day after the last that was collected is missing too: the view sees only gaps between days.

    Raises:
        BadInput: days is less than 1.
    """
    first, last = _parse_span(day, days)
    steps = warehouse.query("select * from pipeline_health where day between ? and ?", [first, last])
    (last_collected,) = warehouse.query("select max(day) as day from runs where step = 'collect' and day <= ?", [last])[
        "day"
    ]
    due = min(last, datetime.now(UTC).date() - timedelta(days=2))  # as for what is late: a day is given after its end
    begin = max(first, last_collected + DAY) if last_collected else last + DAY
    missing = (
        pl.DataFrame({"day": pl.date_range(begin, due, eager=True)}) if begin <= due else steps.select("day").clear()
    )
    values = {"step": "collect", "status": "missing", "why": "nothing collected"}
    rows = missing.with_columns(**{name: pl.lit(value) for name, value in values.items()})
    rows = rows.join(steps, on=["day", "step"], how="anti")  # a gap, as a later day was collected: the view told it
    return pl.concat([steps, rows], how="diagonal").sort("day", "step")


def _parse_span(day: str, days: int) -> list[date]:
    last = parse_day(day)
    if days < 1:
        raise BadInput(f"days: expected 1 or more, found {days}")
    return [last - timedelta(days=days - 1), last]


def write_page(day: str, days: int = DAYS) -> str:
    """Write the page of so many days until a day below the reports folder; return its path."""
    from pipeline.report.daily import health
    from pipeline.tasks.record import pages

    dropped = warehouse.query(
        "select step, dropped_at, reason, sum(row_count)::bigint as row_count from funnel "
        "where reason is not null and day between ? and ? group by all",
        _parse_span(day, days),
    )
    page = health.health(health.Inputs(parse_day(day), days, build_table(day, days), dropped))
    return pages.write_page(f"health-{day}.html", page)
