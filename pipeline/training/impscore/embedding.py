"""The embeddings of a training step: from the file of a frozen encoder, or through an encoder that is trained.

Errata E1: the released code freezes the encoder although equation 9 lists its weights among the trained ones. Frozen is
the default; trained means all weights (`full`), or low-rank changes of the attention and feed-forward matrices
(`adapter`: W + B A, rank 8), which are small enough to ship.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.errors import BadInput
from pipeline.models.adapter import adapt
from pipeline.models.encoder import Encoder, Vectors, embed_batch, encode, make_features


class Embedding:
    """Embeddings of a fixed list of texts, by row number; nothing of the encoder is trained."""

    dim: int
    last: int  # features of the encoder's last layer, which come last
    device: str

    def __call__(self, rows: Tensor) -> Tensor:
        """Return embeddings [len(rows), dim], with gradient if the encoder is trained."""
        raise NotImplementedError

    def parameters(self) -> Iterator[nn.Parameter]:
        """Iterate over the trained weights of the encoder."""
        return iter(())

    def state(self) -> dict[str, Tensor]:
        """Return the trained weights by name."""
        return {}

    def load(self, state: dict[str, Tensor]) -> None:
        """Restore trained weights."""

    def training(self, mode: bool) -> None:
        """Switch dropout on or off."""


class Frozen(Embedding):
    """Embeddings in an array [n, d], which may be mapped from a file."""

    def __init__(self, vectors: Vectors, last: int | None = None) -> None:
        self.vectors = vectors
        self.dim = vectors.shape[1]
        self.last = last or self.dim
        self.device = "cpu"

    def __call__(self, rows: Tensor) -> Tensor:
        return torch.from_numpy(self.vectors[rows.numpy()])


class Tuned(Embedding):
    """Embeddings through a copy of an encoder, which is trained."""

    def __init__(self, encoder: Encoder, texts: Sequence[str], mode: str, generator: torch.Generator) -> None:
        """Copy the encoder and make its weights trainable; in the mode `full` all, in `adapter` those of adapters."""
        if encoder.module is None:
            raise BadInput(f"the encoder {encoder.name!r} has nothing to train; use tune=none")
        self.encoder = replace(encoder.with_module(copy.deepcopy(encoder.module)), threads=1)
        self.dim, self.last, self.device = encoder.dim, encoder.last, encoder.device
        self.texts = list(texts)
        inner: Any = self.encoder.module[0].model
        inner.requires_grad_(mode == "full")
        self._trained = dict(inner.named_parameters()) if mode == "full" else adapt(inner, generator)
        if encoder.device == "cuda":  # memory for the activations of one layer instead of all, at a third more time
            inner.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def __call__(self, rows: Tensor) -> Tensor:
        texts = [self.texts[i] for i in rows.tolist()]
        if not torch.is_grad_enabled():
            return torch.from_numpy(encode(self.encoder, texts)).to(self.device)
        with self._half():
            return embed_batch(self.encoder, make_features(self.encoder, texts)).float()

    def _half(self) -> AbstractContextManager[Any]:
        return torch.autocast("cuda", torch.bfloat16) if self.device == "cuda" else nullcontext()

    def parameters(self) -> Iterator[nn.Parameter]:
        return iter(self._trained.values())

    def state(self) -> dict[str, Tensor]:
        return {f"encoder.{name}": value.detach() for name, value in self._trained.items()}

    def load(self, state: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in self._trained.items():
                value.copy_(state[f"encoder.{name}"])

    def training(self, mode: bool) -> None:
        self.encoder.module.train(mode)
