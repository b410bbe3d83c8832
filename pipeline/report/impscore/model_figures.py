"""Figures of a model's scores (ImpScore, figures 3, 9, 11, 12) and of the surface baselines, as inline SVG."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.lines import Line2D

from pipeline.metrics.impscore.artefacts import BASELINES
from pipeline.report import figures as plot
from pipeline.report.sections import format_number, order_names

AROUND = LinearSegmentedColormap.from_list("around", [plot.WARM, "#f7f7f7", plot.ACCENT])


def draw_violins(triples: pl.DataFrame, split: str = "test") -> str:
    """Draw figure 3, centre and right: implicitness of the three sentences, ΔP of the two pairs.
    The triples have i1, i2, i3 (implicit, explicit, foreign explicit), near, far (ΔP of both pairs) and split.
    """
    rows = triples.filter(pl.col("split") == split)
    sentences = [("i1", "implicit", plot.ACCENT), ("i2", "its explicit\nform", plot.GREY)]
    panels = {
        "implicitness I": [*sentences, ("i3", "explicit form\nof another pair", plot.HUES[1])],
        "pragmatic distance ΔP": [("near", "positive\npair", plot.GREY), ("far", "negative\npair", plot.HUES[1])],
    }
    with plot.use_style():
        figure, axes = plot.create_figure((7.2, 3.3), 1, 2, width_ratios=(3, 2.1))
        for axis, (title, columns) in zip(axes, panels.items(), strict=True):
            for place, (column, _, colour) in enumerate(columns):
                _draw_violin(axis, place, rows[column].to_numpy(), colour)
            axis.set_xticks(range(len(columns)), [name for _, name, _ in columns])
            axis.set_xlim(-0.5, len(columns) - 0.25)
            axis.set_ylabel(title)
        note = f"{rows.height:,} triples of the {split} split; bar: quartiles, white dot: median, number: mean"
        figure.supxlabel(note, fontsize=8)
        return plot.render_svg(figure)


def _draw_violin(axis: Axes, place: int, values: plot.Floats, colour: str) -> None:
    axis.violinplot([values], [place], widths=0.6, showextrema=False, facecolor=(colour, 0.35), linecolor=colour)
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    axis.vlines(place, low, high, color=colour, linewidth=5)
    axis.plot(place, middle, "o", color="white", markeredgecolor=plot.INK, markersize=5, zorder=3)
    axis.text(place + 0.32, values.mean(), f"{values.mean():.3f}", va="center", fontsize=8)


def draw_audit(audit: pl.DataFrame) -> str:
    """Draw the accuracies of surface baselines by source (`metrics.impscore.artefacts.audit`).
    The column `model` is optional: the accuracy of the model on the subset, or null.
    """
    kinds = order_names(audit["baseline"], BASELINES)
    subsets = order_names(audit["subset"], ["all"])
    rows = audit.select("subset", "baseline", "accuracy").sort("subset", "baseline")
    if "model" in audit.columns:
        model_rows = audit.select("subset", baseline=pl.lit("the model"), accuracy="model").drop_nulls()
        rows = pl.concat([rows, model_rows.unique("subset").sort("subset")])
    looks = {kind: (plot.HUES[1 + i % 5], "^sXvP"[i % 5]) for i, kind in enumerate(kinds)}
    looks |= {"the model": (plot.ACCENT, "o")} if rows.height > audit.height else {}
    with plot.use_style():
        figure, axis = plot.create_row_figure(subsets, 0.12 * len(looks) + 0.1)
        axis.axvline(0.5, **plot.DASHED)
        for i, (kind, (colour, marker)) in enumerate(looks.items()):
            part = rows.filter(pl.col("baseline") == kind)
            heights = [plot.place_mark(subsets.index(subset), i, len(looks), 0.86) for subset in part["subset"]]
            size = 9 if kind == "the model" else 7.5
            axis.plot(part["accuracy"], heights, marker, color=colour, markersize=size, markeredgecolor="white")
        for y, subset in enumerate(subsets):
            plot.write_note(axis, y, f"n = {audit.filter(pl.col('subset') == subset)['pair_count'][0]:,}")
            axis.axhline(y + 0.5, color=plot.PALE, linewidth=0.6)
        axis.set_xlim(min(0.4, axis.get_xlim()[0]), 1.01)
        axis.set_xlabel("implicitness accuracy; dashed: chance; n: triples")
        style: Any = {"markersize": 7, "linestyle": ""}
        keys = [Line2D([], [], color=colour, marker=marker, **style) for colour, marker in looks.values()]
        plot.draw_legend(figure, keys, list(looks), len(keys))
        return plot.render_svg(figure)


def draw_spaces(
    points: Sequence[plot.Floats], groups: Sequence[str], titles: Sequence[str], silhouettes: Sequence[float]
) -> str:
    """Draw figures 11 and 12: sentences in the plane, each tied to the middle of its group; a panel a space.
    The points [n, 2] of each space are of `metrics.impscore.studies.lay_out`, the silhouettes of the original features.
    """
    kinds = sorted(set(groups))
    looks = [plot.pick_look(i) for i in range(len(kinds))]
    are_few = len(kinds) <= 12
    with plot.use_style():
        size = (7.2, 3.7 + 0.32 * -(-len(kinds) // 4) * are_few)
        figure, (axes,) = plot.create_figure(size, 1, len(points), squeeze=False)
        for axis, points_of_space, title, silhouette in zip(axes, points, titles, silhouettes, strict=True):
            for kind, look in zip(kinds, looks, strict=True):
                points_of_group = points_of_space[[group == kind for group in groups]]
                _draw_star(axis, points_of_group, *look, 5 if are_few else 3.5)
            axis.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
            axis.spines[:].set_visible(True)
            axis.set_title(f"{title}\nsilhouette {format_number(silhouette)}", fontsize=9)
        if are_few:
            keys = [Line2D([], [], color=colour, marker=marker, linestyle="") for colour, marker in looks]
            names = [plot.wrap_name(kind, 22, 2) for kind in kinds]
            plot.draw_legend(figure, keys, names, 4, is_below=True)
        else:
            figure.supxlabel(
                f"{len(kinds):,} groups; lines connect each sentence with the centre of its group", fontsize=8
            )
        return plot.render_svg(figure)


def _draw_star(axis: Axes, points: plot.Floats, colour: str, marker: str, size: float) -> None:
    middle = np.broadcast_to(points.mean(axis=0), points.shape)
    lines = np.stack([points, middle, np.full(points.shape, np.nan)], axis=1)
    axis.plot(*lines.reshape(-1, 2).T, color=colour, linewidth=0.6, alpha=0.5)
    axis.plot(*points.T, marker, color=colour, markersize=size, markeredgecolor="white", markeredgewidth=0.5)


def draw_matrix(names: Sequence[str], values: plot.Floats, title: str = "") -> str:
    """Draw table 4 and figure 9: agreement of raters, each with each, in [-1, 1]."""
    size = max(min(0.85, 5.6 / max(len(names), 1)), 0.45)  # inches a column
    is_tight = size < 0.8
    with plot.use_style():
        inches = (size * len(names) + 1.4, 0.4 * len(names) + 0.7 + 0.9 * is_tight)
        figure, axis = plot.create_figure(inches)
        labels = [plot.wrap_name(name, 20 if is_tight else 11) for name in names]
        plot.draw_grid(axis, [plot.wrap_name(name) for name in names], labels, values, AROUND, Normalize(-1, 1))
        axis.tick_params(axis="x", labelrotation=90 if is_tight else 0)
        for (y, x), value in np.ndenumerate(values):
            ink = "white" if abs(value) > 0.75 else plot.INK
            plot.write_text(axis, x, y, format_number(value, 2), color=ink)
        axis.set_title(title, fontsize=9)
        return plot.render_svg(figure)
