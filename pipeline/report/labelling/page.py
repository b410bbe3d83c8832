"""One HTML page of a labelling project: what became of its comments, how raters agree, what the labels look like.

Parts without rows are left out. Names are hostile data: everything but our own figures is escaped. Thresholds are
shown, and nothing is judged by them (CSD-23, errata E8).
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from pipeline.label import schema
from pipeline.papers.csd import KAPPA_HIGH, TABLE_2, TAE_HIGH
from pipeline.report import sections
from pipeline.report.labelling import figures
from pipeline.report.labelling.data_card import Facts, count_simulated, sum_counts
from pipeline.report.labelling.figures import CURVES, KAPPAS, TAES
from pipeline.report.sections import Part, Section, format_count, format_interval, format_number

_LEVEL = 0.9  # accuracy of the raters at which the sentence of the simulation study reads the curves


class Inputs(NamedTuple):
    """What the page shows; frames without rows are parts that are left out."""

    project: str
    facts: Facts  # of which funnel, deletions, rows, tools, agreement and the counts are shown
    ratios: pl.DataFrame  # of metrics.labelling.label_analysis: class_ratios
    overlaps: pl.DataFrame  # overlaps
    correlations: pl.DataFrame  # correlations
    predictability: pl.DataFrame | None  # of metrics.labelling.predictability.measure_fields; None: not measured
    study: pl.DataFrame | None  # of metrics.labelling.agreement_study.study; None: not run
    open: pl.DataFrame  # round, stage, field_count: fields that wait in each step


def render(inputs: Inputs) -> str:
    """Render the page; BadInput if a frame lacks a column."""
    facts = inputs.facts
    counts = {
        "comments fit to publish": sum_counts(facts.rows),
        "labels that count": sum_counts(facts.tools),
        "raters": facts.rater_count,
        "fields that wait": sum_counts(inputs.open, "field_count"),
    }
    frames = facts._asdict() | inputs._asdict() | {"origins": _list_origins(facts)}
    built = sections.build_sections(_PARTS, sections.check_rows(_PARTS, frames))
    return sections.render(
        f"labels of {inputs.project}",
        f"Labels of {inputs.project}",
        "What raters said of comments, how far they agree, and what the labels look like. Schema "
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
        "them, to try the pipeline out, and no person read the comments for them: no number on this page that rests "
        "on them says anything about people or language."
    )


def _build_table(frame: pl.DataFrame, columns: Mapping[str, str]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Build the headings and the rows of a table; `columns` has the frame's columns by heading."""
    rows = frame.select(columns.values()).iter_rows()
    return tuple(columns), [[_format_cell(value) for value in row] for row in rows]


def _format_cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return format_count(value) if isinstance(value, int) else format_number(value)


def _build_funnel(funnel: pl.DataFrame) -> Section:
    columns = {"step": "step", "read": "read_count", "kept": "kept_count", "left out": "dropped_count"}
    return Section(
        "From what was read to what was kept",
        f"Of {format_count(funnel['read_count'][0])} comments that were collected, "
        f"{format_count(funnel['kept_count'][-1])} are left after the last step; each bar is what a step read. The "
        "paper goes from about 70,000 to 8,843 (section 3).",
        figures.draw_funnel(funnel),
        *_build_table(funnel, columns),
    )


def _build_deletions(deletions: pl.DataFrame) -> Section:
    rows = deletions.sort("row_count", "reason", descending=[True, False])
    reasons, counts = rows["reason"].to_list(), rows["row_count"].to_list()
    return Section(
        "Why something was left out",
        f"{format_count(sum(counts))} comments and labels were left out, most often for {reasons[0]} "
        f"({format_count(counts[0])}); nothing is left out without a reason.",
        figures.draw_bars(reasons, counts, "comments and labels left out"),
        *_build_table(rows, {"reason": "reason", "rows": "row_count"}),
    )


def _build_waiting(waiting: pl.DataFrame) -> Section:
    steps = waiting.select("round", "stage").iter_rows()
    names = [f"round {in_round}, {'adjudicator' if stage == 2 else 'raters'}" for in_round, stage in steps]
    counts = waiting["field_count"].to_list()
    summary = f"{format_count(sum(counts))} fields of comments wait, most of them in {names[counts.index(max(counts))]}"
    return Section(
        "What still waits",
        f"{summary if any(counts) else 'Nothing waits: every field of every comment is settled'}. Three raters "
        "label, the adjudicator decides where they differ, and what is sent back goes through both once more "
        "(section 3.2).",
        figures.draw_bars(names, counts, "fields that wait") if any(counts) else "",
        *_build_table(waiting.with_columns(step=pl.Series(names)), {"step": "step", "fields that wait": "field_count"}),
    )


def _list_origins(facts: Facts) -> pl.DataFrame:
    """List comments by source and labels by tool, as one frame: what, name, row_count."""
    names = {"comments": pl.format("{}, {}", "source", "lang"), "labels": pl.col("tool").cast(pl.String)}
    return pl.concat(
        frame.select(what=pl.lit(kind), name=name, row_count=pl.col("row_count").cast(pl.Int64))
        for (kind, name), frame in zip(names.items(), (facts.rows, facts.tools), strict=True)
    )


def _build_origins(origins: pl.DataFrame) -> Section:
    return Section(
        "Where comments and labels come from",
        "Comments fit to publish by source and language; labels that count by the tool they came through.",
        "",
        *_build_table(origins, {"what": "what", "from": "name", "rows": "row_count"}),
        text_count=2,
    )


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


def _add_intervals(agreement: pl.DataFrame, measures: Iterable[str]) -> pl.DataFrame:
    """Replace the numbers of measures by their texts, each with its interval below."""
    rows = agreement.to_dicts()
    texts = {}
    for name in measures:
        numbers = [{"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]} for row in rows]
        texts[name] = pl.Series([format_interval(interval) for interval in numbers])
    return agreement.with_columns(**texts)


def _add_printed(frame: pl.DataFrame, measure: str) -> pl.DataFrame:
    """Add what table 2 prints of each field: it has two digits, and no emotion."""
    numbers = [getattr(TABLE_2.get(field), measure, None) for field in frame["field"]]
    return frame.with_columns(printed=pl.Series([format_number(number, 2) for number in numbers]))


def _build_agreement(agreement: pl.DataFrame) -> list[Section]:
    texts = _add_intervals(agreement, (*KAPPAS, *TAES))
    kappa_columns = {"field": "field", "comments": "n", "labelled by three": "n_three", "by four too": "n_four"}
    kappa_columns |= {title: name for name, title in KAPPAS.items()} | {"κ in the paper": "printed"}
    tae_columns = {"field": "field", "classes": "classes", "comments": "n_four"}
    tae_columns |= {title: name for name, title in TAES.items()}
    tae_columns |= {"least possible": "tae_min", "TAE in the paper": "printed"}
    kappas = Section(
        "How far raters agree beyond chance",
        f"Fleiss' κ of the three raters {_describe_range(agreement, 'fleiss')}; below each number its 95 % interval. "
        "The fourth rater saw the three labels, so κ of all four, which is what the paper prints, is not of "
        f"independent raters. The dashed line is the {KAPPA_HIGH} above which the paper calls reliability high "
        "(appendix A). It is no verdict: where classes are rare κ is low though raters nearly always agree.",
        figures.draw_kappas(agreement),
        *_build_table(_add_printed(texts, "kappa"), kappa_columns),
    )
    taes = Section(
        "How far raters agree by the paper's own measure",
        f"TAE {_describe_range(agreement, 'tae')}. It takes the first three labels and the one that stands, and "
        "cannot fall to 0: what no labels can reach is hatched. The paper's text allows two readings; both are here. "
        f"The dashed line is the {TAE_HIGH} that the paper pairs with a κ of {KAPPA_HIGH}. It is no verdict, and "
        "take it with caution: recomputed, raters at that TAE have a κ between 0.39 and 0.65, by the number of "
        "classes, and the paper's own labels of subtext, at 0.50, lie below it (errata E8).",
        figures.draw_taes(agreement),
        *_build_table(_add_printed(texts, "tae"), tae_columns),
    )
    return [kappas, taes]


def _build_predictability(predictability: pl.DataFrame) -> Section:
    gains = predictability.with_columns(gain=pl.col("svm_f1") - pl.col("majority_f1")).drop_nulls("gain").sort("gain")
    finding = "No field has two classes with enough comments to learn from"
    if gains.height:
        best = gains.row(-1, named=True)
        finding = (
            f"The SVM is furthest from always naming the commonest class in {best['field']}: "
            f"{format_number(best['svm_f1'])} against {format_number(best['majority_f1'])}"
        )
    columns = {"field": "field", "F1 of the SVM": "svm_f1", "commonest class": "majority_f1"}
    columns |= {"F1 in the paper": "printed", "comments": "row_count"}
    columns |= {"classes": "class_count", "too rare": "left_out_count"}
    return Section(
        "Whether words alone foretell the labels",
        f"{finding}. What is not above the commonest class is no evidence of anything. The paper has 0.47 to 0.54 and "
        "states neither that baseline nor the features (section 3.3, table 2).",
        figures.draw_predictability(predictability),
        *_build_table(_add_printed(predictability, "svm_f1"), columns),
    )


def _build_ratios(ratios: pl.DataFrame) -> Section:
    subtext = dict(ratios.filter(field="subtext").select("value", "ratio").iter_rows())
    yes, unsure = subtext.get("1"), subtext.get("0")
    finding = ""
    if yes is not None and unsure is not None:
        finding = f"{100 * yes:.1f} % of the comments have subtext, of {100 * unsure:.1f} % raters are unsure. "
    names = [schema.get_value_name(field, value, "en") for field, value in ratios.select("field", "value").iter_rows()]
    columns = {"field": "field", "value": "value", "meaning": "name", "comments": "count", "share": "ratio"}
    return Section(
        "How common each class is",
        f"{finding}Rare classes make agreement and F1 hard to read: hold every number on this page against these "
        "shares (figure 1 of the paper).",
        figures.draw_ratios(ratios),
        *_build_table(ratios.with_columns(name=pl.Series(names)), columns),
        text_count=3,
    )


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
            f"Of the comments with subtext a share of {format_number(row['overlap'])} has a metaphor too, of those "
            f"with a metaphor {format_number(row['back'])} has subtext; in the paper it is about half, which way "
            "is not said. "
        )
    columns = {"A": "a", "B": "b", "in both": "both_count", "in A": "a_count", "in B": "b_count"}
    columns |= {"both / A": "overlap", "both / B": "back", "Jaccard": "jaccard"}
    return Section(
        "How far the kinds overlap",
        f"{finding}An instance is a comment labelled yes; in sentiment one that is not neutral, in emotion one that "
        "shows any (section 3.4, figure 2).",
        figures.draw_overlaps(overlaps),
        *_build_table(pairs, columns),
        text_count=2,
    )


def _build_correlations(correlations: pl.DataFrame) -> Section:
    coefficients = {(a, b): rho for a, b, rho in correlations.select("a", "b", "spearman").iter_rows()}
    sarcasm, metaphor = (format_number(coefficients.get(("subtext", name))) for name in ("sarcasm", "metaphor"))
    columns = {"A": "a", "B": "b", "Spearman": "spearman", "comments with both": "n"}
    return Section(
        "Which kinds go together",
        f"Spearman's coefficient of subtext is {sarcasm} with sarcasm and {metaphor} with metaphor; the paper has 0.53 "
        "and 0.55 (section 3.4, figure 3). Values are ranked no, unsure, yes; an emotion is any against none.",
        figures.draw_correlations(correlations),
        *_build_table(_drop_mirrored(correlations), columns),
        text_count=2,
    )


def _build_study(study: pl.DataFrame) -> Section:
    """Build the section of the study; it reads the curves at the accuracy nearest 0.9, of the fewest classes."""
    rows = study.sort("classes", "positive_rate", "accuracy")
    fewest = rows.filter(pl.col("classes") == pl.col("classes").min())
    distance = (pl.col("accuracy") - _LEVEL).abs()
    nearest = fewest.filter(distance == distance.min()).filter(pl.col("accuracy") == pl.col("accuracy").min())
    kappa, tae = ([format_number(nearest[name].min()), format_number(nearest[name].max())] for name in ("kappa", "tae"))
    tae_text = f"stays at {tae[0]}" if tae[0] == tae[1] else f"goes from {tae[0]} to {tae[1]}"
    settings = {name: pl.Series([f"{value:g}" for value in rows[name]]) for name in ("positive_rate", "accuracy")}
    columns = {"classes": "classes", "positive rate": "positive_rate", "rater's accuracy": "accuracy"}
    columns |= {title: name for name, title in CURVES.items()}
    return Section(
        "How the measures answer to skew: simulated raters, not this project's",
        f"With raters who are right in {100 * nearest['accuracy'][0]:g} % of cases and {nearest['classes'][0]} "
        f"classes, Cohen's κ goes from {kappa[0]} to {kappa[1]} with the share of positives, and TAE {tae_text}. In "
        "the paper κ needs some 96 % of agreement under extreme skew, and TAE does not heed it (appendix A, figure "
        "4); it does not say whose κ, so two are here.",
        figures.draw_study(study),
        *_build_table(rows.with_columns(**settings), columns),
        text_count=0,
    )


_INTERVALS = " ".join(f"{name}? {name}_low? {name}_high?" for name in (*KAPPAS, *TAES))
_CURVES = " ".join(f"{name}?" for name in CURVES)
_PARTS = {
    name: Part("", build, columns=columns)
    for name, build, columns in (
        ("funnel", _build_funnel, "step read_count kept_count dropped_count"),
        ("deletions", _build_deletions, "reason row_count"),
        ("open", _build_waiting, "round stage field_count"),
        ("origins", _build_origins, "what name row_count"),
        ("agreement", _build_agreement, f"field n n_three n_four classes {_INTERVALS} tae_min"),
        ("predictability", _build_predictability, "field svm_f1? majority_f1? row_count class_count left_out_count"),
        ("ratios", _build_ratios, "field value count ratio?"),
        ("overlaps", _build_overlaps, "a b both_count a_count b_count overlap? jaccard?"),
        ("correlations", _build_correlations, "a b spearman? n"),
        ("study", _build_study, f"classes positive_rate accuracy {_CURVES}"),
    )
}
