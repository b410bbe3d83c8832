"""The embeddings of a training step: from the file of a frozen encoder, or through an encoder that is trained.

Errata E1: the released code freezes the encoder, and equation 9 lists its weights among the trained ones. Trained means
all weights (`full`), or low-rank changes of its matrices (`adapter`: W + B A, rank 8), which are small enough to ship.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pipeline.errors import BadInput
from pipeline.models.adapter import adapt
from pipeline.models.encoder import Encoder, Vectors, embed_batch, encode, make_features


class Frozen:
    """Embeddings of texts in an array [n, d], which may be mapped from a file; nothing of the encoder is trained."""

    device = "cpu"
    trained: ClassVar[dict[str, nn.Parameter]] = {}  # weights of the encoder by name

    def __init__(self, vectors: Vectors, last: int | None = None) -> None:
        """Take the embeddings; `last` features of them, by default all, are those of the encoder's last layer."""
        self.vectors, self.dim, self.last = vectors, vectors.shape[1], last or vectors.shape[1]

    def __call__(self, rows: Tensor) -> Tensor:
        """Return embeddings [len(rows), dim], with gradient if the encoder is trained."""
        return torch.from_numpy(self.vectors[rows.numpy()])

    def training(self, mode: bool) -> None:
        """Switch dropout on or off."""


class Tuned:
    """Embeddings through a copy of an encoder, which is trained; its methods are those of `Frozen`."""

    def __init__(self, encoder: Encoder, texts: Sequence[str], mode: str, generator: torch.Generator) -> None:
        """Copy the encoder and make its weights trainable; in the mode `full` all, in `adapter` those of adapters."""
        if encoder.module is None:
            raise BadInput(f"the encoder {encoder.name!r} has nothing to train; use tune=none")
        self.encoder = replace(encoder.with_module(copy.deepcopy(encoder.module)), threads=1)
        self.dim, self.last, self.device = encoder.dim, encoder.last, encoder.device
        self.texts = list(texts)
        inner: Any = self.encoder.module[0].model
        inner.requires_grad_(mode == "full")
        self.trained = dict(inner.named_parameters()) if mode == "full" else adapt(inner, generator)
        if encoder.device == "cuda":  # memory for the activations of one layer instead of all, at a third more time
            inner.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def __call__(self, rows: Tensor) -> Tensor:
        texts = [self.texts[i] for i in rows.tolist()]
        if not torch.is_grad_enabled():
            return torch.from_numpy(encode(self.encoder, texts)).to(self.device)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            return embed_batch(self.encoder, make_features(self.encoder, texts)).float()

    def training(self, mode: bool) -> None:
        self.encoder.module.train(mode)


Embedding = Frozen | Tuned
