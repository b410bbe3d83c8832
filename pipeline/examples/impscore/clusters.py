"""Clusters of near-duplicate sentences: variants of one template, which a random split would separate (IMP-22, IMP-43).

Shingles, sketches and rules are those of `collect.threads`; as nothing is dropped here, a lower similarity counts.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import sparse

from pipeline.collect.threads import CANDIDATES, PERMUTATIONS, SHORTEST, _trigrams

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


def add_clusters(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `cluster_id`: the first pair_id of the pairs whose implicit sentences are near duplicates."""
    cluster = pl.Series(cluster_near_duplicates(pairs["implicit"]), dtype=pl.Int64)
    return pairs.with_columns(cluster_id=pl.col("pair_id").min().over(cluster))


def _link_texts(grams: list[list[str]], threshold: float) -> Ints:
    buckets = _build_buckets(grams)
    column = pl.Series([gram for text in grams for gram in text]).cast(pl.Categorical).to_physical().to_numpy()
    _, column = np.unique(column, return_inverse=True)  # categories are numbered across the process
    starts, shape = np.cumsum([0, *map(len, grams)]), (len(grams), column.max() + 1)
    incidence = sparse.csr_matrix((np.ones(len(column), np.int32), column, starts), shape=shape)
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


def _are_similar(incidence: sparse.csr_matrix, pairs: Ints, threshold: float) -> npt.NDArray[np.bool_]:
    size = np.diff(incidence.indptr)
    parts = np.split(pairs, range(_CHUNK, len(pairs), _CHUNK))
    common = [incidence[part[:, 0]].multiply(incidence[part[:, 1]]).sum(axis=1).A1 for part in parts]
    common_count = np.concatenate(common)
    is_similar: npt.NDArray[np.bool_] = common_count >= threshold * (size[pairs].sum(axis=1) - common_count)
    return is_similar
