"""Choose the ImpScore model that answers (the given one, that in force, or the shipped), and score texts by it."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline import settings
from pipeline.errors import Missing, Retry
from pipeline.io.visible import BLANK
from pipeline.progress import OnProgress
from pipeline.score import signature
from pipeline.tasks.record import model_choice
from pipeline.tasks.record.encoders import choose_precision, load_encoder
from pipeline.text.language import detect_language
from pipeline.training.registry import Model

if TYPE_CHECKING:
    from pipeline.models.encoder import Encoder
    from pipeline.score.implicitness import Head

KIND = "impscore"
SHIPPED = model_choice.SHIPPED[KIND]


def choose_model(ref: str | None = None, day: str | None = None) -> model_choice.Choice:
    """Choose the model by its folder, its id or the beginning of it; without `ref`, by the rule of the registry."""
    if choice := model_choice.choose_model(KIND, ref, day):
        return choice
    raise Missing(f"{SHIPPED}: the model that ships with Undertone is missing; install Undertone again")


def find_model_id(day: str | None) -> str:
    """Find the model that scores a day: a rule on the tables, so that scoring a day again uses the same model."""
    return choose_model(None, day).model_id


def load_model(ref: str | None = None, day: str | None = None) -> Model:
    """Load the model that answers, and log which it is."""
    return model_choice.load_model(KIND, ref, day)


SCORE_SCHEMA = {"text_hash": pl.String, "value": pl.Float64, "signature": pl.String}


class LoadedModel(NamedTuple):
    """A model ready to score."""

    model_id: str
    heads: "dict[str, Head]"

    def choose_head(self, lang: str) -> "Head":
        """Choose the head that scores a language."""
        return self.heads[signature.choose_head(lang, list(self.heads))]


def load_heads(ref: str | None, precision: str | None = None) -> LoadedModel:
    """Load the heads of the model that answers, or get them from the two loaded last."""
    choice = choose_model(ref)
    model_choice.log_answer(choice)
    return _load_heads(choice, precision or choose_precision(), settings.threads())


@lru_cache(maxsize=2)
def _load_heads(choice: model_choice.Choice, precision: str, _threads: int) -> LoadedModel:
    from pipeline.score import implicitness

    def load_head_encoder(config: dict[str, Any]) -> "Encoder":
        options = {name: config["recipe"][name] for name in ("pooling", "normalize") if name in config["recipe"]}
        return load_encoder(config, precision=precision, **options)

    model = choice.load()
    if model.model_id != choice.model_id:
        raise Retry(f"{choice.folder}: the model was replaced while it was read")
    return LoadedModel(model.model_id, model.build(implicitness.load_heads, load_head_encoder))


def score_texts(
    rows: pl.DataFrame, ref: str | None, on_progress: OnProgress = lambda _: None, precision: str | None = None
) -> pl.DataFrame:
    """Score rows of text_hash, text and lang; return text_hash, value (implicitness) and signature in their order."""
    from pipeline.score import implicitness

    model = load_heads(ref, precision or choose_precision(for_scores=True))
    rows = rows.with_row_index("_row")
    parts = [pl.DataFrame(schema={"_row": pl.UInt32, **SCORE_SCHEMA})]
    for (lang,), part in rows.partition_by("lang", as_dict=True).items():
        head = model.choose_head(str(lang))
        encoder = (head.encoder.name, head.encoder.revision, head.encoder.precision)
        text = pl.lit(signature.implicitness(model.model_id, *encoder, str(lang)))
        values = pl.Series(implicitness.implicitness(part["text"].to_list(), head, on_progress), dtype=pl.Float64)
        parts.append(part.select("_row", "text_hash", value=values, signature=text))
    return pl.concat(parts).sort("_row").select(list(SCORE_SCHEMA))


def add_scores(
    rows: pl.DataFrame,
    column: str,
    ref: str | None,
    on_progress: OnProgress = lambda _: None,
    lang: pl.Expr | None = None,
) -> pl.DataFrame:
    """Add `implicitness` and `signature` of a text column, null without a text; `lang` replaces each text's own."""
    text = rows[column].fill_null("").str.strip_chars().rename("text")
    langs = pl.DataFrame({"text": text}).select(lang=detect_language()) if lang is None else rows.select(lang=lang)
    texts = langs.with_columns(text=text, text_hash=pl.lit("")).with_row_index("row")
    filled = texts.filter(~pl.col("text").str.contains(BLANK))
    scored = score_texts(filled.drop("row"), ref, on_progress)
    scored = filled.select("row").hstack(scored.select(implicitness="value", signature="signature"))
    scores = texts.select("row").join(scored, on="row", how="left", maintain_order="left").drop("row")
    return rows.drop(scores.columns, strict=False).hstack(scores)  # without the columns of an earlier scoring


def score_triples(rows: pl.DataFrame, ref: str | None, on_progress: OnProgress = lambda _: None) -> pl.DataFrame:
    """Score rows of `pairs`; return pair_id, source, split, i1, i2, i3 (implicitness), near, far (distances)."""
    from pipeline.score import implicitness

    model = load_heads(ref)
    parts = []
    for (lang,), part in rows.partition_by("lang", as_dict=True).items():
        triples = implicitness.score_triples(part, model.choose_head(str(lang)), on_progress)
        parts.append(part.select("pair_id", "source", "split").hstack(triples))
    return pl.concat(parts) if parts else rows.select("pair_id", "source", "split")
