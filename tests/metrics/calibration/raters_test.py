"""The alternative-annotator test on simulated raters."""

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.calibration.comparison import check_replacement, choose_levels

TRUTH = np.random.default_rng(5).integers(0, 5, 100).astype(float)


def rate(noise: float, seed: int) -> np.ndarray:
    """Rate the truth with an error."""
    return np.clip(np.round(TRUTH + noise * np.random.default_rng(seed).normal(size=100)), 0, 4)


RATINGS = np.column_stack([rate(0.8, seed) for seed in range(3)])


@pytest.mark.parametrize(("noise", "passes"), [(0.5, True), (3.0, False)])
def test_a_good_measure_passes(noise: float, passes: bool) -> None:
    """A measure that errs less than the raters may replace them, one that guesses may not."""
    result = check_replacement(rate(noise, 9), RATINGS)
    assert (result.passes, result.winning_rate, result.n) == (passes, float(passes), (100, 100, 100))
    assert (result.advantage > 0.6) is passes


@pytest.mark.parametrize("count", [100, 20])
def test_p_is_that_of_the_differences(count: int) -> None:
    """By loops, as the paper's section 3 describes it: the t-test from 30 texts on, below it Wilcoxon's."""
    measure, ratings = rate(1.0, 9)[:count], RATINGS[:count]
    differences = []
    for value, (first, *others) in zip(measure, ratings, strict=True):
        near, rated = (np.sqrt(np.mean([(x - other) ** 2 for other in others])) for x in (value, first))
        differences.append(float(rated <= near) - float(near <= rated) - 0.2)
    test = stats.ttest_1samp if count == 100 else stats.wilcoxon
    more = {"popmean": 0} if count == 100 else {"method": "approx"}
    expected = test(differences, alternative="less", **more).pvalue
    assert check_replacement(measure, ratings, 0.2).p[0] == pytest.approx(expected)


def test_texts_of_one_rater_do_not_count() -> None:
    """A rating that no other rater gave, and a missing one, are left out; equal differences need no test."""
    ratings = np.array([[1.0, 1, np.nan], [2, 2, 2], [3, 3, 3], [1, np.nan, np.nan]])
    result = check_replacement(np.array([1.0, 2, 3, 4]), ratings)
    assert (result.n, result.p, result.winning_rate, result.advantage) == ((3, 3, 2), (0, 0, 0), 1, 1)
    with pytest.raises(ValueError, match="at least two raters"):
        check_replacement(TRUTH, RATINGS[:, :1])
    with pytest.raises(ValueError, match="rater 3 has 1 texts"):
        check_replacement(np.ones(2), ratings[:2])


def test_few_levels_are_chosen_from() -> None:
    """Predictions become the nearest value that raters used; on a scale of many values they stay."""
    predicted = np.array([-1.0, 0.4, 2.6])
    assert choose_levels(predicted, RATINGS).tolist() == [0, 0, 3]
    assert choose_levels(predicted, np.arange(22.0).reshape(-1, 2)) is predicted
