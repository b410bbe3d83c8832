"""One HTML page of a labelling project, with thresholds, by which nothing is judged (CSD-23, errata E8)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl

from pipeline.label import schema
from pipeline.papers.csd import KAPPA_HIGH, TABLE_2, TAE_HIGH
from pipeline.report import sections
from pipeline.report.labelling import figures
from pipeline.report.labelling.data_card import Facts, count_simulated, sum_counts
from pipeline.report.sections import Columns, Part, Section, format_count, format_interval, format_number, tabulate

_LEVEL = 0.9  # accuracy of the raters at which the sentence of the simulation study reads the curves


def render(project: str, facts: Facts, waiting: pl.DataFrame, **frames: pl.DataFrame | None) -> str:
    """Render the page; a part without rows is left out.

    `waiting` has the fields that wait in each step: round, stage, field_count. `ratios`, `overlaps`, `correlations` and
    `predictability` are of `metrics.labelling.label_analysis`, `study` is of `metrics.labelling.agreement.study`.
    """
    counts = {
        "publishable comments": sum_counts(facts.rows), "valid labels": sum_counts(facts.tools),
        "raters": facts.rater_count, "waiting fields": sum_counts(waiting, "field_count"),
    }  # fmt: skip
    parts = facts._asdict() | frames | {"waiting": waiting, "origins": _list_origins(facts)}
    built = sections.build_sections(_PARTS, sections.select_filled(_PARTS, parts))
    return sections.render(
        f"labels of {project}",
        f"Labels of {project}",
        "Labels of the comments, agreement of the raters, and distribution of the labels. Schema "
        f"{schema.hash_schema()}, {facts.created}.",
        built["sections"],
        counts=counts,
        warning=_format_warning(facts.tools),
    )


def _format_warning(tools: pl.DataFrame) -> str:
    if not (simulated_count := count_simulated(tools)):
        return ""
    return (
        f"Warning: {simulated_count:,} of {sum_counts(tools):,} labels come from simulated raters. A program made "
        "these labels to test the pipeline; no person read the comments. Numbers from these labels are no evidence "
        "about people or language."
    )


def _build_funnel(funnel: pl.DataFrame) -> Section:
    columns = {"step": "step", "read": "read_count", "kept": "kept_count", "dropped": "dropped_count"}
    sentence = (
        f"The first step read {format_count(funnel['read_count'][0])} comments, and the last step kept "
        f"{format_count(funnel['kept_count'][-1])}. The paper keeps 8,843 of "
        "about 70,000 comments (section 3)."
    )
    return Section(sentence, *tabulate(funnel, columns))


def _build_deletions(deletions: pl.DataFrame) -> Section:
    rows = deletions.sort("row_count", "reason", descending=[True, False])
    return Section(
        f"The project dropped {format_count(sum_counts(rows))} comments and labels, each with a reason. The most "
        f"frequent reason is {rows['reason'][0]} ({format_count(rows['row_count'][0])}).",
        *tabulate(rows, {"reason": "reason", "rows": "row_count"}),
    )


def _build_waiting(waiting: pl.DataFrame) -> Section:
    steps = waiting.select("round", "stage").iter_rows()
    names = [f"round {in_round}, {'adjudicator' if stage == 2 else 'raters'}" for in_round, stage in steps]
    counts = waiting["field_count"].to_list()
    summary = f"{format_count(sum(counts))} fields of comments wait; most wait in {names[counts.index(max(counts))]}"
    return Section(
        f"{summary if any(counts) else 'Nothing waits: every field of every comment is settled'}. Three raters label "
        "each comment, and the adjudicator decides where they differ. A field that the adjudicator sends back goes "
        "through both steps once more (section 3.2).",
        *tabulate(waiting.with_columns(step=pl.Series(names)), {"step": "step", "waiting fields": "field_count"}),
    )


def _list_origins(facts: Facts) -> pl.DataFrame:
    """List comments by source and labels by tool, as one frame: what, name, row_count."""
    names = {"comments": pl.format("{}, {}", "source", "lang"), "labels": pl.col("tool").cast(pl.String)}
    return pl.concat(
        frame.select(what=pl.lit(kind), name=name, row_count=pl.col("row_count").cast(pl.Int64))
        for (kind, name), frame in zip(names.items(), (facts.rows, facts.tools), strict=True)
    )


def _build_origins(origins: pl.DataFrame) -> Section:
    sentence = (
        "The table counts publishable comments by source and language, and valid labels by the tool that returned them."
    )
    return Section(sentence, *tabulate(origins, {"type": "what", "from": "name", "rows": "row_count"}), text_count=2)


def _describe_range(agreement: pl.DataFrame, measure: str) -> str:
    """Describe where a measure runs from and to, by field."""
    defined = agreement.drop_nulls(measure).sort(measure)
    if not defined.height:
        return "is undefined for every field"
    low, high = defined.row(0, named=True), defined.row(-1, named=True)
    if low["field"] == high["field"]:
        return f"is {format_number(low[measure])} for {low['field']}"
    return (
        f"runs from {format_number(low[measure])} ({low['field']}) to {format_number(high[measure])} ({high['field']})"
    )


def _format_measure(row: Mapping[str, Any], name: str) -> str:
    return format_interval({"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]})


def _format_printed(row: Mapping[str, Any], measure: str) -> str:
    """Format what table 2 prints of a field: it has two digits, and no emotion."""
    return format_number(getattr(TABLE_2.get(row["field"]), measure, None), 2)


def _build_agreement(agreement: pl.DataFrame) -> list[Section]:
    kappa_columns: Columns = {"field": "field", "comments": "n", "labelled by three": "n_three"}
    kappa_columns |= {"labelled by four": "n_four", "waiting": "n_waiting"}
    kappa_columns |= {title: partial(_format_measure, name=name) for name, title in figures.KAPPAS.items()}
    kappa_columns["κ in the paper"] = partial(_format_printed, measure="kappa")
    tae_columns: Columns = {"field": "field", "classes": "classes", "comments": "n_four", "waiting": "n_waiting"}
    tae_columns |= {title: partial(_format_measure, name=name) for name, title in figures.TAES.items()}
    tae_columns |= {"lowest possible": "tae_min", "TAE in the paper": partial(_format_printed, measure="tae")}
    kappas = Section(
        f"Fleiss' κ of the three raters {_describe_range(agreement, 'fleiss')}. It, Cohen's κ and α are over the first "
        "round of all comments labelled. κ of the deciding round is over the labels that were decided on. What uses a "
        "fourth label is not yet defined while labels wait for it. The 95 % interval is below each number. The paper "
        "prints κ of all four raters. The fourth rater saw the three labels, so these four are not independent. "
        f"The paper calls reliability high if κ is above {KAPPA_HIGH} (appendix A); the dashed line marks "
        "this threshold. The threshold is not a verdict: if a class is rare, κ is low even if raters nearly always "
        "agree.",
        *tabulate(agreement, kappa_columns),
        figures.draw_agreement(agreement, figures.KAPPAS),
        title="Agreement corrected for chance",
    )
    taes = Section(
        f"TAE {_describe_range(agreement, 'tae')}. It uses the three labels of the deciding round and the final label. "
        "TAE cannot fall to 0; the table has the lowest possible value. The paper's text allows two readings; the page "
        f"shows both. The paper equates a TAE of {TAE_HIGH} with a κ of {KAPPA_HIGH}; the dashed line marks this "
        "threshold. The threshold is not a verdict. Use it with caution: a recomputation finds a κ between 0.39 and "
        "0.65 at this TAE, depending on the number of classes. The paper's own labels of subtext have a TAE of 0.50, "
        "below the threshold (errata E8).",
        *tabulate(agreement, tae_columns),
        figures.draw_agreement(agreement, figures.TAES),
        title="Agreement by the paper's measure (TAE)",
    )
    return [kappas, taes]


def _build_predictability(predictability: pl.DataFrame) -> Section:
    gains = predictability.with_columns(gain=pl.col("svm_f1") - pl.col("majority_f1")).drop_nulls("gain").sort("gain")
    finding = "No field has two classes with enough comments for training"
    if gains.height:
        best = gains.row(-1, named=True)
        finding = (
            f"The SVM gains most over the most frequent class in {best['field']}: F1 {format_number(best['svm_f1'])} "
            f"against {format_number(best['majority_f1'])}"
        )
    columns: Columns = {"field": "field", "F1 of the SVM": "svm_f1", "most frequent class": "majority_f1"}
    columns |= {"F1 in the paper": partial(_format_printed, measure="svm_f1"), "comments": "row_count"}
    columns |= {"classes": "class_count", "too rare": "left_out_count"}
    sentence = (
        f"{finding}. An F1 that is not above this baseline is no evidence. The paper has 0.47 to 0.54; it states "
        "neither the baseline nor the features (section 3.3, table 2)."
    )
    return Section(sentence, *tabulate(predictability, columns))


def _build_ratios(ratios: pl.DataFrame) -> Section:
    subtext = dict(ratios.filter(field="subtext").select("value", "ratio").iter_rows())
    yes, unsure = subtext.get("1"), subtext.get("0")
    finding = ""
    if yes is not None and unsure is not None:
        finding = f"{100 * yes:.1f} % of the comments have subtext; for {100 * unsure:.1f} % raters are unsure. "
    columns: Columns = {"field": "field", "value": "value"}
    columns["meaning"] = lambda row: schema.get_value_name(row["field"], row["value"], "en")
    columns |= {"comments": "count", "share": "ratio"}
    sentence = (
        f"{finding}Rare classes make agreement and F1 hard to interpret: compare every number on this page with these "
        "shares (figure 1 of the paper)."
    )
    return Section(sentence, *tabulate(ratios, columns), figures.draw_ratios(ratios), text_count=3)


def _drop_mirrored(pairs: pl.DataFrame) -> pl.DataFrame:
    """Keep of the pairs (a, b) and (b, a) the first by the schema, and each field with itself."""
    first, second = (pl.col(name).cast(pl.Enum([*schema.FIELDS])) for name in ("a", "b"))
    return pairs.filter(first.to_physical() <= second.to_physical()).sort(first, second)


def _build_overlaps(overlaps: pl.DataFrame) -> Section:
    mirrored = overlaps.select(a="b", b="a", back="overlap")
    pairs = _drop_mirrored(overlaps.join(mirrored, on=["a", "b"], how="left"))
    finding = ""
    for row in pairs.filter(a="subtext", b="metaphor").iter_rows(named=True):
        finding = (
            f"A share of {format_number(row['overlap'])} of the comments with subtext also has a metaphor. A share of "
            f"{format_number(row['back'])} of the comments with a metaphor also has subtext. The paper has about half "
            "and does not state which of the two shares it means. "
        )
    columns = {"A": "a", "B": "b", "in both": "both_count", "in A": "a_count", "in B": "b_count"}
    columns |= {"both / A": "overlap", "both / B": "back", "Jaccard": "jaccard"}
    sentence = (
        f"{finding}An instance of a field is a comment with the label yes. For sentiment, it is a comment that is not "
        "neutral; for emotion, a comment with any emotion (section 3.4, figure 2)."
    )
    return Section(sentence, *tabulate(pairs, columns), figures.draw_overlaps(overlaps), text_count=2)


def _build_correlations(correlations: pl.DataFrame) -> Section:
    coefficients = {(a, b): rho for a, b, rho in correlations.select("a", "b", "spearman").iter_rows()}
    sarcasm, metaphor = (format_number(coefficients.get(("subtext", name))) for name in ("sarcasm", "metaphor"))
    columns = {"A": "a", "B": "b", "Spearman": "spearman", "comments with both": "n"}
    return Section(
        f"Spearman's coefficient of subtext is {sarcasm} with sarcasm and {metaphor} with metaphor. The paper has 0.53 "
        "and 0.55 (section 3.4, figure 3). The ranks are no, unsure, yes; for emotion, none and any emotion.",
        *tabulate(_drop_mirrored(correlations), columns),
        figures.draw_correlations(correlations),
        text_count=2,
    )


def _build_study(study: pl.DataFrame) -> Section:
    """Build the section of the study; it reads the curves at the accuracy nearest 0.9, of the fewest classes."""
    rows = study.sort("classes", "positive_rate", "accuracy")
    fewest = rows.filter(pl.col("classes") == pl.col("classes").min())
    distance = (pl.col("accuracy") - _LEVEL).abs()
    nearest = fewest.filter(distance == distance.min()).filter(pl.col("accuracy") == pl.col("accuracy").min())
    kappa, tae = ([format_number(nearest[name].min()), format_number(nearest[name].max())] for name in ("kappa", "tae"))
    tae_text = f"stays at {tae[0]}" if tae[0] == tae[1] else f"ranges from {tae[0]} to {tae[1]}"
    columns: Columns = {"classes": "classes", "positive rate": lambda row: f"{row['positive_rate']:g}"}
    columns |= {"rater's accuracy": lambda row: f"{row['accuracy']:g}"}
    columns |= {title: name for name, title in figures.CURVES.items()}
    sentence = (
        "The raters of this study are simulated; they are not this project's raters. With a rater accuracy of "
        f"{100 * nearest['accuracy'][0]:g} % and {nearest['classes'][0]} classes, Cohen's κ ranges from {kappa[0]} to "
        f"{kappa[1]} over the shares of positives. TAE {tae_text}. In the paper, κ needs about 96 % agreement "
        "under extreme skew, and skew does not affect TAE (appendix A, figure 4). The paper does not name the raters "
        "of its κ; the page shows two variants of κ."
    )
    return Section(sentence, *tabulate(rows, columns), figures.draw_study(study), text_count=0)


_PARTS = {
    "funnel": Part("Comments kept by each step", _build_funnel),
    "deletions": Part("Reasons for dropped comments and labels", _build_deletions),
    "waiting": Part("Waiting fields", _build_waiting),
    "origins": Part("Sources of comments and labels", _build_origins),
    "agreement": Part("Rater agreement", _build_agreement),
    "predictability": Part("Label prediction from words", _build_predictability),
    "ratios": Part("Class distribution", _build_ratios),
    "overlaps": Part("Overlap of fields", _build_overlaps),
    "correlations": Part("Correlation of fields", _build_correlations),
    "study": Part("Effect of skew on agreement measures (simulated raters)", _build_study),
}
