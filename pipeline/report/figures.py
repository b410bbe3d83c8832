"""Figures as inline SVG, the same rows the same bytes: what all share, and those of the daily pages.

Frames have the columns that a page's `PARTS` names, and at least one row; what is null is left out. Nothing is shown by
colour alone: there are markers, hatches and numbers.
"""

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pipeline.io.visible import escape_invisible
from pipeline.report.sections import format_number

Floats = npt.NDArray[np.floating]
INK, ACCENT, PALE, WARM = "#1f2933", "#2a6f97", "#c9d6df", "#c1666b"
GREY, FAINT = "#616e7c", "#9aa5b1"
HUES = (ACCENT, "#d1682f", "#3c9d7b", "#b0518f", "#c79a12", INK)
MARKERS = "osD^vP"
LIGHT = LinearSegmentedColormap.from_list("light", ["#f4f7f9", "#8fb9d1"])  # ink stays readable on it
AROUND = LinearSegmentedColormap.from_list("around", ["#e0aeaa", "#f7f9fa", "#8fb9d1"])  # ink is readable on it
DASHED: dict[str, Any] = {"color": GREY, "linewidth": 1.1, "linestyle": (0, (4, 3))}  # a reference line
HATCHED: dict[str, Any] = {"facecolor": "#e9eef2", "hatch": "////", "edgecolor": FAINT, "linewidth": 0}
STAR: dict[str, Any] = {"marker": "*", "color": "white", "markeredgecolor": INK, "markersize": 10, "linestyle": ""}
TICK: dict[str, Any] = {"marker": "|", "markersize": 13, "markeredgewidth": 1.8, "linestyle": ""}
"""Marks of a number that the paper prints."""
SHARES = (5, 25, 50, 75, 95)  # quantiles of a strip, in percent
_CHINESE = ("Noto Sans CJK SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei", "WenQuanYi Micro Hei",
            "WenQuanYi Zen Hei", "SimHei")  # fmt: skip
_INSTALLED = set(font_manager.get_font_names())
_STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans", *[name for name in _CHINESE if name in _INSTALLED][:1]], "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": FAINT, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
    "svg.fonttype": "path", "svg.hashsalt": "undertone", "text.color": INK,
    "text.parse_math": False,  # a dollar in a source's name is a dollar
}  # fmt: skip


@contextmanager
def use_style() -> Iterator[None]:
    """Use our style; a letter that no font here has is drawn as a box, without a warning."""
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def render_svg(figure: Figure) -> str:
    """Render a figure as an element for a page."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = out.getvalue()
    return escape_invisible(text[text.index("<svg") :])  # a control in a name would be no XML


def pick_look(number: int) -> tuple[str, str]:
    """Pick colour and marker of the n-th thing in a figure: 36 pairs, distinct with any colour vision."""
    return HUES[number % len(HUES)], MARKERS[(number + number // len(HUES)) % len(MARKERS)]


def wrap_name(name: str, width: int = 22, lines: int = 3) -> str:
    """Wrap a name to several lines, broken after spaces, underscores, slashes and hyphens."""
    width = width // 2 if re.search(r"[\u2e80-\uffef]", name) else width
    parts = textwrap.wrap(re.sub(r"([_/])", r"\1 ", name), width, max_lines=lines, placeholder="…")
    return re.sub(r"([_/]) ", r"\1", "\n".join(parts))


def name_rows(axis: Axes, names: Sequence[str]) -> None:
    """Give an axis a row for each name, the first on top."""
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x", color=PALE, linewidth=0.6)
    axis.set_axisbelow(True)


def create_figure(size: tuple[float, float], *grid: int, **options: Any) -> tuple[Figure, Any]:
    """Create a figure of so many inches, and its axes as `Figure.subplots` gives them."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(*grid, **options)


def create_row_figure(names: Sequence[str], height: float) -> tuple[Figure, Axes]:
    """Create a figure with a row for each name, so many inches each."""
    figure, axis = create_figure((7.2, height * len(names) + 0.9))
    name_rows(axis, [wrap_name(name) for name in names])
    return figure, axis


def create_panels(
    count: int, across: int, size: tuple[float, float], *, sharex: bool = False, sharey: bool = True
) -> tuple[Figure, list[Axes]]:
    """Create a figure of `count` panels, at most `across` in a row, which is `size` inches high, and what is beyond."""
    across = min(count, across)
    down = -(-count // across)
    layout = ConstrainedLayoutEngine(wspace=0.05)  # or the last tick of one panel touches the first of the next
    figure = Figure(figsize=(7.2, size[0] * down + size[1]), layout=layout)
    axes: list[Axes] = figure.subplots(down, across, sharex=sharex, sharey=sharey, squeeze=False).ravel().tolist()
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, axes[:count]


def place_mark(y: float, number: int, count: int, width: float = 0.8) -> float:
    """Place the n-th of some marks in a row, of which they share a part."""
    return y + width * ((number + 0.5) / count - 0.5)


def get_bounds(row: Mapping[str, Any], scale: float = 1, value: str = "value") -> Floats:
    """Return a number and the ends of its interval, `low` and `high`; NaN for what is null or absent."""
    return scale * np.array([row.get(name) for name in (value, "low", "high")], float)


def draw_mark(
    axis: Axes, y: float, row: Mapping[str, Any], look: tuple[str, str], value: str = "value", *, scale: float = 1
) -> None:
    """Draw a number and its interval from `low` to `high`; what is null or absent is left out."""
    colour, marker = look
    middle, low, high = get_bounds(row, scale, value)
    axis.hlines(y, low, high, color=colour, linewidth=1.6)
    axis.plot(middle, y, marker, color=colour, markersize=6.5, markeredgecolor="white")


def list_keys(count: int, linewidth: float = 1.6) -> list[Line2D]:
    """List what a legend shows of the first `count` looks."""
    styles = (pick_look(number) for number in range(count))
    return [Line2D([], [], color=colour, marker=marker, linewidth=linewidth) for colour, marker in styles]


def draw_legend(figure: Figure, handles: Sequence[Line2D | Patch], names: Sequence[str], columns: int = 3) -> None:
    """Draw a legend on top of the panels."""
    figure.legend(handles, names, loc="outside upper center", ncols=columns, frameon=False, fontsize=8)


def write_text(axis: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write a text in the middle of a cell."""
    axis.text(x, y, text, **{"ha": "center", "va": "center", "fontsize": 8, **style})


def draw_numbers(axis: Axes, names: Sequence[str], values: Floats, colours: Colormap, norm: Normalize) -> None:
    """Draw a table of coloured cells with their numbers; NaN stays white."""
    edges = np.arange(len(names) + 1) - 0.5
    axis.pcolormesh(
        edges, edges, np.ma.masked_invalid(values), cmap=colours, norm=norm, edgecolors="white", linewidth=1.5
    )
    axis.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5))
    axis.set_xticks(range(len(names)), names, fontsize=8)
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axis.tick_params(axis="x", labelrotation=90)
    axis.spines[:].set_visible(False)
    for (y, x), value in np.ndenumerate(values):
        write_text(axis, x, y, format_number(value, 2))


def draw_matrix(names: Sequence[str], values: Floats, title: str = "") -> str:
    """Draw a coefficient in [-1, 1] of each two names."""
    with use_style():
        figure, axis = create_figure((0.55 * len(names) + 1.4, 0.36 * len(names) + 1.1))
        draw_numbers(axis, [wrap_name(name) for name in names], values, AROUND, Normalize(-1, 1))
        axis.set_title(title, fontsize=9)
        return render_svg(figure)


def draw_dots(
    rows_by_key: Mapping[tuple[Any, ...], Mapping[str, Any]],
    titles: Mapping[str, str],
    row_names: Mapping[Any, str],
    mark_names: Mapping[Any, str],
    *,
    looks: Mapping[Any, tuple[str, str]] | None = None,
    printed: Mapping[tuple[Any, ...], float] | None = None,
    paper: str = "",
    scale: float = 1,
    chance: Mapping[str, float] | None = None,
    is_shared: bool = False,
    limits: tuple[float, float] | None = None,
    x: str = "",
) -> str:
    """Draw numbers with their intervals, a panel a metric; what the paper prints are ticks of the same colour.

    Rows (value, low, high) are by panel, row and mark, and so are the numbers that the paper prints, which the legend
    calls `paper`. These, and in each panel what numbers are held against (`chance`), are on the scale of the figure;
    the rows are multiplied by `scale`. Marks have colours and markers of their own (`looks`), `x` is the label below
    each panel, and if `is_shared` is set, panels have one scale; `limits` are those that it has at the least.
    """
    printed, chance = printed or {}, chance or {}
    keys_with_numbers = {*rows_by_key, *printed}
    looks = looks or {key: pick_look(i) for i, key in enumerate(mark_names)}
    height = max(0.13 * len(mark_names) + 0.08, 0.3) * len(row_names) + 0.55
    with use_style():
        figure, axes = create_panels(len(titles), 3, (height, 0.5), sharex=is_shared)
        for axis, (panel, title) in zip(axes, titles.items(), strict=True):
            name_rows(axis, [wrap_name(name, 20, 2) for name in row_names.values()])
            for y in range(1, len(row_names)):
                axis.axhline(y - 0.5, color=PALE, linewidth=0.6)
            if panel in chance:
                axis.axvline(chance[panel], **{**DASHED, "color": INK}, zorder=0)
            axis.set_title(title, fontsize=9)
            axis.set_xlabel(x)
            axis.update_datalim([(end, 0) for end in limits or ()], updatey=False)
            axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
            for y, row in enumerate(row_names):
                marks = [mark for mark in mark_names if (panel, row, mark) in keys_with_numbers]
                for i, mark in enumerate(marks):
                    key, y_of_mark = (panel, row, mark), place_mark(y, i, len(marks))
                    axis.plot(printed.get(key, np.nan), y_of_mark, color=looks[mark][0], **TICK)
                    draw_mark(axis, y_of_mark, rows_by_key.get(key, {}), looks[mark], scale=scale)
        keys = [Line2D([], [], color=colour, marker=marker, linewidth=1.6) for colour, marker in looks.values()]
        names = [wrap_name(name, 24, 2) for name in mark_names.values()]
        if any(panel in titles and row in row_names and mark in mark_names for panel, row, mark in printed):
            keys, names = [*keys, Line2D([], [], color=INK, **TICK)], [*names, paper]
        draw_legend(figure, keys, names, len(names) if len(names) < 5 else 3)  # so that they fit in the figure
        return render_svg(figure)


def write_note(axis: Axes, y: float, text: str, colour: str = INK) -> None:
    """Write a note right of a row."""
    axis.text(1.01, y, text, transform=axis.get_yaxis_transform(), va="center", fontsize=8, color=colour)


def draw_strips(groups: Mapping[str, Mapping[str, Mapping[int, float]]], x: str) -> str:
    """Draw strips of each row and label by their quantiles: the middle 90 % a line, half a bar, the median a mark."""
    labels = [*dict.fromkeys(label for row in groups.values() for label in row)]
    with use_style():
        figure, axis = create_row_figure([*groups], 0.18 * len(labels) + 0.2)
        for y, row in enumerate(groups.values()):
            for i, (label, quantiles) in enumerate(row.items()):
                height = place_mark(y, i, len(row), 0.7)
                colour, marker = pick_look(labels.index(label))
                lowest, low, middle, high, highest = (quantiles.get(share, np.nan) for share in SHARES)
                axis.hlines(height, lowest, highest, color=colour, linewidth=1.4)
                axis.hlines(height, low, high, color=colour, linewidth=6, alpha=0.45)
                axis.plot(middle, height, marker, color=colour, markersize=6.5, markeredgecolor="white")
        axis.set_xlabel(f"{x}; line: middle 90 %, bar: middle half, mark: median")
        if len(labels) > 1:
            draw_legend(figure, list_keys(len(labels)), labels, 4)
        return render_svg(figure)


def draw_distributions(scores: pl.DataFrame) -> str:
    """Draw the density of implicitness by source, one row each, medians marked. Columns: source, implicitness."""
    sources = sorted(scores["source"].unique())
    with use_style():
        figure, axes = create_figure((7.2, 0.62 * len(sources) + 0.9), len(sources), sharex=True, squeeze=False)
        edges = np.linspace(0, 2, 41)
        for axis, source in zip(axes[:, 0], sources, strict=True):
            values = scores.filter(source=source)["implicitness"].to_numpy()
            heights, _ = np.histogram(values, edges, density=True)
            axis.stairs(heights, edges, fill=True, color=PALE)
            axis.stairs(heights, edges, color=ACCENT, linewidth=1)
            axis.axvline(float(np.median(values)), color=WARM, linewidth=1.4)
            axis.set_yticks([])
            axis.spines["left"].set_visible(False)
            axis.set_ylabel(f"{source}\nn={len(values):,}", rotation=0, ha="right", va="center", labelpad=6)
        axes[-1, 0].set_xlim(0, 2)
        axes[-1, 0].set_xlabel("implicitness, from 0 (fully explicit) to 2; line: median")
        return render_svg(figure)


def draw_funnel(rows: pl.DataFrame) -> str:
    """Draw kept and dropped rows by source as shares. Columns: source, reason (null = kept), row_count."""
    sources = sorted(rows["source"].unique(), reverse=True)
    reasons: Sequence[str | None] = [None, *sorted(rows["reason"].drop_nulls().unique())]
    palette = [ACCENT, "#c1666b", "#e0a458", "#8f9a5b", "#7b6d8d", "#4a7c7a", "#b08ea2", "#a3a3a3", "#6b4e3d"]

    def count(frame: pl.DataFrame) -> Floats:
        return np.array([frame.filter(source=source)["row_count"].sum() for source in sources], float)

    with use_style():
        figure, axis = create_figure((7.2, 0.36 * len(sources) + 1.3))
        offsets, totals = np.zeros(len(sources)), count(rows)
        for position, reason in enumerate(reasons):
            counts = count(rows.filter(pl.col("reason").eq_missing(reason)))
            shares = 100 * counts / np.maximum(totals, 1)
            name = "kept" if reason is None else reason.replace("_", " ")
            axis.barh(sources, shares, left=offsets, color=palette[position % len(palette)], height=0.62, label=name)
            offsets += shares
        for y, total in enumerate(totals):
            axis.text(101, y, f"{int(total):,} read", va="center", fontsize=8)
        axis.set_xlim(0, 100)
        axis.set_xlabel("% of rows read")
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
        return render_svg(figure)


def draw_changes(rows: Sequence[Mapping[str, Any]]) -> str:
    """Draw changes (name, change, low, high, is_clear) around 0: rises red, falls blue, unclear ones grey."""
    with use_style():
        figure, axis = create_figure((4.8, 0.3 * len(rows) + 0.9))  # a phone shows it whole
        name_rows(axis, [wrap_name(row["name"]) for row in rows])
        axis.axvline(0, **DASHED)
        for y, row in enumerate(rows):
            colour = GREY if not row["is_clear"] else WARM if row["change"] > 0 else ACCENT
            draw_mark(axis, y, row, (colour, "o"), "change")
        axis.set_xlabel("change of the mean implicitness; line: interval of 95 %")
        return render_svg(figure)


HEALTH_TITLES = {"kept_count": "rows kept", "seconds": "seconds", "cost_usd": "USD"}
"""Columns of the figure with their titles; one without a value is left out."""


def format_short(count: float) -> str:
    """Format a count in about four characters: 940, 1.2k, 53k, 2.1M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= 0.9995 * size:  # as rounded
            return f"{count / size:.1f}{unit}" if count < 9.95 * size else f"{count / size:.0f}{unit}"
    return f"{count:.0f}"


def draw_trends(rows: pl.DataFrame, days: Sequence[date], steps: Sequence[str]) -> str:
    """Draw bars by day of rows of `pipeline_health`, a row a step, each with its own scale; empty without any value."""
    columns = [name for name in HEALTH_TITLES if rows[name].count()]
    if not columns:
        return ""
    colours = dict(zip(HEALTH_TITLES, (ACCENT, HUES[2], HUES[1]), strict=True))
    with use_style():
        size = (7.2, 0.55 * len(steps) + 0.8)
        figure, axes = create_figure(size, len(steps), len(columns), sharex=True, squeeze=False)
        for line, step in zip(axes, steps, strict=True):
            rows_by_day = {row["day"]: row for row in rows.filter(step=step).to_dicts()}
            for axis, name in zip(line, columns, strict=True):
                heights = np.array([rows_by_day.get(day, {}).get(name) for day in days], float)
                axis.bar(range(len(days)), heights, color=colours[name], width=0.7)
                axis.yaxis.set_major_locator(MaxNLocator(2))
                if name == "kept_count":
                    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_short(value)))
                axis.set_ylim(0, max(1e-6, 1.15 * np.nanmax(heights, initial=0)))
                axis.tick_params(labelsize=7, length=0)
                if not np.isfinite(heights).any():
                    axis.set_yticks([])
                    axis.text(0.5, 0.5, "–", transform=axis.transAxes, ha="center", va="center", color=GREY)
            line[0].set_ylabel(wrap_name(step, 16), rotation=0, ha="right", va="center", labelpad=6, fontsize=8)
        for axis, name in zip(axes[0], columns, strict=True):
            axis.set_title(HEALTH_TITLES[name], fontsize=8, loc="left")
        ends = sorted({0, len(days) - 1})
        for axis in axes[-1]:
            axis.set_xlim(-0.6, len(days) - 0.4)
            axis.set_xticks(ends, [f"{days[index]:%d %b}" for index in ends])
        figure.align_ylabels(axes[:, 0])
        return render_svg(figure)
