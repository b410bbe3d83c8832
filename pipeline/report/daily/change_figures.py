"""The figure of the first screen: the change of each source since last week, with its interval."""

from collections.abc import Sequence
from typing import Any

from pipeline.report.figures import ACCENT, DASHED, GREY, WARM, create_row_figure, draw_mark, render_svg, use_style


def draw_changes(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """Draw changes (change, low, high, is_clear) around 0: rises red, falls blue, and those that are not clear grey."""
    with use_style():
        figure, axis = create_row_figure(names, 0.36)
        axis.axvline(0, **DASHED)
        for y, row in enumerate(rows):
            colour = GREY if not row["is_clear"] else WARM if row["change"] > 0 else ACCENT
            draw_mark(axis, y, row, (colour, "o"), "change")
        axis.set_xlabel("change of the mean implicitness since the same days of last week; line: interval of 95 %")
        return render_svg(figure)
