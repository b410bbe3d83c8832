"""Figures of NDD, in percent: compressors, measures of distance, what they know of trees and predicates."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pipeline.papers.ndd import BASELINES, MEASURES, SCORERS, SYSTEMS
from pipeline.report import figures as plot
from pipeline.report.sections import index_rows, order_names

_COPY: dict[str, Any] = {**plot.DASHED, "color": plot.INK}
PAPER = "printed in the paper, on other models and data"


def name_system(name: str) -> str:
    """Name a compressor as the paper does, or as it is."""
    return SYSTEMS.get(name, name)


def pick_system_look(name: str) -> tuple[str, str]:
    """Pick the colour by what scores, the marker by whether there are trees; baselines are grey."""
    markers = dict(zip((*BASELINES, "gold"), "*<>XP", strict=True))
    if name in markers:
        return plot.INK if name in ("unedited", "gold") else plot.GREY, markers[name]
    if (base := name.removesuffix("_sc")) in SCORERS:
        return plot.HUES[[*SCORERS].index(base)], "D" if base != name else "o"
    return plot.pick_look(sum(map(ord, name)))[0], "v"


def draw_compressions(frame: pl.DataFrame, printed: Mapping[str, Mapping[str, float | None]]) -> str:
    """Draw F1 against CR of one source, a point a system, what the paper prints of this data set hollow."""
    rows_by_key = index_rows(frame.drop_nulls("value"), "by", "metric")
    names = order_names(frame["by"], SYSTEMS)
    names = [name for name in names if rows_by_key.keys() >= {(name, "f1_macro"), (name, "ratio")}]
    if not names:
        return ""
    with plot.use_style():
        figure, axis = plot.create_figure((7.2, 4.2))
        keys: list[Line2D] = []
        for name in names:
            x, lowest_ratio, highest_ratio = plot.get_bounds(rows_by_key[name, "ratio"])
            y, low, high = plot.get_bounds(rows_by_key[name, "f1_macro"], 100)
            colour, marker = pick_system_look(name)
            axis.hlines(y, lowest_ratio, highest_ratio, color=colour, linewidth=1.2, alpha=0.6)
            axis.vlines(x, low, high, color=colour, linewidth=1.2, alpha=0.6)
            style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 11 if marker == "*" else 7}
            style |= {"linestyle": "", "markeredgecolor": "white"}
            axis.plot(x, y, zorder=3, **style)
            keys.append(Line2D([], [], **style, label=plot.wrap_name(name_system(name), 20, 2)))
            if name == "unedited":
                axis.axhline(y, **_COPY, zorder=0)
                keys.append(Line2D([], [], **_COPY, label="F1 of copying"))
            if name in printed:
                point = np.array([printed[name][metric] for metric in ("ratio", "f1_macro")], float)
                axis.plot(*point, marker=marker, markersize=6, color=colour, markerfacecolor="none")
        values = {key: row["value"] for key, row in rows_by_key.items()}
        with_delta = [name for name in names if (name, "ratio_delta") in values]
        gold = [values[name, "ratio"] - values[name, "ratio_delta"] for name in with_delta]
        grey: dict[str, Any] = {"color": plot.GREY}
        if gold:
            grey_line = {**grey, "linewidth": 1.1, "linestyle": ":"}
            axis.axvline(float(np.median(gold)), **grey_line, zorder=0)
            keys.append(Line2D([], [], **grey_line, label="CR of the gold"))
        if set(names) & set(printed):
            keys.append(Line2D([], [], **grey, linestyle="", marker="o", markerfacecolor="none", label="hollow: paper"))
        axis.set(xlabel="CR: share of kept words", ylabel="F1 in %", xlim=(None, 1.04))
        axis.grid(color=plot.PALE, linewidth=0.6)
        axis.set_axisbelow(True)
        figure.legend(handles=keys, loc="outside right center", frameon=False, fontsize=8)
        return plot.render_svg(figure)


class Line(NamedTuple):
    name: str
    x: Sequence[float]
    y: Sequence[float]
    look: tuple[str, str]
    bounds: tuple[Sequence[float], Sequence[float]] | None = None


def _draw_lines(lines_of: Mapping[str, Sequence[Line]], x: str, y: str) -> tuple[Figure, list[Axes]]:
    figure, axes = plot.create_panels(len(lines_of), 2, (2.6, 0.5))
    keys = {}
    for axis, (title, lines) in zip(axes, lines_of.items(), strict=True):
        for line in lines:
            colour, marker = line.look
            style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5.5, "markeredgecolor": "white"}
            style["linewidth"] = 2.2 if line.name == "gold" else 1.4
            axis.plot(line.x, line.y, **style)
            if line.bounds:
                axis.fill_between(line.x, *line.bounds, color=colour, alpha=0.12, linewidth=0)
            keys[line.name] = Line2D([], [], **style)
        if len(lines_of) > 1:
            axis.set_title(plot.wrap_name(title, 40, 2), fontsize=9)
        axis.grid(color=plot.PALE, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    figure.supxlabel(x, fontsize=9)
    figure.supylabel(y, fontsize=9)
    names = [plot.wrap_name(name, 24, 2) for name in keys]
    plot.draw_legend(figure, [*keys.values()], names, 4)
    return figure, axes


def draw_positions(frame: pl.DataFrame) -> str:
    """Draw how many of the words of each tenth of a sentence stay (figure 6)."""
    lines: dict[str, list[Line]] = {source: [] for source in sorted(set(frame["source"]))}
    for source, source_lines in lines.items():
        source_rows = frame.filter(source=source).drop_nulls("value").sort("bin")
        for name in order_names(source_rows["system"], ["gold", *SYSTEMS]):
            part = source_rows.filter(system=name)
            x, y = (10 * part["bin"] + 5).to_list(), (100 * part["value"]).to_list()
            source_lines.append(Line(name_system(name), x, y, pick_system_look(name)))
    with plot.use_style():
        figure, axes = _draw_lines(lines, "position in the sentence, in % of its words", "% of words kept")
        for axis in axes:
            axis.set(xlim=(0, 100), ylim=(0, None))
        return plot.render_svg(figure)


def draw_overlap(frame: pl.DataFrame, name: str) -> str:
    """Draw the correlation of a name on pairs that overlap by more than a threshold (figure 3)."""
    lines = []
    for key in order_names(frame["measure"], MEASURES):
        part = frame.filter(pl.col("measure") == key).drop_nulls("value").sort("threshold")
        low, high = (part[end].cast(pl.Float64).to_list() for end in ("low", "high"))
        thresholds, values = part["threshold"].cast(pl.Float64).clip(-0.1).to_list(), part["value"].to_list()
        lines.append(Line(MEASURES.get(key, key), thresholds, values, pick_measure_look(key), (low, high)))
    with plot.use_style():
        figure, (axis,) = _draw_lines({"": lines}, "share of the shorter sentence's words in both: more than x", name)
        axis.axhline(0, **_COPY, zorder=0)
        ticks = [x for x in np.arange(-1, 11) / 10 if x in {round(x, 1) for line in lines for x in line.x}]
        axis.set_xticks(ticks, ["none" if x < 0 else "all" if x >= 1 else f"{x:g}" for x in ticks])
        return plot.render_svg(figure)


def pick_measure_look(name: str, number: int = len(MEASURES)) -> tuple[str, str]:
    """Pick colour and marker of a measure of distance; another name has those of a number."""
    return plot.pick_look([*MEASURES].index(name) if name in MEASURES else number)
