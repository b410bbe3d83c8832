"""Figures as inline SVG: the same rows give the same bytes."""

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.figure import Figure

INK, ACCENT, PALE, WARM = "#1f2933", "#2a6f97", "#c9d6df", "#c1666b"
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": "#9aa5b1", "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
    "svg.fonttype": "path", "svg.hashsalt": "undertone", "text.color": INK,
}  # fmt: skip


def _svg(figure: Figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = out.getvalue()
    return text[text.index("<svg") :]


def distributions(scores: pl.DataFrame, bins: int = 40) -> str:
    """Density of implicitness by source, one row each, medians marked. Columns: source, implicitness."""
    sources = sorted(scores["source"].unique())
    with mpl.rc_context(_STYLE):
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
        return _svg(figure)


def funnel(rows: pl.DataFrame) -> str:
    """Kept and dropped rows by source as shares of what was read. Columns: source, reason (null = kept), row_count."""
    sources = sorted(rows["source"].unique(), reverse=True)
    reasons: Sequence[str | None] = [None, *sorted(rows["reason"].drop_nulls().unique())]
    palette = [ACCENT, "#c1666b", "#e0a458", "#8f9a5b", "#7b6d8d", "#4a7c7a", "#b08ea2", "#a3a3a3", "#6b4e3d"]
    with mpl.rc_context(_STYLE):
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
        return _svg(figure)
