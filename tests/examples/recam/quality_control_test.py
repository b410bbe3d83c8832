"""Appendix E's rules as a truth table, and the two kinds of noise of section 3.6 (REC-25, REC-26)."""

from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.examples.recam.quality_control import measure_noise, select

SCHEMA = {
    **dict.fromkeys(("item_id", "rater_id"), pl.String),
    **dict.fromkeys(("before", "after", "second"), pl.Int64),
    **dict.fromkeys(("span_1", "span_2", "relation", "difficulty"), pl.String),
}


def make_items(*labels: int) -> pl.DataFrame:
    rows = [(f"i{n}", label) for n, label in enumerate(labels)]
    return pl.DataFrame(rows, {"item_id": pl.String, "label": pl.Int64}, orient="row")


def answer(item: int = 0, rater: str = "r", after: int | None = 0, **changes: Any) -> dict[str, Any]:
    """An answer that counts, but for the changes."""
    facts = {"span_1": "the ferry", "span_2": "stayed in", "relation": "summarise", "difficulty": "medium"}
    return {"item_id": f"i{item}", "rater_id": rater, "before": 1, "after": after, "second": None, **facts, **changes}


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, SCHEMA, orient="row")


@pytest.mark.parametrize(("is_wise", "has_1", "has_2", "is_easy", "is_right"), [*product([True, False], repeat=5)])
def test_truth_table_of_appendix_e(is_wise: bool, has_1: bool, has_2: bool, is_easy: bool, is_right: bool) -> None:
    """An answer counts just if its rater is above 40 %, both spans are there, and easy implies right (REC-25)."""
    first = answer(
        after=0 if is_right else 2,
        span_1="the ferry" if has_1 else None,
        span_2="stayed in" if has_2 else " \n",
        difficulty="easy" if is_easy else "difficult",
    )
    rest = [answer(n, after=0 if is_wise else 2) for n in range(1, 9)]  # 8 or 9 of 9 right, or 0 or 1
    selection = select(frame(first, *rest), make_items(*[0] * 9))
    counts = is_wise and has_1 and has_2 and (not is_easy or is_right)
    assert ("i0" in selection.answers["item_id"]) == counts
    expected = "rater_below" if not is_wise else "no_span" if not (has_1 and has_2) else "easy_and_wrong"
    reasons = dict(selection.dropped.select("row_key", "reason").iter_rows())
    assert reasons.get("i0/r") == (None if counts else expected)


@given(st.integers(1, 400), st.data())
def test_the_bar_of_40_percent_is_strict(n: int, data: st.DataObject) -> None:
    """Two right of five do not do, however many there are; one more does (appendix E: higher than 40 %)."""
    right = data.draw(st.sampled_from([(2 * n) // 5, (2 * n) // 5 + 1, data.draw(st.integers(0, n))]))
    right = min(right, n)
    rows = [answer(k, after=0 if k < right else 1) for k in range(n)]
    (row,) = select(frame(*rows), make_items(*[0] * n)).raters.rows(named=True)
    assert row["is_kept"] == (5 * right > 2 * n)
    assert (row["n"], row["accuracy_after"]) == (n, pytest.approx(right / n))


def test_accuracy_is_of_a_rater_over_all_items() -> None:
    """One rater's mistakes drop none of another's answers; a right answer of a rater below the bar is dropped too."""
    rows = [answer(n, "good") for n in range(5)] + [answer(n, "bad", 0 if n < 2 else 3) for n in range(5)]
    selection = select(frame(*rows), make_items(*[0] * 5))
    assert set(selection.answers["rater_id"]) == {"good"}
    assert sorted(selection.dropped.rows()) == [("rater_below", f"i{n}/bad") for n in range(5)]
    assert selection.raters.rows() == [("bad", 5, 0.0, 0.4, False), ("good", 5, 0.0, 1.0, True)]


def test_answers_that_cannot_be_judged() -> None:
    """An answer to no item, without an option after reading or without a difficulty counts neither way.

    No answers are no error: all items are there; an answer without a first choice counts (appendix E).
    """
    selection = select(frame(answer(before=None, relation=None)), make_items(0))
    assert selection.answers.select("is_right_before", "is_right").rows() == [(None, True)]
    selection = select(frame(), make_items(0, 1))
    assert selection.answers.columns == [*SCHEMA, "is_right_before", "is_right"]
    assert measure_noise(selection.answers, frame(), make_items(0, 1)).row(0) == ("i0", 0, 0, *[None] * 6)
    rows = [answer(0), answer(7), answer(1, after=None), answer(2, difficulty=None)]
    selection = select(frame(*rows), make_items(0, 0, 0))
    assert selection.dropped.rows() == [("unknown_item", "i7/r"), ("incomplete", "i1/r"), ("incomplete", "i2/r")]
    assert selection.raters["n"].to_list() == [2]  # i0 and i2
    noise = measure_noise(selection.answers, frame(*rows), make_items(0, 0, 0))
    assert noise.select("item_id", "n_given", "n").rows() == [("i0", 1, 1), ("i1", 1, 0), ("i2", 1, 0)]


@pytest.mark.parametrize(
    ("choices", "is_unanswerable", "is_ambiguous"),
    [
        ([(0, None), (0, None), (3, None)], False, False),
        ([(0, None), (2, None), (3, None)], True, False),  # one of three finds it
        ([(0, 1), (0, 1), (0, None)], False, True),  # two options each named by two of three
        ([(0, None), (1, 0), (1, None)], False, True),
        ([(1, 0), (1, 0), (1, 0)], False, True),  # always second: it is there, and another with it
        ([(1, 2), (2, 1), (0, None)], True, True),  # two others pass for right
        ([(0, None), (1, None)], False, False),  # of two who disagree neither is believed
        ([(0, 1), (1, 0)], False, True),
        ([(1, None), (2, None)], True, False),
        ([(0, 0), (0, 0), (1, 1)], False, False),  # the same word again is no second choice
        ([(0, None)], None, None),
    ],
)
def test_truth_table_of_noise(
    choices: list[tuple[int, int | None]], is_unanswerable: bool | None, is_ambiguous: bool | None
) -> None:
    """The flags of what raters name, the first being the right option; with too few answers there are none (REC-26)."""
    rows = frame(*(answer(0, f"r{n}", after, second=second) for n, (after, second) in enumerate(choices)))
    noise = measure_noise(rows, rows, make_items(0))
    assert noise.select("is_unanswerable", "is_ambiguous").row(0) == (is_unanswerable, is_ambiguous)


@given(st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4))), min_size=2, max_size=12))
def test_flags_are_what_is_counted(choices: list[tuple[int, int | None]]) -> None:
    """On any answers shares are counts, and the flags those of a count in whole numbers: no rounding decides."""
    rows = frame(*(answer(0, f"r{n}", after, second=second) for n, (after, second) in enumerate(choices)))
    noise = measure_noise(rows, rows, make_items(2)).row(0, named=True)
    counts = [sum(place in pair for pair in choices) for place in range(5)]
    shares = [sum(after == place for after, _ in choices) / len(choices) for place in range(5)]
    assert (noise["n_given"], noise["n"], noise["accuracy_before"]) == (len(choices), len(choices), 0)  # all say 1
    assert noise["accuracy_after"] == pytest.approx(shares[2])
    assert noise["after_shares"] == pytest.approx(shares)
    seconds = [sum(second == place != after for after, second in choices) / len(choices) for place in range(5)]
    assert noise["second_shares"] == pytest.approx(seconds)
    assert noise["is_unanswerable"] == (2 * counts[2] < len(choices))
    assert noise["is_ambiguous"] == (sum(2 * count > len(choices) for count in counts) >= 2)
