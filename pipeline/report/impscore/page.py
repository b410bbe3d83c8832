"""The HTML page of studies of a model: accuracies, artefacts, ablation, sensitivity, applications."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import polars as pl
from markupsafe import Markup

from pipeline.io.visible import escape_invisible
from pipeline.metrics.impscore.artefacts import BASELINE_SCORERS, BASELINES, SURFACE
from pipeline.metrics.impscore.studies import compute_quantiles, tabulate_figure_3
from pipeline.papers.impscore import SPACES, TABLE_2
from pipeline.report import sections
from pipeline.report.figures import Floats
from pipeline.report.impscore import figures, study_rows
from pipeline.report.impscore.study_rows import IMPLICIT, average_runs, format_cells
from pipeline.report.sections import Part, Section, format_count, format_number, format_reading, order_names

_SPREAD = ("mean", "sd", "q05", "q25", "q50", "q75", "q95")
_CALIBRATION = ("spearman", "error", "constant_error")
SPREAD_NAMES = ("mean", "s.d.", "5 %", "25 %", "median", "75 %", "95 %")


Spaces = tuple[Sequence[Floats], Sequence[str], Sequence[float]]
"""Points [n, 2] of sentences in the pragmatic and the semantic space, the groups, and the silhouette of each space."""


def render(day: str, model_id: str = "", weakness: str = "", studies: pl.DataFrame | None = None, **parts: Any) -> str:
    """Render the page; a part that is absent or without rows is left out.

    `studies` and `evaluations` are rows of the tables. `triples` have i1, i2, i3, near, far, split and perhaps the
    percentiles p1, p2, p3; `audit` is of `metrics.impscore.artefacts.audit`, with the model's accuracy.
    """
    model_name = escape_invisible(model_id)
    subject = Markup(" for the model <code>{}</code>").format(model_name) if model_id else ""
    return sections.render(
        f"studies, {day}",
        "Undertone: studies",
        Markup("Results of the studies until {}{}.").format(day, subject),
        [*_build_parts(parts), *(() if studies is None else _build_studies(studies, model_id))],
        longest=math.inf,
        warning=weakness,
    )


def _build_parts(parts: Mapping[str, Any]) -> Iterable[Section]:
    for name, rows in sections.select_filled(_PARTS, parts).items():
        if (section := _PARTS[name].build(rows)).rows:
            yield section._replace(title=_PARTS[name].title)


def _build_studies(studies: pl.DataFrame, page_model_id: str) -> Iterable[Section]:
    """Build the sections of the newest studies by model, that of the page first."""
    newest = studies.filter(pl.col("day") == pl.col("day").max().over("study", "model_id"))
    models = newest.sort(pl.col("model_id") != page_model_id, "model_id")["model_id"].unique(maintain_order=True)
    for model_id, (study, part) in product(models, STUDIES.items()):
        rows = newest.filter(pl.col("model_id").eq_missing(pl.lit(model_id, pl.String)), study=study)
        if rows["value"].is_not_null().any():
            model_name = f" (model {model_id[:12]})" if model_id else ""
            yield part.build(rows)._replace(title=part.title + model_name)


def _select_test(rows: pl.DataFrame) -> pl.DataFrame:
    test = rows.filter(split="test")
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
        "i1": "I of implicit sentences", "i2": "I of their explicit forms", "i3": "I of explicit forms of other pairs",
        "near": "ΔP of positive pairs", "far": "ΔP of negative pairs",
    }  # fmt: skip
    cells = []
    for column, name in names.items():
        values = (float(rows[column].to_numpy().mean()), *compute_quantiles(rows[column]))
        ranks = percentiles.get(column, unknown)
        levels = (ranks.mean(), *compute_quantiles(ranks)) if ranks.count() else [None] * len(values)
        is_distance = column in ("near", "far")
        cells.append([name, *(map(format_number, values) if is_distance else map(format_reading, values, levels))])
    sentence = (
        f"The mean implicitness I is {implicit} for implicit sentences and {explicit} for explicit ones. P: percentile "
        f"in the reference. The mean pragmatic distance ΔP is {near} for positive pairs and {far} for negative "
        "ones. The paper has 1.296 and 0.514 for I, 0.685 and 1.675 for ΔP (section 5.2, figure 3)."
    )
    columns = ("distribution", "mean", "lowest", *SPREAD_NAMES[2:], "highest")
    return Section(sentence, columns, cells, figures.draw_violins(rows))


def _build_audit(audit: pl.DataFrame) -> Section:
    best = audit.sort(pl.col("subset") != "all", "subset", -pl.col("accuracy"), "baseline").row(0, named=True)
    scope = "all sources" if best["subset"] == "all" else best["subset"]
    table = audit.pivot("baseline", index=["subset", "model", "pair_count"])
    table = table.sort(pl.col("subset") != "all", "subset")
    columns = [*order_names(audit["baseline"], BASELINES), "model"]
    sentence = (
        f"On {scope}, {best['baseline']} alone finds the implicit sentence in {format_number(best['accuracy'])} of "
        f"cases, and the model in {format_number(best['model'])}. The paper has no such baselines. Compare its "
        "accuracies with these numbers."
    )
    cells = format_cells(table.select("subset", *columns, "pair_count"))
    return Section(sentence, ("pairs from", *columns, "triples"), cells)


def _build_evaluations(evaluations: pl.DataFrame) -> Section:
    is_mean = pl.col("metric").str.contains("_(of|distance)_")  # shown by the separation, with percentiles
    rows = _select_test(evaluations.filter((pl.col("epoch") == 0) & ~is_mean))  # the others are the training's curve
    sentence = (
        "The metrics are both accuracies of section 5.1, and the rank correlations and the choice accuracy of section "
        "6.2. The baseline is the best one that was measured."
    )
    names = ("metric", "split", "subset", "baseline name", "value", "baseline", "pairs")
    cells = rows.select("metric", "split", "subset", "baseline_name", "value", "baseline", "pair_count")
    return Section(sentence, names, format_cells(cells), text_count=4)


def _build_spaces(spaces: Spaces) -> Section:
    names, (points, groups, values) = ("pragmatic space", "semantic space"), spaces
    pragmatic, semantic = silhouettes = [*map(format_number, values)]
    counts = [format_count(len(groups)), format_count(len(set(groups)))]
    sentence = (
        f"The mean silhouette of the groups is {pragmatic} in the pragmatic space and {semantic} in the semantic "
        "space. In the paper's figures, groups cluster in the pragmatic space and scatter in the semantic space "
        "(section 6.4, figures 11 to 13)."
    )
    cells = [[name, silhouette, *counts] for name, silhouette in zip(names, silhouettes, strict=True)]
    figure = figures.draw_spaces(points, groups, names, values)
    return Section(sentence, ("space", "silhouette", "sentences", "groups"), cells, figure)


def _build_ablation(studies: pl.DataFrame) -> Section:
    averages = average_runs(studies, "ablation")
    keys = ["implicitness", "pragmatics", "space"]
    table = averages.pivot("metric", index=[*keys, "run_count"], values=["value", "sd"])
    paper = [" / ".join(map(format_number, TABLE_2.get(variant, ()))) for variant in table.select(keys).iter_rows()]
    columns = [f"{kind}_{metric}_accuracy" for metric in keys[:2] for kind in ("value", "sd")]
    empty_columns = [pl.lit(None, pl.Float64).alias(name) for name in columns if name not in table.columns]
    table = table.with_columns(pl.col("space").replace(SPACES), *empty_columns, paper=pl.Series(paper, dtype=pl.String))
    means = averages.filter(pl.col("metric") == "implicitness_accuracy")
    cosine, euclidean = (means.filter(pl.col("implicitness") == kind)["value"] for kind in ("cosine", "euclidean"))
    finding = (
        f"The lowest implicitness accuracy with the cosine for I is {format_number(cosine.min())}. The highest with "
        f"the Euclidean distance is {format_number(euclidean.max())}"
        if len(cosine) and len(euclidean)
        else "Compare the lowest accuracy with the cosine for I and the highest with the Euclidean distance"
    )
    sentence = f"{finding}. The paper has 0.946 and 0.929; the other choices have little effect (section 5.3, table 2)."
    names = ("I", "ΔP", "space", "implicitness accuracy", "s.d.", "pragmatics accuracy", "s.d.", "runs", "paper")
    cells = format_cells(table.select(*keys, *columns, "run_count", "paper"))
    return Section(sentence, names, cells, text_count=3)


def _build_sensitivity(studies: pl.DataFrame) -> Section:
    averages = average_runs(studies, "sensitivity").filter(pl.col("metric") == "implicitness_accuracy").sort("value")
    low, best = averages.row(0, named=True), averages.row(-1, named=True)
    rows = []
    for part in averages.sort("alpha", "value").partition_by("alpha", maintain_order=True):
        top = part.row(-1, named=True)
        alpha, *gammas = (f"{top[name]:g}" for name in ("alpha", "gamma_implicitness", "gamma_pragmatics"))
        counts = [format_count(part.height), str(part["run_count"].max())]
        rows.append([alpha, *counts, format_number(part["value"][0]), format_number(top["value"]), *gammas])
    sentence = (
        f"The mean implicitness accuracy runs from {format_number(low['value'])} to {format_number(best['value'])}. It "
        f"is best at γ1 = {best['gamma_implicitness']:g}, γ2 = {best['gamma_pragmatics']:g}, α = {best['alpha']:g}. In "
        "the paper, γ1 = 0.5 is best; γ2 and α have little effect (section 5.3, figures 4 and 10)."
    )
    names = ("α", "settings", "runs each", "lowest", "best", "at γ1", "at γ2")
    return Section(sentence, names, rows, figures.draw_sensitivity(studies), text_count=0)


def _format_spreads(quantiles: pl.DataFrame, *counts: pl.Expr, has_percentiles: bool = False) -> list[list[str]]:
    name = pl.col("subset").str.strip_suffix(IMPLICIT)
    part = pl.when(name != pl.col("subset")).then(pl.lit("implicit")).otherwise(pl.lit("all"))
    cells = format_cells(quantiles.select(name, part, *_SPREAD, "row_count", *counts))
    for cell, row in zip(cells, quantiles.iter_rows(named=True), strict=True) if has_percentiles else ():
        for place, metric in enumerate(_SPREAD, 2):
            cell[place] = cell[place] if metric == "sd" else _format_reading(row, metric)
    return cells


def _format_reading(row: Mapping[str, Any], metric: str) -> str:
    return format_reading(row[metric], row.get(f"percentile_{metric}"))


def _build_data_sets(studies: pl.DataFrame) -> Section:
    quantiles = study_rows.pivot_metrics(studies, "data_sets")
    full_sets = quantiles.sort("mean", descending=True).filter(~pl.col("subset").str.ends_with(IMPLICIT))
    rows = full_sets.to_dicts()
    ends = zip(("most", "least"), (rows[0], rows[-1]), strict=True) if len(rows) > 1 else ()
    extremes = ", ".join(f"{row['subset']} is the {end} implicit, {_format_reading(row, 'mean')}" for end, row in ends)
    sentence = (
        f"{extremes or 'The table shows the mean and the spread of the scores'}. P: percentile in the reference. "
        "In the paper, Adversarial is the most implicit of six data sets, and Davidson is very low. The implicit part "
        "of a data set scores higher than the whole data set (section 7.1, figures 5 and 14)."
    )
    cells = _format_spreads(quantiles, study_rows.find_paper_count().alias("paper"), has_percentiles=True)
    names = ("data set", "part", *SPREAD_NAMES, "sentences", "in the paper")
    return Section(sentence, names, cells, figures.draw_data_sets(studies), text_count=2)


def _build_diversity(studies: pl.DataFrame) -> Section:
    quantiles = study_rows.pivot_metrics(studies, "diversity").sort("q50", "subset")
    least = quantiles.row(0, named=True)
    sentence = (
        f"Random pairs of {least['subset']} have the smallest median ΔP: {format_number(least['q50'])}. In the paper, "
        "random pairs of Davidson have the smallest ΔP (section 7.1, figure 6)."
    )
    names = ("data set", "part", *SPREAD_NAMES, "pairs")
    return Section(sentence, names, _format_spreads(quantiles), figures.draw_diversity(studies), text_count=2)


def _build_detection(studies: pl.DataFrame) -> Section:
    averages = average_runs(studies, "detection")
    percentiles = averages.filter(metric="percentile").select("by", "subset", percentile=pl.col("value").round())
    accuracies = averages.filter(metric="accuracy")
    accuracies = accuracies.join(percentiles, on=("by", "subset"), how="left", maintain_order="left")
    trends = [
        f"{part['by'][0]} from {format_number(part['value'][0])} to {format_number(part['value'][-1])}"
        for part in accuracies.drop_nulls("value").partition_by("by", maintain_order=True)
    ]
    numbers = (pl.col("percentile").cast(pl.Int64), "value", "low", "high", "row_count", "effective_count")
    sentence = (
        f"Accuracy in the least and in the most implicit bin with texts: {'; '.join(trends)}. In the paper, accuracy "
        "falls as implicitness rises (section 7.2, figures 7 and 16)."
    )
    names = ("detector", "implicitness", "percentile", "accuracy", "95 % from", "to", "texts")
    cells = format_cells(accuracies.select("by", pl.col("subset").str.replace_all("-", "–"), *numbers))
    columns = (*names, "without near duplicates")
    return Section(sentence, columns, cells, figures.draw_detection(studies), text_count=2)


def _build_validation(studies: pl.DataFrame) -> Section:
    rows = average_runs(studies, "validation").filter(pl.col("by") != "chance")
    missing = rows.filter(pl.col("value").is_null())["subset"].unique().sort()
    numbers = rows.drop_nulls("value").sort("subset", "lang", pl.col("by").is_in(BASELINE_SCORERS), "by")
    scorers = numbers.filter(~pl.col("by").is_in(BASELINE_SCORERS))
    surface = numbers.filter(pl.col("by").is_in(SURFACE)).group_by("subset", "lang").agg(best=pl.col("value").max())
    beaten = scorers.join(surface, on=("subset", "lang")).filter(pl.col("value") > pl.col("best"))
    sizes = scorers.group_by("by", maintain_order=True).len().iter_rows()
    counts = [f"{scorer} on {beaten.filter(by=scorer).height} of {count} sets" for scorer, count in sizes]
    sentence = f"Better than the best of {', '.join(SURFACE)}: {'; '.join(counts)}." if counts else ""
    sentence += f" Not at hand: {', '.join(missing)}." if len(missing) else ""
    sentence += (
        " Surface baselines learn from the training part of a set, else from other rows of the set; shipped words "
        "learn from the shipped groups. The paper ranks graded groups (section 6.2) without baselines."
    )
    names = ("set", "language", "by", "metric", "value", "95 % from", "to", "n")
    cells = format_cells(numbers.select("subset", "lang", "by", "metric", "value", "low", "high", "row_count"))
    return Section(sentence, names, cells, figures.draw_validation(studies), text_count=4)


def _build_calibration(studies: pl.DataFrame) -> Section:
    rows = study_rows.read_calibrations(studies)
    index = ["a", "b", "subset", "row_count"]
    numbers = rows.filter(pl.col("metric").is_in(_CALIBRATION)).pivot("metric", index=index, values="value")
    missing_names = [name for name in _CALIBRATION if name not in numbers.columns]
    numbers = numbers.with_columns(pl.lit(None, pl.Float64).alias(name) for name in missing_names)
    edges = rows.filter(metric="spearman").select(*index, "low", "high")
    numbers = numbers.join(edges, on=index, how="left").sort("b", "subset", "a")
    useful = numbers.filter((pl.col("subset") == "all") & (pl.col("error") < pl.col("constant_error")))
    names = ", ".join(f"{a} by {b}" for a, b in useful.select("a", "b").iter_rows())
    sentence = (
        f"Nearer to the second measure than a constant: {names or 'none'}. Points are means of ten bins with intervals "
        "of 95 % over threads. The line is the rising map with the least error. The paper compares no measures."
    )
    columns = ("measure", "by", "texts", "Spearman", "95 % from", "to", "error", "of a constant", "n")
    cells = numbers.select(*index[:3], "spearman", "low", "high", "error", "constant_error", "row_count")
    return Section(sentence, columns, format_cells(cells), figures.draw_calibration(studies), text_count=3)


def _build_people(studies: pl.DataFrame) -> Section:
    numbers = average_runs(studies, "people").sort("subset", "set", "metric", "by")
    sentence = (
        "Means of people and of the model on the same items; simulated people are no judgement. In the paper, people "
        "have a mean Kendall's tau of 0.810 and 0.826 on its two sets, ImpScore 0.73 and 0.80 (section 6.3, table 5)."
    )
    cells = format_cells(numbers.select("subset", "by", "metric", "value", "set", "raters", "row_count"))
    return Section(sentence, ("task", "by", "metric", "value", "set", "raters", "answers"), cells, text_count=3)


_PARTS = {  # of a model
    "triples": Part("Separation of implicit and explicit sentences", _build_separation),
    "audit": Part("Surface baselines", _build_audit),
    "evaluations": Part("Model evaluation", _build_evaluations),
    "spaces": Part("Sentences of one intention in the two spaces", _build_spaces),
}
STUDIES = {  # of the frame `studies` (sections 5.3 and 7)
    "ablation": Part("Ablation of the model design", _build_ablation),
    "sensitivity": Part("Sensitivity to the margins and the weight of the loss", _build_sensitivity),
    "data_sets": Part("Implicitness of data sets", _build_data_sets),
    "diversity": Part("Diversity within data sets", _build_diversity),
    "detection": Part("Detection accuracy by implicitness", _build_detection),
    "validation": Part("Scorers on graded, paired and labelled sets", _build_validation),
    "calibration": Part("Calibration of one measure by another", _build_calibration),
    "people": Part("People and the model on graded groups", _build_people),
}
