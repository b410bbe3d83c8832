"""The abstractness scorer as tasks: from rated words to a model, from a model to concreteness (REC-04 to REC-07)."""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline import __version__, left_out, settings
from pipeline.errors import BadInput, check_name
from pipeline.examples.splits import draw_uniform
from pipeline.metrics.resample import Floats
from pipeline.models import word_vectors
from pipeline.models.pinned import hash_model_file
from pipeline.score.signature import name_encoder
from pipeline.tasks.record import model_choice, model_registry, promotion
from pipeline.tasks.record.encoders import choose_precision, hash_encoder, load_encoder
from pipeline.tasks.record.model_registry import TrainedModel
from pipeline.tasks.record.promotion import HeldOut
from pipeline.text import concreteness
from pipeline.training import registry
from pipeline.training.registry import Model

if TYPE_CHECKING:
    from pipeline.models.recam.word_features import Source

log = logging.getLogger(__name__)
KIND = "abstractness"
PROFILE = "undertone"
SPLITS = 10  # on which a scorer of the tables is measured
HELD_OUT = 0.1  # share of the words from which no scorer of the tables learns
UNKNOWN = ("keep", "empty", "drop")  # what becomes of words that a scorer does not know


def read_ratings(path: Path | None = None) -> concreteness.Ratings:
    """Read the ratings of a file such as MRC's; by default those shipped, which a language model made."""
    return concreteness.read(path) if path else concreteness.load_embedded()


def train_file(
    out: Path,
    ratings: concreteness.Ratings,
    vectors: Path | None = None,
    profile: str = PROFILE,
    changes: Mapping[str, Any] | None = None,
    splits: int = 0,
    *,
    force: bool = False,
) -> pl.DataFrame:
    """Train a scorer into a folder, after measuring it on so many random splits of the list (Table 2)."""
    registry.check_writable(out, force=force)
    trained, split_results = _fit(ratings, vectors, profile, changes or {}, splits)
    model_registry.train_into(out, lambda: trained, force=force)
    return split_results


def train(
    day: str,
    ratings: concreteness.Ratings | None = None,
    vectors: Path | None = None,
    run_id: str = "cli",
    *,
    promote: bool = False,
) -> str:
    """Train a scorer into the registry; return the model's id.

    One word in ten is held out. `evaluations` has its mean over ten random splits, and each split (`subset` split:1 …).
    """
    words = ratings or read_ratings()
    is_held_out = draw_uniform(words.rows["word"]) < HELD_OUT
    held_out, train_words = words.rows.filter(is_held_out), words._replace(rows=words.rows.filter(~is_held_out))

    def fit() -> TrainedModel:
        trained = _fit(words, vectors, PROFILE, {}, SPLITS, train_words)[0]
        config = {**trained.config, "held_out": HELD_OUT}
        return replace(trained, config=config, make_held_out=lambda: make_held_out(held_out, train_words.rows, vectors))

    return model_registry.train(day, fit, run_id, promote=promote)


def make_held_out(words: pl.DataFrame, train_words: pl.DataFrame, vectors: Path | None) -> list[HeldOut]:
    """Hold out rated words; the baselines are the mean of the other ratings, and a line through them by word length."""
    if not words.height:
        return []
    gold, train_gold = words["score"].to_numpy(), train_words["score"].to_numpy()
    length = (pl.lit(1.0), pl.col("word").str.len_chars())
    lengths, train_lengths = (rows.select(length).to_numpy() for rows in (words, train_words))
    line = np.linalg.lstsq(train_lengths, train_gold)[0]
    guesses = {"mean": np.full(len(gold), train_gold.mean()), "length": lengths @ line}

    def answer(count: Callable[[Floats], Floats], model: Model) -> Floats:
        if "held_out" not in model.config:
            raise BadInput("it learned from all rated words")
        scores = score_by_model(model, words["word"].to_list(), vectors)["concreteness"]
        return count(scores.fill_null(train_gold.mean()).to_numpy())  # the mean if a word has no vector

    def count_errors(scores: Floats) -> Floats:
        return promotion.count_shares(-((scores - gold) ** 2))

    metrics: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
        "pearson": (partial(promotion.count_products, gold=gold), promotion.compute_correlation),
        "negative_squared_error": (count_errors, promotion.compute_share),
    }
    held_out = []
    for metric, (count, measure) in metrics.items():
        baselines = {name: count(scores) for name, scores in guesses.items()}
        held_out.append(HeldOut(metric=metric, answer=partial(answer, count), baselines=baselines, measure=measure))
    return held_out


def _fit(
    ratings: concreteness.Ratings,
    vectors: Path | None,
    profile: str,
    changes: Mapping[str, Any],
    splits: int,
    train_ratings: concreteness.Ratings | None = None,
) -> tuple[TrainedModel, pl.DataFrame]:
    """Fit a scorer, on a part of the ratings if that is given; return it with its results on each split of all."""
    from pipeline.training.recam import abstractness

    recipe, source = abstractness.make_recipe(profile, **changes), load_source(vectors)
    split_results = abstractness.evaluate_splits(ratings, source, recipe, splits) if splits else pl.DataFrame()
    model = abstractness.fit(train_ratings or ratings, source, recipe)
    without_vector = model.dropped.height
    left_out.record_rows("ratings", dict(ratings.dropped["reason"].value_counts().iter_rows()))
    left_out.record_rows("train", {"no_vector": without_vector})
    evaluations = pl.DataFrame(schema={"metric": pl.String})
    if splits:
        subset = pl.format("split:{}", pl.col("split") + 1)
        of_splits = split_results.select(subset=subset, value="pearson", pair_count="test_count")
        mean = of_splits.head(1).with_columns(subset=pl.lit("all"), value=pl.lit(of_splits["value"].mean()))
        evaluations = pl.concat([mean, of_splits]).with_columns(metric=pl.lit("pearson"))
    config = {**model.config, "profile": profile, "no_vector": without_vector, "vectors": _hash_vectors(vectors)}
    trained = TrainedModel(
        kind=KIND,
        tensors=model.tensors,
        config=config,
        evaluations=model_registry.complete_evaluations(evaluations),
        texts=None,
        summary={"ratings": config["ratings"], "profile": profile},
        data_hash=ratings.revision,
        encoder="word vectors",
        encoder_revision=config["vectors"],
    )
    return trained, split_results


def score_words(
    ref: str | None, words: Sequence[str], vectors: Path | None = None, unknown: str = UNKNOWN[0]
) -> pl.DataFrame:
    """Score the concreteness of words, 0 highly abstract to 1 highly concrete.

    The scorer is one that `load_model` takes, or a file of ratings to use unchanged. Columns: word, concreteness,
    is_imperceptible (under the threshold of section 3.2), reason (why the scorer does not know the word: no_vector,
    not_rated or unknown_word; else null), signature. An encoder scores the pieces of an unknown word: `unknown` is
    keep, empty (no score) or drop (no row).
    """
    check_name("treatment of unknown words", unknown, UNKNOWN)
    path = Path(ref).expanduser() if ref else None
    if path and path.is_file():
        ratings = read_ratings(path)
        origin = ratings.signature
        scores = dict(ratings.rows.select("word", "score").iter_rows())
        rows = pl.DataFrame({"word": words, "concreteness": [scores.get(word.lower()) for word in words]}, strict=False)
        rows = rows.with_columns(reason=pl.when(pl.col("concreteness").is_null()).then(pl.lit("not_rated")))
    else:
        model = load_model(ref, vectors)
        config = model.config
        if config.get("vectors"):
            source = f"word vectors {config['vectors'][:12]}"
        else:
            source = name_encoder(config["encoder"], config["encoder_revision"])
        origin = f"model:{model.model_id[:12]}|ratings:{config['ratings']}|{source}"
        rows = score_by_model(model, words, vectors)
    if unknown == "drop":
        left_out.record_rows("score", dict(rows["reason"].drop_nulls().value_counts().iter_rows()))
        rows = rows.filter(pl.col("reason").is_null())
    elif unknown == "empty":
        rows = rows.with_columns(pl.when(pl.col("reason").is_null()).then("concreteness"))
    return rows.select(
        "word",
        pl.col("concreteness").cast(pl.Float64).round(model_registry.DECIMALS),
        (pl.col("concreteness") < concreteness.THRESHOLD).alias("is_imperceptible"),
        "reason",
        pl.lit(f"{KIND}|{origin}|undertone:{__version__}").alias("signature"),
    )


def score_by_model(model: Model, words: Sequence[str], vectors: Path | None = None) -> pl.DataFrame:
    """Score words with a model: word, concreteness, reason if unknown; BadInput for vectors of another."""
    from pipeline.models.recam import word_features
    from pipeline.training.recam import abstractness

    trained_on = model.config.get("vectors")
    if trained_on != _hash_vectors(vectors):
        origin = "on word vectors; give the same by --vectors" if trained_on else "with an encoder"
        raise BadInput(f"model {model.model_id[:12]}: the scorer was trained {origin}")
    source = load_source(vectors, model.config)
    values = pl.Series(model.build(abstractness.load, source)(words), dtype=pl.Float64).fill_nan(None)
    is_whole = pl.Series(word_features.list_whole(words, source), dtype=pl.Boolean)
    names = pl.Series("word", words, dtype=pl.String)
    rows = pl.DataFrame([names, values.rename("concreteness"), is_whole.rename("is_whole")])
    reason = pl.when(pl.col("concreteness").is_null()).then(pl.lit("no_vector")).when(~pl.col("is_whole"))
    return rows.select("word", "concreteness", reason=reason.then(pl.lit("unknown_word")))


def load_model(ref: str | None, vectors: Path | None = None) -> Model:
    """Load a scorer by its folder or id; by default the one in force, else the one of the shipped ratings."""
    if ref or model_choice.select_model_id(KIND, None):
        return model_choice.load_model(KIND, ref)
    log.info("abstractness: scored by the shipped ratings; no trained scorer is in force")
    from pipeline.training.recam.abstractness import make_recipe

    ratings = read_ratings()
    source = _hash_vectors(vectors) or [hash_encoder(settings.encoder()), settings.encoder_prompt()]
    facts = [ratings.revision, asdict(make_recipe(PROFILE)), source, choose_precision(), __version__]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    folder = settings.scratch("abstractness") / key[:16]
    if not (folder / "config.json").is_file():  # an erasure removes the files of scratch folders
        train_file(folder, ratings, vectors)
    return registry.read(folder)


def load_source(vectors: Path | None, config: Mapping[str, Any] | None = None) -> "Source":
    """Load the source of word vectors: a file in GloVe's format, else a model's encoder or the one in force."""
    return word_vectors.read(vectors) if vectors else load_encoder(config)


def _hash_vectors(path: Path | None) -> str | None:
    try:
        return hash_model_file(path) if path else None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error


def summarize(splits: pl.DataFrame) -> pl.DataFrame:
    """Summarize splits in one row as in Table 2: mean and standard deviation of Pearson's r (errata E13)."""
    return splits.select(
        splits=pl.len(),
        train=pl.col("train_count").first(),
        test=pl.col("test_count").first(),
        pearson_train=pl.col("pearson_train").mean(),
        pearson=pl.col("pearson").mean(),
        deviation=pl.col("pearson").std(),
        largest_p=pl.col("p_value").max(),
    )
