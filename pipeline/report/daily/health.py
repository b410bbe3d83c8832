"""The HTML page of the pipeline's health: days by DAGs, sources, models, unusual steps, dropped rows, and costs.

A status has a sign and a word as well as a colour. Names are hostile data: everything but our own figure is escaped.
"""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

import polars as pl

from pipeline.report import figures, sections
from pipeline.report.sections import Columns, Section, format_count, format_number, order_names, tabulate

FAMILIES = (  # DAGs whose steps the page shows
    "collect", "tokenize", "score", "report", "judge", "impscore", "recam", "commenting", "ndd", "studies", "csd",
)  # fmt: skip
STATUSES = {  # the worst last
    "ok": ("✓", "as usual"),
    "backfill": ("↺", "done over 24 hours after the day, by a backfill or by hand"),
    "late": ("◷", "started over 24 hours after the day ended"),
    "unusual": ("!", "rows, dropped share or seconds differ from the usual"),
    "missing": ("✗", "rows of the step are missing"),
}
_MOST = 12  # reasons in the table
_SUMMED = ("kept_count", "seconds", "byte_count", "input_tokens", "output_tokens", "cost_usd")


def render(
    day: date, day_count: int, rows: pl.DataFrame, dropped: pl.DataFrame, sources: pl.DataFrame, models: pl.DataFrame,
    schedules: Mapping[str, str],
) -> str:  # fmt: skip
    """Render the page of so many days until a day.

    Rows are of the view pipeline_health of these days. `dropped` has step, dropped_at, reason, row_count; `sources` the
    last day that was collected, and its row_count; `models` kind, model_id and day of the last training, and the last
    day of a promoted one. Schedules are of `FAMILIES`.
    """
    days = [day - timedelta(days=n) for n in reversed(range(day_count))]
    cells = rows.partition_by("day", "family", as_dict=True)
    cost = f" Language models cost {rows['cost_usd'].sum():,.4f} USD." if rows["cost_usd"].count() else ""
    return sections.render(
        f"health until {day}",
        "Health of the pipeline",
        f"Each DAG on the {len(days)} days until {day}, compared with the median of the seven days before.{cost}",
        list(_build_sections(rows, dropped, sources, models, days)),
        counts={name: rows.filter(status=name).height for name in STATUSES} if rows.height else {},
        warning=_format_warning(rows),
        template="daily/health.html",
        days=days,
        key=[(name, mark, means) for name, (mark, means) in STATUSES.items()],
        lines=[(name, schedules[name], [_build_cell(cells.get((day, name))) for day in days]) for name in FAMILIES],
    )


def _format_warning(rows: pl.DataFrame) -> str:
    missing = rows.filter(status="missing").sort("day", "step")
    names = [f"{step} of {day}" for day, step in missing.select("day", "step").head(5).iter_rows()]
    more = f" and {missing.height - 5} more" if missing.height > 5 else ""
    return f"Missing: {', '.join(names)}{more}. `undertone heal` creates missing tokens and scores." if names else ""


def _build_cell(rows: pl.DataFrame | None) -> dict[str, str]:
    """Build the cell of a DAG and day: the worst status of its steps, and the rows that they kept."""
    if rows is None:
        return {"status": "none", "mark": "", "count": "", "title": "no work"}
    status = max(rows["status"], key=list(STATUSES).index)
    count = figures.format_short(float(rows["kept_count"].sum())) if rows["kept_count"].count() else ""
    title = "\n".join(map(_describe_step, rows.to_dicts()))
    return {"status": status, "mark": STATUSES[status][0], "count": count, "title": title}


def _describe_step(row: dict[str, Any]) -> str:
    notes = [f"{row['day']} {row['step']}: {row['status']}{': ' + row['why'] if row['why'] else ''}"]
    if row["read_count"] is not None:
        notes.append("read {read_count:,}, kept {kept_count:,}, dropped {dropped_count:,}".format(**row))
    if row["waiting_count"]:
        notes.append(f"rows that wait: {row['waiting_count']:,}")
    if row["seconds"] is not None:
        notes.append(f"{row['seconds']:,.0f} s")
    return "; ".join(notes)


def _build_sections(
    rows: pl.DataFrame, dropped: pl.DataFrame, sources: pl.DataFrame, models: pl.DataFrame, days: list[date]
) -> Iterator[Section]:
    unusual = rows.filter(~pl.col("status").is_in(["ok", "backfill"]))
    if unusual.height:
        yield _build_unusual(unusual.sort(["day", "step"], descending=[True, False]))
    if sources.height:
        columns: Columns = {
            "source": "source", "last day": lambda row: f"{row['day']}",
            "days behind": lambda row: format_count((days[-1] - row["day"]).days), "rows of the last day": "row_count",
        }  # fmt: skip
        sentence = f"The last day that was collected of each source, and how far it is behind {days[-1]}."
        yield Section(sentence, *tabulate(sources, columns), text_count=2, title="Sources")
    if models.height:
        columns = {
            "kind": "kind", "last trained": lambda row: f"{row['day']}",
            "model": lambda row: row["model_id"][:12], "last promoted": lambda row: f"{row['promoted'] or '–'}",
        }  # fmt: skip
        yield Section("The last model of each kind.", *tabulate(models, columns), text_count=4, title="Models")
    if dropped.height:
        yield _build_dropped(dropped)
    if (measured := rows.filter(pl.col("family") != "report")).height:
        yield _build_costs(measured, days)


def _build_unusual(rows: pl.DataFrame) -> Section:
    cells = []
    for row in rows.to_dicts():
        status = f"{STATUSES[row['status']][0]} {row['status']}"
        counts = [format_count(row[name]) for name in ("read_count", "usual_read_count")]
        shares = [_format_share(row[name]) for name in ("dropped_ratio", "usual_dropped_ratio")]
        times = [format_number(row[name], 0) for name in ("seconds", "usual_seconds", "age_hours")]
        cells.append([f"{row['day']:%d %b}", row["step"], status, row["why"], *counts, *shares, *times])
    names = ("day", "step", "status", "why", "read", "usual", "dropped", "usual", "seconds", "usual", "age (h)")
    sentence = (
        "These steps differ from the usual: the median of up to seven days before. The age is the time from the end of "
        "the day to the start of the step."
    )
    return Section(sentence, names, cells, text_count=4, title="Unusual steps")


def _build_dropped(dropped: pl.DataFrame) -> Section:
    keys = ["step", "dropped_at", "reason"]
    reasons = dropped.group_by(keys).agg(pl.col("row_count").sum()).sort(-pl.col("row_count"), *keys)
    total = reasons["row_count"].sum()
    cells = [
        [step, part, str(reason).replace("_", " "), format_count(size), _format_share(size / total)]
        for step, part, reason, size in reasons.head(_MOST).iter_rows()
    ]
    rest = f" The table shows the {_MOST} most frequent of {reasons.height} reasons." if reasons.height > _MOST else ""
    sentence = f"The steps dropped {total:,} rows, each with a reason.{rest}"
    names = ("step", "part", "reason", "rows", "share")
    return Section(sentence, names, cells, text_count=3, title="Reasons for dropped rows")


def _build_costs(rows: pl.DataFrame, days: list[date]) -> Section:
    cells = []
    for name in order_names(rows["family"], FAMILIES):
        parts = rows.filter(family=name).partition_by("step", as_dict=True)
        cells += [_format_totals(name, step, part) for (step,), part in sorted(parts.items())]
    sentence = f"All steps together took {rows['seconds'].sum():,.0f} seconds of work."
    names = ("DAG", "step", "days", "rows kept", "seconds", "rows per second", "MB written", "tokens in + out", "USD")
    totals = [pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in figures.HEALTH_TITLES]
    daily = rows.group_by("day", step="family").agg(totals)
    figure = figures.draw_trends(daily, days, order_names(daily["step"], FAMILIES))
    return Section(sentence, names, cells, figure, text_count=2, title="Runtime and cost")


def _format_totals(family: str, step: str, rows: pl.DataFrame) -> list[str]:
    total = {name: float(rows[name].sum()) if rows[name].count() else None for name in _SUMMED}
    kept_count, seconds, size = total["kept_count"], total["seconds"], total["byte_count"]
    rate = kept_count / seconds if kept_count and seconds else None
    tokens = " + ".join(format_count(total[name]) for name in ("input_tokens", "output_tokens"))
    numbers = ((kept_count, 0), (seconds, 1), (rate, 0), (None if size is None else size / 1e6, 1))
    cells = [family, step, str(rows.height), *(format_number(value, digits, ",") for value, digits in numbers)]
    return [*cells, "–" if total["input_tokens"] is None else tokens, format_number(total["cost_usd"], 4)]


def _format_share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
