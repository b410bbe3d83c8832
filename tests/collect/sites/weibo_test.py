"""Weibo: saved pages to exact records. Shapes are the site's, words are ours."""

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipeline.collect.sites import adapters, weibo
from pipeline.collect.sites.record import Article, Comment
from pipeline.errors import SchemaDrift

HOT = "https://m.weibo.cn/comments/hotflow?id=5100000000000001&mid=5100000000000001&max_id_type=0"
CHILD = "https://m.weibo.cn/comments/hotFlowChild?cid=5100000000000010&max_id=0&max_id_type=0"
SHOW = "https://m.weibo.cn/api/comments/show?id=5100000000000001&page=1"
NOW = datetime(2026, 11, 19, 2, tzinfo=UTC)
DOGE = '<span class="url-icon"><img alt=[doge] src="https://example.invalid/doge.png"></span>'


def item(**changes: Any) -> dict[str, Any]:
    """One comment as the site gives it."""
    ids = {"id": 5100000000000010, "rootid": 5100000000000010, "rootidstr": "5100000000000010"}
    comment = {"created_at": "Thu Nov 06 10:30:00 +0800 2025", "text": f"蛋挞瘦得比我快{DOGE}", "like_count": 321}
    return ids | comment | {"total_number": 2, "user": {"id": "surrogate-a"}, "comments": False} | changes


def page(*items: dict[str, Any], **cursor: Any) -> dict[str, Any]:
    """A page of the hot list."""
    return {"ok": 1, "data": {"data": list(items), "max_id": 0, "max_id_type": 0} | cursor}


def test_a_hot_list_becomes_exact_records() -> None:
    """A root with its preview of replies gives both, ids as text, times in UTC; the root alone is hot (CSD-05)."""
    text, created_at = "回复<a href='/n/x'>@样例甲</a>:乐观了&amp;保守了", "Thu Nov 06 10:41:02 +0800 2025"
    reply = item(id=5100000000000011, text=text, like_count=5, created_at=created_at, user={"id": "surrogate-b"})
    del reply["total_number"], reply["comments"]
    own: Any = {"thread_id": "5100000000000001", "comment_id": "5100000000000010", "row_key": "5100000000000010"}
    own |= {"created_at": datetime(2025, 11, 6, 2, 30, tzinfo=UTC), "user": "surrogate-a", "is_hot": True}
    root = Comment(**own, text="蛋挞瘦得比我快[doge]", like_count=321, reply_count=2)
    ids = {"comment_id": "5100000000000011", "parent_id": root.comment_id, "root_id": root.comment_id, "is_hot": False}
    more = {"created_at": datetime(2025, 11, 6, 2, 41, 2, tzinfo=UTC), "user": "surrogate-b"}
    texts = {"text": "乐观了&保守了", "row_key": "5100000000000011"}
    child = root._replace(**ids, **more, **texts, like_count=5, reply_count=None)
    found = adapters.parse("weibo", page(item(comments=[reply])), HOT, None)
    assert found.comments == [root, child]
    assert (found.articles, found.skipped) == ([], [])
    assert not weibo.parse(page(item()), SHOW).comments[0].is_hot


@pytest.mark.parametrize(
    "prefix",
    ["回复<a href='/n/x'>@样例甲</a>:", "回复@样例甲：", "回复 @样例甲: ", "回复<a>[MENTION]</a>:", "回复[MENTION]："],
)
def test_the_reply_prefix_goes(prefix: str) -> None:
    """Whom a reply answers is in its ids; the prefix is not part of what was said, redacted or not."""
    (comment,) = weibo.parse(page(item(text=f"{prefix}说得好")), HOT).comments
    assert comment.text == "说得好"


@pytest.mark.parametrize("preview", [False, None, []])
def test_no_replies(preview: object) -> None:
    """`comments` of a comment without replies is false, null or an empty list: nothing follows."""
    assert len(weibo.parse(page(item(comments=preview)), HOT).comments) == 1


def test_reply_id_names_the_parent() -> None:
    """reply_id names the parent, the root stays; HotFlowChild lists replies straight under `data`."""
    (reply,) = weibo.parse(page(item(id=9007199254740993, reply_id=5100000000000011)), HOT).comments
    ids = (reply.comment_id, reply.parent_id, reply.root_id)
    assert ids == ("9007199254740993", "5100000000000011", "5100000000000010")
    body = {"ok": 1, "data": [item(id=5100000000000013)], "max_id": 77, "max_id_type": 0}
    (reply,) = weibo.parse(body, CHILD + "&id=5100000000000001").comments
    assert (reply.thread_id, reply.parent_id) == ("5100000000000001", "5100000000000010")
    assert weibo.find_next_url(body, CHILD) == CHILD.replace("max_id=0", "max_id=77")
    with pytest.raises(SchemaDrift, match="names no post"):
        weibo.parse(body, CHILD)


@pytest.mark.parametrize(("written", "before"), [
    ("刚刚", timedelta()), ("30秒前", timedelta(seconds=30)), ("5分钟前", timedelta(minutes=5)),
    ("2小时前", timedelta(hours=2)), ("11-09", None), ("", None),
])  # fmt: skip
def test_relative_times(written: str, before: timedelta | None) -> None:
    """comments/show writes times relative to the fetch; without one, or without a year, the time is unknown."""
    body = page(item(created_at=written, like_counts=9))
    del body["data"]["data"][0]["like_count"]
    (comment,) = weibo.parse(body, SHOW, NOW).comments
    assert comment.created_at == (None if before is None else NOW - before)
    assert comment.like_count == 9  # like_counts is the name in comments/show
    assert weibo.parse(body, SHOW, None).comments[0].created_at is None


@pytest.mark.parametrize("post", [{"text": "短文"}, {"text": "短…", "longTextContent": "长文"}])
def test_a_post(post: dict[str, Any]) -> None:
    """A post is an article without a title; its long text, when given, is its text. A bare mblog is one too."""
    mblog = {"id": 5100000000000001, "user": {"id": "s"}} | post
    wanted = [Article(thread_id="5100000000000001", title=None, text=post.get("longTextContent", "短文"))]
    assert weibo.parse({"ok": 1, "data": mblog}, "").articles == wanted
    assert weibo.parse(mblog, "").articles == wanted


del_ = object()


def drift(path: list[Any], value: object) -> dict[str, Any]:
    """A good page with one thing changed, or taken out where `value` is `del_`."""
    body = deepcopy(page(item()))
    node: Any = body
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    if value is del_:
        del node[path[-1]]
    return body


FIRST = ["data", "data", 0]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["ok"], del_), *((["data"], value) for value in (del_, None, {})),
        *((["data", "data"], value) for value in (None, {}, ["text"])),
        *(([*FIRST, name], 5.1e15) for name in ("id", "rootidstr", "reply_id")),
        *(([*FIRST, name], del_) for name in ("id", "text")), ([*FIRST, "text"], None),
        ([*FIRST, "like_count"], "许多"), ([*FIRST, "user"], "somebody"), ([*FIRST, "comments"], {"data": []}),
    ],
)  # fmt: skip
def test_drift_is_never_an_empty_list(path: list[Any], value: object) -> None:
    """A field gone or of another type raises; ids as floating-point numbers have lost digits and are refused."""
    with pytest.raises(SchemaDrift, match=r"weibo|floating-point"):
        adapters.parse("weibo", drift(path, value), HOT, NOW)


def test_cursors() -> None:
    """max_id_type flips to 1 after some fifteen pages, and 0 would lose the tail; max_id 0 is the end."""
    assert weibo.find_next_url(page(item(), max_id=139, max_id_type=1), HOT) == HOT.replace(
        "_type=0", "_type=1&max_id=139"
    )
    assert weibo.find_next_url(page(item(), max_id=0), HOT) is None
