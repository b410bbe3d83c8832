"""Appendix E's rules as a truth table, and the two kinds of noise of section 3.6 (REC-25, REC-26)."""

from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.recam import quality_control
from pipeline.examples.recam.quality_control import DIFFICULTIES, REASONS, RELATIONS, measure_noise, select

SCHEMA = {
    "item_id": pl.String, "rater_id": pl.String, "before": pl.Int64, "after": pl.Int64, "second": pl.Int64,
    "span_1": pl.String, "span_2": pl.String, "relation": pl.String, "difficulty": pl.String,
}  # fmt: skip


def items(*labels: int) -> pl.DataFrame:
    """Items i0, i1, … with their right options."""
    rows = [(f"i{n}", label) for n, label in enumerate(labels)]
    return pl.DataFrame(rows, {"item_id": pl.String, "label": pl.Int64}, orient="row")


def answer(item: int = 0, rater: str = "r", after: int | None = 0, **given: Any) -> dict[str, Any]:
    """An answer that counts, but for what is given."""
    return {
        "item_id": f"i{item}", "rater_id": rater, "before": 1, "after": after, "second": None, "span_1": "the ferry",
        "span_2": "stayed in", "relation": "summarise", "difficulty": "medium", **given,
    }  # fmt: skip


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, SCHEMA, orient="row")


def reasons(found: quality_control.Selection) -> dict[str, str]:
    return {key: reason for reason, key in found.dropped.rows()}


# -------------------------------------------------------------------------------------------------------- appendix E


@pytest.mark.parametrize(("is_wise", "has_1", "has_2", "is_easy", "is_right"), [*product([True, False], repeat=5)])
def test_truth_table_of_appendix_e(is_wise: bool, has_1: bool, has_2: bool, is_easy: bool, is_right: bool) -> None:
    """An answer counts just if its rater is above 40 %, both spans are there, and easy implies right (REC-25)."""
    asked = answer(
        after=0 if is_right else 2,
        span_1="the ferry" if has_1 else None,
        span_2="stayed in" if has_2 else " \n",
        difficulty="easy" if is_easy else "difficult",
    )
    others = [answer(n, after=0 if is_wise else 2) for n in range(1, 9)]  # 8 or 9 of 9 right, or 0 or 1
    found = select(frame(asked, *others), items(*[0] * 9))
    counts = is_wise and has_1 and has_2 and (not is_easy or is_right)
    assert ("i0" in found.answers["item_id"]) == counts
    expected = "rater_below" if not is_wise else "no_span" if not (has_1 and has_2) else "easy_and_wrong"
    assert reasons(found).get("i0/r") == (None if counts else expected)


@given(st.integers(1, 400), st.data())
def test_the_bar_of_40_percent_is_strict(n: int, data: st.DataObject) -> None:
    """Two right of five do not do, however many there are; one more does (appendix E: higher than 40 %)."""
    right = data.draw(st.sampled_from([(2 * n) // 5, (2 * n) // 5 + 1, data.draw(st.integers(0, n))]))
    right = min(right, n)
    rows = [answer(k, after=0 if k < right else 1) for k in range(n)]
    (row,) = select(frame(*rows), items(*[0] * n)).raters.rows(named=True)
    assert row["is_kept"] == (5 * right > 2 * n)
    assert (row["n"], row["accuracy_after"]) == (n, pytest.approx(right / n))


def test_accuracy_is_of_a_rater_over_all_items() -> None:
    """One rater's mistakes drop none of another's answers; a right answer of a rater below the bar is dropped too."""
    rows = [answer(n, "good") for n in range(5)] + [answer(n, "bad", 0 if n < 2 else 3) for n in range(5)]
    found = select(frame(*rows), items(*[0] * 5))
    assert set(found.answers["rater_id"]) == {"good"}
    assert reasons(found) == {f"i{n}/bad": "rater_below" for n in range(5)}
    assert found.raters.select("rater_id", "n", "accuracy_before", "accuracy_after", "is_kept").rows() == [
        ("bad", 5, 0.0, 0.4, False), ("good", 5, 0.0, 1.0, True),
    ]  # fmt: skip


def test_what_cannot_be_tried_is_told() -> None:
    """An answer to no item, without an option after reading or without a difficulty counts neither way."""
    rows = [answer(0), answer(7), answer(1, after=None), answer(2, difficulty=None)]
    found = select(frame(*rows), items(0, 0, 0))
    assert reasons(found) == {"i7/r": "unknown_item", "i1/r": "incomplete", "i2/r": "incomplete"}
    assert found.raters["n"].to_list() == [2]  # i0 and i2


def test_an_answer_without_a_first_choice_counts() -> None:
    """Appendix E asks for no answer before reading and no relation; whether the first one was right is unknown."""
    found = select(frame(answer(before=None, relation=None)), items(0))
    assert found.answers.select("is_right_before", "is_right").rows() == [(None, True)]


def test_another_bar() -> None:
    """The accuracy is an argument, exclusive as well."""
    rows = frame(answer(0), answer(1, after=2))
    assert select(rows, items(0, 0), 0.5).answers.is_empty()
    assert select(rows, items(0, 0), 0.49).answers.height == 2


answers_strategy = st.builds(
    answer,
    st.integers(0, 5), st.sampled_from("abc"), st.sampled_from([0, 0, 1, 4, None]),
    before=st.sampled_from([0, 3, None]), second=st.sampled_from([0, 2, None]), span_1=st.sampled_from(["x", "", None]),
    difficulty=st.sampled_from([*DIFFICULTIES, None]), relation=st.sampled_from([*RELATIONS, None]),
)  # fmt: skip


@given(st.lists(answers_strategy, max_size=15, unique_by=lambda a: (a["item_id"], a["rater_id"])))
def test_counts_add_up(rows: list[dict[str, Any]]) -> None:
    """Each answer is kept or dropped with one of the reasons, and by item the counts are those of all answers."""
    given_answers, five = frame(*rows), items(0, 1, 2, 3, 4)
    found = select(given_answers, five)
    keys = [f"{r['item_id']}/{r['rater_id']}" for r in rows]
    kept = [f"{i}/{r}" for i, r in found.answers.select("item_id", "rater_id").rows()]
    assert sorted(kept + found.dropped["row_key"].to_list()) == sorted(keys)
    assert set(found.dropped["reason"]) <= set(REASONS)
    assert kept == [key for key in keys if key in kept]
    told = measure_noise(found.answers, given_answers, five)
    assert told["item_id"].to_list() == five["item_id"].to_list()
    assert told["n"].sum() == len(kept)
    assert told["n_given"].sum() == sum(r["item_id"] != "i5" for r in rows)
    for row in told.filter(pl.col("n") > 0).iter_rows(named=True):
        assert sum(row["after_shares"]) == pytest.approx(1)
        assert sum(row["second_shares"]) <= 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"after": 5}, "answers: item i0, rater r, after: expected a place from 0 to 4, found 5"),
        ({"second": -1}, "second: expected a place from 0 to 4, found -1"),
        ({"difficulty": "hard"}, "difficulty: expected one of easy, medium, difficult, found 'hard'"),
        ({"relation": "copy"}, "relation: expected one of summarise"),
    ],
)
def test_a_wrong_value_is_told(change: dict[str, Any], told: str) -> None:
    """The message names item, rater, field, what was found and what was due."""
    with pytest.raises(BadInput, match=told):
        select(frame(answer(**change)), items(0))


def test_frames_that_do_not_fit_are_told() -> None:
    """A column that is missing, a second answer, a second row of an item, an item without a right option."""
    with pytest.raises(BadInput, match="answers: no column span_2"):
        select(frame(answer()).drop("span_2"), items(0))
    with pytest.raises(BadInput, match="item i0, rater r: two answers"):
        select(frame(answer(), answer(after=2)), items(0))
    with pytest.raises(BadInput, match="item i0 has two rows"):
        select(frame(answer()), pl.concat([items(0), items(1)]))
    with pytest.raises(BadInput, match="item i0, label: expected a place from 0 to 4, found None"):
        select(frame(answer()), items(0).with_columns(label=pl.lit(None, pl.Int64)))


def test_nobody_answered() -> None:
    """No answers are no error: all items are there, nothing is said of them."""
    found = select(frame(), items(0, 1))
    assert found.answers.columns == [*SCHEMA, "is_right_before", "is_right"]
    (first, _) = measure_noise(found.answers, frame(), items(0, 1)).rows(named=True)
    assert first == {
        "item_id": "i0", "n_given": 0, "n": 0, "accuracy_before": None, "accuracy_after": None, "after_shares": None,
        "second_shares": None, "is_unanswerable": None, "is_ambiguous": None,
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize(
    ("said", "is_unanswerable", "is_ambiguous"),
    [
        ([(0, None), (0, None), (0, None)], False, False),
        ([(0, None), (0, None), (3, None)], False, False),
        ([(0, None), (2, None), (3, None)], True, False),  # one of three finds it
        ([(2, None), (2, None), (2, None)], True, False),
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
    said: list[tuple[int, int | None]], is_unanswerable: bool | None, is_ambiguous: bool | None
) -> None:
    """The flags of what raters name, the first being the right option; of too few answers nothing is said (REC-26)."""
    rows = frame(*(answer(0, f"r{n}", after, second=second) for n, (after, second) in enumerate(said)))
    told = measure_noise(rows, rows, items(0))
    assert told.select("is_unanswerable", "is_ambiguous").row(0) == (is_unanswerable, is_ambiguous)


def test_shares_by_option() -> None:
    """Accuracies and shares of four answers, counted by hand."""
    rows = frame(
        answer(0, "a", 0, before=0), answer(0, "b", 0, before=2, second=4), answer(0, "c", 3, before=0, second=4),
        answer(0, "d", 0, before=None, second=0),
    )  # fmt: skip
    (told,) = measure_noise(rows, rows, items(0)).rows(named=True)
    assert (told["n_given"], told["n"]) == (4, 4)
    assert told["accuracy_before"] == pytest.approx(2 / 3)
    assert told["accuracy_after"] == 0.75
    assert told["after_shares"] == [0.75, 0, 0, 0.25, 0]
    assert told["second_shares"] == [0, 0, 0, 0, 0.5]


def test_thresholds_are_arguments() -> None:
    """Bars are exclusive, the least number of answers is not."""
    rows = frame(answer(0, "a", 0), answer(0, "b", 0, second=1), answer(0, "c", 1))
    base = measure_noise(rows, rows, items(0)).row(0, named=True)
    assert (base["is_unanswerable"], base["is_ambiguous"]) == (False, True)  # each named by two of three
    strict = measure_noise(rows, rows, items(0), least_right=0.7, most_others=0.67).row(0, named=True)
    assert (strict["is_unanswerable"], strict["is_ambiguous"]) == (True, False)
    assert measure_noise(rows, rows, items(0), least_answers=3)["is_ambiguous"].to_list() == [True]
    assert measure_noise(rows, rows, items(0), least_answers=4)["is_ambiguous"].to_list() == [None]
    for wrong in ({"least_answers": 0}, {"least_right": 1.5}, {"most_others": float("nan")}):
        with pytest.raises(BadInput, match="expected least_answers from 1 and shares in 0-1"):
            measure_noise(rows, rows, items(0), **wrong)  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4))), min_size=1, max_size=12))
def test_flags_are_what_is_counted(said: list[tuple[int, int | None]]) -> None:
    """On any answers the flags are those of a count in whole numbers: no rounding decides."""
    rows = frame(*(answer(0, f"r{n}", after, second=second) for n, (after, second) in enumerate(said)))
    told = measure_noise(rows, rows, items(2), least_answers=1).row(0, named=True)
    named = [sum(place in pair for pair in said) for place in range(5)]
    assert told["is_unanswerable"] == (2 * named[2] < len(said))
    assert told["is_ambiguous"] == (sum(2 * count > len(said) for count in named) >= 2)
