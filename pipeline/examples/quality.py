"""How good the pairs are, by a reader's judgement: what to show, and what the answers come to (ImpScore, appendix A.2).

A pair is appropriate if its first sentence is the more implicit one and, for a positive pair, both mean the same, for
a negative pair, they do not. Published ratings are of the paper's pairs, judged by its linguist.
"""

from bisect import bisect_right

import numpy as np
import polars as pl

from pipeline.examples.splits import SEED

PER_SOURCE = 20
BOUNDS = (0.2, 0.4, 0.6, 0.8)
PUBLISHED = {
    "toxigen": 5, "latent_hatred": 5, "dghsd": 5, "ishate": 5, "sbic": 5, "implicatures": 4, "imppres": 5,
    "ludwig": 5, "absa": 4, "semeval_irony": 5, "snarks": 5, "r3": 5, "pdtb": 4,
}  # fmt: skip
"""Ratings of table 7, from 1 to 5, by the names of our readers; `ishate` is its Adversarial."""


def sample(pairs: pl.DataFrame, per_source: int = PER_SOURCE, seed: int = SEED) -> pl.DataFrame:
    """Sentence pairs to judge, half of them positive, shuffled; each from another pair, the same for the same seed.

    A source with fewer pairs gives as many as it has, one fewer if that is odd.

    Returns:
        item (from 1), source, first, second: what the judge sees; kind (positive or negative): what the judge does not.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for source in pairs.sort("source", "pair_id").partition_by("source", maintain_order=True):
        half = min(per_source, len(source)) // 2
        drawn = source[rng.permutation(len(source))[: 2 * half]]
        is_positive = pl.int_range(pl.len()) < half
        parts.append(
            drawn.select(
                "source",
                first="implicit",
                second=pl.when(is_positive).then("explicit").otherwise("negative"),
                kind=pl.when(is_positive).then(pl.lit("positive")).otherwise(pl.lit("negative")),
            )
        )
    texts = dict.fromkeys(("source", "first", "second", "kind"), pl.String)
    rows = pl.concat([pl.DataFrame(schema=texts), *parts])
    return rows[rng.permutation(len(rows))].with_row_index("item", 1)


def scale(share: float) -> int:
    """Rating of a share of appropriate pairs: 1 below 20 %, 2 below 40 %, 3 below 60 %, 4 below 80 %, else 5."""
    if not 0 <= share <= 1:
        raise ValueError(f"expected a share between 0 and 1, got {share}")
    return bisect_right(BOUNDS, share) + 1


def rate(judged: pl.DataFrame) -> pl.DataFrame:
    """Ratings by source of judged pairs (source, appropriate: bool): source, n, share, rating, published.

    Pairs whose judgement is null are left out; published is null for sources that table 7 does not have.
    """
    return (
        judged.drop_nulls("appropriate")
        .group_by("source")
        .agg(n=pl.len().cast(pl.Int64), share=pl.col("appropriate").mean())
        .sort("source")
        .with_columns(
            rating=pl.col("share").map_elements(scale, return_dtype=pl.Int64),
            published=pl.col("source").replace_strict(PUBLISHED, default=None, return_dtype=pl.Int64),
        )
    )
