"""The abstractness scorer as tasks: rated words to a model, a model to the concreteness of words (REC-04 to REC-07)."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline import __version__, settings
from pipeline.errors import BadInput
from pipeline.text import concreteness

if TYPE_CHECKING:
    from pipeline.training.abstractness import Source

KIND = "abstractness"
PROFILE = "undertone"
DECIMALS = 6


def ratings(path: Path | None = None) -> concreteness.Ratings:
    """Ratings of a file, as MRC's, or by default those shipped, which are by a language model and say so."""
    return concreteness.read(path) if path else concreteness.embedded()


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
    from pipeline.training import abstractness, registry

    registry.writable(out)
    recipe = abstractness.recipe_of(profile, **(changes or {}))
    source = _source(vectors)
    measured = abstractness.repeated_splits(rated, source, recipe, splits) if splits else pl.DataFrame()
    done = abstractness.fit(rated, source, recipe)
    told = {"profile": profile, "no_vector": done.dropped.height, "vectors": _hash(vectors) if vectors else None}
    registry.write(out, done.tensors, {**done.config, **told})
    return measured


def scores(model: Path, words: Sequence[str], vectors: Path | None = None) -> pl.DataFrame:
    """Concreteness of words, 0 highly abstract to 1 highly concrete; null where a word has no vector.

    Returns:
        word, concreteness, is_imperceptible (under the threshold of section 3.2), signature.
    """
    from pipeline.training import abstractness, registry

    found = registry.read(model.expanduser())
    wanted = found.config.get("vectors")
    if wanted != (_hash(vectors) if vectors else None):
        told = "was trained on word vectors; give the same by --vectors" if wanted else "was trained with an encoder"
        raise BadInput(f"{model}: the scorer {told}")
    trained = abstractness.load(found.tensors(), found.config, _source(vectors))
    rows = pl.DataFrame({"word": words}, schema={"word": pl.String})
    value = pl.Series("concreteness", abstractness.predict(trained, words), pl.Float64)
    by = f"word vectors {wanted[:12]}" if wanted else found.config["encoder"]
    signature = f"{KIND}|model:{found.model_id[:12]}|ratings:{found.config['ratings']}|{by}|undertone:{__version__}"
    return rows.with_columns(
        value.round(DECIMALS).fill_nan(None),
        is_imperceptible=value.fill_nan(None) < concreteness.THRESHOLD,
        signature=pl.lit(signature),
    )


def _source(vectors: Path | None) -> "Source":
    if vectors:
        from pipeline.models import word_vectors

        return word_vectors.read(vectors)
    from pipeline.models import encoder

    return encoder.load(settings.encoder(), settings.precision(), settings.threads())


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as why:
        raise BadInput(f"{path}: cannot be read: {why.strerror}") from why


def overview(measured: pl.DataFrame) -> pl.DataFrame:
    """Splits in one row, as Table 2 has it: Pearson's r on either part, mean and standard deviation (errata E13)."""
    return measured.select(
        splits=pl.len(), train=pl.col("train_count").first(), test=pl.col("test_count").first(),
        pearson_train=pl.col("pearson_train").mean(), pearson=pl.col("pearson").mean(),
        deviation=pl.col("pearson").std(), largest_p=pl.col("p_value").max(),
    )  # fmt: skip
