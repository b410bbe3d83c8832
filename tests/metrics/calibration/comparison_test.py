"""Comparisons of simulated measures: maps, curves, baselines, degenerate measures."""

import numpy as np
import polars as pl
import pytest
from scipy import optimize

from pipeline.metrics.calibration import comparison
from pipeline.metrics.calibration.comparison import compare

SIZE = 200
RNG = np.random.default_rng(11)
A = RNG.random(SIZE)
WORDS = ["rain", "soup", "door", "late", "hat", "coat"]
TEXTS = [" ".join(RNG.choice(WORDS, RNG.integers(2, 9))) for _ in range(SIZE)]
JUDGED = np.clip(np.round(4 * A**2 + RNG.normal(size=SIZE) / 2), 0, 4)


def frame(a: np.ndarray, b: np.ndarray, texts: list[str] = TEXTS, per_thread: int = 2) -> pl.DataFrame:
    """Texts with two values, some in a thread, half of them of each language."""
    threads = [str(number // per_thread) for number in range(SIZE)]
    langs = ["en", "zh"] * (SIZE // 2)
    return pl.DataFrame({"a": a, "b": b, "text": texts, "lang": langs, "thread": threads}).with_columns(source=None)


def test_the_map_is_pool_adjacent_violators() -> None:
    """As scipy's isotonic regression has it; between knots it is linear, outside it is level."""
    order = np.argsort(A)
    knots = comparison.fit_map(A, JUDGED)
    expected = optimize.isotonic_regression(JUDGED[order]).x
    assert knots.apply(A[order]) == pytest.approx(expected)
    assert knots.apply(np.array([-1.0, 9.0])) == pytest.approx([expected[0], expected[-1]])
    middle = comparison.Map(np.array([0.0, 1]), np.array([0.0, 2])).apply(np.array([0.5]))
    assert middle == pytest.approx([1])


def test_predictions_are_from_other_threads() -> None:
    """No thread is both learned from and predicted; a constant predictor knows only the other folds' mean."""
    units = np.arange(SIZE) // 2
    seen: list[np.ndarray] = []

    def remember(is_seen: np.ndarray) -> np.ndarray:
        seen.append(is_seen)
        return np.full(SIZE, len(seen))

    folds = comparison.cross_predict(units, remember)
    assert sorted(set(folds)) == [1, 2, 3, 4, 5]
    assert all(not set(units[is_seen]) & set(units[folds == n]) for n, is_seen in enumerate(seen, 1))
    constant = comparison.cross_predict(units, lambda is_seen: np.full(len(JUDGED), JUDGED[is_seen].mean()))
    assert constant[folds == 1][0] == pytest.approx(JUDGED[folds != 1].mean())


def test_the_curve_has_means_of_equal_bins() -> None:
    """Ten bins of 20 texts; the mean of a bin is inside its interval, and equal values are one bin."""
    curve = comparison.draw_curve(A, JUDGED, np.arange(SIZE) // 2, draws=200)
    order = np.argsort(A)
    assert curve["n"].to_list() == [20] * 10
    assert curve["mean_target"].to_list() == pytest.approx(JUDGED[order].reshape(10, 20).mean(axis=1))
    assert curve.select(pl.col("mean_target").is_between("low", "high").all()).item()
    assert comparison.draw_curve(np.ones(SIZE), JUDGED, np.arange(SIZE), draws=20)["n"].to_list() == [SIZE]


def draw_judged(relation: str, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, judgements from 0 to 4 and threads of four texts with something in common."""
    threads = np.arange(size) // 4
    meaning = 0.9 * rng.normal(size=size) + rng.normal(size=size)[threads] / 2
    noise = rng.normal(size=size) * (0.2 + 0.6 * (meaning > 0) if relation == "spread" else 0.5)
    judged = np.clip(np.round(1.5 + meaning + noise), 0, 4)
    judged = np.where(rng.random(size) < 0.15, judged, 0) if relation == "rare" else judged
    steepness = {"good": 2, "weak": 0.5, "none": 0, "spread": 1, "rare": 1}[relation]
    return 2 / (1 + np.exp(-steepness * meaning - rng.normal(size=size) / 2)), judged, threads


@pytest.mark.parametrize("relation", ["good", "weak", "none", "spread", "rare"])
@pytest.mark.parametrize("size", [40, 300])
def test_intervals_cover_new_texts(relation: str, size: int) -> None:
    """Of 1,000 new texts after each of 40 calibrations intervals of 95 % cover 90 to 99 %, within the scale."""
    rng = np.random.default_rng(5)
    shares, widths = [], []
    for _ in range(40):
        fit = comparison.fit_interval(*draw_judged(relation, size, rng))
        scores, judged, _ = draw_judged(relation, 1000, rng)
        mapped, low, high = fit.predict(scores)
        assert ((low >= fit.least) & (low <= mapped) & (mapped <= high) & (high <= fit.most)).all()
        shares.append(np.mean((low - 1e-9 <= judged) & (judged <= high + 1e-9)))
        widths.append(np.mean(high - low))
    assert 0.9 <= np.mean(shares) <= 0.99
    assert np.mean(widths) < 3.8


def test_a_related_measure_has_no_fault() -> None:
    """Its error is below the constant's, its correlation above the surface's; subsets are languages and lengths."""
    result = compare(frame(A, JUDGED))
    error = dict(result.measures.select("by", "error").iter_rows())
    assert list(error) == ["a", "constant", "length", "punctuation", "words"]
    assert error["a"] < 0.7 * min(value for name, value in error.items() if name != "a")
    rho = dict(result.measures.select("by", "spearman").iter_rows())
    assert rho["a"] > 0.7
    assert rho["constant"] is rho["punctuation"] is None  # no text has a mark
    assert error["punctuation"] == error["constant"]
    subsets = result.subsets["subset"].to_list()
    assert subsets[:3] == ["all", "lang en", "lang zh"]
    assert [name.split()[0] for name in subsets[3:]] == ["length"] * 3
    assert list(result.maps) == ["all", "lang en", "lang zh"]
    assert result.faults == []


@pytest.mark.parametrize(
    ("judge", "fault"),
    [
        (RNG.integers(0, 5, SIZE), "judge looks random: neither the other measure nor length, punctuation or words"),
        (np.full(SIZE, 2), "judge is constant: 2 for 100% of 200 texts"),
        (np.where(np.arange(SIZE) < 15, 3, 2), "judge is constant: 2 for 92% of 200 texts"),
    ],
)
def test_a_degenerate_judge_is_named(judge: np.ndarray, fault: str) -> None:
    """A judge that guesses, or always says 2."""
    faults = compare(frame(A, judge), "scorer", "judge").faults
    assert any(line.startswith(fault) for line in faults)


def test_a_judge_of_length_is_not_random() -> None:
    """What the scorer does not predict, the length may."""
    lengths = np.array([len(text) for text in TEXTS])
    assert compare(frame(A, lengths), "scorer", "judge").faults == [
        "scorer looks random: neither the other measure nor length, punctuation or words predict it"
    ]


def test_intervals_of_the_surface_cover_zero() -> None:
    """For 40 random judges 95 % of the intervals of length and words have 0 in them; none of marks that no text has."""
    rng, excluded = np.random.default_rng(0), []
    for _ in range(40):
        judged = rng.integers(0, 5, 80).astype(float)
        rows = comparison._measure_surface(frame(A, A, rng.permutation(TEXTS).tolist())[:80], judged, np.arange(80))
        length, punctuation, words = ([row[name] for name in comparison.CORRELATED] for row in rows)
        assert punctuation == [None] * 3
        excluded += [low > 0 or high < 0 for _, low, high in (length, words)]
    assert np.mean(excluded) <= 0.05


def test_few_threads_have_no_interval() -> None:
    """Of eight threads nothing is concluded, of nine texts have no interval; fewer than 20 texts are refused."""
    result = compare(frame(A, JUDGED, [""] * SIZE, per_thread=25))
    assert result.measures["by"].to_list() == ["a", "constant"]
    assert result.measures["low"].null_count() == 2
    with pytest.raises(ValueError, match="at least 20 texts with both values, found 19"):
        compare(frame(A, JUDGED)[:19])
    for size, threads in ((SIZE, np.arange(SIZE) % 9), (18, np.arange(18))):
        mapped, low, high = comparison.fit_interval(A[:size], JUDGED[:size], threads).predict(A[:3])
        assert np.isnan([low, high]).all()
        assert np.isfinite(mapped).all()
