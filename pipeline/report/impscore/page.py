"""The HTML page of studies of a model: accuracies, artefacts, ablation, sensitivity, applications."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Required, TypedDict

import polars as pl
from markupsafe import Markup

from pipeline.io.visible import escape_invisible
from pipeline.metrics.impscore.implicitness import compute_quantiles, tabulate_figure_3
from pipeline.report import sections
from pipeline.report.figures import Floats
from pipeline.report.impscore import model_figures
from pipeline.report.impscore.study_rows import format_cells
from pipeline.report.impscore.study_sections import SPREAD_NAMES, STUDIES
from pipeline.report.sections import Part, Section, format_count, format_number, format_reading


class Spaces(TypedDict):
    """Sentences in the pragmatic and the semantic space, from `metrics.impscore.spaces`."""

    points: Sequence[Floats]  # [n, 2] of each
    groups: Sequence[str]
    silhouettes: Sequence[float]


class Contents(TypedDict, total=False):
    """The contents of the page; a part that is absent or without rows is left out."""

    day: Required[str]
    model_id: str
    evaluations: pl.DataFrame  # rows of the table `evaluations`
    triples: pl.DataFrame  # i1, i2, i3, near, far, split; optionally p1, p2, p3, the percentiles of i1, i2, i3
    audit: pl.DataFrame  # of metrics.impscore.artefacts.audit; optionally with `model`, the model's accuracy
    studies: pl.DataFrame  # rows of the table `studies`; shown by model are the newest of each
    spaces: Spaces
    weakness: str  # of the model


def render(contents: Contents) -> str:
    """Render the page."""
    model_id = escape_invisible(contents.get("model_id", ""))
    subject = Markup(" for the model <code>{}</code>").format(model_id) if model_id else ""
    return sections.render(
        f"studies, {contents['day']}",
        "Undertone: studies",
        Markup("Results of the studies until {}{}.").format(contents["day"], subject),
        list(_build_sections(contents)),
        longest=math.inf,
        warning=contents.get("weakness", ""),
    )


def _build_sections(contents: Contents) -> Iterable[Section]:
    for name, part in _PARTS.items():
        rows: Any = contents.get(name)
        if rows is not None and len(rows) and (section := part.build(rows)).rows:
            yield section._replace(title=part.title)
    studies = contents.get("studies")
    if studies is None:
        return
    newest = studies.filter(pl.col("day") == pl.col("day").max().over("study", "model_id"))
    is_other = pl.col("model_id") != contents.get("model_id", "")
    for model_id in newest.sort(is_other, "model_id")["model_id"].unique(maintain_order=True):
        model_rows = newest.filter(pl.col("model_id").eq_missing(pl.lit(model_id, pl.String)))
        for study, part in STUDIES.items():
            if (study_rows := model_rows.filter(study=study))["value"].is_not_null().any():
                model_name = f" (model {model_id[:12]})" if model_id else ""
                yield part.build(study_rows)._replace(title=part.title + model_name)


def _select_test(rows: pl.DataFrame) -> pl.DataFrame:
    test = rows.filter(pl.col("split") == "test")
    return test if test.height else rows


def _build_separation(triples: pl.DataFrame) -> Section:
    rows = _select_test(triples)
    rows = rows.filter(pl.col("split") == rows["split"][0])
    numbers = dict(tabulate_figure_3(rows).select("metric", "value").iter_rows())
    unknown = pl.Series([None], dtype=pl.Float64)
    percentiles = {f"i{n}": rows.get_column(f"p{n}", default=unknown) for n in "123"}
    explicit_percentile = pl.concat([percentiles["i2"], percentiles["i3"]]).mean()
    implicit = format_reading(numbers["implicitness_of_implicit"], percentiles["i1"].mean())
    explicit = format_reading(numbers["implicitness_of_explicit"], explicit_percentile)
    near, far = (format_number(numbers[f"pragmatic_distance_{kind}"]) for kind in ("positive", "negative"))
    names = {
        "i1": "I of implicit sentences",
        "i2": "I of their explicit forms",
        "i3": "I of explicit forms of other pairs",
        "near": "ΔP of positive pairs",
        "far": "ΔP of negative pairs",
    }
    cells = []
    for column, name in names.items():
        values = (float(rows[column].to_numpy().mean()), *compute_quantiles(rows[column]))
        ranks = percentiles.get(column, unknown)
        levels = (ranks.mean(), *compute_quantiles(ranks)) if ranks.count() else [None] * len(values)
        is_distance = column in ("near", "far")
        cells.append([name, *(map(format_number, values) if is_distance else map(format_reading, values, levels))])
    return Section(
        f"The mean implicitness I is {implicit} for implicit sentences and {explicit} for explicit ones. P: percentile "
        f"in the reference. The mean pragmatic distance ΔP is {near} for positive pairs and {far} for negative "
        "ones. The paper has 1.296 and 0.514 for I, 0.685 and 1.675 for ΔP (section 5.2, figure 3).",
        ("distribution", "mean", "lowest", *SPREAD_NAMES[2:], "highest"),
        cells,
        model_figures.draw_violins(rows, rows["split"][0]),
    )


def _build_audit(audit: pl.DataFrame) -> Section:
    best = audit.sort(pl.col("subset") != "all", "subset", -pl.col("accuracy"), "baseline").row(0, named=True)
    scope = "all sources" if best["subset"] == "all" else best["subset"]
    kinds = model_figures.list_baselines(audit)
    has_model = "model" in audit.columns
    model_text = f", and the model in {format_number(best['model'])}" if has_model else ""
    table = audit.pivot("baseline", index=[c for c in audit.columns if c not in ("baseline", "accuracy")])
    table = table.sort(pl.col("subset") != "all", "subset")
    columns = [*kinds, *(["model"] if has_model else [])]
    return Section(
        f"On {scope}, {best['baseline']} alone finds the implicit sentence in {format_number(best['accuracy'])} of "
        f"cases{model_text}. The paper has no such baselines. Compare its accuracies with these numbers.",
        ("pairs from", *columns, "triples"),
        format_cells(table.select("subset", *columns, "pair_count")),
        model_figures.draw_audit(audit),
    )


def _build_evaluations(evaluations: pl.DataFrame) -> Section:
    is_mean = pl.col("metric").str.contains("_(of|distance)_")  # shown by the separation, with percentiles
    rows = _select_test(evaluations.filter((pl.col("epoch") == 0) & ~is_mean))  # the others are the training's curve
    return Section(
        "The metrics are both accuracies of section 5.1, and the rank correlations and the choice accuracy of section "
        "6.2. The baseline is the best one that was measured.",
        ("metric", "split", "subset", "baseline name", "value", "baseline", "pairs"),
        format_cells(rows.select("metric", "split", "subset", "baseline_name", "value", "baseline", "pair_count")),
        text_count=4,
    )


def _build_spaces(spaces: Spaces) -> Section:
    names, groups = ("pragmatic space", "semantic space"), spaces["groups"]
    pragmatic, semantic = silhouettes = [format_number(value) for value in spaces["silhouettes"]]
    counts = [format_count(len(groups)), format_count(len(set(groups)))]
    return Section(
        f"The mean silhouette of the groups is {pragmatic} in the pragmatic space and {semantic} in the semantic "
        "space. In the paper's figures, groups cluster in the pragmatic space and scatter in the semantic space "
        "(section 6.4, figures 11 to 13).",
        ("space", "silhouette", "sentences", "groups"),
        [[name, silhouette, *counts] for name, silhouette in zip(names, silhouettes, strict=True)],
        model_figures.draw_spaces(spaces["points"], groups, names, spaces["silhouettes"]),
    )


_PARTS = {
    "triples": Part("Separation of implicit and explicit sentences", _build_separation),
    "audit": Part("Surface baselines", _build_audit),
    "evaluations": Part("Model evaluation", _build_evaluations),
    "spaces": Part("Sentences of one intention in the two spaces", _build_spaces),
}
