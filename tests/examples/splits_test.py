"""Splits by profile, and what leaks between them."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.examples.splits import NAMES, SPLITS, add_split, measure_leakage

seeds = st.integers(0, 2**32 - 1)


def rows(count: int) -> pl.DataFrame:
    return pl.DataFrame({"pair_id": [f"{i:032x}" for i in range(count)]}, schema={"pair_id": pl.String})


def clustered(sizes: list[int]) -> pl.DataFrame:
    """Pairs in clusters of these sizes."""
    clusters = [f"{c:032x}" for c, size in enumerate(sizes) for _ in range(size)]
    return rows(len(clusters)).with_columns(cluster_id=pl.Series(clusters, dtype=pl.String))


@pytest.mark.parametrize(
    ("count", "profile", "expected"),
    [
        (100, "paper", (80, 10, 10)),
        (56_290, "paper", (45_032, 5_629, 5_629)),  # the paper's pairs (IMP-12, IMP-23) at 8:1:1
        (7, "paper", (6, 0, 1)),  # bounds round(5.6) = 6, round(6.3) = 6, 7
        (1, "paper", (1, 0, 0)),
        (100, "official", (90, 5, 5)),  # the released code's (errata E3)
        (56_290, "official", (50_661, 2_815, 2_814)),  # bounds 50661, round(53475.5) = 53476, to even
        (0, "official", (0, 0, 0)),
    ],
)
def test_shares_of_random_splits_are_exact(count: int, profile: str, expected: tuple[int, ...]) -> None:
    """Random splits have exactly the rounded shares of 8:1:1 and of 90:5:5 (IMP-22)."""
    split = add_split(rows(count), profile)["split"]
    assert tuple((split == name).sum() for name in NAMES) == expected


@settings(deadline=None)
@given(st.integers(0, 200), st.sampled_from(sorted(SPLITS)), seeds)
def test_split_follows_from_rows_and_seed(count: int, profile: str, seed: int) -> None:
    """The order the rows come in does not matter, and every row is in one split (IMP-22)."""
    pairs = rows(count).with_columns(cluster_id=pl.col("pair_id"))
    one = add_split(pairs, profile, seed)
    assert one.equals(add_split(pairs.reverse(), profile, seed))
    assert one["pair_id"].to_list() == pairs["pair_id"].to_list()
    assert one["split"].is_in(NAMES).all()


@settings(deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), seeds)
def test_a_cluster_is_in_one_split(sizes: list[int], seed: int) -> None:
    """No cluster is cut, and each split misses 8:1:1 by no more than the largest cluster."""
    split = add_split(clustered(sizes), "grouped", seed)
    assert split.group_by("cluster_id").agg(pl.col("split").n_unique())["split"].to_list() == [1] * len(sizes)
    for name, share in zip(NAMES, SPLITS["grouped"], strict=True):
        assert abs((split["split"] == name).sum() - share * len(split)) <= max(sizes)


def test_a_giant_cluster_is_for_training() -> None:
    """A cluster larger than a held-out split goes to train whatever the seed, so that all splits have rows.

    A pair whose cluster is not known is one of its own.
    """
    unknown = clustered([1] * 20).with_columns(cluster_id=pl.lit(None, pl.String))
    assert [(add_split(unknown, "grouped")["split"] == name).sum() for name in NAMES] == [16, 2, 2]
    pairs = clustered([40, *[1] * 60])
    for seed in range(20):
        split = add_split(pairs, "grouped", seed)
        assert split.filter(pl.col("cluster_id") == f"{0:032x}")["split"].unique().to_list() == ["train"]
        assert [(split["split"] == name).sum() for name in NAMES] == [80, 10, 10]


def pair(split: str, source: str, cluster: str, implicit: str, explicit: str, negative: str) -> dict[str, str]:
    """One row as leakage reads it."""
    return {"split": split, "source": source, "cluster_id": cluster, "implicit": implicit, "explicit": explicit,
            "negative": negative}  # fmt: skip


def test_leakage_by_hand() -> None:
    """Each way to leak is counted by split and source: word for word in any column, by cluster, with other meaning."""
    found = measure_leakage(
        pl.DataFrame(
            [
                pair("train", "a", "1", "hint one", "say one", "say two"),
                pair("train", "b", "2", "hint two", "say two", "say one"),
                pair("test", "a", "1", "hint one", "say one more", "say one"),  # implicit, negative, near, other
                pair("test", "a", "3", "hint three", "say two", "say four"),  # explicit
                pair("test", "b", "4", "say one", "say five", "say six"),  # implicit, as a train pair's explicit
                pair("test", "b", "2", "hint twos", "say five", "say six"),  # near
                pair("validation", "b", "2", "hint two", "say two", "say six"),  # same pair: no other explicit
            ]
        )
    )
    assert found["split"].unique(maintain_order=True).to_list() == ["validation", "test"]
    counts = {tuple(key): (n, share) for *key, n, share in found.iter_rows()}
    checks = ("implicit", "explicit", "negative", "near_duplicate", "other_explicit")
    assert [counts["test", "a", c] for c in checks] == [(1, 0.5), (1, 0.5), (1, 0.5), (1, 0.5), (1, 0.5)]
    assert [counts["test", "b", c] for c in checks] == [(1, 0.5), (0, 0), (0, 0), (1, 0.5), (0, 0)]
    assert [counts["test", "all", c][0] for c in checks] == [2, 1, 1, 2, 1]
    assert [counts["validation", "b", c][0] for c in checks] == [1, 1, 0, 1, 0]
    assert found.filter(pl.col("split") == "validation")["source"].to_list() == ["b"] * 5 + ["all"] * 5
    none = measure_leakage(pl.DataFrame([pair("train", "a", "1", "x", "y", "z")]))
    assert (none.height, none.columns) == (0, ["split", "source", "check", "count", "share"])
