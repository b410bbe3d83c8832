"""Figures of a labelling project, as inline SVG: what became of comments, how raters agree, what labels look like.

In: frames of `metrics.labelling.agreement`, `agreement_study`, `label_analysis`, `predictability`, with a row at least.
What is null is left out. Nothing is told by colour alone: there are markers, hatches and numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from pipeline.label.schema import FIELDS, TAGS, value_name
from pipeline.papers.csd import KAPPA_HIGH, TABLE_2, TAE_HIGH
from pipeline.report.figures import (
    ACCENT,
    GREY,
    HUES,
    INK,
    LIGHT,
    PALE,
    Floats,
    beside,
    drawing,
    grid,
    look,
    named_rows,
    svg,
)

KAPPAS = {
    "fleiss": "Fleiss' κ, three raters",
    "fleiss_four": "Fleiss' κ, all four",
    "cohen": "Cohen's κ, mean of pairs",
    "krippendorff": "Krippendorff's α",
}
TAES = {"tae": "TAE (equation 3)", "tae_mean_of_records": "mean of the records' TAE"}
CURVES = {
    "kappa": "Cohen's κ with the truth",
    "fleiss": "Fleiss' κ of all four",
    "agreement": "agreement",
    "tae": "TAE",
}
PAPER = "printed in the paper, of its own data"
_AROUND = LinearSegmentedColormap.from_list("around_light", ["#e0aeaa", "#f7f9fa", "#8fb9d1"])  # ink is readable on it
_TAGS = ((ACCENT, ""), ("#e9eef2", "////"), (PALE, ""))  # colour and hatch of yes, unsure, no
_FAINT = "#9aa5b1"
_STAR: dict[str, Any] = {"marker": "*", "color": "white", "markeredgecolor": INK, "markersize": 10}  # the paper's
_ENDS = ("", "_low", "_high")
_TIGHT = 0.05  # share of a bar that has room for a number


def fields_of(frame: pl.DataFrame, column: str = "field") -> list[str]:
    """The fields in a column, in the schema's order."""
    there = set(frame[column])
    return [field for field in FIELDS if field in there]


def matrix_of(pairs: pl.DataFrame, value: str) -> Floats:
    """A value of each pair (a, b) as [a, b], in the schema's order; NaN where it is null or absent."""
    known = {(a, b): np.nan if v is None else v for a, b, v in pairs.select("a", "b", value).iter_rows()}
    fields = fields_of(pairs, "a")
    return np.array([[known.get((a, b), np.nan) for b in fields] for a in fields])


def funnel(steps: pl.DataFrame) -> str:
    """What each step kept and dropped, as shares of what it read. Columns: step, read_count, kept_count."""
    read, kept = (steps[name].to_numpy().astype(float) for name in ("read_count", "kept_count"))
    share = 100 * np.divide(kept, read, out=np.zeros(len(read)), where=read > 0)
    whole = np.where(read > 0, 100, 0)
    with drawing():
        figure, axis = named_rows(steps["step"].to_list(), 0.5)
        at = range(steps.height)
        axis.barh(at, share, color=ACCENT, height=0.55)
        axis.barh(
            at,
            whole - share,
            left=share,
            height=0.55,
            facecolor=_TAGS[1][0],
            hatch="////",
            edgecolor=_FAINT,
            linewidth=0,
        )
        for y, (n, left) in enumerate(zip(read, kept, strict=True)):
            beside(axis, y, f"{left:,.0f} of {n:,.0f}")
        axis.set(xlim=(0, 100), xlabel="% of what the step read")
        keys = [Patch(color=ACCENT), Patch(facecolor=_TAGS[1][0], hatch="////", edgecolor=_FAINT, linewidth=0)]
        _legend(figure, keys, ["kept", "left out"])
        return svg(figure)


def bars(names: Sequence[str], counts: Sequence[int], what: str) -> str:
    """A bar a name, the count beside it; `what` is counted."""
    with drawing():
        figure, axis = named_rows(names, 0.4)
        axis.barh(range(len(names)), counts, color=ACCENT, height=0.55)
        for y, count in enumerate(counts):
            beside(axis, y, f"{count:,}")
        axis.set(xlim=(0, max(*counts, 1)), xlabel=what)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        return svg(figure)


def kappas(agreement: pl.DataFrame) -> str:
    """Kappa of three and four raters, alpha and the paper's kappa by field, with 95 % intervals."""
    paper = {field: row.kappa for field, row in TABLE_2.items()}
    return _measures(
        agreement,
        KAPPAS,
        paper,
        KAPPA_HIGH,
        "kappa or alpha with 95 % interval; 0: no more than by chance; n: comments with all four labels",
    )


def taes(agreement: pl.DataFrame) -> str:
    """TAE in both readings and the paper's by field, with 95 % intervals; what no labels can reach is hatched."""
    paper = {field: row.tae for field, row in TABLE_2.items()}
    return _measures(
        agreement, TAES, paper, TAE_HIGH, "TAE with 95 % interval; hatched: no labels can be so low; n: comments"
    )


def _measures(
    agreement: pl.DataFrame, measures: Mapping[str, str], paper: Mapping[str, float], line: float, what: str
) -> str:
    """A row a field: each measure with its interval, the paper's number, a thin line at its threshold."""
    rows = {row["field"]: row for row in agreement.iter_rows(named=True)}
    names = fields_of(agreement)
    with drawing():
        figure, axis = named_rows(names, 0.16 * (len(measures) + 1) + 0.12)
        axis.axvline(line, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
        for y, name in enumerate(names):
            row = rows[name]
            ends = [row[f"{measure}{end}"] for measure in measures for end in ("", "_low")]
            axis.set_xlim(min(axis.get_xlim()[0], 0, *(v - 0.03 for v in ends if v is not None)), 1.03)
            for i, measure in enumerate(measures):
                colour, marker = look(i)
                at = y + 0.82 * ((i + 0.5) / (len(measures) + 1) - 0.5)
                value, low, high = (np.nan if row[measure + end] is None else row[measure + end] for end in _ENDS)
                axis.hlines(at, low, high, color=colour, linewidth=1.6)
                axis.plot(value, at, marker, color=colour, markersize=6.5, markeredgecolor="white")
            at = y + 0.82 * ((len(measures) + 0.5) / (len(measures) + 1) - 0.5)
            axis.plot(paper.get(name, np.nan), at, **_STAR)
            if "tae" in measures:
                axis.barh(y, row["tae_min"], height=0.86, color="none", edgecolor=_FAINT, hatch="////", linewidth=0)
            if y:
                axis.axhline(y - 0.5, color=PALE, linewidth=0.6)
            beside(axis, y, f"n = {row['n_four']:,}")
        axis.text(line, -0.55, f"{line:g}", ha="center", va="bottom", fontsize=8, color=GREY)
        axis.set_xlabel(what)
        looks = [look(i) for i in range(len(measures))]
        keys = [Line2D([], [], color=colour, marker=marker, linewidth=1.6) for colour, marker in looks]
        _legend(figure, [*keys, Line2D([], [], linestyle="", **_STAR)], [*measures.values(), PAPER], 3)
        return svg(figure)


def predictability(found: pl.DataFrame) -> str:
    """Macro F1 of the SVM, of the commonest class, and of the paper by field."""
    rows = {row["field"]: row for row in found.iter_rows(named=True)}
    names = fields_of(found)
    look_of: dict[str, dict[str, Any]] = {"svm_f1": {"marker": "o", "color": ACCENT, "markersize": 8},
               "majority_f1": {"marker": "|", "color": HUES[1], "markersize": 13, "markeredgewidth": 2.5}}  # fmt: skip
    with drawing():
        figure, axis = named_rows(names, 0.4)
        for y, name in enumerate(names):
            ours, least = (np.nan if rows[name][key] is None else rows[name][key] for key in look_of)
            axis.hlines(y, least, ours, color=ACCENT, linewidth=1.2)
            for value, style in zip((ours, least), look_of.values(), strict=True):
                axis.plot(value, y, linestyle="", **style)
            if name in TABLE_2:
                axis.plot(TABLE_2[name].svm_f1, y, **_STAR)
            beside(axis, y, f"n = {rows[name]['row_count']:,}")
        axis.set(xlim=(0, 1), xlabel="macro F1, mean of the folds; n: comments")
        keys = [Line2D([], [], linestyle="", **style) for style in (*look_of.values(), _STAR)]
        _legend(figure, keys, ["linear SVM on words", "always the commonest class", PAPER], 3)
        return svg(figure)


def ratios(found: pl.DataFrame) -> str:
    """Figure 1: shares of the classes of each field, stacked; emotions by number, as they are nine."""
    share = {(field, value): ratio or 0 for field, value, ratio in found.select("field", "value", "ratio").iter_rows()}
    names = fields_of(found)
    tags = [name for name in names if FIELDS[name].values == TAGS]
    many = [name for name in names if FIELDS[name].values != TAGS]
    with drawing():
        figure, axis = named_rows([*tags, *many], 0.42)
        for y, name in enumerate([*tags, *many]):
            left = 0.0
            for i, value in enumerate(FIELDS[name].values):
                wide = 100 * share.get((name, value), 0)
                colour, hatch = _TAGS[i] if name in tags else ((ACCENT, PALE)[i % 2], "")
                axis.barh(
                    y, wide, left=left, height=0.62, facecolor=colour, hatch=hatch,
                    edgecolor=_FAINT if hatch else "white", linewidth=0 if hatch else 0.8,
                )  # fmt: skip
                text = f"{wide:.0f} %" if name in tags else str(i + 1)
                if wide > 100 * (_TIGHT if name in tags else _TIGHT / 3):
                    box = {"facecolor": colour, "edgecolor": "none", "pad": 1} if hatch else None
                    ink = "white" if colour == ACCENT else INK
                    axis.text(left + wide / 2, y, text, ha="center", va="center", fontsize=8, color=ink, bbox=box)
                left += wide
        axis.set(xlim=(0, 100), xlabel="% of the comments that have a label")
        keys = [
            Patch(facecolor=colour, hatch=hatch, edgecolor=_FAINT if hatch else "none", linewidth=0)
            for colour, hatch in _TAGS
        ]
        _legend(figure, keys, ["yes (sentiment: positive)", "unsure (neutral)", "no (negative)"], 3)
        if many:
            told = [
                f"{i} {value_name(name, value, 'en')} {100 * share.get((name, value), 0):.1f} %"
                for name in many
                for i, value in enumerate(FIELDS[name].values, 1)
            ]
            lines = ["   ".join(told[i : i + 5]) for i in range(0, len(told), 5)]
            figure.supxlabel(f"{many[0]}: " + "\n".join(lines), fontsize=8)
        return svg(figure)


def overlaps(found: pl.DataFrame) -> str:
    """Figure 2: the share of one field's instances that are another's, in both directions, and Jaccard's index."""
    names = fields_of(found, "a")
    panels = {
        "overlap": "share of the row's instances\nthat are the column's too",
        "jaccard": "share of all that are either\nthat are both (Jaccard)",
    }
    with drawing():
        figure = Figure(figsize=(7.2, 0.33 * len(names) + 1.5), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for axis, (column, title) in zip(axes, panels.items(), strict=True):
            _numbered(axis, names, matrix_of(found, column), LIGHT, Normalize(0, 1))
            axis.set_xlabel(title)
        axes[1].tick_params(labelleft=False)
        return svg(figure)


def correlations(found: pl.DataFrame) -> str:
    """Figure 3: Spearman's coefficient of each two fields."""
    names = fields_of(found, "a")
    with drawing():
        figure = Figure(figsize=(0.55 * len(names) + 1.4, 0.36 * len(names) + 1.1), layout="constrained")
        _numbered(figure.subplots(), names, matrix_of(found, "spearman"), _AROUND, Normalize(-1, 1))
        return svg(figure)


def _numbered(axis: Axes, names: Sequence[str], values: Floats, colours: Colormap, norm: Normalize) -> None:
    """A square of coloured cells, each with its number, a dash where there is none."""
    grid(axis, names, names, values, colours, norm)
    axis.tick_params(axis="x", labelrotation=90)
    for (y, x), value in np.ndenumerate(values):
        text = "–" if np.isnan(value) else f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
        axis.text(x, y, text, ha="center", va="center", fontsize=8)


def study(found: pl.DataFrame) -> str:
    """Figure 4: what each measure makes of simulated raters, by their accuracy; a line a positive rate."""
    kinds, rates = (found[name].unique().sort().to_list() for name in ("classes", "positive_rate"))
    lines = {"kappa": KAPPA_HIGH, "fleiss": KAPPA_HIGH, "tae": TAE_HIGH}
    with drawing():
        figure = Figure(figsize=(7.2, 2.2 * len(kinds) + 0.7), layout="constrained")
        axes = figure.subplots(len(kinds), len(CURVES), sharex=True, sharey=True, squeeze=False)
        for across, kind in zip(axes, kinds, strict=True):
            for axis, measure in zip(across, CURVES, strict=True):
                if measure in lines:
                    axis.axhline(lines[measure], color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
                for i, rate in enumerate(rates):
                    part = found.filter((pl.col("classes") == kind) & (pl.col("positive_rate") == rate)).sort(
                        "accuracy"
                    )
                    colour, marker = look(i)
                    # markers take turns, so that lines on top of each other are seen to be several
                    axis.plot(
                        part["accuracy"], part[measure].cast(pl.Float64).to_numpy(), color=colour, marker=marker,
                        markersize=4.5, markeredgecolor="white", markeredgewidth=0.4, linewidth=1.2,
                        markevery=(min(i, part.height - 1), max(len(rates), 1)),
                    )  # fmt: skip
                axis.grid(color=PALE, linewidth=0.6)
            across[0].set_ylabel(f"{kind} classes")
        for axis, title in zip(axes[0], CURVES.values(), strict=True):
            axis.set_title(title.replace(" with ", "\nwith ").replace(" of ", "\nof "), fontsize=9)
        lowest = found.select(pl.min_horizontal(pl.col(list(CURVES)).min())).item() or 0
        axes[0, 0].set_ylim(min(lowest, 0) - 0.05, 1.05)
        figure.supxlabel("how often a rater is right; dashed: the paper's 0.6 of κ and 0.53 of TAE", fontsize=9)
        looks = [look(i) for i in range(len(rates))]
        keys = [Line2D([], [], color=colour, marker=marker, linewidth=1.2) for colour, marker in looks]
        _legend(figure, keys, [f"{100 * rate:g} % positive" for rate in rates], 5)
        return svg(figure)


def _legend(figure: Figure, keys: Sequence[Line2D | Patch], names: Sequence[str], columns: int = 2) -> None:
    figure.legend(keys, names, loc="outside upper center", ncols=columns, frameon=False, fontsize=8)
