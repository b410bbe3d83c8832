"""Splits of pairs into train, validation and test, and what leaks between them (ImpScore, section 5.1; IMP-22).

The paper's random 8:1:1 and its code's 90:5:5 (errata E3) put variants of one sentence on both sides; the grouped split
does not.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import check_name
from pipeline.io.hashes import hash_number

NAMES = ("train", "validation", "test")
SPLITS = {"paper": (0.8, 0.1, 0.1), "official": (0.9, 0.05, 0.05), "grouped": (0.8, 0.1, 0.1)}
"""Shares of train, validation and test by profile. `grouped` assigns whole clusters, the others single pairs."""
SPLIT_OF = {"paper": "paper", "official": "official", "undertone": "grouped"}
"""Split of pairs by profile of a training; it is here so that reading it does not import torch."""
SEED = 42  # the released code's
_TEXTS = ("implicit", "explicit", "negative")


def get_shares(profile: str) -> tuple[float, ...]:
    """Return the shares of train, validation and test of a profile."""
    return SPLITS[check_name("split profile", profile, SPLITS)]


def draw_uniform(ids: pl.Series, seed: int = SEED) -> pl.Series:
    """Draw a number in [0, 1) for each id, by a hash of id and seed: neither order nor library versions change it."""
    return pl.Series([hash_number(f"{seed}\n{row_id}") / 2**64 for row_id in ids], dtype=pl.Float64)


def add_split(pairs: pl.DataFrame, profile: str = "paper", seed: int = SEED) -> pl.DataFrame:
    """Add `split` by a profile of `SPLITS`; the order of the rows does not change it.

    Random profiles give exactly the rounded shares. `grouped` needs `cluster_id` (`add_clusters`), puts every
    cluster in one split, and misses a share by less than the largest cluster; clusters larger than the smallest share
    go to train.
    """
    ordered, shares = pairs.sort("pair_id"), get_shares(profile)
    bounds = np.cumsum(shares) * len(ordered)
    if profile == "grouped":
        return _split_clusters(ordered, bounds, min(shares) * len(ordered), seed)
    places = np.random.default_rng(seed).permutation(len(ordered))
    return ordered.with_columns(split=find_parts(np.round(bounds), places))


def find_parts(bounds: npt.NDArray[np.float64], places: npt.NDArray[Any]) -> pl.Series:
    """Find the split in which each place lies, given where the splits end."""
    indices = np.searchsorted(bounds, places, side="right").clip(max=2)
    return pl.Series([NAMES[i] for i in indices], dtype=pl.String)


def find_middles(sizes: pl.Series) -> npt.NDArray[np.float64]:
    """Find the middle of each of some groups that are laid end to end."""
    return (sizes.cum_sum() - sizes / 2).to_numpy()


def _split_clusters(pairs: pl.DataFrame, bounds: npt.NDArray[np.float64], least: float, seed: int) -> pl.DataFrame:
    """Lay clusters end to end, large ones first, the others shuffled; the middle of a cluster decides its split."""
    cluster = pl.coalesce("cluster_id", "pair_id")
    sizes = pairs.group_by(_cluster=cluster).len("_size").sort("_cluster")
    order = pl.Series(np.random.default_rng(seed).permutation(len(sizes)))
    clusters = sizes.sort(pl.col("_size") <= least, order)
    parts = find_parts(bounds, find_middles(clusters["_size"]))
    return pairs.with_columns(split=cluster.replace_strict(clusters["_cluster"], parts, return_dtype=pl.String))


def measure_leakage(pairs: pl.DataFrame) -> pl.DataFrame:
    """Count what each held-out split of rows of `pairs` shares with train, by source and for all sources together.

    Checks: `implicit`, `explicit` and `negative`, the text is in train word for word, in any role; `near_duplicate`, a
    pair of its cluster is; `other_explicit`, its implicit sentence is, with another explicit one.
    """
    train = pairs.filter(pl.col("split") == "train")
    train_texts = pl.concat([train[name] for name in _TEXTS]).unique().implode()
    meanings = train.group_by("implicit").agg(_explicits=pl.col("explicit").unique())
    has_other_explicit = pl.col("_explicits").list.set_difference(pl.concat_list("explicit")).list.len() > 0
    held_out = pairs.filter(pl.col("split") != "train").join(meanings, on="implicit", how="left")
    checks = {
        **{name: pl.col(name).is_in(train_texts) for name in _TEXTS},
        "near_duplicate": pl.col("cluster_id").is_in(train["cluster_id"].drop_nulls().unique().implode()),
        "other_explicit": has_other_explicit,
    }
    rows = held_out.select("split", "source", **checks).with_columns(pl.col(*checks).fill_null(value=False))
    rows = pl.concat([rows, rows.with_columns(source=pl.lit("all"))])
    rows = rows.unpivot(list(checks), index=["split", "source"], variable_name="check")
    numbers = {"count": pl.col("value").sum().cast(pl.Int64), "share": pl.col("value").mean()}
    counts = rows.group_by("split", "source", "check").agg(**numbers)
    split, check = pl.col("split").cast(pl.Enum(NAMES)), pl.col("check").cast(pl.Enum(list(checks)))
    return counts.sort(split, pl.col("source") == "all", "source", check)
