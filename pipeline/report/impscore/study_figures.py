"""Figures of the numeric studies of ImpScore (sections 5.3 and 7), as inline SVG.

In: the frame `studies` (study, setting, metric, subset, run, value, low, high, row_count, effective_count), of which a
figure takes the rows of its study: there must be some, of one day and model.
"""

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pipeline.metrics.impscore.detection import LABELS
from pipeline.papers.impscore import METRICS, SPACES, TABLE_2
from pipeline.report import figures as plot
from pipeline.report.impscore.study_rows import IMPLICIT, by_metric, over_runs

SYMBOLS = dict(zip(plot.MARKERS, "●■◆▲▼✚", strict=True))
BLUES = LinearSegmentedColormap.from_list("blues", ["#f4f7f9", "#a9c8da", plot.ACCENT, "#123c56"])
LEAST_RANGE = 0.004  # of accuracies, so that noise is not painted as a difference


def ablation(studies: pl.DataFrame) -> str:
    """Table 2 as a heat map: both accuracies, mean ± s.d. over runs, the best framed; the paper's beside it, pale."""
    found = over_runs(studies, "ablation").iter_rows(named=True)
    known = {(r["implicitness"], r["pragmatics"], r["space"], r["metric"]): (r["value"], r["sd"]) for r in found}
    variants = np.array([[(*metrics, space) for space in SPACES] for metrics in METRICS])
    values = np.array([[known.get((*v, "implicitness_accuracy"), (np.nan,))[0] for v in row] for row in variants])
    best = np.nanmax(np.round(values, 3), initial=0)
    names = [f"{one} ×\n{other}" for one, other in METRICS], [plot.wrapped(space, 13) for space in SPACES.values()]
    with plot.drawing():
        figure = Figure(figsize=(7.2, 3.5), layout="constrained")
        ours, printed = figure.subplots(1, 2, width_ratios=(3, 2), sharey=True)
        plot.grid(ours, *names, values, plot.LIGHT, _range(values))
        plot.grid(printed, *names, np.full((4, 3), np.nan), plot.LIGHT, Normalize())
        for y, x in np.ndindex(4, 3):
            variant = tuple(variants[y, x].tolist())
            one, other = (known.get((*variant, f"{kind}_accuracy")) for kind in ("implicitness", "pragmatics"))
            is_best = one is not None and round(one[0], 3) == best
            _cell(ours, x, y, (_plus_minus(one), _plus_minus(other)), plot.INK, weight="bold" if is_best else "normal")
            _cell(printed, x, y, tuple(f"{number:.3f}" for number in TABLE_2[variant]), plot.GREY)
            if is_best:
                plot.frame_cell(ours, x, y)
        ours.set_ylabel("metric of I × metric of ΔP")
        ours.set_title("measured", fontsize=9)
        printed.set_title("printed in the paper", fontsize=9, color=plot.GREY)
        printed.tick_params(labelcolor=plot.GREY, labelleft=False)
        figure.supxlabel("above: implicitness accuracy, which colours the cell; below: pragmatics accuracy", fontsize=8)
        return plot.svg(figure)


def _cell(axis: Axes, x: int, y: int, lines: tuple[str, ...], colour: str, weight: str = "normal") -> None:
    plot.write(axis, x, y - 0.17, lines[0], color=colour, weight=weight, fontsize=9)
    plot.write(axis, x, y + 0.2, lines[1], color=colour)


def _plus_minus(found: tuple[float, float | None] | None) -> str:
    if found is None:
        return "–"
    return f"{found[0]:.3f}" if found[1] is None else f"{found[0]:.3f} ± {found[1]:.3f}"


def _range(values: plot.Floats) -> Normalize:
    known = values[np.isfinite(values)]
    low, high = known.min(initial=1.0), known.max(initial=0.0)
    middle, half = (low + high) / 2, max(high - low, LEAST_RANGE) / 2
    return Normalize(middle - half, middle + half)


def sensitivity(studies: pl.DataFrame) -> str:
    """Figures 4 and 10: mean implicitness accuracy over γ1 and γ2, a panel an α.

    A full grid is filled by monotone interpolation, which invents no peaks; dots are what was measured, the star is the
    best of its panel.
    """
    found = over_runs(studies, "sensitivity").filter(pl.col("metric") == "implicitness_accuracy")
    alphas = found["alpha"].unique().sort().to_list()
    values = _range(found["value"].to_numpy())
    levels = MaxNLocator(12).tick_values(values.vmin or 0, values.vmax or 0)
    norm = Normalize(levels[0], levels[-1])
    rows, columns = -(-len(alphas) // 2), min(len(alphas), 2)
    with plot.drawing():
        figure = Figure(figsize=(7.2, 0.5 + 2.7 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axis, alpha in zip(axes, alphas, strict=False):
            part = found.filter(pl.col("alpha") == alpha)
            x, y, z = (part[name].to_numpy() for name in ("gamma_implicitness", "gamma_pragmatics", "value"))
            if surface := _surface(x, y, z):
                axis.contourf(*surface, levels, cmap=BLUES)
            axis.scatter(x, y, 22, z, cmap=BLUES, norm=norm, edgecolors="white", linewidths=0.8, zorder=2)
            best = int(np.argmax(z))
            axis.plot(x[best], y[best], "*", color=plot.WARM, markeredgecolor="white", markersize=14, zorder=3)
            axis.set_title(f"α = {alpha:g}: best {z[best]:.3f} at γ1 = {x[best]:g}, γ2 = {y[best]:g}", fontsize=8)
            axis.set(xticks=_apart(x), yticks=_apart(y))
            axis.use_sticky_edges = False
            axis.margins(0.05)
        for axis in axes[len(alphas) :]:
            axis.set_visible(False)
        figure.supxlabel("γ1, margin of implicitness", fontsize=9)
        figure.supylabel("γ2, margin of pragmatic distance", fontsize=9)
        label = "implicitness accuracy, mean of runs"
        figure.colorbar(
            ScalarMappable(norm, BLUES), ax=axes.tolist(), label=label, aspect=30, boundaries=levels, format="%.3f"
        )
        return plot.svg(figure)


def _surface(x: plot.Floats, y: plot.Floats, z: plot.Floats) -> tuple[plot.Floats, plot.Floats, plot.Floats] | None:
    """A full grid of at least two by two, made fine; None for any other."""
    from scipy.interpolate import PchipInterpolator

    across, up = np.unique(x), np.unique(y)
    if min(len(across), len(up)) < 2 or len(across) * len(up) != len(z):
        return None
    table = z[np.lexsort((x, y))].reshape(len(up), len(across))
    fine = [np.linspace(side[0], side[-1], 61) for side in (across, up)]
    return fine[0], fine[1], PchipInterpolator(up, PchipInterpolator(across, table, axis=1)(fine[0]), axis=0)(fine[1])


def _apart(values: plot.Floats) -> list[float]:
    """The values as ticks, without those too near the one before to be written."""
    kept: list[float] = []
    for value in np.unique(values).tolist():
        if not kept or value - kept[-1] > 0.07 * np.ptp(values):
            kept.append(value)
    return kept


def data_sets(studies: pl.DataFrame) -> str:
    """Figure 5: mean implicitness ± s.d. of each data set, the most implicit on top, its implicit part below it."""
    parts = {row["subset"]: row for row in by_metric(studies, "data_sets").iter_rows(named=True)}
    means = {name.removesuffix(IMPLICIT): row["mean"] for name, row in sorted(parts.items(), reverse=True)}
    names = sorted(means, key=lambda name: (-means[name], name))
    looks = (("", plot.ACCENT, "o"), (IMPLICIT, plot.HUES[1], "D"))
    with plot.drawing():
        figure, axis = plot.named_rows(names, 0.5)
        for y, name in enumerate(names):
            there = [(parts[name + end], colour, marker) for end, colour, marker in looks if name + end in parts]
            for i, (row, colour, marker) in enumerate(there):
                at = plot.place(y, i, len(there), 0.32 * len(there))
                axis.errorbar(
                    row["mean"], at, xerr=row["sd"], color=colour, marker=marker, markersize=6, capsize=3, linewidth=1.4
                )
                plot.beside(axis, at, f"n = {row['row_count']:,}", colour)
        axis.set_xlim(min(0, axis.get_xlim()[0]), max(2, axis.get_xlim()[1]))
        axis.set_xlabel("implicitness: mean ± s.d.")
        keys = [Line2D([], [], color=colour, marker=marker, linewidth=1.4) for _, colour, marker in looks]
        labels = ["whole data set", "its implicit part"]
        plot.legend(figure, keys, labels, 2)
        return plot.svg(figure)


def diversity(studies: pl.DataFrame) -> str:
    """Figure 6: ΔP of random pairs of each data set as strips, the most diverse on top."""
    found = by_metric(studies, "diversity").sort("q50", "subset", descending=[True, False])
    with plot.drawing():
        figure, axis = plot.named_rows(found["subset"].to_list(), 0.46)
        for y, row in enumerate(found.iter_rows(named=True)):
            axis.hlines(y, row["q00"], row["q100"], color=plot.FAINT, linewidth=0.9)
            axis.hlines(y, row["q05"], row["q95"], color=plot.ACCENT, linewidth=1.8)
            axis.hlines(y, row["q25"], row["q75"], color=plot.ACCENT, linewidth=9)
            axis.vlines(row["q50"], y - 0.2, y + 0.2, color="white", linewidth=2)
            plot.beside(axis, y, f"n = {row['row_count']:,}")
        axis.set_xlim(left=0)
        what = "bar: quartiles and median; thick line: 5 to 95 %; thin line: all; n: pairs"
        axis.set_xlabel(f"pragmatic distance ΔP of random pairs\n{what}")
        return plot.svg(figure)


def detection(studies: pl.DataFrame) -> str:
    """Figure 7: accuracy by bin of implicitness with intervals, a line a detector; n and effective n below each bin."""
    found = over_runs(studies, "detection").filter((pl.col("metric") == "accuracy") & pl.col("value").is_not_null())
    bins, names = LABELS, found["by"].unique().sort().to_list()
    with plot.drawing():
        figure = Figure(figsize=(7.2, 3.4 + 0.4 * len(names)), layout="constrained")
        axis, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.9, 0.1 + 0.4 * len(names)))
        for i, name in enumerate(names):
            part = found.filter(pl.col("by") == name)
            at = np.array([bins.index(label) for label in part["subset"]])
            _line(axis, part, at, len(bins), 0.09 * (i - (len(names) - 1) / 2), i)
            counts = dict(
                zip(part["subset"], zip(part["row_count"], part["effective_count"], strict=True), strict=True)
            )
            for column, label in enumerate(bins):
                n, effective = counts.get(label, (0, None))
                shown = f"{n:,}" if effective is None else f"{n:,}\n({effective:,})"
                plot.write(below, column, i, shown, color=plot.look(i)[0])
        axis.set(ylim=(-0.03, 1.03), ylabel="detected as problematic", xlim=(-0.5, len(bins) - 0.5))
        axis.grid(axis="y", color=plot.PALE, linewidth=0.6)
        axis.set_xticks(range(len(bins)), [label.replace("-", "–") for label in bins], fontsize=8)
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("implicitness")
        labels = [f"{SYMBOLS[plot.look(i)[1]]} {plot.wrapped(name)}" for i, name in enumerate(names)]
        below.set_yticks(range(len(names)), labels, fontsize=8)
        for i, label in enumerate(below.get_yticklabels()):
            label.set_color(plot.look(i)[0])
        below.set_ylim(len(names) - 0.5, -0.5)
        below.tick_params(length=0, labelbottom=False)
        below.spines[:].set_visible(False)
        note = "n, and in brackets n with near duplicates counted once, which the 95 % intervals use"
        figure.supxlabel(note, fontsize=8)
        return plot.svg(figure)


def _line(axis: Axes, part: pl.DataFrame, at: npt.NDArray[np.intp], bins: int, step: float, number: int) -> None:
    """One detector, a gap where a bin is empty."""
    value, low, high = (part[name].cast(pl.Float64).to_numpy() for name in ("value", "low", "high"))
    line = np.full(bins, np.nan)
    line[at] = value
    colour, marker = plot.look(number)
    axis.plot(np.arange(bins) + step, line, color=colour, marker=marker, markersize=6, linewidth=1.5)
    axis.vlines(at + step, low, high, color=colour, linewidth=1.2)
