"""Corpus scores, intervals and paired tests of overlap metrics, and metrics by name."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.metrics.overlap import METRICS, build_metrics
from pipeline.metrics.overlap.bleu import bleu, delta_bleu
from pipeline.metrics.overlap.scoring import compare, measure, normalise_grades, score_segments
from tests.support.oracles.overlap_cases import Case, draw_case


def make_case(count: int, right: int) -> Case:
    """Make candidates of one word, of which so many are their reference."""
    return Case([["雪"] if i < right else ["雨"] for i in range(count)], [[["雪"]]] * count, [[1.0]] * count)


def test_all_metrics_by_name() -> None:
    """Every metric scores by its name, in the order asked for, with its signature; generators do as lists do."""
    case = draw_case(3, 60, kinds=3)
    metrics = build_metrics(list(METRICS), case.references)
    actual = measure(metrics, *case, draws=20)
    names = ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "METEOR", "ROUGE-L", "CIDEr", "CIDEr-D", "DeltaBLEU-4"]
    assert actual["metric"].to_list() == names
    assert (actual["score"] > 0).all()
    assert actual.select((pl.col("low") <= pl.col("score")) & (pl.col("score") <= pl.col("high")))["low"].all()
    single = score_segments(metrics, *case)
    assert single.height == 60
    np.testing.assert_allclose(single.mean().row(0), actual["segment_mean"])
    case, other = draw_case(5, 30), draw_case(6, 30).candidates
    streams: Any = [iter(rows) for rows in case]
    assert measure([bleu(2)], *streams, size=4).equals(measure([bleu(2)], *case))
    streams = [iter(rows) for rows in (case.candidates, other, *case[1:])]
    actual = compare([bleu(2)], *streams, size=4)
    assert actual.equals(compare([bleu(2)], case.candidates, other, *case[1:]))


def test_paired_by_hand() -> None:
    """One system is right in 30 of 200 where another is not, and wrong in 10 where it is: 0.1, and p is small."""
    base = make_case(200, 100)
    first = [["雨"]] * 10 + [["雪"]] * 120 + [["雨"]] * 70
    (row,) = compare([bleu(1)], first, base.candidates, *base[1:]).to_dicts()
    assert (row["one"], row["other"], row["segments"]) == (0.6, 0.5, 200)
    assert row["difference"] == pytest.approx(0.1)
    # sd of a difference that is +1 in 30, -1 in 10 of 200: √((0.2 - 0.01) / 200)
    assert (row["low"], row["high"]) == pytest.approx((0.1 - 0.0604, 0.1 + 0.0604), abs=0.009)
    assert row["p"] < 0.01
    (back,) = compare([bleu(1)], base.candidates, first, *base[1:]).to_dicts()
    assert (back["low"], back["high"]) == pytest.approx((-row["high"], -row["low"]))
    (same,) = compare([bleu(1)], first, first, *base[1:]).to_dicts()
    assert (same["difference"], same["low"], same["high"], same["p"]) == (0, 0, 0, 1)
    # no sample is on the other side of 0, and (k + 1) / (draws + 1) is above 0 all the same
    right = [["雪"]] * 200
    (all_right,) = compare([bleu(1)], right, base.candidates, *base[1:], draws=99).to_dicts()
    assert all_right["p"] == pytest.approx(2 * (0 + 1) / (99 + 1))
    grouped = compare([bleu(1)], first, base.candidates, *base[1:], groups=[i // 20 for i in range(200)])
    assert grouped["p"][0] > row["p"]  # what is gained is in two articles of ten


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, "draws should be at least 1"),
        ({"confidence": 1}, "confidence should be between 0 and 1"),
        ({"groups": ["x"]}, "a group for each of 2 candidates, got 1"),
        ({"groups": ["x", None]}, "a group for each of 2 candidates, got 1"),
    ],
)
def test_what_cannot_be_measured(options: dict[str, object], message: str) -> None:
    """Options out of range, groups that are not as many, and metrics that share a name are errors."""
    arguments = {"metrics": [bleu(1)], "candidates": [["雪"]] * 2, "references": [[["雪"]]] * 2} | options
    with pytest.raises(ValueError, match=message):
        measure(**arguments)  # type: ignore[arg-type]


def test_names_and_options() -> None:
    """Options go to their metric; unknown names, idle options and weights below 0 but for ΔBLEU are errors."""
    options = {"bleu_4": {"smoothing": "exp"}, "cider_d": {"sigma": 5}}
    actual = build_metrics(["bleu_4", "cider_d"], [[["雪"]]], options=options)
    assert "smoothing:exp" in actual[0].signature
    assert "sigma:5" in actual[1].signature
    with pytest.raises(ValueError, match="no metric 'bleu'; there are bleu_1, "):
        build_metrics(["bleu"])
    with pytest.raises(ValueError, match="options of 'meteor', which is not among bleu_1"):
        build_metrics(["bleu_1"], options={"meteor": {}})
    with pytest.raises(ValueError, match="CIDEr needs references for its document frequencies"):
        build_metrics(["cider"])
    candidates = [["雪"]]
    assert measure([delta_bleu(1)], candidates, [[["雪"], ["雨"]]], [[1, -1]])["score"].to_list() == [1]
    with pytest.raises(BadInput, match="row 1, weights: expected numbers between 0 and 1, found -1"):
        measure([delta_bleu(1), bleu(1)], candidates, [[["雪"], ["雨"]]], [[1, -1]])


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("s/5", [0.2, 0.8, 0.6, 0.5]), ("(s-1)/4", [0, 0.75, 0.5, 0.375]), ("s/max", [0.25, 1, 1, 2.5 / 3]),
        ("none", [1, 1, 1, 1]),
    ],
)  # fmt: skip
def test_presets_by_hand(preset: str, expected: list[float]) -> None:
    """Grades 1 and 4 of one article, 3 and 2.5 of another (AAC-18)."""
    actual = normalise_grades([1, 4, 3, 2.5], preset, ["x", "x", "y", "y"])
    assert actual.tolist() == pytest.approx(expected)
    assert normalise_grades(pl.Series([1.0, 4.0, 3.0, 2.5]), preset, np.array([7, 7, 2, 2])).tolist() == actual.tolist()


def test_defaults() -> None:
    """A fifth of the grade; without articles all grades are of one."""
    assert normalise_grades([5, 1]).tolist() == [1, 0.2]
    assert normalise_grades([2, 4], "s/max").tolist() == [0.5, 1]
    assert normalise_grades([], "s/max").tolist() == []


@pytest.mark.parametrize("grade", [0.9, 5.1, math.nan, None, -math.inf])
def test_a_grade_off_the_scale_names_its_row(grade: float | None) -> None:
    """Grades are 1 to 5; a missing one is none."""
    with pytest.raises(BadInput, match="row 2, grade: expected 1 to 5, found"):
        normalise_grades([3, grade])  # type: ignore[list-item]
