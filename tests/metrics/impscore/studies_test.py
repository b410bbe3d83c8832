"""Studies of the score: accuracies of figure 3, silhouettes and layouts, diversity, detection by bin."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cdist

from pipeline.errors import BadInput
from pipeline.metrics.impscore.studies import (
    LABELS,
    QUANTILES,
    _decode_pairs,
    compute_quantiles,
    label_bins,
    lay_out,
    measure_bins,
    sample_pairs,
    silhouettes,
    tabulate_figure_3,
)

GROUPS = ["weather"] * 4 + ["rent"] * 4 + ["dog"] * 4


def clumps(spread: float, seed: int = 0) -> np.ndarray:
    """Three groups of four points around far corners."""
    noise = np.random.default_rng(seed).normal(scale=spread, size=(12, 8))
    return np.repeat(10 * np.eye(3, 8), 4, axis=0) + noise


def by_hand(points: np.ndarray, groups: list[str]) -> float:
    """Mean of (b - a) / max(a, b): a to the others of the group, b to the nearest other group."""
    away = cdist(points, points)
    label = np.array(groups)
    scores = []
    for i, group in enumerate(groups):
        is_neighbour = (label == group) & (np.arange(len(groups)) != i)
        a = away[i, is_neighbour].mean()
        b = min(away[i, label == other].mean() for other in set(groups) - {group})
        scores.append((b - a) / max(a, b))
    return float(np.mean(scores))


def test_silhouettes_by_hand() -> None:
    """Both numbers are the mean silhouette coefficient as it is defined."""
    pragmatic, semantic = clumps(1), clumps(6, seed=1)
    actual = silhouettes(pragmatic, semantic, GROUPS)
    assert actual == pytest.approx([by_hand(space, GROUPS) for space in (pragmatic, semantic)], abs=1e-6)


@pytest.mark.parametrize("groups", [["a"] * 12, [str(i) for i in range(12)], []])
def test_groups_that_have_no_silhouette(groups: list[str]) -> None:
    """One group, or a group a sentence, has no silhouette: an error that says what is needed."""
    with pytest.raises(BadInput, match="at least two groups"):
        silhouettes(clumps(1)[: len(groups)], clumps(1)[: len(groups)], groups)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
def test_layouts_of_few_points(count: int) -> None:
    """Any number of points is laid out in the plane, the perplexity fitted to it; also equal and single features."""
    actual = lay_out(clumps(1)[:count])
    assert actual.shape == lay_out(np.arange(float(count))[:, None]).shape == (count, 2)
    assert np.isfinite([actual, lay_out(np.ones((count, 5)))]).all()


def test_layout_keeps_groups_and_is_deterministic() -> None:
    """The same features and seed give the same points; neighbours stay neighbours."""
    points = np.repeat(50 * np.eye(4, 16), 12, axis=0) + np.random.default_rng(0).normal(size=(48, 16))
    actual = lay_out(points, seed=7)
    assert np.array_equal(actual, lay_out(points, seed=7))
    groups = [str(i // 12) for i in range(48)]
    assert silhouettes(actual, points, groups)[0] > 0.5


TRIPLES = pl.DataFrame(
    {"i1": [1.0, 1.5, 0.5, 0.5], "i2": [0.5, 1.5, 0.7, 0.1], "i3": [0.0, 1.0, 0.5, 0.3],
     "near": [0.2, 0.9, 0.5, 0.4], "far": [1.2, 0.9, 0.4, 0.8], "split": ["test", "test", "train", "train"]}
)  # fmt: skip


def test_figure_3_by_hand() -> None:
    """Five of eight pairs are right, two of four triples (IMP-25 to IMP-27); quantiles are interpolated (IMP-28)."""
    actual = tabulate_figure_3(TRIPLES)
    assert dict(actual.select("metric", "value").iter_rows()) == pytest.approx(
        {
            "implicitness_accuracy": 5 / 8,  # s1 beats s2 in rows 0 and 3, s3 in rows 0, 1 and 3; ties are wrong
            "pragmatics_accuracy": 2 / 4,
            "implicitness_of_implicit": 3.5 / 4,
            "implicitness_of_explicit": (2.8 + 1.8) / 8,
            "pragmatic_distance_positive": 2.0 / 4,
            "pragmatic_distance_negative": 3.3 / 4,
        }
    )
    assert actual["pair_count"].to_list() == [4] * 6
    assert compute_quantiles(pl.Series([10.0, *range(10)])) == pytest.approx([10 * q for q in QUANTILES])
    assert compute_quantiles(pl.Series([0.0, 1.0]), (0.25,)) == [0.25]
    assert compute_quantiles(pl.Series([0.7]), (0, 0.5, 1)) == [0.7] * 3


counts = st.integers(0, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n * (n - 1) // 2)))


@given(counts, st.integers(0, 2**32))
def test_distinct_unordered_pairs_of_distinct_rows(counts: tuple[int, int], seed: int) -> None:
    """Pairs are of two rows in range, the lesser first, and none comes twice; the same seed draws them again."""
    texts, pairs = counts
    actual = sample_pairs(texts, pairs, seed)
    assert actual.shape == (pairs, 2)
    assert actual.dtype == np.int64
    assert (actual[:, 0] < actual[:, 1]).all()
    assert ((actual >= 0) & (actual < max(texts, 1))).all()
    assert len({tuple(pair) for pair in actual.tolist()}) == pairs
    assert np.array_equal(actual, sample_pairs(texts, pairs, seed))


@given(st.integers(2, 40))
def test_all_pairs_can_be_had(texts: int) -> None:
    """Asked for as many as there are, the sample is every pair."""
    actual = sample_pairs(texts, texts * (texts - 1) // 2)
    assert sorted(map(tuple, actual.tolist())) == [(i, j) for i in range(texts) for j in range(i + 1, texts)]


@pytest.mark.parametrize("upper", [1, 2, 3, 94_906_267, 10**9 - 1, 2**31 - 1])
def test_first_and_last_pair_of_a_row(upper: int) -> None:
    """Where a row of pairs begins and ends the number is still told right, roots of great numbers being rounded."""
    first = upper * (upper - 1) // 2
    actual = _decode_pairs(np.array([first, first + upper - 1, first + upper]))
    assert actual.tolist() == [[0, upper], [upper - 1, upper], [0, upper + 1]]


@pytest.mark.parametrize(("texts", "pairs"), [(63, 2000), (1, 1), (0, 1), (2, 2), (5, -1)])
def test_too_few_texts(texts: int, pairs: int) -> None:
    """63 texts have 1,953 pairs: fewer than asked for is an error that says so; 64 texts are enough."""
    with pytest.raises(BadInput, match=f"{texts * (texts - 1) // 2} distinct pairs"):
        sample_pairs(texts, pairs)
    assert len(sample_pairs(64)) == 2000


def rows(values: list[float], answers: list[bool | None], clusters: list[int] | None = None) -> pl.DataFrame:
    """What a detector said of texts, each a cluster of its own unless said."""
    return pl.DataFrame(
        {"implicitness": values, "is_detected": answers, "cluster": clusters or list(range(len(values)))},
        schema={"implicitness": pl.Float64, "is_detected": pl.Boolean, "cluster": pl.Int64},
    )


@pytest.mark.parametrize(
    ("value", "label"),
    [(0, "0.00-0.25"), (0.2499999, "0.00-0.25"), (0.25, "0.25-0.50"), (1.0, "1.00-1.25"), (1.7499999, "1.50-1.75"),
     (1.75, "1.75-2.00"), (1.99, "1.75-2.00"), (2.0, "1.75-2.00"), (2.0000002, "1.75-2.00"), (-1e-7, "0.00-0.25")],
)  # fmt: skip
def test_bin_edges(value: float, label: str) -> None:
    """A bin holds its lower edge and not its upper one, the last holds 2; a rounding outside counts as the edge."""
    assert label_bins([value]).to_list() == [label]


@pytest.mark.parametrize("value", [2.1, -0.01, math.nan, math.inf, None])
def test_values_that_are_no_implicitness(value: float | None) -> None:
    """A value outside [0, 2] is refused rather than put into the nearest bin."""
    with pytest.raises(BadInput, match="between 0 and 2"):
        label_bins(pl.Series([1.0, value]))


def test_all_bins_are_there_and_other_answers_counted() -> None:
    """Other answers count as not detected and are counted; empty bins stay, without a number."""
    actual = measure_bins(rows([0.1, 0.2, 0.05, 0.0, 2.0], [True, True, None, False, None]))
    assert actual["subset"].to_list() == list(LABELS)
    assert actual["accuracy"].to_list() == [0.5, *[None] * 6, 0.0]
    assert actual["row_count"].to_list() == [4, 0, 0, 0, 0, 0, 0, 1]
    assert actual["other_count"].to_list() == [1, 0, 0, 0, 0, 0, 0, 1]
    assert actual["effective_count"].to_list() == [4, 0, 0, 0, 0, 0, 0, 1]
    assert actual["low"].is_null().to_list() == actual["high"].is_null().to_list() == [False, *[True] * 6, False]
    nothing = measure_bins(rows([], []).with_columns(is_detected=None))
    assert nothing.select("row_count", "accuracy").rows() == [(0, None)] * 8


def test_near_duplicates_count_once_in_the_interval() -> None:
    """Ten variants of two templates have the accuracy of ten and the interval of two (IMP-43)."""
    answers = [True] * 7 + [False] * 3
    apart = measure_bins(rows([1.8] * 10, answers)).row(-1, named=True)
    alike = measure_bins(rows([1.8] * 10, answers, [0] * 7 + [7] * 3)).row(-1, named=True)
    assert alike["accuracy"] == apart["accuracy"] == 0.7
    assert (alike["row_count"], alike["effective_count"]) == (10, 2)
    expected = stats.binomtest(7, 10).proportion_ci(method="wilson")
    assert (apart["low"], apart["high"]) == pytest.approx((expected.low, expected.high), abs=1e-6)
    # by hand: (0.7 + z²/4) / (1 + z²/2) -+ z / (1 + z²/2) * sqrt(0.105 + z²/16) with z = 1.959964
    assert (alike["low"], alike["high"]) == pytest.approx((0.174270, 0.962682), abs=1e-6)
