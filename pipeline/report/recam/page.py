"""One HTML page of a cloze set and its readers: what it is made of, what it gives away, who reads it (ReCAM).

A reader's accuracy never stands alone: chance is beside it, and what is reached on the same items without reading.
"""

from collections.abc import Sequence

import polars as pl

from pipeline.examples.recam.items import PLACEHOLDER
from pipeline.metrics.recam import reading
from pipeline.papers.recam import SIZES, TABLES_3_4, TABLES_6_7
from pipeline.report import sections
from pipeline.report.labelling.data_card import sum_counts
from pipeline.report.recam import figures
from pipeline.report.recam.figures import CHANCE, MEASURES, REASONS, SUBTASKS, TARGET, list_subtasks, sort_groups
from pipeline.report.sections import Columns, Part, Section, format_count, format_interval, format_number, format_signed

BAND = 0.02  # to either side of chance: what an item set may give away
PASSAGE = 400  # characters of a passage that the page shows
_NONE = pl.DataFrame()
_KINDS = {"upos": "part of speech", "words": "words of the passage"}
_FLAGS = {"is_unanswerable": "no answer in the passage", "is_ambiguous": "several options are right"}


def render(day: str, signatures: Sequence[str] = (), **frames: pl.DataFrame) -> str:
    """Render the page of the frames that `PARTS` names.

    `subtask`, `trained_on` and `tested_on` are imperceptibility or nonspecificity; all accuracies are in [0, 1].
    """
    rows = sections.select_filled(PARTS, frames)
    targets = rows["funnel"].filter(pl.col("reason").fill_null(TARGET) == TARGET) if "funnel" in rows else _NONE
    counts = {"targets": targets, "items": rows.get("items", _NONE), "dropped items": rows.get("dropped", _NONE)}
    if "readers" in rows and "audit" in rows:
        blind = _find_blind(rows["audit"]).select(tested_on="subtask", blind="accuracy", blind_by="baseline")
        rows["readers"] = rows["readers"].join(blind, on="tested_on", how="left")
    return sections.render(
        f"cloze questions, {day}",
        "Cloze questions on abstract words",
        f"The items, the baselines that do not read, and the accuracy of the readers (ReCAM), {day}.",
        **sections.build_sections(PARTS, rows),
        counts={name: sum_counts(frame, "count") if frame.height else None for name, frame in counts.items()},
        signatures=signatures,
    )


def _sort_rows(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    places = (pl.col(name).replace_strict(SUBTASKS, default=3, return_dtype=pl.Int64) for name in columns)
    return frame.sort(*(key for pair in zip(places, columns, strict=True) for key in pair), maintain_order=True)


def _build_items(frame: pl.DataFrame) -> Section:
    splits = sections.order_names(frame["split"], ("train", "validation", "test"))
    rows = []
    for subtask in list_subtasks(frame["subtask"]):
        counts = dict(frame.filter(subtask=subtask).select("split", "count").iter_rows())
        for origin, sizes in (("here", counts), ("in the paper", SIZES.get(subtask))):
            if sizes:
                numbers = [sizes.get(split, 0 if origin == "here" else None) for split in splits]
                rows.append([subtask, origin, *map(format_count, [*numbers, sum(sizes.values())])])
    sentence = (
        f"The set has {sum_counts(frame, 'count'):,} items with five options each. Each article is in one split "
        "only, so no test passage is in the training data of a reader. The paper has 12,275 items (table 5)."
    )
    return Section(sentence, ("subtask", "where", *splits, "total"), rows, text_count=2)


def _build_dropped(frame: pl.DataFrame) -> Section:
    frame = frame.sort(-pl.col("count").cast(pl.Int64), "subtask", "reason")
    subtask, reason, count = frame.select("subtask", "reason", "count").row(0)
    sentence = (
        f"The pipeline dropped {sum_counts(frame, 'count'):,} items after the choice of their word, each with a "
        f"reason. The most frequent reason is {reason} ({format_count(count)} of {subtask}). The paper drops items "
        "with two right options or no answer (section 3.6) and does not give their number."
    )
    columns = {"subtask": "subtask", "reason": "reason", "items": "count"}
    return Section(sentence, *sections.tabulate(frame, columns), text_count=2)


def _build_funnel(frame: pl.DataFrame) -> Section:
    rows, summaries = [], []
    for subtask in list_subtasks(frame["subtask"]):
        steps = figures.order_steps(frame.filter(subtask=subtask))
        total = int(steps["count"].sum())
        for reason, count, remaining in steps.iter_rows():
            name = "is a target" if reason == TARGET else REASONS.get(reason, reason)
            share = f"{100 * count / max(total, 1):.1f}"
            rows.append([subtask, name, format_count(count), share, format_count(remaining)])
        counts = f"{format_count(steps['count'][-1])} of {format_count(total)} words of the summaries"
        summaries.append(f"{counts} are targets for {subtask}")
    sentence = (
        f"{'; '.join(summaries)}. A target is the word that an item leaves out. Its scorer must rate it as abstract "
        "(sections 3.2 and 3.3). The passage must not contain a form of it, a synonym, an antonym or a word that is "
        "too similar (section 3.4). Each filter sees only the words that the previous filters kept."
    )
    names = ("subtask", "reason", "words", "% of all", "remaining")
    return Section(sentence, names, rows, text_count=2)


def _build_retrieval(frame: pl.DataFrame) -> Section:
    places = {name: place for place, name in enumerate(sections.order_names(frame["reader"], TABLES_3_4[1]))}
    frame = _sort_rows(frame.sort(pl.col("reader").replace_strict(places)), "subtask")
    best = frame.sort("mrr", "reader", descending=[True, False], nulls_last=True).row(0, named=True)
    rows = []
    for row in frame.iter_rows(named=True):
        printed = TABLES_3_4.get(SUBTASKS.get(row["subtask"], 0), {}).get(row["reader"], [None] * len(MEASURES))
        numbers = [cell for name, paper in zip(MEASURES, printed, strict=True) for cell in (row[name], paper)]
        rows.append([row["subtask"], row["reader"], *map(format_number, numbers), format_count(row["n"])])
    sentence = (
        f"The best reader is {best['reader']} on {best['subtask']}, with a mean reciprocal rank of "
        f"{format_number(best['mrr'])}. These readers propose the wrong options. Each ranks its whole vocabulary for "
        "passages outside its training data, and four wrong words of the top ranks become options (section 3.5). The "
        "paper's numbers (tables 3 and 4) are from data that are not public."
    )
    names = ("subtask", "reader", *(name for measure in MEASURES.values() for name in (measure, "paper")), "n")
    return Section(sentence, names, rows, text_count=2)


def _build_audit(frame: pl.DataFrame) -> Section:
    findings = []
    for best in _find_blind(frame).iter_rows(named=True):
        part = frame.filter(subtask=best["subtask"])
        near_chance_count = int(((part["accuracy"] - part["chance"]).abs() <= BAND).sum())
        findings.append(
            f"on {best['subtask']} {best['baseline']} reaches {format_number(best['accuracy'])}, and "
            f"{near_chance_count} of {part.height} baselines are within {100 * BAND:.0f} points of chance"
        )
    sentence = (
        f"These baselines do not read the passage: {'; '.join(findings)}. The skill of a reader is its accuracy above "
        "these baselines. The best of many baselines is about two standard errors above chance even for perfect items. "
        "The paper has no such baselines (errata E15)."
    )
    rows = frame.sort("accuracy", "baseline", descending=[True, False], nulls_last=True)
    columns = {"subtask": "subtask", "baseline": "baseline", "accuracy": "accuracy", "standard error": "error"}
    table = sections.tabulate(_sort_rows(rows, "subtask"), {**columns, "chance": "chance", "n": "n"})
    return Section(sentence, *table, figures.draw_audit(frame), text_count=2)


def _find_blind(audit: pl.DataFrame) -> pl.DataFrame:
    rows = audit.drop_nulls("accuracy").sort("accuracy", "baseline", descending=[True, False])
    return _sort_rows(rows.unique("subtask", keep="first", maintain_order=True), "subtask")


def _build_readers(frame: pl.DataFrame) -> Section:
    """Rows may have what the best way not to read reaches on the same items, and its name: blind, blind_by."""
    findings, rows = [], []
    frame = frame.sort("accuracy", "reader", "trained_on", descending=[True, False, False], nulls_last=True)
    for subtask in list_subtasks(frame["tested_on"]):
        part = frame.filter(tested_on=subtask)
        published = TABLES_6_7[subtask].gated if subtask in TABLES_6_7 else None
        best = part.row(0, named=True)
        blind, way = best.get("blind"), best.get("blind_by")
        finding, not_reading = "no baseline was measured", "–"
        if blind is not None:
            finding = f"{way} without the passage {format_number(blind)}"
            not_reading = f"{format_number(blind)}\n{way}"
        findings.append(f"on {subtask} the best is {best['reader']} at {format_number(best['accuracy'])}, {finding}")
        for row in part.iter_rows(named=True):
            keys = row["reader"], row["trained_on"], subtask
            above = format_signed(None if blind is None else row["accuracy"] - blind)
            numbers = format_interval(row, "accuracy"), format_number(CHANCE), not_reading, above
            rows.append([*keys, *numbers, format_number(published), format_count(row["n"])])
    names = ("reader", "trained on", "tested on", "accuracy", "chance", "baseline", "above baseline")
    sentence = (
        f"Accuracy with five options, chance {CHANCE:g}: {'; '.join(findings)}. On the official test sets, the paper's "
        "GA Reader has 0.251 and 0.243, and its best teams have 0.951 and 0.953 (section 4, tables 6 and 7). The paper "
        "has no human accuracy."
    )
    return Section(sentence, (*names, "paper's GA", "n"), rows, figures.draw_readers(frame), text_count=3)


def _build_matrix(frame: pl.DataFrame) -> Section:
    frame = _sort_rows(frame, "tested_on", "trained_on")
    drops = {
        (str(row["trained_on"]), str(row["tested_on"])): row["drop"]
        for row in reading.compare_subtasks(frame).iter_rows(named=True)
    }
    findings = [
        f"on {tested_on}, a reader trained on {trained_on} is {abs(drop):.3f} {'below' if drop >= 0 else 'above'} a "
        f"reader trained on {tested_on}"
        for (trained_on, tested_on), drop in drops.items()
        if drop is not None
    ]
    rows = []
    for row in frame.iter_rows(named=True):
        cell = row["trained_on"], row["tested_on"]
        drop, published = drops.get(cell), TABLES_6_7.get(row["tested_on"]) if cell in drops else None
        paper = " to ".join(f"−{drop:.3f}" for drop in published.drops) if published else "–"
        against_home = format_signed(None if drop is None else -drop)
        rows.append([*cell, format_interval(row, "accuracy"), against_home, paper, format_count(row["n"])])
    sentence = (
        f"Transfer: {'; '.join(findings) or 'no reader was tested on the other subtask'}. In the paper, 29 submissions "
        "lose between 0.002 and 0.219; its text calls all these losses substantial (section 4.3, tables 6 and 7)."
    )
    names = ("trained on", "tested on", "accuracy", "difference to same subtask", "in the paper", "n")
    return Section(sentence, names, rows, text_count=2)


def _build_breakdown(frame: pl.DataFrame) -> Section:
    rows = []
    frame = frame.with_columns(pl.col("by").replace(_KINDS))
    kinds = sorted(set(frame["by"]))
    for kind in kinds:
        part = frame.filter(by=kind).sort("trained_on")
        for group in sort_groups(part["group"].to_list()):
            for row in part.filter(pl.col("group").eq_missing(group)).iter_rows(named=True):
                numbers = format_interval(row, "accuracy"), format_number(CHANCE), format_count(row["n"])
                rows.append([kind, "not known" if group is None else group, row["trained_on"], *numbers])
    sentence = (
        f"Accuracy by {' and '.join(kinds)}, with Wilson's intervals that count each article once. With many groups, "
        "some differ by chance. The paper has no such numbers."
    )
    columns = ("by", "items", "trained on", "accuracy", "chance", "n")
    return Section(sentence, columns, rows, figures.draw_breakdown(frame), text_count=3)


def _build_quality(frame: pl.DataFrame) -> Section:
    columns: Columns = {"subtask": "subtask", "flag": lambda row: _FLAGS.get(row["flag"], row["flag"])}
    columns |= {"items": "count", "rated items": "n"}
    columns["share"] = lambda row: format_number(row["count"] / row["n"] if row["n"] else None)
    sentence = (
        f"The items have {sum_counts(frame, 'count'):,} flags. The paper names two kinds of noise: no answer in "
        "the passage, and several right options (section 3.6). An item may have both. Items with too few raters have "
        "no flags."
    )
    return Section(sentence, *sections.tabulate(_sort_rows(frame, "subtask", "flag"), columns), text_count=2)


def _build_sample(frame: pl.DataFrame) -> Section:
    rows = []
    for row in frame.iter_rows(named=True):
        wrong = list(row["options"])
        right = wrong.pop(row["label"])
        question = row["question"].replace(PLACEHOLDER, "____")
        rows.append([row["subtask"], question, right, ", ".join(wrong), sections.shorten(row["article"], PASSAGE)])
    sentence = (
        "Quality control asks three questions (section 3.6). Does the right word fit? Does another word also fit? Does "
        "the passage decide?"
    )
    return Section(sentence, ("subtask", "question", "right", "wrong", "passage"), rows, text_count=5)


PARTS = {
    "items": Part("Item counts", _build_items),
    "funnel": Part("Selection of target words", _build_funnel),
    "dropped": Part("Reasons for dropped items", _build_dropped),
    "retrieval": Part("Retrieval of the right word", _build_retrieval),
    "audit": Part("Baselines without the passage", _build_audit),
    "readers": Part("Reader accuracy", _build_readers),
    "matrix": Part("Transfer between subtasks", _build_matrix),
    "breakdown": Part("Accuracy by kind of item", _build_breakdown),
    "quality": Part("Item quality", _build_quality),
    "sample": Part("Sample items", _build_sample),
}
"""In the order of the page. Reasons of the funnel are those of `examples.recam.building`, target or null for a target;
`quality` counts flags of the n items that raters were asked about."""
