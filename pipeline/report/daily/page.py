"""The HTML page of a day. Comments are hostile data: everything but our own figures is escaped."""

import json
import shlex
from collections.abc import Mapping
from math import isnan
from typing import Any, TypedDict

import polars as pl

from pipeline.report import figures
from pipeline.report.sections import format_count, format_number, format_signed, render_template, shorten

MOST = 12  # sources in the figure
_NAMED = 3  # sources in a sentence
_LONGEST = 280  # characters of a comment


class Contents(TypedDict):
    day: str
    scores: pl.DataFrame  # source, lang, implicitness, percentile
    reference: str | None  # name of the corpus of the percentiles
    weakness: str  # of the model, in the languages of the day
    weeks: Mapping[str, pl.DataFrame]  # of `tasks.daily.report`: changes and examples, or nothing
    by_source: pl.DataFrame  # view implicitness_by_source_day
    most: pl.DataFrame  # view most_implicit, words (word and change of each, or null)
    least: pl.DataFrame
    funnel: pl.DataFrame  # view funnel, of collection
    model: dict[str, Any] | None
    evaluations: pl.DataFrame
    signatures: list[str]


def render(contents: Contents) -> str:
    scores, funnel = contents["scores"], contents["funnel"]
    collected = funnel.unique(["source", "origin"], maintain_order=True)
    facts = [
        ("comments scored", f"{scores.height:,}"),
        ("sources", str(scores["source"].n_unique())),
        ("mean implicitness", f"{scores['implicitness'].to_numpy().mean():.3f}"),
        ("mean percentile", format_count(scores["percentile"].mean())),
        ("rows read", f"{collected['read_count'].sum():,}"),
        ("rows dropped, each with a reason", f"{collected['dropped_count'].sum():,}"),
    ]
    ends = [("Most implicit", contents["most"]), ("Least implicit", contents["least"])]
    why = pl.format("{}: {} {}", "dropped_at", "row_count", pl.col("reason").str.replace_all("_", " "))
    runs = funnel.group_by("source", "origin", "read_count", "kept_count", "dropped_count")
    return render_template(
        "daily/page.html",
        title=contents["day"],
        day=contents["day"],
        warnings=_list_warnings(contents),
        change=_build_change(**contents["weeks"]) if contents["weeks"] else None,
        browse=[_format_browse(contents["day"], source) for source in [None, *scores["source"].unique().sort()]],
        facts=facts,
        distributions=figures.draw_distributions(scores),
        by_source=contents["by_source"].to_dicts(),
        reference=contents["reference"],
        examples=[(title, [row | {"pieces": _mark_words(row)} for row in rows.to_dicts()]) for title, rows in ends],
        is_explained=any(rows["words"].count() for _, rows in ends),
        funnel=figures.draw_funnel(_build_shares(funnel)) if funnel.height else "",
        funnel_rows=runs.agg(why=why.drop_nulls().sort().str.join("; ")).sort("source", "origin").to_dicts(),
        model=contents["model"],
        evaluations=contents["evaluations"].to_dicts(),
        signatures=contents["signatures"],
    )


def _format_browse(day: str, source: str | None) -> str:
    """Format the command that opens the day, or a source of it, in a browser: a page cannot know port and token."""
    among = {"among": {"source": [source]}} if source else {}
    view = json.dumps({**among, "between": {"day": [day, day]}})  # in ASCII, so that it can be copied
    return f"undertone browse --where {shlex.quote(view)}"


def _mark_words(row: Mapping[str, Any]) -> list[tuple[str, float | None]]:
    """Cut a text into its words, with their changes, and what is between them; into one piece without words."""
    text, pieces, end = row["text"], [], 0
    for part in row["words"] or ():
        start = text.find(part["word"], end)
        if start < 0:  # not the words of this text
            return [(text, None)]
        pieces += [(text[end:start], None), (part["word"], part["change"])]
        end = start + len(part["word"])
    return [(piece, change) for piece, change in [*pieces, (text[end:], None)] if piece]


def _list_warnings(contents: Contents) -> list[str]:
    model, warnings = contents["model"], [contents["weakness"]] if contents["weakness"] else []
    if model and "undertone-sample" in model["completion_models"]:
        origin = "The model learned from the sample that ships with Undertone."
        warnings.insert(0, f"{origin} Its scores are a demonstration, not a result.")
    if other_langs := sorted(set(contents["scores"]["lang"].unique()) - {"en"}):
        scores = f"Scores in {', '.join(other_langs)}"
        warnings.append(f"ImpScore is a measure for English. {scores} are an extension; their signatures mark them.")
    return warnings


def _build_shares(funnel: pl.DataFrame) -> pl.DataFrame:
    runs, no_reason = funnel.unique(["source", "origin"]), pl.lit(None, pl.String)
    kept_rows = runs.select("source", reason=no_reason, row_count="kept_count")
    dropped_rows = funnel.drop_nulls("reason").select("source", "reason", "row_count")
    return pl.concat([kept_rows, dropped_rows]).group_by("source", "reason").agg(pl.col("row_count").sum())


def _build_change(changes: pl.DataFrame, examples: pl.DataFrame) -> dict[str, Any]:
    """Build what the template shows of `changes` and `examples` of `report.compare_weeks`."""
    rows = changes.to_dicts()
    for row in rows:
        row["name"] = f"{row['source']} ({row['lang']})"
        row["interval"] = _format_interval(row["change"], row["low"], row["high"])
        row["judged"] = _format_interval(row["corrected"], row["corrected_low"], row["corrected_high"])
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
    names = ("comment_count", "comment_count_before", "thread_count")
    now, before, threads = (sum(row[name] for row in rows) for name in names)
    counts = f"{format_count(now)} comments in {format_count(threads)} threads are compared with {format_count(before)}"
    return f"{counts} of last week ({format_number(100 * (now / before - 1), 0, '+')} %)."
