"""The corrected mean: what it is by hand, and how often its interval covers in 1,000 draws."""

import math

import numpy as np
import pytest

from tests.support.oracles.estimates import estimate_mean, explain_refusal

SIZE, DRAWS = 2000, 1000


def test_the_slope_moves_the_sample_mean() -> None:
    """By hand slope 2 moves the mean by 1; fewer than 20, or than ten that differ, correct nothing."""
    estimate = estimate_mean(np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 4, 6]), np.array([1.0, 2, 3]))
    assert estimate == pytest.approx((6, 6, 6))
    assert explain_refusal(np.arange(19.0)) == "19 judged comments, 20 are needed"
    mostly = np.array([1.4, 0.6] * 20 + [2.0] * 9)
    assert explain_refusal(mostly) == "only 9 of 49 judgements differ from the most frequent"
    assert explain_refusal(np.append(mostly, 3.0)) is None


@pytest.mark.parametrize("scores", [[1.0, 1, 1, 1, 1], [0.0, 0, 0, 9, 9]])
def test_without_weight_it_is_the_mean_of_the_sample(scores: list[float]) -> None:
    """Judgements 1, 2, 3 of five texts: mean 2, t(2) at 0.975 = 4.3027, variance (1/3 - 1/5)."""
    estimate = estimate_mean(np.array(scores), np.array([1.0, 2, 3]), np.array(scores[:3]), 0.0)
    assert estimate[:2] == pytest.approx((2, 2 - 4.302653 * math.sqrt(1 / 3 - 1 / 5)))


@pytest.mark.parametrize("relation", ["good", "weak", "none", "inverse", "curved", "rare"])
def test_intervals_cover_the_mean(relation: str) -> None:
    """In 1,000 samples 95 % intervals cover in 93 to 97 %, and are no wider than those of the difference estimate."""
    rng = np.random.default_rng(7)
    meaning, noise = rng.normal(size=(2, SIZE))
    judged = np.clip(np.round(1.2 + meaning + noise / 2), 0, 4) / 2
    if relation == "rare":
        judged = (rng.random(SIZE) < 0.15) * rng.choice([0.5, 1, 1.5, 2], SIZE)
    steepness = {"good": 1, "weak": 0.4, "none": 0, "inverse": -1, "curved": 1, "rare": 0}[relation]
    scores = 2 / (1 + np.exp(-steepness * meaning - 0.5 * rng.normal(size=SIZE))) + 0.3 * judged * (relation == "rare")
    scores = scores**4 / 8 if relation == "curved" else scores
    hits, widths = np.zeros(2), np.zeros(2)
    count = 0
    for _ in range(DRAWS):
        sample = rng.permutation(SIZE)[:100]
        if explain_refusal(2 * judged[sample]):
            continue
        count += 1
        for place, weight in enumerate((None, 1.0)):
            _, low, high = estimate_mean(scores, judged[sample], scores[sample], weight)
            hits[place] += low <= judged.mean() <= high
            widths[place] += high - low
    slope, difference = hits / count
    assert 0.93 <= slope <= 0.97
    assert 0.92 <= difference <= 0.98
    assert widths[0] < widths[1] * 1.01
    assert abs(scores.mean() - judged.mean()) > widths[0] / count / 2
    assert count > DRAWS * 0.9
