"""ImpScore: the distance between a sentence's pragmatic and semantic meaning (section 3).

    h_p = e W_p,  h_s = e W_s      (2)  W_p, W_s: d x l
    ĥ_s = h_p W_t                  (3)  W_t: l x l
    I   = 1 - cos(h_s, ĥ_s)        (4)  in [0, 2]
    ΔP  = ||h_p(1) - h_p(2)||      (6)
    L_imp(a, b) = max(0, γ1 - (I(a) - I(b)))                       (5)
    L_prag      = max(0, γ2 - (ΔP(s1, s3) - ΔP(s1, s2)))           (7)
    L_final     = L_imp(s1, s2) + L_imp(s1, s3) + α L_prag         (8), mean over the batch as in the released code

No bias, Xavier uniform (section 3.4, IMP-11). Equal zero vectors have cosine 0 here, so I = 1.
"""

import math
from collections.abc import Mapping
from itertools import product
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

FEATURES = 64  # l, from the released code (errata E3)
GAMMA_IMPLICITNESS, GAMMA_PRAGMATICS, ALPHA = 0.5, 0.7, 1.0  # section 5.1
Metric = Literal["cosine", "euclidean"]
Space = Literal["p2s", "s2p", "third"]


class Design(NamedTuple):
    """One of the 12 variants of table 2: the metrics of I and ΔP, and the space the two meanings are compared in.

    p2s compares h_s with h_p W_t; s2p compares h_p with h_s W_t; third compares h_p W_t1 with h_s W_t2 (equation 10,
    printed for the Euclidean metric only; the cosine form is implied).
    """

    implicitness: Metric = "cosine"
    pragmatics: Metric = "euclidean"
    space: Space = "p2s"


DESIGNS = tuple(Design(*variant) for variant in product(get_args(Metric), get_args(Metric), get_args(Space)))


class Meaning(NamedTuple):
    """Implicitness [n], pragmatic features [n, l] and semantic features [n, l] of n sentences."""

    implicitness: Tensor
    pragmatic: Tensor
    semantic: Tensor

    def select(self, rows: Tensor) -> "Meaning":
        """Return the meanings of some of the sentences, by row."""
        return Meaning(*(field[rows] for field in self))


class Readout(NamedTuple):
    """A linear map of embeddings to a judge's values, 0 to 4; a distilled head has it for its implicitness."""

    weight: Tensor  # [dim]
    bias: Tensor  # []

    def __call__(self, vectors: Tensor) -> Tensor:
        """Compute implicitness of embeddings [n, dim]: [n] in [0, 2], half the judge's scale."""
        return (vectors @ self.weight + self.bias).clamp(0, 4) / 2


class ImpScore(nn.Module):
    """The trained part of ImpScore: three matrices over embeddings, four where both meanings go to a third space."""

    def __init__(
        self,
        dim: int,
        features: int = FEATURES,
        generator: torch.Generator | None = None,
        design: Design = Design(),  # noqa: B008 - immutable
        hidden: int = 0,
        dropout: float = 0.0,
        last: int | None = None,
    ) -> None:
        """Draw the matrices for embeddings of size `dim` and meaning spaces of size `features`, much less than `dim`.

        Not in the paper: `hidden` is the width of a layer before the projections, 0 for none. With it the score sees
        combinations of features, which on graded groups improves it more than any other change of the head, and the
        pragmatic projection sees only the `last` features of an embedding: those of the encoder's last layer, if
        embeddings contain all layers. `dropout` is the share of embedding and hidden features dropped at random in
        training.
        """
        super().__init__()
        self.center: Tensor
        self.scale: Tensor
        self.design, self.dropout, self.last = design, dropout, last or dim
        self.is_deep = hidden > 0
        if hidden:
            self.register_buffer("center", torch.zeros(dim))
            self.register_buffer("scale", torch.ones(dim))
            self.hidden = nn.Parameter(_draw_xavier(dim, hidden, generator))
            self.bias = nn.Parameter(torch.zeros(hidden))
        self.pragmatic = nn.Parameter(_draw_xavier(self.last if hidden else dim, features, generator))
        self.semantic = nn.Parameter(_draw_xavier(hidden or dim, features, generator))
        self.transform = nn.Parameter(_draw_xavier(features, features, generator))
        if design.space == "third":
            self.transform_semantic = nn.Parameter(_draw_xavier(features, features, generator))

    def forward(self, embeddings: Tensor) -> Meaning:
        """Compute implicitness, pragmatic and semantic features of embeddings [n, d]."""
        deep = embeddings
        if self.is_deep:
            deep = self._drop_out((embeddings - self.center) / self.scale)
            deep = self._drop_out(nn.functional.gelu(deep @ self.hidden + self.bias))
            embeddings = embeddings[:, -self.last :]
        pragmatic, semantic = embeddings @ self.pragmatic, deep @ self.semantic
        match self.design.space:
            case "p2s":
                reference, projection = semantic, pragmatic @ self.transform
            case "s2p":
                reference, projection = pragmatic, semantic @ self.transform
            case "third":
                reference, projection = pragmatic @ self.transform, semantic @ self.transform_semantic
        return Meaning(distance(reference, projection, self.design.implicitness), pragmatic, semantic)

    @torch.no_grad()
    def initialise(self, embeddings: Tensor) -> None:
        """Initialise a model with a hidden layer from the embeddings [n, d] of its training; others stay random.

        Mean and deviation standardise the inputs of the hidden layer; features that hardly vary stay small. The
        pragmatic projection starts as the principal directions, which keep the encoder's distances.
        """
        if not self.is_deep or len(embeddings) < 2:
            return
        deviation = embeddings.std(dim=0)
        self.center.copy_(embeddings.mean(dim=0))
        self.scale.copy_(deviation.clamp(min=float(deviation.mean()) or 1e-6))
        features = min(*self.pragmatic.shape, len(embeddings))
        _, _, directions = torch.svd_lowrank(embeddings[:, -self.last :], features)
        self.pragmatic[:, :features] = directions

    def _drop_out(self, values: Tensor) -> Tensor:
        return nn.functional.dropout(values, self.dropout, self.training)


def convert_checkpoint(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert the state of the authors' model (IMP-45), whose layers hold transposed matrices; without its encoder."""
    names = {"p": "pragmatic", "s": "semantic", "t": "transform", "t_p": "transform", "t_s": "transform_semantic"}
    matrices = {f"weight_{layer}.weight": name for layer, name in names.items()}
    return {name: tensors[layer].float().T.contiguous() for layer, name in matrices.items() if layer in tensors}


def _draw_xavier(rows: int, columns: int, generator: torch.Generator | None) -> Tensor:
    bound = math.sqrt(6 / (rows + columns))
    return (torch.rand(rows, columns, generator=generator) * 2 - 1) * bound


def distance(rows: Tensor, other_rows: Tensor, metric: Metric) -> Tensor:
    """Compute the distance row by row: [n]."""
    if metric == "cosine":
        return 1 - torch.cosine_similarity(rows, other_rows, dim=-1)
    length: Tensor = torch.linalg.vector_norm(rows - other_rows, dim=-1)
    return length


def pragmatic_distance(meanings: Meaning, other_meanings: Meaning, metric: Metric = "euclidean") -> Tensor:
    """Compute ΔP row by row (equation 6, or its cosine variant): [n]."""
    return distance(meanings.pragmatic, other_meanings.pragmatic, metric)


def loss(
    s1: Meaning,
    s2: Meaning,
    s3: Meaning,
    gamma_implicitness: float = GAMMA_IMPLICITNESS,
    gamma_pragmatics: float = GAMMA_PRAGMATICS,
    alpha: float = ALPHA,
    *,
    pragmatics: Metric = "euclidean",
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor:
    """Compute L_final (equation 8) of triples: a scalar.

    s1 are meanings of implicit sentences, s2 of their explicit forms, s3 of foreign explicit sentences. The gammas are
    γ1 and γ2; `pragmatics` is the metric of ΔP. The reduction is the mean over the batch as in the released code, or
    the sum that equation 9 prints (IMP-10).
    """
    explicit, foreign = (torch.relu(gamma_implicitness - (s1.implicitness - s.implicitness)) for s in (s2, s3))
    differences = pragmatic_distance(s1, s3, pragmatics) - pragmatic_distance(s1, s2, pragmatics)
    losses = explicit + foreign + alpha * torch.relu(gamma_pragmatics - differences)
    return losses.mean() if reduction == "mean" else losses.sum()


def ranking_loss(implicitness: Tensor, higher: Tensor, lower: Tensor, steps: Tensor, sharpness: float) -> Tensor:
    """Average steps * log(1 + exp(-sharpness (I(higher) - I(lower)))) over comparisons within graded groups: a scalar.

    The pairwise logistic loss of RankNet (Burges et al. 2005); a comparison over more steps counts more. `higher` and
    `lower` are rows of the more and less implicit sentence of each comparison [m], `steps` the levels between them. The
    sharpness says how fast the loss falls with the difference of two scores, which is at most 2.
    """
    differences = implicitness[higher] - implicitness[lower]
    return (steps * nn.functional.softplus(-sharpness * differences)).mean()
