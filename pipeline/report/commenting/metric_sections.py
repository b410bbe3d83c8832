"""Parts of the page of article commenting on metrics: how they go with people's grades, and how commenters fare."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.papers.commenting import SYSTEMS
from pipeline.report import sections
from pipeline.report.commenting import figures
from pipeline.report.figures import Floats
from pipeline.report.sections import Section, format_count, format_interval, format_number, index_rows

PAIRS: Sequence[tuple[figures.Metric, figures.Metric]] = (
    (("meteor", False), ("bleu_1", False)),
    (("meteor", False), ("meteor", True)),
)
"""Metrics whose disagreements tables 5 and 6 show."""
EXAMPLES = 4  # comments of each pair
LONG = 300  # characters of a comment that the page shows


def build_correlations(frame: pl.DataFrame) -> Section:
    rows_by_key = index_rows(frame, "metric", "is_weighted", "coefficient")
    rows, gains = [], []
    for kind, coefficient in figures.list_kinds(frame).items():
        differences = []
        for metric in figures.list_metrics(frame["metric"]):
            keys = [(metric, is_weighted, kind) for is_weighted in (False, True)]
            plain, weighted = (rows_by_key.get(key, {}) for key in keys)
            if plain or weighted:
                differences.append(_get_difference(plain, weighted))
                cells = [
                    text
                    for row in (plain, weighted)
                    for text in (format_interval(row), sections.format_p(row.get("p")))
                ]
                printed = [format_number(figures.PAPER_CORRELATIONS.get(key), 4) for key in keys]
                name, n = figures.name_metric(metric), format_count((plain or weighted)["n"])
                rows.append([name, coefficient, *cells, format_interval(differences[-1]), *printed, n])
        gains += _describe_gains(coefficient, differences)
    return Section(
        f"{' '.join(gains) or 'No metric has both plain and weighted scores.'} A difference is significant if its "
        "interval excludes zero. The paper calls the improvement consistent, but its own numbers for BLEU-1 fall: from "
        "0.2145 to 0.2076 and from 0.1790 to 0.1604 (tables 3 and 4, errata E12). The row of human grades compares "
        "two halves of the raters.",
        ("metric", "coefficient", "plain", "p", "weighted", "p", "difference", "paper, plain", "paper, weighted", "n"),
        rows,
        figures.draw_correlations(frame),
        text_count=2,
    )


def _describe_gains(coefficient: str, differences: Sequence[Mapping[str, Any]]) -> list[str]:
    """Describe what weights do to a coefficient; nothing where no metric has both forms."""
    compared = [row for row in differences if row.get("value") is not None]
    bounded = [row for row in compared if None not in {row.get("low"), row.get("high")}]
    gain_count, loss_count = sum(row["low"] > 0 for row in bounded), sum(row["high"] < 0 for row in bounded)
    raised_count = sum(row["value"] > 0 for row in compared)
    gain = (
        f"Weights raise {coefficient} of {raised_count} of {len(compared)} metrics ({gain_count} significantly) and "
        f"lower it significantly for {loss_count}."
    )
    return [gain] if compared else []


def _get_difference(plain: Mapping[str, Any], weighted: Mapping[str, Any]) -> dict[str, float | None]:
    """Return weighted minus plain with its interval, from either row; without one, of the values."""
    for row in (weighted, plain):
        if row.get("difference") is not None:
            return {name: row[f"difference{end}"] for name, end in (("value", ""), ("low", "_low"), ("high", "_high"))}
    return {"value": subtract(weighted.get("value"), plain.get("value"))}


def subtract(value: float | None, subtrahend: float | None) -> float | None:
    return None if value is None or subtrahend is None else value - subtrahend


def build_scatter(frame: pl.DataFrame) -> Section:
    frame = frame.drop_nulls(["value", "grade"])
    if frame.is_empty():
        raise BadInput("scatter: expected a row with value and grade, found none")
    rows = []
    for metric in figures.list_rows(frame):
        part = figures.select_metric(frame, metric)
        moments = [number for name in ("value", "grade") for number in (part[name].mean(), part[name].std())]
        rows.append([figures.name_metric(*metric), *map(format_number, moments), format_count(part.height)])
    panels = ", ".join(figures.name_metric(*panel) for panel in figures.PANELS)
    return Section(
        "Each point is a comment; the line is the least-squares fit. As in figure 1 of the paper, there is a panel "
        f"for each metric: {panels}. "
        f"Noise with a standard deviation of {figures.JITTER} grades makes overlapping points visible. The paper also "
        "uses 0.05 and does not state whether it is the standard deviation or the variance.",
        ("metric", "mean", "s.d.", "mean grade", "s.d.", "comments"),
        rows,
        figures.draw_scatter(frame),
    )


def build_sensitivity(frame: pl.DataFrame) -> Section:
    rows_by_key = index_rows(frame, "preset", "metric", "coefficient")
    rows = []
    for metric in figures.list_metrics(frame["metric"]):
        for preset in sorted(set(frame["preset"])):
            coefficient_rows = [rows_by_key.get((preset, metric, kind), {}) for kind in figures.COEFFICIENTS]
            if any(coefficient_rows):
                ratio = next((row["ratio"] for row in coefficient_rows if row.get("ratio") is not None), None)
                numbers = (*(row.get("value") for row in coefficient_rows), ratio)
                name = figures.name_metric(metric)
                rows.append([name, preset, *map(format_number, numbers), _format_ratios(metric)])
    return Section(
        "The paper requires weights in [0, 1] and does not state how it computes them from grades (section 4). The "
        "ratio is the weighted score divided by the plain score. No single formula gives the ratios of all metrics in "
        "the paper's table 7 (errata E11).",
        ("metric", "weights", *figures.COEFFICIENTS.values(), "weighted / plain", "in the paper"),
        rows,
        figures.draw_sensitivity(frame),
        text_count=2,
    )


def _format_ratios(metric: str) -> str:
    """Format the ratios of weighted to plain scores of the systems of table 7, from the least to the most."""
    plain, weighted = figures.build_values([(metric, False), (metric, True)], SYSTEMS, figures.PAPER_CELLS)
    ratios = sorted({f"{ratio:.2f}" for ratio in weighted / plain if np.isfinite(ratio)})
    return " to ".join(dict.fromkeys((ratios[0], ratios[-1]))) if ratios else "–"


def build_systems(frame: pl.DataFrame) -> Section:
    names, metrics = figures.list_systems(frame["system"]), figures.list_rows(frame)
    tables = {
        "here": figures.build_values(metrics, names, figures.index_cells(frame)),
        "in the paper": figures.build_values(metrics, names, figures.PAPER_CELLS),
    }
    people = (figures.HUMAN, False)
    rows = []
    for y, metric in enumerate(metrics):
        counts = figures.select_metric(frame, metric)["n"]
        for origin, values in tables.items():
            is_here = origin == "here"
            if is_here or np.isfinite(values[y]).any():
                ranks = zip(values[y], figures.rank_values(values[y]), strict=True)
                cells = [f"{sections.BEST if rank == 1 else ''}{format_number(value)}" for value, rank in ranks]
                is_compared = people in metrics and metric != people
                tau = figures.compute_tau(values[y], values[metrics.index(people)]) if is_compared else None
                n = sections.format_range(counts) if is_here else "–"
                rows.append([figures.name_metric(*metric), origin, *cells, sections.format_signed(tau, 2), n])
    return Section(
        f"{_describe_winners(metrics, names, tables['here'])} Kendall's τ compares a metric's order of the commenters "
        "with the order by human grades. The paper's text calls IR-TC best under most metrics. In its table 7, IR-TC "
        "leads 4 of 9 rows, one of them human grades, and ties for the lead in a fifth (errata E12).",
        ("metric", "where", *map(figures.name_system, names), "τ", "n"),
        rows,
        figures.draw_systems(frame),
        text_count=2,
    )


def _describe_winners(metrics: Sequence[figures.Metric], names: Sequence[str], values: Floats) -> str:
    findings = []
    for is_people in (False, True):
        ranks = [
            figures.rank_values(values[y]) for y, row in enumerate(metrics) if (row[0] == figures.HUMAN) == is_people
        ]
        wins = (np.array(ranks).reshape(-1, len(names)) == 1).sum(axis=0)
        order = sorted(np.flatnonzero(wins).tolist(), key=lambda x: -wins[x])
        firsts = [f"{figures.name_system(names[x])}{'' if is_people else f' ({wins[x]})'}" for x in order]
        if firsts:
            group = "people" if is_people else f"{len(ranks)} metrics"
            findings.append(f"Ranked first by {group}: {', '.join(firsts)}.")
    return " ".join(findings) or "No metric ranks them."


def build_examples(frame: pl.DataFrame) -> Section:
    items: dict[tuple[Any, ...], dict[figures.Metric, Mapping[str, Any]]] = {}
    for row in frame.iter_rows(named=True):  # a comment may stand under an article twice
        items.setdefault((row["title"], row["text"], row["grade"]), {})[row["metric"], row["is_weighted"]] = row
    metrics = [metric for metric in figures.list_rows(frame) if any(metric in pair for pair in PAIRS)]
    rows = []
    for pair in PAIRS:
        pair_name = " / ".join(figures.name_metric(*metric) for metric in pair)
        scores = {key: [item.get(metric, {}).get("normalised") for metric in pair] for key, item in items.items()}
        differences = {key: subtract(*values) for key, values in scores.items()}
        distances = {key: abs(value) for key, value in differences.items() if value is not None}
        for key in sorted(distances, key=lambda key: (-distances[key], str(key)))[:EXAMPLES]:
            texts = ["–" if text is None else sections.shorten(text, LONG) for text in key[:2]]
            score_texts = [_format_score(items[key].get(metric, {})) for metric in metrics]
            numbers = [format_number(key[2], 1), *score_texts, format_number(distances[key], 1)]
            rows.append([pair_name, *texts, *numbers])
    return Section(
        "The table shows the comments with the largest difference between two metrics. It compares METEOR with BLEU-1 "
        "(table 5 of the paper) and METEOR with W-METEOR (table 6). All scores are scaled to the mean and the variance "
        "of human grades and limited to 1 to 5. The original scores are in brackets.",
        ("pair", "title", "comment", "people", *(figures.name_metric(*metric) for metric in metrics), "difference"),
        rows,
        text_count=3,
    )


def _format_score(row: Mapping[str, Any]) -> str:
    return f"{format_number(row['normalised'], 1)}\n({format_number(row['value'], 2)})" if row else "–"
