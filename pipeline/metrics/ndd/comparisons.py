"""Measures that the distance is compared with: perplexity, its difference, and the cosine of [CLS] (NDD-01, 02).

The paper's section 2.1 prints the mean of -log p as PPL, with a sum that begins at 0; table 10's values look
exponentiated. Both are here under their own names.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import polars as pl

from pipeline.metrics.ndd.model import Floats, MaskedModel, Sentence

if TYPE_CHECKING:
    from torch import Tensor


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
    first, second = (
        perplexity(model, sentences)["log_perplexity"].to_numpy() for sentences in (first_sentences, second_sentences)
    )
    change: Floats = second - first
    return change


def cosine(model: SentenceModel, first_sentences: Sequence[Sentence], second_sentences: Sequence[Sentence]) -> Floats:
    """Compute S_C, the cosine of the [CLS] states of each pair: [n] in [-1, 1] (section 2.1)."""
    first, second = (
        model.sentence_vectors(sentences).double().cpu().numpy() for sentences in (first_sentences, second_sentences)
    )
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    similarity: Floats = np.einsum("nd,nd->n", first, second) / np.maximum(norms, np.finfo(np.float64).tiny)
    return similarity.clip(-1, 1)
