"""One HTML page of the pipeline's health: days by steps, what wants a look, why rows were dropped, what it all took.

A status is told by a sign and a word as well as by a colour. Names are hostile data: everything but our own figure is
escaped.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, NamedTuple

import polars as pl

from pipeline.report import sections
from pipeline.report.daily import health_figures
from pipeline.report.sections import Section, format_count, format_number

CHAIN = ("collect", "tokenize", "score")
STATUSES = {
    "ok": ("✓", "as usual"),
    "late": ("◷", "began over 24 hours after the day"),
    "unusual": ("!", "rows, share dropped or seconds are off"),
    "missing": ("✗", "not done"),
}
_MOST = 12  # reasons in the table
_SUMMED = ("kept_count", "seconds", "byte_count", "input_tokens", "output_tokens", "cost_usd")


class Inputs(NamedTuple):
    """What the page shows."""

    day: date  # the last one
    days: int
    health: pl.DataFrame  # view pipeline_health of these days
    dropped: pl.DataFrame  # step, dropped_at, reason, row_count; of these days together


def render(inputs: Inputs) -> str:
    """The page as text."""
    rows, days = inputs.health, [inputs.day - timedelta(days=n) for n in reversed(range(inputs.days))]
    steps = [step for step in CHAIN if step in rows["step"]] + sorted(set(rows["step"]) - set(CHAIN))
    return sections.render(
        f"health until {inputs.day}",
        "Health of the pipeline",
        f"What each step did for the {len(days)} days until {inputs.day}, against the median of the seven days before "
        "each.",
        list(_build_sections(inputs, days, steps)),
        counts={name: rows.filter(status=name).height for name in STATUSES} if rows.height else {},
        warning=_format_warning(rows),
        template="health.html",
        days=days,
        key=[(name, mark, means) for name, (mark, means) in STATUSES.items()],
        lines=_build_lines(rows, days, steps),
    )


def _format_warning(rows: pl.DataFrame) -> str:
    missing = rows.filter(status="missing").sort("day", "step")
    if not missing.height:
        return ""
    names = [f"{step} of {day}" for day, step in missing.select("day", "step").head(5).iter_rows()]
    more = f" and {missing.height - 5} more" if missing.height > 5 else ""
    return f"Missing: {', '.join(names)}{more}. `undertone heal` makes tokens and scores that days lack."


def _build_lines(rows: pl.DataFrame, days: list[date], steps: list[str]) -> list[tuple[str, list[dict[str, str]]]]:
    by_day_and_step = {(row["day"], row["step"]): row for row in rows.to_dicts()}
    return [(step, [_build_cell(by_day_and_step.get((day, step))) for day in days]) for step in steps]


def _build_cell(row: dict[str, Any] | None) -> dict[str, str]:
    if row is None:
        return {"status": "none", "mark": "", "count": "", "title": "nothing was to be done"}
    notes = [f"{row['day']} {row['step']}: {row['status']}{': ' + row['why'] if row['why'] else ''}"]
    if row["read_count"] is not None:
        notes.append("read {read_count:,}, kept {kept_count:,}, dropped {dropped_count:,}".format(**row))
    if row["waiting_count"]:
        notes.append(f"{row['waiting_count']:,} rows wait")
    if row["seconds"] is not None:
        notes.append(f"{row['seconds']:,.0f} s")
    kept_text = "" if row["kept_count"] is None else _format_short(row["kept_count"])
    return {"status": row["status"], "mark": STATUSES[row["status"]][0], "count": kept_text, "title": "; ".join(notes)}


def _format_short(count: float) -> str:
    """A count in four characters or so: 940, 1.2k, 53k, 2.1M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 10 * size else f"{count / size:.0f}{unit}"
    return f"{count:.0f}"


def _build_sections(inputs: Inputs, days: list[date], steps: list[str]) -> Iterator[Section]:
    rows = inputs.health
    if (unusual := rows.filter(pl.col("status") != "ok").sort(["day", "step"], descending=[True, False])).height:
        yield _build_unusual(unusual)
    if inputs.dropped.height:
        yield _build_dropped(inputs.dropped)
    if rows.height:
        yield _build_costs(rows, days, steps)


def _build_unusual(rows: pl.DataFrame) -> Section:
    cells = [
        [
            f"{row['day']:%d %b}",
            row["step"],
            f"{STATUSES[row['status']][0]} {row['status']}",
            row["why"],
            format_count(row["read_count"]),
            format_count(row["usual_read_count"]),
            _format_share(row["dropped_ratio"]),
            _format_share(row["usual_dropped_ratio"]),
            format_number(row["seconds"], 0),
            format_number(row["usual_seconds"], 0),
            format_number(row["age_hours"], 0),
        ]
        for row in rows.to_dicts()
    ]
    names = (
        "day", "step", "status", "why", "read", "usual", "dropped", "usual", "seconds", "usual", "age (h)",
    )  # fmt: skip
    sentence = (
        "Steps that are not as usual; usual is the median of up to seven days before, and the age is counted from the "
        "end of the day to the beginning of the step."
    )
    return Section("What wants a look", sentence, "", names, cells, 4)


def _build_dropped(dropped: pl.DataFrame) -> Section:
    keys = ["step", "dropped_at", "reason"]
    reasons = (
        dropped.group_by(keys)
        .agg(pl.col("row_count").sum())
        .sort(["row_count", *keys], descending=[True, *[False] * 3])
    )
    total = reasons["row_count"].sum()
    cells = [
        [step, part, str(reason).replace("_", " "), format_count(size), _format_share(size / total)]
        for step, part, reason, size in reasons.head(_MOST).iter_rows()
    ]
    rest = f" The {_MOST} most frequent of {reasons.height} are shown." if reasons.height > _MOST else ""
    sentence = f"{total:,} rows were left out, each with a reason.{rest}"
    return Section("Why rows were dropped", sentence, "", ("step", "part", "reason", "rows", "share"), cells, 3)


def _build_costs(rows: pl.DataFrame, days: list[date], steps: list[str]) -> Section:
    cells = [_format_totals(step, rows.filter(step=step)) for step in steps]
    usd = rows["cost_usd"].sum()
    cost_text = f" Language models cost {usd:,.4f} USD." if rows["cost_usd"].count() else ""
    sentence = f"All steps together took {rows['seconds'].sum():,.0f} seconds of work.{cost_text}"
    names = ("step", "days", "rows kept", "seconds", "rows a second", "MB written", "tokens in + out", "USD")
    return Section("What it took", sentence, health_figures.draw_trends(rows, days, steps), names, cells)


def _format_totals(step: str, rows: pl.DataFrame) -> list[str]:
    """A step's row: what is not known of any day is a dash."""
    total = {name: float(rows[name].sum()) if rows[name].count() else None for name in _SUMMED}
    kept_count, seconds, size = total["kept_count"], total["seconds"], total["byte_count"]
    has_tokens, rate = total["input_tokens"] is not None, kept_count / seconds if kept_count and seconds else None
    return [
        step, str(rows.height), format_count(kept_count), format_number(seconds, 1), format_number(rate, 0),
        format_number(None if size is None else size / 1e6, 1),
        f"{format_count(total['input_tokens'])} + {format_count(total['output_tokens'])}" if has_tokens else "–",
        format_number(total["cost_usd"], 4),
    ]  # fmt: skip


def _format_share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
