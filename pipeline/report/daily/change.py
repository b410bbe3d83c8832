"""What a page shows of the change since last week: sentences, a figure, a table, and comments that show it."""

from typing import Any

import polars as pl

from pipeline.report.daily import change_figures
from pipeline.report.sections import format_count, format_interval, format_number, format_signed, shorten

MOST = 12  # sources in the figure
_NAMED = 3  # sources in a sentence
_LONGEST = 280  # characters of a comment


def build(changes: pl.DataFrame, examples: pl.DataFrame) -> dict[str, Any]:
    """Build what the template shows of `changes` and `examples` of `tasks.daily.weeks`."""
    rows = [row | {"name": f"{row['source']} ({row['lang']})"} for row in changes.to_dicts()]
    shown = rows[:MOST]
    return {
        "rows": [
            row | {"interval": format_interval(row, "change"), "corrected": _format_corrected(row)} for row in rows
        ],
        "sentences": [_describe_change(rows), _describe_quarter(rows[0]), _describe_corrected(rows[0]), _count(rows)],
        "figure": change_figures.draw_changes(shown, [row["name"] for row in shown]),
        "is_cut": len(rows) > MOST,
        "examples": [row | {"text": shorten(row["text"], _LONGEST)} for row in examples.to_dicts()],
    }


def _describe_change(rows: list[dict[str, Any]]) -> str:
    clear = [row for row in rows if row["is_clear"]]
    if clear:
        names = "; ".join(_describe_row(row) for row in clear[:_NAMED])
        more = f"; and {len(clear) - _NAMED} more" if len(clear) > _NAMED else ""
        return f"Since last week the mean changed clearly in {len(clear)} of {len(rows)} sources: {names}{more}."
    reason = "each interval of 95 % includes 0"
    if all(row["low"] != row["low"] for row in rows):  # NaN
        reason = "an interval needs ten threads in both weeks"
    return f"Since last week no source changed clearly: {reason}. The largest difference: {_describe_row(rows[0])}."


def _describe_row(row: dict[str, Any]) -> str:
    verb = "rose" if row["change"] > 0 else "fell"
    change = f"{row['name']} {verb} from {format_number(row['mean_before'])} to {format_number(row['mean'])}"
    return (
        change if row["low"] != row["low"] else f"{change} ({_format_bounds(row['change'], row['low'], row['high'])})"
    )


def _format_bounds(change: float, low: float, high: float) -> str:
    return f"{format_signed(change)}, 95 % interval {format_signed(low)} to {format_signed(high)}"


def _describe_quarter(row: dict[str, Any]) -> str:
    side, word = ("high", "implicit") if row["change"] > 0 else ("low", "explicit")
    now, before = (format_number(100 * row[f"{side}_share{suffix}"], 0) for suffix in ("", "_before"))
    share = f"In {row['name']}, {now} % of the comments are more {word} than three quarters of last week's"
    return f"{share}; then it was {before} %."


def _describe_corrected(row: dict[str, Any]) -> str:
    if row["judge"] is None:
        return "These means are the scorer's own: no judge corrected them, so they may be biased."
    change = _format_bounds(row["corrected"], row["corrected_low"], row["corrected_high"])
    return f"As the judge {row['judge']} would score {row['name']}, its mean changed by {change}."


def _format_corrected(row: dict[str, Any]) -> str:
    bounds = {"value": row["corrected"], "low": row["corrected_low"], "high": row["corrected_high"]}
    return format_interval(bounds) if row["judge"] else "–"


def _count(rows: list[dict[str, Any]]) -> str:
    now, before, threads = (
        sum(row[name] for row in rows) for name in ("comment_count", "comment_count_before", "thread_count")
    )
    growth = format_number(100 * (now / before - 1), 0, "+")
    return (
        f"{format_count(now)} comments in {format_count(threads)} threads are compared with {format_count(before)} of "
        f"last week ({growth} %)."
    )
