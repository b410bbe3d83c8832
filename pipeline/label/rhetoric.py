"""Names of other figures of speech: the rare ones become one category (CSD-12)."""

import polars as pl

LEAST = 50  # CSD, section 3.2: `other` is what appears less than 50 times
OTHER = "other"


def fold_rare(rhetoric: pl.Series, least: int = LEAST) -> pl.Series:
    """Strip and lower names, blank ones to null; replace those rarer than `least` by `other` (CSD-12)."""
    stripped = rhetoric.cast(pl.String).str.strip_chars().str.to_lowercase().to_frame("name")
    names = stripped.select(pl.when(pl.col("name") != "").then("name"))
    is_rare = pl.col("name").is_not_null() & (pl.len().over("name") < least)
    return names.select(pl.when(is_rare).then(pl.lit(OTHER)).otherwise("name").alias(rhetoric.name)).to_series()
