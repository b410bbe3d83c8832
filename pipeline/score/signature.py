"""The signature of a score: what made it, as text. Scores with different signatures are not to be compared (X-02)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import __version__
from pipeline.errors import BadInput
from pipeline.models import characters

if TYPE_CHECKING:
    import polars as pl

IMPLICITNESS = "implicitness"
ANY = "any"  # the head for every language


def implicitness(
    model_id: str, encoder: str, revision: str, precision: str, lang: str, *, is_kept: bool = False
) -> str:
    """Build the signature of implicitness; languages other than English are marked as an extension (X-07).

    A score of kept embeddings, which are rounded to 16 bits, is marked too.
    """
    precision = "float32" if encoder == characters.NAME else precision  # counts are exact
    scope = lang if lang == "en" else f"{lang}(extension)"
    source = f"model:{model_id[:12]}|encoder:{name_encoder(encoder, revision)}|{precision}{'|kept:float16' * is_kept}"
    return f"{IMPLICITNESS}|{source}|lang:{scope}|undertone:{__version__}"


def with_encoder(metric: str, model_id: str, config: Mapping[str, Any], default: str) -> str:
    """Build the signature of a score by the configuration of its model, which may have been trained on no encoder."""
    encoder = name_encoder(config["encoder"], config["encoder_revision"]) if config.get("encoder") else default
    return f"{metric}|model:{model_id[:12]}|encoder:{encoder}|undertone:{__version__}"


def name_encoder(name: str, revision: str) -> str:
    """Name an encoder and the beginning of its hash, without a folder's path or a hub's commit."""
    return f"{Path(name).name if Path(name).is_absolute() else name.partition('@')[0]}@{revision[:12]}"


def choose_head(lang: str, names: Sequence[str]) -> str:
    """Choose the head for a language: its own, else the one for any language, else the English one."""
    return next(name for name in (lang, ANY, "en", *names) if name in names)


def drop_earlier_scores(rows: "pl.DataFrame", metric: str, columns: Sequence[str]) -> "pl.DataFrame":
    """Drop the columns to be added, if an earlier scoring by the same metric made them; others are BadInput."""
    if not (taken := [name for name in columns if name in rows.columns]):
        return rows
    if "signature" in taken:
        signatures = filter(None, rows["signature"])  # of a row without a text: null, or empty in a file
        if all(str(text).startswith((f"{metric}|", f"{metric}:")) for text in signatures):
            return rows.drop(taken)
    raise BadInput(f"column {taken[0]!r}: the scores have a column of this name; rename yours, or leave it out")
