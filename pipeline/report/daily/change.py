"""What a page shows of the change since last week: sentences, a figure, a table, and comments that show it."""

from math import isnan
from typing import Any

import polars as pl

from pipeline.report import figures
from pipeline.report.sections import format_count, format_number, format_signed, shorten

MOST = 12  # sources in the figure
_NAMED = 3  # sources in a sentence
_LONGEST = 280  # characters of a comment


def build(changes: pl.DataFrame, examples: pl.DataFrame) -> dict[str, Any]:
    """Build what the template shows of `changes` and `examples` of `tasks.daily.weeks`."""
    rows = changes.to_dicts()
    for row in rows:
        row["name"] = f"{row['source']} ({row['lang']})"
        row["interval"] = _format_interval(*(row[name] for name in ("change", "low", "high")))
        row["judged"] = _format_interval(*(row[name] for name in ("corrected", "corrected_low", "corrected_high")))
    sentences = [_describe_changes(rows), _describe_quarter(rows[0]), _describe_corrected(rows[0]), _count(rows)]
    return {
        "rows": rows,
        "sentences": [sentence.replace(" %", "\u00a0%") for sentence in sentences],  # in one line
        "figure": figures.draw_changes(rows[:MOST]),
        "most": MOST if len(rows) > MOST else None,
        "examples": [row | {"text": shorten(row["text"], _LONGEST)} for row in examples.to_dicts()],
    }


def _describe_changes(rows: list[dict[str, Any]]) -> str:
    if clear := [row for row in rows if row["is_clear"]]:
        names = "; ".join(map(_describe_row, clear[:_NAMED]))
        more = f"; and {len(clear) - _NAMED} more" if len(clear) > _NAMED else ""
        start = f"The mean implicitness changed clearly in {len(clear)} of {len(rows)} sources"
        return f"{start}, with intervals of 95 %: {names}{more}."
    has_interval = not all(isnan(row["low"]) for row in rows)
    reason = "each interval of 95 % has 0 in it" if has_interval else "an interval needs ten threads in both weeks"
    return f"No source changed clearly: {reason}. The largest difference: {_describe_row(rows[0])}."


def _describe_row(row: dict[str, Any]) -> str:
    verb = "rose" if row["change"] > 0 else "fell"
    means = f"from {format_number(row['mean_before'])} to {format_number(row['mean'])}"
    return f"{row['name']} {verb} {means}: {row['interval']}"


def _format_interval(change: float | None, low: float | None, high: float | None) -> str:
    bounds = "" if low is None or isnan(low) else f" ({format_signed(low)} to {format_signed(high)})"
    return f"{format_signed(change)}{bounds}"


def _describe_quarter(row: dict[str, Any]) -> str:
    side, word = ("high", "implicit") if row["change"] > 0 else ("low", "explicit")
    now, before = (format_number(100 * row[f"{side}_share{suffix}"], 0) for suffix in ("", "_before"))
    share = f"In {row['name']}, {now} % of the comments are more {word} than three quarters of last week's"
    return f"{share}; then it was {before} %."


def _describe_corrected(row: dict[str, Any]) -> str:
    if row["judge"] is None:
        return "These means are the scorer's own: no judge corrected them, so they may be biased."
    return f"As the judge {row['judge']} would score {row['name']}, its mean changed by {row['judged']}."


def _count(rows: list[dict[str, Any]]) -> str:
    now, before, threads = (
        sum(row[name] for row in rows) for name in ("comment_count", "comment_count_before", "thread_count")
    )
    counts = f"{format_count(now)} comments in {format_count(threads)} threads are compared with {format_count(before)}"
    return f"{counts} of last week ({format_number(100 * (now / before - 1), 0, '+')} %)."
