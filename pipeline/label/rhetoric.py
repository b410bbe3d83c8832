"""Names of other figures of speech: the rare ones become one category (CSD-12)."""

from typing import NamedTuple

import polars as pl

LEAST = 50  # CSD, section 3.2: `other` is what appears less than 50 times
OTHER = "other"


class FoldedNames(NamedTuple):
    """The names with the rare ones folded, and how often each occurs."""

    names: pl.Series  # as long as what was given, in lower case and stripped; null where there is no name
    counts: pl.DataFrame  # name, count, category (the name itself or `other`); the most frequent first


def fold_rare(rhetoric: pl.Series, least: int = LEAST) -> FoldedNames:
    """Names that occur fewer than `least` times become `other` (CSD-12); spellings differ by more than case and space.

    Null stays null, and a name of nothing but spaces is none.
    """
    stripped = rhetoric.cast(pl.String).str.strip_chars().str.to_lowercase()
    names = stripped.to_frame("name").select(pl.when(pl.col("name") != "").then("name"))
    counts = names.drop_nulls().group_by("name").agg(count=pl.len().cast(pl.Int64))
    counts = counts.with_columns(category=pl.when(pl.col("count") >= least).then("name").otherwise(pl.lit(OTHER))).sort(
        ["count", "name"], descending=[True, False]
    )
    folded = names.join(counts, on="name", how="left", maintain_order="left")["category"]
    return FoldedNames(folded.alias(rhetoric.name), counts)
