"""The abstractness scorer: three layers as in the paper, members averaged, features standardised."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pipeline.training.recam.abstractness import Abstractness, Recipe, score_vectors


def draw_vectors(n: int, dim: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(3, 2, (n, dim)).astype(np.float32)


def test_the_layers_are_those_of_the_paper() -> None:
    """Two hidden layers with ReLU and a sigmoid: what is computed by hand is the score (section 3.2, REC-05)."""
    torch.manual_seed(0)
    model = Abstractness(4, Recipe(hidden=(3, 2)))
    first, second, last = (layer for layer in model.members[0] if isinstance(layer, nn.Linear))
    x = draw_vectors(5, 4)
    for layer in (first, second):
        layer.weight.data.abs_()  # so that not all is cut off
    w1, w2, w3 = (layer.weight.detach().numpy() for layer in (first, second, last))
    b1, b2, b3 = (layer.bias.detach().numpy() for layer in (first, second, last))
    logit = np.maximum(np.maximum(x @ w1.T + b1, 0) @ w2.T + b2, 0) @ w3.T + b3
    assert score_vectors(model, x) == pytest.approx(1 / (1 + np.exp(-logit[:, 0])), abs=1e-6)


@given(st.integers(0, 9), st.integers(1, 4), st.floats(0, 1e4))
def test_scores_are_shares(n: int, members: int, size: float) -> None:
    """Whatever the vectors, one score a word, in [0, 1]; the members' mean; dropout is off when it is asked."""
    model = Abstractness(3, Recipe(hidden=(4, 2), members=members, dropout=0.9, input_dropout=0.9))
    x = draw_vectors(n, 3) * np.float32(size)
    scores = score_vectors(model, x)
    assert scores.shape == (n,)
    assert ((scores >= 0) & (scores <= 1)).all()
    with torch.no_grad():
        assert scores == pytest.approx(model(torch.from_numpy(x)).double().mean(dim=1).numpy())
        assert model(torch.from_numpy(x)).shape == (n, members)


def test_features_are_standardised() -> None:
    """Features of another size and place give the same scores; one that never varies does not count for more."""
    torch.manual_seed(0)
    model, x = Abstractness(3, Recipe(hidden=(8, 4))), draw_vectors(50, 3)
    model.standardise(torch.from_numpy(x))
    expected = score_vectors(model, x)
    changed = (x * 2 + 7).astype(np.float32)
    model.standardise(torch.from_numpy(changed))
    assert score_vectors(model, changed) == pytest.approx(expected, abs=1e-5)
    assert np.ptp(expected) > 0
    x[:, 0] = 5
    model.standardise(torch.from_numpy(x))
    assert np.isfinite(score_vectors(model, x)).all()
    with pytest.raises(ValueError, match=r"expected vectors \[n, 3\]"):
        score_vectors(model, x[:, :2])
    assert float(model.deviation[0]) > 0.01
