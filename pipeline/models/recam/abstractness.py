"""The abstractness scorer: word vectors in, concreteness out (ReCAM, section 3.2; REC-05).

    score(v) = σ(W₃ relu(W₂ relu(W₁ v)))     0 highly abstract, 1 highly concrete

The vectors are fixed. The paper states no sizes; those of the profile `paper` are ours.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

_ROWS = 8192  # words scored at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The sizes of a scorer."""

    hidden: tuple[int, int] = (300, 100)
    members: int = 1  # networks trained side by side, whose scores are averaged
    dropout: float = 0.0  # of the hidden layers' values
    input_dropout: float = 0.0  # of the words' features


class Abstractness(nn.Module):
    """Networks over standardised word vectors. Weights are drawn from torch's global source."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, dim: int, shape: Shape) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("deviation", torch.ones(dim))
        self.members = nn.ModuleList()
        for _ in range(shape.members):
            layers: list[nn.Module] = [nn.Dropout(shape.input_dropout)]
            for width, next_width in pairwise((dim, *shape.hidden)):
                layers += [nn.Linear(width, next_width), nn.ReLU(), nn.Dropout(shape.dropout)]
            self.members.append(nn.Sequential(*layers, nn.Linear(shape.hidden[-1], 1), nn.Sigmoid()))

    def standardise(self, vectors: Tensor) -> None:
        """Set mean and deviation of the features from vectors [n, d]."""
        self.mean = vectors.mean(dim=0)
        spread = vectors.std(dim=0, correction=0)
        # without the bound, a feature that hardly varies here would be huge where it does
        self.deviation = spread.clamp(min=float(spread.square().mean().sqrt()) * 1e-2).clamp(min=1e-12)

    def forward(self, vectors: Tensor) -> Tensor:
        """Compute each member's score of vectors [n, d]: [n, members], in [0, 1]."""
        features = (vectors - self.mean) / self.deviation
        return torch.cat([member(features) for member in self.members], dim=1)


@torch.no_grad()
def score_vectors(model: Abstractness, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Compute the concreteness of words from their vectors [n, d], of the scorer's width: the members' mean, [n]."""
    if vectors.ndim != 2 or vectors.shape[1] != len(model.mean):
        raise ValueError(f"expected vectors [n, {len(model.mean)}], got {list(vectors.shape)}")
    model.eval()
    out = np.empty(len(vectors), np.float64)
    for start in range(0, len(vectors), _ROWS):
        part = slice(start, start + _ROWS)
        out[part] = model(torch.from_numpy(np.ascontiguousarray(vectors[part]))).double().mean(dim=1).numpy()
    return out
