"""Clusters of near duplicates. Similarities are computed here by hand as Jaccard over sets of character trigrams."""

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.examples.impscore.clusters import THRESHOLD, add_clusters, cluster_near_duplicates

BUS = "the council is bankrupt , so why should we {} pay for another bus lane that nobody uses ?"
SHED = "a neighbour should {} be free to paint his shed , it is one of those small joys we call a hobby ."
OURS = [BUS.format(w) for w in ("gladly", "still", "surely", "quietly", "probably", "simply", "indeed")] + [
    SHED.format(w) for w in ("always", "clearly", "likely", "hardly", "certainly", "perhaps")
]
"""13 sentences of our own from two templates, in the manner of table 12."""

ZH = [
    "小区门口的早餐店今天又涨价了，豆浆都快喝不起了",
    "小区门口的早餐店昨天又涨价了，豆浆都快喝不起了",
    "小区门口的早餐店今天又涨价了，豆浆真的喝不起了",
    "老板说年底一定有奖金，我就当听了个睡前故事",
]


def trigrams(text: str) -> set[str]:
    return {text.lower()[i : i + 3] for i in range(len(text) - 2)}


def by_hand(texts: list[str], threshold: float = THRESHOLD) -> list[int]:
    """Least row of the connected component of each text, over all pairs."""
    label = list(range(len(texts)))
    grams = [trigrams(t) for t in texts]
    for i in range(len(texts)):
        for j in range(i):
            shared = len(grams[i] & grams[j])
            alike = min(map(len, (texts[i], texts[j]))) >= 8 and shared / len(grams[i] | grams[j]) >= threshold
            if alike or texts[i] == texts[j]:
                least, greatest = sorted((label[i], label[j]))
                label = [least if number == greatest else number for number in label]
    return label


def test_two_templates_are_two_groups() -> None:
    """Variants of a template are one cluster, 13 of two or 2,000 of one, labelled by the least row (IMP-43)."""
    assert cluster_near_duplicates(OURS).tolist() == [0] * 7 + [7] * 6
    mixed = [OURS[i] for i in (12, 3, 0, 7, 1, 8, 2, 9, 4, 10, 5, 11, 6)]
    assert cluster_near_duplicates(mixed).tolist() == [0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    flood = [SHED.format("really") + f" number {i}" for i in range(2_000)]
    assert set(cluster_near_duplicates(flood).tolist()) == {0}


def test_what_is_a_near_duplicate() -> None:
    """A word exchanged in twenty Chinese characters, case or blanks; below eight characters texts must be equal.

    Nothing, one text and texts without likeness are clusters of their own, as int64.
    """
    assert cluster_near_duplicates(ZH).tolist() == [0, 0, 0, 3] == by_hand(ZH)
    texts = ["So  True", "so true ", "so trues", "哈哈哈", "哈哈哈哈", "哈哈哈", "", " "]
    assert cluster_near_duplicates(texts).tolist() == [0, 0, 2, 3, 4, 3, 6, 6]
    for unlike in ([], ["one"], ["a longer text", "quite another one"]):
        labels = cluster_near_duplicates(pl.Series(unlike, dtype=pl.String))
        assert (labels.tolist(), labels.dtype) == ([*range(len(unlike))], np.int64)


def test_a_chain_is_one_cluster() -> None:
    """Two texts that resemble each other little are in one cluster if a third resembles both (connected components)."""
    first, last = BUS.format("gladly"), BUS.format("gladly").replace("bus lane", "car park")
    chain = [first, last.replace("nobody uses", "they all want"), last]
    ends = [trigrams(chain[0]), trigrams(chain[1])]
    assert len(ends[0] & ends[1]) / len(ends[0] | ends[1]) < 0.7
    assert cluster_near_duplicates(chain, 0.7).tolist() == [0, 0, 0] == by_hand(chain, 0.7)
    assert cluster_near_duplicates(chain[:2], 0.7).tolist() == [0, 1]


@settings(deadline=None)
@given(st.lists(st.sampled_from([*OURS, *ZH, "哈哈", "no", "an odd one out"]), max_size=30), st.randoms())
def test_order_does_not_matter(texts: list[str], random: object) -> None:
    """Shuffled texts fall into the same clusters, and each label is the least row of its cluster."""
    order = list(range(len(texts)))
    random.shuffle(order)  # type: ignore[attr-defined]
    plain, mixed = cluster_near_duplicates(texts), cluster_near_duplicates([texts[i] for i in order])
    groups = {frozenset(np.flatnonzero(plain == c).tolist()) for c in plain}
    assert groups == {frozenset(order[i] for i in np.flatnonzero(mixed == c)) for c in mixed}
    assert all(min(group) in plain and {plain[i] for i in group} == {min(group)} for group in groups)
    assert plain.tolist() == by_hand(texts)


def test_clusters_of_pairs() -> None:
    """Pairs get the least pair_id of those whose implicit sentences are near duplicates, in any order of rows."""
    ids = [f"{15 - i:032x}" for i in range(len(OURS))]
    rows = pl.DataFrame({"pair_id": ids, "implicit": OURS})
    assert add_clusters(rows)["cluster_id"].to_list() == [f"{9:032x}"] * 7 + [f"{3:032x}"] * 6
    assert add_clusters(rows.reverse()).sort("pair_id").equals(add_clusters(rows).sort("pair_id"))
    assert add_clusters(rows.clear()).schema["cluster_id"] == pl.String
