"""What a cloze set gives away: by hand, by properties, and on the official files."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.examples import cloze
from pipeline.metrics.cloze_audit import audit

ROWS = [
    ("The kettle sang.", "All she wanted was @placeholder.", ["peace", "kettle", "noise", "rain", "dust"], 0),
    ("He left early.", "What he felt was @placeholder, or noise.", ["noise", "peace", "joy", "left", "grief"], 1),
    ("It rained.", "They lost @placeholder.", ["peace", "hope", "joy", "rain", "tranquillity"], 1),
]


def items(rows: list[tuple[str, str, list[str], int]]) -> pl.DataFrame:
    """Items in the official format."""
    names = ("article", "question", "options", "label")
    return pl.DataFrame([{"item_id": str(i), **dict(zip(names, row, strict=True))} for i, row in enumerate(rows)])


def told(rows: list[tuple[str, str, list[str], int]]) -> dict[str, float]:
    """Accuracy by baseline."""
    return dict(audit(items(rows)).select("baseline", "accuracy").iter_rows())


def test_by_hand() -> None:
    """Three items, worked by hand.

    Peace is right in items 1 and 2: told from the others it is right once for either of them, twice for item 3. Absent
    from the passage are four options each of items 1 and 2, and all five of item 3 (rained is not rain).
    """
    found = told(ROWS)
    assert found["often_right"] == pytest.approx(2 / 3)
    assert found["right_when_offered"] == pytest.approx((1 + 1 + 0) / 3)
    assert found["absent"] == pytest.approx((1 / 4 + 1 / 4 + 1 / 5) / 3)
    assert found["in_question"] == pytest.approx((1 / 5 + 0 + 1 / 5) / 3)
    assert found["longest"] == pytest.approx((0 + 1 / 3 + 0) / 3)
    # peace is offered twice elsewhere, noise, rain and joy once, others never
    assert found["often_offered"] == pytest.approx(2 / 3)
    assert found["seldom_offered"] == pytest.approx((0 + 0 + 1 / 2) / 3)


@given(st.permutations(range(5)), st.permutations(range(3)))
def test_order_tells_nothing(options: list[int], rows: list[int]) -> None:
    """The numbers are the same whatever the order of items and of their options."""
    moved = [(a, q, [o[i] for i in options], options.index(label)) for a, q, o, label in (ROWS[i] for i in rows)]
    assert told(moved) == pytest.approx(told(ROWS))


def test_nothing_is_given_away() -> None:
    """Where options are the same in all items and right in turn, every baseline but the one of turns is at chance."""
    rows = [(".", "@placeholder", list("abcde"), i % 5) for i in range(50)]
    found = told(rows)
    assert all(found[name] == pytest.approx(0.2) for name in ("often_offered", "seldom_offered", "absent", "longest"))
    assert found["often_right"] == found["right_when_offered"] == 0  # told from the others the right one is right less
    assert audit(items(rows).clear()).is_empty()


@pytest.mark.parametrize(
    ("name", "often", "offered"),
    [("Task_1_dev", 0.225, 0.3035), ("Task_2_dev", 0.257, 0.3244), ("trial_Task_3_Intersection", 0.602, 0.697)],
)
def test_official_files(data: Path, name: str, often: float, offered: float) -> None:
    """Errata E15 has 59.9 % for Intersection and 22.7 to 28.9 % for others; ours were measured with ties shared."""
    found = audit(cloze.read(data / "recam" / f"{name}.jsonl", strict=False).items)
    by = {row["baseline"]: row for row in found.to_dicts()}
    assert by["often_right"]["accuracy"] == pytest.approx(often, abs=0.001)
    assert by["right_when_offered"]["accuracy"] == pytest.approx(offered, abs=0.001)
    assert by["absent"]["accuracy"] > by["absent"]["chance"]
    assert 0 < by["absent"]["error"] < 0.02
