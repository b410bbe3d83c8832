"""Low-rank adapters (LoRA): trained matrices W + (α/r) B A over a frozen W, small enough to ship."""

import copy
import hashlib
import math

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from pipeline.models.encoder import Encoder

RANK = 8
SCALE = 2.0  # α/r


class LowRank(nn.Module):
    """W -> W + scale B A with A [rank, in] drawn and B [out, rank] zero, so that training starts at W."""

    def __init__(self, out: int, inner: int, rank: int = RANK, generator: torch.Generator | None = None) -> None:
        """Draw A like a linear layer (Kaiming uniform with a = √5)."""
        super().__init__()
        bound = 1 / math.sqrt(inner)
        self.a = nn.Parameter((torch.rand(rank, inner, generator=generator) * 2 - 1) * bound)
        self.b = nn.Parameter(torch.zeros(out, rank))

    def forward(self, weight: Tensor) -> Tensor:
        """Return the adapted matrix."""
        return weight + SCALE * (self.b @ self.a).to(weight.dtype)


def adapt(model: nn.Module, generator: torch.Generator | None = None, rank: int = RANK) -> dict[str, nn.Parameter]:
    """Add an adapter to every linear layer of a transformer's layers; return the trainable parameters by name."""
    parameters: dict[str, nn.Parameter] = {}
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and ".layer." in f".{name}":
            adapter = LowRank(module.out_features, module.in_features, rank, generator).to(module.weight.device)
            parametrize.register_parametrization(module, "weight", adapter)
            parameters |= {f"{name}.a": adapter.a, f"{name}.b": adapter.b}
    return parameters


def load_adapter(encoder: Encoder, weights: dict[str, Tensor]) -> Encoder:
    """Return the encoder with trained weights: of adapters (`*.a`, `*.b`) or whole matrices."""
    module = copy.deepcopy(encoder.module)
    parameters = dict(module[0].model.named_parameters())
    with torch.no_grad():
        for name, value in weights.items():
            layer = name.removesuffix(".a")
            if name in parameters:
                parameters[name].copy_(value)
            elif layer != name:
                weight = parameters[f"{layer}.weight"]
                weight.add_((SCALE * (weights[f"{layer}.b"] @ value)).to(weight))
    tuning = hashlib.sha256()
    for name, value in sorted(weights.items()):
        tuning.update(f"{name} {list(value.shape)}\n".encode() + value.float().cpu().numpy().tobytes())
    return encoder.with_module(module.eval(), tuning.hexdigest())
