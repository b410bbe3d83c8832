"""One head of a model: an encoder, ImpScore fitted on it, and what it says of the texts at hand."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import torch
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.examples.impscore.negatives import add_negatives
from pipeline.examples.impscore.pairs import balance_lengths
from pipeline.models.encoder import Encoder
from pipeline.models.impscore import Meaning, pragmatic_distance
from pipeline.models.vectors import load_or_encode
from pipeline.training.impscore import fit as impscore
from pipeline.training.impscore.corpus import make_corpus
from pipeline.training.impscore.embedding import Embedding, Frozen, Tuned
from pipeline.training.impscore.fit import Recipe

log = logging.getLogger(__name__)


class Head(NamedTuple):
    """A fitted head and its numbers, row by row."""

    tensors: dict[str, Tensor]
    config: dict[str, Any]
    history: pl.DataFrame  # epoch, value, count
    triples: pl.DataFrame  # pair_id, source, split, i1, i2, i3, near, far: a row a pair
    graded: pl.DataFrame  # group, level, text, split, value, and pragmatic: its features


def fit(
    pairs: pl.DataFrame,
    groups: pl.DataFrame | None,
    recipe: Recipe,
    encoder: Encoder,
    embeddings: Path,
    state: Path | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Head:
    """Fit one head.

    Args:
        pairs: rows of the table `pairs`.
        groups: group, level, text, split, if groups are learnt from.
        recipe: hyperparameters.
        encoder: a loaded encoder, with the recipe's pooling.
        embeddings: folder of the embedding files.
        state: file from which an interrupted training goes on.
        on_progress: told how many sentences each batch encoded.
    """
    full_corpus = make_corpus(pairs, groups)
    embedding: Embedding
    if recipe.tune == "none":
        embedding = Frozen(load_or_encode(embeddings, encoder, full_corpus.texts, on_progress), encoder.last)
    else:
        embedding = Tuned(encoder, full_corpus.texts, recipe.tune, torch.Generator().manual_seed(recipe.seed))
    train_corpus = full_corpus
    if recipe.is_balanced or recipe.has_hard_negatives:
        train = pairs.filter(pl.col("split") == "train")
        if recipe.is_balanced:
            train = balance_lengths(train, recipe.seed)
            log.info(
                "learning from %d of %d length-matched pairs", len(train), len(full_corpus.select_triples("train"))
            )
        if recipe.has_hard_negatives:
            train = _add_hard_negatives(train, recipe.seed, encoder, embeddings)
        train_corpus = full_corpus.replace_train(train)
    if not len(train_corpus.select_triples("train")) and not (
        recipe.group_sharpness and train_corpus.select_groups("train")
    ):
        reason = (
            "; none is left once lengths are matched (is_balanced)" if len(full_corpus.select_triples("train")) else ""
        )
        raise BadInput(f"there is nothing to train on: no pair has the split train{reason}")
    result = impscore.fit(train_corpus, embedding, recipe, state)
    meanings = impscore.compute_meanings(torch.arange(len(full_corpus.texts)), result.model, embedding)
    meanings = Meaning(*(field.cpu() for field in meanings))
    config = {"encoder": encoder.name, "encoder_revision": encoder.revision, "recipe": result.recipe}
    graded = full_corpus.groups.with_columns(
        value=pl.Series(meanings.implicitness[full_corpus.graded].double().numpy()),
        pragmatic=pl.Series(meanings.pragmatic[full_corpus.graded].numpy()),
    )
    return Head(
        result.tensors,
        config,
        result.history,
        _measure_triples(pairs, full_corpus.triples, meanings, result.model.design.pragmatics),
        graded,
    )


def _add_hard_negatives(train: pl.DataFrame, seed: int, encoder: Encoder, embeddings: Path) -> pl.DataFrame:
    """Pairs with negatives that are near to their own explicit sentences, by the encoder as it comes."""
    vectors = load_or_encode(embeddings, encoder, train["explicit"].to_list())[:, -encoder.last :]
    hard_pairs, _ = add_negatives(train.drop("negative"), seed, vectors)
    return hard_pairs.select(train.columns)


def _measure_triples(pairs: pl.DataFrame, rows: Tensor, meanings: Meaning, metric: Any) -> pl.DataFrame:
    s1, s2, s3 = (meanings.select(rows[:, side]) for side in range(3))
    numbers = {f"i{n}": s.implicitness.double().numpy() for n, s in enumerate((s1, s2, s3), 1)}
    near, far = (pragmatic_distance(s1, s, metric).double().numpy() for s in (s2, s3))
    return pairs.select("pair_id", "source", "split").with_columns(**numbers, near=near, far=far)
