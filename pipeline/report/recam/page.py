"""One HTML page of a cloze set and its readers: what it is made of, what it gives away, who reads it (ReCAM).

Parts without rows are left out, and the page says which. Words, questions and names are hostile data: everything but
our own figures is escaped. A reader's accuracy never stands alone: chance is beside it, and what is reached on the same
items without reading.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.recam.items import PLACEHOLDER
from pipeline.metrics.recam import reading
from pipeline.metrics.recam.retrieval import PAPER as TABLES_3_4
from pipeline.report.impscore.study_sections import Section, number
from pipeline.report.labelling import figures as label_figures
from pipeline.report.recam import figures
from pipeline.report.recam.figures import BAND, CHANCE, MEASURES, REASONS, SUBTASKS, TARGET, in_order, subtasks_of
from pipeline.report.templates import templates

SIZES = {
    "imperceptibility": {"train": 3227, "validation": 837, "test": 2025},
    "nonspecificity": {"train": 3318, "validation": 851, "test": 2017},
}
"""Table 5 of the paper (REC-27)."""
PASSAGE = 400  # characters of a passage that the page shows

_TEMPLATES = templates()
_NONE = pl.DataFrame()
_SPLITS = ("train", "validation", "test")
_FLAGS = {
    "is_unanswerable": "no answer in the passage", "is_ambiguous": "several options are right",
}  # fmt: skip


class Inputs(NamedTuple):
    """What the page shows; frames without rows are parts that are left out.

    `subtask`, `trained_on` and `tested_on` are imperceptibility or nonspecificity; `file` names items that are not
    ours, such as an official file, and is null for ours. All accuracies are in [0, 1].
    """

    day: str
    items: pl.DataFrame = _NONE  # subtask, split, count
    dropped: pl.DataFrame = _NONE  # subtask, reason, count: items that were left out after they were made
    funnel: pl.DataFrame = _NONE  # subtask, reason (of examples.recam.targets; target or null: is one), count
    retrieval: pl.DataFrame = _NONE  # subtask, reader, mrr, recall_1, recall_5, recall_10, n
    audit: pl.DataFrame = _NONE  # file, subtask, baseline, accuracy, error, chance, n (of metrics.recam.audit)
    readers: pl.DataFrame = _NONE  # reader, profile, trained_on, tested_on, file, accuracy, low, high, n
    compared: pl.DataFrame = _NONE  # one, other, tested_on, file, difference, low, high, p, mcnemar, n
    matrix: pl.DataFrame = _NONE  # trained_on, tested_on, accuracy, low, high, n
    breakdown: pl.DataFrame = _NONE  # trained_on, by, group, n, accuracy, low, high (of metrics.recam.reading.by)
    quality: pl.DataFrame = _NONE  # subtask, flag, count, n (items that raters were asked about)
    sample: pl.DataFrame = _NONE  # subtask, question, options, label, article
    signatures: Sequence[str] = ()  # of the models and settings that all this comes from


# the columns that tell rows apart, and the others
_COLUMNS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "items": (("subtask", "split"), ("count",)),
    "dropped": (("subtask", "reason"), ("count",)),
    "funnel": (("subtask", "reason"), ("count",)),
    "retrieval": (("subtask", "reader"), (*MEASURES, "n")),
    "audit": (("file", "subtask", "baseline"), ("accuracy", "error", "chance", "n")),
    "readers": (("reader", "profile", "trained_on", "tested_on", "file"), ("accuracy", "low", "high", "n")),
    "compared": (("one", "other", "tested_on", "file"), ("difference", "low", "high", "p", "mcnemar", "n")),
    "matrix": (("trained_on", "tested_on"), ("accuracy", "low", "high", "n")),
    "breakdown": (("trained_on", "by", "group"), ("n", "accuracy", "low", "high")),
    "quality": (("subtask", "flag"), ("count", "n")),
    "sample": ((), ("subtask", "question", "options", "label", "article")),
}
_NULLABLE = {"file", "group", "reason", "profile", "low", "high"}


def render(inputs: Inputs) -> str:
    """The page as text.

    Raises:
        BadInput: a frame lacks a column or a value, or holds a row twice.
    """
    _check(inputs)
    inputs = inputs._replace(**{
        name: frame.with_columns(pl.lit(None, pl.String).alias("file"))
        for name in ("audit", "readers", "compared")
        if (frame := getattr(inputs, name)).height and "file" not in frame.columns
    })  # fmt: skip
    targets = inputs.funnel.filter(pl.col("reason").fill_null(TARGET) == TARGET) if inputs.funnel.height else _NONE
    counts = {
        "targets": _sum(targets), "items": _sum(inputs.items), "items left out": _sum(inputs.dropped),
    }  # fmt: skip
    return _TEMPLATES.get_template("cloze.html").render(
        day=inputs.day,
        counts=[(name, f"{count:,}") for name, count in counts.items() if count is not None],
        sections=list(_sections(inputs)),
        missing=[told for name, (told, _) in _PARTS.items() if not getattr(inputs, name).height],
        signatures=inputs.signatures,
    )


def _check(inputs: Inputs) -> None:
    for name, (keys, others) in _COLUMNS.items():
        frame = getattr(inputs, name)
        if not frame.height:
            continue
        needed = [column for column in (*keys, *others) if column != "file"]
        if lacking := [column for column in needed if column not in frame.columns]:
            raise BadInput(f"{name}: expected a column {lacking[0]}, found {', '.join(frame.columns)}")
        for column in needed:
            if column not in _NULLABLE and (count := frame[column].null_count()):
                raise BadInput(f"{name}: expected a value of {column} in each row, found {count} null")
        own = [key for key in keys if key in frame.columns]
        if own and (twice := frame.filter(frame.select(own).is_duplicated())).height:
            row = ", ".join(str(value)[:40] for value in twice.select(own).row(0))
            raise BadInput(f"{name}: expected a row for each {', '.join(own)}, found several of {row}")
    if inputs.sample.height:
        for label, options in inputs.sample.select("label", "options").iter_rows():
            if not 0 <= label < len(options):
                raise BadInput(f"sample: expected a label below {len(options)}, found {label}")


def _sections(inputs: Inputs) -> Iterable[Section]:
    return (section(inputs) for name, (_, section) in _PARTS.items() if getattr(inputs, name).height)


def _ordered(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Rows by some columns, the paper's subtasks before other names, in its order."""
    places = [pl.col(name).replace_strict(SUBTASKS, default=3, return_dtype=pl.Int64) for name in columns]
    keys = (key for pair in zip(places, columns, strict=True) for key in pair)
    return frame.sort(*keys, maintain_order=True)


def _sum(frame: pl.DataFrame) -> int | None:
    return int(frame["count"].sum()) if frame.height else None


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _interval(row: Mapping[str, Any], value: str = "accuracy") -> str:
    """A number, and below it its interval."""
    shown, low, high = (number(row[name]).replace("-", "−") for name in (value, "low", "high"))
    return shown if None in (row["low"], row["high"]) else f"{shown}\n{low} to {high}"


def _items(inputs: Inputs) -> Section:
    frame = inputs.items
    splits = sorted(set(frame["split"]), key=lambda name: ((*_SPLITS, name).index(name), name))
    known = {(subtask, split): count for subtask, split, count in frame.select("subtask", "split", "count").iter_rows()}
    rows = []
    for subtask in subtasks_of(frame["subtask"]):
        ours = [known.get((subtask, split), 0) for split in splits]
        rows.append([subtask, "here", *map(_count, ours), _count(sum(ours))])
        if printed := SIZES.get(subtask):
            theirs = [printed.get(split) for split in splits]
            rows.append([subtask, "in the paper", *map(_count, theirs), _count(sum(printed.values()))])
    return Section(
        "How many items there are",
        f"{_count(_sum(frame))} questions with five options each. An article is on one side of the split only, so that "
        "no reader is tested on a passage it has seen. The paper has 12,275 (table 5).",
        "",
        ("subtask", "where", *splits, "together"),
        rows,
        texts=2,
    )


def _dropped(inputs: Inputs) -> Section:
    rows = inputs.dropped.sort(-pl.col("count").cast(pl.Int64), "subtask", "reason")
    names = [f"{reason}, {subtask}" for reason, subtask in rows.select("reason", "subtask").iter_rows()]
    first = rows.row(0, named=True)
    return Section(
        "Why items were left out",
        f"{_count(_sum(rows))} were left out after their word was chosen, most often for {first['reason']} "
        f"({_count(first['count'])} of {first['subtask']}); nothing is left out without a reason. The paper drops what "
        "has two right options or cannot be answered (section 3.6), and does not say how much.",
        label_figures.bars([name.replace("_", " ") for name in names], rows["count"].to_list(), "items left out"),
        ("subtask", "reason", "items"),
        [[row["subtask"], row["reason"], _count(row["count"])] for row in rows.iter_rows(named=True)],
        texts=2,
    )


def _funnel(inputs: Inputs) -> Section:
    rows, said = [], []
    for subtask in subtasks_of(inputs.funnel["subtask"]):
        found = figures.steps(inputs.funnel.filter(pl.col("subtask") == subtask))
        total = int(found["count"].sum())
        for row in found.iter_rows(named=True):
            share = f"{100 * row['count'] / max(total, 1):.1f}"
            name = "is a target" if row["reason"] == TARGET else REASONS.get(row["reason"], row["reason"])
            rows.append([subtask, name, _count(row["count"]), share, _count(row["left"])])
        said.append(f"{_count(found['count'][-1])} of {_count(total)} words of the summaries for {subtask}")
    return Section(
        "From words to questions",
        f"Questions leave out {'; '.join(said)}. A word has to be abstract by its scorer (sections 3.2 and 3.3), and "
        "nothing in the passage may give it away: no form of it, no synonym or antonym, no word too much like it "
        "(section 3.4). Each filter sees what those before it have left.",
        figures.funnel(inputs.funnel),
        ("subtask", "reason", "words", "% of all", "left"),
        rows,
        texts=2,
    )


def _retrieval(inputs: Inputs) -> Section:
    order = {name: place for place, name in enumerate(figures.readers_of(inputs.retrieval["reader"]))}
    rows = _ordered(inputs.retrieval.sort(pl.col("reader").replace_strict(order)), "subtask")
    best = rows.sort("mrr", "reader", descending=[True, False], nulls_last=True).row(0, named=True)
    table = []
    for row in rows.iter_rows(named=True):
        printed = TABLES_3_4.get(SUBTASKS.get(row["subtask"], 0), {}).get(row["reader"], (None,) * 4)
        numbers = [cell for name, paper in zip(MEASURES, printed, strict=True) for cell in (row[name], paper)]
        table.append([row["subtask"], row["reader"], *map(number, numbers), _count(row["n"])])
    return Section(
        "How well the makers of wrong options find the right word",
        f"The best is {best['reader']} on {best['subtask']}, with a mean reciprocal rank of {number(best['mrr'])}. "
        "These readers rank all words they know for passages they were not trained on; of the words they like best "
        "four that are not right become the other options (section 3.5). Beside each number stands that of the paper "
        "(tables 3 and 4), of data that are not public.",
        figures.retrieval(inputs.retrieval),
        ("subtask", "reader", *(name for measure in MEASURES.values() for name in (measure, "paper")), "n"),
        table,
        texts=2,
    )


def _audit(inputs: Inputs) -> Section:
    frame = inputs.audit
    said, rows = [], []
    for (file, subtask), best in _blind(frame).items():
        part = frame.filter(pl.col("file").eq_missing(file) & (pl.col("subtask") == subtask))
        near = int(((part["accuracy"] - part["chance"]).abs() <= BAND).sum())
        said.append(
            f"on {subtask if file is None else f'{subtask} of {file}'} {best['baseline']} reaches "
            f"{number(best['accuracy'])}, and {near} of {part.height} ways are within {100 * BAND:.0f} points of chance"
        )
        part = part.sort("accuracy", "baseline", descending=[True, False], nulls_last=True)
        rows += [
            ["here" if file is None else file, subtask, row["baseline"], number(row["accuracy"]),
             number(row["error"]), number(row["chance"]), _count(row["n"])]
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


def _blind(audit: pl.DataFrame) -> dict[tuple[str | None, str], dict[str, Any]]:
    """The best way not to read by (file, subtask)."""
    if audit.is_empty():
        return {}
    rows = audit.drop_nulls("accuracy").sort("accuracy", "baseline", descending=[True, False])
    rows = rows.unique(["file", "subtask"], keep="first", maintain_order=True)
    rows = _ordered(rows, "subtask").sort(pl.col("file").is_not_null(), "file", maintain_order=True)
    return {(row["file"], row["subtask"]): row for row in rows.iter_rows(named=True)}


def _readers(inputs: Inputs) -> Section:
    blind = _blind(inputs.audit)
    tests = inputs.readers.select("file", "tested_on").iter_rows()
    beside = pl.Series([blind[test]["accuracy"] if test in blind else None for test in tests], dtype=pl.Float64)
    frame = inputs.readers.with_columns(blind=beside)
    said, rows = [], []
    for file, subtask in figures.tests_of(frame):
        part = figures.of_test(frame, file, subtask)
        published = reading.PAPER.get(subtask) if file is None else None
        best, way = part.row(0, named=True), blind.get((file, subtask))
        where = subtask if file is None else f"{subtask} of {file}"
        reached = (
            f"{way['baseline']} without reading {number(way['accuracy'])}" if way else "not reading was not measured"
        )
        said.append(f"on {where} the best is {best['reader']} at {number(best['accuracy'])}, {reached}")
        rows += [
            [row["reader"], row["profile"] or "", row["trained_on"], where, _interval(row), number(CHANCE),
             f"{number(way['accuracy'])}\n{way['baseline']}" if way else "–",
             _signed(row["accuracy"] - way["accuracy"] if way else None),
             number(published.gated if published else None), _count(row["n"])]
            for row in part.iter_rows(named=True)
        ]  # fmt: skip
    return Section(
        "How well readers choose",
        f"Accuracy among five options, chance {CHANCE:g}: {'; '.join(said)}. The paper's GA Reader has 0.251 and 0.243 "
        "and its best teams 0.951 and 0.953, on the official test sets (section 4, tables 6 and 7); of people it has "
        "no accuracy.",
        figures.readers(frame if blind else frame.drop("blind")),
        ("reader", "profile", "trained on", "tested on", "accuracy", "chance", "not reading", "above it", "paper's GA",
         "n"),
        rows,
        texts=4,
    )  # fmt: skip


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}".replace("-", "−")


def _compared(inputs: Inputs) -> Section:
    frame = inputs.compared.sort(pl.col("file").is_not_null(), "file", "tested_on", "one", "other")
    sure = frame.filter(pl.col("p") < 0.05).height
    return Section(
        "Whether one reader is better than another",
        f"{sure} of {frame.height} differences have a p under 0.05; of many some do by chance. Both readers answer the "
        "same items; articles are drawn with replacement, and p is twice the share of samples in which the other is "
        "not behind. McNemar's exact test takes items for independent. The paper compares no two systems so.",
        "",
        ("one", "other", "tested on", "difference", "p", "McNemar's p", "n"),
        [[row["one"], row["other"], row["tested_on"] if row["file"] is None else f"{row['tested_on']}, {row['file']}",
          _interval(row, "difference"), number(row["p"], 4),
          number(row["mcnemar"], 4), _count(row["n"])] for row in frame.iter_rows(named=True)],
        texts=3,
    )  # fmt: skip


def _matrix(inputs: Inputs) -> Section:
    frame = _ordered(inputs.matrix, "tested_on", "trained_on")
    drops = {(row["trained_on"], row["tested_on"]): row["drop"] for row in reading.cross(frame).iter_rows(named=True)}
    said = [
        f"on {tested_on} who learnt {trained_on} is {abs(drop):.3f} {'below' if drop >= 0 else 'above'} who learnt it"
        for (trained_on, tested_on), drop in drops.items()
        if drop is not None
    ]
    rows = []
    for row in frame.iter_rows(named=True):
        cell = row["trained_on"], row["tested_on"]
        drop, published = drops.get(cell), reading.PAPER.get(row["tested_on"]) if cell in drops else None
        paper = " to ".join(f"−{lost:.3f}" for lost in published.drops) if published else "–"
        rows.append([*cell, _interval(row), _signed(None if drop is None else -drop), paper, _count(row["n"])])
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


def _breakdown(inputs: Inputs) -> Section:
    frame = inputs.breakdown
    rows = []
    for kind in sorted(set(frame["by"])):
        part = frame.filter(pl.col("by") == kind)
        order = {group: place for place, group in enumerate(in_order(part["group"].to_list()))}
        for row in sorted(part.iter_rows(named=True), key=lambda row: (order[row["group"]], row["trained_on"])):
            group = "not known" if row["group"] is None else row["group"]
            rows.append(
                [kind.replace("_", " "), group, row["trained_on"], _interval(row), number(CHANCE), _count(row["n"])]
            )
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


def _quality(inputs: Inputs) -> Section:
    rows = _ordered(inputs.quality, "subtask", "flag")
    return Section(
        "What raters found wrong with items",
        f"{_count(_sum(rows))} flags. The paper names two kinds of noise: what cannot be told from the passage, and "
        "several options that are right (section 3.6); an item may have both. Items that too few were asked about have "
        "no flag either way.",
        "",
        ("subtask", "flag", "items", "items asked about", "share"),
        [[row["subtask"], _FLAGS.get(row["flag"], row["flag"]), _count(row["count"]), _count(row["n"]),
          number(row["count"] / row["n"] if row["n"] else None)] for row in rows.iter_rows(named=True)],
        texts=2,
    )  # fmt: skip


def _sample(inputs: Inputs) -> Section:
    rows = []
    for row in inputs.sample.iter_rows(named=True):
        right = row["options"][row["label"]]
        others = [option for place, option in enumerate(row["options"]) if place != row["label"]]
        passage = row["article"] if len(row["article"]) <= PASSAGE else row["article"][:PASSAGE].rstrip() + "…"
        rows.append([row["subtask"], row["question"].replace(PLACEHOLDER, "____"), right, ", ".join(others), passage])
    return Section(
        "Some of the items",
        "Does the right word fit, does another fit as well, and does the passage tell which? The quality control asks "
        "so (section 3.6).",
        "",
        ("subtask", "question", "right", "wrong", "passage"),
        rows,
        texts=5,
    )


_PARTS: dict[str, tuple[str, Callable[[Inputs], Section]]] = {
    "items": ("how many items there are", _items),
    "funnel": ("from how many words they come", _funnel),
    "dropped": ("why items were left out", _dropped),
    "retrieval": ("how well the makers of wrong options find the right word", _retrieval),
    "audit": ("what the items give away to who does not read", _audit),
    "readers": ("how well readers choose", _readers),
    "compared": ("whether one reader is better than another", _compared),
    "matrix": ("how readers do on the other kind of abstractness", _matrix),
    "breakdown": ("which items are read well", _breakdown),
    "quality": ("what raters found wrong with items", _quality),
    "sample": ("what items look like", _sample),
}
"""By frame: what the page says is missing without it, and the part it makes; in the order of the page."""
