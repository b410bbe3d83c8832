"""Names of other figures of speech: the rare ones become one category (CSD-12)."""

import polars as pl

LEAST = 50  # CSD, section 3.2: `other` is what appears less than 50 times
OTHER = "other"


def fold_rare(rhetoric: pl.Series, least: int = LEAST) -> pl.Series:
    """Strip names, put them in lower case, and replace those that occur fewer than `least` times by `other` (CSD-12).

    Null stays null, and a name of nothing but spaces becomes null.
    """
    stripped = rhetoric.cast(pl.String).str.strip_chars().str.to_lowercase().to_frame("name")
    names = stripped.select(pl.when(pl.col("name") != "").then("name"))
    is_rare = pl.col("name").is_not_null() & (pl.len().over("name") < least)
    return names.select(pl.when(is_rare).then(pl.lit(OTHER)).otherwise("name").alias(rhetoric.name)).to_series()
