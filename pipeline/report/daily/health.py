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
from pipeline.report.sections import Section, count, number

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


def health(inputs: Inputs) -> str:
    """The page as text."""
    rows, days = inputs.health, [inputs.day - timedelta(days=n) for n in reversed(range(inputs.days))]
    steps = [step for step in CHAIN if step in rows["step"]] + sorted(set(rows["step"]) - set(CHAIN))
    return sections.render(
        f"health until {inputs.day}",
        "Health of the pipeline",
        f"What each step did for the {len(days)} days until {inputs.day}, against the median of the seven days before "
        "each.",
        list(_sections(inputs, days, steps)),
        counts={name: rows.filter(status=name).height for name in STATUSES} if rows.height else {},
        warning=_warning(rows),
        template="health.html",
        days=days,
        key=[(name, mark, means) for name, (mark, means) in STATUSES.items()],
        lines=_lines(rows, days, steps),
    )


def _warning(rows: pl.DataFrame) -> str:
    gone = rows.filter(status="missing").sort("day", "step")
    if not gone.height:
        return ""
    told = [f"{step} of {day}" for day, step in gone.select("day", "step").head(5).iter_rows()]
    more = f" and {gone.height - 5} more" if gone.height > 5 else ""
    return f"Missing: {', '.join(told)}{more}. `undertone heal` makes tokens and scores that days lack."


def _lines(rows: pl.DataFrame, days: list[date], steps: list[str]) -> list[tuple[str, list[dict[str, str]]]]:
    known = {(row["day"], row["step"]): row for row in rows.to_dicts()}
    return [(step, [_cell(known.get((day, step))) for day in days]) for step in steps]


def _cell(row: dict[str, Any] | None) -> dict[str, str]:
    if row is None:
        return {"status": "none", "mark": "", "count": "", "title": "nothing was to be done"}
    said = [f"{row['day']} {row['step']}: {row['status']}{': ' + row['why'] if row['why'] else ''}"]
    if row["read_count"] is not None:
        said.append("read {read_count:,}, kept {kept_count:,}, dropped {dropped_count:,}".format(**row))
    if row["waiting_count"]:
        said.append(f"{row['waiting_count']:,} rows wait")
    if row["seconds"] is not None:
        said.append(f"{row['seconds']:,.0f} s")
    kept = "" if row["kept_count"] is None else _short(row["kept_count"])
    return {"status": row["status"], "mark": STATUSES[row["status"]][0], "count": kept, "title": "; ".join(said)}


def _short(count: float) -> str:
    """A count in four characters or so: 940, 1.2k, 53k, 2.1M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 10 * size else f"{count / size:.0f}{unit}"
    return f"{count:.0f}"


def _sections(inputs: Inputs, days: list[date], steps: list[str]) -> Iterator[Section]:
    rows = inputs.health
    if (strange := rows.filter(pl.col("status") != "ok").sort(["day", "step"], descending=[True, False])).height:
        yield _strange(strange)
    if inputs.dropped.height:
        yield _dropped(inputs.dropped)
    if rows.height:
        yield _took(rows, days, steps)


def _strange(rows: pl.DataFrame) -> Section:
    cells = [
        [
            f"{row['day']:%d %b}", row["step"], f"{STATUSES[row['status']][0]} {row['status']}", row["why"],
            count(row["read_count"]), count(row["usual_read_count"]), _share(row["dropped_ratio"]),
            _share(row["usual_dropped_ratio"]), number(row["seconds"], 0), number(row["usual_seconds"], 0),
            number(row["age_hours"], 0),
        ]
        for row in rows.to_dicts()
    ]  # fmt: skip
    names = (
        "day", "step", "status", "why", "read", "usual", "dropped", "usual", "seconds", "usual", "age (h)",
    )  # fmt: skip
    said = (
        "Steps that are not as usual; usual is the median of up to seven days before, and the age is counted from the "
        "end of the day to the beginning of the step."
    )
    return Section("What wants a look", said, "", names, cells, 4)


def _dropped(dropped: pl.DataFrame) -> Section:
    by = ["step", "dropped_at", "reason"]
    found = (
        dropped.group_by(by).agg(pl.col("row_count").sum()).sort(["row_count", *by], descending=[True, *[False] * 3])
    )
    total = found["row_count"].sum()
    cells = [
        [step, at, str(reason).replace("_", " "), count(size), _share(size / total)]
        for step, at, reason, size in found.head(_MOST).iter_rows()
    ]
    rest = f" The {_MOST} most frequent of {found.height} are shown." if found.height > _MOST else ""
    said = f"{total:,} rows were left out, each with a reason.{rest}"
    return Section("Why rows were dropped", said, "", ("step", "part", "reason", "rows", "share"), cells, 3)


def _took(rows: pl.DataFrame, days: list[date], steps: list[str]) -> Section:
    cells = [_sums(step, rows.filter(step=step)) for step in steps]
    spent = rows["cost_usd"].sum()
    cost = f" Language models cost {spent:,.4f} USD." if rows["cost_usd"].count() else ""
    said = f"All steps together took {rows['seconds'].sum():,.0f} seconds of work.{cost}"
    names = ("step", "days", "rows kept", "seconds", "rows a second", "MB written", "tokens in + out", "USD")
    return Section("What it took", said, health_figures.trends(rows, days, steps), names, cells)


def _sums(step: str, rows: pl.DataFrame) -> list[str]:
    """A step's row: what is not known of any day is a dash."""
    total = {name: float(rows[name].sum()) if rows[name].count() else None for name in _SUMMED}
    kept, seconds, size = total["kept_count"], total["seconds"], total["byte_count"]
    asked, rate = total["input_tokens"] is not None, kept / seconds if kept and seconds else None
    return [
        step, str(rows.height), count(kept), number(seconds, 1), number(rate, 0),
        number(None if size is None else size / 1e6, 1),
        f"{count(total['input_tokens'])} + {count(total['output_tokens'])}" if asked else "–",
        number(total["cost_usd"], 4),
    ]  # fmt: skip


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
