"""Which comments are labelled: every rule has its reason, and kept and dropped add up."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.label.selection import Rules, build_tasks, make_task_id, select
from tests.support.rows.filled import filled

PLAIN = {"lang": "zh", "context": "一段视频的标题", "text": "这也太快了吧", "like_count": 5}


def build_comments(*changes: dict[str, object]) -> pl.DataFrame:
    """Build comments that break no rule but by their changes."""
    return filled("comments", *({**PLAIN, **change} for change in changes))


@pytest.mark.parametrize(
    ("change", "rules", "reason"),
    [
        ({"lang": "en"}, Rules(), "language"), ({"context": None}, Rules(), "no_context"),
        ({"context": "  "}, Rules(), "no_context"), ({"text": "好快啊"}, Rules(), "too_short"),
        ({"text": "好" * 201}, Rules(), "too_long"), ({"like_count": 4}, Rules(least_likes=5), "few_likes"),
        ({"like_count": None}, Rules(least_likes=1), "few_likes"), ({"is_hot": False}, Rules(is_hot=True), "not_hot"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_the_reason(change: dict[str, object], rules: Rules, reason: str) -> None:
    """A comment that breaks a rule is left out by its name, the other one is kept."""
    selected, dropped = select(build_comments({"is_hot": True}, {"is_hot": True, **change}), rules)
    assert selected["comment_id"].to_list() == ["c1"]
    assert dropped.rows() == [("weibo", reason, "t1/c2")]


@pytest.mark.parametrize(("least", "most"), [(4, 200), (6, 6)])
def test_lengths_are_inclusive(least: int, most: int) -> None:
    """A comment of just the least or the most characters is kept."""
    rows = build_comments({"text": "好" * least}, {"text": "好" * most})
    assert select(rows, Rules(least_chars=least, most_chars=most))[0].height == 2


def test_rules_may_be_off() -> None:
    """Rules may be off, in any language given; a least length above the most is BadInput."""
    rows = build_comments({"context": None, "lang": "en"})
    assert select(rows, Rules(langs=("en", "zh"), has_context=False))[0].height == 1
    with pytest.raises(BadInput, match="least_chars 9 is above most_chars 3"):
        select(build_comments(), Rules(least_chars=9, most_chars=3))


def test_the_most_liked_of_a_cluster_and_of_a_thread_are_kept() -> None:
    """Near duplicates, then threads, then sources are cut down to the most liked; what is out takes no place."""
    rows = build_comments(
        {"like_count": 1}, {"like_count": 9}, {"like_count": 7, "lang": "en"}, {"like_count": 3}, {"like_count": 2},
        {"like_count": 8, "thread_id": "t2"},
    )  # fmt: skip
    selected, dropped = select(rows, Rules(per_thread=1, limit=1), [0, 1, 1, 0, 2, 3])
    assert selected["comment_id"].to_list() == ["c2"]
    assert dict(dropped.select("row_key", "reason").rows()) == {
        "t1/c1": "near_duplicate", "t1/c3": "language", "t1/c4": "over_thread", "t1/c5": "over_thread",
        "t2/c6": "over_limit",
    }  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(["zh", "en"]), st.integers(1, 9), st.integers(0, 3), st.integers(0, 2))),
    st.randoms(),
)
def test_kept_and_dropped_add_up_in_any_order(rows: list[tuple[str, int, int, int]], random: object) -> None:
    """Every comment is kept or dropped once, and the order of the rows changes nothing."""
    comments = [
        {"lang": lang, "text": "好" * size, "like_count": likes, "thread_id": f"t{thread}", "comment_id": f"c{n}"}
        for n, (lang, size, likes, thread) in enumerate(rows)
    ]
    rules = Rules(per_thread=2, limit=3)
    selected, dropped = select(build_comments(*comments), rules, [row[1] for row in rows])
    assert selected.height + dropped.height == len(rows)
    order = list(range(len(rows)))
    random.shuffle(order)  # type: ignore[attr-defined]
    mixed = select(build_comments(*(comments[i] for i in order)), rules, [rows[i][1] for i in order])
    assert mixed[0]["comment_id"].to_list() == selected["comment_id"].to_list()
    assert mixed[1].rows() == dropped.rows()


def test_a_task_is_known_by_what_it_shows() -> None:
    """Equal context and text are one task of a project; another context, text or project is another."""
    rows, same = build_tasks(
        build_comments({}, {"thread_id": "t2"}, {"context": "别的标题"}, {"text": "这也太慢了吧"}), "csd"
    )
    assert same.select("reason", "row_key").rows() == [("same_task", "t2/c2")]
    assert rows["comment_id"].to_list() == ["c1", "c3", "c4"]
    assert rows["task_id"][0] == make_task_id("csd", "一段视频的标题", "这也太快了吧")
    assert rows["task_id"].n_unique() == 3
    assert make_task_id("other", "一段视频的标题", "这也太快了吧") != rows["task_id"][0]
