"""Algorithm 1 with E10's repair: shapes, what gradient reaches, what padding and context do."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from pipeline.models.subtext.recogniser import Shape, Subtext

N, T, D = 3, 5, 4
POOLINGS = ("last", "mean", "max", "attention")


@dataclass
class Batch:
    """Three sentences in three contexts, padded with what no result may depend on."""

    sentence: tuple[Tensor, Tensor]
    context: tuple[Tensor, Tensor]


@pytest.fixture
def batch() -> Batch:
    """Lengths 5, 2 and 1 in contexts of 3, 5 and 1 tokens."""
    generator = torch.Generator().manual_seed(3)
    sentence_vectors, context_vectors = (torch.randn(N, T, D, generator=generator) for _ in range(2))
    return Batch((sentence_vectors, torch.tensor([5, 2, 1])), (context_vectors, torch.tensor([3, 5, 1])))


def model(classes: int = 2, **changes: Any) -> Subtext:
    torch.manual_seed(1)
    return Subtext(D, classes, Shape(hidden=6, meaning=5, **changes)).eval()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradient_reaches_the_lstm(batch: Batch, pooling: str) -> None:
    """Every weight has gradient, the LSTM's too: it has none where Mean is applied to e, as printed (errata E10)."""
    recogniser = model(pooling=pooling, comparison="product")
    torch.nn.functional.cross_entropy(recogniser(batch.sentence, batch.context), torch.tensor([0, 1, 1])).backward()
    for name, weight in recogniser.named_parameters():
        assert weight.grad is not None, name
        # a softmax over time does not see what is added to all of it
        assert name == "attend.bias" or weight.grad.abs().max() > 0, name


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("is_bidirectional", [False, True])
def test_padding_does_not_count(batch: Batch, pooling: str, is_bidirectional: bool) -> None:
    """What stands after a text's end changes nothing, and neither do the other texts of the batch."""
    recogniser = model(pooling=pooling, is_bidirectional=is_bidirectional)
    expected = recogniser(batch.sentence, batch.context)
    vectors, lengths = batch.sentence
    noisy = vectors.clone()
    noisy[1, 2:], noisy[2, 1:] = 99.0, -99.0
    assert torch.equal(recogniser((noisy, lengths), batch.context), expected)
    alone = recogniser(*((part[0][1:2], part[1][1:2]) for part in (batch.sentence, batch.context)))
    assert torch.allclose(alone, expected[1:2], atol=1e-6)


@pytest.mark.parametrize(("comparison", "is_additive"), [("linear", True), ("product", False)])
def test_context_and_sentence_add_up_in_algorithm_1(batch: Batch, comparison: str, is_additive: bool) -> None:
    """With linear Mean and cls, f(s, c) - f(s', c) is the same for every c: contexts cannot turn two sentences round.

    The product of m_s and m_cs can (errata E22).
    """
    recogniser = model(comparison=comparison)
    first, second = (
        (part[:1], length[:1]) for part, length in (batch.sentence, (batch.sentence[0] + 1, torch.ones(N)))
    )
    first_context, second_context = ((batch.context[0][i : i + 1], batch.context[1][i : i + 1]) for i in (0, 1))
    apart = [recogniser(first, context) - recogniser(second, context) for context in (first_context, second_context)]
    assert torch.allclose(*apart, atol=1e-6) == is_additive


def test_attention_by_hand(batch: Batch) -> None:
    """With equal scores attention is the mean over the tokens that count; `last` is the state at the end."""
    attention, mean = model(pooling="attention"), model(pooling="mean")
    mean.extract.load_state_dict(attention.extract.state_dict())
    with torch.no_grad():
        attention.attend.weight.zero_()
    assert torch.allclose(attention.features(*batch.sentence), mean.features(*batch.sentence), atol=1e-6)
    last = model(pooling="last")
    states, _ = last.extract(batch.sentence[0][1:2, :2])
    assert torch.allclose(last.features(*batch.sentence)[1], states[0, -1], atol=1e-6)
