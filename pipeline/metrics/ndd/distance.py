"""Neighbouring Distribution Divergence of sentences (NDD, section 2.2; NDD-03 to NDD-09), and what it is compared with.

    NDD(W, W') = Σ_w a_w F(q_w, q'_w)

over the words w that both sentences have in order, q_w the distribution that a masked language model has at the place
of w in W when w is masked, q'_w the same in W'. F is Hellinger's distance (section 3) or the Kullback-Leibler
divergence (section 4.2).

The weights are those of the neighbours of a deleted span (appendix C; NDD-17 to 20; errata E17): a span is (start,
end), from 0, the end not included; its neighbours are the words left and right of it, in order, and d is the number of
words between a neighbour and it. The paper says once that weights go inversely with nearness; its formula μ^d has the
near ones heavier, as here. Its section 2.1 prints the mean of -log p as PPL; table 10's values look exponentiated.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import check_name

if TYPE_CHECKING:
    from torch import Tensor

Floats = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]
Sentence = Sequence[str]


class MaskedModel(Protocol):
    """Distributions over a vocabulary for words that are masked one at a time."""

    @property
    def signature(self) -> str:
        """Return kind, name, revision and options, on which distances depend."""

    def distributions(
        self, sentences: Sequence[Sentence], sentence: IndexArray, place: IndexArray
    ) -> Iterator["tuple[IndexArray, Tensor]"]:
        """Yield log probabilities of the vocabulary with one word masked, a batch at a time.

        An ask is a sentence and the place of a word in it, [m] each. Place -1 is what stands before the first word
        ([CLS]), place n what stands behind the last of n ([SEP]); nothing is masked there (NDD-09).

        Yields:
            Rows of the asks [b], in any order, each once; and the log probabilities, [b, vocabulary].
        """

    def surprisals(self, sentences: Sequence[Sentence]) -> list[Floats]:
        """Return -log p in nats of each unit (piece or word) of each sentence, masked alone (section 2.1; NDD-01)."""


def align(first: Sentence, second: Sentence) -> IndexArray:
    """Align two sentences by their longest common subsequence: places in both, [k, 2], ascending.

    Of several longest subsequences one is fixed: first the common start and end, then from the left it skips words of
    the sentence that sorts first, as long as possible. So the result is the same for (A, B) and (B, A).
    """
    if tuple(second) < tuple(first):
        return align(second, first)[:, ::-1]
    limit = min(len(first), len(second))
    start = next((i for i in range(limit) if first[i] != second[i]), limit)
    end = next((i for i in range(limit - start) if first[-1 - i] != second[-1 - i]), limit - start)
    middle = _align_middle(first[start : len(first) - end], second[start : len(second) - end])
    pairs = [(i, i) for i in range(start)] + [(i + start, j + start) for i, j in middle]
    pairs += [(len(first) - i, len(second) - i) for i in range(end, 0, -1)]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _align_middle(first: Sentence, second: Sentence) -> list[tuple[int, int]]:
    longest = np.zeros((len(first) + 1, len(second) + 1), np.int64)  # of what begins at both places
    for i in range(len(first) - 1, -1, -1):
        for j in range(len(second) - 1, -1, -1):
            is_same = first[i] == second[j]
            longest[i, j] = longest[i + 1, j + 1] + 1 if is_same else max(longest[i + 1, j], longest[i, j + 1])
    pairs, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        if first[i] == second[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1, j] >= longest[i, j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def measure_gaps(places: IndexArray, lengths: tuple[int, int]) -> IndexArray:
    """Count the words between each neighbour and the nearest word, in either sentence, that is none: [k].

    Next to such a word it is 0, as the released code counts; |k - i| as printed in appendix C would be 1 more, which is
    a factor μ in every weight. Where all words are neighbours it is 0. Places are those of `align`.
    """
    distance = np.full(len(places), np.iinfo(np.int64).max)
    for side, length in enumerate(lengths):
        is_other = np.ones(length, bool)
        is_other[places[:, side]] = False
        if not is_other.any():
            continue
        side_places, other_places = places[:, side], np.flatnonzero(is_other)
        next_index = np.searchsorted(other_places, side_places)
        previous = other_places[np.clip(next_index - 1, 0, None)]
        following = other_places[np.clip(next_index, None, len(other_places) - 1)]
        gaps = np.minimum(np.abs(previous - side_places), np.abs(following - side_places))
        distance = np.minimum(distance, gaps - 1)
    return np.where(distance == np.iinfo(np.int64).max, 0, distance)


MU = 0.9  # fixed in the paper (NDD-17)


def exponential(length: int, start: int, end: int, mu: float = MU) -> Floats:
    """Compute μ^d of each neighbour, [length - (end - start)]; the total is less where the span is at an end."""
    return mu ** np.concatenate(_measure_sides(length, start, end))


def balanced(length: int, start: int, end: int, mu: float = MU) -> Floats:
    """Compute μ^d + μ^(d + m), m neighbours on the other side: the same total for every place of the span (E17).

    The total is 2 (1 - μ^n) / (1 - μ) of n neighbours, which the paper claims for its own formula.
    """
    before, after = _measure_sides(length, start, end)
    return np.concatenate([mu**before + mu ** (before + len(after)), mu**after + mu ** (after + len(before))])


def printed(length: int, start: int, end: int, mu: float = MU) -> Floats:
    """Compute a'_k = a_k + a_(n' - k) μ^n' as in appendix C, k from 1 to n' neighbours; a_0 is before the first.

    Here a word that touches the span has μ, as min(|k - i|, |k - j|) is 1 there, and not 1 as in the others. For twelve
    words and a span of two the totals vary by more than a quarter (E17).
    """
    neighbours = length - (end - start)
    place = np.stack([np.arange(1, neighbours + 1), np.arange(neighbours - 1, -1, -1)])
    plain, mirrored = mu ** np.where(place <= start, start - place + 1, place - start).astype(np.float64)
    return np.asarray(plain + mirrored * mu**neighbours)


def released(length: int, start: int, end: int, mu: float = MU) -> Floats:
    """Compute the released code's μ^d + μ^(d + n' - d'), d' the distance of the neighbour as far from the other end.

    For twelve words and a span of two the totals go from 10.67 to 11.68 (E17).
    """
    d = np.concatenate(_measure_sides(length, start, end))
    return mu**d + mu ** (d + len(d) - d[::-1])


def decay(length: int, start: int, end: int, nu: float) -> Floats:
    """b: ν^k of the k-th word, from 0, among the neighbours; below 1 later words are dropped more easily (NDD-19)."""
    return np.float64(nu) ** np.arange(length - (end - start))


def _measure_sides(length: int, start: int, end: int) -> tuple[Floats, Floats]:
    """Measure the distances of the neighbours left of the span, and of those right of it."""
    return np.arange(start - 1, -1, -1, dtype=np.float64), np.arange(length - end, dtype=np.float64)


WEIGHTS: dict[str, Callable[..., Floats]]
WEIGHTS = {"balanced": balanced, "exponential": exponential, "printed": printed, "released": released}
"""Weights of all neighbours by name."""


Divergence = Literal["hellinger", "kl", "kl_reversed"]
Weights = Literal["mean", "sum", "distance"]
CACHE_SIZE = 256  # of 30,000 words 30 MB
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


def choose_cache_size(model: MaskedModel) -> int:
    """Return how many distributions of first sentences are kept at a time: what the model has room for, or 256."""
    return getattr(model, "cache_size", 0) or CACHE_SIZE


def divergences(
    model: MaskedModel,
    sentences: Sequence[Sentence],
    first_places: IndexArray,
    second_places: IndexArray,
    divergence: Divergence,
    cache_size: int | None = None,
) -> Floats:
    """Compute the divergence of the distributions at two places, for m pairs of places: [m].

    A place that several pairs share is asked of once. A model with a method `unchanged` is not asked where it
    reports that both distributions are equal. Memory holds `cache_size` distributions (see `choose_cache_size`) and one
    batch of the model. Places are sentence and place, [m, 2], as `MaskedModel` has them.
    """
    cache_size = cache_size or choose_cache_size(model)
    values, queries = np.zeros(len(first_places)), np.arange(len(first_places))
    if hasattr(model, "unchanged"):  # counts see two neighbours alone, and most places keep theirs
        queries = np.flatnonzero(~model.unchanged(sentences, first_places, second_places))
    distinct_places, owner = index_places(first_places[queries])
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
    import torch

    distinct, owner = index_places(places)
    parts = []
    for rows, log_probs in model.distributions(sentences, *distinct.T):
        row = np.full(len(distinct), -1)
        row[rows] = np.arange(len(rows))
        row = row[owner]
        pairs = np.flatnonzero(row >= 0)
        first_rows, second_rows = (
            torch.from_numpy(part[pairs]).to(first.device, non_blocking=True) for part in (index, row)
        )
        parts.append((pairs, DIVERGENCES[divergence](first[first_rows], log_probs[second_rows])))
    values = np.empty(len(index))
    for pairs, part in parts:  # all batches first: to fetch values from a GPU is to wait for it
        values[pairs] = part.double().cpu().numpy()
    return values


def index_places(places: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return the distinct places, in order, and which of them each is: [k, 2], [m]; words are counted from -1."""
    width = places[:, 1].max(initial=0) + 2
    _, first, owner = np.unique(places @ [width, 1], return_index=True, return_inverse=True)
    return places[first], owner


def check_options(divergence: str, weights: str) -> None:
    """Raise BadInput for a divergence or weights that there are not."""
    check_name("divergence", divergence, get_args(Divergence))
    check_name("weights", weights, get_args(Weights))


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
        sides = first_sentences[block], second_sentences[block]
        pair, _, weight, values = _compare(model, *sides, divergence, weights, mu)
        totals[block] = np.bincount(pair, weight * values, block.stop - block.start)
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
    _, places, weight, values = _compare(model, [first], [second], divergence, weights, mu)
    labels = [CLS if place < 0 else SEP if place == len(first) else first[place] for place in places[:, 0]]
    columns = {"word": labels, "place": places[:, 0], "place_other": places[:, 1]}
    return pl.DataFrame({**columns, "divergence": values, "weight": weight, "share": values * weight})


def _compare(
    model: MaskedModel,
    first_sentences: Sequence[Sentence],
    second_sentences: Sequence[Sentence],
    divergence: Divergence,
    weights: Weights,
    mu: float,
) -> tuple[IndexArray, IndexArray, Floats, Floats]:
    """Weigh and compare the words that pairs of sentences share: pair [m], both places [m, 2], weight, divergence."""
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
    return pair, place, weight, divergences(model, sentences, first_places, second_places, divergence)


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


class SentenceModel(Protocol):
    """A model with a vector for each sentence."""

    def sentence_vectors(self, sentences: Sequence[Sentence]) -> "Tensor":
        """Return the state of [CLS] of each sentence, [n, d]."""


def perplexity(model: MaskedModel, sentences: Sequence[Sentence]) -> pl.DataFrame:
    """Compute the perplexity of sentences with each word masked alone (section 2.1).

    Returns log_perplexity, the mean of -log p in nats, and perplexity, its exponential: a row a sentence, null for one
    without words.
    """
    means = [float(np.mean(values)) if len(values) else None for values in model.surprisals(sentences)]
    frame = pl.DataFrame({"log_perplexity": pl.Series(means, dtype=pl.Float64)})
    return frame.with_columns(perplexity=pl.col("log_perplexity").exp())


def perplexity_change(
    model: MaskedModel, first_sentences: Sequence[Sentence], second_sentences: Sequence[Sentence]
) -> Floats:
    """Compute ΔPPL, the rise of log perplexity from the first to the second sentence of each pair: [n], signed.

    Pairs are separated by its absolute value. It costs one call for each piece of both sentences (table 2).
    """
    first, second = (perplexity(model, side)["log_perplexity"] for side in (first_sentences, second_sentences))
    return (second - first).to_numpy()


def cosine(model: SentenceModel, first_sentences: Sequence[Sentence], second_sentences: Sequence[Sentence]) -> Floats:
    """Compute S_C, the cosine of the [CLS] states of each pair: [n] in [-1, 1] (section 2.1)."""
    sides = first_sentences, second_sentences
    first, second = (model.sentence_vectors(side).double().cpu().numpy() for side in sides)
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    dots = np.einsum("nd,nd->n", first, second)
    return np.asarray((dots / np.maximum(norms, np.finfo(np.float64).tiny)).clip(-1, 1))
