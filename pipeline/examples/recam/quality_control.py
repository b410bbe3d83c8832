"""Which answers of raters count, and what they tell of a cloze item (ReCAM, section 3.6, appendix E; REC-25, REC-26).

An answer counts if its rater is right in more than 40 % of the items after reading, if both parts of the passage are
given, and if it is right where it is called easy. The paper does not say whether the accuracy is a rater's or that of
one batch of work; here it is the rater's, over all items that he or she answered.

Section 3.6 names two kinds of noise but no rule for them. Here raters *name* an option by answering with it after
reading or giving it as their second choice, and an item is

- unanswerable if fewer than half of them name the right option: the passage does not lead to it;
- ambiguous if more than half of them name one option, and more than half name another: both are right to most readers.

Of two raters who disagree neither is believed. Only answers that count are asked, and who cannot find a part of the
passage is among the others: an item that many answered and few answers of which count (`n_given`, `n`) is suspicious as
well. Accuracy before reading shows how far the passage is needed: an item that is answered as well without has told its
answer, or is known.
"""

from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.recam.items import OPTIONS

LEAST_ACCURACY = 0.4
"""A rater's accuracy after reading above which answers count (appendix E, a)."""

RELATIONS = ("summarise", "paraphrase", "others")
DIFFICULTIES = ("easy", "medium", "difficult")
REASONS = ("unknown_item", "incomplete", "rater_below", "no_span", "easy_and_wrong")
"""Why an answer does not count; of several the first is told."""

_OPTION_COLUMNS = ("before", "after", "second")
_COLUMNS = ("item_id", "rater_id", *_OPTION_COLUMNS, "span_1", "span_2", "relation", "difficulty")
_VALUES = {"relation": RELATIONS, "difficulty": DIFFICULTIES}


class Selection(NamedTuple):
    """Answers that count and those that do not; together they are the answers that came in."""

    answers: pl.DataFrame  # as they came, with is_right_before and is_right (after reading)
    dropped: pl.DataFrame  # reason, row_key (item/rater)
    raters: pl.DataFrame  # rater_id, n, accuracy_before, accuracy_after, is_kept


def select(answers: pl.DataFrame, items: pl.DataFrame, least_accuracy: float = LEAST_ACCURACY) -> Selection:
    """The answers that count by appendix E.

    Reasons, in this order: unknown_item (none of the items), incomplete (no answer after reading, or no difficulty, so
    that the rules cannot be tried), rater_below, no_span, easy_and_wrong.

    Args:
        answers: item_id, rater_id; before, after, second (places of options from 0); span_1, span_2 (texts); relation,
            difficulty. All but the ids may be null; of second it means no other answer, of all others none given.
        items: item_id, label (the place of the right option).
        least_accuracy: of a rater, exclusive; over all answers after reading to items that there are.

    Returns:
        Answers in their order; raters in order of their ids, n the answers that their accuracy is taken over.

    Raises:
        BadInput: a column is missing, an item has two rows, a rater two answers to an item, or a value is none that
            there is.
    """
    _check(answers, items)
    rows = answers.join(items.select("item_id", "label"), on="item_id", how="left", maintain_order="left")
    rows = rows.with_columns(
        is_right_before=pl.col("before") == pl.col("label"), is_right=pl.col("after") == pl.col("label")
    )
    raters = (
        rows.group_by("rater_id")
        .agg(
            n=pl.col("is_right").count().cast(pl.Int64),
            accuracy_before=pl.col("is_right_before").mean(),
            accuracy_after=pl.col("is_right").mean(),
        )
        .with_columns(is_kept=(pl.col("accuracy_after") > least_accuracy).fill_null(value=False))
        .sort("rater_id")
    )
    rows = rows.join(raters.select("rater_id", "is_kept"), on="rater_id", how="left", maintain_order="left")
    spans = (pl.col(name).fill_null("").str.strip_chars() == "" for name in ("span_1", "span_2"))
    faults = (
        pl.col("label").is_null(),
        pl.col("after").is_null() | pl.col("difficulty").is_null(),
        ~pl.col("is_kept"),
        pl.any_horizontal(spans),
        (pl.col("difficulty") == "easy") & ~pl.col("is_right"),
    )
    reason = pl.coalesce(
        pl.when(rule).then(pl.lit(reason_name)) for rule, reason_name in zip(faults, REASONS, strict=True)
    )
    rows = rows.with_columns(reason=reason)
    valid = rows.filter(pl.col("reason").is_null()).select(*answers.columns, "is_right_before", "is_right")
    dropped = rows.filter(pl.col("reason").is_not_null())
    return Selection(
        valid, dropped.select("reason", row_key=pl.concat_str("item_id", "rater_id", separator="/")), raters
    )


def measure_noise(
    selected: pl.DataFrame, answers: pl.DataFrame, items: pl.DataFrame, least_answers: int = 2,
    least_right: float = 0.5, most_others: float = 0.5,
) -> pl.DataFrame:  # fmt: skip
    """What raters' answers tell of each item, and the two kinds of noise of section 3.6 (REC-26).

    Args:
        selected: the answers that count, as `select` gives them.
        answers: all answers, to count them.
        items: item_id, label.
        least_answers: how many must count, or nothing is said of noise.
        least_right: share of raters who name the right option, below which an item is unanswerable.
        most_others: share of raters who name an option, above which it passes for right; with two of them an item is
            ambiguous.

    Returns:
        A row an item, in order: item_id, n_given, n (answers that count), accuracy_before, accuracy_after,
        after_shares, second_shares (lists of five: share of raters by option; second shares add up to less than 1
        where raters named none), is_unanswerable, is_ambiguous. Null without answers, the flags with too few.

    Raises:
        BadInput: as of `select`, or a threshold makes no sense.
    """
    if least_answers < 1 or not (0 <= least_right <= 1 and 0 <= most_others <= 1):
        raise BadInput(
            f"expected least_answers from 1 and shares in 0-1, found {least_answers}, {least_right}, {most_others}"
        )
    for frame in (selected, answers):
        _check(frame, items)
    places = range(OPTIONS)
    after = [pl.col("after") == place for place in places]
    # who names an option twice names no other
    second = [((pl.col("second") == place) & ~is_after).fill_null(value=False) for place, is_after in enumerate(after)]
    is_named = [(is_after | is_second).mean() for is_after, is_second in zip(after, second, strict=True)]
    labels = items.select("item_id", "label")
    summaries = (
        selected.join(labels, on="item_id")
        .group_by("item_id")
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            (pl.col("before") == pl.col("label")).mean().alias("accuracy_before"),
            (pl.col("after") == pl.col("label")).mean().alias("accuracy_after"),
            *(share.alias(f"named_{place}") for place, share in enumerate(is_named)),
            *(is_after.mean().alias(f"after_{place}") for place, is_after in enumerate(after)),
            *(is_after.mean().alias(f"second_{place}") for place, is_after in enumerate(second)),
        )
        .with_columns(
            pl.concat_list(f"{kind}_{place}" for place in places).alias(f"{kind}_shares")
            for kind in ("named", "after", "second")
        )
    )
    answer_counts = answers.group_by("item_id").agg(n_given=pl.len().cast(pl.Int64))
    rows = labels.join(answer_counts, on="item_id", how="left", maintain_order="left")
    rows = rows.join(summaries, on="item_id", how="left", maintain_order="left")
    is_enough, shares = pl.col("n") >= least_answers, pl.col("named_shares")
    return rows.with_columns(pl.col("n", "n_given").fill_null(0)).select(
        "item_id", "n_given", "n", "accuracy_before", "accuracy_after", "after_shares", "second_shares",
        is_unanswerable=pl.when(is_enough).then(shares.list.get(pl.col("label")) < least_right),
        is_ambiguous=pl.when(is_enough).then(shares.list.eval(pl.element() > most_others).list.sum() >= 2),
    )  # fmt: skip


def _check(answers: pl.DataFrame, items: pl.DataFrame) -> None:
    for name, frame, columns in (("answers", answers, _COLUMNS), ("items", items, ("item_id", "label"))):
        if missing := [column for column in columns if column not in frame.columns]:
            raise BadInput(f"{name}: no column {', '.join(missing)}; found {', '.join(frame.columns)}")
    repeated_items = items.filter(pl.col("item_id").is_duplicated())
    if repeated_items.height:
        raise BadInput(f"items: item {repeated_items['item_id'][0]} has two rows, expected one")
    repeats = answers.filter(pl.struct("item_id", "rater_id").is_duplicated())
    if repeats.height:
        item_id, rater_id = repeats.select("item_id", "rater_id").row(0)
        raise BadInput(f"answers: item {item_id}, rater {rater_id}: two answers, expected one")
    places = f"expected a place from 0 to {OPTIONS - 1}, found"
    faulty_items = items.filter(~pl.col("label").is_between(0, OPTIONS - 1).fill_null(value=False))
    if faulty_items.height:
        item_id, label = faulty_items.select("item_id", "label").row(0)
        raise BadInput(f"items: item {item_id}, label: {places} {label}")
    rules = [(name, ~pl.col(name).is_between(0, OPTIONS - 1), places) for name in _OPTION_COLUMNS]
    for name, values in _VALUES.items():
        rules.append((name, ~pl.col(name).is_in(values), f"expected one of {', '.join(values)}, found"))
    for name, is_wrong, expectation in rules:
        faulty = answers.filter(is_wrong)
        if faulty.height:
            item_id, rater_id, value = faulty.select("item_id", "rater_id", name).row(0)
            raise BadInput(f"answers: item {item_id}, rater {rater_id}, {name}: {expectation} {value!r:.40}")
