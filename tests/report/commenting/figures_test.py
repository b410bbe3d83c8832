"""Figures of article commenting: SVG that says the numbers, plain beside weighted, same rows same bytes."""

import re
from collections.abc import Callable
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest

from pipeline.report.commenting import figures
from pipeline.report.commenting.figures import METRICS, POINTS, SYSTEMS, TOP
from tests.report.daily.page_test import HOSTILE
from tests.report.impscore.study_figures_test import sizes, words

NAMES = (
    "社会", "财经", "体育", "娱乐", "科技与互联网", "军事", "国际新闻", "汽车", "房产", "教育", "健康养生", "旅游",
    "历史", "food", "science and nature", "美食", None,
)  # fmt: skip
CATEGORIES = pl.DataFrame(
    [(name, 900 - 50 * i, (900 - 50 * i) / 8500) for i, name in enumerate(NAMES)],
    schema=["category", "n", "share"], orient="row",
)  # fmt: skip
GRADES = pl.DataFrame(
    {"item_id": [str(i) for i in range(40) for _ in range(2)],
     "grade": [float(1 + (i * 7 + k * (i % 3)) % 5) for i in range(40) for k in range(2)]}
)  # fmt: skip
PLAIN = {"meteor": 0.56, "rouge_l": 0.19, "cider": 0.34, "bleu_1": 0.21, "bleu_4": 0.1, "human": 0.78}
CORRELATIONS = pl.DataFrame(
    [(metric, weighted, kind, value + shift + gain, value + shift + gain - 0.02, value + shift + gain + 0.02,
      1e-7 if metric == "meteor" else 0.004, 9660, *((gain, gain - 0.01, gain + 0.01) if weighted else (None,) * 3))
     for metric, value in PLAIN.items() for kind, shift in (("spearman", 0.0), ("pearson", -0.05))
     for weighted, gain in ((False, 0.0), (True, -0.007 if metric == "bleu_1" else 0.03))
     if not (metric == "human" and weighted)],
    schema=["metric", "is_weighted", "coefficient", "value", "low", "high", "p", "n",
            "difference", "difference_low", "difference_high"],
    orient="row", infer_schema_length=None,
)  # fmt: skip
SENSITIVITY = pl.DataFrame(
    [(preset, metric, kind, value + 0.01 * i, ratio)
     for i, (preset, ratio) in enumerate({"s/5": 0.72, "(s−1)/4": 0.65, "s/max": 0.9}.items())
     for metric, value in PLAIN.items() if metric != "human" for kind in ("spearman", "pearson")],
    schema=["preset", "metric", "coefficient", "value", "ratio"], orient="row",
)  # fmt: skip
POINTS_OF = np.random.default_rng(3)
SCATTER = pl.DataFrame(
    [(metric, weighted, 0.1 * slope * grade + 0.05 * noise, grade)
     for metric, weighted, slope in (("bleu_1", False, 0.2), ("meteor", False, 0.8), ("meteor", True, 1.0),
                                     ("cider", False, 0.1))
     for grade, noise in zip(POINTS_OF.integers(1, 6, 60).astype(float), POINTS_OF.normal(size=60), strict=True)],
    schema=["metric", "is_weighted", "value", "grade"], orient="row",
)  # fmt: skip
ROWS: dict[tuple[str, bool], list[float | None]] = {
    ("meteor", False): [0.137, 0.138, 0.061, 0.084, 0.078], ("meteor", True): [0.13, 0.131, 0.058, 0.08, 0.074],
    ("rouge_l", False): [0.23, 0.229, 0.197, 0.232, 0.298], ("bleu_1", False): [0.373, None, 0.298, 0.373, 0.227],
    ("human", False): [2.8, 2.9, 1.4, 1.7, 2.2],
}  # fmt: skip
SYSTEM_ROWS = pl.DataFrame(
    [(metric, weighted, system, value, 1610 - (system == "att_tc"))
     for (metric, weighted), values in ROWS.items()
     for system, value in zip(("ir_t", "ir_tc", "seq2seq", "att", "att_tc"), values, strict=True)],
    schema=["metric", "is_weighted", "system", "value", "n"], orient="row", infer_schema_length=None,
)  # fmt: skip
HISTORY = pl.DataFrame(
    [(system, epoch, 6.0 / (1 + epoch) + 2, 5.0 / (1 + epoch) + 2.4 + 0.08 * epoch)
     for system in ("seq2seq", "att", "att_tc", "cnn relevance") for epoch in range(5)],
    schema=["system", "epoch", "train_loss", "validation_loss"], orient="row",
)  # fmt: skip
Draw = Callable[[pl.DataFrame], str]
FIGURES: list[tuple[Draw, pl.DataFrame]] = [
    (figures.categories, CATEGORIES), (figures.grades, GRADES), (figures.correlations, CORRELATIONS),
    (figures.sensitivity, SENSITIVITY), (figures.scatter, SCATTER), (figures.systems, SYSTEM_ROWS),
    (figures.history, HISTORY),
]  # fmt: skip
EVERY = [pytest.param(*figure, id=figure[0].__name__) for figure in FIGURES]


@cache
def whole(name: str) -> str:
    """A figure of all its rows, drawn once."""
    ((draw, rows),) = ((draw, rows) for draw, rows in FIGURES if draw.__name__ == name)
    return draw(rows)


def said(svg: str) -> str:
    """What a figure says, in one line."""
    return " ".join(" ".join(words(svg)).split())


@pytest.mark.parametrize(("draw", "rows"), EVERY)
def test_same_rows_same_bytes(draw: Draw, rows: pl.DataFrame) -> None:
    """Rows in any order give the same bytes."""
    assert draw(rows.sample(fraction=1, shuffle=True, seed=1)) == whole(draw.__name__)


@pytest.mark.parametrize("name", [figure[0].__name__ for figure in FIGURES])
def test_letters_can_be_read_in_print(name: str) -> None:
    """A figure is one element without pictures, no text is smaller than 8 points, and it fits a page."""
    svg = whole(name)
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own
    assert "<image" not in svg
    assert min(sizes(svg)) >= 8 - 1e-6
    assert float(re.findall(r'width="([\d.]+)pt"', svg)[0]) <= 7.2 * 72 + 0.1


@pytest.mark.parametrize(("draw", "rows"), EVERY)
def test_nothing_to_draw_is_an_error(draw: Draw, rows: pl.DataFrame) -> None:
    """Without rows there is no figure."""
    with pytest.raises(ValueError, match="at least one row"):
        draw(rows.clear())


@pytest.mark.parametrize(("draw", "rows"), EVERY)
def test_hostile_names_stay_text(draw: Draw, rows: pl.DataFrame) -> None:
    """Names from outside add no element to a figure."""
    names = [name for name in rows.columns if rows.schema[name] == pl.String and name != "coefficient"]
    hostile = rows.head(1).with_columns(pl.lit(HOSTILE[i % 3]).alias(name) for i, name in enumerate(names))
    plain = rows.head(1).with_columns(pl.lit("a").alias(name) for name in names)
    kinds = [{one.tag for one in ET.fromstring(draw(frame)).iter()} for frame in (hostile, plain)]  # noqa: S314
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("name", ["correlations", "sensitivity", "systems", "history"])
def test_what_is_null_is_left_out(name: str) -> None:
    """A figure of numbers that are not known says nan nowhere."""
    ((draw, rows),) = ((draw, rows) for draw, rows in FIGURES if draw.__name__ == name)
    null = [column for column in rows.columns if rows.schema[column] == pl.Float64]
    assert "nan" not in said(draw(rows.with_columns(pl.lit(None, pl.Float64).alias(column) for column in null)))


def test_the_most_frequent_categories_are_drawn() -> None:
    """Fifteen of them, the most frequent on top, each with its count and share; Chinese names are letters, no boxes."""
    svg = whole("categories")
    found = words(svg)
    drawn = [name for name in found if name in NAMES]
    assert drawn == list(NAMES[:TOP])
    assert {"900 (10.6 %)", "200 (2.4 %)"} <= set(found)
    assert f"the {TOP} most frequent of 17 categories, n = 8,500 articles" in said(svg)
    assert "most frequent" not in said(figures.categories(CATEGORIES.tail(2)))
    assert "not known" in said(figures.categories(CATEGORIES.tail(2)))


def test_grades_are_means_of_items() -> None:
    """Two raters who give 4 and 5 make one comment at 4.5; the mean is marked, the paper's where it is told."""
    two = pl.DataFrame({"item_id": ["a", "a", "b", "b"], "grade": [4, 5, 2, 2]})
    told = said(figures.grades(two, 3.6))
    assert "mean 3.25" in told
    assert "mean in the paper 3.6" in told
    assert "n = 2 comments" in told
    assert told.count("50.0 %") == 2
    assert "paper" not in said(figures.grades(two))
    with pytest.raises(ValueError, match="at least one grade"):
        figures.grades(two.with_columns(grade=pl.lit(None, pl.Float64)))


def test_many_grades_are_drawn_in_bins() -> None:
    """Means of a crowd, each its own number, make twenty bars without numbers on them."""
    crowd = pl.DataFrame({"item_id": range(500), "grade": np.linspace(0, 1, 500)})
    svg = figures.grades(crowd)
    assert "%" not in said(svg).replace("% of comments", "")
    assert len(re.findall(r"fill: #c9d6df", svg)) == 20


def dots(svg: str, colour: str) -> int:
    """How many markers or bars have a colour."""
    return len(re.findall(rf"<use [^>]*fill: {colour}", svg))


def test_plain_and_weighted_stand_beside_each_other() -> None:
    """Metrics stand in the order of Table 4, people last; each but people has two marks a panel."""
    svg = whole("correlations")
    known = [*METRICS.values(), "human grades"]
    assert [name for name in words(svg) if name in known] == [name for name in known if name in set(words(svg))]
    assert dots(svg, "#2a6f97") == 6 * 2 + 1  # and one in the legend
    assert dots(svg, "#d1682f") == 5 * 2 + 1


def test_the_papers_correlations_are_ticks() -> None:
    """There is a tick for each number of Table 4 and one in the legend; of a metric that it has not there is none."""
    tick = r"<use [^>]*stroke: #1f2933; stroke-width: 1.6"
    assert len(re.findall(tick, whole("correlations"))) == CORRELATIONS.height + 1
    assert "printed in the paper" in said(whole("correlations"))
    new = figures.correlations(CORRELATIONS.filter(pl.col("metric") == "meteor").with_columns(metric=pl.lit("ours")))
    assert not re.findall(tick, new)
    assert "printed in the paper" not in said(new)


def test_a_coefficient_alone() -> None:
    """Of one coefficient there is one panel."""
    alone = figures.correlations(CORRELATIONS.filter(pl.col("coefficient") == "pearson"))
    assert "Pearson" in said(alone)
    assert "Spearman" not in said(alone)


def test_presets_have_their_marks() -> None:
    """Each way to make weights has a mark a metric and panel and one in the legend, with its name."""
    svg = whole("sensitivity")
    assert {"s/5", "(s−1)/4", "s/max"} <= set(words(svg))
    assert dots(svg, "#2a6f97") == 5 * 2 + 1


def test_scatter_has_the_panels_of_figure_1() -> None:
    """BLEU-1, METEOR and W-METEOR by default, whatever else there is; r is numpy's, of grades without noise."""
    svg = whole("scatter")
    assert [name for name in words(svg) if name in {"BLEU-1", "METEOR", "W-METEOR", "CIDEr"}] == [
        "BLEU-1", "METEOR", "W-METEOR"
    ]  # fmt: skip
    part = SCATTER.filter((pl.col("metric") == "meteor") & ~pl.col("is_weighted"))
    r = np.corrcoef(part["grade"], part["value"])[0, 1]
    assert f"METEOR n = 60, r = {r:.2f}" in said(svg)
    assert "CIDEr" in said(figures.scatter(SCATTER.filter(pl.col("metric") == "cider")))


def test_noise_is_seeded_and_as_wide_as_told() -> None:
    """The same seed gives the same bytes, another one others; without noise points stand on their grades."""
    assert figures.scatter(SCATTER, seed=0) == whole("scatter")
    assert figures.scatter(SCATTER, seed=1) != whole("scatter")
    five = [
        {x for x, fill in re.findall(r'<use [^>]*x="([\d.]+)"[^>]*(fill-opacity: 0.3)', svg)}
        for svg in (figures.scatter(SCATTER, jitter=0), whole("scatter"))
    ]
    assert len(five[0]) == 3 * 5
    assert len(five[1]) > 150


def test_scatter_is_bounded() -> None:
    """Of many comments a sample is drawn, and the figure says so; n is of all."""
    random = np.random.default_rng(0)
    many = pl.DataFrame(
        {"metric": "meteor", "is_weighted": False, "value": random.random(5000), "grade": random.random(5000)}
    )
    svg = figures.scatter(many)
    assert "n = 5,000" in said(svg)
    assert f"{POINTS:,} points drawn at random" in said(svg)
    assert len(re.findall(r"<use [^>]*fill-opacity: 0.3", svg)) == POINTS
    assert "at random" not in said(whole("scatter"))


def test_one_grade_has_no_line() -> None:
    """Where all grades are the same there are points, and neither line nor r."""
    alike = SCATTER.with_columns(grade=pl.lit(3.0))
    assert "r =" not in said(figures.scatter(alike))
    flat = SCATTER.with_columns(value=pl.lit(0.5))
    assert "r =" not in said(figures.scatter(flat))


def test_systems_are_ranked_and_held_against_people() -> None:
    """Places are of the highest first, ties alike; τ of METEOR with people is 0.8.

    One pair of ten, Att and Att-TC, turns: (9 - 1) / 10. Of BLEU-1 four systems are left, of which IR-T and Att
    tie: (3 - 2) / 6.
    """
    assert figures.places(np.array([0.3, np.nan, 0.1, 0.3])).tolist()[::2] == [1, 3]
    found = words(whole("systems"))
    assert found.count("+0.80") == 2
    assert "+0.17" in found


def test_table_7_stands_beside_systems() -> None:
    """The paper's systems have its numbers beside them, others have none; without any the panel is left out."""
    found = words(whole("systems"))
    assert [name for name in found if name in SYSTEMS] == [*SYSTEMS, *SYSTEMS]
    assert {"printed in the paper", "2.859"} <= set(found)
    ours = SYSTEM_ROWS.with_columns(pl.col("system").replace({"ir_t": "copy"}))
    assert [name for name in words(figures.systems(ours)) if name in SYSTEMS] == [*SYSTEMS[1:], *SYSTEMS[1:]]
    alone = words(figures.systems(SYSTEM_ROWS.with_columns(pl.col("system") + "_2")))
    assert "printed in the paper" not in alone


def test_systems_without_people() -> None:
    """Without human grades there is no τ of any metric."""
    found = said(figures.systems(SYSTEM_ROWS.filter(pl.col("metric") != "human")))
    assert "+0" not in found


def test_rankings_need_two_systems() -> None:
    """Kendall's tau is of what both rank: 1 in the same order, -1 in the other, none of a single system."""
    people = np.array([1.0, 2.0, np.nan])
    assert figures.ranked_as(np.array([5.0, 6.0, 1.0]), people) == 1
    assert figures.ranked_as(np.array([6.0, 5.0, 9.0]), people) == -1
    assert figures.ranked_as(np.array([6.0, np.nan, 9.0]), people) is None


def test_names_are_the_papers() -> None:
    """Known metrics and systems are called as in the paper, in its order; others come after them, people last."""
    assert figures.metric_name("rouge_l", is_weighted=True) == "W-ROUGE-L"
    assert figures.metric_name("ours") == "ours"
    assert figures.metrics_of(["human", "zeta", "bleu_2", "bleu_1", "meteor"]) == [
        "meteor", "bleu_1", "bleu_2", "zeta", "human"
    ]  # fmt: skip
    assert figures.systems_of(["copy", "Att_TC", "ir_t"]) == ["ir_t", "Att_TC", "copy"]
    assert [figures.system_name(name) for name in ("ir_tc", "SEQ2SEQ", "copy")] == ["IR-TC", "Seq2seq", "copy"]


def test_each_commenter_has_its_curves() -> None:
    """A panel a commenter, in the paper's order, with a line for what it learns from and one for the validation."""
    found = words(whole("history"))
    assert [name for name in found if name in {*SYSTEMS, "cnn relevance"}] == [
        "Seq2seq",
        "Att",
        "Att-TC",
        "cnn relevance",
    ]
    assert "on the validation split" in found
    assert dots(whole("history"), "#2a6f97") == HISTORY.height + 1
