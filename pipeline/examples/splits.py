"""Splits of pairs into train, validation and test, and what leaks between them (ImpScore, section 5.1; IMP-22).

The paper splits at random 8:1:1, its released code 90:5:5 (errata E3). Both put variants of one sentence on both sides
and so measure memory too; the grouped split keeps near duplicates together, `leakage` counts what crosses.
"""

import hashlib

import numpy as np
import polars as pl

from pipeline.errors import BadInput

NAMES = ("train", "validation", "test")
SPLITS = {"paper": (0.8, 0.1, 0.1), "official": (0.9, 0.05, 0.05), "grouped": (0.8, 0.1, 0.1)}
"""Shares of train, validation and test by profile. `grouped` deals whole clusters, the others single pairs."""
SPLIT_OF = {"paper": "paper", "official": "official", "undertone": "grouped"}
"""How pairs are split for each profile of a training: told here, where no torch is imported to know it."""
SEED = 42  # the released code's

_TEXTS = ("implicit", "explicit", "negative")


def shares_of(profile: str) -> tuple[float, ...]:
    """Shares of train, validation and test."""
    if profile not in SPLITS:
        raise BadInput(f"no split profile {profile!r}; there are {', '.join(SPLITS)}")
    return SPLITS[profile]


def draws(ids: pl.Series, seed: int = SEED) -> pl.Series:
    """A number in [0, 1) for each id, by it and the seed alone: in any order and with any library's version."""
    told = (hashlib.blake2b(f"{seed}\n{one}".encode(), digest_size=8).digest() for one in ids)
    return pl.Series([int.from_bytes(digest) / 2**64 for digest in told], dtype=pl.Float64)


def with_split(pairs: pl.DataFrame, profile: str = "paper", seed: int = SEED) -> pl.DataFrame:
    """Add `split` by a profile of `SPLITS`; the same rows in any order and the same seed give the same split.

    Random profiles give exactly the rounded shares. `grouped` needs `cluster_id` (`clusters.with_clusters`), gives
    every cluster one split, and misses a share by less than the largest cluster; clusters larger than the smallest
    share go to train.

    Raises:
        BadInput: there is no such profile.
    """
    ordered, shares = pairs.sort("pair_id"), shares_of(profile)
    names = _grouped(ordered, shares, seed) if profile == "grouped" else _random(len(ordered), shares, seed)
    return ordered.with_columns(split=pl.Series(names, dtype=pl.String))


def _random(count: int, shares: tuple[float, ...], seed: int) -> list[str]:
    bounds = np.round(np.cumsum(shares) * count).astype(int)
    place = np.random.default_rng(seed).permutation(count)
    return [NAMES[i] for i in np.searchsorted(bounds, place, side="right").clip(max=2)]


def _grouped(pairs: pl.DataFrame, shares: tuple[float, ...], seed: int) -> list[str]:
    """Clusters are laid end to end, the large ones first, the others shuffled; its middle decides where one falls."""
    pairs = pairs.select(pl.coalesce("cluster_id", "pair_id"))
    sizes = pairs.group_by("cluster_id").len("size").sort("cluster_id")
    place = pl.Series(np.random.default_rng(seed).permutation(len(sizes)))
    is_large = pl.col("size") > min(shares) * len(pairs)
    laid = sizes.sort(~is_large, place).with_columns(middle=pl.col("size").cum_sum() - pl.col("size") / 2)
    where = np.searchsorted(np.cumsum(shares) * len(pairs), laid["middle"].to_numpy(), side="right").clip(max=2)
    of_cluster = laid.select("cluster_id", split=pl.Series([NAMES[i] for i in where], dtype=pl.String))
    told = pairs.join(of_cluster, on="cluster_id", how="left", maintain_order="left")
    return told["split"].to_list()


def leakage(pairs: pl.DataFrame) -> pl.DataFrame:
    """What of each held-out split also stands in train.

    Args:
        pairs: rows of the table `pairs`.

    Returns:
        split, source (`all` for all of them together), check, count, share of the pairs. The checks: `implicit`,
        `explicit` and `negative`, the text stands in train word for word, whatever it is there; `near_duplicate`, a
        pair of its cluster does; `other_explicit`, its implicit sentence does, with another explicit one.
    """
    train = pairs.filter(pl.col("split") == "train")
    seen = pl.concat([train[name] for name in _TEXTS]).unique().implode()
    meanings = train.group_by("implicit").agg(_said=pl.col("explicit").unique())
    other = pl.col("_said").list.set_difference(pl.concat_list("explicit")).list.len() > 0
    held = pairs.filter(pl.col("split") != "train").join(meanings, on="implicit", how="left")
    found = held.select(
        "split",
        "source",
        *(pl.col(name).is_in(seen) for name in _TEXTS),
        near_duplicate=pl.col("cluster_id").is_in(train["cluster_id"].drop_nulls().unique().implode()),
        other_explicit=other,
    ).with_columns(pl.exclude("split", "source").fill_null(value=False))
    checks = [*_TEXTS, "near_duplicate", "other_explicit"]
    return (
        pl.concat([found, found.with_columns(source=pl.lit("all"))])
        .unpivot(checks, index=["split", "source"], variable_name="check")
        .group_by("split", "source", "check")
        .agg(count=pl.col("value").sum().cast(pl.Int64), share=pl.col("value").mean())
        .sort(
            pl.col("split").replace_strict(NAMES, range(3), return_dtype=pl.Int64),
            pl.col("source") == "all",
            "source",
            pl.col("check").replace_strict(checks, range(len(checks)), return_dtype=pl.Int64),
        )
    )
