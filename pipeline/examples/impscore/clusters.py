"""Near-duplicate sentences: variants of one template, which a random split would put on both sides (IMP-22, IMP-43).

In: texts. Out: the cluster of each. Shingles, sketches and rules are those of `collect.dedupe`, which drops copies of
comments; here nothing is dropped, so a looser likeness counts: a word exchanged in a sentence of ten or so.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import sparse

from pipeline.collect.dedupe import CANDIDATES, PERMUTATIONS, SHORTEST, _trigrams

THRESHOLD = 0.6  # Jaccard similarity of character trigrams
_ROWS = 4  # numbers of a sketch a band has: at likeness 0.6 nine pairs in ten meet in a band, at 0.7 all but one in 75
_SEED = 20261120
_CHUNK = 50_000  # pairs compared at once

Ints = npt.NDArray[np.int64]


def near_duplicates(texts: pl.Series | Sequence[str], threshold: float = THRESHOLD) -> Ints:
    """Cluster of each text: the least row of those it is linked to by a chain of near duplicates.

    Candidates come from MinHash bands, each confirmed by exact similarity. In one band a text meets at most the next
    100 unlike it, in the order of the alphabet, so that a flood of look-alikes costs no square. The clusters follow
    from the set of texts, not from their order. Texts under eight characters are near duplicates only when equal.

    Args:
        texts: n sentences in any language.
        threshold: least Jaccard similarity, of the character trigrams of lower-cased texts.

    Returns:
        int64 [n].
    """
    said = pl.col("said").str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    rows = pl.DataFrame({"said": pl.Series(texts, dtype=pl.String)}).select(said, row=pl.int_range(pl.len()))
    kinds = rows["said"].unique().sort()
    component = np.arange(len(kinds))
    long = np.flatnonzero((kinds.str.len_chars() >= SHORTEST).to_numpy())
    if len(long) > 1:
        component[long] = long[_components([_trigrams("", kinds[int(i)]) for i in long], threshold)]
    found = pl.DataFrame({"said": kinds, "cluster": component})
    clusters = rows.join(found, on="said", how="left", maintain_order="left")
    return clusters.select(pl.col("row").min().over("cluster"))["row"].cast(pl.Int64).to_numpy()


def with_clusters(pairs: pl.DataFrame, threshold: float = THRESHOLD) -> pl.DataFrame:
    """Add `cluster_id` to pairs: the least pair_id of those whose implicit sentences are near duplicates."""
    cluster = pl.Series(near_duplicates(pairs["implicit"], threshold), dtype=pl.Int64)
    return pairs.with_columns(cluster_id=pl.col("pair_id").min().over(cluster))


def _components(grams: list[list[str]], threshold: float) -> Ints:
    """A member of the cluster of each text, the same for all of one cluster."""
    buckets, incidence = _buckets(grams), _incidence(grams)
    component = np.arange(len(grams))
    for distance in range(1, CANDIDATES + 1):
        pairs, met = _neighbours(buckets, component, distance)
        if not met:
            break
        like = pairs[_similar(incidence, pairs, threshold)]
        if len(like):
            links = sparse.coo_matrix((np.ones(len(like)), component[like].T), shape=(len(grams), len(grams)))
            _, label = sparse.csgraph.connected_components(links, directed=False)
            _, first = np.unique(label, return_index=True)
            component = first[label[component]]
    return component


def _buckets(grams: list[list[str]]) -> list[tuple[Ints, Ints]]:
    """For each band the texts that share it with another, bucket by bucket in their order: (text, bucket)."""
    from rensa import RMinHash

    digests = np.array(RMinHash.digests_from_token_sets(grams, num_perm=PERMUTATIONS, seed=_SEED), np.uint64)
    bands = []
    for start in range(0, PERMUTATIONS, _ROWS):
        key = digests[:, start].copy()
        for column in range(start + 1, start + _ROWS):
            key = key * np.uint64(0x9E3779B97F4A7C15) + digests[:, column]  # wraps; a false meeting is only compared
        _, bucket, size = np.unique(key, return_inverse=True, return_counts=True)
        shared = np.flatnonzero(size[bucket] > 1)
        order = shared[np.argsort(bucket[shared], kind="stable")]
        bands.append((order, bucket[order]))
    return bands


def _neighbours(buckets: list[tuple[Ints, Ints]], component: Ints, distance: int) -> tuple[Ints, bool]:
    """Pairs of texts so many places apart in a bucket and not linked yet [m, 2], and whether any are that far apart."""
    found, met = [np.empty((0, 2), np.int64)], False
    for order, bucket in buckets:
        same = np.flatnonzero(bucket[distance:] == bucket[:-distance])
        met |= bool(len(same))
        one, other = order[same], order[same + distance]
        apart = component[one] != component[other]
        found.append(np.stack([one[apart], other[apart]], axis=1))
    return np.unique(np.concatenate(found), axis=0), met


def _incidence(grams: list[list[str]]) -> sparse.csr_matrix:
    """Which text has which trigram: [n, trigrams], 0 or 1."""
    column = pl.Series([gram for text in grams for gram in text]).cast(pl.Categorical).to_physical().to_numpy()
    starts = np.cumsum([0, *map(len, grams)])
    _, column = np.unique(column, return_inverse=True)  # categories are numbered across the process
    return sparse.csr_matrix((np.ones(len(column), np.int32), column, starts), shape=(len(grams), column.max() + 1))


def _similar(incidence: sparse.csr_matrix, pairs: Ints, threshold: float) -> npt.NDArray[np.bool_]:
    """Whether the two of each pair have at least that Jaccard similarity."""
    size = np.diff(incidence.indptr)
    shared = [
        incidence[part[:, 0]].multiply(incidence[part[:, 1]]).sum(axis=1).A1
        for part in np.split(pairs, range(_CHUNK, len(pairs), _CHUNK))
    ]
    both = np.concatenate(shared)
    like: npt.NDArray[np.bool_] = both >= threshold * (size[pairs].sum(axis=1) - both)
    return like
