"""Figures of ImpScore as inline SVG: a model's scores, surface baselines, and studies, each of one day and model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.ticker import MaxNLocator

from pipeline.metrics.impscore.artefacts import BASELINE_SCORERS, BASELINES, CHANCE
from pipeline.metrics.impscore.studies import LABELS
from pipeline.report import figures as plot
from pipeline.report.impscore.study_rows import IMPLICIT, average_runs, pivot_metrics, read_calibrations
from pipeline.report.sections import format_number, index_rows, order_names

BLUES = LinearSegmentedColormap.from_list("blues", ["#f4f7f9", "#a9c8da", plot.ACCENT, "#123c56"])
LEAST_RANGE = 0.004  # of accuracies, so that noise is not painted as a difference


def draw_sensitivity(studies: pl.DataFrame) -> str:
    """Draw figures 4 and 10: mean implicitness accuracy over γ1 and γ2, a panel an α, its best as a star.

    A full grid is filled by monotone interpolation, which adds no peaks; dots are the measured values.
    """
    means = average_runs(studies, "sensitivity").filter(pl.col("metric") == "implicitness_accuracy")
    alphas = means["alpha"].unique().sort().to_list()
    values = means["value"].to_numpy()
    middle, half = (values.min() + values.max()) / 2, max(np.ptp(values), LEAST_RANGE) / 2
    levels = MaxNLocator(12).tick_values(middle - half, middle + half)
    norm = Normalize(levels[0], levels[-1])
    with plot.use_style():
        figure, axes = plot.create_panels(len(alphas), 2, (2.7, 0.5), sharex=True)
        for axis, alpha in zip(axes, alphas, strict=True):
            part = means.filter(pl.col("alpha") == alpha)
            x, y, z = (part[name].to_numpy() for name in ("gamma_implicitness", "gamma_pragmatics", "value"))
            if surface := _interpolate(x, y, z):
                axis.contourf(*surface, levels, cmap=BLUES)
            axis.scatter(x, y, 22, z, cmap=BLUES, norm=norm, edgecolors="white", linewidths=0.8, zorder=2)
            best = int(np.argmax(z))
            axis.plot(x[best], y[best], "*", color=plot.WARM, markeredgecolor="white", markersize=14, zorder=3)
            axis.set_title(f"α = {alpha:g}: best {z[best]:.3f} at γ1 = {x[best]:g}, γ2 = {y[best]:g}", fontsize=8)
            axis.set(xticks=np.unique(x), yticks=np.unique(y))
            axis.use_sticky_edges = False
            axis.margins(0.05)
        figure.supxlabel("γ1, margin of implicitness", fontsize=9)
        figure.supylabel("γ2, margin of pragmatic distance", fontsize=9)
        options: Any = {"label": "implicitness accuracy, mean of runs", "aspect": 30, "format": "%.3f"}
        figure.colorbar(ScalarMappable(norm, BLUES), ax=axes, boundaries=levels, **options)
        return plot.render_svg(figure)


def _interpolate(x: plot.Floats, y: plot.Floats, z: plot.Floats) -> tuple[plot.Floats, plot.Floats, plot.Floats] | None:
    """Interpolate a full grid of at least two by two to a fine one; None for any other."""
    from scipy.interpolate import PchipInterpolator

    across, upwards = np.unique(x), np.unique(y)
    if min(len(across), len(upwards)) < 2 or len(across) * len(upwards) != len(z):
        return None
    table = z[np.lexsort((x, y))].reshape(len(upwards), len(across))
    fine_across, fine_upwards = (np.linspace(side[0], side[-1], 61) for side in (across, upwards))
    rows = PchipInterpolator(across, table, axis=1)(fine_across)
    return fine_across, fine_upwards, PchipInterpolator(upwards, rows, axis=0)(fine_upwards)


def draw_data_sets(studies: pl.DataFrame) -> str:
    """Draw figure 5: mean implicitness ± s.d. of each data set, the most implicit on top, its implicit part below."""
    low, high = pl.col("mean") - pl.col("sd"), pl.col("mean") + pl.col("sd")
    parts = pivot_metrics(studies, "data_sets").sort("mean", "subset", descending=[True, False])
    name = pl.col("subset").str.strip_suffix(IMPLICIT)
    rows = parts.select(name=name, part=name != pl.col("subset"), value="mean", low=low, high=high, panel=pl.lit(""))
    names = rows.sort("part", maintain_order=True)["name"].unique(maintain_order=True)
    marks = {False: "whole data set", True: "its implicit part"}
    rows_by_key = index_rows(rows, "panel", "name", "part")
    counts = dict(parts.select("subset", "row_count").iter_rows())
    row_names = {name: f"{name}, n = {counts.get(name, 0):,}" for name in names}
    x = "implicitness, from 0 to 2: mean ± s.d.; n: sentences"
    return plot.draw_dots(rows_by_key, {"": ""}, row_names, marks, limits=(0, 2), x=x)


def draw_audit(audit: pl.DataFrame) -> str:
    """Draw the accuracies of surface baselines by source (`artefacts.audit`)."""
    rows_by_key = index_rows(audit.with_columns(panel=pl.lit(""), value="accuracy"), "panel", "subset", "baseline")
    counts = dict(audit.select("subset", "pair_count").iter_rows())
    names = {name: f"{name}, n = {counts[name]:,}" for name in order_names(audit["subset"], ["all"])}
    marks = {name: name for name in order_names(audit["baseline"], BASELINES)}
    x = "implicitness accuracy; dashed: chance; n: triples"
    return plot.draw_dots(rows_by_key, {"": ""}, names, marks, chance={"": 0.5}, x=x)


def draw_diversity(studies: pl.DataFrame) -> str:
    """Draw figure 6: ΔP of random pairs of each data set as strips, the most diverse on top."""
    rows = pivot_metrics(studies, "diversity").sort("q50", "subset", descending=[True, False]).to_dicts()
    quantiles = [{share: row[f"q{share:02}"] for share in plot.SHARES} for row in rows]
    names = [f"{row['subset']}, n = {row['row_count']:,}" for row in rows]
    strips = {name: {"": values} for name, values in zip(names, quantiles, strict=True)}
    return plot.draw_strips(strips, "pragmatic distance ΔP of random pairs")


def draw_validation(studies: pl.DataFrame) -> str:
    """Draw what each scorer and the surface reach on each set, with intervals, a panel a set; dashed: chance."""
    numbers = average_runs(studies, "validation").drop_nulls("value").sort("subset", "lang")
    numbers = numbers.with_columns(panel=pl.format("{} ({})", "subset", "lang"), mark=pl.lit("scorer"))
    metrics = dict(numbers.select("panel", "metric").unique(maintain_order=True).iter_rows())
    scorers = order_names({*numbers["by"]} - {*BASELINE_SCORERS}, ())
    names = [*scorers, *(name for name in BASELINE_SCORERS[:-1] if name in numbers["by"])]
    return plot.draw_dots(
        index_rows(numbers, "panel", "by", "mark"),
        {panel: f"{plot.wrap_name(panel)}\n{plot.wrap_name(metric)}" for panel, metric in metrics.items()},
        {name: name for name in names},
        {"scorer": "value and 95 % interval; dashed: chance"},
        chance={panel: CHANCE[metric] for panel, metric in metrics.items()},
    )


def draw_calibration(studies: pl.DataFrame) -> str:
    """Draw the calibration curve of each pair of measures with intervals, and the rising map from one to the other."""
    rows = read_calibrations(studies)
    pairs = rows.filter(metric="curve").select("a", "b").unique().sort("a", "b").rows()
    with plot.use_style():
        figure, axes = plot.create_panels(len(pairs), 2, (3.2, 0.5), sharey=False)
        for axis, (a, b) in zip(axes, pairs, strict=True):
            part = rows.filter(a=a, b=b, subset="all").sort("run")
            x, knots_x, knots_y = (part.filter(metric=name)["value"] for name in ("curve_x", "map_x", "map_y"))
            curve = part.filter(metric="curve")
            axis.plot(knots_x, knots_y, color=plot.FAINT, linewidth=1.4, drawstyle="steps-post")
            axis.vlines(x, curve["low"], curve["high"], color=plot.ACCENT, linewidth=1.4)
            axis.plot(x, curve["value"], "o", color=plot.ACCENT, markersize=6, markeredgecolor="white")
            axis.set(xlabel=plot.wrap_name(a, 44), ylabel=plot.wrap_name(b, 34))
        return plot.render_svg(figure)


def draw_detection(studies: pl.DataFrame) -> str:
    """Draw figure 7: accuracy by bin of implicitness with intervals, a line a detector."""
    accuracies = average_runs(studies, "detection").filter(metric="accuracy").drop_nulls("value")
    names = accuracies["by"].unique().sort().to_list()
    with plot.use_style():
        figure, axis = plot.create_figure((7.2, 3.6))
        for i, name in enumerate(names):
            part = accuracies.filter(pl.col("by") == name)
            columns = np.array([LABELS.index(label) for label in part["subset"]])
            value, low, high = (part[end].cast(pl.Float64).to_numpy() for end in ("value", "low", "high"))
            step, (colour, marker) = 0.09 * (i - (len(names) - 1) / 2), plot.pick_look(i)
            line = np.full(len(LABELS), np.nan)
            line[columns] = value
            axis.plot(np.arange(len(LABELS)) + step, line, color=colour, marker=marker, markersize=6, linewidth=1.5)
            axis.vlines(columns + step, low, high, color=colour, linewidth=1.2)
        axis.set(ylim=(-0.03, 1.03), xlim=(-0.5, len(LABELS) - 0.5))
        axis.set(xlabel="implicitness", ylabel="detected as problematic, with 95 % interval")
        axis.grid(axis="y", color=plot.PALE, linewidth=0.6)
        axis.set_xticks(range(len(LABELS)), [label.replace("-", "–") for label in LABELS], fontsize=8)
        plot.draw_legend(figure, plot.list_keys(len(names)), [plot.wrap_name(name) for name in names])
        return plot.render_svg(figure)


def draw_violins(rows: pl.DataFrame) -> str:
    """Draw figure 3, centre and right: implicitness of the three sentences, ΔP of the two pairs.

    The triples of one split have i1, i2, i3 (implicit, explicit, foreign explicit), near and far (ΔP of both pairs).
    """
    style: dict[str, Any] = {"widths": 0.6, "showextrema": False}
    sentences = [("i1", "implicit", plot.ACCENT), ("i2", "its explicit\nform", plot.GREY)]
    panels = {
        "implicitness I": [*sentences, ("i3", "explicit form\nof another pair", plot.HUES[1])],
        "pragmatic distance ΔP": [("near", "positive\npair", plot.GREY), ("far", "negative\npair", plot.HUES[1])],
    }
    with plot.use_style():
        figure, axes = plot.create_figure((7.2, 3.3), 1, 2, width_ratios=(3, 2.1))
        for axis, (title, columns) in zip(axes, panels.items(), strict=True):
            for place, (column, _, colour) in enumerate(columns):
                values = rows[column].to_numpy()
                axis.violinplot([values], [place], facecolor=(colour, 0.35), linecolor=colour, **style)
                low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
                axis.vlines(place, low, high, color=colour, linewidth=5)
                axis.plot(place, middle, "o", color="white", markeredgecolor=plot.INK, markersize=5, zorder=3)
                axis.text(place + 0.32, values.mean(), f"{values.mean():.3f}", va="center", fontsize=8)
            axis.set_xticks(range(len(columns)), [name for _, name, _ in columns])
            axis.set(xlim=(-0.5, len(columns) - 0.25), ylabel=title)
        note = (
            f"{rows.height:,} triples of the {rows['split'][0]} split; bar: quartiles, white dot: median, number: mean"
        )
        figure.supxlabel(note, fontsize=8)
        return plot.render_svg(figure)


def draw_spaces(
    points: Sequence[plot.Floats], groups: Sequence[str], titles: Sequence[str], silhouettes: Sequence[float]
) -> str:
    """Draw figures 11 and 12: sentences in the plane, each tied to the middle of its group; a panel a space.

    The points [n, 2] of each space are of `metrics.impscore.studies.lay_out`, the silhouettes of the original features.
    """
    kinds = sorted(set(groups))
    style: dict[str, Any] = {"markersize": 3.5, "markeredgecolor": "white", "markeredgewidth": 0.5}
    with plot.use_style():
        figure, (axes,) = plot.create_figure((7.2, 3.7), 1, len(points), squeeze=False)
        for axis, points_of_space, title, silhouette in zip(axes, points, titles, silhouettes, strict=True):
            for i, kind in enumerate(kinds):
                colour, marker = plot.pick_look(i)
                points_of_group = points_of_space[[group == kind for group in groups]]
                middle = points_of_group.mean(axis=0)
                lines = [line for point in points_of_group for line in (point, middle, (np.nan, np.nan))]
                axis.plot(*np.array(lines).T, color=colour, linewidth=0.6, alpha=0.5)
                axis.plot(*points_of_group.T, marker, color=colour, **style)
            axis.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
            axis.spines[:].set_visible(True)
            axis.set_title(f"{title}\nsilhouette {format_number(silhouette)}", fontsize=9)
        note = f"{len(kinds):,} groups; lines connect each sentence with the centre of its group"
        figure.supxlabel(note, fontsize=8)
        return plot.render_svg(figure)
