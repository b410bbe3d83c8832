"""Figures of a cloze set and its readers: what gives items away, who reads best; and the order of their rows."""

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from pipeline.examples.recam.items import OPTIONS
from pipeline.papers.recam import TABLES_6_7
from pipeline.report import figures as plot
from pipeline.report.sections import index_rows, order_names

SUBTASKS = {"imperceptibility": 1, "nonspecificity": 2}
MEASURES = {"mrr": "MRR", "recall_1": "R@1", "recall_5": "R@5", "recall_10": "R@10"}
TARGET = "target"  # the reason of a token that has none
REASONS = {
    "not_content": "not a content word", "no_score": "unknown to the scorer", "no_sense": "no sense in WordNet",
    "concrete": "too concrete", "specific": "too specific", "in_passage": "in the passage",
    "in_question": "twice in the summary", "synonym_in_passage": "synonym in the passage",
    "antonym_in_passage": "antonym in the passage", "similar_in_passage": "similar word in the passage",
    "similar_in_context": "similar in context",
}  # fmt: skip
"""Why a token is no target, in the order in which rule and filters apply (section 3.4); others come after them."""
CHANCE = 1 / OPTIONS
WAYS = 12  # not to read that are drawn


def list_subtasks(names: pl.Series) -> list[str]:
    """List the different names, the paper's subtasks first."""
    return order_names(names, SUBTASKS)


def sort_groups(groups: Sequence[str | None]) -> list[str | None]:
    """Sort the different groups as people order them: by the first number in them, others by name, null last."""

    def key(group: str | None) -> tuple[bool, float, str]:
        number = re.search(r"\d+", group or "")
        return group is None, float(number[0]) if number else np.inf, group or ""

    return sorted(set(groups), key=key)


def order_steps(frame: pl.DataFrame) -> pl.DataFrame:
    """Order the funnel of one subtask as words are lost, targets last; `left` counts the tokens after each reason."""
    no_targets = pl.DataFrame({"reason": TARGET, "count": 0})
    rows = pl.concat([frame.select(pl.col("reason").fill_null(TARGET), pl.col("count").cast(pl.Int64)), no_targets])
    place = {**{reason: i for i, reason in enumerate(REASONS)}, TARGET: len(REASONS) + 1}
    order = pl.col("reason").replace_strict(place, default=len(REASONS), return_dtype=pl.Int64)
    rows = rows.group_by("reason").agg(pl.col("count").sum()).sort(order, -pl.col("count"), "reason")
    dropped = pl.when(pl.col("reason") == TARGET).then(0).otherwise("count").cum_sum()
    return rows.with_columns(left=pl.col("count").sum() - dropped)


def draw_audit(frame: pl.DataFrame) -> str:
    """Draw what is reached without reading, the best `WAYS` of doing so, the very best on top (REC-32)."""
    best = frame.group_by("baseline").agg(pl.col("accuracy").max())
    best = best.sort("accuracy", "baseline", descending=[True, False], nulls_last=True)
    names = {name: name.replace("_", " ") for name in best["baseline"].head(WAYS)}
    low, high = (pl.col("accuracy") + z * pl.col("error") for z in (-1.96, 1.96))
    rows = frame.select("subtask", "baseline", panel=pl.lit(""), value="accuracy", low=low, high=high)
    few = f"the best {len(names)} of {best.height} baselines: " if best.height > len(names) else ""
    return plot.draw_dots(
        index_rows(rows, "panel", "baseline", "subtask"),
        {"": ""},
        names,
        {name: f"{name}, n = {max(frame.filter(subtask=name)['n']):,}" for name in list_subtasks(frame["subtask"])},
        chance={"": CHANCE},
        x=f"{few}share of right answers, with 95 % interval; dashed: chance",
    )


def draw_readers(frame: pl.DataFrame) -> str:
    """Draw readers' accuracy beside chance, the paper (REC-29) and, of `blind`, the best way not to read."""
    keys = ("tested_on", "reader", "trained_on")
    rows = index_rows(frame.with_columns(value="accuracy"), *keys)
    marks = {name: f"trained on {name}" for name in list_subtasks(frame["trained_on"])}
    if "blind" in frame.columns:
        rows |= index_rows(frame.select(*keys[:2], trained_on=pl.lit("blind"), value="blind"), *keys)
        marks["blind"] = "best baseline without the passage"
    titles = {name: f"tested on {name}" for name in list_subtasks(frame["tested_on"])}
    return plot.draw_dots(
        rows,
        titles,
        {name: name for name in sorted(set(frame["reader"]))},
        marks,
        printed={(name, "gated", name): published.gated for name, published in TABLES_6_7.items()},
        paper="the paper's GA Reader, on its own test set",
        chance=dict.fromkeys(titles, CHANCE),
        is_shared=True,
        x="accuracy with 95 % interval; dashed: chance",
    )


def draw_breakdown(frame: pl.DataFrame) -> str:
    """Draw the accuracy by part of speech, length of passage, place of the right option, …"""
    rows = index_rows(frame.with_columns(value="accuracy"), "by", "group", "trained_on")
    names = {
        (kind, group): f"{kind.replace('_', ' ')}: {'not known' if group is None else group}"
        for kind in sorted(set(frame["by"]))
        for group in sort_groups(frame.filter(by=kind)["group"].to_list())
    }
    return plot.draw_dots(
        {("", key[:2], key[2]): row for key, row in rows.items()},
        {"": ""},
        names,
        {name: f"trained on {name}" for name in list_subtasks(frame["trained_on"])},
        chance={"": CHANCE},
        x="accuracy with 95 % interval; dashed: chance",
    )
