"""Low-rank adapters (LoRA): a trained matrix W + (α/r) B A beside a frozen W, small enough to ship."""

import copy
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
        """Draw A as a linear layer is drawn (Kaiming uniform with a = √5)."""
        super().__init__()
        bound = 1 / math.sqrt(inner)
        self.a = nn.Parameter((torch.rand(rank, inner, generator=generator) * 2 - 1) * bound)
        self.b = nn.Parameter(torch.zeros(out, rank))

    def forward(self, weight: Tensor) -> Tensor:
        """The changed matrix."""
        return weight + SCALE * (self.b @ self.a).to(weight.dtype)


def adapt(model: nn.Module, generator: torch.Generator | None = None, rank: int = RANK) -> dict[str, nn.Parameter]:
    """Put an adapter on every linear layer of a transformer's layers; return what is to be trained, by name."""
    found: dict[str, nn.Parameter] = {}
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and ".layer." in f".{name}":
            adapter = LowRank(module.out_features, module.in_features, rank, generator).to(module.weight.device)
            parametrize.register_parametrization(module, "weight", adapter)
            found |= {f"{name}.a": adapter.a, f"{name}.b": adapter.b}
    return found


def adapted(encoder: Encoder, weights: dict[str, Tensor]) -> Encoder:
    """The encoder with trained weights in place: those of adapters (`*.a`, `*.b`), or whole ones."""
    module = copy.deepcopy(encoder.module)
    inner = module[0].model
    with torch.no_grad():
        own = dict(inner.named_parameters())
        for name, value in weights.items():
            if name in own:
                own[name].copy_(value)
            elif name.endswith(".a"):
                layer = name.removesuffix(".a")
                own[f"{layer}.weight"].add_((SCALE * (weights[f"{layer}.b"] @ value)).to(own[f"{layer}.weight"]))
    return encoder.with_module(module.eval())
