"""Bilibili: saved pages to exact records. Shapes are the site's, words are ours."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.collect.sites import adapters, bilibili
from pipeline.collect.sites.record import Article, Comment
from pipeline.errors import SchemaDrift

URL = "https://api.bilibili.com/x/v2/reply/main?type=1&oid=170001&mode=3&next=0"
LISTING = "https://api.bilibili.com/x/v2/reply?type=1&oid=170001&pn=1"


def item(**changes: Any) -> dict[str, Any]:
    """One comment as the site gives it, redacted."""
    ids = {"rpid": 250000000001, "rpid_str": "250000000001", "oid": 170001, "mid": "surrogate-a"}
    ids |= {"root": 0, "root_str": "0", "parent": 0, "parent_str": "0"}
    counts = {"rcount": 1, "ctime": 1700000000, "like": 888, "state": 0}
    return ids | counts | {"content": {"message": "这收音机比我会唱[脱单doge]"}, "replies": None} | changes


def page(*items: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A page of comments."""
    return {"code": 0, "message": "0", "data": {"replies": list(items)} | changes}


def child(number: int, **changes: Any) -> dict[str, Any]:
    """A reply of the first comment."""
    root = {"root": 250000000001, "root_str": "250000000001", "parent": 250000000001, "parent_str": "250000000001"}
    return item(rpid=number, rpid_str=str(number), rcount=0, like=20, **root | changes)


def test_a_page_becomes_exact_records() -> None:
    """A root and its reply: seconds, 64-bit ids as text, 0 as no parent, the codes of emoji kept."""
    body = page(item(replies=[child(250000000002, content={"message": "天线：谢谢夸奖"})]))
    own: Any = {"thread_id": "170001", "comment_id": "250000000001", "row_key": "250000000001", "user": "surrogate-a"}
    own |= {"created_at": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), "is_hot": True}
    root = Comment(**own, text="这收音机比我会唱[脱单doge]", like_count=888, reply_count=1)
    ids = {"parent_id": root.comment_id, "root_id": root.comment_id, "comment_id": "250000000002", "is_hot": False}
    reply = root._replace(**ids, row_key="250000000002", text="天线：谢谢夸奖", like_count=20, reply_count=0)
    assert adapters.parse("bilibili", body, URL, None).comments == [root, reply]


@pytest.mark.parametrize("prefix", ["回复 @样例 观众 :", "回复 @样例观众 ：", "回复 [MENTION] :", "回复 @a:"])
def test_the_reply_prefix_goes(prefix: str) -> None:
    """Third-level replies begin with whom they answer, which is in `parent` already."""
    (found,) = bilibili.parse(page(child(250000000003, content={"message": f"{prefix}修得好"})), URL).comments
    assert found.text == "修得好"


def test_pinned_and_hot() -> None:
    """Pinned comments and `hots` come first and are marked, as is all of a list by heat; overlap is left (CSD-05)."""
    body = page(
        item(), top_replies=[item(rpid_str="11")], upper={"mid": "s", "top": item(rpid_str="12")},
        hots=[item(rpid_str="13")], root=item(rpid_str="14"),
    )  # fmt: skip
    comments = bilibili.parse(body, LISTING).comments
    assert [c.comment_id for c in comments if c.is_hot] == ["11", "12", "14", "13"]
    assert all(c.is_hot for c in bilibili.parse(body, URL).comments)
    assert [c.comment_id for c in comments[4:]] == ["250000000001"]


def test_pages_without_comments() -> None:
    """Null lists and code 12002 are no refusal; a third-level reply keeps root and parent apart."""
    found = bilibili.parse(page(replies=None, hots=None, top_replies=None, upper={"top": None}, root=None), URL)
    assert (found.comments, found.skipped) == ([], [])
    found = bilibili.parse({"code": 12002, "message": "closed"}, URL)
    assert found.comments == []
    assert found.skipped == [("comments_closed", "type=1&oid=170001&mode=3&next=0")]
    (found,) = bilibili.parse(page(child(250000000004, parent_str="250000000002")), URL).comments
    assert (found.parent_id, found.root_id) == ("250000000002", "250000000001")


@pytest.mark.parametrize("hidden", [{"state": 17}, {"invisible": True}])
def test_hidden_comments_are_skipped(hidden: dict[str, Any]) -> None:
    """State 17 and invisible comments are named with their reason; their replies are not lost with them."""
    found = bilibili.parse(page(item(replies=[child(250000000005)], **hidden)), URL)
    assert found.skipped == [("hidden_by_site", "250000000001")]
    assert [c.comment_id for c in found.comments] == ["250000000005"]


def test_a_video() -> None:
    """A video is an article with its title and description."""
    body = {"code": 0, "data": {"aid": 170001, "title": "修收音机", "desc": None, "owner": {}}}
    assert bilibili.parse(body, "").articles == [Article(thread_id="170001", title="修收音机", text="")]


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"code": 0}, {"code": 0, "data": None}, {"code": 0, "data": {}}, page({"code": 1})),
        *(page(replies=replies) for replies in ({}, False, "none")),
        page(item(rpid_str=None, rpid=2.5e11)),
        page(item(root_str=None, root=2.5e11)),
        *(page(item(**odd)) for odd in ({"parent_str": 2.5e11}, {"oid": 1.7e5}, {"content": None})),
        *(page(item(**odd)) for odd in ({"content": {"message": None}}, {"ctime": "1700000000.5"}, {"like": "1.2万"})),
    ],
)
def test_drift_is_never_an_empty_list(body: dict[str, Any]) -> None:
    """A field gone or of another type raises; so does an id that came as a floating-point number."""
    with pytest.raises(SchemaDrift):
        adapters.parse("bilibili", body, URL, None)


@pytest.mark.parametrize(
    ("cursor", "following"),
    [
        ({"next": 2, "is_end": False}, URL.replace("next=0", "next=2")),
        ({"next": 0, "is_end": False, "pagination_reply": {"next_offset": "opaque-1"}}, URL.replace("=0", "=opaque-1")),
        ({"next": 3, "is_end": True}, None),
        ({"next": 0, "is_end": False, "pagination_reply": None}, None),
    ],
)
def test_cursors(cursor: dict[str, Any], following: str | None) -> None:
    """The cursor is a number or opaque; is_end ends even where the page holds comments."""
    assert bilibili.find_next_url(page(item(), cursor=cursor), URL) == following


@pytest.mark.parametrize(
    ("listing", "items", "following"),
    [
        ({"num": 1, "size": 20, "count": 41}, [item()], LISTING.replace("pn=1", "pn=2")),
        ({"num": 3, "size": 20, "count": 41}, [item()], None),
        ({"num": 1, "size": 20, "count": 41}, None, None),
    ],
)
def test_numbered_pages(listing: dict[str, Any], items: object, following: str | None) -> None:
    """The oldest generation counts pages; an empty or the last one ends."""
    assert bilibili.find_next_url(page(page=listing, replies=items), LISTING) == following


def test_nothing_says_what_follows() -> None:
    """Without a cursor there is no next page, and there is no address to start from: parse only."""
    assert bilibili.find_next_url(page(item()), URL) is None
    assert bilibili.START is None
