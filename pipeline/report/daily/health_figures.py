"""The figure of the health page: what each step did and took, day by day."""

from collections.abc import Sequence
from datetime import date

import numpy as np
import polars as pl
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pipeline.report.figures import ACCENT, GREY, HUES, create_figure, render_svg, use_style, wrap_name

TITLES = {"kept_count": "rows kept", "seconds": "seconds", "cost_usd": "USD"}
"""Columns of the figure with their titles; one without a value is left out."""


def format_short(count: float) -> str:
    """Format a count in about four characters: 940, 1.2k, 53k, 2.1M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= 0.9995 * size:  # as rounded
            return f"{count / size:.1f}{unit}" if count < 9.95 * size else f"{count / size:.0f}{unit}"
    return f"{count:.0f}"


def draw_trends(rows: pl.DataFrame, days: Sequence[date], steps: Sequence[str]) -> str:
    """Draw bars by day of rows of `pipeline_health`, a row a step, each with its own scale; empty without any value."""
    columns = [name for name in TITLES if rows[name].count()]
    if not columns:
        return ""
    colours = dict(zip(TITLES, (ACCENT, HUES[2], HUES[1]), strict=True))
    with use_style():
        size = (7.2, 0.55 * len(steps) + 0.8)
        figure, axes = create_figure(size, len(steps), len(columns), sharex=True, squeeze=False)
        for line, step in zip(axes, steps, strict=True):
            rows_by_day = {row["day"]: row for row in rows.filter(step=step).to_dicts()}
            for axis, name in zip(line, columns, strict=True):
                values = [rows_by_day[day][name] if day in rows_by_day else None for day in days]
                heights = np.array([np.nan if value is None else float(value) for value in values])
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
            axis.set_title(TITLES[name], fontsize=8, loc="left")
        ends = sorted({0, len(days) - 1})
        for axis in axes[-1]:
            axis.set_xlim(-0.6, len(days) - 0.4)
            axis.set_xticks(ends, [f"{days[index]:%d %b}" for index in ends])
        figure.align_ylabels(axes[:, 0])
        return render_svg(figure)
