"""Parts of the page of NDD on measures: how they go with people, trees and other measures, and how they spread."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipeline.papers import ndd as paper
from pipeline.papers.ndd import METRICS, SYSTEMS, TABLE_8
from pipeline.report.figures import dots
from pipeline.report.ndd import figures
from pipeline.report.sections import Section, count, in_order, interval, minus, number, rows_by

Row = Mapping[str, Any]
_SPREAD = {5: "5 %", 25: "25 %", 50: "median", 75: "75 %", 95: "95 %"}
_KNOWN: Mapping[str, Mapping[str, str]] = {
    "test": paper.TESTS, "measure": paper.MEASURES, "edit": paper.EDITS, "metric": METRICS,
    "system": {"gold": "gold", **SYSTEMS}, "label": {"positive": "positive", "negative": "negative"},
    "other": {"implicitness": "implicitness", "subtext": "subtext", "word_count": "word count"},
}  # fmt: skip


def names_of(frame: pl.DataFrame, column: str) -> dict[str, str]:
    """What is in a column, in the order of the page, and what it is called."""
    known = _KNOWN.get(column, {})
    return {key: known.get(key, key) for key in in_order(frame[column], known)}


def largest_n(rows: Sequence[Row]) -> str:
    return count(max((row["n"] for row in rows if row.get("n") is not None), default=None))


class _Beside(NamedTuple):
    """What the paper prints: a column of text, and ticks of the figure by metric, row and mark."""

    column: str
    text: Callable[[str, str], str]
    printed: Mapping[tuple[str, str, str], float]


def _dotted(
    title: str, sentence: str, frame: pl.DataFrame, row: str, mark: str, beside: _Beside | None = None, *,
    scale: float = 1, digits: int = 3, chance: Mapping[str, float] | None = None, is_shared: bool = False,
) -> Section:  # fmt: skip
    """A part of numbers with intervals, by the columns row and mark, a panel and a column each metric."""
    known = rows_by(frame, "metric", row, mark)
    panels, rows, marks = (names_of(frame, column) for column in ("metric", row, mark))
    cells = []
    for key, name in rows.items():
        for own, called in marks.items():
            found = [known.get((kind, key, own), {}) for kind in panels]
            if any(found):
                shown = [interval(each, scale=scale, digits=digits) for each in found]
                printed = [beside.text(key, own)] if beside else []
                cells.append([name, called, *shown, *printed, largest_n(found)])
    figure = dots(
        known, panels, rows, marks, looks={key: figures.measure_look(key, i) for i, key in enumerate(marks)},
        printed=beside.printed if beside else {}, paper=figures.PAPER, scale=scale, chance=chance, is_shared=is_shared,
    )  # fmt: skip
    columns = (row, mark, *panels.values(), *([beside.column] if beside else []), "n")
    return Section(title, sentence, figure, columns, cells, texts=2)


def tests(frame: pl.DataFrame) -> Section:
    printed = {("pearson", *key): value for key, value in paper.TABLE_1.items()}
    beside = _Beside("paper, r", lambda *key: number(paper.TABLE_1.get(key)), printed)
    return _dotted(
        "Whether the measure sees what changed",
        "Words are replaced by such as share a property (positive) or do not (negative); in the supervised test people "
        "graded the pairs. Above 0 a measure agrees with labels or people, whether it is a distance or a similarity; "
        "the paired accuracy is how often it puts the negative edit of a sentence farther away, by chance 0.5. The "
        "paper has Pearson's r and calls NDD best in all tests; its ensemble has a ratio without scale or sign (table "
        "1).",
        frame,
        "test",
        "measure",
        beside,
        chance={"pearson": 0, "spearman": 0, "paired_accuracy": 0.5},
    )


def overlap(frame: pl.DataFrame) -> list[Section]:
    sections, measures = [], names_of(frame, "measure")
    for metric, name in names_of(frame, "metric").items():
        part = frame.filter(pl.col("metric") == metric)
        known, rows = rows_by(part, "threshold", "measure"), []
        for at in sorted(set(part["threshold"])):
            found = [known.get((at, measure), {}) for measure in measures]
            shown = "none" if at < 0 else "all" if at >= 1 else f"> {at:g}"
            rows.append([shown, *map(interval, found), largest_n(found)])
        sections.append(Section(
            f"How overlap changes it: {name}",
            "Correlation with what people say of pairs of which the shorter sentence shares more than so many of its "
            "words. In the paper the cosine falls below 0 above 0.8, and NDD rises (figure 3).",
            figures.overlap(part, name), ("words shared", *measures.values(), "n"), rows,
        ))  # fmt: skip
    return sections


def _spread(known: Mapping[tuple[Any, ...], Row], *key: str) -> dict[int, float]:
    found = {at: known.get((*key, at), {}).get("value") for at in _SPREAD}
    return {at: np.nan if value is None else value for at, value in found.items()}


def distributions(frame: pl.DataFrame) -> list[Section]:
    sections = []
    for measure, name in names_of(frame, "measure").items():
        part = frame.filter(pl.col("measure") == measure)
        known, counts = rows_by(part, "test", "label", "quantile"), rows_by(part, "test", "label")
        pairs = product(names_of(part, "test"), names_of(part, "label"))
        groups: dict[str, dict[str, Mapping[int, float]]] = {}
        rows = []
        for test, label in (pair for pair in pairs if pair in counts):
            name_of = paper.TESTS.get(test, test)
            at = groups.setdefault(name_of, {})[label] = _spread(known, test, label)
            rows.append([name_of, label, *map(minus, at.values()), count(counts[test, label]["n"])])
        sections.append(Section(
            f"How far edits are apart: {name}",
            "Positive edits share a property with what they replace, negative ones do not; the less strips overlap, "
            "the better the measure tells them apart. The paper draws bounded and unbounded NDD (figures 7 and 8).",
            figures.strips(groups, name), ("test", "edits", *_SPREAD.values(), "pairs"), rows, texts=2,
        ))  # fmt: skip
    return sections


def predicates(frame: pl.DataFrame) -> Section:
    def text(edit: str, measure: str) -> str:
        rows = TABLE_8.get(({"perplexity": "ppl"}.get(measure, measure), edit), ())
        return " · ".join(f"{precision} / {area}" for precision, area in rows) or "–"

    printed = {
        (kind, edit, measure): row[kind.split("_")[0]]
        for (measure, edit), row in paper.PAPER_PREDICATES.items()
        for kind in ("map", "auc", "auc_pooled", "auc_mean")
    }
    return _dotted(
        "Whether words that matter are predicates",
        "Each word is edited in turn and counts as much as the sentence thereby moves; in percent. The paper's mAP / "
        "AUC are of English in domain, English out of domain, and Spanish, and its ticks in the figure of the first "
        "(table 8); it does not say over what its AUC is taken. Its English model has no published head (errata E19).",
        frame,
        "edit",
        "measure",
        _Beside("paper, mAP / AUC", text, printed),
        scale=100,
        digits=1,
    )


def shift(frame: pl.DataFrame) -> Section:
    return _dotted(
        "What goes with the shift by context",
        "How much a context changes what a comment's words lead to expect, held against other measures of the same "
        "comments: Spearman's ρ, and the same at equal length of the comment, as short comments stand nearer to their "
        "context. A large shift does not say that anything else is meant. The paper has no such measure.",
        frame,
        "other",
        "source",
        chance={"spearman": 0, "partial": 0},
        is_shared=True,
    )


def shift_values(frame: pl.DataFrame) -> Section:
    known = rows_by(frame, "source", "quantile")
    values = {source: _spread(known, source) for source in sorted(set(frame["source"]))}
    return Section(
        "How far contexts shift comments",
        "The shift of the comments of each source; 0 is no change, and by Hellinger's distance nothing is above 1.",
        figures.strips({source: {"": at} for source, at in values.items()}, "shift by context"),
        ("source", *_SPREAD.values()),
        [[source, *map(minus, at.values())] for source, at in values.items()],
    )


def human(frame: pl.DataFrame) -> Section:
    frame = frame.with_columns(value="mean", grade=pl.lit("mean"))
    printed = {(kind, name, "mean"): value for name, row in paper.PAPER_HUMAN.items() for kind, value in row.items()}

    def text(system: str, _: str) -> str:
        return " / ".join(f"{value:.2f}" for value in paper.PAPER_HUMAN.get(system, {}).values()) or "–"

    return _dotted(
        "How whole compressions are to people",
        "Grades from 0 to 5 of syntax and of semantics, by people who do not know which system left which words. The "
        "paper graded 100 of Google's sentences and tells of no agreement (table 13).",
        frame,
        "system",
        "grade",
        _Beside("paper, syntax / semantics", text, printed),
        digits=2,
        is_shared=True,
    )
