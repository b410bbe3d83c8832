"""Figures of article commenting, as inline SVG: what the corpus is made of, and whether metrics grade as people do.

In: frames with a row at least; without rows a figure raises ValueError. Rows may come in any order, and what is null is
left out. Nothing is told by colour alone: there are markers and numbers. Metrics have their plain names (`meteor`,
`bleu_1`, `human`), and `is_weighted` tells METEOR from W-METEOR.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from pipeline.metrics.impscore.ranking import kendall_tau
from pipeline.papers.commenting import SYSTEMS, TABLE_4, TABLE_7
from pipeline.report.figures import (
    ACCENT,
    GREY,
    INK,
    LIGHT,
    PALE,
    WARM,
    Floats,
    beside,
    drawing,
    grid,
    look,
    named_rows,
    svg,
    wrapped,
)
from pipeline.report.sections import in_order

HUMAN = "human"
METRICS = {
    "meteor": "METEOR", "rouge_l": "ROUGE-L", "cider": "CIDEr", "cider_d": "CIDEr-D",
    **{f"bleu_{n}": f"BLEU-{n}" for n in range(1, 5)},
}  # fmt: skip
"""In the order of Table 4; others come after them, people last."""
COEFFICIENTS = {"spearman": "Spearman's\u00a0ρ", "pearson": "Pearson's\u00a0r"}
TOP = 15  # categories that are drawn, as in figure 2
PANELS = (("bleu_1", False), ("meteor", False), ("meteor", True))  # of figure 1
JITTER = 0.05  # standard deviation, in grades (AAC-28)
POINTS = 1000  # drawn in a panel

Metric = tuple[str, bool]  # plain name, and whether references are weighted
PAPER_CORRELATIONS = {
    (name.removeprefix("w_"), name.startswith("w_"), kind): value
    for name, row in TABLE_4.items()
    for kind, value in row._asdict().items()
}
"""Table 4 by (metric, is_weighted, coefficient)."""
PAPER_SYSTEMS = {
    (name.removeprefix("w_"), name.startswith("w_"), system): value
    for name, row in TABLE_7.items()
    for system, value in zip(SYSTEMS, row, strict=True)
}
"""Table 7 by (metric, is_weighted, system)."""

_STAR: dict[str, Any] = {"marker": "*", "color": "white", "markeredgecolor": INK, "markersize": 10, "linestyle": ""}
_TICK: dict[str, Any] = {"marker": "|", "color": INK, "markersize": 14, "markeredgewidth": 1.6, "linestyle": ""}
_MEAN: dict[str, Any] = {"marker": "v", "color": WARM, "markersize": 8, "markeredgecolor": "white", "linestyle": ""}
_CURVES: tuple[Any, ...] = ("-", (0, (4, 2)))  # of a loss on what is learnt, and on the validation split
_CELL = ("metric", "is_weighted", "system")


def metric_name(metric: str, is_weighted: bool = False) -> str:
    """What the paper calls a metric; a name that it has not stays as it is."""
    name = "human grades" if metric == HUMAN else METRICS.get(metric, metric)
    return f"W-{name}" if is_weighted else name


def metrics_of(metrics: Iterable[str]) -> list[str]:
    """The different metrics in the order of Table 4."""
    names = in_order(metrics, METRICS)
    return sorted(names, key=lambda name: name == HUMAN)


def rows_of(frame: pl.DataFrame) -> list[Metric]:
    """The different (metric, is_weighted), each metric's plain form before its weighted one."""
    there = set(frame.select("metric", "is_weighted").iter_rows())
    return [(name, own) for name in metrics_of(frame["metric"]) for own in (False, True) if (name, own) in there]


def systems_of(systems: Iterable[str]) -> list[str]:
    """The different systems, the paper's first, in the order of Table 7."""
    known = [*map(folded, SYSTEMS)]
    return sorted(
        set(systems),
        key=lambda name: (known.index(folded(name)) if folded(name) in known else len(known), name),
    )


def folded(system: str) -> str:
    """A system's name without case and kind of dash, so that `ir_tc` is the paper's IR-TC."""
    return system.lower().replace("_", "-")


def system_name(system: str) -> str:
    """What the paper calls a system; a name that it has not stays as it is."""
    return {folded(name): name for name in SYSTEMS}.get(folded(system), system)


def cells(frame: pl.DataFrame) -> dict[tuple[str, bool, str], float | None]:
    """Values by (metric, is_weighted, system)."""
    return {(row[0], row[1], row[2]): row[3] for row in frame.select(*_CELL, "value").iter_rows()}


def values_of(
    rows: Sequence[Metric], systems: Sequence[str], known: Mapping[tuple[str, bool, str], float | None]
) -> Floats:
    """Values as [metric, system], NaN where there is none; systems are looked up by their folded names."""
    found = {(metric, own, folded(system)): value for (metric, own, system), value in known.items()}
    cells = [[found.get((*row, folded(system))) for system in systems] for row in rows]
    return np.array(cells, float).reshape(len(rows), len(systems))


def ranked_as(values: Floats, people: Floats) -> float | None:
    """Kendall's tau of two rankings of systems over those that both rank; None of fewer than two."""
    both = np.isfinite(values) & np.isfinite(people)
    return kendall_tau(people[both].tolist(), values[both].tolist()) if both.sum() > 1 else None


def places(values: Floats) -> Floats:
    """Places of values from the highest, 1, tied ones alike; NaN stays."""
    return np.array([np.nan if np.isnan(value) else 1 + np.sum(values > value) for value in values], float)


def categories(frame: pl.DataFrame) -> str:
    """Figure 2: the most frequent categories. Columns: category (null: not known), n, share (in [0, 1])."""
    frame = _some(frame).sort(-pl.col("n").cast(pl.Int64), "category", nulls_last=True)
    top = frame.head(TOP)
    with drawing():
        figure, axis = named_rows(["not known" if name is None else _cut(name) for name in top["category"]], 0.3)
        axis.barh(range(top.height), 100 * top["share"].cast(pl.Float64).to_numpy(), color=ACCENT, height=0.62)
        for y, row in enumerate(top.iter_rows(named=True)):
            share = "" if row["share"] is None else f" ({100 * row['share']:.1f} %)"
            beside(axis, y, f"{row['n']:,}{share}")
        axis.set_xlim(left=0)
        few = f"the {top.height} most frequent of " if frame.height > TOP else ""
        axis.set_xlabel(f"% of the articles; {few}{frame.height} categories, n = {frame['n'].sum():,} articles")
        return svg(figure)


def _cut(name: str) -> str:
    """A name that fits two lines; Chinese letters are twice as wide."""
    room = 20 if re.search(r"[\u2e80-\uffef]", name) else 40
    return name if len(name) <= room else name[: room - 1] + "…"


def grades(frame: pl.DataFrame, paper: float | None = None) -> str:
    """How grades of items are distributed. Columns: item_id, grade; the mean is taken over the grades of an item."""
    values = _some(frame).group_by("item_id").agg(pl.col("grade").mean())["grade"].drop_nulls().to_numpy()
    if not len(values):
        raise ValueError("expected at least one grade")
    at, counts = np.unique(np.round(values, 6), return_counts=True)
    if len(at) > 20:
        counts, edges = np.histogram(values, 20)
        at = (edges[1:] + edges[:-1]) / 2
    width = 0.86 * (np.diff(at).min() if len(at) > 1 else 1)
    mean = float(values.mean())
    with drawing():
        figure = Figure(figsize=(7.2, 2.6), layout="constrained")
        axis = figure.subplots()
        shares = 100 * counts / counts.sum()
        bars = axis.bar(at, shares, width, color=PALE)
        if len(at) <= 12:
            axis.bar_label(bars, [f"{share:.1f} %" for share in shares], padding=2, fontsize=8)
        axis.set_ylim(top=1.3 * shares.max())
        keys, names = [Line2D([], [], **_MEAN)], [f"mean {mean:.2f}"]
        axis.plot(mean, 1.24 * shares.max(), **_MEAN)
        if paper is not None:
            axis.plot(paper, 1.24 * shares.max(), **_STAR)
            keys, names = [*keys, Line2D([], [], **_STAR)], [*names, f"mean in the paper {paper:g}"]
        axis.set(xlabel=f"grade of a comment, mean of its raters; n = {len(values):,} comments", ylabel="% of comments")
        _legend(figure, keys, names)
        return svg(figure)


def correlations(frame: pl.DataFrame) -> str:
    """Tables 3 and 4: how metrics go with human grades, without and with weights, the paper's numbers as ticks.

    Args:
        frame: metric, is_weighted, coefficient (spearman or pearson), value, low, high, n.
    """
    names = metrics_of(_some(frame)["metric"])
    kinds = [kind for kind in COEFFICIENTS if kind in set(frame["coefficient"])]
    rows = {(row["metric"], row["is_weighted"], row["coefficient"]): row for row in frame.iter_rows(named=True)}
    with drawing():
        figure, axes = _side_by_side(names, kinds, 0.52)
        for axis, kind in zip(axes, kinds, strict=True):
            for y, name in enumerate(names):
                own = [weighted for weighted in (False, True) if (name, weighted, kind) in rows]
                for i, weighted in enumerate(own):
                    at = y + 0.84 * ((i + 0.5) / len(own) - 0.5)
                    axis.plot(PAPER_CORRELATIONS.get((name, weighted, kind), np.nan), at, **_TICK)
                    _measured(axis, at, rows[name, weighted, kind], *look(int(weighted)))
            axis.set_xlabel("with 95 % interval")
        keys = [Line2D([], [], color=look(i)[0], marker=look(i)[1], linewidth=1.6) for i in range(2)]
        labels = ["plain", "weighted by the grades of the references"]
        if any(key in PAPER_CORRELATIONS for key in rows):
            keys, labels = [*keys, Line2D([], [], **_TICK)], [*labels, "printed in the paper, of its own data"]
        _legend(figure, keys, labels)
        return svg(figure)


def sensitivity(frame: pl.DataFrame) -> str:
    """How far the correlation depends on how grades become weights (AAC-18).

    Args:
        frame: preset, metric, coefficient (spearman or pearson), value.
    """
    names, presets = metrics_of(_some(frame)["metric"]), sorted(set(frame["preset"]))
    kinds = [kind for kind in COEFFICIENTS if kind in set(frame["coefficient"])]
    known = {
        (name, preset, kind): np.nan if value is None else value
        for name, preset, kind, value in frame.select("metric", "preset", "coefficient", "value").iter_rows()
    }
    with drawing():
        figure, axes = _side_by_side(names, kinds, max(0.1 * len(presets) + 0.1, 0.3))
        for axis, kind in zip(axes, kinds, strict=True):
            for i, preset in enumerate(presets):
                at = [y + 0.7 * ((i + 0.5) / len(presets) - 0.5) for y in range(len(names))]
                colour, marker = look(i)
                values = [known.get((name, preset, kind), np.nan) for name in names]
                axis.plot(values, at, marker, color=colour, markersize=6.5, markeredgecolor="white")
        keys = [Line2D([], [], color=look(i)[0], marker=look(i)[1], linestyle="") for i in range(len(presets))]
        _legend(figure, keys, [wrapped(preset, 24, 2) for preset in presets], min(len(presets), 4))
        return svg(figure)


def scatter(frame: pl.DataFrame, panels: Sequence[Metric] = PANELS, *, jitter: float = JITTER, seed: int = 0) -> str:
    """Figure 1: a metric against human grades, a panel each, and the least-squares line.

    Only the grades that are drawn have noise: line and r are of the grades as they are, and of all rows, of which at
    most `POINTS` drawn at random are shown.

    Args:
        frame: metric, is_weighted, value, grade.
        panels: (metric, is_weighted) to draw; the first three that are there where none of them is.
        jitter: standard deviation of the noise, in grades (AAC-28).
        seed: of noise and choice.
    """
    there = rows_of(_some(frame))
    panels = [panel for panel in panels if panel in there] or there[:3]
    with drawing():
        figure = Figure(figsize=(min(2.4 * len(panels), 7.2), 2.7), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False).ravel()
        longest = 0
        for axis, (metric, weighted) in zip(axes, panels, strict=True):
            part = frame.filter((pl.col("metric") == metric) & (pl.col("is_weighted") == weighted))
            part = part.select(pl.col("grade", "value").cast(pl.Float64)).drop_nulls().sort("grade", "value")
            longest = max(longest, part.height)
            told = _fit(axis, part["grade"].to_numpy(), part["value"].to_numpy(), jitter, seed)
            axis.set_title(f"{wrapped(metric_name(metric, weighted), 24, 2)}\n{told}", fontsize=9)
            axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            axis.yaxis.set_major_locator(MaxNLocator(5))
        note = f"human grade, with noise of {jitter:g} grades (s.d.)"
        figure.supxlabel(f"{note}; {POINTS:,} points drawn at random" if longest > POINTS else note, fontsize=9)
        figure.supylabel("metric", fontsize=9)
        return svg(figure)


def _fit(axis: Axes, grades: Floats, values: Floats, jitter: float, seed: int) -> str:
    """Points and their line; n and Pearson's r in words."""
    random = np.random.default_rng(seed)
    kept = random.permutation(len(grades))[:POINTS]
    noisy = grades[kept] + random.normal(0, jitter, len(kept))
    axis.plot(noisy, values[kept], "o", color=ACCENT, alpha=0.3, markersize=3, markeredgewidth=0)
    if len(grades) < 2 or not np.ptp(grades):
        return f"n = {len(grades):,}"
    slope, start = np.polyfit(grades, values, 1)
    ends = np.array([grades.min(), grades.max()])
    axis.plot(ends, slope * ends + start, color=WARM, linewidth=1.8)
    r = f", r = {np.corrcoef(grades, values)[0, 1]:.2f}".replace("-", "−") if np.ptp(values) else ""
    return f"n = {len(grades):,}{r}"


def systems(frame: pl.DataFrame) -> str:
    """Table 7: systems by metrics and people, cells by rank, the best framed; the paper's numbers beside, pale.

    Args:
        frame: metric (`human` for grades), is_weighted, system, value.
    """
    rows, names = rows_of(_some(frame)), systems_of(frame["system"])
    values = values_of(rows, names, cells(frame))
    printed = values_of(rows, names, PAPER_SYSTEMS)
    seen = [i for i, column in enumerate(printed.T) if np.isfinite(column).any()]
    is_tight = len(names) + len(seen) > 2 * len(SYSTEMS)
    people = values[rows.index((HUMAN, False))] if (HUMAN, False) in rows else np.full(len(names), np.nan)
    with drawing():
        figure = Figure(figsize=(7.2, 0.42 * len(rows) + 1.0), layout="constrained")
        ratios = (len(names), *([0.9 * len(seen)] if seen else []))
        axes = figure.subplots(1, len(ratios), width_ratios=ratios, sharey=True, squeeze=False).ravel()
        labels = [wrapped(metric_name(*row), 18, 2) for row in rows]
        _ranked(axes[0], labels, names, values)
        axes[0].set_title("measured", fontsize=9)
        if np.isfinite(people).any():
            axes[0].text(1.02, -0.62, "τ", transform=axes[0].get_yaxis_transform(), va="bottom", fontsize=8)
        for y, row in enumerate(rows):
            tau = ranked_as(values[y], people) if row[0] != HUMAN else None
            beside(axes[0], y, "" if tau is None else f"{tau:+.2f}".replace("-", "−"))
        if seen:
            _ranked(axes[1], labels, [names[i] for i in seen], printed[:, seen], GREY)
            axes[1].set_title("printed in the paper", fontsize=9, color=GREY)
            axes[1].tick_params(labelleft=False, labelcolor=GREY)
        for axis in axes:
            axis.tick_params(axis="x", labelrotation=90 if is_tight else 0)
        note = "small: place of the system in its row; τ: Kendall's, of that order with the order by human grades"
        figure.supxlabel(note, fontsize=8)
        return svg(figure)


def _ranked(axis: Axes, rows: Sequence[str], columns: Sequence[str], values: Floats, ink: str = INK) -> None:
    """Cells with their value and place in the row, the first place framed; coloured by place in ink alone."""
    order = np.array([places(row) for row in values])
    coloured = -order if ink == INK else np.full_like(order, np.nan)
    grid(
        axis,
        rows,
        [wrapped(system_name(name), 10) for name in columns],
        coloured,
        LIGHT,
        Normalize(-max(len(columns), 2), -1),
    )
    for (y, x), value in np.ndenumerate(values):
        if np.isnan(value):
            axis.text(x, y, "–", ha="center", va="center", color=ink)
            continue
        axis.text(x, y - 0.16, f"{value:.3f}".replace("-", "−"), ha="center", va="center", color=ink, fontsize=8.5)
        axis.text(x, y + 0.24, f"{order[y, x]:.0f}", ha="center", va="center", color=ink, fontsize=8)
        if order[y, x] == 1:
            frame = Rectangle((x - 0.46, y - 0.44), 0.92, 0.88, fill=False, edgecolor=WARM, linewidth=1.6)
            axis.add_patch(frame)


def history(frame: pl.DataFrame) -> str:
    """Loss by epoch as commenters learn, a panel each. Columns: system, epoch, train_loss, validation_loss."""
    names = systems_of(_some(frame)["system"])
    across = min(len(names), 3)
    down = -(-len(names) // across)
    lines = {"train_loss": "on what it learns from", "validation_loss": "on the validation split"}
    with drawing():
        figure = Figure(figsize=(7.2, 2.0 * down + 0.8), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for axis, name in zip(axes, names, strict=False):
            part = frame.filter(pl.col("system") == name).sort("epoch")
            for i, column in enumerate(lines):
                colour, marker = look(i)
                values = part[column].cast(pl.Float64).to_numpy()
                axis.plot(
                    part["epoch"], values, color=colour, marker=marker, markersize=5, markeredgecolor="white",
                    linewidth=1.4, linestyle=_CURVES[i],
                )  # fmt: skip
            axis.set_title(wrapped(system_name(name), 26, 2), fontsize=9)
            axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            axis.grid(axis="y", color=PALE, linewidth=0.6)
        for axis in axes[len(names) :]:
            axis.set_visible(False)
        figure.supxlabel("epoch", fontsize=9)
        figure.supylabel("loss", fontsize=9)
        keys = [
            Line2D([], [], color=look(i)[0], marker=look(i)[1], linewidth=1.4, linestyle=style)
            for i, style in enumerate(_CURVES)
        ]
        _legend(figure, keys, [*lines.values()])
        return svg(figure)


def _some(frame: pl.DataFrame) -> pl.DataFrame:
    if frame.is_empty():
        raise ValueError("expected at least one row")
    return frame


def _side_by_side(metrics: Sequence[str], kinds: Sequence[str], row: float) -> tuple[Figure, list[Axes]]:
    """A panel a coefficient with a row for each metric, so many inches each, and a line at zero."""
    layout = ConstrainedLayoutEngine(wspace=0.06)  # or the last tick of one panel touches the first of the next
    figure = Figure(figsize=(7.2, row * len(metrics) + 1.1), layout=layout)
    axes: list[Axes] = figure.subplots(1, len(kinds), sharey=True, squeeze=False).ravel().tolist()
    for axis, kind in zip(axes, kinds, strict=True):
        axis.set_yticks(range(len(metrics)), [wrapped(metric_name(name), 20, 2) for name in metrics], fontsize=8)
        axis.set_ylim(len(metrics) - 0.5, -0.5)
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
        axis.grid(axis="x", color=PALE, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.axvline(0, color=GREY, linewidth=1.1, linestyle=(0, (4, 3)))
        for y in range(1, len(metrics)):
            axis.axhline(y - 0.5, color=PALE, linewidth=0.6)
        axis.set_title(COEFFICIENTS[kind], fontsize=9)
        axis.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    return figure, axes


def _measured(axis: Axes, at: float, row: Mapping[str, Any], colour: str, marker: str) -> None:
    """A number and its interval."""
    value, low, high = (np.nan if row[name] is None else row[name] for name in ("value", "low", "high"))
    axis.hlines(at, low, high, color=colour, linewidth=1.6)
    axis.plot(value, at, marker, color=colour, markersize=6.5, markeredgecolor="white")


def _legend(figure: Figure, keys: Sequence[Line2D], names: Sequence[str], columns: int = 3) -> None:
    figure.legend(keys, names, loc="outside upper center", ncols=columns, frameon=False, fontsize=8)
