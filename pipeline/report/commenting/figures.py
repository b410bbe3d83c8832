"""Figures of article commenting: what the corpus is made of, and whether metrics grade as people do."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pipeline.metrics.impscore.studies import kendall_tau
from pipeline.papers.commenting import GRADES, SYSTEMS, TABLE_4, TABLE_7
from pipeline.report import figures as plot
from pipeline.report.sections import format_number, index_rows, order_names

HUMAN = "human"
METRICS = {"meteor": "METEOR", "rouge_l": "ROUGE-L", "cider": "CIDEr", "cider_d": "CIDEr-D"}
METRICS |= {f"bleu_{n}": f"BLEU-{n}" for n in range(1, 5)} | {HUMAN: "human grades"}
"""In the order of Table 4."""
COEFFICIENTS = {"spearman": "Spearman's\u00a0ρ", "pearson": "Pearson's\u00a0r"}
TOP = 15  # categories that are drawn, as in figure 2
PANELS = (("bleu_1", False), ("meteor", False), ("meteor", True))  # of figure 1
JITTER = 0.05  # standard deviation, in grades (AAC-28)
POINTS = 1000  # drawn in a panel
Metric = tuple[str, bool]  # plain name, and whether references are weighted
Cells = Mapping[tuple[str, bool, str], float | None]  # by metric and system


def _split_name(name: str) -> Metric:
    return name.removeprefix("w_"), name.startswith("w_")


PAPER_CORRELATIONS = {  # Table 4 by (metric, is_weighted, coefficient)
    (*_split_name(name), kind): value for name, row in TABLE_4.items() for kind, value in row._asdict().items()
}
PAPER_CELLS: Cells = {  # Table 7
    (*_split_name(name), system): value
    for name, row in TABLE_7.items()
    for system, value in zip(SYSTEMS, row, strict=True)
}

_MEAN: dict[str, Any] = {**plot.STAR, "marker": "v", "color": plot.WARM, "markeredgecolor": "white", "markersize": 8}


def name_metric(metric: str, is_weighted: bool = False) -> str:
    """Return the paper's name of a metric; a metric that it does not have keeps its name."""
    name = METRICS.get(metric, metric)
    return f"W-{name}" if is_weighted else name


def list_metrics(frame: pl.DataFrame) -> list[str]:
    """List the different metrics in the order of Table 4, people last."""
    return sorted(order_names(frame["metric"], METRICS), key=lambda name: name == HUMAN)


def list_rows(frame: pl.DataFrame) -> list[Metric]:
    """List the different (metric, is_weighted), each metric's plain form before its weighted one."""
    existing = set(frame.select("metric", "is_weighted").iter_rows())
    rows = [(name, is_weighted) for name in list_metrics(frame) for is_weighted in (False, True)]
    return [row for row in rows if row in existing]


def name_system(system: str) -> str:
    """Return the paper's name of a system; a system that it does not have keeps its name."""
    return SYSTEMS.get(system, system)


def index_cells(frame: pl.DataFrame) -> Cells:
    return {row[:3]: row[3] for row in frame.select("metric", "is_weighted", "system", "value").iter_rows()}


def build_values(rows: Sequence[Metric], systems: Sequence[str], cells: Cells) -> plot.Floats:
    """Build the table of values, [metric, system], NaN where there is none."""
    grid = [[cells.get((*row, system)) for system in systems] for row in rows]
    return np.array(grid, float).reshape(len(rows), len(systems))


def compute_tau(values: plot.Floats, people: plot.Floats) -> float | None:
    """Compute Kendall's tau of two rankings of systems over those that both rank; None of fewer than two."""
    is_ranked = np.isfinite(values) & np.isfinite(people)
    return kendall_tau(people[is_ranked].tolist(), values[is_ranked].tolist()) if is_ranked.sum() > 1 else None


def rank_values(values: plot.Floats) -> plot.Floats:
    """Rank values from the highest, 1, tied ones alike; NaN stays."""
    return np.array([np.nan if np.isnan(value) else 1 + np.sum(values > value) for value in values], float)


def draw_categories(frame: pl.DataFrame) -> str:
    """Draw figure 2, the most frequent categories."""
    frame = frame.sort(-pl.col("n").cast(pl.Int64), "category", nulls_last=True)
    top = frame.head(TOP)
    names = ["not known" if name is None else plot.wrap_name(name, lines=2) for name in top["category"]]
    with plot.use_style():
        figure, axis = plot.create_row_figure(names, 0.3)
        axis.barh(range(top.height), 100 * top["share"].cast(pl.Float64).to_numpy(), color=plot.ACCENT, height=0.62)
        for y, row in enumerate(top.iter_rows(named=True)):
            share = "" if row["share"] is None else f" ({100 * row['share']:.1f} %)"
            plot.write_note(axis, y, f"{row['n']:,}{share}")
        axis.set_xlim(left=0)
        few = f"the {top.height} most frequent of " if frame.height > TOP else ""
        axis.set_xlabel(f"% of the articles; {few}{frame.height} categories, n = {frame['n'].sum():,} articles")
        return plot.render_svg(figure)


def draw_grades(frame: pl.DataFrame) -> str:
    """Draw the distribution of the mean grades of items."""
    values = frame.group_by("item_id").agg(pl.col("grade").mean())["grade"].drop_nulls().to_numpy()
    centers, mean = np.arange(1, 5.5, 0.5), float(values.mean())
    shares = 100 * np.histogram(values, [*(centers - 0.25), np.inf])[0] / len(values)
    with plot.use_style():
        figure, axis = plot.create_figure((7.2, 2.6))
        bars = axis.bar(centers, shares, 0.43, color=plot.PALE)
        axis.bar_label(bars, [f"{share:.1f} %" for share in shares], padding=2, fontsize=8)
        axis.set_ylim(top=1.3 * shares.max())
        marks = {f"mean {mean:.2f}": (mean, _MEAN), f"mean in the paper {GRADES.mean:g}": (GRADES.mean, plot.STAR)}
        for place, style in marks.values():
            axis.plot(place, 1.24 * shares.max(), **style)
        axis.set(xlabel=f"grade of a comment, mean of its raters; n = {len(values):,} comments", ylabel="% of comments")
        plot.draw_legend(figure, [Line2D([], [], **style) for _, style in marks.values()], [*marks])
        return plot.render_svg(figure)


def draw_correlations(frame: pl.DataFrame) -> str:
    """Draw tables 3 and 4: metrics with human grades, without and with weights, the paper's numbers as ticks."""
    forms = {False: "plain", True: "weighted by the grades of the references"}
    rows_by_key = index_rows(frame, "coefficient", "metric", "is_weighted")
    paper = {(kind, *metric): value for (*metric, kind), value in PAPER_CORRELATIONS.items()}
    options: dict[str, Any] = {"paper": "printed in the paper, on its own data", "x": "with 95 % interval"}
    options["printed"] = {key: value for key, value in paper.items() if key in rows_by_key}
    chance = dict.fromkeys(COEFFICIENTS, 0)
    names = {metric: name_metric(metric) for metric in list_metrics(frame)}
    return plot.draw_dots(rows_by_key, COEFFICIENTS, names, forms, chance=chance, **options)


def draw_scatter(frame: pl.DataFrame) -> str:
    """Draw figure 1: metrics against human grades, with the least-squares line; `PANELS`, or else three others.

    Only the grades that are drawn have noise: line and r are of the grades as they are, and of all rows, of which at
    most `POINTS` drawn at random are shown.
    """
    metrics = list_rows(frame)
    panels = [panel for panel in PANELS if panel in metrics] or metrics[:3]
    with plot.use_style():
        figure, (axes,) = plot.create_figure((min(2.4 * len(panels), 7.2), 2.7), 1, len(panels), squeeze=False)
        longest = 0
        for axis, panel in zip(axes, panels, strict=True):
            points = frame.filter(metric=panel[0], is_weighted=panel[1])
            points = points.select(pl.col("grade", "value").cast(pl.Float64)).drop_nulls().sort("grade", "value")
            longest = max(longest, points.height)
            fit_text = _draw_fit(axis, points["grade"].to_numpy(), points["value"].to_numpy())
            axis.set_title(f"{plot.wrap_name(name_metric(*panel), 24, 2)}\n{fit_text}", fontsize=9)
            axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            axis.yaxis.set_major_locator(MaxNLocator(5))
        note = f"human grade, with noise of {JITTER:g} grades (s.d.)"
        figure.supxlabel(f"{note}; {POINTS:,} points drawn at random" if longest > POINTS else note, fontsize=9)
        figure.supylabel("metric", fontsize=9)
        return plot.render_svg(figure)


def _draw_fit(axis: Axes, grades: plot.Floats, values: plot.Floats) -> str:
    """Draw points and their line; return n and Pearson's r as text."""
    random = np.random.default_rng(0)
    sample = random.permutation(len(grades))[:POINTS]
    noisy = grades[sample] + random.normal(0, JITTER, len(sample))
    axis.plot(noisy, values[sample], "o", color=plot.ACCENT, alpha=0.3, markersize=3, markeredgewidth=0)
    if len(grades) < 2 or not np.ptp(grades):
        return f"n = {len(grades):,}"
    slope, start = np.polyfit(grades, values, 1)
    ends = np.array([grades.min(), grades.max()])
    axis.plot(ends, slope * ends + start, color=plot.WARM, linewidth=1.8)
    r = f", r = {format_number(np.corrcoef(grades, values)[0, 1], 2)}" if np.ptp(values) else ""
    return f"n = {len(grades):,}{r}"
