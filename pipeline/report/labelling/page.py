"""One HTML page of a labelling project: what became of its comments, how raters agree, what the labels look like.

Parts without rows are left out. Names are hostile data: everything but our own figures is escaped. Thresholds are told
and drawn, and nothing is judged by them (CSD-23, errata E8).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.label import simulated
from pipeline.label.schema import FIELDS, get_value_name
from pipeline.papers.csd import KAPPA_HIGH, TABLE_2, TAE_HIGH
from pipeline.report import sections
from pipeline.report.labelling import figures
from pipeline.report.labelling.data_card import Facts
from pipeline.report.labelling.figures import CURVES, KAPPAS, TAES
from pipeline.report.sections import Section, format_count, format_number

_WAITS = {1: "raters", 2: "adjudicator"}
_LEVEL = 0.9  # accuracy of the raters at which the sentence of the simulation study reads the curves


class Inputs(NamedTuple):
    """What the page shows; frames without rows are parts that are left out."""

    project: str
    facts: Facts  # of which funnel, deletions, rows, tools and the counts are shown
    agreement: pl.DataFrame  # of metrics.labelling.agreement.table
    ratios: pl.DataFrame  # of metrics.labelling.label_analysis: class_ratios
    overlaps: pl.DataFrame  # overlaps
    correlations: pl.DataFrame  # correlations
    predictability: pl.DataFrame | None  # of metrics.labelling.predictability.by_field; None: not measured
    study: pl.DataFrame | None  # of metrics.labelling.agreement_study.study; None: not run
    open: pl.DataFrame  # round, stage, field_count: fields that wait in each step


_COLUMNS: Mapping[str, Sequence[str]] = {
    "agreement": (
        "field", "n", "n_three", "n_four", "classes",
        *(name + end for name in (*KAPPAS, *TAES) for end in ("", "_low", "_high")), "tae_min",
    ),
    "ratios": ("field", "value", "count", "ratio"),
    "overlaps": ("a", "b", "both_count", "a_count", "b_count", "overlap", "jaccard"),
    "correlations": ("a", "b", "spearman", "n"),
    "predictability": ("field", "svm_f1", "majority_f1", "row_count", "class_count", "left_out_count"),
    "study": ("classes", "positive_rate", "accuracy", *CURVES),
    "open": ("round", "stage", "field_count"),
}  # fmt: skip


def render(inputs: Inputs) -> str:
    """The page as text.

    Raises:
        BadInput: a frame lacks a column, or names a field that is none of the schema's.
    """
    _check(inputs)
    facts = inputs.facts
    counts = {
        "comments fit to publish": _sum_counts(facts.rows),
        "labels that count": _sum_counts(facts.tools),
        "raters": facts.rater_count,
        "fields that wait": _sum_counts(inputs.open, "field_count"),
    }
    return sections.render(
        f"labels of {inputs.project}",
        f"Labels of {inputs.project}",
        "What raters said of comments, how far they agree, and what the labels look like. Schema "
        f"{facts.schema_version}, {facts.created}.",
        list(_build_sections(inputs)),
        counts=counts,
        warning=_format_warning(facts.tools),
    )


def _check(inputs: Inputs) -> None:
    for name, columns in _COLUMNS.items():
        frame = getattr(inputs, name)
        if frame is None:
            continue
        sections.require_columns(name, frame, columns)
        for column in {"field", "a", "b"} & set(columns):
            if strange := sorted(set(frame[column].cast(pl.String).fill_null("null")) - set(FIELDS)):
                raise BadInput(f"{name}, {column}: expected {', '.join(FIELDS)}, found {strange[0][:40]!r}")


def _format_warning(tools: pl.DataFrame) -> str:
    simulated_count = _sum_counts(tools.filter(pl.col("tool") == simulated.TOOL))
    if not simulated_count:
        return ""
    return (
        f"Warning: {simulated_count:,} of {_sum_counts(tools):,} labels come from simulated raters. A program made "
        "them, to try the pipeline out, and no person read the comments for them: no number on this page that rests "
        "on them says anything about people or language."
    )


def _build_sections(inputs: Inputs) -> Iterable[Section]:
    facts = inputs.facts
    frames = [
        (facts.funnel, _build_funnel),
        (facts.deletions, _build_deletions),
        (inputs.open, _build_waiting),
        (_list_origins(facts), _build_origins),
        (inputs.agreement, _build_kappas),
        (inputs.agreement, _build_taes),
        (inputs.predictability, _build_predictability),
        (inputs.ratios, _build_ratios),
        (inputs.overlaps, _build_overlaps),
        (inputs.correlations, _build_correlations),
        (inputs.study, _build_study),
    ]
    return (section(frame) for frame, section in frames if frame is not None and frame.height)


def _sum_counts(frame: pl.DataFrame, column: str = "row_count") -> int:
    return int(frame[column].sum() or 0)


def _build_funnel(funnel: pl.DataFrame) -> Section:
    first, last = funnel.row(0, named=True), funnel.row(-1, named=True)
    names = ("read_count", "kept_count", "dropped_count")
    return Section(
        "From what was read to what was kept",
        f"Of {format_count(first['read_count'])} comments that were collected, {format_count(last['kept_count'])} "
        "are left after the last step; each bar is what a step read. The paper goes from about 70,000 to 8,843 "
        "(section 3).",
        figures.draw_funnel(funnel),
        ("step", "read", "kept", "left out"),
        [[row["step"], *(format_count(row[name]) for name in names)] for row in funnel.iter_rows(named=True)],
    )


def _build_deletions(deletions: pl.DataFrame) -> Section:
    rows = deletions.sort("row_count", "reason", descending=[True, False])
    reasons, counts = rows["reason"].to_list(), rows["row_count"].to_list()
    return Section(
        "Why something was left out",
        f"{format_count(sum(counts))} comments and labels were left out, most often for {reasons[0]} "
        f"({format_count(counts[0])}); nothing is left out without a reason.",
        figures.draw_bars(reasons, counts, "comments and labels left out"),
        ("reason", "rows"),
        [[reason, format_count(rows)] for reason, rows in zip(reasons, counts, strict=True)],
    )


def _build_waiting(waiting: pl.DataFrame) -> Section:
    rows = waiting.group_by("round", "stage").agg(pl.col("field_count").sum()).sort("round", "stage")
    names = [f"round {r}, {_WAITS.get(s, f'stage {s}')}" for r, s in rows.select("round", "stage").iter_rows()]
    counts = rows["field_count"].to_list()
    summary = f"{format_count(sum(counts))} fields of comments wait, most of them in {names[counts.index(max(counts))]}"
    return Section(
        "What still waits",
        f"{summary if any(counts) else 'Nothing waits: every field of every comment is settled'}. Three raters "
        "label, the adjudicator decides where they differ, and what is sent back goes through both once more "
        "(section 3.2).",
        figures.draw_bars(names, counts, "fields that wait") if any(counts) else "",
        ("step", "fields that wait"),
        [[name, format_count(fields)] for name, fields in zip(names, counts, strict=True)],
    )


def _list_origins(facts: Facts) -> pl.DataFrame:
    """Comments by source and labels by tool, as one frame: what, name, row_count."""
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
        ("what", "from", "rows"),
        [[kind, name, format_count(rows)] for kind, name, rows in origins.iter_rows()],
        text_count=2,
    )


def _describe_range(agreement: pl.DataFrame, measure: str) -> str:
    """Where a measure runs from and to, by field."""
    defined = agreement.drop_nulls(measure).sort(measure)
    if not defined.height:
        return "is undefined for every field"
    low, high = defined.row(0, named=True), defined.row(-1, named=True)
    if low["field"] == high["field"]:
        return f"is {format_number(low[measure])} for {low['field']}"
    return (
        f"runs from {format_number(low[measure])} ({low['field']}) to {format_number(high[measure])} ({high['field']})"
    )


def _format_interval(row: Mapping[str, Any], measure: str) -> str:
    """A measure, and below it its interval."""
    value, low, high = (format_number(row[measure + end]) for end in ("", "_low", "_high"))
    return f"{value}\n{low} to {high}" if row[measure] is not None else value


def _build_kappas(agreement: pl.DataFrame) -> Section:
    return Section(
        "How far raters agree beyond chance",
        f"Fleiss' κ of the three raters {_describe_range(agreement, 'fleiss')}; below each number its 95 % interval. "
        "The fourth rater saw the three labels, so κ of all four, which is what the paper prints, is not of "
        f"independent raters. The dashed line is the {KAPPA_HIGH} above which the paper calls reliability high "
        "(appendix A). It is no verdict: where classes are rare κ is low though raters nearly always agree.",
        figures.draw_kappas(agreement),
        ("field", "comments", "labelled by three", "by four too", *KAPPAS.values(), "κ in the paper"),
        [
            [
                row["field"],
                *(format_count(row[name]) for name in ("n", "n_three", "n_four")),
                *(_format_interval(row, measure) for measure in KAPPAS),
                _format_printed(row["field"], "kappa"),
            ]
            for row in agreement.iter_rows(named=True)
        ],
    )


def _build_taes(agreement: pl.DataFrame) -> Section:
    return Section(
        "How far raters agree by the paper's own measure",
        f"TAE {_describe_range(agreement, 'tae')}. It takes the first three labels and the one that stands, and "
        "cannot fall to 0: what no labels can reach is hatched. The paper's text allows two readings; both are here. "
        f"The dashed line is the {TAE_HIGH} that the paper sets beside a κ of {KAPPA_HIGH}. It is no verdict, and "
        "take it with caution: recomputed, raters at that TAE have a κ between 0.39 and 0.65, by the number of "
        "classes, and the paper's own labels of subtext, at 0.50, lie below it (errata E8).",
        figures.draw_taes(agreement),
        ("field", "classes", "comments", *TAES.values(), "least possible", "TAE in the paper"),
        [
            [
                row["field"],
                format_count(row["classes"]),
                format_count(row["n_four"]),
                *(_format_interval(row, measure) for measure in TAES),
                format_number(row["tae_min"]),
                _format_printed(row["field"], "tae"),
            ]
            for row in agreement.iter_rows(named=True)
        ],
    )


def _format_printed(field: str, measure: str) -> str:
    """Table 2 has two digits, and no emotion."""
    return format_number(getattr(TABLE_2.get(field), measure, None), 2)


def _build_predictability(predictability: pl.DataFrame) -> Section:
    gains = predictability.with_columns(gain=pl.col("svm_f1") - pl.col("majority_f1")).drop_nulls("gain").sort("gain")
    finding = "No field has two classes with enough comments to learn from"
    if gains.height:
        best = gains.row(-1, named=True)
        finding = (
            f"The SVM is furthest from always naming the commonest class in {best['field']}: "
            f"{format_number(best['svm_f1'])} against {format_number(best['majority_f1'])}"
        )
    return Section(
        "Whether words alone foretell the labels",
        f"{finding}. What is not above the commonest class is no evidence of anything. The paper has 0.47 to 0.54 and "
        "tells neither that baseline nor the features (section 3.3, table 2).",
        figures.draw_predictability(predictability),
        ("field", "F1 of the SVM", "commonest class", "F1 in the paper", "comments", "classes", "too rare"),
        [
            [
                row["field"],
                format_number(row["svm_f1"]),
                format_number(row["majority_f1"]),
                _format_printed(row["field"], "svm_f1"),
                *(format_count(row[name]) for name in ("row_count", "class_count", "left_out_count")),
            ]
            for row in predictability.iter_rows(named=True)
        ],
    )


def _build_ratios(ratios: pl.DataFrame) -> Section:
    subtext = dict(ratios.filter(field="subtext").select("value", "ratio").iter_rows())
    yes, unsure = subtext.get("1"), subtext.get("0")
    finding = (
        f"{100 * yes:.1f} % of the comments have subtext, of {100 * unsure:.1f} % raters are unsure. "
        if yes is not None and unsure is not None
        else ""
    )
    return Section(
        "How common each class is",
        f"{finding}Rare classes make agreement and F1 hard to read: hold every number on this page against these "
        "shares (figure 1 of the paper).",
        figures.draw_ratios(ratios),
        ("field", "value", "meaning", "comments", "share"),
        [
            [
                row["field"],
                row["value"],
                _name_value(row["field"], row["value"]),
                format_count(row["count"]),
                format_number(row["ratio"]),
            ]
            for row in ratios.iter_rows(named=True)
        ],
        text_count=3,
    )


def _name_value(field: str, value: str) -> str:
    return get_value_name(field, value, "en") if value in FIELDS[field].values else ""


def _drop_mirrored(pairs: pl.DataFrame) -> pl.DataFrame:
    """Of the pairs (a, b) and (b, a) the first by the schema, and each field with itself."""
    order = pl.Enum([*FIELDS])
    first, second = pl.col("a").cast(order).to_physical(), pl.col("b").cast(order).to_physical()
    return pairs.filter(first <= second).sort(pl.col("a").cast(order), pl.col("b").cast(order))


def _build_overlaps(overlaps: pl.DataFrame) -> Section:
    mirrored = overlaps.select(a="b", b="a", back="overlap")
    pairs = _drop_mirrored(overlaps.join(mirrored, on=["a", "b"], how="left"))
    pair = pairs.filter((pl.col("a") == "subtext") & (pl.col("b") == "metaphor"))
    finding = ""
    if pair.height:
        row = pair.row(0, named=True)
        finding = (
            f"Of the comments with subtext a share of {format_number(row['overlap'])} has a metaphor too, of those "
            f"with a metaphor {format_number(row['back'])} has subtext; in the paper it is about half, which way "
            "is not said. "
        )
    return Section(
        "How far the kinds overlap",
        f"{finding}An instance is a comment labelled yes; in sentiment one that is not neutral, in emotion one that "
        "shows any (section 3.4, figure 2).",
        figures.draw_overlaps(overlaps),
        ("A", "B", "in both", "in A", "in B", "both / A", "both / B", "Jaccard"),
        [
            [
                row["a"],
                row["b"],
                *(format_count(row[f"{name}_count"]) for name in ("both", "a", "b")),
                *(format_number(row[name]) for name in ("overlap", "back", "jaccard")),
            ]
            for row in pairs.iter_rows(named=True)
        ],
        text_count=2,
    )


def _build_correlations(correlations: pl.DataFrame) -> Section:
    coefficients = {(a, b): rho for a, b, rho in correlations.select("a", "b", "spearman").iter_rows()}
    sarcasm, metaphor = (format_number(coefficients.get(("subtext", other))) for other in ("sarcasm", "metaphor"))
    return Section(
        "Which kinds go together",
        f"Spearman's coefficient of subtext is {sarcasm} with sarcasm and {metaphor} with metaphor; the paper has 0.53 "
        "and 0.55 (section 3.4, figure 3). Values are ranked no, unsure, yes; an emotion is any against none.",
        figures.draw_correlations(correlations),
        ("A", "B", "Spearman", "comments with both"),
        [
            [row["a"], row["b"], format_number(row["spearman"]), format_count(row["n"])]
            for row in _drop_mirrored(correlations).iter_rows(named=True)
        ],
        text_count=2,
    )


def _build_study(study: pl.DataFrame) -> Section:
    """The sentence reads the curves at the accuracy nearest 0.9, of the fewest classes."""
    rows = study.sort("classes", "positive_rate", "accuracy")
    fewest = rows.filter(pl.col("classes") == pl.col("classes").min())
    distance = (pl.col("accuracy") - _LEVEL).abs()
    nearest = fewest.filter(distance == distance.min()).filter(pl.col("accuracy") == pl.col("accuracy").min())
    kappa, tae = ([format_number(nearest[name].min()), format_number(nearest[name].max())] for name in ("kappa", "tae"))
    tae_text = f"stays at {tae[0]}" if tae[0] == tae[1] else f"goes from {tae[0]} to {tae[1]}"
    return Section(
        "How the measures answer to skew: simulated raters, not this project's",
        f"With raters who are right in {100 * nearest['accuracy'][0]:g} % of cases and {nearest['classes'][0]} "
        f"classes, Cohen's κ goes from {kappa[0]} to {kappa[1]} with the share of positives, and TAE {tae_text}. In "
        "the paper κ needs some 96 % of agreement under extreme skew, and TAE does not heed it (appendix A, figure "
        "4); it does not say whose κ, so two are here.",
        figures.draw_study(study),
        ("classes", "positive rate", "rater's accuracy", *CURVES.values()),
        [
            [
                format_count(row["classes"]),
                f"{row['positive_rate']:g}",
                f"{row['accuracy']:g}",
                *(format_number(row[name]) for name in CURVES),
            ]
            for row in rows.iter_rows(named=True)
        ],
        text_count=0,
    )
