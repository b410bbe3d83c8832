"""Low-rank adapters: they begin where the frozen encoder is, and what they come to can be put back."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.models.adapter import RANK, SCALE, LowRank, adapt, load_adapter
from pipeline.models.encoder import Encoder, encode, load
from pipeline.training.impscore.fit import Tuned

TEXTS = ["nice hat", "close the door, please.", "what a day it was", "今天自然是好的", "cold in here"]


@pytest.fixture
def encoder(tiny_folder: Path) -> Encoder:
    """The tiny encoder, its layers side by side."""
    return load(str(tiny_folder), device="cpu", pooling="layers")


def tuned(encoder: Encoder, mode: str, steps: int = 0) -> Tuned:
    """Embeddings of `TEXTS` through a trained copy of the encoder, after some steps towards an arbitrary aim."""
    embedding = Tuned(encoder, TEXTS, mode, torch.Generator().manual_seed(1))
    embedding.training(mode=True)
    optimiser = torch.optim.Adam(list(embedding.trained.values()), lr=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        embedding(torch.arange(len(TEXTS)))[:, -1].sum().backward()  # the first layer is below every adapter
        optimiser.step()
    embedding.training(mode=False)
    return embedding


def rows_of(embedding: Tuned) -> np.ndarray:
    with torch.no_grad():
        return embedding(torch.arange(len(TEXTS))).numpy()


def test_low_rank_by_hand() -> None:
    """W becomes W + scale B A: with B = (1, 0), A = (2, 3) and scale 2 the first row grows by (4, 6)."""
    adapter = LowRank(2, 2, rank=1)
    with torch.no_grad():
        adapter.a.copy_(torch.tensor([[2.0, 3.0]]))
        adapter.b.copy_(torch.tensor([[1.0], [0.0]]))
    assert SCALE == 2.0
    assert adapter(torch.ones(2, 2)).tolist() == [[5.0, 7.0], [1.0, 1.0]]


def test_every_linear_layer_is_adapted(tiny_folder: Path) -> None:
    """Six matrices a layer have A [8, in], drawn within 1/sqrt(in), and B [out, 8] of zeros; the pooler has none."""
    model = copy.deepcopy(load(str(tiny_folder), device="cpu").module[0].model)
    parameters = adapt(model, torch.Generator().manual_seed(1))
    assert len(parameters) == 2 * 6 * 2
    assert all(name.startswith("encoder.layer.") for name in parameters)
    for name, value in parameters.items():
        assert value.shape == ((RANK, 32) if name.endswith(".a") else (32, RANK))
        assert value.requires_grad
        assert value.abs().max().item() <= 1 / 32**0.5 if name.endswith(".a") else not value.any()


@pytest.mark.parametrize("mode", ["adapter", "full"])
def test_what_was_trained_can_be_put_back(encoder: Encoder, mode: str) -> None:
    """Embeddings begin as the frozen encoder's; an encoder with the trained weights gives those at the end.

    The first encoder is unchanged. With adapters the state holds them alone.
    """
    model = encoder.module[0].model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    untrained, embedding, frozen_vectors = tuned(encoder, mode), tuned(encoder, mode, steps=5), encode(encoder, TEXTS)
    through, after = untrained(torch.arange(len(TEXTS))), rows_of(embedding)
    assert through.requires_grad
    assert np.abs(through.detach().numpy() - frozen_vectors).max() < 1e-5
    assert np.abs(after - frozen_vectors).max() > 1e-2
    assert all(name.endswith((".a", ".b")) == (mode == "adapter") for name in embedding.trained)
    weights = {name: value.detach().clone() for name, value in embedding.trained.items()}
    assert np.abs(encode(load_adapter(encoder, weights), TEXTS) - after).max() < 1e-5
    assert model.state_dict().keys() == before.keys()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not encoder.module.training
