"""Accuracy of readers of cloze items: by hand, by properties, and the paper's own drops."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline import warehouse
from pipeline.metrics.recam.reading import accuracy, bin_lengths, compare, compare_subtasks, measure_groups
from pipeline.metrics.resample import wilson
from pipeline.papers.recam import LEADERBOARDS
from pipeline.tasks.recam import readers
from tests.support.rows.filled import digest, filled

# tables 6 and 7: the drops as they are printed, in percent, in the order of the teams with both accuracies
DROPS = {
    "imperceptibility": (3.3, 1.3, 1.9, 3.8, 14.4, 5.4, 4.9, 7.6, 1.4, 5.5, 13.5, 4.8, 11.1, 2.6),
    "nonspecificity": (1.1, 1.0, 7.6, 0.2, 2.4, 5.5, 2.4, 4.7, 5.5, 12.2, 21.9, 16.3, 13.8, 14.7, 4.9),
}
TABLES = {subtask: [row for row in rows[1:] if row[2]] for subtask, rows in LEADERBOARDS.items()}
rights = st.lists(st.booleans(), min_size=1, max_size=60)


def published() -> pl.DataFrame:
    first, second = TABLES
    cells = [
        (team, trained_on, tested_on, value)
        for tested_on, rows in TABLES.items()
        for team, home, away in rows
        for trained_on, value in ((tested_on, home), (second if tested_on == first else first, away))
    ]
    return pl.DataFrame(cells, schema=["team", "trained_on", "tested_on", "accuracy"], orient="row")


def test_all_29_published_drops_follow() -> None:
    """The drops that tables 6 and 7 print follow from the accuracies beside them, all 14 + 15 (REC-29, REC-30)."""
    actual = compare_subtasks(published(), ["team"])
    assert actual.height == 29
    drops = {(row["tested_on"], row["team"]): row["drop"] for row in actual.to_dicts()}
    for tested_on, rows in TABLES.items():
        assert tuple(round(drops[tested_on, team], 1) for team, *_ in rows) == DROPS[tested_on]


def test_a_reader_is_ranked_among_the_submissions(tables: object) -> None:
    """It is behind those as good and before those worse; one of the other subtask is ranked among such (REC-29)."""
    ranked = readers.rank_among_submissions(0.4200, "imperceptibility")
    assert ranked.filter(reader="this reader").row(0) == (21, "this reader", 0.42, None)
    assert ranked["reader"].to_list()[20:22] == ["UoR", "this reader"]
    model = filled("models", {"model_id": digest("m"), "kind": "reader_nonspecificity"})
    warehouse.overwrite("models", warehouse.make_slice(kind="reader_nonspecificity"), model)
    ranked = readers.rank_among_submissions(0.5, "imperceptibility", digest("m"))
    assert (ranked.height, ranked.filter(reader="this reader").row(0)) == (15, (13, "this reader", None, 0.5))


@given(rights, st.integers(1, 5))
def test_intervals_hold_the_value(is_right: list[bool], size: int) -> None:
    """The bounds lie in [0, 1] around the share, whatever the groups; a reader equals itself."""
    groups = [f"a{i // size}" for i in range(len(is_right))]
    actual = accuracy(is_right, groups, draws=50)
    assert 0 <= actual.low <= actual.high <= 1
    assert actual.value == pytest.approx(np.mean(is_right))
    assert compare(is_right, is_right, groups) == (0, 0, 0, 1, 1, len(is_right))


def test_by_hand() -> None:
    """Of four verbs three are right; items of one article are one answer, so the verbs are three for the interval."""
    is_right = [True, False, True, True, True, True]
    values = pl.Series(["VERB", "VERB", "VERB", "NOUN", "VERB", "NOUN"])
    actual = measure_groups(is_right, values, ["x", "x", "y", "y", "z", "z"])
    assert actual.select("group", "n", "accuracy").rows() == [("NOUN", 2, 1.0), ("VERB", 4, 0.75)]
    low, high = wilson(np.array([1.0, 0.75]), np.array([2, 3]))
    assert actual["low"].to_list() == pytest.approx(low.tolist())
    assert actual["high"].to_list() == pytest.approx(high.tolist())
    assert measure_groups(is_right, values, range(6))["low"][1] > actual["low"][1]


def test_parts_stand_in_order() -> None:
    """Places are sorted as numbers, bins of lengths by their lengths, and null comes last."""
    places = pl.Series([10, 2, None, 2])
    assert measure_groups([True] * 4, places, range(4))["group"].to_list() == ["2", "10", None]
    bins = bin_lengths(pl.Series([900, 50, 120, 121]), [120, 300])
    assert measure_groups([True] * 4, bins, range(4))["group"].to_list() == ["0–120", "121–300", "301+"]


def test_paired_by_hand() -> None:
    """One reader mends 30 faults of another and adds 10: 0.1 of 200; McNemar's p is the binomial's of 10 in 40."""
    second = np.arange(200) < 100
    first = second.copy()
    first[100:130], first[:10] = True, False
    actual = compare(first, second)
    assert (actual.difference, actual.n) == (pytest.approx(0.1), 200)
    assert actual.mcnemar == pytest.approx(stats.binomtest(10, 40).pvalue)
    grouped = compare(first, second, np.arange(200) // 20)  # what one mends is in two articles of ten
    assert grouped.p > actual.p


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accuracy([]), "at least one item"),
        (lambda: accuracy(pl.Series([True, None])), "found 1 null"),
        (lambda: accuracy([True], ["a", "b"]), "a group for each of 1 items, got 2"),
        (lambda: measure_groups([True, False], pl.Series(["NOUN"] * 2), ["a"]), "a group for each of 2 items, got 1"),
    ],
)
def test_what_cannot_be_measured_is_an_error(call: object, message: str) -> None:
    """Nothing at all, unequal lengths, and a missing answer or group have no numbers."""
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
