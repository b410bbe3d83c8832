"""Figures of a labelling project: what became of comments, how raters agree, what labels look like."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.colors import Normalize
from matplotlib.patches import Patch

from pipeline.label.schema import FIELDS, TAGS, get_value_name
from pipeline.papers.csd import KAPPA_HIGH, TABLE_2, TAE_HIGH
from pipeline.report import figures as plot

KAPPAS = {
    "fleiss": "Fleiss' κ, three raters", "fleiss_last": "Fleiss' κ, deciding round",
    "fleiss_four": "Fleiss' κ, all four", "cohen": "Cohen's κ, mean of pairs", "krippendorff": "Krippendorff's α",
}  # fmt: skip
TAES = {"tae": "TAE (equation 3)", "tae_mean_of_records": "mean TAE of the records"}
CURVES = {
    "kappa": "Cohen's κ with the truth", "fleiss": "Fleiss' κ of all four", "agreement": "agreement", "tae": "TAE",
}  # fmt: skip
PAPER = "printed in the paper, on its own data"
_TAGS = ((plot.ACCENT, ""), (plot.HATCHED["facecolor"], plot.HATCHED["hatch"]), (plot.PALE, ""))
"""Colour and hatch of yes, unsure, no."""
_TIGHT = 5  # percent of a bar that has room for a number


def list_fields(frame: pl.DataFrame, column: str = "field") -> list[str]:
    """List the fields in a column, in the schema's order."""
    return sorted(set(frame[column]), key=list(FIELDS).index)


def build_matrix(pairs: pl.DataFrame, value: str) -> plot.Floats:
    """Build the matrix [a, b] of a value of each pair (a, b), in the schema's order; NaN where it is null or absent."""
    by_pair, fields = {row[:2]: row[2] for row in pairs.select("a", "b", value).iter_rows()}, list_fields(pairs, "a")
    return np.array([[by_pair.get((a, b)) for b in fields] for a in fields], float)


def draw_agreement(agreement: pl.DataFrame, measures: Mapping[str, str]) -> str:
    """Draw `KAPPAS` or `TAES` by field, the paper's numbers, and a line at its threshold."""
    is_tae = "tae" in measures
    threshold, printed_as = (TAE_HIGH, "tae") if is_tae else (KAPPA_HIGH, "fleiss_four")
    ends = {"value": "", "low": "_low", "high": "_high"}
    rows = {
        ("", row["field"], measure): {name: row[measure + end] for name, end in ends.items()}
        for row in agreement.iter_rows(named=True)
        for measure in measures
    }
    counts = dict(agreement.select("field", "n_four").iter_rows())
    return plot.draw_dots(
        rows,
        {"": ""},
        {field: f"{field}, n = {counts[field]:,}" for field in list_fields(agreement)},
        measures,
        printed={("", field, printed_as): row.tae if is_tae else row.kappa for field, row in TABLE_2.items()},
        paper=PAPER,
        chance={"": threshold},
        x=f"{'TAE' if is_tae else 'κ or α'} with 95 % interval; dashed: {threshold:g}; n: comments with four labels",
    )


def draw_ratios(ratios: pl.DataFrame) -> str:
    """Draw figure 1: shares of the classes of each field, stacked; emotions by number, as they are nine."""
    shares = {(row["field"], row["value"]): 100 * (row["ratio"] or 0) for row in ratios.iter_rows(named=True)}
    names = sorted(list_fields(ratios), key=lambda name: FIELDS[name].values != TAGS)
    with plot.use_style():
        figure, axis = plot.create_row_figure(names, 0.42)
        for y, name in enumerate(names):
            offset, is_tag = 0.0, FIELDS[name].values == TAGS
            for i, value in enumerate(FIELDS[name].values):
                width = shares.get((name, value), 0)
                colour, hatch = _TAGS[i] if is_tag else ((plot.ACCENT, plot.PALE)[i % 2], "")
                edge: dict[str, Any] = (
                    {"edgecolor": plot.FAINT, "linewidth": 0} if hatch else {"edgecolor": "white", "linewidth": 0.8}
                )
                axis.barh(y, width, left=offset, height=0.62, facecolor=colour, hatch=hatch, **edge)
                if width > (_TIGHT if is_tag else _TIGHT / 3):
                    box = {"facecolor": colour, "edgecolor": "none", "pad": 1} if hatch else None
                    ink = "white" if colour == plot.ACCENT else plot.INK
                    text = f"{width:.0f} %" if is_tag else str(i + 1)
                    plot.write_text(axis, offset + width / 2, y, text, color=ink, bbox=box)
                offset += width
        axis.set(xlim=(0, 100), xlabel="% of the comments that have a label")
        edges = (plot.FAINT if hatch else "none" for _, hatch in _TAGS)
        keys = [Patch(facecolor=c, hatch=h, edgecolor=e, linewidth=0) for (c, h), e in zip(_TAGS, edges, strict=True)]
        plot.draw_legend(figure, keys, ["yes (sentiment: positive)", "unsure (neutral)", "no (negative)"])
        if other_fields := [name for name in names if FIELDS[name].values != TAGS]:
            class_texts = [
                f"{i} {get_value_name(name, value, 'en')} {shares.get((name, value), 0):.1f} %"
                for name in other_fields
                for i, value in enumerate(FIELDS[name].values, 1)
            ]
            lines = ["   ".join(class_texts[i : i + 5]) for i in range(0, len(class_texts), 5)]
            figure.supxlabel(f"{other_fields[0]}: " + "\n".join(lines), fontsize=8)
        return plot.render_svg(figure)


def draw_overlaps(overlaps: pl.DataFrame) -> str:
    """Draw figure 2: the share of one field's instances that are another's, both ways, and Jaccard's index."""
    names = list_fields(overlaps, "a")
    panels = {
        "overlap": "share of the row's instances\nthat are also in the column",
        "jaccard": "Jaccard index: instances in both\ndivided by instances in either",
    }
    with plot.use_style():
        figure, axes = plot.create_figure((7.2, 0.33 * len(names) + 1.5), 1, 2, sharey=True)
        for axis, (column, title) in zip(axes, panels.items(), strict=True):
            plot.draw_numbers(axis, names, build_matrix(overlaps, column), plot.LIGHT, Normalize(0, 1))
            axis.set_xlabel(title)
        axes[1].tick_params(labelleft=False)
        return plot.render_svg(figure)


def draw_correlations(correlations: pl.DataFrame) -> str:
    """Draw figure 3: Spearman's coefficient of each two fields."""
    return plot.draw_matrix(list_fields(correlations, "a"), build_matrix(correlations, "spearman"))


def draw_study(study: pl.DataFrame) -> str:
    """Draw figure 4: what each measure makes of simulated raters, by their accuracy; a line a positive rate."""
    kinds, rates = (study[name].unique().sort().to_list() for name in ("classes", "positive_rate"))
    thresholds = {"kappa": KAPPA_HIGH, "fleiss": KAPPA_HIGH, "tae": TAE_HIGH}
    with plot.use_style():
        size = (7.2, 2.2 * len(kinds) + 0.7)
        figure, axes = plot.create_figure(size, len(kinds), len(CURVES), sharex=True, sharey=True, squeeze=False)
        for row_axes, kind in zip(axes, kinds, strict=True):
            for axis, measure in zip(row_axes, CURVES, strict=True):
                if measure in thresholds:
                    axis.axhline(thresholds[measure], **plot.DASHED)
                for i, rate in enumerate(rates):
                    curve = study.filter(classes=kind, positive_rate=rate).sort("accuracy")
                    colour, marker = plot.pick_look(i)
                    marks = {"markersize": 4.5, "markeredgecolor": "white", "markeredgewidth": 0.4}
                    # markers take turns, so that lines on top of each other are seen to be several
                    marks["markevery"] = (min(i, curve.height - 1), max(len(rates), 1))
                    values = curve[measure].cast(pl.Float64).to_numpy()
                    axis.plot(curve["accuracy"], values, color=colour, marker=marker, linewidth=1.2, **marks)
                axis.grid(color=plot.PALE, linewidth=0.6)
            row_axes[0].set_ylabel(f"{kind} classes")
        for axis, title in zip(axes[0], CURVES.values(), strict=True):
            axis.set_title(title.replace(" with ", "\nwith ").replace(" of ", "\nof "), fontsize=9)
        lowest = study.select(pl.min_horizontal(pl.col(list(CURVES)).min())).item() or 0
        axes[0, 0].set_ylim(min(lowest, 0) - 0.05, 1.05)
        figure.supxlabel("accuracy of a rater; dashed: the paper's thresholds, κ 0.6 and TAE 0.53", fontsize=9)
        plot.draw_legend(figure, plot.list_keys(len(rates), 1.2), [f"{100 * rate:g} % positive" for rate in rates], 5)
        return plot.render_svg(figure)
