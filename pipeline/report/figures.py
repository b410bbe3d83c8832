"""Figures as inline SVG, the same rows the same bytes: what all of them share, and those of the day's report."""

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from pipeline.io.visible import visible

Floats = npt.NDArray[np.floating]

INK, ACCENT, PALE, WARM = "#1f2933", "#2a6f97", "#c9d6df", "#c1666b"
GREY = "#7b8794"
HUES = (ACCENT, "#d1682f", "#3c9d7b", "#b0518f", "#c79a12", INK)
MARKERS = "osD^vP"
LIGHT = LinearSegmentedColormap.from_list("light", ["#f4f7f9", "#8fb9d1"])  # ink stays readable on it
_CHINESE = ("Noto Sans CJK SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei", "WenQuanYi Micro Hei", "SimHei")
_INSTALLED = set(font_manager.get_font_names())
_STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans", *[name for name in _CHINESE if name in _INSTALLED][:1]], "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": "#9aa5b1", "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
    "svg.fonttype": "path", "svg.hashsalt": "undertone", "text.color": INK,
    "text.parse_math": False,  # a dollar in a source's name is a dollar
}  # fmt: skip


@contextmanager
def drawing() -> Iterator[None]:
    """Our style; a letter that no font here has is drawn as a box, without a warning."""
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def svg(figure: Figure) -> str:
    """The figure as an element for a page."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = out.getvalue()
    return visible(text[text.index("<svg") :])  # a control in a name would be no XML


def look(number: int) -> tuple[str, str]:
    """Colour and marker of the n-th thing in a figure: 36 pairs, told apart with any colour vision."""
    return HUES[number % len(HUES)], MARKERS[(number + number // len(HUES)) % len(MARKERS)]


def wrapped(name: str, width: int = 22, lines: int = 3) -> str:
    """A name on several lines, broken after spaces, underscores, slashes and hyphens."""
    width = width // 2 if re.search(r"[\u2e80-\uffef]", name) else width
    broken = textwrap.wrap(re.sub(r"([_/])", r"\1 ", name), width, max_lines=lines, placeholder="…")
    return re.sub(r"([_/]) ", r"\1", "\n".join(broken))


def named_rows(names: Sequence[str], height: float) -> tuple[Figure, Axes]:
    """A figure with a row for each name, the first on top, so many inches each."""
    figure = Figure(figsize=(7.2, height * len(names) + 0.9), layout="constrained")
    axis = figure.subplots()
    axis.set_yticks(range(len(names)), [wrapped(name) for name in names], fontsize=8)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x", color=PALE, linewidth=0.6)
    axis.set_axisbelow(True)
    return figure, axis


def beside(axis: Axes, y: float, text: str, colour: str = INK) -> None:
    """A note right of a row."""
    axis.text(1.01, y, text, transform=axis.get_yaxis_transform(), va="center", fontsize=8, color=colour)


def grid(
    axis: Axes, rows: Sequence[str], columns: Sequence[str], values: Floats, colours: Colormap, norm: Normalize
) -> None:
    """A table of coloured cells with names and no text in them yet; NaN stays white."""
    height, width = values.shape
    edges = (np.arange(size + 1) - 0.5 for size in (width, height))
    cells = np.ma.masked_invalid(values)
    axis.pcolormesh(*edges, cells, cmap=colours, norm=norm, edgecolors="white", linewidth=1.5)
    axis.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    axis.set_xticks(range(width), columns, fontsize=8)
    axis.set_yticks(range(height), rows, fontsize=8)
    axis.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axis.spines[:].set_visible(False)


def distributions(scores: pl.DataFrame, bins: int = 40) -> str:
    """Density of implicitness by source, one row each, medians marked. Columns: source, implicitness."""
    sources = sorted(scores["source"].unique())
    with drawing():
        figure = Figure(figsize=(7.2, 0.62 * len(sources) + 0.9), layout="constrained")
        axes = np.atleast_1d(figure.subplots(len(sources), sharex=True))
        edges = np.linspace(0, 2, bins + 1)
        for axis, source in zip(axes, sources, strict=True):
            values = scores.filter(pl.col("source") == source)["implicitness"].to_numpy()
            heights, _ = np.histogram(values, edges, density=True)
            axis.stairs(heights, edges, fill=True, color=PALE)
            axis.stairs(heights, edges, color=ACCENT, linewidth=1)
            axis.axvline(float(np.median(values)), color=WARM, linewidth=1.4)
            axis.set_yticks([])
            axis.spines["left"].set_visible(False)
            axis.set_ylabel(f"{source}\nn={len(values):,}", rotation=0, ha="right", va="center", labelpad=6)
        axes[-1].set_xlim(0, 2)
        axes[-1].set_xlabel("implicitness from 0 (all is said) to 2; the line is the median")
        return svg(figure)


def funnel(rows: pl.DataFrame) -> str:
    """Kept and dropped rows by source as shares of what was read. Columns: source, reason (null = kept), row_count."""
    sources = sorted(rows["source"].unique(), reverse=True)
    reasons: Sequence[str | None] = [None, *sorted(rows["reason"].drop_nulls().unique())]
    palette = [ACCENT, "#c1666b", "#e0a458", "#8f9a5b", "#7b6d8d", "#4a7c7a", "#b08ea2", "#a3a3a3", "#6b4e3d"]
    with drawing():
        figure = Figure(figsize=(7.2, 0.36 * len(sources) + 1.3), layout="constrained")
        axis = figure.subplots()
        left = np.zeros(len(sources))
        totals = np.array([rows.filter(pl.col("source") == s)["row_count"].sum() for s in sources], float)
        for i, reason in enumerate(reasons):
            mine = rows.filter(pl.col("reason").is_null() if reason is None else pl.col("reason") == reason)
            counts = np.array([mine.filter(pl.col("source") == s)["row_count"].sum() for s in sources], float)
            shares = 100 * counts / np.maximum(totals, 1)
            name = "kept" if reason is None else reason.replace("_", " ")
            axis.barh(sources, shares, left=left, color=palette[i % len(palette)], height=0.62, label=name)
            left += shares
        for y, total in enumerate(totals):
            axis.text(101, y, f"{int(total):,} read", va="center", fontsize=8)
        axis.set_xlim(0, 100)
        axis.set_xlabel("% of rows read")
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
        return svg(figure)
