"""Parts of the page of NDD on measures: how they go with people, trees and other measures, and how they spread."""

from collections.abc import Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from pipeline.papers import ndd as paper
from pipeline.report import sections
from pipeline.report.figures import SHARES, draw_dots, draw_strips
from pipeline.report.ndd import figures
from pipeline.report.sections import Section

Row = Mapping[str, Any]
_SPREAD = dict(zip(SHARES, ("5 %", "25 %", "median", "75 %", "95 %"), strict=True))
_LABELS: Mapping[str, Mapping[str, str]] = {
    "test": paper.TESTS, "measure": paper.MEASURES, "edit": paper.EDITS, "metric": paper.METRICS,
    "system": {"gold": "gold", **paper.SYSTEMS}, "label": {"positive": "positive", "negative": "negative"},
    "other": {"implicitness": "implicitness", "subtext": "subtext", "word_count": "word count"},
}  # fmt: skip


def list_names(frame: pl.DataFrame, column: str) -> dict[str, str]:
    """List what is in a column, in the order of the page, and what it is called."""
    labels = _LABELS.get(column, {})
    return {key: labels.get(key, key) for key in sections.order_names(frame[column], labels)}


def format_largest_n(rows: Sequence[Row]) -> str:
    return sections.format_count(max((row["n"] for row in rows if row.get("n") is not None), default=None))


def _build_dots(
    frame: pl.DataFrame,
    row: str,
    mark: str,
    *,
    paper_column: str = "",
    paper_texts: Mapping[tuple[str, str], str] = MappingProxyType({}),
    scale: float = 1,
    digits: int = 3,
    **options: Any,
) -> dict[str, Any]:
    """Build figure and table of numbers by the columns row and mark, a panel a metric; options are of `draw_dots`.

    The paper's column in the table, if it has a name, has texts by row and mark.
    """
    rows_by_key = sections.index_rows(frame, "metric", row, mark)
    panels, rows, marks = (list_names(frame, column) for column in ("metric", row, mark))
    cells = []
    for (key, name), (mark_key, mark_name) in product(rows.items(), marks.items()):
        metric_rows = [rows_by_key.get((kind, key, mark_key), {}) for kind in panels]
        if any(metric_rows):
            cell_texts = (sections.format_interval(cell, scale=scale, digits=digits) for cell in metric_rows)
            printed_text = [paper_texts.get((key, mark_key), "–")] if paper_column else []
            cells.append([name, mark_name, *cell_texts, *printed_text, format_largest_n(metric_rows)])
    looks = {key: figures.pick_measure_look(key, i) for i, key in enumerate(marks)}
    options |= {"looks": looks, "paper": figures.PAPER, "scale": scale}
    figure = draw_dots(rows_by_key, panels, rows, marks, **options)
    columns = (row, mark, *panels.values(), *filter(None, [paper_column]), "n")
    return {"figure": figure, "columns": columns, "rows": cells, "text_count": 2}


def build_tests(frame: pl.DataFrame) -> Section:
    printed = {("pearson", *key): value for key, value in paper.TABLE_1.items()}
    texts = {key: sections.format_number(value) for key, value in paper.TABLE_1.items()}
    chance = {"pearson": 0, "spearman": 0, "paired_accuracy": 0.5}
    return Section(
        "An edit replaces words with words that share a property (positive) or do not (negative). In the supervised "
        "test, people graded the pairs. A correlation above 0 means agreement with labels or people, for distances and "
        "similarities alike. The paired accuracy is the share of sentences whose negative edit is farther away; chance "
        "is 0.5. The paper has Pearson's r and calls NDD best in all tests. Its ensemble is a ratio without a stated "
        "scale or sign (table 1).",
        **_build_dots(
            frame, "test", "measure", paper_column="paper, r", paper_texts=texts, printed=printed, chance=chance
        ),
    )


def build_overlap(frame: pl.DataFrame) -> list[Section]:
    overlap_sections, measures = [], list_names(frame, "measure")
    sentence = (
        "The table has the correlation with people's grades of sentence pairs, by word overlap. The overlap is the "
        "share of the shorter sentence's words that are also in the other sentence. In the paper, the cosine falls "
        "below 0 at an overlap above 0.8, and NDD rises (figure 3)."
    )
    columns = ("words shared", *measures.values(), "n")
    for metric, name in list_names(frame, "metric").items():
        part = frame.filter(pl.col("metric") == metric)
        rows_by_key, rows = sections.index_rows(part, "threshold", "measure"), []
        for threshold in sorted(set(part["threshold"])):
            measure_rows = [rows_by_key.get((threshold, measure), {}) for measure in measures]
            threshold_text = "none" if threshold < 0 else "all" if threshold >= 1 else f"> {threshold:g}"
            rows.append([threshold_text, *map(sections.format_interval, measure_rows), format_largest_n(measure_rows)])
        title, figure = f"Correlation by word overlap: {name}", figures.draw_overlap(part, name)
        overlap_sections.append(Section(sentence, columns, rows, figure, title=title))
    return overlap_sections


def _get_spread(rows_by_key: Mapping[tuple[Any, ...], Row], *key: str) -> dict[int, float]:
    values = np.array([rows_by_key.get((*key, quantile), {}).get("value") for quantile in _SPREAD], float)
    return dict(zip(_SPREAD, values.tolist(), strict=True))


def build_distributions(frame: pl.DataFrame) -> list[Section]:
    distance_sections = []
    sentence = (
        "Positive edits share a property with the replaced words; negative edits do not. A good measure separates the "
        "two strips. The paper shows bounded and unbounded NDD (figures 7 and 8)."
    )
    columns = ("test", "edits", *_SPREAD.values(), "pairs")
    for measure, name in list_names(frame, "measure").items():
        part = frame.filter(pl.col("measure") == measure)
        rows_by_key = sections.index_rows(part, "test", "label", "quantile")
        counts = sections.index_rows(part, "test", "label")
        groups: dict[str, dict[str, Mapping[int, float]]] = {}
        rows = []
        for (test, test_name), label in product(list_names(part, "test").items(), list_names(part, "label")):
            if (test, label) in counts:
                quantiles = groups.setdefault(test_name, {})[label] = _get_spread(rows_by_key, test, label)
                count = sections.format_count(counts[test, label]["n"])
                rows.append([test_name, label, *map(sections.format_number, quantiles.values()), count])
        title, figure = f"Distances of edits: {name}", draw_strips(groups, name)
        distance_sections.append(Section(sentence, columns, rows, figure, text_count=2, title=title))
    return distance_sections


def build_predicates(frame: pl.DataFrame) -> Section:
    texts = {
        (edit, measure): " · ".join(f"{precision} / {area}" for precision, area in rows)
        for (measure, edit), rows in paper.TABLE_8.items()
    }
    printed = {
        (kind, edit, measure): rows[0][kind != "map"]
        for (measure, edit), rows in paper.TABLE_8.items()
        for kind in ("map", "auc", "auc_pooled", "auc_mean")
    }
    options: dict[str, Any] = {"paper_column": "paper, mAP / AUC", "paper_texts": texts, "printed": printed}
    return Section(
        "Each word is edited in turn; its score is the distance of the edited sentence from the original. Numbers are "
        "in percent. The paper has mAP / AUC for English in domain, English out of domain, and Spanish (table 8); the "
        "ticks in the figure are English in domain. The paper does not state the set of words for its AUC. Its English "
        "model has no published head (errata E19).",
        **_build_dots(frame, "edit", "measure", **options, scale=100, digits=1),
    )


def build_shift(frame: pl.DataFrame) -> Section:
    return Section(
        "The context shift measures how much a context changes the words that a model expects in a comment. The table "
        "has Spearman's ρ with other measures of the same comments, and ρ at equal length. Length matters because the "
        "words of short comments are closer to the context. A large shift does not prove a hidden meaning. The paper "
        "has no such measure.",
        **_build_dots(frame, "other", "source", chance={"spearman": 0, "partial": 0}, is_shared=True),
    )


def build_shift_values(frame: pl.DataFrame) -> Section:
    rows_by_key = sections.index_rows(frame, "source", "quantile")
    values = {source: _get_spread(rows_by_key, source) for source in sorted(set(frame["source"]))}
    return Section(
        "The table has quantiles of the context shift of each source. 0 is no change; Hellinger's distance has a "
        "maximum of 1.",
        ("source", *_SPREAD.values()),
        [[source, *map(sections.format_number, quantiles.values())] for source, quantiles in values.items()],
        draw_strips({source: {"": quantiles} for source, quantiles in values.items()}, "context shift"),
    )


def build_human(frame: pl.DataFrame) -> Section:
    frame = frame.with_columns(value="mean", grade=pl.lit("mean"))
    printed = {(kind, name, "mean"): value for name, row in paper.PAPER_HUMAN.items() for kind, value in row.items()}
    texts = {(name, "mean"): " / ".join(f"{v:.2f}" for v in row.values()) for name, row in paper.PAPER_HUMAN.items()}
    options: dict[str, Any] = {"paper_column": "paper, syntax / semantics", "paper_texts": texts, "printed": printed}
    return Section(
        "People grade syntax and semantics from 0 to 5; they do not know the system. The paper grades 100 of "
        "Google's sentences and does not report rater agreement (table 13).",
        **_build_dots(frame, "system", "grade", **options, digits=2, is_shared=True),
    )
