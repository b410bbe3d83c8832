"""The abstractness scorer as tasks: rated words to a model, a model to the concreteness of words (REC-04 to REC-07)."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline import __version__, left_out, settings
from pipeline.errors import BadInput
from pipeline.io.hashes import hash_file
from pipeline.tasks.record import model_registry
from pipeline.tasks.record.model_registry import TrainedModel
from pipeline.text import concreteness

if TYPE_CHECKING:
    from pipeline.models.recam.word_features import Source
    from pipeline.training.registry import Model

KIND = "abstractness"
PROFILE = "undertone"
SPLITS = 10  # on which a scorer of the tables is measured

Scorer = Callable[[Sequence[str]], "np.ndarray[Any, np.dtype[np.float64]]"]
"""Concreteness of words [n]; NaN for those without a vector."""


def read_ratings(path: Path | None = None) -> concreteness.Ratings:
    """Ratings of a file, as MRC's, or by default those shipped, which are by a language model and say so."""
    return concreteness.read(path) if path else concreteness.load_embedded()


def train_file(
    out: Path, rated: concreteness.Ratings, vectors: Path | None = None, profile: str = PROFILE,
    changes: Mapping[str, Any] | None = None, splits: int = 0,
) -> pl.DataFrame:  # fmt: skip
    """Train a scorer into a folder.

    Args:
        out: the folder.
        rated: words with ratings.
        vectors: of words, in GloVe's format; by default the encoder makes them.
        profile: paper or undertone.
        changes: to its numbers.
        splits: of the list at random, on which it is measured first (Table 2); 0: none.

    Returns:
        A row a split: split, train_count, test_count, pearson_train, pearson, p_value.
    """
    from pipeline.training import registry

    registry.writable(out)
    trained, measured = _fit(rated, vectors, profile, changes, splits)
    model_registry.train_into(out, lambda: trained)
    return measured


def train(day: str, rated: concreteness.Ratings | None = None, vectors: Path | None = None, run_id: str = "cli") -> str:
    """Train a scorer into the registry, in force from that day on; the model's id.

    Its numbers in `evaluations` are the mean over ten random splits and the splits themselves (`subset` split:1 …).
    """
    words = rated or read_ratings()
    return model_registry.train(day, lambda: _fit(words, vectors, PROFILE, {}, SPLITS)[0], run_id)


def _fit(
    rated: concreteness.Ratings, vectors: Path | None, profile: str, changes: Mapping[str, Any] | None, splits: int
) -> tuple[TrainedModel, pl.DataFrame]:
    """A scorer, and its numbers on each split."""
    from pipeline.training.recam import abstractness

    recipe = abstractness.recipe_of(profile, **(changes or {}))
    source = load_source(vectors)
    measured = abstractness.repeated_splits(rated, source, recipe, splits) if splits else pl.DataFrame()
    done = abstractness.fit(rated, source, recipe)
    left_out.record_rows("ratings", dict(rated.dropped["reason"].value_counts().iter_rows()))
    left_out.record_rows("train", {"no_vector": done.dropped.height})
    config = {
        **done.config, "profile": profile, "no_vector": done.dropped.height,
        "vectors": _hash_vectors(vectors) if vectors else None,
    }  # fmt: skip
    trained = TrainedModel(
        kind=KIND, tensors=done.tensors, config=config, evaluations=_make_evaluations(measured), texts=None,
        summary={"ratings": config["ratings"], "profile": profile}, data_hash=rated.revision,
        encoder="word vectors", encoder_revision=config["vectors"],
    )  # fmt: skip
    return trained, measured


def _make_evaluations(measured: pl.DataFrame) -> pl.DataFrame:
    """Pearson's r of each split and its mean over them, as rows of `evaluations` without their keys."""
    if measured.is_empty():
        return model_registry.complete_evaluations(pl.DataFrame(schema={"metric": pl.String}))
    each = measured.select(subset=pl.format("split:{}", pl.col("split") + 1), value="pearson", pair_count="test_count")
    mean = each.select(subset=pl.lit("all"), value=pl.col("value").mean(), pair_count=pl.col("pair_count").first())
    rows = pl.concat([mean, each])
    return model_registry.complete_evaluations(
        rows.with_columns(metric=pl.lit("pearson"), split=pl.lit("test"), epoch=pl.lit(0, pl.Int64))
    )


def ensure_default_scorer(vectors: Path | None = None) -> Path:
    """A scorer trained on the ratings shipped, among the resources: made when it is first asked for, in a minute."""
    from pipeline.training.recam.abstractness import recipe_of

    seen = [
        read_ratings().revision,
        asdict(recipe_of(PROFILE)),
        _hash_vectors(vectors) if vectors else settings.encoder(),
    ]
    key = hashlib.sha256(json.dumps([*seen, settings.precision(), __version__]).encode()).hexdigest()
    folder = settings.resources() / f"abstractness-{key[:16]}"
    if not folder.is_dir():
        train_file(folder, read_ratings(), vectors)
    return folder


def load_scorer(model: "Model", vectors: Path | None = None) -> Scorer:
    """A model ready to be asked again and again.

    Raises:
        BadInput: it was trained on other word vectors, or with an encoder and word vectors are given.
    """
    from pipeline.training.recam import abstractness

    wanted = model.config.get("vectors")
    if wanted != (_hash_vectors(vectors) if vectors else None):
        told = "was trained on word vectors; give the same by --vectors" if wanted else "was trained with an encoder"
        raise BadInput(f"model {model.model_id[:12]}: the scorer {told}")
    trained = model.build(abstractness.load, load_source(vectors))
    return lambda words: abstractness.predict(trained, words)


def score_words(ref: str | None, words: Sequence[str], vectors: Path | None = None) -> pl.DataFrame:
    """Concreteness of words, 0 highly abstract to 1 highly concrete; null where a word has no vector.

    Args:
        ref: folder or id of a scorer; None: that in force.
        words: any.
        vectors: those it was trained on, if it was.

    Returns:
        word, concreteness, is_imperceptible (under the threshold of section 3.2), signature.
    """
    model = load_model(ref)
    rows = pl.DataFrame({"word": words}, schema={"word": pl.String})
    value = pl.Series("concreteness", load_scorer(model, vectors)(words), pl.Float64)
    return rows.with_columns(
        value.round(model_registry.DECIMALS).fill_nan(None),
        is_imperceptible=value.fill_nan(None) < concreteness.THRESHOLD,
        signature=pl.lit(format_signature(model)),
    )


def load_model(ref: str | None = None) -> "Model":
    """A scorer by its folder or id; without one that in force."""
    return model_registry.load_model(
        KIND, ref, None, "no scorer is in force; train one: `undertone train abstractness --help`"
    )


def format_signature(model: "Model") -> str:
    """What made a score, as text."""
    found = model.config
    by = f"word vectors {found['vectors'][:12]}" if found.get("vectors") else found["encoder"]
    return f"{KIND}|model:{model.model_id[:12]}|ratings:{found['ratings']}|{by}|undertone:{__version__}"


def load_source(vectors: Path | None = None) -> "Source":
    """What gives words their vectors: a file in GloVe's format, or the encoder in force."""
    if vectors:
        from pipeline.models import word_vectors

        return word_vectors.read(vectors)
    from pipeline.models import encoder

    return encoder.load(settings.encoder(), settings.precision(), settings.threads())


def _hash_vectors(path: Path) -> str:
    try:
        return hash_file(path)
    except OSError as why:
        raise BadInput(f"{path}: cannot be read: {why.strerror}") from why


def summarize(measured: pl.DataFrame) -> pl.DataFrame:
    """Splits in one row, as Table 2 has it: Pearson's r on either part, mean and standard deviation (errata E13)."""
    return measured.select(
        splits=pl.len(), train=pl.col("train_count").first(), test=pl.col("test_count").first(),
        pearson_train=pl.col("pearson_train").mean(), pearson=pl.col("pearson").mean(),
        deviation=pl.col("pearson").std(), largest_p=pl.col("p_value").max(),
    )  # fmt: skip
