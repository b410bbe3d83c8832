"""Word vectors from texts: skip-gram with negative sampling (Mikolov et al., 2013), in batches.

    -log σ(w_i · c_j) - Σ_n log σ(-w_i · c_n)      i, j neighbours; n drawn from the counts to the power 3/4

All pairs of a batch share the negative samples, which makes the sum one matrix product; Adagrad sets the step sizes. As
in word2vec, each word draws its own window size, and frequent words are subsampled.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from pipeline.errors import BadInput
from pipeline.models.word_vectors import WordVectors
from pipeline.progress import iterate

log = logging.getLogger(__name__)
_SPAN = 1 << 18  # tokens whose pairs are in memory at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The hyperparameters of word vectors."""

    dim: int = 100
    window: int = 5  # words on either side
    least: int = 3  # rarer words get no vector
    negatives: int = 5  # negative samples a pair
    shared: int = 64  # negative samples a batch, shared by its pairs; each counts negatives / shared
    sample: float = 1e-4  # words more frequent than this are subsampled
    learning_rate: float = 0.1
    batch: int = 8192  # pairs
    epochs: int = 5
    seed: int = 42


def fit(texts: Iterable[list[str]], recipe: Recipe = Recipe()) -> WordVectors:
    """Train vectors of the frequent words, sorted by count; the same texts give the same bits.

    Pass each text a second time as its characters to give them vectors in the same space; unknown words get theirs from
    these. Memory holds the token ids, 4 bytes each. BadInput if fewer than two words are frequent enough.
    """
    words, tokens, text_of = _number_tokens(texts, recipe.least)
    if len(words) < 2:
        raise BadInput(f"fewer than two words occur {recipe.least} times: give more texts")
    generator = torch.Generator().manual_seed(recipe.seed)
    counts = torch.bincount(tokens, minlength=len(words)).double()
    share = recipe.sample * len(tokens) / counts
    keep = (share.sqrt() + share).clamp(max=1).float()
    odds = (counts**0.75).float()
    inner = (torch.rand(len(words), recipe.dim, generator=generator) - 0.5) / recipe.dim
    outer = torch.zeros(len(words), recipe.dim)
    inner_squares, outer_squares = torch.full_like(inner, 1e-6), torch.full_like(outer, 1e-6)
    weight = recipe.negatives / recipe.shared
    for epoch in iterate(range(1, recipe.epochs + 1), "epochs"):
        loss, pair_count = 0.0, 0
        for centers, neighbours in _draw_pairs(tokens, text_of, keep, recipe, generator):
            samples = torch.multinomial(odds, recipe.shared, replacement=True, generator=generator)
            center, near, far = inner[centers], outer[neighbours], outer[samples]
            near_scores, far_scores = (center * near).sum(dim=1), center @ far.T
            loss -= float(logsigmoid(near_scores).sum() + weight * logsigmoid(-far_scores).sum())
            pair_count += len(centers)
            pull = (torch.sigmoid(near_scores) - 1).unsqueeze(1)  # gradients of the loss
            push = torch.sigmoid(far_scores) * weight
            outer_gradient = torch.zeros_like(outer).index_add_(0, neighbours, pull * center)
            outer_gradient.index_add_(0, samples, push.T @ center)
            inner_gradient = torch.zeros_like(inner).index_add_(0, centers, pull * near + push @ far)
            _apply_adagrad(inner, inner_gradient, inner_squares, recipe)
            _apply_adagrad(outer, outer_gradient, outer_squares, recipe)
        log.info("word vectors, epoch %d of %d: loss %.4f a pair", epoch, recipe.epochs, loss / max(pair_count, 1))
    return WordVectors(words, inner.numpy())


def _number_tokens(texts: Iterable[list[str]], least: int) -> tuple[list[str], Tensor, Tensor]:
    """Return the frequent words, the ids of their tokens, and the text number of each token."""
    id_of: dict[str, int] = {}
    ids = [np.array([id_of.setdefault(word, len(id_of)) for word in text], np.int32) for text in texts]
    tokens = np.concatenate([np.empty(0, np.int32), *ids])
    text_of = np.repeat(np.arange(len(ids), dtype=np.int32), [len(text) for text in ids])
    counts = np.bincount(tokens, minlength=len(id_of))
    words = list(id_of)
    order = sorted(np.flatnonzero(counts >= least).tolist(), key=lambda number: (-counts[number], words[number]))
    new_ids = np.full(len(words), -1, np.int64)
    new_ids[order] = np.arange(len(order))
    tokens = new_ids[tokens]
    is_frequent = tokens >= 0
    frequent_words = [words[number] for number in order]
    return frequent_words, torch.from_numpy(tokens[is_frequent]), torch.from_numpy(text_of[is_frequent])


def _draw_pairs(
    tokens: Tensor, text_of: Tensor, keep: Tensor, recipe: Recipe, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the neighbours of an epoch in shuffled batches: words [n] and words near them [n]."""
    for start in range(0, len(tokens), _SPAN):
        words, text = tokens[start : start + _SPAN], text_of[start : start + _SPAN]
        is_sampled = torch.rand(len(words), generator=generator) < keep[words]
        words, text = words[is_sampled], text[is_sampled]
        reach = torch.randint(1, recipe.window + 1, (len(words),), generator=generator)
        parts = []
        for gap in range(1, recipe.window + 1):
            is_same_text = text[gap:] == text[:-gap]
            for reaches, center_shift, shift in ((reach[:-gap], 0, gap), (reach[gap:], gap, 0)):
                rows = torch.nonzero(is_same_text & (reaches >= gap)).squeeze(1)
                parts.append(torch.stack([words[rows + center_shift], words[rows + shift]]))
        pairs = torch.cat(parts, dim=1)
        order = torch.randperm(pairs.shape[1], generator=generator)
        for batch in torch.split(order, recipe.batch):
            yield pairs[0, batch], pairs[1, batch]


def _apply_adagrad(weights: Tensor, gradient: Tensor, squares: Tensor, recipe: Recipe) -> None:
    squares.addcmul_(gradient, gradient)
    weights.addcdiv_(gradient, squares.sqrt(), value=-recipe.learning_rate)
