"""Splits of pairs into train, validation and test, and what leaks between them (ImpScore, section 5.1; IMP-22).

The paper's random 8:1:1 and its code's 90:5:5 (errata E3) put variants of one sentence on both sides; the grouped split
does not. It goes by clusters of near-duplicates, variants of one template (IMP-43). Shingles, sketches and rules are
those of `collect.dedupe`; as nothing is dropped here, a lower similarity counts.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import sparse

from pipeline.collect.dedupe import CANDIDATES, PERMUTATIONS, SHORTEST, _trigrams
from pipeline.errors import BadInput
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
    if profile not in SPLITS:
        raise BadInput(f"no split profile {profile!r}; there are {', '.join(SPLITS)}")
    return SPLITS[profile]


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
    split = cluster.replace_strict(clusters["_cluster"], parts, return_dtype=pl.String)
    return pairs.with_columns(split=split)


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
    counts = rows.group_by("split", "source", "check").agg(
        count=pl.col("value").sum().cast(pl.Int64), share=pl.col("value").mean()
    )
    split, check = pl.col("split").cast(pl.Enum(NAMES)), pl.col("check").cast(pl.Enum(list(checks)))
    return counts.sort(split, pl.col("source") == "all", "source", check)


THRESHOLD = 0.6  # Jaccard similarity of character trigrams
_ROWS = 4  # numbers of a sketch in a band: nine in ten pairs of similarity 0.6 share a band, of 0.7 all but one in 75
_SEED = 20261120
_CHUNK = 50_000  # pairs compared at once
Ints = npt.NDArray[np.int64]


def cluster_near_duplicates(texts: pl.Series | Sequence[str], threshold: float = THRESHOLD) -> Ints:
    """Return the cluster of each text, int64 [n]: the lowest row that a chain of near duplicates links it to.

    Candidates come from MinHash bands, of which each text meets at most the next 100; exact Jaccard similarity of the
    character trigrams of lower-cased texts confirms them. The order of the texts does not change the clusters. Texts
    under eight characters are near duplicates only if equal.
    """
    text = pl.col("text").str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    rows = pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)}).select(text, row=pl.int_range(pl.len()))
    distinct = rows["text"].unique().sort()
    component = np.arange(len(distinct))
    long = np.flatnonzero((distinct.str.len_chars() >= SHORTEST).to_numpy())
    if len(long) > 1:
        component[long] = long[_link_texts([_trigrams("", distinct[int(i)]) for i in long], threshold)]
    clusters = pl.DataFrame({"text": distinct, "cluster": component})
    rows = rows.join(clusters, on="text", how="left", maintain_order="left")
    return rows.select(pl.col("row").min().over("cluster").cast(pl.Int64)).to_series().to_numpy()


def add_clusters(pairs: pl.DataFrame, threshold: float = THRESHOLD) -> pl.DataFrame:
    """Add `cluster_id`: the first pair_id of the pairs whose implicit sentences are near duplicates."""
    cluster = pl.Series(cluster_near_duplicates(pairs["implicit"], threshold), dtype=pl.Int64)
    return pairs.with_columns(cluster_id=pl.col("pair_id").min().over(cluster))


def _link_texts(grams: list[list[str]], threshold: float) -> Ints:
    buckets, incidence = _build_buckets(grams), _build_incidence(grams)
    component = np.arange(len(grams))
    for distance in range(1, CANDIDATES + 1):
        pairs, has_neighbours = _list_neighbours(buckets, component, distance)
        if not has_neighbours:
            break
        similar = pairs[_are_similar(incidence, pairs, threshold)]
        if len(similar):
            links = sparse.coo_matrix((np.ones(len(similar)), component[similar].T), shape=(len(grams), len(grams)))
            _, label = sparse.csgraph.connected_components(links, directed=False)
            _, first = np.unique(label, return_index=True)
            component = first[label[component]]
    return component


def _build_buckets(grams: list[list[str]]) -> list[tuple[Ints, Ints]]:
    """List, for each band, the texts that share it with another, bucket by bucket: (text, bucket)."""
    from rensa import RMinHash

    digests = np.array(RMinHash.digests_from_token_sets(grams, num_perm=PERMUTATIONS, seed=_SEED), np.uint64)
    bands = []
    for start in range(0, PERMUTATIONS, _ROWS):
        key = digests[:, start].copy()
        for column in range(start + 1, start + _ROWS):
            key = key * np.uint64(0x9E3779B97F4A7C15) + digests[:, column]  # wraps; a collision only costs a comparison
        _, bucket, size = np.unique(key, return_inverse=True, return_counts=True)
        shared = np.flatnonzero(size[bucket] > 1)
        order = shared[np.argsort(bucket[shared], kind="stable")]
        bands.append((order, bucket[order]))
    return bands


def _list_neighbours(buckets: list[tuple[Ints, Ints]], component: Ints, distance: int) -> tuple[Ints, bool]:
    """List unlinked texts at this distance in a bucket [m, 2]; say whether a bucket has texts that far apart."""
    parts, has_neighbours = [np.empty((0, 2), np.int64)], False
    for order, bucket in buckets:
        positions = np.flatnonzero(bucket[distance:] == bucket[:-distance])
        has_neighbours |= bool(len(positions))
        first_texts, second_texts = order[positions], order[positions + distance]
        is_unlinked = component[first_texts] != component[second_texts]
        parts.append(np.stack([first_texts[is_unlinked], second_texts[is_unlinked]], axis=1))
    return np.unique(np.concatenate(parts), axis=0), has_neighbours


def _build_incidence(grams: list[list[str]]) -> sparse.csr_matrix:
    column = pl.Series([gram for text in grams for gram in text]).cast(pl.Categorical).to_physical().to_numpy()
    starts = np.cumsum([0, *map(len, grams)])
    _, column = np.unique(column, return_inverse=True)  # categories are numbered across the process
    return sparse.csr_matrix((np.ones(len(column), np.int32), column, starts), shape=(len(grams), column.max() + 1))


def _are_similar(incidence: sparse.csr_matrix, pairs: Ints, threshold: float) -> npt.NDArray[np.bool_]:
    size = np.diff(incidence.indptr)
    parts = np.split(pairs, range(_CHUNK, len(pairs), _CHUNK))
    counts = [incidence[part[:, 0]].multiply(incidence[part[:, 1]]).sum(axis=1).A1 for part in parts]
    common_count = np.concatenate(counts)
    is_similar: npt.NDArray[np.bool_] = common_count >= threshold * (size[pairs].sum(axis=1) - common_count)
    return is_similar
