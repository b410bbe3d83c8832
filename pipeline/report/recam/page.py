"""One HTML page of a cloze set and its readers: what it is made of, what it gives away, who reads it (ReCAM).

Parts without rows are left out, and the page says which. Words, questions and names are hostile data: everything but
our own figures is escaped. A reader's accuracy never stands alone: chance is beside it, and what is reached on the same
items without reading.
"""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.recam.items import PLACEHOLDER
from pipeline.metrics.recam import reading
from pipeline.papers.recam import SIZES, TABLES_3_4, TABLES_6_7
from pipeline.report import sections
from pipeline.report.labelling import figures as label_figures
from pipeline.report.recam import figures
from pipeline.report.recam.figures import BAND, CHANCE, MEASURES, REASONS, SUBTASKS, TARGET, by_number, subtasks_of
from pipeline.report.sections import Part, Section, count, in_order, interval, number, shorten, signed

PASSAGE = 400  # characters of a passage that the page shows

_NONE = pl.DataFrame()
_FLAGS = {
    "is_unanswerable": "no answer in the passage", "is_ambiguous": "several options are right",
}  # fmt: skip


class Inputs(NamedTuple):
    """What the page shows; frames without rows are parts that are left out.

    `subtask`, `trained_on` and `tested_on` are imperceptibility or nonspecificity; `file` names items that are not
    ours, such as an official file, and is null for ours. All accuracies are in [0, 1]. `PARTS` has the columns.
    """

    day: str
    items: pl.DataFrame = _NONE
    dropped: pl.DataFrame = _NONE
    funnel: pl.DataFrame = _NONE
    retrieval: pl.DataFrame = _NONE
    audit: pl.DataFrame = _NONE
    readers: pl.DataFrame = _NONE
    compared: pl.DataFrame = _NONE
    matrix: pl.DataFrame = _NONE
    breakdown: pl.DataFrame = _NONE
    quality: pl.DataFrame = _NONE
    sample: pl.DataFrame = _NONE
    signatures: Sequence[str] = ()  # of the models and settings that all this comes from


def render(inputs: Inputs) -> str:
    """The page as text.

    Raises:
        BadInput: a frame lacks a column or a value, or holds a row twice.
    """
    frames = inputs._asdict() | {name: _with_file(getattr(inputs, name)) for name in ("audit", "readers", "compared")}
    rows = sections.fill(PARTS, frames)
    for label, options in rows["sample"].select("label", "options").iter_rows() if "sample" in rows else ():
        if not 0 <= label < len(options):
            raise BadInput(f"sample: expected a label below {len(options)}, found {label}")
    targets = rows["funnel"].filter(pl.col("reason").fill_null(TARGET) == TARGET) if "funnel" in rows else _NONE
    counts = {"targets": targets, "items": rows.get("items", _NONE), "items left out": rows.get("dropped", _NONE)}
    if "readers" in rows and "audit" in rows:
        blind = _blind(rows["audit"]).select("file", tested_on="subtask", blind="accuracy", blind_by="baseline")
        rows["readers"] = rows["readers"].join(blind, on=["file", "tested_on"], how="left", nulls_equal=True)
    return sections.render(
        f"cloze questions, {inputs.day}",
        "Cloze questions on abstract words",
        f"What the questions are made of, what they give away, and how well readers answer them (ReCAM), {inputs.day}.",
        **sections.build(PARTS, rows),
        counts={name: _sum(frame) if frame.height else None for name, frame in counts.items()},
        signatures=inputs.signatures,
    )


def _with_file(frame: pl.DataFrame) -> pl.DataFrame:
    """Without a column `file` all items are ours."""
    return frame if "file" in frame.columns or frame.is_empty() else frame.with_columns(file=pl.lit(None, pl.String))


def _ordered(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Rows by some columns, the paper's subtasks before other names, in its order."""
    places = [pl.col(name).replace_strict(SUBTASKS, default=3, return_dtype=pl.Int64) for name in columns]
    keys = (key for pair in zip(places, columns, strict=True) for key in pair)
    return frame.sort(*keys, maintain_order=True)


def _sum(frame: pl.DataFrame) -> int:
    return int(frame["count"].sum())


def _items(frame: pl.DataFrame) -> Section:
    splits = in_order(frame["split"], ("train", "validation", "test"))
    known = {(subtask, split): size for subtask, split, size in frame.select("subtask", "split", "count").iter_rows()}
    rows = []
    for subtask in subtasks_of(frame["subtask"]):
        ours = [known.get((subtask, split), 0) for split in splits]
        rows.append([subtask, "here", *map(count, ours), count(sum(ours))])
        if printed := SIZES.get(subtask):
            theirs = [printed.get(split) for split in splits]
            rows.append([subtask, "in the paper", *map(count, theirs), count(sum(printed.values()))])
    return Section(
        "How many items there are",
        f"{count(_sum(frame))} questions with five options each. An article is on one side of the split only, so that "
        "no reader is tested on a passage it has seen. The paper has 12,275 (table 5).",
        "",
        ("subtask", "where", *splits, "together"),
        rows,
        texts=2,
    )


def _dropped(frame: pl.DataFrame) -> Section:
    rows = frame.sort(-pl.col("count").cast(pl.Int64), "subtask", "reason")
    names = [f"{reason}, {subtask}" for reason, subtask in rows.select("reason", "subtask").iter_rows()]
    first = rows.row(0, named=True)
    return Section(
        "Why items were left out",
        f"{count(_sum(rows))} were left out after their word was chosen, most often for {first['reason']} "
        f"({count(first['count'])} of {first['subtask']}); nothing is left out without a reason. The paper drops what "
        "has two right options or cannot be answered (section 3.6), and does not say how much.",
        label_figures.bars([name.replace("_", " ") for name in names], rows["count"].to_list(), "items left out"),
        ("subtask", "reason", "items"),
        [[row["subtask"], row["reason"], count(row["count"])] for row in rows.iter_rows(named=True)],
        texts=2,
    )


def _funnel(frame: pl.DataFrame) -> Section:
    rows, said = [], []
    for subtask in subtasks_of(frame["subtask"]):
        found = figures.steps(frame.filter(pl.col("subtask") == subtask))
        total = int(found["count"].sum())
        for row in found.iter_rows(named=True):
            share = f"{100 * row['count'] / max(total, 1):.1f}"
            name = "is a target" if row["reason"] == TARGET else REASONS.get(row["reason"], row["reason"])
            rows.append([subtask, name, count(row["count"]), share, count(row["left"])])
        said.append(f"{count(found['count'][-1])} of {count(total)} words of the summaries for {subtask}")
    return Section(
        "From words to questions",
        f"Questions leave out {'; '.join(said)}. A word has to be abstract by its scorer (sections 3.2 and 3.3), and "
        "nothing in the passage may give it away: no form of it, no synonym or antonym, no word too much like it "
        "(section 3.4). Each filter sees what those before it have left.",
        figures.funnel(frame),
        ("subtask", "reason", "words", "% of all", "left"),
        rows,
        texts=2,
    )


def _retrieval(frame: pl.DataFrame) -> Section:
    order = {name: place for place, name in enumerate(figures.readers_of(frame["reader"]))}
    rows = _ordered(frame.sort(pl.col("reader").replace_strict(order)), "subtask")
    best = rows.sort("mrr", "reader", descending=[True, False], nulls_last=True).row(0, named=True)
    table = []
    for row in rows.iter_rows(named=True):
        printed = TABLES_3_4.get(SUBTASKS.get(row["subtask"], 0), {}).get(row["reader"], (None,) * 4)
        numbers = [cell for name, paper in zip(MEASURES, printed, strict=True) for cell in (row[name], paper)]
        table.append([row["subtask"], row["reader"], *map(number, numbers), count(row["n"])])
    return Section(
        "How well the makers of wrong options find the right word",
        f"The best is {best['reader']} on {best['subtask']}, with a mean reciprocal rank of {number(best['mrr'])}. "
        "These readers rank all words they know for passages they were not trained on; of the words they like best "
        "four that are not right become the other options (section 3.5). Beside each number stands that of the paper "
        "(tables 3 and 4), of data that are not public.",
        figures.retrieval(frame),
        ("subtask", "reader", *(name for measure in MEASURES.values() for name in (measure, "paper")), "n"),
        table,
        texts=2,
    )


def _audit(frame: pl.DataFrame) -> Section:
    said, rows = [], []
    for best in _blind(frame).iter_rows(named=True):
        file, subtask = best["file"], best["subtask"]
        part = frame.filter(pl.col("file").eq_missing(file) & (pl.col("subtask") == subtask))
        near = int(((part["accuracy"] - part["chance"]).abs() <= BAND).sum())
        said.append(
            f"on {subtask if file is None else f'{subtask} of {file}'} {best['baseline']} reaches "
            f"{number(best['accuracy'])}, and {near} of {part.height} ways are within {100 * BAND:.0f} points of chance"
        )
        part = part.sort("accuracy", "baseline", descending=[True, False], nulls_last=True)
        rows += [
            ["here" if file is None else file, subtask, row["baseline"], number(row["accuracy"]),
             number(row["error"]), number(row["chance"]), count(row["n"])]
            for row in part.iter_rows(named=True)
        ]  # fmt: skip
    return Section(
        "What the items give away to who does not read",
        f"Of ways to answer without understanding, {'; '.join(said)}. A reader is worth what it has above these. The "
        "best of many ways lies above chance even where nothing is given away, by two standard errors or so. The paper "
        "has no such audit (errata E15).",
        figures.audit(frame),
        ("items", "subtask", "way", "accuracy", "standard error", "chance", "n"),
        rows,
        texts=3,
    )


def _blind(audit: pl.DataFrame) -> pl.DataFrame:
    """The best way not to read of each file and subtask."""
    rows = audit.drop_nulls("accuracy").sort("accuracy", "baseline", descending=[True, False])
    rows = rows.unique(["file", "subtask"], keep="first", maintain_order=True)
    return _ordered(rows, "subtask").sort(pl.col("file").is_not_null(), "file", maintain_order=True)


def _readers(frame: pl.DataFrame) -> Section:
    """Rows may have what the best way not to read reaches on the same items, and its name: blind, blind_by."""
    said, rows = [], []
    for file, subtask in figures.tests_of(frame):
        part = figures.of_test(frame, file, subtask)
        published = TABLES_6_7.get(subtask) if file is None else None
        best = part.row(0, named=True)
        blind, way = best.get("blind"), best.get("blind_by")
        where = subtask if file is None else f"{subtask} of {file}"
        reached = "not reading was not measured" if blind is None else f"{way} without reading {number(blind)}"
        said.append(f"on {where} the best is {best['reader']} at {number(best['accuracy'])}, {reached}")
        rows += [
            [row["reader"], row["profile"] or "", row["trained_on"], where, interval(row, "accuracy"), number(CHANCE),
             "–" if blind is None else f"{number(blind)}\n{way}",
             signed(None if blind is None else row["accuracy"] - blind),
             number(published.gated if published else None), count(row["n"])]
            for row in part.iter_rows(named=True)
        ]  # fmt: skip
    return Section(
        "How well readers choose",
        f"Accuracy among five options, chance {CHANCE:g}: {'; '.join(said)}. The paper's GA Reader has 0.251 and 0.243 "
        "and its best teams 0.951 and 0.953, on the official test sets (section 4, tables 6 and 7); of people it has "
        "no accuracy.",
        figures.readers(frame),
        ("reader", "profile", "trained on", "tested on", "accuracy", "chance", "not reading", "above it", "paper's GA",
         "n"),
        rows,
        texts=4,
    )  # fmt: skip


def _compared(frame: pl.DataFrame) -> Section:
    frame = frame.sort(pl.col("file").is_not_null(), "file", "tested_on", "one", "other")
    sure = frame.filter(pl.col("p") < 0.05).height
    return Section(
        "Whether one reader is better than another",
        f"{sure} of {frame.height} differences have a p under 0.05; of many some do by chance. Both readers answer the "
        "same items; articles are drawn with replacement, and p is twice the share of samples in which the other is "
        "not behind. McNemar's exact test takes items for independent. The paper compares no two systems so.",
        "",
        ("one", "other", "tested on", "difference", "p", "McNemar's p", "n"),
        [[row["one"], row["other"], row["tested_on"] if row["file"] is None else f"{row['tested_on']}, {row['file']}",
          interval(row, "difference"), number(row["p"], 4),
          number(row["mcnemar"], 4), count(row["n"])] for row in frame.iter_rows(named=True)],
        texts=3,
    )  # fmt: skip


def _matrix(frame: pl.DataFrame) -> Section:
    frame = _ordered(frame, "tested_on", "trained_on")
    drops = {
        (row["trained_on"], row["tested_on"]): row["drop"]
        for row in reading.compare_subtasks(frame).iter_rows(named=True)
    }
    said = [
        f"on {tested_on} who learnt {trained_on} is {abs(drop):.3f} {'below' if drop >= 0 else 'above'} who learnt it"
        for (trained_on, tested_on), drop in drops.items()
        if drop is not None
    ]
    rows = []
    for row in frame.iter_rows(named=True):
        cell = row["trained_on"], row["tested_on"]
        drop, published = drops.get(cell), TABLES_6_7.get(row["tested_on"]) if cell in drops else None
        paper = " to ".join(f"−{lost:.3f}" for lost in published.drops) if published else "–"
        rows.append([*cell, interval(row, "accuracy"), signed(None if drop is None else -drop), paper, count(row["n"])])
    return Section(
        "Trained on one kind of abstractness, tested on the other",
        f"Away from home: {'; '.join(said) or 'no reader can be held against one of the other kind'}. In the paper "
        "29 submissions lose between 0.002 and 0.219, which its text calls substantial for all (section 4.3, "
        "tables 6 and 7).",
        figures.matrix(frame),
        ("trained on", "tested on", "accuracy", "against home", "in the paper", "n"),
        rows,
        texts=2,
    )


def _breakdown(frame: pl.DataFrame) -> Section:
    rows = []
    for kind in sorted(set(frame["by"])):
        part = frame.filter(pl.col("by") == kind)
        order = {group: place for place, group in enumerate(by_number(part["group"].to_list()))}
        for row in sorted(part.iter_rows(named=True), key=lambda row: (order[row["group"]], row["trained_on"])):
            group = "not known" if row["group"] is None else row["group"]
            numbers = interval(row, "accuracy"), number(CHANCE), count(row["n"])
            rows.append([kind.replace("_", " "), group, row["trained_on"], *numbers])
    kinds = ", ".join(sorted(set(frame["by"].str.replace_all("_", " "))))
    return Section(
        "Which items are read well",
        f"Accuracy by {kinds}, with Wilson's intervals for which an article counts once. Of many parts some stand out "
        "by chance. The paper has no such numbers.",
        figures.breakdown(frame),
        ("by", "items", "trained on", "accuracy", "chance", "n"),
        rows,
        texts=3,
    )


def _quality(frame: pl.DataFrame) -> Section:
    rows = _ordered(frame, "subtask", "flag")
    return Section(
        "What raters found wrong with items",
        f"{count(_sum(rows))} flags. The paper names two kinds of noise: what cannot be told from the passage, and "
        "several options that are right (section 3.6); an item may have both. Items that too few were asked about have "
        "no flag either way.",
        "",
        ("subtask", "flag", "items", "items asked about", "share"),
        [[row["subtask"], _FLAGS.get(row["flag"], row["flag"]), count(row["count"]), count(row["n"]),
          number(row["count"] / row["n"] if row["n"] else None)] for row in rows.iter_rows(named=True)],
        texts=2,
    )  # fmt: skip


def _sample(frame: pl.DataFrame) -> Section:
    rows = []
    for row in frame.iter_rows(named=True):
        right = row["options"][row["label"]]
        others = [option for place, option in enumerate(row["options"]) if place != row["label"]]
        question = row["question"].replace(PLACEHOLDER, "____")
        rows.append([row["subtask"], question, right, ", ".join(others), shorten(row["article"], PASSAGE)])
    return Section(
        "Some of the items",
        "Does the right word fit, does another fit as well, and does the passage tell which? The quality control asks "
        "so (section 3.6).",
        "",
        ("subtask", "question", "right", "wrong", "passage"),
        rows,
        texts=5,
    )


PARTS = {
    "items": Part("how many items there are", _items, "subtask split", "count"),
    "funnel": Part("from how many words they come", _funnel, "subtask reason?", "count"),
    "dropped": Part("why items were left out", _dropped, "subtask reason?", "count"),
    "retrieval": Part(
        "how well the makers of wrong options find the right word", _retrieval, "subtask reader",
        "mrr recall_1 recall_5 recall_10 n",
    ),
    "audit": Part(
        "what the items give away to who does not read", _audit, "file? subtask baseline", "accuracy error chance n"
    ),
    "readers": Part(
        "how well readers choose", _readers, "reader profile? trained_on tested_on file?", "accuracy low? high? n"
    ),
    "compared": Part(
        "whether one reader is better than another", _compared, "one other tested_on file?",
        "difference low? high? p mcnemar n",
    ),
    "matrix": Part(
        "how readers do on the other kind of abstractness", _matrix, "trained_on tested_on", "accuracy low? high? n"
    ),
    "breakdown": Part("which items are read well", _breakdown, "trained_on by group?", "n accuracy low? high?"),
    "quality": Part("what raters found wrong with items", _quality, "subtask flag", "count n"),
    "sample": Part("what items look like", _sample, "", "subtask question options label article"),
}  # fmt: skip
"""In the order of the page. Reasons of the funnel are those of `examples.recam.targets`, target or null for a target;
`quality` counts flags of the n items that raters were asked about."""
