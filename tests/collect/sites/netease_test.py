"""NetEase Cloud Music: saved pages to exact records. Shapes are the site's, words are ours."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.collect.sites import adapters, netease
from pipeline.collect.sites.record import Article, Comment
from pipeline.errors import SchemaDrift

URL = "https://music.163.com/api/v1/resource/comments/R_SO_4_186000?limit=20&offset=0"
PARENT = "伞借出去了，雨还没还[爱心]"


def item(**changes: Any) -> dict[str, Any]:
    """One comment as the site gives it."""
    comment = {"commentId": 5600000001, "parentCommentId": 0, "content": PARENT, "likedCount": 112}
    comment |= {"time": 1700000000288, "status": 0, "user": {"userId": "surrogate-a"}, "beReplied": []}
    return comment | changes


def page(*items: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A page of comments."""
    return {"code": 200, "total": 2, "more": True, "comments": list(items)} | changes


def test_a_page_becomes_exact_records() -> None:
    """Times are milliseconds, a reply brings its parent's words as context, emoji codes stay."""
    answered = [{"beRepliedCommentId": 5600000001, "content": PARENT, "status": 0}]
    reply = item(commentId=5600000002, parentCommentId=5600000001, content="雨说它搬家了[大哭]", beReplied=answered)
    own: Any = {"thread_id": "186000", "comment_id": "5600000001", "row_key": "5600000001", "user": "surrogate-a"}
    created_at = datetime(2023, 11, 14, 22, 13, 20, 288000, tzinfo=UTC)
    root = Comment(**own, text=PARENT, like_count=112, created_at=created_at)
    ids = {"comment_id": "5600000002", "row_key": "5600000002", "parent_id": "5600000001", "root_id": "5600000001"}
    child = root._replace(**ids, text="雨说它搬家了[大哭]", context=PARENT)
    assert adapters.parse("netease", page(item(), reply), URL, None).comments == [root, child]


@pytest.mark.parametrize("absent", [None, []])
def test_later_pages_have_no_hot_comments(absent: object) -> None:
    """Null and empty hot lists are no drift."""
    assert len(netease.parse(page(item(), hotComments=absent, topComments=absent), URL).comments) == 1


def test_deleted_comments() -> None:
    """A deleted comment is skipped with its reason, of a deleted parent the id stays; both lists are given."""
    answered = [{"beRepliedCommentId": 5600000009, "content": None, "status": -5}]
    found = netease.parse(page(item(beReplied=answered), item(beReplied=None)), URL).comments
    assert [(c.parent_id, c.context) for c in found] == [("5600000009", None), (None, None)]
    found = netease.parse(page(item(status=-5), item(commentId=5600000004)), URL)
    assert found.skipped == [("deleted_by_site", "5600000001")]
    assert [c.comment_id for c in found.comments] == ["5600000004"]
    body = page(item(), hotComments=[item()], topComments=[item(commentId=5600000003)])
    found = netease.parse(body, URL).comments
    ids = [(c.comment_id, c.is_hot) for c in found]
    assert ids == [("5600000003", True), ("5600000001", True), ("5600000001", False)]


def test_a_song() -> None:
    """The context of a song is its name and artists or a description, never lyrics."""
    songs = [
        {"id": 1, "name": "雨伞", "artists": [{"name": "甲"}, {"name": "乙"}]},
        {"id": 2, "name": "门", "ar": [{"name": "丙"}], "description": "一首关于门的歌。", "lyric": "…"},
    ]
    assert netease.parse({"code": 200, "songs": songs}, "").articles == [
        Article(thread_id="1", title="雨伞", text="雨伞 — 甲、乙", category="music"),
        Article(thread_id="2", title="门", text="一首关于门的歌。", category="music"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"code": "200", "comments": []}, {"code": 200}, {"code": 400}, {"code": 200, "songs": [{"id": 1}]}),
        *(page(comments=None), page(comments={}), page(hotComments={"a": 1}), page({"content": "x"})),
        *(page(item(**{name: 5.6e9})) for name in ("commentId", "parentCommentId")),
        *(page(item(**odd)) for odd in ({"commentId": "5600000001"}, {"content": None}, {"likedCount": "一万"})),
        *(page(item(time=time)) for time in ("昨天", 10**30)),
    ],
)
def test_drift_is_never_an_empty_list(body: dict[str, Any]) -> None:
    """A field gone or of another type raises."""
    with pytest.raises(SchemaDrift):
        adapters.parse("netease", body, URL, None)


def test_offsets_then_times() -> None:
    """Up to offset 5000 pages are numbered; past it each asks for what came before the last comment's time."""
    at = URL.replace("offset=0", "offset={}")
    body = page(item(time=3), item(time=2))
    assert netease.find_next_url(body, URL) == at.format(20)
    assert netease.find_next_url(body, at.format(4980)) == at.format(5000)
    first = netease.find_next_url(body, at.format(5000))
    assert first == URL + "&beforeTime=2"
    assert netease.find_next_url(page(item(time=1)), first) == URL + "&beforeTime=1"


@pytest.mark.parametrize("body", [page(item(), more=False), page(), page(comments=None)])
def test_the_end(body: dict[str, Any]) -> None:
    """`more` false or a page without comments is the end, whatever `total` says."""
    assert netease.find_next_url(body, URL) is None
