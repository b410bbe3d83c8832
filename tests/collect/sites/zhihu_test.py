"""Zhihu: saved pages to exact records. Shapes are the site's, words are ours."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.collect.sites import adapters, zhihu
from pipeline.collect.sites.record import Article, Comment
from pipeline.errors import SchemaDrift

URL = "https://www.zhihu.com/api/v4/comment_v5/answers/4560000/root_comment?order_by=score&limit=20&offset="


def item(**changes: Any) -> dict[str, Any]:
    """One comment as the site gives it, redacted."""
    comment = {"id": "10900000001", "type": "comment", "content": "<p>面包：我先走了</p>", "created_time": 1700000000}
    comment |= {"is_delete": False, "collapsed": False, "reviewing": False, "author": {"id": "surrogate-a"}}
    comment |= {"reply_comment_id": "0", "reply_root_comment_id": "0", "like_count": 66}
    return comment | {"child_comment_count": 1, "child_comments": []} | changes


def page(*items: Any, **paging: Any) -> dict[str, Any]:
    """A page of comments."""
    return {"data": list(items), "paging": {"is_end": True, "next": ""} | paging}


def test_a_page_becomes_exact_records() -> None:
    """A root and its preview of replies: stickers kept, seconds, ids as text; listed by score it is hot (CSD-05)."""
    content = '吐司：等等我<a class="comment_sticker" href="https://example.invalid">[惊喜]</a>'
    answered = dict.fromkeys(("reply_comment_id", "reply_root_comment_id"), "10900000001")
    child = item(id="10900000002", content=content, **answered, like_count=9, child_comment_count=0)
    own: Any = {"thread_id": "4560000", "comment_id": "10900000001", "row_key": "10900000001", "user": "surrogate-a"}
    own |= {"created_at": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), "is_hot": True}
    root = Comment(**own, text="面包：我先走了", like_count=66, reply_count=1)
    ids = {"comment_id": "10900000002", "row_key": "10900000002", "parent_id": "10900000001", "root_id": "10900000001"}
    reply = root._replace(**ids, is_hot=False, text="吐司：等等我[惊喜]", like_count=9, reply_count=0)
    assert adapters.parse("zhihu", page(item(child_comments=[child])), URL, None).comments == [root, reply]
    assert not zhihu.parse(page(item()), URL.replace("order_by=score", "order_by=ts")).comments[0].is_hot


@pytest.mark.parametrize(
    ("mark", "reason"),
    [("is_delete", "deleted_by_site"), ("collapsed", "collapsed_by_site"), ("reviewing", "reviewing_by_site")],
)
def test_gone_comments_are_skipped(mark: str, reason: str) -> None:
    """Deleted, folded and unreviewed comments are named with their reason; their replies stay."""
    found = zhihu.parse(page(item(**{mark: True, "child_comments": [item(id="10900000003")]})), URL)
    assert found.skipped == [(reason, "10900000001")]
    assert [c.comment_id for c in found.comments] == ["10900000003"]


def test_an_answer_and_no_comments() -> None:
    """An answer is an article titled with its question, 404 says no comments; older authors lie one level down."""
    body = {"id": 4560000, "content": "<p>八点半去。</p>", "question": {"id": 1, "title": "几点去？"}, "author": {}}
    assert zhihu.parse(body, "").articles == [Article(thread_id="4560000", title="几点去？", text="八点半去。")]
    found = zhihu.parse({"error": {"code": 404, "message": "…"}}, URL)
    assert found.skipped == [("no_comments", "/api/v4/comment_v5/answers/4560000/root_comment")]
    assert found.comments == []
    found = zhihu.parse(page(item(author={"member": {"id": "old"}}), item(author=None)), URL).comments
    assert [c.user for c in found] == ["old", None]


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"data": None}, {"data": {}}, {"error": "no"}, {"id": 1, "content": "x", "question": {}}, page("text")),
        {"id": 1.0, "content": "x", "question": {"title": "?"}},
        *(page(item(**{name: 1.09e10})) for name in ("id", "reply_comment_id", "reply_root_comment_id")),
        *(page(item(**odd)) for odd in ({"id": 10900000001}, {"content": None}, {"created_time": "昨天"})),
    ],
)
def test_drift_is_never_an_empty_list(body: dict[str, Any]) -> None:
    """A field gone or of another type raises; ids are text on this site and nothing else."""
    with pytest.raises(SchemaDrift):
        adapters.parse("zhihu", body, URL, None)


@pytest.mark.parametrize(
    ("body", "following"),
    [
        (page(item(), is_end=False, next=URL + "456_1090_0"), URL + "456_1090_0"),
        (page(item(), is_end=True, next=URL + "456_1090_0"), None), (page(is_end=False, next=URL + "456_1090_0"), None),
        (page(item(), is_end=False, next=URL), None), (page(item(), is_end=False, next=""), None),
        ({"data": [item()]}, None),
    ],
)  # fmt: skip
def test_cursors(body: dict[str, Any], following: str | None) -> None:
    """The next address is followed to the letter; is_end, an empty page or the same address again is the end."""
    assert zhihu.find_next_url(body, URL) == following
