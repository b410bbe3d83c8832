"""What a cloze set gives away: by hand, by properties, and on the official files."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.examples.recam import items as cloze
from pipeline.metrics.recam.audit import audit

ROWS = [
    ("The kettle sang.", "All she wanted was @placeholder.", ["peace", "kettle", "noise", "rain", "dust"], 0),
    ("He left early.", "What he felt was @placeholder, or noise.", ["noise", "peace", "joy", "left", "grief"], 1),
    ("It rained.", "They lost @placeholder.", ["peace", "hope", "joy", "rain", "tranquillity"], 1),
]


def make_items(rows: list[tuple[str, str, list[str], int]]) -> pl.DataFrame:
    names = ("article", "question", "options", "label")
    return pl.DataFrame([{"item_id": str(i), **dict(zip(names, row, strict=True))} for i, row in enumerate(rows)])


def measure_accuracies(rows: list[tuple[str, str, list[str], int]]) -> dict[str, float]:
    return dict(audit(make_items(rows)).select("baseline", "accuracy").iter_rows())


def test_by_hand() -> None:
    """Three items, worked by hand.

    Peace is right in items 1 and 2: told from the others it is right once for either of them, twice for item 3. Absent
    from the passage are four options each of items 1 and 2, and all five of item 3 (rained is not rain).
    """
    actual = measure_accuracies(ROWS)
    assert actual["often_right"] == pytest.approx(2 / 3)
    assert actual["right_when_offered"] == pytest.approx((1 + 1 + 0) / 3)
    assert actual["absent"] == pytest.approx((1 / 4 + 1 / 4 + 1 / 5) / 3)
    assert actual["in_question"] == pytest.approx((1 / 5 + 0 + 1 / 5) / 3)
    assert actual["longest"] == pytest.approx((0 + 1 / 3 + 0) / 3)
    # in items 1 and 2 all but peace are never right elsewhere, in item 3 hope and three others
    assert actual["seldom_right"] == pytest.approx((0 + 0 + 1 / 4) / 3)
    assert actual["shortest"] == 0  # rain and dust, joy, joy
    # peace is offered twice elsewhere, noise, rain and joy once, others never
    assert actual["often_offered"] == pytest.approx(2 / 3)
    assert actual["seldom_offered"] == pytest.approx((0 + 0 + 1 / 2) / 3)


@settings(max_examples=3, deadline=None)
@given(st.permutations(range(5)), st.permutations(range(3)))
def test_order_tells_nothing(options: list[int], rows: list[int]) -> None:
    """The numbers are the same whatever the order of items and of their options."""
    moved = [(a, q, [o[i] for i in options], options.index(label)) for a, q, o, label in (ROWS[i] for i in rows)]
    assert measure_accuracies(moved) == pytest.approx(measure_accuracies(ROWS))


def test_nothing_is_given_away() -> None:
    """Where options are the same in all items and right in turn, only counting tells, and that which are not right."""
    rows = [(f"{i}", "@placeholder", list("abcde"), i % 5) for i in range(50)]
    actual = measure_accuracies(rows)
    assert all(actual[name] == pytest.approx(0.2) for name in ("often_offered", "seldom_offered", "absent", "longest"))
    assert actual["often_right"] == actual["right_when_offered"] == 0  # the right one is right less elsewhere
    assert actual["seldom_right"] == actual["wrong_when_offered"] == 1
    assert audit(make_items(rows).clear()).is_empty()
    assert set(audit(make_items(rows).clear()).columns) == set(audit(make_items(rows)).columns)


def test_gaps() -> None:
    """The gap is accuracy less chance, in errors too; where nouns are right among verbs, that gives it away."""
    rows = [(".", "@placeholder", ["aa", "b", "c", "d", "e"], int(i >= 30)) for i in range(40)]
    actual = {row["baseline"]: row for row in audit(make_items(rows)).to_dicts()}
    assert actual["longest"]["gap"] == pytest.approx(0.75 - 0.2)
    assert actual["longest"]["error"] == pytest.approx((0.75 * 0.25 / 40) ** 0.5)
    assert actual["longest"]["sigmas"] == pytest.approx(0.55 / (0.75 * 0.25 / 40) ** 0.5)
    assert actual["capital"]["sigmas"] is None
    assert actual["option_only"]["accuracy"] == pytest.approx(0.2)  # of one article nothing is learnt
    nouns, verbs = ["peace", "truth", "joy"], ["go", "forget", "arrive", "become"]
    actual = measure_accuracies([(f"{i}", "@placeholder", [*verbs, nouns[i % 3]], 4) for i in range(12)])
    assert (actual["part_of_speech"], actual["other_part_of_speech"]) == (1, 0)


def draw_rows(count: int, seed: int = 5) -> list[tuple[str, str, list[str], int]]:
    """Items whose options and labels are drawn of thirty words, alike."""
    draw = np.random.default_rng(seed)
    words = [a + b + c for a in "bdgkm" for b in "aou" for c in "nt"]
    rows = []
    for i in range(count):
        question = f"A {('big', 'old', 'red')[draw.integers(3)]} @placeholder stood there."
        rows.append((f"{i}", question, draw.choice(words, 5, replace=False).tolist(), int(draw.integers(5))))
    return rows


def test_what_is_learnt() -> None:
    """Of options drawn alike nothing is learnt; a wrong ending is, and a word that goes with its neighbour."""
    actual = {row["baseline"]: row for row in audit(make_items(draw_rows(600))).to_dicts()}
    for name in ("option_only", "option_only_reversed", "question_only", "question_only_reversed"):
        assert abs(actual[name]["gap"]) < 3 * actual[name]["error"] + 0.01
    ended = [
        (a, q, [o if i == label else o + "ing" for i, o in enumerate(options)], label)
        for a, q, options, label in draw_rows(200)
    ]
    assert measure_accuracies(ended)["option_only"] > 0.95
    first = {"big": "b", "old": "d", "red": "g"}
    matching = [
        (a, q, [first[q.split()[1]] + o[1:] if i == label else o for i, o in enumerate(options)], label)
        for a, q, options, label in draw_rows(600)
    ]
    accuracies = measure_accuracies([row for row in matching if len(set(row[2])) == 5])
    assert accuracies["question_only"] > accuracies["option_only"] + 0.15


def test_what_options_and_questions_share() -> None:
    """Two items made of one summary name each other's gold word; an option unlike the others is the odd one."""
    options = ["hope", "fear", "dust", "rain", "time"]
    pair = [("One.", "@placeholder and fear.", options, 0), (" one.", "Hope and @placeholder.", options, 1)]
    assert measure_accuracies(pair)["in_other_question"] == 1
    assert measure_accuracies(pair)["in_question"] == 0
    odd = measure_accuracies([(".", "@placeholder", ["hopeful", "hoping", "hopeless", "hope", "cry"], 4)])
    assert (odd["odd_one_out"], odd["central"]) == (1, 0)


@pytest.mark.parametrize(
    ("name", "often", "offered"),
    [("Task_1_dev", 0.225, 0.3007), ("trial_Task_3_Intersection", 0.602, 0.697)],
)
def test_official_files(data: Path, name: str, often: float, offered: float) -> None:
    """Errata E15 has 59.9 % for Intersection and 22.7 to 28.9 % for others; ours were measured with ties shared."""
    actual = audit(cloze.read(data / "recam" / f"{name}.jsonl").rows)
    rows_by_baseline = {row["baseline"]: row for row in actual.to_dicts()}
    assert rows_by_baseline["often_right"]["accuracy"] == pytest.approx(often, abs=0.001)
    assert rows_by_baseline["right_when_offered"]["accuracy"] == pytest.approx(offered, abs=0.001)
    assert rows_by_baseline["absent"]["accuracy"] > rows_by_baseline["absent"]["chance"]
    assert 0 < rows_by_baseline["absent"]["error"] < 0.02
