"""Parts of the page of article commenting on metrics: how they go with people's grades, and how commenters fare."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.papers.commenting import SYSTEMS
from pipeline.report.commenting import figures
from pipeline.report.figures import Floats
from pipeline.report.sections import (
    BEST,
    Section,
    count,
    counts_between,
    interval,
    minus,
    number,
    p_value,
    rows_by,
    shorten,
    signed,
)

PAIRS: Sequence[tuple[figures.Metric, figures.Metric]] = (
    (("meteor", False), ("bleu_1", False)),
    (("meteor", False), ("meteor", True)),
)
"""Metrics whose disagreements tables 5 and 6 show."""
EXAMPLES = 4  # comments of each pair
LONG = 300  # characters of a comment that the page shows


def correlations(frame: pl.DataFrame) -> Section:
    known = rows_by(frame, "metric", "is_weighted", "coefficient")
    kinds = [kind for kind in figures.COEFFICIENTS if kind in set(frame["coefficient"])]
    rows, said = [], []
    for kind in kinds:
        differences = []
        for metric in figures.metrics_of(frame["metric"]):
            plain, weighted = (known.get((metric, own, kind), {}) for own in (False, True))
            if not plain and not weighted:
                continue
            difference = _difference(plain, weighted)
            differences.append(difference)
            printed = (number(figures.PAPER_CORRELATIONS.get((metric, own, kind)), 4) for own in (False, True))
            shown = [text for row in (plain, weighted) for text in (interval(row), p_value(row.get("p")))]
            name, n = figures.metric_name(metric), count((plain or weighted)["n"])
            rows.append([name, figures.COEFFICIENTS[kind], *shown, interval(difference), *printed, n])
        said += _gains(figures.COEFFICIENTS[kind], differences)
    return Section(
        "Whether metrics grade as people do",
        f"{'Weights raise ' + ', '.join(said) if said else 'No metric is here with weights and without'}. Beyond "
        "chance is a difference whose interval does not hold zero. The paper calls the improvement consistent, yet its "
        "own numbers for BLEU-1 fall, from 0.2145 to 0.2076 and from 0.1790 to 0.1604 (tables 3 and 4, errata E12). "
        "Human grades are held against each other, by halves.",
        figures.correlations(frame),
        ("metric", "coefficient", "plain", "p", "weighted", "p", "difference", "paper, plain", "paper, weighted", "n"),
        rows,
        texts=2,
    )


def _gains(coefficient: str, differences: Sequence[Mapping[str, Any]]) -> list[str]:
    """What weights do to a coefficient, in words; nothing where no metric has both forms."""
    there = [row for row in differences if row.get("value") is not None]
    sure = [row for row in there if None not in {row.get("low"), row.get("high")}]
    up, down = sum(row["low"] > 0 for row in sure), sum(row["high"] < 0 for row in sure)
    more = sum(row["value"] > 0 for row in there)
    told = f"{coefficient} of {more} of {len(there)} metrics ({up} beyond chance; {down} fall beyond it)"
    return [told] if there else []


def _difference(plain: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, float | None]:
    """Weighted minus plain with its interval, from either row; without one, of the values."""
    for row in (own, plain):
        if row.get("difference") is not None:
            return {name: row[f"difference{end}"] for name, end in (("value", ""), ("low", "_low"), ("high", "_high"))}
    return {"value": less(own.get("value"), plain.get("value"))}


def less(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def scatter(frame: pl.DataFrame) -> Section:
    frame = frame.drop_nulls(["value", "grade"])
    if frame.is_empty():
        raise BadInput("scatter: expected a row with value and grade, found none")
    rows = []
    for metric, weighted in figures.rows_of(frame):
        part = frame.filter((pl.col("metric") == metric) & (pl.col("is_weighted") == weighted))
        spread = [f for name in ("value", "grade") for f in (part[name].mean(), part[name].std())]
        rows.append([figures.metric_name(metric, weighted), *(number(value) for value in spread), count(part.height)])
    panels = [figures.metric_name(*panel) for panel in figures.PANELS]
    return Section(
        "Metrics and grades of the same comments",
        f"Each point is a comment; the line is the least-squares fit. Panels as in figure 1 of the paper: "
        f"{', '.join(panels)}. Noise with a standard deviation of {figures.JITTER} "
        "grades shows where points lie on each other; the paper leaves open whether its 0.05 is that or the variance.",
        figures.scatter(frame),
        ("metric", "mean", "s.d.", "mean grade", "s.d.", "comments"),
        rows,
    )


def sensitivity(frame: pl.DataFrame) -> Section:
    known = rows_by(frame, "preset", "metric", "coefficient")
    rows = []
    for metric in figures.metrics_of(frame["metric"]):
        for preset in sorted(set(frame["preset"])):
            told = [known.get((preset, metric, kind), {}) for kind in figures.COEFFICIENTS]
            if any(told):
                ratio = next((row["ratio"] for row in told if row.get("ratio") is not None), None)
                values = (minus(row.get("value")) for row in told)
                rows.append([figures.metric_name(metric), preset, *values, number(ratio), _ratios(metric)])
    return Section(
        "How grades become weights",
        "The paper wants weights in [0, 1] and does not say how it makes them of grades (section 4). The ratio is that "
        "of weighted scores to plain ones: in its table 7 no one way gives the ratios of all metrics (errata E11).",
        figures.sensitivity(frame),
        ("metric", "weights", *figures.COEFFICIENTS.values(), "weighted / plain", "in the paper"),
        rows,
        texts=2,
    )


def _ratios(metric: str) -> str:
    """Weighted to plain scores of the systems of table 7, from the least to the most."""
    there = [
        (figures.PAPER_SYSTEMS.get((metric, True, name)), figures.PAPER_SYSTEMS.get((metric, False, name)))
        for name in SYSTEMS
    ]
    ratios = [f"{own / plain:.2f}" for own, plain in there if own is not None and plain]
    return "–" if not ratios else ratios[0] if len(set(ratios)) == 1 else f"{min(ratios)} to {max(ratios)}"


def systems(frame: pl.DataFrame) -> Section:
    names, metrics = figures.systems_of(frame["system"]), figures.rows_of(frame)
    tables = {
        "here": figures.values_of(metrics, names, figures.cells(frame)),
        "in the paper": figures.values_of(metrics, names, figures.PAPER_SYSTEMS),
    }
    counts = {key: part["n"] for key, part in frame.group_by("metric", "is_weighted")}
    rows = []
    for y, metric in enumerate(metrics):
        for where, values in tables.items():
            if where == "here" or np.isfinite(values[y]).any():
                first = figures.places(values[y]) == 1
                cells = [f"{BEST if one else ''}{minus(value)}" for value, one in zip(values[y], first, strict=True)]
                tau = signed(_like_people(metrics, values, y), 2)
                n = counts_between(counts[metric]) if where == "here" else "–"
                rows.append([figures.metric_name(*metric), where, *cells, tau, n])
    return Section(
        "How commenters fare",
        f"{_winners(metrics, names, tables['here'])}. τ is Kendall's, of a metric's order of the commenters with that "
        "by human grades. The paper's text has IR-TC best under most metrics; in its table 7 it leads 4 of 9 rows, of "
        "which human grades are one, and shares the lead of a fifth (errata E12).",
        figures.systems(frame),
        ("metric", "where", *map(figures.system_name, names), "τ", "n"),
        rows,
        texts=2,
    )


def _like_people(metrics: Sequence[figures.Metric], values: Floats, row: int) -> float | None:
    people = (figures.HUMAN, False)
    if people not in metrics or metrics[row] == people:
        return None
    return figures.ranked_as(values[row], values[metrics.index(people)])


def _winners(metrics: Sequence[figures.Metric], names: Sequence[str], values: Floats) -> str:
    """Which systems metrics and people put first, and how often."""
    said = []
    for kind, is_people in (("metrics", False), ("people", True)):
        own = values[[y for y, (metric, _) in enumerate(metrics) if (metric == figures.HUMAN) == is_people]]
        wins = (np.array([figures.places(row) for row in own]).reshape(len(own), len(names)) == 1).sum(axis=0)
        order = sorted(range(len(names)), key=lambda x: -wins[x])
        firsts = [f"{figures.system_name(names[x])}{'' if is_people else f' ({wins[x]})'}" for x in order if wins[x]]
        if firsts:
            count = "people" if is_people else f"{len(own)} {kind}"
            said.append(f"{count} put first {', '.join(firsts)}")
    return "; ".join(said) or "Nothing ranks them"


def examples(frame: pl.DataFrame) -> Section:
    # a comment may stand under an article twice
    items: dict[tuple[Any, ...], dict[figures.Metric, Mapping[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        items.setdefault((row["title"], row["text"], row["grade"]), {})[row["metric"], row["is_weighted"]] = row
    metrics = [row for row in figures.rows_of(frame) if any(row in pair for pair in PAIRS)]
    rows = []
    for pair in PAIRS:
        scores = {key: [told.get(metric, {}).get("normalised") for metric in pair] for key, told in items.items()}
        apart = {key: abs(one - other) for key, (one, other) in scores.items() if one is not None and other is not None}
        names = " / ".join(figures.metric_name(*metric) for metric in pair)
        for key in sorted(apart, key=lambda key: (-apart[key], str(key)))[:EXAMPLES]:
            texts = ["–" if text is None else shorten(text, LONG) for text in key[:2]]
            shown = [_score(items[key].get(metric, {})) for metric in metrics]
            rows.append([names, *texts, number(key[2], 1), *shown, number(apart[key], 1)])
    return Section(
        "Where metrics disagree",
        "Comments on which two metrics are furthest apart: METEOR and BLEU-1 as in table 5 of the paper, METEOR with "
        "weights and without as in table 6. Scores have the mean and the variance of human grades and are cut to 1 to "
        "5, so that they can be held against each other; those in brackets are as they were.",
        "",
        ("apart", "title", "comment", "people", *(figures.metric_name(*metric) for metric in metrics), "by"),
        rows,
        texts=3,
    )


def _score(row: Mapping[str, Any]) -> str:
    return f"{number(row['normalised'], 1)}\n({number(row['value'], 2)})" if row else "–"
