"""Figures of NDD, as inline SVG: compressors, measures of distance, and what they know of trees and predicates.

In: frames with a row at least; without rows a figure raises ValueError. Rows may come in any order, and what is null is
left out. Nothing is told by colour alone: there are markers and numbers. Shares are in [0, 1] and drawn in percent, as
the paper prints them; correlations stay as they are.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pipeline.metrics.ndd.pruning import DEPTHS, SUBTREES
from pipeline.papers.ndd import BASELINES, MEASURES, METRICS, PAPER_COMPRESSORS, SCORERS, SYSTEMS, TABLE_6, TABLE_7
from pipeline.report.figures import GREY, HUES, INK, LIGHT, PALE, Floats, drawing, grid, look, named_rows, svg, wrapped
from pipeline.report.sections import in_order

Row = Mapping[str, Any]
Known = Mapping[tuple[str, str, str], Row]
"""By panel, row and mark: value, low, high."""
_TICK: dict[str, Any] = {"marker": "|", "markersize": 13, "markeredgewidth": 1.8, "linestyle": ""}
_COPY: dict[str, Any] = {"color": INK, "linewidth": 1.1, "linestyle": (0, (4, 3))}
_HALO: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.4}
_PAPER = "printed in the paper, of other models and data"


def named(name: str) -> str:
    """What the paper calls a compressor; a name that it has not stays as it is."""
    return SYSTEMS.get(name, name)


def system_look(name: str) -> tuple[str, str]:
    """Colour by what scores, marker by whether there are trees; baselines are grey."""
    scorers = [*SCORERS]
    if name in BASELINES or name == "gold":
        return (INK if name in ("unedited", "gold") else GREY), dict(zip(BASELINES, "*<>X", strict=True)).get(name, "P")
    base = name.removesuffix("_sc")
    if base in scorers:
        return HUES[scorers.index(base)], "D" if base != name else "o"
    return look(sum(map(ord, name)))[0], "v"


def compressions(frame: pl.DataFrame, lang: str) -> str:
    """F1 against CR, a point a system; copying the sentence is marked, as is the CR of the gold.

    Args:
        frame: by, metric (f1_macro, ratio, and ratio_delta for the gold's), value, low, high; of one source.
        lang: whose table of the paper stands beside it, hollow.
    """
    known = {(row["by"], row["metric"]): row for row in _some(frame).iter_rows(named=True)}
    names = [name for name in in_order(frame["by"], SYSTEMS)
             if all(_value(known.get((name, metric))) is not None for metric in ("f1_macro", "ratio"))]  # fmt: skip
    if not names:
        return ""
    printed = PAPER_COMPRESSORS.get(lang, {})
    with drawing():
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        axis = figure.subplots()
        keys: list[Line2D] = []
        for name in names:
            (x, left, right), (y, low, high) = (_bounds(known[name, metric]) for metric in ("ratio", "f1_macro"))
            colour, marker = system_look(name)
            axis.hlines(100 * y, left, right, color=colour, linewidth=1.2, alpha=0.6)
            axis.vlines(x, 100 * low, 100 * high, color=colour, linewidth=1.2, alpha=0.6)
            own: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 11 if marker == "*" else 7}
            axis.plot(x, 100 * y, linestyle="", markeredgecolor="white", zorder=3, **own)
            keys.append(Line2D([], [], linestyle="", markeredgecolor="white", **own, label=wrapped(named(name), 20, 2)))
            if name == "unedited":
                axis.axhline(100 * y, **_COPY, zorder=0)
                keys.append(Line2D([], [], **_COPY, label="F1 of copying"))
            if name in printed:
                at = [np.nan if (value := printed[name][metric]) is None else value for metric in ("ratio", "f1_macro")]
                axis.plot(*at, marker=marker, markersize=6, color=colour, markerfacecolor="none")
        gold = [_value(known[name, "ratio"]) - delta for name in names
                if (delta := _value(known.get((name, "ratio_delta")))) is not None]  # fmt: skip
        if gold:
            axis.axvline(float(np.median(gold)), color=GREY, linewidth=1.1, linestyle=":", zorder=0)
            keys.append(Line2D([], [], color=GREY, linewidth=1.1, linestyle=":", label="CR of the gold"))
        if set(names) & set(printed):
            keys.append(
                Line2D([], [], linestyle="", marker="o", color=GREY, markerfacecolor="none", label="hollow: paper")
            )
        axis.set(xlabel="CR: share of the words that stay", ylabel="F1 in %")
        axis.set_xlim(right=1.04)
        axis.grid(color=PALE, linewidth=0.6)
        axis.set_axisbelow(True)
        figure.legend(handles=keys, loc="outside right center", frameon=False, fontsize=8)
        return svg(figure)


class Line(NamedTuple):
    """A line of a panel."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    look: tuple[str, str]
    bounds: tuple[Sequence[float], Sequence[float]] | None = None


def _lines(panels: Mapping[str, Sequence[Line]], x: str, y: str, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """Panels of lines, two across, with one legend."""
    across = min(len(panels), 2)
    down = -(-len(panels) // across)
    figure = Figure(figsize=(7.2, height * down + 0.5), layout=ConstrainedLayoutEngine(wspace=0.05))
    axes: list[Axes] = figure.subplots(down, across, squeeze=False, sharey=True).ravel().tolist()
    keys = {}
    for axis, (title, lines) in zip(axes, panels.items(), strict=False):
        for line in lines:
            colour, marker = line.look
            style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5.5, "markeredgecolor": "white",
                                     "linewidth": 2.2 if line.name == "gold" else 1.4}  # fmt: skip
            axis.plot(line.x, line.y, **style)
            if line.bounds:
                axis.fill_between(line.x, *line.bounds, color=colour, alpha=0.12, linewidth=0)
            keys[line.name] = Line2D([], [], **style)
        if len(panels) > 1:
            axis.set_title(wrapped(title, 40, 2), fontsize=9)
        axis.grid(color=PALE, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    figure.supxlabel(x, fontsize=9)
    figure.supylabel(y, fontsize=9)
    names = [wrapped(name, 24, 2) for name in keys]
    figure.legend([*keys.values()], names, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    return figure, axes


def positions(frame: pl.DataFrame) -> str:
    """Figure 6: how many of the words of each tenth of a sentence stay.

    Args:
        frame: source, system, bin (0 to 9), value.
    """
    panels = {}
    for source in sorted(set(_some(frame)["source"])):
        mine = frame.filter(pl.col("source") == source).drop_nulls("value").sort("bin")
        panels[source] = [
            Line(named(name), (10 * part["bin"] + 5).to_list(), (100 * part["value"]).to_list(), system_look(name))
            for name in in_order(mine["system"], ["gold", *SYSTEMS])
            for part in [mine.filter(pl.col("system") == name)]
        ]
    with drawing():
        figure, axes = _lines(panels, "place in the sentence, in % of its words", "% of the words there that stay")
        for axis in axes:
            axis.set(xlim=(0, 100), ylim=(0, None))
        return svg(figure)


def ratios(frame: pl.DataFrame) -> str:
    """Table 6: F1 against CR as threshold and longest span change.

    Args:
        frame: threshold, longest, source, metric, value.
    """
    wide = _some(frame).pivot("metric", index=["source", "longest", "threshold"], values="value")
    if not {"f1_macro", "ratio"} <= set(wide.columns) or (wide := wide.drop_nulls(["f1_macro", "ratio"])).is_empty():
        return ""
    wide = wide.with_columns(pl.col("f1_macro") * 100).sort("source", "longest", "threshold")
    sizes = sorted(set(wide["longest"]), reverse=True)
    looks = {size: look(i) for i, size in enumerate(sizes)}
    panels: dict[str, list[Line]] = {source: [] for source in sorted(set(wide["source"]))}
    for (source, size), part in wide.group_by("source", "longest", maintain_order=True):
        line = Line(f"L_max {size}", part["ratio"].to_list(), part["f1_macro"].to_list(), looks[size])
        panels[str(source)].append(line)
    paper = [[row[metric] for row in TABLE_6.values()] for metric in ("ratio", "f1_macro")]
    style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 8, "zorder": 4, "bbox": _HALO}
    with drawing():
        figure, axes = _lines(panels, "CR: share of the words that stay; by each point N_max", "F1 in %", 2.9)
        for axis, source in zip(axes, panels, strict=False):
            axis.plot(*paper, "o", color=GREY, markerfacecolor="none", markersize=5)
            for row in wide.filter(pl.col("source") == source).iter_rows(named=True):
                at = row["ratio"], row["f1_macro"]
                axis.annotate(f"{row['threshold']:g}", at, (0, 6), color=looks[row["longest"]][0], **style)
            axis.margins(0.1, 0.16)
            axis.text(0.98, 0.03, "hollow: paper", transform=axis.transAxes, ha="right", fontsize=8, color=GREY)
        return svg(figure)


def overlap(frame: pl.DataFrame, name: str = "correlation") -> str:
    """Figure 3: correlation on pairs that overlap by more than a threshold.

    Args:
        frame: measure, threshold (1: one has all words of the other; below 0: none is shared), value, low, high.
        name: of the correlation.
    """
    lines = []
    for key in in_order(_some(frame)["measure"], MEASURES):
        part = frame.filter(pl.col("measure") == key).drop_nulls("value").sort("threshold")
        bounds = tuple(part[end].cast(pl.Float64).to_list() for end in ("low", "high"))
        at = part["threshold"].cast(pl.Float64).clip(-0.1).to_list()
        lines.append(
            Line(MEASURES.get(key, key), at, part["value"].to_list(), measure_look(key), (bounds[0], bounds[1]))
        )
    with drawing():
        figure, (axis,) = _lines({"": lines}, "words of the shorter sentence that both have: more than x", name)
        axis.axhline(0, **_COPY, zorder=0)
        ticks = [x for x in np.arange(-1, 11) / 10 if x in {round(x, 1) for line in lines for x in line.x}]
        axis.set_xticks(ticks, ["none" if x < 0 else "all" if x >= 1 else f"{x:g}" for x in ticks])
        return svg(figure)


def measure_look(name: str) -> tuple[str, str]:
    """Colour and marker of a measure of distance."""
    order = [*MEASURES]
    return look(order.index(name) if name in order else len(order))


def dots(
    known: Known, panels: Mapping[str, str], rows: Mapping[str, str], marks: Mapping[str, str], *,
    printed: Mapping[tuple[str, str, str], float] | None = None, scale: float = 1,
    chance: Mapping[str, float] | None = None, is_shared: bool = False,
) -> str:  # fmt: skip
    """Numbers with their intervals, a panel a metric; what the paper prints are ticks of the same colour.

    Args:
        known: by panel, row and mark: value, low, high.
        panels: metrics and their titles.
        rows: what stands below each other, with names.
        marks: what is told apart by colour and marker, with names.
        printed: the paper's, by the same keys, on the scale of the figure.
        scale: that values are multiplied with.
        chance: of each panel what a guess has, on the scale of the figure.
        is_shared: panels have one scale.
    """
    printed, order = printed or {}, [*MEASURES]
    looks = {key: look(order.index(key) if key in order else i) for i, key in enumerate(marks)}
    with drawing():
        across = min(len(panels), 3)
        down = -(-len(panels) // across)
        each = max(0.13 * len(marks) + 0.08, 0.3)
        size = (7.2, down * (each * len(rows) + 0.55) + 0.5)
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(wspace=0.05))
        axes: list[Axes] = figure.subplots(down, across, sharex=is_shared, sharey=True, squeeze=False).ravel().tolist()
        for axis, (panel, title) in zip(axes, panels.items(), strict=False):
            _rows(axis, [*rows.values()], title, (chance or {}).get(panel))
            for y, row in enumerate(rows):
                there = [mark for mark in marks if (panel, row, mark) in known or (panel, row, mark) in printed]
                for i, mark in enumerate(there):
                    at = y + 0.8 * ((i + 0.5) / len(there) - 0.5)
                    colour, marker = looks[mark]
                    value, low, high = (scale * each for each in _bounds(known.get((panel, row, mark), {})))
                    axis.hlines(at, low, high, color=colour, linewidth=1.6)
                    axis.plot(printed.get((panel, row, mark), np.nan), at, color=colour, **_TICK)
                    axis.plot(value, at, marker, color=colour, markersize=6.5, markeredgecolor="white")
        for axis in axes[len(panels) :]:
            axis.set_visible(False)
        keys = [Line2D([], [], color=looks[mark][0], marker=looks[mark][1], linewidth=1.6) for mark in marks]
        names = [wrapped(name, 24, 2) for name in marks.values()]
        if any(key[0] in panels and key[1] in rows and key[2] in marks for key in printed):
            keys, names = [*keys, Line2D([], [], color=INK, **_TICK)], [*names, _PAPER]
        figure.legend(keys, names, loc="outside upper center", ncols=min(len(keys), 4), frameon=False, fontsize=8)
        return svg(figure)


def _rows(axis: Axes, names: Sequence[str], title: str, line: float | None) -> None:
    axis.set_yticks(range(len(names)), [wrapped(name, 20, 2) for name in names], fontsize=8)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x", color=PALE, linewidth=0.6)
    axis.set_axisbelow(True)
    for y in range(1, len(names)):
        axis.axhline(y - 0.5, color=PALE, linewidth=0.6)
    if line is not None:
        axis.axvline(line, **_COPY, zorder=0)
    axis.set_title(title, fontsize=9)
    axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


def strips(groups: Mapping[str, Mapping[str, Mapping[int, float]]], x: str) -> str:
    """Distributions as strips: the middle 90 % a line, the middle half a bar, the median a mark.

    Args:
        groups: of each row and label its values by quantile, in percent.
        x: what values are.
    """
    labels = [*dict.fromkeys(label for row in groups.values() for label in row)]
    if not labels:
        raise ValueError("expected at least one row")
    with drawing():
        figure, axis = named_rows([*groups], 0.18 * len(labels) + 0.2)
        for y, row in enumerate(groups.values()):
            for i, (label, at) in enumerate(row.items()):
                place = y + 0.7 * ((i + 0.5) / len(row) - 0.5)
                colour, marker = look(labels.index(label))
                axis.hlines(place, at.get(5, np.nan), at.get(95, np.nan), color=colour, linewidth=1.4)
                axis.hlines(place, at.get(25, np.nan), at.get(75, np.nan), color=colour, linewidth=6, alpha=0.45)
                axis.plot(at.get(50, np.nan), place, marker, color=colour, markersize=6.5, markeredgecolor="white")
        axis.set_xlabel(f"{x}; line: middle 90 %, bar: middle half, mark: median")
        if len(labels) > 1:
            keys = [Line2D([], [], color=look(i)[0], marker=look(i)[1], linewidth=1.6) for i in range(len(labels))]
            figure.legend(keys, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
        return svg(figure)


def pruning(frame: pl.DataFrame) -> str:
    """Table 7 as cells in percent, the paper's number small below. Columns: system, threshold, metric, value."""
    metrics = (*DEPTHS, *SUBTREES)
    known = {row[:3]: row[3] for row in _some(frame).select("system", "threshold", "metric", "value").iter_rows()}
    keys = [(name, size) for name in in_order(frame["system"], SYSTEMS)
            for size in sorted({size for system, size, _ in known if system == name})]  # fmt: skip
    cells = [[known.get((*key, metric)) for metric in metrics] for key in keys]
    values: Floats = 100 * np.array(cells, float).reshape(len(keys), len(metrics))
    with drawing():
        figure = Figure(figsize=(7.2, 0.46 * len(keys) + 1.0), layout="constrained")
        parts = figure.subplots(1, 2, width_ratios=(len(DEPTHS), len(SUBTREES)), sharey=True)
        rows = [f"{wrapped(named(name), 18, 2)}, N_max {size:g}" for name, size in keys]
        for axis, start, some in zip(parts, (0, len(DEPTHS)), (DEPTHS, SUBTREES), strict=True):
            part = values[:, start : start + len(some)]
            grid(axis, rows, [METRICS[name] for name in some], part, LIGHT, Normalize(0, 100))
            for (y, x), value in np.ndenumerate(part):
                axis.text(x, y - 0.14, "–" if np.isnan(value) else f"{value:.0f}", ha="center", va="center", fontsize=9)
                if keys[y] in TABLE_7:
                    axis.text(
                        x, y + 0.25, f"{TABLE_7[keys[y]][start + x]}", ha="center", va="center", fontsize=8, color=GREY
                    )
        parts[0].set_title("% of dropped words at a depth of the tree", fontsize=9)
        parts[1].set_title("% of dropped spans that are subtrees", fontsize=9)
        parts[1].tick_params(labelleft=False)
        figure.supxlabel("small: printed in the paper, of other models and data", fontsize=8)
        return svg(figure)


def _value(row: Row | None) -> Any:
    return None if row is None else row.get("value")


def _bounds(row: Row) -> list[float]:
    """Value, low and high, NaN where there is none."""
    return [np.nan if row.get(name) is None else row[name] for name in ("value", "low", "high")]


def _some(frame: pl.DataFrame) -> pl.DataFrame:
    if frame.is_empty():
        raise ValueError("expected at least one row")
    return frame
