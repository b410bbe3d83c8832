"""Texts to implicitness by a model, on any frame: what tasks and commands that score have in common."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline import settings
from pipeline.errors import Retry
from pipeline.score import signature
from pipeline.tasks.impscore import in_force
from pipeline.text.language import detect_language

if TYPE_CHECKING:
    from pipeline.models.encoder import Encoder
    from pipeline.models.impscore import Meaning
    from pipeline.score.implicitness import Head

VALUES = {"text_hash": pl.String, "value": pl.Float64, "signature": pl.String}


class Loaded(NamedTuple):
    """A model ready to score."""

    model_id: str
    heads: "dict[str, Head]"


def load_heads(ref: str | None) -> Loaded:
    """The heads of a model; a few are kept loaded."""
    return _heads(ref, in_force.load_model(ref).model_id, settings.precision(), settings.threads())


@lru_cache(maxsize=2)
def _heads(ref: str | None, model_id: str, precision: str, threads: int) -> Loaded:
    from pipeline.models import encoder as encoders
    from pipeline.score import implicitness as scoring

    def load(about: dict[str, Any]) -> "Encoder":
        name, revision = about["encoder"], about["encoder_revision"]
        pinned = f"{name}@{revision}" if len(revision) == 40 and not Path(name).exists() else name  # a hub commit
        return encoders.load(pinned, precision, threads, pooling=about["recipe"].get("pooling", "model"))

    model = in_force.load_model(ref)
    if model.model_id != model_id:
        raise Retry(f"{ref}: the model was replaced while it was read")
    return Loaded(model.model_id, model.build(scoring.load_heads, load))


def score_texts(rows: pl.DataFrame, model_id: str | None, done: Callable[[int], None] = lambda _: None) -> pl.DataFrame:
    """Implicitness and signature of (text_hash, text, lang) rows, in their order.

    `model_id` may be whatever `in_force.load_model` knows.
    """
    from pipeline.score import implicitness as scoring

    loaded = load_heads(model_id)
    names = list(loaded.heads)
    rows = rows.with_row_index("_at")
    found = [pl.DataFrame(schema={"_at": pl.UInt32, **VALUES})]
    for (lang,), part in rows.partition_by("lang", as_dict=True).items():
        head = loaded.heads[signature.choose_head(str(lang), names)]
        by = signature.implicitness(
            loaded.model_id, head.encoder.name, head.encoder.revision, head.encoder.precision, str(lang)
        )
        scored = pl.Series(scoring.implicitness(part["text"].to_list(), head, done), dtype=pl.Float64)
        found.append(part.select("_at", "text_hash", value=scored, signature=pl.lit(by)))
    return pl.concat(found).sort("_at").select(list(VALUES))


def add_scores(
    rows: pl.DataFrame,
    column: str,
    model_id: str | None,
    done: Callable[[int], None] = lambda _: None,
    lang: pl.Expr | None = None,
) -> pl.DataFrame:
    """Any frame with `implicitness` and `signature` of its text column added; both null where there is no text.

    `lang`, over the frame, is each text's own language unless it is given.
    """
    text = rows[column].fill_null("").str.strip_chars().rename("text")
    langs = pl.DataFrame({"text": text}).select(lang=detect_language()) if lang is None else rows.select(lang=lang)
    said = langs.with_columns(text=text, text_hash=pl.lit(""))
    held = text != ""
    said = said.filter(held)
    scored = score_texts(said, model_id, done)
    at = pl.DataFrame({"at": held.arg_true()}).hstack(scored.select(implicitness="value", signature="signature"))
    every = pl.DataFrame({"at": pl.int_range(rows.height, eager=True, dtype=pl.UInt32)})
    found = every.join(at, on="at", how="left", maintain_order="left").drop("at")
    return rows.drop(found.columns, strict=False).hstack(found)  # without what an earlier scoring added


def score_triples(
    rows: pl.DataFrame, model_id: str | None, done: Callable[[int], None] = lambda _: None
) -> pl.DataFrame:
    """What a model says of rows of `pairs`: pair_id, source, split, i1, i2, i3, near, far."""
    from pipeline.score import implicitness as scoring

    loaded = load_heads(model_id)
    found = []
    for (lang,), part in rows.partition_by("lang", as_dict=True).items():
        head = loaded.heads[signature.choose_head(str(lang), list(loaded.heads))]
        found.append(part.select("pair_id", "source", "split").hstack(scoring.score_triples(part, head, done)))
    return pl.concat(found) if found else rows.select("pair_id", "source", "split")


def embed_meanings(said: Sequence[str], lang: str, model_id: str | None) -> "Meaning":
    """Meanings of texts of one language by a model."""
    from pipeline.score import implicitness as scoring

    known = load_heads(model_id).heads
    return scoring.compute_meanings(said, known[signature.choose_head(lang, list(known))])
