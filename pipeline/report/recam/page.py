"""One HTML page of a cloze set and its readers: what it is made of, what it gives away, who reads it (ReCAM).

Parts without rows are left out, and the page says which. Words, questions and names are hostile data: everything but
our own figures is escaped. A reader's accuracy never stands alone: chance is beside it, and what is reached on the same
items without reading.
"""

from collections.abc import Sequence

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.recam.items import PLACEHOLDER
from pipeline.papers.recam import SIZES, TABLES_3_4, TABLES_6_7
from pipeline.report import sections
from pipeline.report.labelling import figures as label_figures
from pipeline.report.recam import figures
from pipeline.report.recam.figures import BAND, CHANCE, MEASURES, REASONS, SUBTASKS, TARGET, list_subtasks, sort_groups
from pipeline.report.sections import Part, Section, format_count, format_interval, format_number, format_signed

PASSAGE = 400  # characters of a passage that the page shows

_NONE = pl.DataFrame()
_FLAGS = {"is_unanswerable": "no answer in the passage", "is_ambiguous": "several options are right"}


def render(day: str, signatures: Sequence[str] = (), **frames: pl.DataFrame) -> str:
    """Render the page as text, of the frames that `PARTS` names; those without rows are parts that are left out.

    `subtask`, `trained_on` and `tested_on` are imperceptibility or nonspecificity; all accuracies are in [0, 1].
    Signatures name the models and settings that all this comes from. BadInput if a frame lacks a column or a value, or
    holds a row twice.
    """
    rows = sections.check_rows(PARTS, frames)
    for label, options in rows["sample"].select("label", "options").iter_rows() if "sample" in rows else ():
        if not 0 <= label < len(options):
            raise BadInput(f"sample: expected a label below {len(options)}, found {label}")
    targets = rows["funnel"].filter(pl.col("reason").fill_null(TARGET) == TARGET) if "funnel" in rows else _NONE
    counts = {"targets": targets, "items": rows.get("items", _NONE), "items left out": rows.get("dropped", _NONE)}
    if "readers" in rows and "audit" in rows:
        blind = _find_blind(rows["audit"]).select(tested_on="subtask", blind="accuracy", blind_by="baseline")
        rows["readers"] = rows["readers"].join(blind, on="tested_on", how="left")
    return sections.render(
        f"cloze questions, {day}",
        "Cloze questions on abstract words",
        f"What the questions are made of, what they give away, and how well readers answer them (ReCAM), {day}.",
        **sections.build_sections(PARTS, rows),
        counts={name: _sum_counts(frame) if frame.height else None for name, frame in counts.items()},
        signatures=signatures,
    )


def _sort_rows(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Rows by some columns, the paper's subtasks before other names, in its order."""
    places = (pl.col(name).replace_strict(SUBTASKS, default=3, return_dtype=pl.Int64) for name in columns)
    return frame.sort(*(key for pair in zip(places, columns, strict=True) for key in pair), maintain_order=True)


def _sum_counts(frame: pl.DataFrame) -> int:
    return int(frame["count"].sum())


def _build_items(frame: pl.DataFrame) -> Section:
    splits = sections.order_names(frame["split"], ("train", "validation", "test"))
    rows = []
    for subtask in list_subtasks(frame["subtask"]):
        counts = dict(frame.filter(subtask=subtask).select("split", "count").iter_rows())
        for origin, sizes in (("here", counts), ("in the paper", SIZES.get(subtask))):
            if sizes:
                numbers = [sizes.get(split, 0 if origin == "here" else None) for split in splits]
                rows.append([subtask, origin, *map(format_count, [*numbers, sum(sizes.values())])])
    return Section(
        "How many items there are",
        f"{format_count(_sum_counts(frame))} questions with five options each. An article is on one side of the "
        "split only, so that no reader is tested on a passage it has seen. The paper has 12,275 (table 5).",
        "",
        ("subtask", "where", *splits, "together"),
        rows,
        text_count=2,
    )


def _build_dropped(frame: pl.DataFrame) -> Section:
    rows = frame.sort(-pl.col("count").cast(pl.Int64), "subtask", "reason").select("subtask", "reason", "count").rows()
    names = [f"{reason}, {subtask}".replace("_", " ") for subtask, reason, _ in rows]
    subtask, reason, count = rows[0]
    return Section(
        "Why items were left out",
        f"{format_count(_sum_counts(frame))} items were dropped after their word was chosen, most often for "
        f"{reason} ({format_count(count)} of {subtask}); every dropped item has a reason. "
        "The paper drops items with two right options or no answer (section 3.6) and does not say how many.",
        label_figures.draw_bars(names, [row[2] for row in rows], "items left out"),
        ("subtask", "reason", "items"),
        [[*names, format_count(number)] for *names, number in rows],
        text_count=2,
    )


def _build_funnel(frame: pl.DataFrame) -> Section:
    rows, summaries = [], []
    for subtask in list_subtasks(frame["subtask"]):
        steps = figures.order_steps(frame.filter(subtask=subtask))
        total = int(steps["count"].sum())
        for reason, count, remaining in steps.iter_rows():
            name = "is a target" if reason == TARGET else REASONS.get(reason, reason)
            share = f"{100 * count / max(total, 1):.1f}"
            rows.append([subtask, name, format_count(count), share, format_count(remaining)])
        summaries.append(
            f"{format_count(steps['count'][-1])} of the {format_count(total)} words of the summaries can be the blank "
            f"of an item on {subtask}"
        )
    return Section(
        "From words to questions",
        f"{'; '.join(summaries)}. Such a word has to be abstract by its scorer (sections 3.2 and 3.3), and nothing "
        "in the passage may give it away: no form of it, no synonym or antonym, no word that is too similar (section "
        "3.4). Each filter sees only the words that the filters before it kept.",
        figures.draw_funnel(frame),
        ("subtask", "reason", "words", "% of all", "left"),
        rows,
        text_count=2,
    )


def _build_retrieval(frame: pl.DataFrame) -> Section:
    places = {name: place for place, name in enumerate(sections.order_names(frame["reader"], TABLES_3_4[1]))}
    frame = _sort_rows(frame.sort(pl.col("reader").replace_strict(places)), "subtask")
    best = frame.sort("mrr", "reader", descending=[True, False], nulls_last=True).row(0, named=True)
    rows = []
    for row in frame.iter_rows(named=True):
        printed = figures.get_printed(row["subtask"], row["reader"])
        numbers = [cell for name, paper in zip(MEASURES, printed, strict=True) for cell in (row[name], paper)]
        rows.append([row["subtask"], row["reader"], *map(format_number, numbers), format_count(row["n"])])
    return Section(
        "How well the readers that propose wrong options find the right word",
        f"The best is {best['reader']} on {best['subtask']}, with a mean reciprocal rank of "
        f"{format_number(best['mrr'])}. These readers rank their whole vocabulary for passages they were not trained "
        "on; four wrong words of the top ranks become the other options (section 3.5). The paper's numbers (tables 3 "
        "and 4) are from data that are not public.",
        figures.draw_retrieval(frame),
        ("subtask", "reader", *(name for measure in MEASURES.values() for name in (measure, "paper")), "n"),
        rows,
        text_count=2,
    )


def _build_audit(frame: pl.DataFrame) -> Section:
    findings, rows = [], []
    for best in _find_blind(frame).iter_rows(named=True):
        part = frame.filter(subtask=best["subtask"])
        near_chance_count = int(((part["accuracy"] - part["chance"]).abs() <= BAND).sum())
        findings.append(
            f"on {best['subtask']} {best['baseline']} reaches {format_number(best['accuracy'])}, and "
            f"{near_chance_count} of {part.height} baselines are within {100 * BAND:.0f} points of chance"
        )
        part = part.sort("accuracy", "baseline", descending=[True, False], nulls_last=True)
        for row in part.iter_rows(named=True):
            numbers = map(format_number, (row["accuracy"], row["error"], row["chance"]))
            rows.append(["here", row["subtask"], row["baseline"], *numbers, format_count(row["n"])])
    return Section(
        "What the items give away without reading",
        f"Baselines answer without reading the passage: {'; '.join(findings)}. A reader's skill is what it reaches "
        "above them. The best of many baselines is about two standard errors above chance even if the items give "
        "nothing away. The paper has no such audit (errata E15).",
        figures.draw_audit(frame),
        ("items", "subtask", "way", "accuracy", "standard error", "chance", "n"),
        rows,
        text_count=3,
    )


def _find_blind(audit: pl.DataFrame) -> pl.DataFrame:
    """The best way not to read of each subtask."""
    rows = audit.drop_nulls("accuracy").sort("accuracy", "baseline", descending=[True, False])
    return _sort_rows(rows.unique("subtask", keep="first", maintain_order=True), "subtask")


def _build_readers(frame: pl.DataFrame) -> Section:
    """Rows may have what the best way not to read reaches on the same items, and its name: blind, blind_by."""
    findings, rows = [], []
    for subtask, part in figures.sort_tests(frame).items():
        published = TABLES_6_7[subtask].gated if subtask in TABLES_6_7 else None
        best = part.row(0, named=True)
        blind, way = best.get("blind"), best.get("blind_by")
        blind_text = "no baseline was measured" if blind is None else f"{way} without reading {format_number(blind)}"
        findings.append(f"on {subtask} the best is {best['reader']} at {format_number(best['accuracy'])}, {blind_text}")
        not_reading = "–" if blind is None else f"{format_number(blind)}\n{way}"
        for row in part.iter_rows(named=True):
            names = row["reader"], row["profile"] or "", row["trained_on"], subtask
            above = format_signed(None if blind is None else row["accuracy"] - blind)
            numbers = format_interval(row, "accuracy"), format_number(CHANCE), not_reading, above
            rows.append([*names, *numbers, format_number(published), format_count(row["n"])])
    names_of_columns = ("reader", "profile", "trained on", "tested on", "accuracy", "chance", "not reading")
    return Section(
        "How well readers choose",
        f"Accuracy among five options, chance {CHANCE:g}: {'; '.join(findings)}. The paper's GA Reader has 0.251 and "
        "0.243 and its best teams 0.951 and 0.953, on the official test sets (section 4, tables 6 and 7); of people "
        "it has no accuracy.",
        figures.draw_readers(frame),
        (*names_of_columns, "above it", "paper's GA", "n"),
        rows,
        text_count=4,
    )


def _build_compared(frame: pl.DataFrame) -> Section:
    rows = []
    for row in frame.sort("tested_on", "one", "other").iter_rows(named=True):
        names = (row[name] for name in ("one", "other", "tested_on"))
        p_values = (format_number(row[name], 4) for name in ("p", "mcnemar"))
        rows.append([*names, format_interval(row, "difference"), *p_values, format_count(row["n"])])
    return Section(
        "Whether one reader is better than another",
        f"{frame.filter(pl.col('p') < 0.05).height} of {frame.height} differences have a p under 0.05; of many some do "
        "by chance. Both readers answer the same items; articles are drawn with replacement, and p is twice the share "
        "of samples in which the other is not behind. McNemar's exact test assumes independent items. The paper does "
        "not compare systems this way.",
        "",
        ("one", "other", "tested on", "difference", "p", "McNemar's p", "n"),
        rows,
        text_count=3,
    )


def _build_matrix(frame: pl.DataFrame) -> Section:
    frame = _sort_rows(frame, "tested_on", "trained_on")
    drops = figures.index_drops(frame)
    findings = [
        f"on {tested_on} a reader trained on {trained_on} is {abs(drop):.3f} {'below' if drop >= 0 else 'above'} one "
        "trained on it"
        for (trained_on, tested_on), drop in drops.items()
        if drop is not None
    ]
    rows = []
    for row in frame.iter_rows(named=True):
        cell = row["trained_on"], row["tested_on"]
        drop, published = drops.get(cell), TABLES_6_7.get(row["tested_on"]) if cell in drops else None
        paper = " to ".join(f"−{lost:.3f}" for lost in published.drops) if published else "–"
        against_home = format_signed(None if drop is None else -drop)
        rows.append([*cell, format_interval(row, "accuracy"), against_home, paper, format_count(row["n"])])
    return Section(
        "Trained on one kind of abstractness, tested on the other",
        f"Across subtasks: {'; '.join(findings) or 'no reader was tested on the other kind'}. In the paper 29 "
        "submissions lose between 0.002 and 0.219, and its text calls all these losses substantial (section 4.3, "
        "tables 6 and 7).",
        figures.draw_matrix(frame),
        ("trained on", "tested on", "accuracy", "against home", "in the paper", "n"),
        rows,
        text_count=2,
    )


def _build_breakdown(frame: pl.DataFrame) -> Section:
    rows = []
    kinds = sorted(set(frame["by"]))
    for kind in kinds:
        part = frame.filter(by=kind).sort("trained_on")
        for group in sort_groups(part["group"].to_list()):
            for row in part.filter(pl.col("group").eq_missing(group)).iter_rows(named=True):
                names = kind.replace("_", " "), "not known" if group is None else group, row["trained_on"]
                numbers = format_interval(row, "accuracy"), format_number(CHANCE), format_count(row["n"])
                rows.append([*names, *numbers])
    return Section(
        "Accuracy by kind of item",
        f"Accuracy by {', '.join(kind.replace('_', ' ') for kind in kinds)}, with Wilson's intervals for which an "
        "article counts once. Of many parts some stand out by chance. The paper has no such numbers.",
        figures.draw_breakdown(frame),
        ("by", "items", "trained on", "accuracy", "chance", "n"),
        rows,
        text_count=3,
    )


def _build_quality(frame: pl.DataFrame) -> Section:
    rows = []
    for row in _sort_rows(frame, "subtask", "flag").iter_rows(named=True):
        share = format_number(row["count"] / row["n"] if row["n"] else None)
        counts = format_count(row["count"]), format_count(row["n"])
        rows.append([row["subtask"], _FLAGS.get(row["flag"], row["flag"]), *counts, share])
    return Section(
        "What raters found wrong with items",
        f"{format_count(_sum_counts(frame))} flags. The paper names two kinds of noise: no answer in the passage, and "
        "several right options (section 3.6); an item may have both. Items with too few raters have no flags.",
        "",
        ("subtask", "flag", "items", "items asked about", "share"),
        rows,
        text_count=2,
    )


def _build_sample(frame: pl.DataFrame) -> Section:
    rows = []
    for row in frame.iter_rows(named=True):
        wrong = list(row["options"])
        right = wrong.pop(row["label"])
        question = row["question"].replace(PLACEHOLDER, "____")
        rows.append([row["subtask"], question, right, ", ".join(wrong), sections.shorten(row["article"], PASSAGE)])
    return Section(
        "Some of the items",
        "Does the right word fit, does another word fit too, and does the passage decide? Quality control asks this "
        "(section 3.6).",
        "",
        ("subtask", "question", "right", "wrong", "passage"),
        rows,
        text_count=5,
    )


_INTERVAL = "accuracy low? high? n"
PARTS = {
    "items": Part("how many items there are", _build_items, "subtask split", "count"),
    "funnel": Part("from how many words they come", _build_funnel, "subtask reason?", "count"),
    "dropped": Part("why items were left out", _build_dropped, "subtask reason?", "count"),
    "retrieval": Part("how well the readers that propose wrong options find the right word", _build_retrieval,
                      "subtask reader", "mrr recall_1 recall_5 recall_10 n"),
    "audit": Part("what the items give away without reading", _build_audit, "subtask baseline",
                  "accuracy error chance n"),
    "readers": Part("how well readers choose", _build_readers, "reader profile? trained_on tested_on", _INTERVAL),
    "compared": Part("whether one reader is better than another", _build_compared, "one other tested_on",
                     "difference low? high? p mcnemar n"),
    "matrix": Part("how readers do on the other kind of abstractness", _build_matrix, "trained_on tested_on",
                   _INTERVAL),
    "breakdown": Part("accuracy by kind of item", _build_breakdown, "trained_on by group?", _INTERVAL),
    "quality": Part("what raters found wrong with items", _build_quality, "subtask flag", "count n"),
    "sample": Part("what items look like", _build_sample, "", "subtask question options label article"),
}  # fmt: skip
"""In the order of the page. Reasons of the funnel are those of `examples.recam.targets`, target or null for a target;
`quality` counts flags of the n items that raters were asked about."""
