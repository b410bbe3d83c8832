"""Which answers of raters count, and what they show of a cloze item (ReCAM, section 3.6, appendix E; REC-25, REC-26).

An answer counts if its rater is right in more than 40 % of all items after reading, if both parts of the passage are
given, and if it is right where it is called easy. Section 3.6 names two kinds of noise but no rule for them. Here
raters *name* an option by answering with it after reading or giving it as their second choice, and an item is

- unanswerable if fewer than half of them name the right option: the passage does not lead to it;
- ambiguous if more than half of them name one option, and more than half name another: both are right to most readers.

Of two raters who disagree neither is believed. An item with many answers of which few count (`n_given`, `n`) is
suspicious, too; one that is answered as well before reading gives its answer away, or is common knowledge.
"""

from typing import NamedTuple

import polars as pl

from pipeline.examples.recam.items import OPTIONS
from pipeline.reasons import choose_first, split_off

LEAST_ACCURACY = 0.4  # a rater's accuracy after reading above which answers count (appendix E, a)
LEAST_ANSWERS = 2  # that count; items with fewer have no flags
LEAST_RIGHT = 0.5  # share of raters who name the right option, below which an item is unanswerable
MOST_OTHERS = 0.5  # share of raters who name an option, above which it passes for right


class Selection(NamedTuple):
    """Answers that count and those that do not; together they are the answers that came in."""

    answers: pl.DataFrame  # as they came, with is_right_before and is_right (after reading)
    dropped: pl.DataFrame  # reason, row_key (item/rater)
    raters: pl.DataFrame  # rater_id, n, accuracy_before, accuracy_after, is_kept


def select(answers: pl.DataFrame, items: pl.DataFrame) -> Selection:
    """Select the answers that count by appendix E.

    Reasons, of which the first that holds is given: unknown_item, incomplete (no answer after reading, or no
    difficulty, so that the rules cannot be applied), rater_below, no_span, easy_and_wrong. Answers are those of
    `questionnaire.build_answers`, each rater's to an item once. Of raters, in order of their ids, n counts the answers
    after reading to items that there are.
    """
    rows = answers.join(items.select("item_id", "label"), on="item_id", how="left", maintain_order="left")
    is_right = {"is_right_before": pl.col("before") == pl.col("label"), "is_right": pl.col("after") == pl.col("label")}
    rows = rows.with_columns(**is_right)
    means = {"accuracy_before": pl.col("is_right_before").mean(), "accuracy_after": pl.col("is_right").mean()}
    raters = rows.group_by("rater_id").agg(n=pl.col("is_right").count().cast(pl.Int64), **means)
    raters = raters.with_columns(is_kept=(pl.col("accuracy_after") > LEAST_ACCURACY).fill_null(value=False))
    rows = rows.join(raters.select("rater_id", "is_kept"), on="rater_id", how="left", maintain_order="left")
    spans = (pl.col(name).fill_null("").str.strip_chars() == "" for name in ("span_1", "span_2"))
    faults = {
        "unknown_item": pl.col("label").is_null(),
        "incomplete": pl.any_horizontal(pl.col("after", "difficulty").is_null()), "rater_below": ~pl.col("is_kept"),
        "no_span": pl.any_horizontal(spans), "easy_and_wrong": (pl.col("difficulty") == "easy") & ~pl.col("is_right"),
    }  # fmt: skip
    row_key = pl.format("{}/{}", "item_id", "rater_id").alias("row_key")
    valid, dropped = split_off(rows, choose_first(faults), ["reason", row_key])
    return Selection(valid.select(*answers.columns, *is_right), dropped, raters.sort("rater_id"))


def measure_noise(selected: pl.DataFrame, answers: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Measure the accuracy of each item's raters, and flag the two kinds of noise of section 3.6 (REC-26).

    `selected` are the answers that count, `answers` all of them. Shares are of raters by option; second shares add up
    to less than 1 where raters named none. Numbers are null without answers, the flags with too few.
    """
    after = [pl.col("after") == place for place in range(OPTIONS)]
    # naming an option twice names no other
    second = [((pl.col("second") == place) & ~is_after).fill_null(value=False) for place, is_after in enumerate(after)]
    is_named = [is_after | is_second for is_after, is_second in zip(after, second, strict=True)]
    shares = {
        f"{kind}_shares": pl.concat_list(is_chosen.mean() for is_chosen in choices)
        for kind, choices in (("named", is_named), ("after", after), ("second", second))
    }
    labels = items.select("item_id", "label")
    means = {f"accuracy_{kind}": (pl.col(kind) == pl.col("label")).mean() for kind in ("before", "after")}
    by_item = selected.join(labels, on="item_id").group_by("item_id")
    summaries = by_item.agg(n=pl.len().cast(pl.Int64), **means, **shares)
    answer_counts = answers.group_by("item_id").agg(n_given=pl.len().cast(pl.Int64))
    for frame in (answer_counts, summaries):
        labels = labels.join(frame, on="item_id", how="left", maintain_order="left")
    is_enough, named_shares = pl.col("n") >= LEAST_ANSWERS, pl.col("named_shares")
    flags: dict[str, pl.Expr] = {
        "is_unanswerable": named_shares.list.get(pl.col("label")) < LEAST_RIGHT,
        "is_ambiguous": named_shares.list.eval(pl.element() > MOST_OTHERS).list.sum() >= 2,
    }
    columns = ("item_id", "n_given", "n", *means, "after_shares", "second_shares")
    flags = {name: pl.when(is_enough).then(flag) for name, flag in flags.items()}
    return labels.with_columns(pl.col("n", "n_given").fill_null(0)).select(*columns, **flags)
