"""Figures of article commenting: SVG that says the numbers, plain beside weighted, same rows same bytes."""

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import polars as pl
import pytest

from pipeline.report.commenting import figures
from pipeline.report.commenting.figures import POINTS, TOP
from tests.report.commenting import rows as data
from tests.report.commenting.rows import CATEGORIES, CORRELATIONS, SCATTER
from tests.support.pages import check_print, check_rows, said, words

FIGURES: dict[str, tuple[Callable[[pl.DataFrame], str], pl.DataFrame]] = {
    "categories": (figures.draw_categories, CATEGORIES), "grades": (figures.draw_grades, data.GRADES),
    "correlations": (figures.draw_correlations, CORRELATIONS),
    "scatter": (figures.draw_scatter, SCATTER),
}  # fmt: skip


@cache
def draw(name: str) -> str:
    """Draw a figure of all its rows, once."""
    draw_figure, rows = FIGURES[name]
    return draw_figure(rows)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_of_its_rows(name: str) -> None:
    """It can be read in print, and its names are text."""
    check_print(draw(name))
    check_rows(*FIGURES[name], keep=("coefficient",))


def test_nulls_are_not_drawn() -> None:
    """A figure of numbers that are not known says nan nowhere."""
    draw_figure, rows = FIGURES["correlations"]
    numbers = [column for column, kind in rows.schema.items() if kind == pl.Float64]
    assert "nan" not in said(draw_figure(rows.with_columns(pl.lit(None, pl.Float64).alias(c) for c in numbers)))


def test_the_most_frequent_categories_are_drawn() -> None:
    """Fifteen of them, the most frequent on top, each with its count and share; Chinese names are letters, no boxes."""
    texts = words(draw("categories"))
    assert [text for text in texts if text in data.NAMES] == list(data.NAMES[:TOP])
    assert {"900 (10.6 %)", "200 (2.4 %)"} <= set(texts)
    assert f"the {TOP} most frequent of 17 categories, n = 8,500 articles" in said(draw("categories"))
    few = said(figures.draw_categories(CATEGORIES.tail(2)))
    assert "most frequent" not in few
    assert "not known" in few


def test_grades_are_means_of_items() -> None:
    """Two raters who give 4 and 5 make one comment at 4.5; the mean is marked, and that of the paper."""
    rows = pl.DataFrame({"item_id": ["a", "a", "b", "b"], "grade": [4, 5, 2, 2]})
    text = said(figures.draw_grades(rows))
    for part in ("mean 3.25", "mean in the paper 3.6", "n = 2 comments"):
        assert part in text
    assert text.count("50.0 %") == 2


def test_scatter_is_bounded() -> None:
    """Of many comments a sample is drawn, and the figure says so; n is of all. A constant has no r."""
    value, grade = np.random.default_rng(0).random((2, 5000))
    svg = figures.draw_scatter(pl.DataFrame({"value": value, "grade": grade, "metric": "meteor", "is_weighted": False}))
    assert "n = 5,000" in said(svg)
    assert f"{POINTS:,} points drawn at random" in said(svg)
    assert len(re.findall(r"<use [^>]*fill-opacity: 0.3", svg)) == POINTS
    assert "at random" not in said(draw("scatter"))
    for column in ("grade", "value"):
        assert "r =" not in said(figures.draw_scatter(SCATTER.with_columns(pl.lit(0.5).alias(column))))


def test_systems_are_ranked_and_held_against_people() -> None:
    """Places are of the highest first, ties alike; of a single system there is no τ."""
    assert figures.rank_values(np.array([0.3, np.nan, 0.1, 0.3])).tolist()[::2] == [1, 3]
    people = np.array([1.0, 2.0, np.nan])
    for values, tau in (([5.0, 6.0, 1.0], 1), ([6.0, 5.0, 9.0], -1), ([6.0, np.nan, 9.0], None)):
        assert figures.compute_tau(np.array(values), people) == tau
