"""Silhouettes and layouts of the two spaces."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from pipeline.errors import BadInput
from pipeline.metrics.impscore.studies import lay_out, silhouettes

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
