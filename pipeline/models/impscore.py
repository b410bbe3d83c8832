"""ImpScore: how far a sentence's pragmatic meaning lies from its semantic one (section 3).

    h_p = e W_p,  h_s = e W_s      (2)  W_p, W_s: d x l
    ĥ_s = h_p W_t                  (3)  W_t: l x l
    I   = 1 - cos(h_s, ĥ_s)        (4)  in [0, 2]
    ΔP  = ||h_p(1) - h_p(2)||      (6)
    L_imp(a, b) = max(0, γ1 - (I(a) - I(b)))                       (5)
    L_prag      = max(0, γ2 - (ΔP(s1, s3) - ΔP(s1, s2)))           (7)
    L_final     = L_imp(s1, s2) + L_imp(s1, s3) + α L_prag         (8), mean over the batch as in the released code

No bias, Xavier uniform (section 3.4, IMP-11). Equal zero vectors have cosine 0 here, so I = 1: nothing is known.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

FEATURES = 64  # l, from the released code (errata E3)
GAMMA_IMPLICITNESS, GAMMA_PRAGMATICS, ALPHA = 0.5, 0.7, 1.0  # section 5.1


class Meaning(NamedTuple):
    """Implicitness [n] and pragmatic features [n, l] of n sentences."""

    implicitness: Tensor
    pragmatic: Tensor


class ImpScore(nn.Module):
    """The trained part of ImpScore: three matrices over frozen embeddings."""

    def __init__(self, dim: int, features: int = FEATURES, generator: torch.Generator | None = None) -> None:
        """Draw the matrices.

        Args:
            dim: size d of the embeddings.
            features: size l of the two meaning spaces, much less than d.
            generator: source of randomness.
        """
        super().__init__()
        self.pragmatic = nn.Parameter(_xavier(dim, features, generator))
        self.semantic = nn.Parameter(_xavier(dim, features, generator))
        self.transform = nn.Parameter(_xavier(features, features, generator))

    def forward(self, embeddings: Tensor) -> Meaning:
        """Implicitness and pragmatic features of embeddings [n, d]."""
        pragmatic = embeddings @ self.pragmatic
        transformed = pragmatic @ self.transform
        cosine = torch.cosine_similarity(embeddings @ self.semantic, transformed, dim=-1)
        return Meaning(1 - cosine, pragmatic)


def _xavier(rows: int, columns: int, generator: torch.Generator | None) -> Tensor:
    bound = math.sqrt(6 / (rows + columns))
    return (torch.rand(rows, columns, generator=generator) * 2 - 1) * bound


def pragmatic_distance(one: Meaning, other: Meaning) -> Tensor:
    """ΔP of sentences row by row (equation 6): [n]."""
    distance: Tensor = torch.linalg.vector_norm(one.pragmatic - other.pragmatic, dim=-1)
    return distance


def loss(
    s1: Meaning,
    s2: Meaning,
    s3: Meaning,
    gamma_implicitness: float = GAMMA_IMPLICITNESS,
    gamma_pragmatics: float = GAMMA_PRAGMATICS,
    alpha: float = ALPHA,
) -> Tensor:
    """L_final (equation 8) of triples, mean over the batch: a scalar. s1 implicit, s2 explicit, s3 foreign."""
    above = [torch.relu(gamma_implicitness - (s1.implicitness - s.implicitness)) for s in (s2, s3)]
    apart = pragmatic_distance(s1, s3) - pragmatic_distance(s1, s2)
    return (above[0] + above[1] + alpha * torch.relu(gamma_pragmatics - apart)).mean()
