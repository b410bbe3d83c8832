"""Figures of article commenting: what the corpus is made of, and whether metrics grade as people do."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pipeline.metrics.impscore.studies import kendall_tau
from pipeline.papers.commenting import GRADES, SYSTEMS, TABLE_4, TABLE_7
from pipeline.report import figures as plot
from pipeline.report.sections import format_number, format_signed, index_rows, order_names

HUMAN = "human"
METRICS = {"meteor": "METEOR", "rouge_l": "ROUGE-L", "cider": "CIDEr", "cider_d": "CIDEr-D"}
METRICS |= {f"bleu_{n}": f"BLEU-{n}" for n in range(1, 5)}
"""In the order of Table 4; others come after them, people last."""
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
_CURVES: tuple[Any, ...] = ("-", (0, (4, 2)))  # of a loss on what is learnt, and on the validation split
_POINT: dict[str, Any] = {"markersize": 5, "markeredgecolor": "white"}


def name_metric(metric: str, is_weighted: bool = False) -> str:
    """Return the paper's name of a metric; a metric that it does not have keeps its name."""
    name = "human grades" if metric == HUMAN else METRICS.get(metric, metric)
    return f"W-{name}" if is_weighted else name


def list_metrics(metrics: Iterable[str]) -> list[str]:
    """List the different metrics in the order of Table 4."""
    return sorted(order_names(metrics, METRICS), key=lambda name: name == HUMAN)


def list_rows(frame: pl.DataFrame) -> list[Metric]:
    """List the different (metric, is_weighted), each metric's plain form before its weighted one."""
    existing = set(frame.select("metric", "is_weighted").iter_rows())
    rows = [(name, is_weighted) for name in list_metrics(frame["metric"]) for is_weighted in (False, True)]
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
    centers, counts = np.unique(np.round(values, 6), return_counts=True)
    if len(centers) > 20:
        counts, edges = np.histogram(values, 20)
        centers = (edges[1:] + edges[:-1]) / 2
    width = 0.86 * (np.diff(centers).min() if len(centers) > 1 else 1)
    mean = float(values.mean())
    with plot.use_style():
        figure, axis = plot.create_figure((7.2, 2.6))
        shares = 100 * counts / counts.sum()
        bars = axis.bar(centers, shares, width, color=plot.PALE)
        if len(centers) <= 12:
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
    kinds = list_kinds(frame)
    forms = {False: "plain", True: "weighted by the grades of the references"}
    rows_by_key = index_rows(frame, "coefficient", "metric", "is_weighted")
    paper = {(kind, *metric): value for (*metric, kind), value in PAPER_CORRELATIONS.items()}
    options: dict[str, Any] = {"paper": "printed in the paper, on its own data", "x": "with 95 % interval"}
    options["printed"] = {key: value for key, value in paper.items() if key in rows_by_key}
    chance = dict.fromkeys(kinds, 0)
    return plot.draw_dots(rows_by_key, kinds, _name_metrics(frame), forms, chance=chance, **options)


def list_kinds(frame: pl.DataFrame) -> dict[str, str]:
    return {kind: name for kind, name in COEFFICIENTS.items() if kind in set(frame["coefficient"])}


def _name_metrics(frame: pl.DataFrame) -> dict[str, str]:
    return {metric: name_metric(metric) for metric in list_metrics(frame["metric"])}


def draw_sensitivity(frame: pl.DataFrame) -> str:
    """Draw how the correlation depends on the weights (AAC-18)."""
    kinds = list_kinds(frame)
    presets = {preset: preset for preset in sorted(set(frame["preset"]))}
    rows_by_key = index_rows(frame, "coefficient", "metric", "preset")
    return plot.draw_dots(rows_by_key, kinds, _name_metrics(frame), presets, chance=dict.fromkeys(kinds, 0))


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


def draw_systems(frame: pl.DataFrame) -> str:
    """Draw table 7: systems by metrics and people, cells by rank, the best framed; the paper's numbers beside, pale."""
    rows, names = list_rows(frame), order_names(frame["system"], SYSTEMS)
    values = build_values(rows, names, index_cells(frame))
    printed = build_values(rows, names, PAPER_CELLS)
    printed_columns = [i for i, column in enumerate(printed.T) if np.isfinite(column).any()]
    is_tight = len(names) + len(printed_columns) > 2 * len(SYSTEMS)
    people = values[rows.index((HUMAN, False))] if (HUMAN, False) in rows else np.full(len(names), np.nan)
    with plot.use_style():
        ratios = (len(names), *([0.9 * len(printed_columns)] if printed_columns else []))
        size = (7.2, 0.42 * len(rows) + 1.0)
        figure, (axes,) = plot.create_figure(size, 1, len(ratios), width_ratios=ratios, sharey=True, squeeze=False)
        labels = [plot.wrap_name(name_metric(*row), 18, 2) for row in rows]
        _draw_ranks(axes[0], labels, names, values)
        axes[0].set_title("measured", fontsize=9)
        if np.isfinite(people).any():
            axes[0].text(1.02, -0.62, "τ", transform=axes[0].get_yaxis_transform(), va="bottom", fontsize=8)
        for y, row in enumerate(rows):
            tau = compute_tau(values[y], people) if row[0] != HUMAN else None
            plot.write_note(axes[0], y, "" if tau is None else format_signed(tau, 2))
        if printed_columns:
            _draw_ranks(axes[1], labels, [names[i] for i in printed_columns], printed[:, printed_columns], plot.GREY)
            axes[1].set_title("printed in the paper", fontsize=9, color=plot.GREY)
            axes[1].tick_params(labelleft=False, labelcolor=plot.GREY)
        for axis in axes:
            axis.tick_params(axis="x", labelrotation=90 if is_tight else 0)
        note = "small: rank of the system in its row; τ: Kendall's τ of this order and the order by human grades"
        figure.supxlabel(note, fontsize=8)
        return plot.render_svg(figure)


def _draw_ranks(
    axis: Axes, rows: Sequence[str], columns: Sequence[str], values: plot.Floats, colour: str = plot.INK
) -> None:
    """Draw cells with their value and place in the row, the first place framed; coloured by place in ink alone."""
    order = np.array([rank_values(row) for row in values])
    coloured = -order if colour == plot.INK else np.full_like(order, np.nan)
    names = [plot.wrap_name(name_system(name), 10) for name in columns]
    plot.draw_grid(axis, rows, names, coloured, plot.LIGHT, Normalize(-max(len(columns), 2), -1))
    for (y, x), value in np.ndenumerate(values):
        if np.isnan(value):
            plot.write_text(axis, x, y, "–", color=colour, fontsize=9)
            continue
        plot.write_text(axis, x, y - 0.16, format_number(value), color=colour, fontsize=8.5)
        plot.write_text(axis, x, y + 0.24, f"{order[y, x]:.0f}", color=colour)
        if order[y, x] == 1:
            plot.frame_cell(axis, x, y)


def draw_history(frame: pl.DataFrame) -> str:
    """Draw the loss by epoch, a panel a commenter."""
    names = order_names(frame["system"], SYSTEMS)
    lines = {"train_loss": "training loss", "validation_loss": "validation loss"}
    looks = [(*plot.pick_look(i), style) for i, style in enumerate(_CURVES)]
    with plot.use_style():
        figure, axes = plot.create_panels(len(names), 3, (2.0, 0.8), sharey=False)
        for axis, name in zip(axes, names, strict=True):
            part = frame.filter(pl.col("system") == name).sort("epoch")
            for column, (colour, marker, style) in zip(lines, looks, strict=True):
                values = part[column].cast(pl.Float64).to_numpy()
                axis.plot(part["epoch"], values, color=colour, marker=marker, linewidth=1.4, linestyle=style, **_POINT)
            axis.set_title(plot.wrap_name(name_system(name), 26, 2), fontsize=9)
            axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            axis.grid(axis="y", color=plot.PALE, linewidth=0.6)
        figure.supxlabel("epoch", fontsize=9)
        figure.supylabel("loss", fontsize=9)
        keys = [Line2D([], [], color=c, marker=m, linewidth=1.4, linestyle=style) for c, m, style in looks]
        plot.draw_legend(figure, keys, [*lines.values()])
        return plot.render_svg(figure)
