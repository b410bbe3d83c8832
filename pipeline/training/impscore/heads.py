"""One head of a model: ImpScore fitted on an encoder, and its numbers for the training texts."""

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
from pipeline.models.encoder import Encoder, describe_encoder
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
    """Fit one head on rows of `pairs` and, if there is a training on groups, on groups: group, level, text, split.

    The encoder has the recipe's pooling; `embeddings` is the folder of embedding files. An interrupted training resumes
    from the file `state`. `on_progress` gets the number of sentences of each encoded batch.
    """
    full_corpus = make_corpus(pairs, groups)
    embedding: Embedding
    if recipe.tune == "none":
        embedding = Frozen(load_or_encode(embeddings, encoder, full_corpus.texts, on_progress), encoder.last)
    else:
        embedding = Tuned(encoder, full_corpus.texts, recipe.tune, torch.Generator().manual_seed(recipe.seed))
    train = train_pairs = pairs.filter(pl.col("split") == "train")
    if recipe.is_balanced:
        train = balance_lengths(train, recipe.seed)
        log.info("learning from %d of %d length-matched pairs", len(train), len(train_pairs))
    if recipe.has_hard_negatives:  # near to their pairs' explicit sentences, by the encoder before its training
        vectors = load_or_encode(embeddings, encoder, train["explicit"].to_list())[:, -encoder.last :]
        train = add_negatives(train.drop("negative"), recipe.seed, vectors)[0].select(train.columns)
    if not len(train) and not (recipe.group_sharpness and full_corpus.select_groups("train")):
        reason = "; none is left once lengths are matched (is_balanced)" if len(train_pairs) else ""
        raise BadInput(f"there is nothing to train on: no pair has the split train{reason}")
    train_corpus = full_corpus if train is train_pairs else full_corpus.replace_train(train)
    result = impscore.fit(train_corpus, embedding, recipe, state)
    meanings = impscore.compute_meanings(torch.arange(len(full_corpus.texts)), result.model, embedding)
    meanings = Meaning(*(field.cpu() for field in meanings))
    config = {**describe_encoder(encoder), "recipe": result.recipe}
    graded = full_corpus.groups.with_columns(
        value=pl.Series(meanings.implicitness[full_corpus.graded].double().numpy()),
        pragmatic=pl.Series(meanings.pragmatic[full_corpus.graded].numpy()),
    )
    sides = [meanings.select(full_corpus.triples[:, side]) for side in range(3)]
    numbers = {f"i{n}": side.implicitness.double().numpy() for n, side in enumerate(sides, 1)}
    for name, side in (("near", sides[1]), ("far", sides[2])):
        distances = pragmatic_distance(sides[0], side, result.model.design.pragmatics)
        numbers[name] = distances.double().numpy()
    triples = pairs.select("pair_id", "source", "split").with_columns(**numbers)
    return Head(result.tensors, config, result.history, triples, graded)
