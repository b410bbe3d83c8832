"""Figures of a cloze set and its readers: SVG that says the numbers, for one subtask or both, same rows same bytes."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from pipeline.examples.recam import targets
from pipeline.report.recam import figures
from pipeline.report.recam.figures import WAYS, list_subtasks, order_steps, sort_groups
from tests.report.recam.rows import AUDIT, BREAKDOWN, FUNNEL, MATRIX, ONE, OTHER, READERS, RETRIEVAL
from tests.support.pages import check_figure, check_rows, stars, words

Draw = Callable[[pl.DataFrame], str]
FIGURES: list[tuple[Draw, pl.DataFrame, str]] = [
    (figures.draw_funnel, FUNNEL, "subtask"), (figures.draw_audit, AUDIT, "subtask"),
    (figures.draw_retrieval, RETRIEVAL, "subtask"), (figures.draw_readers, READERS, "tested_on"),
    (figures.draw_matrix, MATRIX, "trained_on"), (figures.draw_breakdown, BREAKDOWN, "trained_on"),
]  # fmt: skip
EVERY = [pytest.param(*figure, id=figure[0].__name__) for figure in FIGURES]


@cache
def whole(name: str) -> str:
    """A figure of all its rows, drawn once."""
    ((draw, rows),) = ((draw, rows) for draw, rows, _ in FIGURES if draw.__name__ == name)
    return draw(rows)


@pytest.mark.parametrize(("draw", "rows", "column"), EVERY)
def test_a_figure_is_of_its_rows(draw: Draw, rows: pl.DataFrame, column: str) -> None:
    """Rows in any order give the same bytes, names are text; one subtask alone is drawn, and is another figure."""
    assert check_figure(draw, rows) == whole(draw.__name__)
    check_rows(draw, rows)
    alone = draw(rows.filter(pl.col(column) == OTHER))
    assert OTHER in " ".join(words(alone))
    assert alone != whole(draw.__name__)


@pytest.mark.parametrize("number", range(3, 6))
def test_what_is_null_is_left_out(number: int) -> None:
    """A figure of accuracies that are not known has its names and says nan nowhere."""
    draw, rows, _ = FIGURES[number]
    said = words(draw(rows.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("accuracy", "low", "high"))))
    assert "nan" not in " ".join(said)
    assert ONE in " ".join(said)


def test_funnel_follows_the_filters() -> None:
    """The rule comes first, filters in their order, unknown ones then; what is left goes down to the targets."""
    found = order_steps(FUNNEL.filter(pl.col("subtask") == ONE))
    assert found.rows() == [
        ("not_content", 500, 500), ("concrete", 300, 200), ("in_passage", 100, 100), ("new_filter", 25, 75),
        ("target", 75, 75),
    ]  # fmt: skip
    assert order_steps(found.head(2).drop("left")).rows()[-1] == ("target", 0, 0)
    said = words(whole("draw_funnel"))
    assert {"1,000", "−500", "−300", "75 (7.5 %)", "10 (1.0 %)", "too concrete", "too specific"} <= set(said)
    assert said.index("no content word") < said.index("too concrete") < said.index("in the passage")


def test_every_reason_of_the_funnel_is_named() -> None:
    """What `examples.recam.targets` tells of a token has words on the page."""
    told = re.findall(
        r'"((?:not|no|in|synonym|antonym|similar)_\w+|concrete|specific)"', Path(targets.__file__).read_text("utf-8")
    )
    assert len(set(told)) >= 11
    assert set(told) <= set(figures.REASONS)


def test_audit_shows_the_best_ways_first() -> None:
    """The way that reaches most anywhere is on top; sets and their numbers of items stand in the legend."""
    said = words(whole("draw_audit"))
    assert [name for name in said if name in {"often right", "absent", "longest"}] == [
        "often right",
        "absent",
        "longest",
    ]
    assert f"{ONE}, n = 837" in said
    assert "the best" not in " ".join(said)
    many = pl.concat(
        AUDIT.head(1).with_columns(baseline=pl.lit(f"way_{i:02}"), accuracy=0.2 + i / 100) for i in range(20)
    )
    shown = words(figures.draw_audit(many))
    assert [name for name in shown if name.startswith("way")] == [f"way {i:02}" for i in range(19, 19 - WAYS, -1)]
    assert f"the best {WAYS} of 20 ways not to read" in " ".join(shown)


def test_audit_of_our_items_alone() -> None:
    """Without a column `file` all items are ours."""
    ours = AUDIT.filter(pl.col("file").is_null())
    assert figures.draw_audit(ours.drop("file")) == figures.draw_audit(ours)


def test_the_papers_retrieval_is_beside_ours() -> None:
    """A star for each number of tables 3 and 4: two readers of two subtasks with four each; a new reader has none."""
    svg = whole("draw_retrieval")
    assert stars(svg) == 2 * 2 * 4 + 1
    said = words(svg)
    assert [name for name in said if name.endswith("MRR")] == ["gated · MRR", "gloss · MRR", "ours · MRR"]
    assert f"{ONE} n = 5,310 to 5,312" in " ".join(said)


def test_readers_are_named_with_their_training() -> None:
    """The best reader of a test is on top; what one was trained on is told where it is not what it is tested on."""
    said = words(figures.draw_readers(READERS.with_columns(blind=pl.lit(0.23))))
    joined = " ".join(said)
    assert joined.index("masked_lm (strong)") < joined.index("gated (paper)")
    assert f"gated (paper), trained on {OTHER}" in joined
    assert f"tested on {ONE}, Task_dev.jsonl" in joined
    assert "best way not to read" in said
    assert "best way not to read" not in words(whole("draw_readers"))


def test_the_paper_stands_beside_our_items_only() -> None:
    """The GA Reader's published accuracy is of the official test set, and is not drawn for a file."""
    dev = READERS.filter(pl.col("file").is_not_null())
    assert "GA Reader" in " ".join(words(whole("draw_readers")))
    assert "GA Reader" not in " ".join(words(figures.draw_readers(dev)))


def test_matrix_says_what_is_lost() -> None:
    """Away cells say how far they are from home: 0.402 - 0.299 below, 0.361 - 0.351 above; home is framed."""
    said = words(whole("draw_matrix"))
    assert {"0.351", "0.331 to 0.372", "0.103 below home", "0.010 above home", "n = 1,204"} <= set(said)
    assert said.count("home") == 2
    alone = words(figures.draw_matrix(MATRIX.head(2)))
    assert alone.count("home") == 1
    with pytest.raises(ValueError, match="once"):
        figures.draw_matrix(pl.concat([MATRIX, MATRIX]))


def test_breakdown_is_in_the_order_of_lengths() -> None:
    """Bins stand in the order of their lengths, what is not known last, each with its number of items."""
    said = words(whole("draw_breakdown"))
    names = ["NOUN", "VERB", "not known", "0–120", "121–250", "1001+"]
    assert [name for name in said if name in names] == names
    assert said.count("n = 60") == BREAKDOWN.height
    assert sort_groups(["10", None, "2", "b", "a", "2"]) == ["2", "10", "a", "b", None]


def test_subtasks_stand_in_the_papers_order() -> None:
    """Imperceptibility is subtask 1, nonspecificity 2; other names come after them."""
    assert list_subtasks(pl.Series(["a", OTHER, ONE, OTHER])) == [ONE, OTHER, "a"]
