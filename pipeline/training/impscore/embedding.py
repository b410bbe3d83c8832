"""Where a training step gets its embeddings: from the file of a frozen encoder, or through one that is trained.

Errata E1: the released code freezes the encoder although equation 9 lists its weights among the trained ones. Frozen is
the default; trained means all weights (`full`), or low-rank changes of the attention and feed-forward matrices
(`adapter`: W + B A, rank 8), which are small enough to ship.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from pipeline.errors import BadInput
from pipeline.models.adapter import adapt
from pipeline.models.encoder import Encoder, Vectors, embed_batch, encode


class Embedding(Protocol):
    """Embeddings of a fixed list of texts, by row number."""

    dim: int
    last: int  # features of the encoder's last layer, which come last
    device: str

    def __call__(self, rows: Tensor) -> Tensor:
        """Embeddings [len(rows), dim], with gradient if the encoder is trained."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """What of the encoder is trained: nothing if it is frozen."""

    def state(self) -> dict[str, Tensor]:
        """The trained weights by name."""

    def load(self, state: dict[str, Tensor]) -> None:
        """Put trained weights back."""

    def training(self, mode: bool) -> None:
        """Dropout on or off."""


class Frozen:
    """Embeddings that lie in a file."""

    def __init__(self, vectors: Vectors, last: int | None = None) -> None:
        """Read rows of `vectors` [n, d], which may be mapped from a file; the last layer's features are all of them."""
        self.vectors = vectors
        self.dim = vectors.shape[1]
        self.last = last or self.dim
        self.device = "cpu"

    def __call__(self, rows: Tensor) -> Tensor:
        return torch.from_numpy(self.vectors[rows.numpy()])

    def parameters(self) -> Iterator[nn.Parameter]:
        return iter(())

    def state(self) -> dict[str, Tensor]:
        return {}

    def load(self, state: dict[str, Tensor]) -> None:
        del state

    def training(self, mode: bool) -> None:
        del mode


class Tuned:
    """Embeddings through an encoder that is trained. The given encoder is left as it is."""

    def __init__(self, encoder: Encoder, texts: Sequence[str], mode: str, generator: torch.Generator) -> None:
        """Copy the encoder and make its weights trainable.

        Args:
            encoder: a loaded encoder.
            texts: the texts that rows refer to.
            mode: `adapter` or `full`.
            generator: source of randomness of the adapters.
        """
        if encoder.module is None:
            raise BadInput(f"the encoder {encoder.name!r} has nothing to train; use tune=none")
        self.encoder = replace(encoder.with_module(copy.deepcopy(encoder.module)), threads=1)
        self.dim, self.last, self.device = encoder.dim, encoder.last, encoder.device
        self.texts = list(texts)
        self._inner: nn.Module = self.encoder.module[0].model
        self._inner.requires_grad_(mode == "full")
        self._trained = dict(self._inner.named_parameters()) if mode == "full" else adapt(self._inner, generator)
        tokenizer = encoder.module.tokenizer
        self._ids = tokenizer(self.texts, truncation=True, max_length=encoder.module.max_seq_length)["input_ids"]
        if encoder.device == "cuda":  # memory for the activations of one layer instead of all, at a third more time
            self._inner.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def __call__(self, rows: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return torch.from_numpy(encode(self.encoder, [self.texts[i] for i in rows.tolist()])).to(self.device)
        padded = self.encoder.module.tokenizer.pad({"input_ids": [self._ids[i] for i in rows]}, return_tensors="pt")
        features = {name: value.to(self.device) for name, value in padded.items()}
        with self._half():
            return embed_batch(self.encoder, features).float()

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
