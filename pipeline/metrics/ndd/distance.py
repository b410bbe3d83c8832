"""Neighbouring Distribution Divergence of sentences (NDD, section 2.2; NDD-04 to NDD-09).

    NDD(W, W') = Σ_w a_w F(q_w, q'_w)

over the words w that both sentences have in order, q_w the distribution that a masked language model has at the place
of w in W when w is masked, q'_w the same in W'. F is Hellinger's distance (section 3) or the Kullback-Leibler
divergence (section 4.2).
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import polars as pl

from pipeline.metrics.ndd.model import Floats, IndexArray, MaskedModel, Sentence
from pipeline.metrics.ndd.neighbours import aligned, apart
from pipeline.metrics.ndd.weights import MU

if TYPE_CHECKING:
    from torch import Tensor

Divergence = Literal["hellinger", "kl", "kl_reversed"]
Weights = Literal["mean", "sum", "distance"]

HELD = 256  # distributions of first sentences that are kept at a time; of 30,000 words 30 MB
_ASKS = 1 << 16  # neighbours that are gone through at a time
CLS, SEP = "[CLS]", "[SEP]"  # what `explained` calls the places around a sentence


def hellinger(q: "Tensor", other: "Tensor") -> "Tensor":
    """Hellinger's distance of distributions [..., c] given as logarithms, in [0, 1]: sqrt(½ Σ (√q - √q')²) (NDD-06)."""
    return (((q / 2).exp() - (other / 2).exp()).square().sum(dim=-1) / 2).clamp(max=1).sqrt()


def kl(q: "Tensor", other: "Tensor") -> "Tensor":
    """Σ q' log(q' / q), at least 0, of distributions [..., c] given as logarithms: KL(q' ‖ q) (NDD-07).

    The one of the first sentence is what approximates, as section 4.2 has it.
    """
    return (other.exp() * (other - q)).sum(dim=-1).clamp(min=0)


def kl_reversed(q: "Tensor", other: "Tensor") -> "Tensor":
    """KL(q ‖ q'), the NDD* of table 12."""
    return kl(other, q)


DIVERGENCES: dict[str, Callable[["Tensor", "Tensor"], "Tensor"]] = {
    "hellinger": hellinger, "kl": kl, "kl_reversed": kl_reversed,
}  # fmt: skip


def divergences(
    model: MaskedModel, sentences: Sequence[Sentence], one: IndexArray, other: IndexArray, divergence: Divergence,
    held: int = HELD,
) -> Floats:  # fmt: skip
    """How far the distributions at two places are apart, for m pairs of places: [m].

    A place that is first of several pairs is asked of once, so the distributions of a sentence cost as many calls as it
    has words, however many others it is compared with.

    Args:
        model: it is asked for each distinct row of `one`, and for each row of `other`; one that says where both are
            the same for sure (`unchanged`, as counts do) is not asked there.
        sentences: each of its words.
        one: sentence and place of the first distribution, [m, 2]; places as `MaskedModel` has them.
        other: of the second one, [m, 2].
        divergence: hellinger, kl or kl_reversed.
        held: distributions kept at a time, which together with a batch of the model is the memory this takes.
    """
    found, measure = np.zeros(len(one)), DIVERGENCES[divergence]
    asked = np.arange(len(one))
    if hasattr(model, "unchanged"):  # counts see two neighbours alone, and most places keep theirs
        asked = np.flatnonzero(~model.unchanged(sentences, one, other))
    firsts, owner = np.unique(one[asked], axis=0, return_inverse=True)
    order = np.argsort(owner := owner.reshape(-1), kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(0, len(firsts) + held, held))
    for number, (start, end) in enumerate(pairwise(bounds.tolist())):
        block, pairs = firsts[number * held : (number + 1) * held], order[start:end]
        kept = _kept(model, sentences, block)
        seconds = other[asked[pairs]]
        for rows, said in model.distributions(sentences, seconds[:, 0], seconds[:, 1]):
            mine = kept[owner[pairs[rows]] - number * held]
            found[asked[pairs[rows]]] = measure(mine, said).double().cpu().numpy()
    return found


def _kept(model: MaskedModel, sentences: Sequence[Sentence], places: IndexArray) -> "Tensor":
    """Distributions at places, in their order: [k, vocabulary]."""
    found = None
    for rows, said in model.distributions(sentences, places[:, 0], places[:, 1]):
        if found is None:
            found = said.new_empty(len(places), said.shape[1])
        found[rows] = said
    assert found is not None
    return found


class Neighbours(NamedTuple):
    """The neighbours of n pairs of sentences, one after another."""

    pair: IndexArray  # [m]
    places: IndexArray  # [m, 2]: in the first and in the second sentence
    weight: Floats  # [m]


def neighbours(ones: Sequence[Sentence], others: Sequence[Sentence], weights: Weights, mu: float = MU) -> Neighbours:
    """The words that pairs of sentences have in common and what each counts.

    Where there are none, what stands before and behind the sentences is compared (section 3, r = 0; NDD-09).

    Args:
        ones: n sentences.
        others: as many.
        weights: mean, 1 over the number of neighbours; sum, 1; distance, μ to the number of words between a neighbour
            and the nearest word that is none.
        mu: of `distance`.
    """
    pair, places, found = [], [], []
    for number, (one, other) in enumerate(zip(ones, others, strict=True)):
        shared = aligned(one, other)
        if not len(shared):
            shared = np.array([[-1, -1], [len(one), len(other)]])
            weight = np.ones(2)
        else:
            far = apart(shared, (len(one), len(other))) if weights == "distance" else np.zeros(len(shared))
            weight = np.power(mu, far, dtype=np.float64)
        pair.append(np.full(len(shared), number))
        places.append(shared)
        found.append(weight / len(shared) if weights == "mean" else weight)
    none = np.empty(0, np.int64)
    return Neighbours(
        np.concatenate([none, *pair]), np.concatenate([none.reshape(0, 2), *places]), np.concatenate([none, *found])
    )


def distances(
    model: MaskedModel, ones: Sequence[Sentence], others: Sequence[Sentence], *, divergence: Divergence = "hellinger",
    weights: Weights = "mean", mu: float = MU,
) -> Floats:  # fmt: skip
    """NDD of n pairs of sentences, [n]: 0 of a sentence with itself, never below.

    With Hellinger's distance it is symmetric and at most the sum of the weights, which is 1 for `mean`; section 3 uses
    both.

    Args:
        model: gives the distributions.
        ones: sentences, each of its words.
        others: as many.
        divergence: hellinger, kl or kl_reversed.
        weights: mean, sum or distance; see `neighbours`.
        mu: of `distance`.
    """
    found = np.zeros(len(ones))
    sizes = [min(len(one), len(other)) + 2 for one, other in zip(ones, others, strict=True)]
    for start, end in blocks(sizes, _ASKS):
        told = neighbours(ones[start:end], others[start:end], weights, mu)
        value = told.weight * _of(model, ones[start:end], others[start:end], told, divergence)
        found[start:end] = np.bincount(told.pair, value, end - start)
    return found


def explained(
    model: MaskedModel, one: Sentence, other: Sentence, *, divergence: Divergence = "hellinger",
    weights: Weights = "mean", mu: float = MU,
) -> pl.DataFrame:  # fmt: skip
    """What makes up the NDD of two sentences.

    Returns:
        A row a neighbour: word, place and place_other from 0 (-1 and n before and behind a sentence, where no word is
        shared), divergence, weight, share (their product; shares add up to the distance).
    """
    told = neighbours([one], [other], weights, mu)
    value = _of(model, [one], [other], told, divergence)
    named = [CLS if at < 0 else SEP if at == len(one) else one[at] for at in told.places[:, 0]]
    return pl.DataFrame({
        "word": pl.Series(named, dtype=pl.String), "place": told.places[:, 0], "place_other": told.places[:, 1],
        "divergence": value, "weight": told.weight, "share": value * told.weight,
    })  # fmt: skip


def _of(
    model: MaskedModel, ones: Sequence[Sentence], others: Sequence[Sentence], told: Neighbours, divergence: Divergence
) -> Floats:
    first = np.stack([told.pair, told.places[:, 0]], axis=1)
    second = np.stack([told.pair + len(ones), told.places[:, 1]], axis=1)
    return divergences(model, [*ones, *others], first, second, divergence)


def blocks(sizes: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Ranges of a sequence, in order, whose sizes together are at most so much, or that are of one alone."""
    found, start, held = [], 0, 0
    for at, size in enumerate(sizes):
        if at > start and held + size > most:
            found.append((start, at))
            start, held = at, 0
        held += size
    return [*found, (start, len(sizes))] if len(sizes) > start else found
