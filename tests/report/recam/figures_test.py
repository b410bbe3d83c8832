"""Figures of a cloze set and its readers: SVG that says the numbers, for one subtask or both, same rows same bytes."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from pipeline.examples.recam import building
from pipeline.report.recam import figures
from pipeline.report.recam.figures import WAYS, order_steps
from tests.report.recam.rows import AUDIT, BREAKDOWN, FIRST, FUNNEL, READERS, SECOND
from tests.support.pages import check_print, check_rows, words

Draw = Callable[[pl.DataFrame], str]
FIGURES: list[tuple[Draw, pl.DataFrame, str]] = [
    (figures.draw_audit, AUDIT, "subtask"),
    (figures.draw_readers, READERS, "tested_on"),
    (figures.draw_breakdown, BREAKDOWN, "trained_on"),
]  # fmt: skip
EVERY = [pytest.param(*figure, id=figure[0].__name__) for figure in FIGURES]


@cache
def whole(name: str) -> str:
    """A figure of all its rows, drawn once."""
    ((draw, rows),) = ((draw, rows) for draw, rows, _ in FIGURES if draw.__name__ == name)
    return draw(rows)


@pytest.mark.parametrize(("draw", "rows", "column"), EVERY)
def test_a_figure_is_of_its_rows(draw: Draw, rows: pl.DataFrame, column: str) -> None:
    """It can be read in print, and names are text; one subtask alone is drawn, and is another figure."""
    check_print(whole(draw.__name__))
    check_rows(draw, rows)
    alone = draw(rows.filter(pl.col(column) == SECOND))
    assert SECOND in " ".join(words(alone))
    assert alone != whole(draw.__name__)


@pytest.mark.parametrize("number", range(1, 3))
def test_what_is_null_is_left_out(number: int) -> None:
    """A figure of accuracies that are not known has its names and says nan nowhere."""
    draw, rows, _ = FIGURES[number]
    texts = words(draw(rows.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("accuracy", "low", "high"))))
    assert "nan" not in " ".join(texts)
    assert FIRST in " ".join(texts)


def test_funnel_follows_the_filters() -> None:
    """The rule comes first, filters in their order, unknown ones then; what is left goes down to the targets."""
    steps = order_steps(FUNNEL.filter(pl.col("subtask") == FIRST))
    assert steps["reason"].to_list() == ["not_content", "concrete", "in_passage", "new_filter", "target"]
    assert steps.select("count", "left").rows() == [(500, 500), (300, 200), (100, 100), (25, 75), (75, 75)]
    assert order_steps(steps.head(2).drop("left")).rows()[-1] == ("target", 0, 0)


def test_every_reason_of_the_funnel_is_named() -> None:
    """Each reason of `examples.recam.building` has words on the page."""
    code = Path(building.__file__).read_text("utf-8")
    reasons = set(re.findall(r'"((?:not|no(?!_target)|in|synonym|antonym|similar)_\w+|concrete|specific)"', code))
    assert len(reasons) >= 11
    assert reasons <= set(figures.REASONS)


def test_audit_shows_the_best_ways_first() -> None:
    """The way that reaches most anywhere is on top; sets and their numbers of items stand in the legend."""
    texts = words(whole("draw_audit"))
    names = ["often right", "absent", "longest"]
    assert [text for text in texts if text in names] == names
    assert f"{FIRST}, n = 837" in " ".join(texts)
    assert "the best" not in " ".join(texts)
    row = AUDIT.head(1)
    many = pl.concat(row.with_columns(baseline=pl.lit(f"way_{i:02}"), accuracy=0.2 + i / 100) for i in range(20))
    texts = words(figures.draw_audit(many))
    assert [text for text in texts if text.startswith("way")] == [f"way {i:02}" for i in range(19, 19 - WAYS, -1)]
    assert f"the best {WAYS} of 20 baselines" in " ".join(texts)
