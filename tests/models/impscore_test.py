"""The equations of section 3: score, distance, loss, initial weights."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.models.impscore import DESIGNS, Design, ImpScore, Meaning, loss, pragmatic_distance, ranking_loss

seeds = st.integers(0, 2**31 - 1)


def model_of(seed: int = 0, dim: int = 12, features: int = 4, **options: Any) -> ImpScore:
    return ImpScore(dim, features, torch.Generator().manual_seed(seed), **options)


def vectors(seed: int, count: int = 5, dim: int = 12) -> torch.Tensor:
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed))


def meaning(implicitness: list[float], pragmatic: list[list[float]]) -> Meaning:
    """A meaning written by hand, in double precision, whose numbers take gradients."""
    return Meaning(
        torch.tensor(implicitness, dtype=torch.float64, requires_grad=True),
        torch.tensor(pragmatic, dtype=torch.float64, requires_grad=True),
        torch.zeros(len(implicitness), 2, dtype=torch.float64),
    )


# Embedding (1, 0); h_p = (4, 3), h_s = (1, 0); W_t swaps the coordinates, W_t2 of the third space doubles them.
# p2s: h_s = (1, 0) with h_p W_t = (3, 4); s2p: h_p = (4, 3) with h_s W_t = (0, 1); third: (3, 4) with (2, 0)
BY_HAND = {
    ("cosine", "p2s"): 1 - 3 / 5,
    ("cosine", "s2p"): 1 - 3 / 5,
    ("cosine", "third"): 1 - 6 / 10,
    ("euclidean", "p2s"): math.hypot(2, 4),
    ("euclidean", "s2p"): math.hypot(4, 2),
    ("euclidean", "third"): math.hypot(1, 4),  # equation 10 as it is printed
}


@pytest.mark.parametrize("design", DESIGNS, ids="-".join)
def test_variants_by_hand(design: Design) -> None:
    """I = 1 - cos(e W_s, e W_p W_t) by equations 2 to 4; each of the 12 variants of table 2 compares what it should.

    There is no bias (IMP-04, IMP-05). All weights of each get gradients from margins that nothing keeps (IMP-29).
    """
    assert len(set(DESIGNS)) == 12
    assert Design() == ("cosine", "euclidean", "p2s")
    trained = model_of(design=design)
    s1, s2, s3 = (trained(vectors(seed)) for seed in range(3))
    loss(s1, s2, s3, 9.0, 9.0, pragmatics=design.pragmatics).backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in trained.parameters())
    model = model_of(dim=2, features=2, design=design)
    with torch.no_grad():
        model.semantic.copy_(torch.eye(2))
        model.pragmatic.copy_(torch.tensor([[4.0, 3.0], [0.0, 1.0]]))
        model.transform.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
        if design.space == "third":
            model.transform_semantic.copy_(2 * torch.eye(2))
    meaning = model(torch.tensor([[1.0, 0.0]]))
    assert meaning.implicitness.item() == pytest.approx(BY_HAND[design.implicitness, design.space], abs=1e-6)
    assert (meaning.pragmatic.tolist(), meaning.semantic.tolist()) == ([[4.0, 3.0]], [[1.0, 0.0]])


@pytest.mark.parametrize("hidden", [0, 6])
@given(seed=seeds)
def test_score_lies_between_0_and_2(hidden: int, seed: int) -> None:
    """I is in [0, 2] up to rounding in single precision (IMP-06), also with a hidden layer and of the zero vector."""
    embeddings = torch.cat([vectors(seed + 1, 50), torch.zeros(1, 12)])
    implicitness = model_of(seed, hidden=hidden).eval()(embeddings).implicitness
    assert bool(torch.isfinite(implicitness).all())
    assert implicitness.min() >= -1e-6
    assert implicitness.max() <= 2 + 1e-6


@given(seeds)
def test_extremes_of_the_score(seed: int) -> None:
    """With W_p = W_s, W_t = I gives 0 and W_t = -I gives 2 for every sentence (IMP-06)."""
    model = model_of(seed)
    with torch.no_grad():
        model.pragmatic.copy_(model.semantic)
        for transform, expected in ((torch.eye(4), 0.0), (-torch.eye(4), 2.0)):
            model.transform.copy_(transform)
            assert torch.allclose(model(vectors(seed + 1)).implicitness, torch.full((5,), expected), atol=1e-5)


@given(seeds, st.floats(1e-2, 1e3))
def test_score_ignores_the_length_of_the_embedding(seed: int, factor: float) -> None:
    """Rescaling embeddings by a positive factor changes no score (IMP-06); distances grow with it."""
    model, e = model_of(seed), vectors(seed + 1)
    original, scaled = model(e), model(e * factor)
    assert torch.allclose(original.implicitness, scaled.implicitness, atol=1e-4)
    assert torch.allclose(original.pragmatic * factor, scaled.pragmatic, rtol=1e-3, atol=1e-4 * factor)


@given(seeds)
def test_distance_is_a_metric(seed: int) -> None:
    """DP is 0 from a sentence to itself, symmetric, not negative, and keeps the triangle inequality (IMP-08)."""
    model = model_of(seed)
    a, b, c = (model(vectors(seed + i)) for i in range(3))
    assert torch.equal(pragmatic_distance(a, a), torch.zeros(5))
    assert torch.equal(pragmatic_distance(a, b), pragmatic_distance(b, a))
    assert (pragmatic_distance(a, b) > 0).all()
    assert (pragmatic_distance(a, c) <= pragmatic_distance(a, b) + pragmatic_distance(b, c) + 1e-5).all()


def test_distance_by_hand() -> None:
    """DP from (0, 0) to (3, 4) is 5 (equation 6); the ranking loss of rises .2, .1 and -.1 is its mean by hand."""
    assert pragmatic_distance(meaning([0], [[0, 0]]), meaning([0], [[3, 4]])).tolist() == [5.0]
    meanings, other_meanings = meaning([0, 0], [[3, 4], [6, 8]]), meaning([0, 0], [[4, 3], [40, 30]])
    assert pragmatic_distance(meanings, other_meanings, "cosine").tolist() == pytest.approx([1 - 24 / 25] * 2)
    values = torch.tensor([0.5, 0.7, 0.6], dtype=torch.float64)
    higher, lower, steps = torch.tensor([1, 2, 2]), torch.tensor([0, 0, 1]), torch.tensor([1, 2, 1])
    by_hand = (math.log1p(math.exp(-2)) + 2 * math.log1p(math.exp(-1)) + math.log1p(math.exp(1))) / 3
    assert ranking_loss(values, higher, lower, steps, 10.0).item() == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("scores", "near", "far", "alpha", "expected"),
    [
        # max(0, .5-(1.2-1.0)) + max(0, .5-(1.2-.9)) + max(0, .7-(.6-.5)) = .3 + .2 + .6
        ((1.2, 1.0, 0.9), 0.5, 0.6, 1.0, 1.1),
        ((1.2, 1.0, 0.9), 0.5, 0.6, 2.0, 1.7),  # .3 + .2 + 2 * .6
        ((1.2, 1.0, 0.9), 0.5, 0.6, 0.0, 0.5),
        ((0.5, 1.0, 0.5), 0.0, 1.0, 1.0, 1.5),  # 1.0 + .5 + 0: explicit above implicit, far enough apart
        ((1.0, 1.0, 1.0), 0.0, 0.0, 1.0, 1.7),  # all alike: .5 + .5 + .7
        ((1.6, 1.0, 0.9), 0.1, 0.9, 1.0, 0.0),  # all margins kept
    ],
)  # fmt: skip
def test_loss_by_hand(scores: tuple[float, ...], near: float, far: float, alpha: float, expected: float) -> None:
    """L_final of one triple is the sum of equations 5 (twice) and 7 (IMP-07, IMP-09, IMP-10)."""
    s1, s2, s3 = (meaning([i], [[x, 0]]) for i, x in zip(scores, (0, near, far), strict=True))
    assert loss(s1, s2, s3, alpha=alpha).item() == pytest.approx(expected)


def test_the_sum_is_n_times_the_mean() -> None:
    """Losses 1.1 and 0 give 0.55: the mean as in the released code; equation 9 prints their sum (IMP-10).

    With cosine pragmatics near is 0.04 and far 1: .7 - .96 is below zero, so only .3 + .2 of implicitness stay.
    """
    s1 = meaning([1.2, 1.6], [[0, 0], [0, 0]])
    s2 = meaning([1.0, 1.0], [[0.5, 0], [0.1, 0]])
    s3 = meaning([0.9, 0.9], [[0.6, 0], [0.9, 0]])
    assert loss(s1, s2, s3).item() == pytest.approx(0.55)
    assert loss(s1, s2, s3, reduction="sum").item() == pytest.approx(1.1)
    s1, s2, s3 = (meaning([i], [p]) for i, p in ((1.2, [3, 4]), (1.0, [4, 3]), (0.9, [4, -3])))
    assert loss(s1, s2, s3, pragmatics="cosine").item() == pytest.approx(0.5)


def test_initial_weights_are_xavier_uniform() -> None:
    """Weights fill +-sqrt(6/(d+l)) and +-sqrt(6/(2l)), 0.0849 and 0.2165, with variance bound^2/3 (IMP-11)."""
    model, other_model = (model_of(seed, 768, 64, design=Design(space="third")) for seed in (42, 43))
    assert torch.equal(model.semantic, model_of(42, 768, 64, design=Design(space="third")).semantic)
    assert not torch.equal(model.semantic, other_model.semantic)
    assert not torch.equal(model.semantic, model.pragmatic)
    for weights, bound, printed in (
        (model.pragmatic, math.sqrt(6 / 832), 0.0849),
        (model.semantic, math.sqrt(6 / 832), 0.0849),
        (model.transform, math.sqrt(6 / 128), 0.2165),
        (model.transform_semantic, math.sqrt(6 / 128), 0.2165),
    ):
        assert round(bound, 4) == printed
        assert 0.99 * bound < weights.abs().max().item() <= bound * (1 + 1e-6)
        assert weights.var().item() == pytest.approx(bound**2 / 3, rel=0.05)  # 4,096 draws: s.d. of the ratio 1.4 %
        assert abs(weights.mean().item()) < 0.04 * bound


def test_hidden_layer_by_equation() -> None:
    """h_s = gelu((e - center) / scale W_h + b) W_s, while h_p stays linear in the last features of the embedding."""
    model = model_of(hidden=6, last=5).eval()
    e = vectors(1) * 3 + 1
    model.initialise(e)
    with torch.no_grad():
        model.bias.copy_(torch.linspace(-1, 1, 6))
    scale = e.std(0).clamp(min=e.std(0).mean())
    inner = (e - e.mean(0)) / scale @ model.hidden + model.bias
    deep = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2
    meanings = model(e)
    assert model.pragmatic.shape == (5, 4)
    assert torch.allclose(meanings.semantic, deep @ model.semantic, atol=1e-5)
    assert torch.allclose(meanings.pragmatic, e[:, 7:] @ model.pragmatic, atol=1e-5)
    expected = 1 - torch.cosine_similarity(deep @ model.semantic, e[:, 7:] @ model.pragmatic @ model.transform)
    assert torch.allclose(meanings.implicitness, expected, atol=1e-5)


def test_features_that_hardly_vary_are_not_blown_up() -> None:
    """A feature is divided by its deviation, but by no less than the mean of all; a constant one stays 0."""
    model = model_of(hidden=6)
    e = vectors(1, 200)
    e[:, 0] = 5.0
    model.initialise(e)
    deviation = e.std(0)
    assert (model.center[0].item(), model.scale[0].item()) == (5.0, pytest.approx(deviation.mean().item()))
    assert torch.allclose(model.scale, torch.maximum(deviation, deviation.mean()))
    assert (model.scale[1:] > deviation[1:]).any()
    model.initialise(torch.ones(3, 12))  # all alike: nothing is divided by 0
    assert torch.isfinite(model(torch.ones(3, 12)).implicitness).all()


def test_the_pragmatic_projection_starts_at_principal_directions() -> None:
    """They are those of the last features alone, which are the last layer's, as a singular value decomposition says."""
    torch.manual_seed(3)
    model = model_of(hidden=6, last=5)
    orthogonal, _ = torch.linalg.qr(vectors(2, 5, 5))
    directions = orthogonal.T[:4]  # which differ clearly in what lies along them
    e = torch.cat([vectors(1, 60, 7) * 50, vectors(3, 60, 4) * torch.tensor([27.0, 9.0, 3.0, 1.0]) @ directions], 1)
    model.initialise(e)
    _, _, exact = torch.linalg.svd(e[:, 7:], full_matrices=False)
    turned = exact[:4] @ model.pragmatic.detach()
    assert torch.allclose(turned.abs(), torch.eye(4), atol=1e-3)  # a direction's sign is free
