"""Neighbouring Distribution Divergence of sentences (NDD, section 2.2; NDD-04 to NDD-09).

    NDD(W, W') = Σ_w a_w F(q_w, q'_w)

over the words w that both sentences have in order, q_w the distribution that a masked language model has at the place
of w in W when w is masked, q'_w the same in W'. F is Hellinger's distance (section 3) or the Kullback-Leibler
divergence (section 4.2).
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.metrics.ndd.model import Floats, IndexArray, MaskedModel, Sentence
from pipeline.metrics.ndd.neighbours import align, measure_gaps
from pipeline.metrics.ndd.weights import MU

if TYPE_CHECKING:
    from torch import Tensor

Divergence = Literal["hellinger", "kl", "kl_reversed"]
Weights = Literal["mean", "sum", "distance"]

OPTIONS = {"divergence": get_args(Divergence), "weights": get_args(Weights)}

CACHE_SIZE = 256  # distributions of first sentences that are kept at a time; of 30,000 words 30 MB
_BLOCK_WORDS = 1 << 16  # neighbours that are gone through at a time
CLS, SEP = "[CLS]", "[SEP]"  # what `explain` calls the places around a sentence


def hellinger(q: "Tensor", q_prime: "Tensor") -> "Tensor":
    """Compute Hellinger's distance of log distributions [..., c], in [0, 1]: sqrt(½ Σ (√q - √q')²) (NDD-06)."""
    return (((q / 2).exp() - (q_prime / 2).exp()).square().sum(dim=-1) / 2).clamp(max=1).sqrt()


def kl(q: "Tensor", q_prime: "Tensor") -> "Tensor":
    """Compute KL(q' ‖ q) = Σ q' log(q' / q) of log distributions [..., c], at least 0 (section 4.2; NDD-07)."""
    return (q_prime.exp() * (q_prime - q)).sum(dim=-1).clamp(min=0)


DIVERGENCES: dict[str, Callable[["Tensor", "Tensor"], "Tensor"]]
DIVERGENCES = {"hellinger": hellinger, "kl": kl, "kl_reversed": lambda q, q_prime: kl(q_prime, q)}
"""The last is KL(q ‖ q'), the NDD* of table 12."""


def divergences(
    model: MaskedModel,
    sentences: Sequence[Sentence],
    first_places: IndexArray,
    second_places: IndexArray,
    divergence: Divergence,
    cache_size: int = CACHE_SIZE,
) -> Floats:
    """Compute the divergence of the distributions at two places, for m pairs of places: [m].

    A place that several pairs share is asked of once. A model with a method `unchanged` is not asked where it
    reports that both distributions are equal. Memory holds `cache_size` distributions and one batch of the model.

    Places are sentence and place, [m, 2], as `MaskedModel` has them.
    """
    values, queries = np.zeros(len(first_places)), np.arange(len(first_places))
    if hasattr(model, "unchanged"):  # counts see two neighbours alone, and most places keep theirs
        queries = np.flatnonzero(~model.unchanged(sentences, first_places, second_places))
    distinct_places, owner = np.unique(first_places[queries], axis=0, return_inverse=True)
    owner = owner.reshape(-1)
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(0, len(distinct_places) + cache_size, cache_size))
    for number, (start, end) in enumerate(pairwise(bounds.tolist())):
        block, pairs = distinct_places[number * cache_size : (number + 1) * cache_size], order[start:end]
        distributions, index = collect_distributions(model, sentences, block), owner[pairs] - number * cache_size
        seconds = second_places[queries[pairs]]
        values[queries[pairs]] = compare(model, sentences, distributions, index, seconds, divergence)
    return values


def collect_distributions(model: MaskedModel, sentences: Sequence[Sentence], places: IndexArray) -> "Tensor":
    """Return the distributions at places, in their order: [k, vocabulary]."""
    import torch

    rows, log_probs = zip(*model.distributions(sentences, places[:, 0], places[:, 1]), strict=True)
    return torch.cat(log_probs)[np.argsort(np.concatenate(rows))]


def compare(
    model: MaskedModel,
    sentences: Sequence[Sentence],
    first: "Tensor",
    index: IndexArray,
    places: IndexArray,
    divergence: Divergence,
) -> Floats:
    """Compute the divergences of first[index] and the distributions at places, each of which is asked of once: [m]."""
    values, (distinct, owner) = np.empty(len(index)), np.unique(places, axis=0, return_inverse=True)
    for rows, log_probs in model.distributions(sentences, *distinct.T):
        row = np.full(len(distinct), -1)
        row[rows] = np.arange(len(rows))
        row = row[owner.reshape(-1)]
        pairs = np.flatnonzero(row >= 0)
        values[pairs] = DIVERGENCES[divergence](first[index[pairs]], log_probs[row[pairs]]).double().cpu().numpy()
    return values


def check_options(divergence: str, weights: str) -> None:
    """Raise BadInput for a divergence or weights that there are not."""
    for (name, choices), value in zip(OPTIONS.items(), (divergence, weights), strict=True):
        if value not in choices:
            raise BadInput(f"{name}: expected one of {', '.join(choices)}, found {value!r}")


def distances(
    model: MaskedModel,
    first_sentences: Sequence[Sentence],
    second_sentences: Sequence[Sentence],
    *,
    divergence: Divergence = "hellinger",
    weights: Weights = "mean",
    mu: float = MU,
) -> Floats:
    """Compute NDD of n pairs of sentences, [n]: at least 0, and 0 for equal sentences.

    With Hellinger's distance it is symmetric and at most the sum of the weights, which is 1 for `mean`; section 3 uses
    both. Where no word is shared, what stands before and behind the sentences is compared (section 3, r = 0; NDD-09).

    The weight is 1 over the number of neighbours (`mean`), 1 (`sum`), or μ to the number of words between a neighbour
    and the nearest word that is none (`distance`).
    """
    totals = np.zeros(len(first_sentences))
    sizes = [min(len(first), len(second)) + 2 for first, second in zip(first_sentences, second_sentences, strict=True)]
    for block in split_blocks(sizes, _BLOCK_WORDS):
        words = _compare(model, first_sentences[block], second_sentences[block], divergence, weights, mu)
        totals[block] = np.bincount(words.pair, words.weight * words.divergence, block.stop - block.start)
    return totals


def explain(
    model: MaskedModel,
    first: Sentence,
    second: Sentence,
    *,
    divergence: Divergence = "hellinger",
    weights: Weights = "mean",
    mu: float = MU,
) -> pl.DataFrame:
    """Split the NDD of two sentences into its parts.

    Returns a row a neighbour: word, place and place_other from 0 (-1 and n before and behind a sentence, where no word
    is shared), divergence, weight, share (their product; shares add up to the distance).
    """
    words = _compare(model, [first], [second], divergence, weights, mu)
    labels = [CLS if place < 0 else SEP if place == len(first) else first[place] for place in words.places[:, 0]]
    places = {"place": words.places[:, 0], "place_other": words.places[:, 1]}
    frame = pl.DataFrame({"word": labels, **places, "divergence": words.divergence, "weight": words.weight})
    return frame.with_columns(share=pl.col("divergence") * pl.col("weight"))


class _Neighbours(NamedTuple):
    """The neighbours of pairs of sentences, one pair after another."""

    pair: IndexArray  # [m]
    places: IndexArray  # [m, 2]: in the first and in the second sentence
    weight: Floats  # [m]
    divergence: Floats  # [m]


def _compare(
    model: MaskedModel,
    first_sentences: Sequence[Sentence],
    second_sentences: Sequence[Sentence],
    divergence: Divergence,
    weights: Weights,
    mu: float,
) -> _Neighbours:
    """Weigh and compare the words that each pair of sentences shares."""
    pairs, places, weight_arrays = [], [], []
    for number, (first, second) in enumerate(zip(first_sentences, second_sentences, strict=True)):
        shared, gaps = align(first, second), np.zeros(1, np.int64)
        if not len(shared):
            shared = np.array([[-1, -1], [len(first), len(second)]])
        elif weights == "distance":
            gaps = measure_gaps(shared, (len(first), len(second)))
        pairs.append(np.full(len(shared), number))
        places.append(shared)
        weight_arrays.append(np.full(len(shared), mu**gaps / (len(shared) if weights == "mean" else 1)))
    pair, place, weight = (np.concatenate(arrays) for arrays in (pairs, places, weight_arrays))
    first_places = np.stack([pair, place[:, 0]], axis=1)
    second_places = np.stack([pair + len(first_sentences), place[:, 1]], axis=1)
    sentences = [*first_sentences, *second_sentences]
    return _Neighbours(pair, place, weight, divergences(model, sentences, first_places, second_places, divergence))


def split_blocks(sizes: Sequence[int], limit: int) -> Iterator[slice]:
    """Split a sequence into slices whose sizes add up to at most `limit`; a larger item has its own slice."""
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if index > start and total + size > limit:
            yield slice(start, index)
            start, total = index, 0
        total += size
    if len(sizes) > start:
        yield slice(start, len(sizes))
