"""What a measure is worth: signs, subsets of figure 3, the ensemble and distributions by hand (NDD-10 to 13, 38)."""

import os
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy import stats

from pipeline.metrics.commenting.correlation import correlate
from pipeline.metrics.ndd import similarity
from pipeline.metrics.ndd.distance import distances
from pipeline.metrics.ndd.similarity import CASES, correlate_by_overlap, correlate_measures, measure_separation

MEASURES = {"ndd": -1, "cosine": 1}
MASKED_LM = os.environ.get("UNDERTONE_TEST_MASKED_LM", "")  # a folder or NAME@COMMIT


def graded(count: int = 60, seed: int = 1) -> pl.DataFrame:
    """Pairs whose distance falls and whose cosine rises with similarity, both with noise, and an overlap."""
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 6, count)
    return pl.DataFrame({
        "sentence_id": [f"s{i // 2}" for i in range(count)], "similarity": grades.astype(float),
        "ndd": 1 - grades / 5 + rng.normal(size=count), "cosine": grades / 5 + rng.normal(size=count),
        "overlap": rng.integers(0, 11, count) / 10, "is_positive": [i % 2 == 0 for i in range(count)],
    })  # fmt: skip


def test_a_distance_agrees_by_its_negative() -> None:
    """Both coefficients are scipy's of direction times measure, with the intervals of `correlation`."""
    pairs = graded()
    actual = correlate_measures(pairs, MEASURES, draws=50)
    assert actual["measure"].to_list() == ["ndd", "cosine"]
    for row, (name, direction) in zip(actual.iter_rows(named=True), MEASURES.items(), strict=True):
        values = direction * pairs[name].to_numpy()
        assert row["pearson"] == pytest.approx(stats.pearsonr(values, pairs["similarity"]).statistic)
        assert row["spearman"] == pytest.approx(stats.spearmanr(values, pairs["similarity"]).statistic)
        assert row == {"measure": name, **correlate(values, pairs["similarity"], draws=50)._asdict(), "left_out": 0}
    assert (actual["pearson"] > 0).all()


def test_labels_and_groups() -> None:
    """True counts as 1, so that positive pairs should be nearer; edits of a sentence are drawn together."""
    pairs = pl.DataFrame({"sentence_id": [*"aabbcc"], "is_positive": [True, False] * 3, "d": [1.0, 2, 3, 4, 5, 7]})
    alone = correlate_measures(pairs, {"d": -1}, "is_positive", draws=200).row(0, named=True)
    together = correlate_measures(pairs, {"d": -1}, "is_positive", group="sentence_id", draws=200).row(0, named=True)
    assert alone["pearson"] == together["pearson"] == pytest.approx(stats.pearsonr([1, 2, 3, 4, 5, 7], [0, 1] * 3)[0])
    # every sentence's negative pair is farther, so that whole sentences never give a coefficient below 0
    assert alone["pearson_low"] < 0 < together["pearson_low"]


def test_all_measures_see_the_same_pairs() -> None:
    """A pair that lacks one measure, as null, NaN or infinite, is left out for all, and counted."""
    pairs = graded().with_columns(ndd=pl.when(pl.int_range(pl.len()) >= 4).then("ndd"))
    pairs[9, "cosine"], pairs[10, "cosine"] = float("nan"), float("inf")
    actual = correlate_measures(pairs, MEASURES, draws=10)
    assert actual.select("n", "left_out").rows() == [(54, 6)] * 2
    complete = pairs.filter(pl.col("ndd").is_not_null(), pl.col("cosine").is_finite())
    assert actual.equals(correlate_measures(complete, MEASURES, draws=10).with_columns(left_out=pl.lit(6, pl.Int64)))


def test_by_overlap() -> None:
    """Each subset is `correlations` of its pairs; 0.8 is not above 0.8; the ends are those of figure 3."""
    pairs = graded(80)
    actual = correlate_by_overlap(pairs, MEASURES, draws=10)
    assert actual["subset"].unique(maintain_order=True).to_list() == [
        "=0", ">0", ">0.1", ">0.2", ">0.3", ">0.4", ">0.5", ">0.6", ">0.7", ">0.8", ">0.9", "=1",
    ]  # fmt: skip
    for subset, shares in (("=0", [0.0]), (">0.8", [0.9, 1.0]), ("=1", [1.0])):
        part = correlate_measures(pairs.filter(pl.col("overlap").is_in(shares)), MEASURES, draws=10)
        assert actual.filter(subset=subset).drop("subset").equals(part)
    counts = actual.filter(measure="ndd")["n"].to_list()
    assert counts[0] + counts[1] == 80
    assert all(a >= b for a, b in pairwise(counts[1:]))


def test_ensemble() -> None:
    """The distance less 0.0025 cosines (NDD-12); a share of 400 orders pairs as the cosine less 0.0025 distances."""
    pairs = graded()
    values = similarity.ensemble(pl.Series([0.5, 0.2]), pl.Series([1.0, -1.0]))
    assert values.to_list() == pytest.approx([0.4975, 0.2025])
    reverse = similarity.ensemble(pairs["ndd"], pairs["cosine"], share=1 / 0.0025)
    assert reverse.rank().to_list() == (0.0025 * pairs["ndd"] - pairs["cosine"]).rank().to_list()


def test_distributions_by_hand() -> None:
    """Quantiles of each label by interpolation: of 0 and 10 they are 0, .5, 1, …; what has no value is not counted."""
    pairs = pl.DataFrame({"is_positive": [True, True, False, True], "ndd": [10.0, 0.0, 3.0, None]})
    actual = similarity.list_quantiles(pairs, "ndd")
    assert actual.filter("is_positive")["value"].to_list() == pytest.approx([i / 2 for i in range(21)])
    assert actual.filter("is_positive")["quantile"].to_list() == [*range(0, 101, 5)]
    assert actual.filter(is_positive=False).select("value", "n").unique().rows() == [(3.0, 1)]
    assert actual.filter("is_positive")["n"].unique().to_list() == [2]


def test_separation_by_hand() -> None:
    """Farther once, as far once, nearer once: 1/2; a sentence with one pair or one value is left out."""
    pairs = pl.DataFrame({
        "sentence_id": [*"aabbccdee"], "is_positive": [True, False] * 3 + [True] + [False, True],
        "ndd": [1.0, 2.0, 1.0, 1.0, 3.0, 1.0, 0.0, 1.0, None],
    }).with_columns(cosine=-pl.col("ndd"))  # fmt: skip
    actual = measure_separation(pairs, MEASURES)
    assert actual.select("measure", "share", "n", "left_out").rows() == [("ndd", 0.5, 3, 2), ("cosine", 0.5, 3, 2)]
    # Wilson by hand: 1/2 -+ 1.96 sqrt(1/12 + 1.96^2 / 36) / (1 + 1.96^2 / 3)
    half = 1.96 * np.sqrt(1 / 12 + 1.96**2 / 36) / (1 + 1.96**2 / 3)
    assert actual.select("low", "high").row(0) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-4)
    clear = pairs.with_columns(ndd=1 - pl.col("is_positive").cast(pl.Float64))
    assert measure_separation(clear, {"ndd": -1})["share"].item() == 1
    assert measure_separation(clear, {"ndd": 1})["share"].item() == 0
    assert measure_separation(pairs.filter("is_positive"), {"ndd": -1}).rows() == [("ndd", None, None, None, 0, 5)]


@pytest.mark.skipif(not MASKED_LM, reason="UNDERTONE_TEST_MASKED_LM names no masked language model for English")
def test_a_real_model_has_the_orders_of_table_10() -> None:
    """A near word, another aspect, an opposite; a tense, a person, a broken agreement: each farther away (NDD-39)."""
    from pipeline.models.ndd.masked_lm import load

    model = load(MASKED_LM)
    for words, edits in CASES:
        values = distances(model, [words] * 3, edits, divergence="kl", weights="distance")
        assert values.tolist() == sorted(values), words


def test_cases() -> None:
    """Three sentences of ours with three edits each, as long as the sentence and different from it and each other."""
    for (words, edits), counts in zip(CASES, ([1, 1, 1], [1, 1, 1], [1, 2, 1]), strict=True):
        assert len({tuple(sentence) for sentence in (words, *edits)}) == 4
        assert [sum(map(str.__ne__, words, edit)) for edit in edits] == counts
    assert similarity.ENSEMBLE == 0.0025
