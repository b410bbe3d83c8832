"""The signature of a score: what made it, as text. Scores with different signatures are not to be compared (X-02)."""

import polars as pl

from pipeline import __version__

IMPLICITNESS = "implicitness"


def implicitness(model_id: str, encoder: str, revision: str, precision: str, lang: str = "lang") -> pl.Expr:
    """Signature of implicitness by a model. ImpScore is English: other languages are marked an extension (X-07)."""
    stem = f"{IMPLICITNESS}|model:{model_id[:12]}|encoder:{encoder}@{revision[:12]}|{precision}"
    scope = pl.when(pl.col(lang) == "en").then(pl.lit("en")).otherwise(pl.col(lang) + "(extension)")
    return pl.format(f"{stem}|lang:{{}}|undertone:{__version__}", scope)
