"""Figures of article commenting: SVG that says the numbers, plain beside weighted, same rows same bytes."""

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import polars as pl
import pytest

from pipeline.report.commenting import figures
from pipeline.report.commenting.figures import METRICS, POINTS, SYSTEMS, TOP
from tests.report.commenting.rows import (
    CATEGORIES,
    CORRELATIONS,
    GRADES,
    HISTORY,
    NAMES,
    SCATTER,
    SENSITIVITY,
    SYSTEM_ROWS,
)
from tests.support.pages import check_figure, check_rows, said, words

Draw = Callable[[pl.DataFrame], str]
FIGURES: list[tuple[Draw, pl.DataFrame]] = [
    (figures.draw_categories, CATEGORIES), (figures.draw_grades, GRADES), (figures.draw_correlations, CORRELATIONS),
    (figures.draw_sensitivity, SENSITIVITY), (figures.draw_scatter, SCATTER), (figures.draw_systems, SYSTEM_ROWS),
    (figures.draw_history, HISTORY),
]  # fmt: skip
EVERY = [pytest.param(*figure, id=figure[0].__name__) for figure in FIGURES]


@cache
def whole(name: str) -> str:
    """A figure of all its rows, drawn once."""
    ((draw, rows),) = ((draw, rows) for draw, rows in FIGURES if draw.__name__ == name)
    return draw(rows)


@pytest.mark.parametrize(("draw", "rows"), EVERY)
def test_a_figure_is_of_its_rows(draw: Draw, rows: pl.DataFrame) -> None:
    """Rows in any order give the same bytes; there are rows, and their names are text."""
    assert check_figure(draw, rows) == whole(draw.__name__)
    check_rows(draw, rows, keep=("coefficient",))


@pytest.mark.parametrize("name", ["draw_correlations", "draw_sensitivity", "draw_systems", "draw_history"])
def test_what_is_null_is_left_out(name: str) -> None:
    """A figure of numbers that are not known says nan nowhere."""
    ((draw, rows),) = ((draw, rows) for draw, rows in FIGURES if draw.__name__ == name)
    null = [column for column in rows.columns if rows.schema[column] == pl.Float64]
    assert "nan" not in said(draw(rows.with_columns(pl.lit(None, pl.Float64).alias(column) for column in null)))


def test_the_most_frequent_categories_are_drawn() -> None:
    """Fifteen of them, the most frequent on top, each with its count and share; Chinese names are letters, no boxes."""
    svg = whole("draw_categories")
    found = words(svg)
    drawn = [name for name in found if name in NAMES]
    assert drawn == list(NAMES[:TOP])
    assert {"900 (10.6 %)", "200 (2.4 %)"} <= set(found)
    assert f"the {TOP} most frequent of 17 categories, n = 8,500 articles" in said(svg)
    assert "most frequent" not in said(figures.draw_categories(CATEGORIES.tail(2)))
    assert "not known" in said(figures.draw_categories(CATEGORIES.tail(2)))


def test_grades_are_means_of_items() -> None:
    """Two raters who give 4 and 5 make one comment at 4.5; the mean is marked, the paper's where it is told."""
    two = pl.DataFrame({"item_id": ["a", "a", "b", "b"], "grade": [4, 5, 2, 2]})
    told = said(figures.draw_grades(two, 3.6))
    assert "mean 3.25" in told
    assert "mean in the paper 3.6" in told
    assert "n = 2 comments" in told
    assert told.count("50.0 %") == 2
    assert "paper" not in said(figures.draw_grades(two))
    with pytest.raises(ValueError, match="at least one grade"):
        figures.draw_grades(two.with_columns(grade=pl.lit(None, pl.Float64)))


def test_many_grades_are_drawn_in_bins() -> None:
    """Means of a crowd, each its own number, make twenty bars without numbers on them."""
    crowd = pl.DataFrame({"item_id": range(500), "grade": np.linspace(0, 1, 500)})
    svg = figures.draw_grades(crowd)
    assert "%" not in said(svg).replace("% of comments", "")
    assert len(re.findall(r"fill: #c9d6df", svg)) == 20


def dots(svg: str, colour: str) -> int:
    """How many markers or bars have a colour."""
    return len(re.findall(rf"<use [^>]*fill: {colour}", svg))


def test_plain_and_weighted_stand_beside_each_other() -> None:
    """Metrics stand in the order of Table 4, people last; each but people has two marks a panel."""
    svg = whole("draw_correlations")
    known = [*METRICS.values(), "human grades"]
    assert [name for name in words(svg) if name in known] == [name for name in known if name in set(words(svg))]
    assert dots(svg, "#2a6f97") == 2 * 6 * 2 + 1  # a tick of the paper by each, and one in the legend
    assert dots(svg, "#d1682f") == 2 * 5 * 2 + 1


def test_the_papers_correlations_are_ticks() -> None:
    """There is a tick for each number of Table 4 and one in the legend; of a metric that it has not there is none."""
    tick = r"<use [^>]*stroke-width: 1.8"
    assert len(re.findall(tick, whole("draw_correlations"))) == CORRELATIONS.height + 1
    assert "printed in the paper" in said(whole("draw_correlations"))
    new = figures.draw_correlations(
        CORRELATIONS.filter(pl.col("metric") == "meteor").with_columns(metric=pl.lit("ours"))
    )
    assert not re.findall(tick, new)
    assert "printed in the paper" not in said(new)


def test_a_coefficient_alone() -> None:
    """Of one coefficient there is one panel."""
    alone = figures.draw_correlations(CORRELATIONS.filter(pl.col("coefficient") == "pearson"))
    assert "Pearson" in said(alone)
    assert "Spearman" not in said(alone)


def test_presets_have_their_marks() -> None:
    """Each way to make weights has a mark a metric and panel and one in the legend, with its name."""
    svg = whole("draw_sensitivity")
    assert {"s/5", "(s−1)/4", "s/max"} <= set(words(svg))
    assert dots(svg, "#2a6f97") == 5 * 2 + 1


def test_scatter_has_the_panels_of_figure_1() -> None:
    """BLEU-1, METEOR and W-METEOR by default, whatever else there is; r is numpy's, of grades without noise."""
    svg = whole("draw_scatter")
    assert [name for name in words(svg) if name in {"BLEU-1", "METEOR", "W-METEOR", "CIDEr"}] == [
        "BLEU-1", "METEOR", "W-METEOR"
    ]  # fmt: skip
    part = SCATTER.filter((pl.col("metric") == "meteor") & ~pl.col("is_weighted"))
    r = np.corrcoef(part["grade"], part["value"])[0, 1]
    assert f"METEOR n = 60, r = {r:.2f}" in said(svg)
    assert "CIDEr" in said(figures.draw_scatter(SCATTER.filter(pl.col("metric") == "cider")))


def test_noise_is_seeded_and_as_wide_as_told() -> None:
    """The same seed gives the same bytes, another one others; without noise points stand on their grades."""
    assert figures.draw_scatter(SCATTER, seed=0) == whole("draw_scatter")
    assert figures.draw_scatter(SCATTER, seed=1) != whole("draw_scatter")
    five = [
        {x for x, fill in re.findall(r'<use [^>]*x="([\d.]+)"[^>]*(fill-opacity: 0.3)', svg)}
        for svg in (figures.draw_scatter(SCATTER, jitter=0), whole("draw_scatter"))
    ]
    assert len(five[0]) == 3 * 5
    assert len(five[1]) > 150


def test_scatter_is_bounded() -> None:
    """Of many comments a sample is drawn, and the figure says so; n is of all."""
    random = np.random.default_rng(0)
    many = pl.DataFrame(
        {"metric": "meteor", "is_weighted": False, "value": random.random(5000), "grade": random.random(5000)}
    )
    svg = figures.draw_scatter(many)
    assert "n = 5,000" in said(svg)
    assert f"{POINTS:,} points drawn at random" in said(svg)
    assert len(re.findall(r"<use [^>]*fill-opacity: 0.3", svg)) == POINTS
    assert "at random" not in said(whole("draw_scatter"))


def test_one_grade_has_no_line() -> None:
    """Where all grades are the same there are points, and neither line nor r."""
    alike = SCATTER.with_columns(grade=pl.lit(3.0))
    assert "r =" not in said(figures.draw_scatter(alike))
    flat = SCATTER.with_columns(value=pl.lit(0.5))
    assert "r =" not in said(figures.draw_scatter(flat))


def test_systems_are_ranked_and_held_against_people() -> None:
    """Places are of the highest first, ties alike; τ of METEOR with people is 0.8.

    One pair of ten, Att and Att-TC, turns: (9 - 1) / 10. Of BLEU-1 four systems are left, of which IR-T and Att
    tie: (3 - 2) / 6.
    """
    assert figures.rank_values(np.array([0.3, np.nan, 0.1, 0.3])).tolist()[::2] == [1, 3]
    found = words(whole("draw_systems"))
    assert found.count("+0.80") == 2
    assert "+0.17" in found


def test_table_7_stands_beside_systems() -> None:
    """The paper's systems have its numbers beside them, others have none; without any the panel is left out."""
    found = words(whole("draw_systems"))
    assert [name for name in found if name in SYSTEMS] == [*SYSTEMS, *SYSTEMS]
    assert {"printed in the paper", "2.859"} <= set(found)
    ours = SYSTEM_ROWS.with_columns(pl.col("system").replace({"ir_t": "copy"}))
    assert [name for name in words(figures.draw_systems(ours)) if name in SYSTEMS] == [*SYSTEMS[1:], *SYSTEMS[1:]]
    alone = words(figures.draw_systems(SYSTEM_ROWS.with_columns(pl.col("system") + "_2")))
    assert "printed in the paper" not in alone


def test_systems_without_people() -> None:
    """Without human grades there is no τ of any metric."""
    found = said(figures.draw_systems(SYSTEM_ROWS.filter(pl.col("metric") != "human")))
    assert "+0" not in found


def test_rankings_need_two_systems() -> None:
    """Kendall's tau is of what both rank: 1 in the same order, -1 in the other, none of a single system."""
    people = np.array([1.0, 2.0, np.nan])
    assert figures.compute_tau(np.array([5.0, 6.0, 1.0]), people) == 1
    assert figures.compute_tau(np.array([6.0, 5.0, 9.0]), people) == -1
    assert figures.compute_tau(np.array([6.0, np.nan, 9.0]), people) is None


def test_names_are_the_papers() -> None:
    """Known metrics and systems are called as in the paper, in its order; others come after them, people last."""
    assert figures.name_metric("rouge_l", is_weighted=True) == "W-ROUGE-L"
    assert figures.name_metric("ours") == "ours"
    assert figures.list_metrics(["human", "zeta", "bleu_2", "bleu_1", "meteor"]) == [
        "meteor", "bleu_1", "bleu_2", "zeta", "human"
    ]  # fmt: skip
    assert figures.list_systems(["copy", "Att_TC", "ir_t"]) == ["ir_t", "Att_TC", "copy"]
    assert [figures.name_system(name) for name in ("ir_tc", "SEQ2SEQ", "copy")] == ["IR-TC", "Seq2seq", "copy"]


def test_each_commenter_has_its_curves() -> None:
    """A panel a commenter, in the paper's order, with a line for what it learns from and one for the validation."""
    found = words(whole("draw_history"))
    assert [name for name in found if name in {*SYSTEMS, "cnn relevance"}] == [
        "Seq2seq",
        "Att",
        "Att-TC",
        "cnn relevance",
    ]
    assert "on the validation split" in found
    assert dots(whole("draw_history"), "#2a6f97") == HISTORY.height + 1
