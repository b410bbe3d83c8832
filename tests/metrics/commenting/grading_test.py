"""Scorers against grades: by hand, by other implementations, and baselines where length is all there is."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.metrics.commenting import grading
from pipeline.metrics.commenting.grading import count_pairs, report, report_baselines

numbers = st.lists(st.integers(0, 6), min_size=2, max_size=40)


def value(frame: pl.DataFrame, metric: str) -> float:
    """One number of a report; NaN for null."""
    (number,) = frame.filter(pl.col("metric") == metric)["value"].to_list()
    return math.nan if number is None else number


def frame(articles: list[str | None], target: list[float], score: list[float]) -> pl.DataFrame:
    return pl.DataFrame({"article_id": articles, "target": target, "score": score}, strict=False)


def test_only_comments_of_one_length_are_paired_where_lengths_are_given() -> None:
    """Of 99, 105 and 200 characters the first two are of one length, 100 to 106 being less than 1.1."""
    lengths = np.array([99.0, 105, 200])
    right, total = count_pairs(np.zeros(3, int), np.array([1.0, 2, 3]), np.array([1.0, 0, 5]), lengths)
    assert (right.tolist(), total.tolist()) == ([0.0], [1])


@given(st.data())
def test_numbers_are_those_of_other_implementations(data: st.DataObject) -> None:
    """Spearman and Pearson as scipy has them, pairs as counted one by one; constants have no correlation."""
    target = data.draw(numbers)
    size = {"min_size": len(target), "max_size": len(target)}
    score = data.draw(st.lists(st.integers(0, 6), **size))
    articles = data.draw(st.lists(st.sampled_from(["a", "b", "c"]), **size))
    actual = report(frame(articles, target, score), draws=0)
    if len(set(target)) > 1 and len(set(score)) > 1:
        assert value(actual, "spearman") == pytest.approx(stats.spearmanr(target, score).statistic)
        assert value(actual, "pearson") == pytest.approx(stats.pearsonr(target, score).statistic)
    else:
        assert math.isnan(value(actual, "spearman"))
        assert math.isnan(value(actual, "pearson"))
    expected = [
        (np.sign((target[i] - target[j]) * (score[i] - score[j])) + 1) / 2
        for i in range(len(target))
        for j in range(i)
        if articles[i] == articles[j] and target[i] != target[j]
    ]
    assert value(actual, "pairwise_accuracy") == pytest.approx(np.mean(expected) if expected else math.nan, nan_ok=True)
    assert value(actual, "mae") == pytest.approx(np.mean(np.abs(np.subtract(target, score))))
    assert actual["low"].is_null().all()


@given(numbers, st.integers(0, 2**32 - 1))
def test_samples_are_measured_as_if_their_rows_were_there(target: list[int], seed: int) -> None:
    """The interval holds what scipy finds in resampled rows: with draws as many as needed, by the same seed."""
    score = np.random.default_rng(seed).normal(size=len(target))
    rows = frame([f"{i % 4}" for i in range(len(target))], target, score.tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grading, "SEED", seed)
        actual = report(rows, draws=1)
    actual = actual.filter(pl.col("metric") == "spearman")
    articles = min(4, len(target))
    times = np.random.default_rng(seed).multinomial(articles, np.full(articles, 1 / articles))
    repeated_rows = np.repeat(np.arange(len(target)), times[np.arange(len(target)) % 4])
    repeated_values = [np.array(target)[repeated_rows], score[repeated_rows]]
    if min(len(set(side.tolist())) for side in repeated_values) < 2:
        assert actual["low"][0] is None
    else:
        assert actual["low"][0] == pytest.approx(stats.spearmanr(*repeated_values).statistic)
        assert actual["low"][0] == actual["high"][0]


def _by_length_alone() -> pl.DataFrame:
    """40 articles of ten comments whose grade is the logarithm of their length, and chance."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(5, 400, 400)
    columns = {
        "text": ["ab " * (size // 3) + "a" * (size % 3) for size in sizes],
        "article_id": [f"{i // 10}" for i in range(400)],
        "target": np.log1p(sizes) + rng.normal(0, 0.01, 400),
        "split": ["test" if i // 10 % 4 == 0 else "train" for i in range(400)],
    }
    return pl.DataFrame(columns)


def test_baselines_know_length_and_nothing_else() -> None:
    """Where length is all, its logarithm errs least, a constant orders nothing, and every measure has a row each."""
    actual = report_baselines(_by_length_alone(), draws=20)
    names = ["mean", "length", "log_length", "surface", "words"]
    assert actual["baseline"].unique(maintain_order=True).to_list() == names
    measures = {"spearman", "pearson", "mae", "pairwise_accuracy", "pairwise_accuracy_near"}
    assert set(actual["metric"]) == measures
    of = {name: part for (name,), part in actual.partition_by("baseline", as_dict=True).items()}
    assert value(of["log_length"], "spearman") > 0.99
    assert value(of["log_length"], "mae") < 0.02 < value(of["length"], "mae")
    assert math.isnan(value(of["mean"], "spearman"))
    assert value(of["mean"], "pairwise_accuracy") == 0.5
    assert (actual["n"] > 0).all()
