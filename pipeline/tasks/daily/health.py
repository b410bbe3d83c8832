"""Health: the view `pipeline_health` of the last days, as a frame, and the page of operations."""

from datetime import UTC, date, datetime, timedelta

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput
from pipeline.slices import parse_day
from pipeline.tasks.daily import report

DAYS = 14


def build_table(day: str, days: int = DAYS) -> pl.DataFrame:
    """Select the rows of `pipeline_health` of the last days; add later days as missing, which it lacks, and reports."""
    first, last = _parse_span(day, days)
    steps = warehouse.query("select * from pipeline_health where day between ? and ?", [first, last])
    newest = warehouse.query("select max(day) as day from runs where step = 'collect' and day <= ?", [last])["day"][0]
    due = min(last, datetime.now(UTC).date() - timedelta(days=2))  # as for late days: a day is collected after its end
    next_day = (newest or last) + timedelta(days=1)
    start = max(first, next_day) if newest else next_day
    missing = pl.DataFrame({"day": pl.date_range(start, due, eager=True) if start <= due else []}, {"day": pl.Date})
    values = {"family": "collect", "step": "collect", "status": "missing", "why": "nothing collected"}
    missing = missing.with_columns(**{name: pl.lit(value) for name, value in values.items()})
    missing = missing.join(steps, on=["day", "step"], how="anti")  # a later day was collected: the view has the gap
    reports = pl.DataFrame({"day": pl.date_range(first, last, eager=True)})
    reports = reports.filter(pl.Series([report.locate_page(f"{day}").is_file() for day in reports["day"]]))
    reports = reports.with_columns(family=pl.lit("report"), step=pl.lit("report"), status=pl.lit("ok"))
    return pl.concat([steps, missing, reports], how="diagonal").sort("day", "step", "family")


def _parse_span(day: str, days: int) -> list[date]:
    last = parse_day(day)
    if days < 1:
        raise BadInput(f"days: expected 1 or more, found {days}")
    return [last - timedelta(days=days - 1), last]


def write_page(day: str, days: int = DAYS) -> str:
    """Write the page of the last `days` days up to a day below the reports folder; return its path."""
    from pipeline.report.daily import health
    from pipeline.tasks.record import pages

    span = _parse_span(day, days)
    dropped = warehouse.query(
        "select step, dropped_at, reason, sum(row_count)::bigint as row_count from funnel "
        "where reason is not null and day between ? and ? group by all",
        span,
    )
    sources = warehouse.query(
        "select source, max(day) as day, arg_max(kept_count, day) as row_count from runs "
        "where step = 'collect' and day <= ? group by source order by day, source",
        span[1:],
    )
    models = warehouse.query(
        "select kind, max(day) as day, arg_max(model_id, day) as model_id, max(day) filter (is_promoted) as promoted "
        "from models where day <= ? group by kind order by kind",
        span[1:],
    )
    schedules = {name: settings.schedule(name) for name in health.FAMILIES}
    page = health.render(span[1], days, build_table(day, days), dropped, sources, models, schedules)
    return pages.write_page(f"health-{day}.html", page)
