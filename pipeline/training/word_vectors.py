"""Word vectors from the comments at hand: skip-gram with negative sampling (Mikolov et al., 2013), by batches.

    -log σ(w_i · c_j) - Σ_n log σ(-w_i · c_n)      i, j neighbours; n drawn from the counts to the power 3/4

The draws of a batch are shared by all its pairs, which makes the sum one matrix product; Adagrad sizes the steps. One
core does about 7 s a million tokens and pass at 100 dimensions. Word2vec's tricks are kept: each word draws how far
it looks, and frequent words are thinned out.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from pipeline.errors import BadInput
from pipeline.models.word_vectors import WordVectors

log = logging.getLogger(__name__)

_SPAN = 1 << 18  # tokens whose pairs are laid out at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How vectors are trained."""

    dim: int = 100
    window: int = 5  # words to either side
    least: int = 3  # words that occur less often have no vector
    negatives: int = 5  # draws a pair
    drawn: int = 64  # draws a batch, shared; each counts negatives / drawn
    sample: float = 1e-4  # words more frequent than this are thinned out
    learning_rate: float = 0.1
    batch: int = 8192  # pairs
    epochs: int = 5
    seed: int = 42


def fit(texts: Iterable[list[str]], recipe: Recipe = Recipe()) -> WordVectors:
    """Vectors of the words that occur often enough, the frequent ones first; the same texts give the same bits.

    Held in memory are the texts as numbers, 4 bytes a token, and the pairs of a quarter of a million tokens.

    Args:
        texts: words of each text. Give each text a second time as its characters, and they have vectors in the same
            space, which is where unknown words get theirs from.
        recipe: hyperparameters.

    Raises:
        BadInput: fewer than two words occur often enough.
    """
    words, tokens, text_of = _numbered(texts, recipe.least)
    if len(words) < 2:
        raise BadInput(f"fewer than two words occur {recipe.least} times: give more texts")
    generator = torch.Generator().manual_seed(recipe.seed)
    counts = torch.bincount(tokens, minlength=len(words)).double()
    keep = ((recipe.sample * len(tokens) / counts).sqrt() + recipe.sample * len(tokens) / counts).clamp(max=1).float()
    odds = (counts**0.75).float()
    inner = (torch.rand(len(words), recipe.dim, generator=generator) - 0.5) / recipe.dim
    outer = torch.zeros(len(words), recipe.dim)
    sums = torch.full_like(inner, 1e-6), torch.full_like(outer, 1e-6)
    weight = recipe.negatives / recipe.drawn
    for epoch in range(1, recipe.epochs + 1):
        loss, seen = 0.0, 0
        for one, other in _pairs(tokens, text_of, keep, recipe, generator):
            drawn = torch.multinomial(odds, recipe.drawn, replacement=True, generator=generator)
            center, near, far = inner[one], outer[other], outer[drawn]
            right, wrong = (center * near).sum(dim=1), center @ far.T
            pull, push = torch.sigmoid(right) - 1, torch.sigmoid(wrong) * weight  # gradients of the loss
            loss -= float(logsigmoid(right).sum() + weight * logsigmoid(-wrong).sum())
            seen += len(one)
            step = pull.unsqueeze(1)
            of_outer = torch.zeros_like(outer).index_add_(0, other, step * center).index_add_(0, drawn, push.T @ center)
            _step(inner, torch.zeros_like(inner).index_add_(0, one, step * near + push @ far), sums[0], recipe)
            _step(outer, of_outer, sums[1], recipe)
        log.info("word vectors, epoch %d of %d: loss %.4f a pair", epoch, recipe.epochs, loss / max(seen, 1))
    return WordVectors(words, inner.numpy())


def _numbered(texts: Iterable[list[str]], least: int) -> tuple[list[str], Tensor, Tensor]:
    """The words that are kept, the tokens as their numbers, and the text of each token."""
    number: dict[str, int] = {}
    tokens = [np.array([number.setdefault(word, len(number)) for word in text], np.int32) for text in texts]
    flat = np.concatenate([np.empty(0, np.int32), *tokens])
    text_of = np.repeat(np.arange(len(tokens), dtype=np.int32), [len(text) for text in tokens])
    count = Counter(dict(enumerate(np.bincount(flat, minlength=len(number)).tolist())))
    every = list(number)
    kept = sorted((one for one, times in count.items() if times >= least), key=lambda one: (-count[one], every[one]))
    place = np.full(len(every), -1, np.int64)
    place[kept] = np.arange(len(kept))
    known = place[flat] >= 0
    words = [every[one] for one in kept]
    return words, torch.from_numpy(place[flat][known]), torch.from_numpy(text_of[known])


def _pairs(
    tokens: Tensor, text_of: Tensor, keep: Tensor, recipe: Recipe, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """Neighbours of a pass over the texts, in shuffled batches: (words [n], words near them [n])."""
    for start in range(0, len(tokens), _SPAN):
        part, text = tokens[start : start + _SPAN], text_of[start : start + _SPAN]
        stays = torch.rand(len(part), generator=generator) < keep[part]
        part, text = part[stays], text[stays]
        reach = torch.randint(1, recipe.window + 1, (len(part),), generator=generator)
        found = []
        for gap in range(1, recipe.window + 1):
            together = text[gap:] == text[:-gap]
            for reaches, first, second in ((reach[:-gap], 0, gap), (reach[gap:], gap, 0)):
                at = torch.nonzero(together & (reaches >= gap)).squeeze(1)
                found.append(torch.stack([part[at + first], part[at + second]]))
        pairs = torch.cat(found, dim=1)
        order = torch.randperm(pairs.shape[1], generator=generator)
        for batch in torch.split(order, recipe.batch):
            yield pairs[0, batch], pairs[1, batch]


def _step(weights: Tensor, gradient: Tensor, squares: Tensor, recipe: Recipe) -> None:
    """Adagrad, in place."""
    squares.addcmul_(gradient, gradient)
    weights.addcdiv_(gradient, squares.sqrt(), value=-recipe.learning_rate)
