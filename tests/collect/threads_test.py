"""Duplicates within a thread. Similarities are computed here by hand as Jaccard over sets of character trigrams."""

import weakref
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.collect import threads
from pipeline.collect.sites.record import COMMENT_SCHEMA
from pipeline.collect.threads import add_roots, deduplicate

LONG = "今天的蛋挞又小了一圈我都要用镊子夹着吃了真不容易"  # 24 characters, 22 trigrams
NEAR = LONG + "啊"  # shares 22 of 23 trigrams: 0.957
FAR = "门禁说它认识我其实它只认识我的口罩和那一脸的不耐烦"


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    """Comments with defaults; the row key is the place in the list."""
    full = [
        {"thread_id": "t", "comment_id": f"c{i}", "is_hot": False, "like_count": 0} | row | {"row_key": f"r{i}"}
        for i, row in enumerate(rows)
    ]
    return pl.DataFrame(full, schema=COMMENT_SCHEMA)


def texts(*found: str) -> pl.DataFrame:
    """Comments of one thread with these texts."""
    return frame(*({"text": text} for text in found))


def outcome(comments: pl.DataFrame, **options: float) -> tuple[list[str], list[tuple[str, str]]]:
    """Row keys kept and (reason, row key) dropped."""
    kept, dropped = deduplicate(comments, **options)
    return kept["row_key"].to_list(), sorted(dropped.rows(), key=lambda row: row[1])


def test_the_same_comment_twice() -> None:
    """A comment in the hot and the normal list is one: most likes, hot if once hot, no copy counted."""
    comments = frame(
        {"comment_id": "a", "text": "好", "like_count": 5, "is_hot": True},
        {"comment_id": "a", "text": "好", "like_count": 7},
        {"comment_id": "a", "text": "好", "thread_id": "u"},
    )
    kept, dropped = deduplicate(comments)
    columns = kept.select("row_key", "like_count", "is_hot", "duplicate_count")
    assert columns.rows() == [("r0", 7, True, 0), ("r2", 0, False, 0)]
    assert dropped.rows() == [("same_comment", "r1")]


def test_copies() -> None:
    """Equal and nearly equal texts of a thread are copies; the first stays, and likes and counts add up."""
    likes = {"So True": 1, "so  true": 9, "SOTRUE": None}
    comments = frame(*({"text": text, "like_count": count} for text, count in likes.items()))
    kept, dropped = deduplicate(comments)
    assert kept.select("row_key", "text", "like_count", "duplicate_count").rows() == [("r0", "So True", 9, 2)]
    assert dropped.rows() == [("exact_duplicate", "r1"), ("exact_duplicate", "r2")]
    likes = [(LONG, 1), (NEAR, 3), (NEAR, 2), (FAR, 0)]
    comments = frame(*({"text": text, "like_count": count} for text, count in likes))
    kept, dropped = deduplicate(comments)
    assert kept.select("row_key", "like_count", "duplicate_count").rows() == [("r0", 3, 2), ("r3", 0, 0)]
    assert sorted(dropped.rows()) == [("exact_duplicate", "r2"), ("near_duplicate", "r1")]


@pytest.mark.parametrize(("threshold", "kept"), [(0.95, ["r0"]), (0.96, ["r0", "r1"])])
def test_the_threshold_is_exact(threshold: float, kept: list[str]) -> None:
    """Similarity is 22/23 = 0.9565: at a threshold of 0.95 the second is a copy, at 0.96 it is not."""
    assert outcome(texts(LONG, NEAR), threshold=threshold)[0] == kept


REVIEWS = [f"{kind} Order {n}." for n in range(6) for kind in (
    "Great pizza, fast delivery.", "The soup was cold again.", "Friendly staff, clean tables.", "Too loud to talk.",
    "Parking is a nightmare.", "My kids loved the desserts.", "An hour for two coffees.", "Best noodles around.",
    "The waiter forgot our order.", "Would come back for the view.",
)]  # fmt: skip


def test_numbers_make_short_texts_different() -> None:
    """Sixty reviews of ten kinds that differ by a number all stay, but for a copy; long posts are copies as before."""
    assert outcome(texts(*REVIEWS)) == ([f"r{n}" for n in range(60)], [])
    assert outcome(texts(*REVIEWS, REVIEWS[7].upper()))[1] == [("exact_duplicate", "r60")]
    assert outcome(texts(REVIEWS[0], "Great pizza, fast delivery! Order 0."))[1] == [("near_duplicate", "r1")]
    assert outcome(texts(f"{LONG * 5} 1", f"{LONG * 5} 2"))[1] == [("near_duplicate", "r1")]


def test_copies_are_kept_where_asked() -> None:
    """Asked to keep copies, only a comment met twice by its id is dropped, and none counts as a copy."""
    comments = frame({"text": LONG}, {"text": LONG}, {"text": NEAR}, {"text": LONG, "comment_id": "c0"})
    kept, dropped = deduplicate(comments, keep_copies=True)
    assert kept.select("row_key", "duplicate_count").rows() == [("r0", 0), ("r1", 0), ("r2", 0)]
    assert dropped.rows() == [("same_comment", "r3")]


@pytest.mark.parametrize("copy", [LONG, NEAR])
def test_an_answered_comment_always_stays(copy: str) -> None:
    """A copy that others answer is kept, and is the one its unanswered twin, though earlier, gives way to."""
    comments = frame({"text": LONG}, {"text": copy}, {"text": FAR, "parent_id": "c1"})
    kept, dropped = outcome(comments)
    assert kept == ["r1", "r2"]
    assert [key for _, key in dropped] == ["r0"]


def test_two_answered_copies_both_stay() -> None:
    """Both have branches that would lose their root."""
    comments = frame(
        {"text": LONG}, {"text": LONG}, {"text": "一", "parent_id": "c0"}, {"text": "二", "parent_id": "c1"}
    )
    kept, dropped = deduplicate(comments)
    assert (kept["row_key"].to_list(), dropped.height) == (["r0", "r1", "r2", "r3"], 0)
    assert kept["duplicate_count"].to_list() == [0, 0, 0, 0]


def test_threads_never_mix() -> None:
    """The same words in another thread are another comment; so is an answer to an id of another thread."""
    comments = frame({"text": LONG}, {"text": LONG, "thread_id": "u"}, {"text": NEAR, "thread_id": "v"})
    assert outcome(comments) == (["r0", "r1", "r2"], [])
    elsewhere = {"text": "x", "thread_id": "u", "parent_id": "c1"}
    assert outcome(frame({"text": LONG}, {"text": LONG}, elsewhere))[0] == ["r0", "r2"]


SENTENCES = st.sampled_from(
    ["哈哈哈", "哈哈哈哈", LONG, NEAR, LONG.upper(), "蛋挞 " + LONG, FAR, FAR + "！", "so true", "SO TRUE"]
)
ROW = st.fixed_dictionaries(
    {
        "thread_id": st.sampled_from("tu"), "comment_id": st.sampled_from("abcdef"),
        "parent_id": st.sampled_from([None, None, "a", "b"]), "text": SENTENCES,
        "like_count": st.none() | st.integers(0, 9), "is_hot": st.booleans(),
    }
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, max_size=12))
def test_every_row_is_kept_or_dropped_once(rows: list[dict[str, Any]]) -> None:
    """Rows add up, keep their order, answered comments stay, counts tell the copies, and a second pass drops none."""
    comments = frame(*rows)
    kept, dropped = deduplicate(comments)
    keys = kept["row_key"].to_list()
    assert keys == sorted(keys, key=comments["row_key"].to_list().index)
    assert sorted(keys + dropped["row_key"].to_list()) == sorted(comments["row_key"].to_list())
    copies = dropped.filter(pl.col("reason") != "same_comment").height
    assert kept["duplicate_count"].sum() == copies
    here = set(kept.select("thread_id", "comment_id").iter_rows())
    firsts = comments.unique(["thread_id", "comment_id"], keep="first", maintain_order=True)
    asked = set(firsts.select("thread_id", "parent_id").iter_rows())
    assert {one for one in firsts.select("thread_id", "comment_id").iter_rows() if one in asked} <= here
    for thread in ("t", "u"):
        of = pl.col("thread_id") == thread
        assert kept.filter(of)["like_count"].max() == comments.filter(of)["like_count"].max()
    again, more = deduplicate(kept.select(comments.columns))
    assert again["row_key"].to_list() == [key for key in keys if key not in more["row_key"].to_list()]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abc ", min_size=8, max_size=16), max_size=40), st.sampled_from([0.3, 0.8]))
def test_texts_with_letters_of_their_own_are_not_compared(lines: list[str], threshold: float) -> None:
    """The result is the same as if all texts were compared, hashed in one block or in many."""
    comments = texts(*lines)
    with patch.object(threads, "_may_resemble", _compare_all):
        expected = outcome(comments, threshold=threshold)
    assert outcome(comments, threshold=threshold) == expected
    with patch.object(threads, "_BLOCK", 20):
        assert outcome(comments, threshold=threshold) == expected


def test_trigrams_of_one_text_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trigrams of all texts are never in memory together, so that one long thread fits the limit of an import."""
    living: weakref.WeakSet[_Grams] = weakref.WeakSet()
    counts: list[int] = []
    trigrams = threads._trigrams

    def track(thread: str, text: str) -> _Grams:
        grams = _Grams(trigrams(thread, text))
        living.add(grams)
        counts.append(len(living))
        return grams

    monkeypatch.setattr(threads, "_trigrams", track)
    monkeypatch.setattr(threads, "_may_resemble", _compare_all)
    assert len(outcome(texts(*(f"{i:08} {chr(0x4E00 + i) * 8}" for i in range(2_000))))[0]) == 2_000
    assert max(counts) < 1_000


def _compare_all(rows: pl.DataFrame, _: float) -> np.ndarray:
    return np.ones(rows.height, dtype=bool)


class _Grams(list[str]):
    """A list that can be referred to weakly, and hashed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


def test_the_root_is_the_top_of_the_branch() -> None:
    """The top of each branch is the root of a file that names parents alone; circles are followed a while."""
    parents = {"a": None, "b": "a", "c": "b", "d": "c", "e": "d", "x": "absent", "y": "x"}
    comments = pl.DataFrame({"thread_id": "t", "comment_id": list(parents), "root_id": list(parents.values())})
    other = pl.DataFrame({"thread_id": "u", "comment_id": ["b"], "root_id": ["a"]})
    roots = add_roots(pl.concat([comments, other]))["root_id"].to_list()
    assert roots == [None, "a", "a", "a", "a", "absent", "absent", "a"]
    comments = pl.DataFrame({"thread_id": "t", "comment_id": ["a", "b", "c"], "root_id": ["b", "c", "a"]})
    assert add_roots(comments).height == 3
