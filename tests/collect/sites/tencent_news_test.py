"""Tencent News: saved pages of both generations to exact records. Shapes are the site's, words are ours."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.collect.sites import adapters, tencent_news
from pipeline.collect.sites.record import Article, Comment
from pipeline.errors import SchemaDrift

URL = "https://coral.qq.com/article/1900000001/comment/v2?oriorder=o&orinum=10&cursor=0"
SECOND = "https://i.news.qq.com/getQQNewsComment?apptype=web&article_id=20261118A0000001&reqNum=20"
ROOT = "6290000000000000001"  # beyond 2**53, as all of this site's ids


def item(**changes: Any) -> dict[str, Any]:
    """One comment of generation 1: counts and times are text."""
    comment = {"id": ROOT, "rootid": "0", "parent": "0", "targetid": "1900000001", "userid": "surrogate-a"}
    comment |= {"content": "红砖&amp;粉笔都没说话<br>门开着", "up": "57", "time": "1500000000", "orireplynum": "1"}
    return comment | changes


def page(*items: Any, **changes: Any) -> dict[str, Any]:
    """A page of generation 1."""
    data = {"targetid": "1900000001", "hasnext": True, "last": "6290000000000000002", "oriCommList": list(items)}
    return {"errCode": 0, "data": data | {"repCommList": []} | changes}


def new(**changes: Any) -> dict[str, Any]:
    """One comment of generation 2."""
    mine = {"commentid": "70", "reply_id": "7000000000000000001", "agree_count": "3", "time": "1700000000"}
    return mine | {"content": "坐等砖的续集", "userid": "surrogate-b"} | changes


def second(*branches: Any, **changes: Any) -> dict[str, Any]:
    """A page of generation 2."""
    return {"ret": 0, "comments": {"count": 2, "new": list(branches), "hot": []} | changes}


def test_generation_1_becomes_exact_records() -> None:
    """Roots and the replies filed under them: text numbers become numbers, ids stay text to the last digit."""
    reply = item(id="6290000000000000009", rootid=ROOT, parent=ROOT, content="说得好", up="2", orireplynum="0")
    own: Any = {"thread_id": "1900000001", "comment_id": ROOT, "row_key": ROOT, "user": "surrogate-a"}
    created_at = datetime(2017, 7, 14, 2, 40, tzinfo=UTC)
    root = Comment(**own, text="红砖&粉笔都没说话\n门开着", like_count=57, reply_count=1, created_at=created_at)
    ids = {"comment_id": "6290000000000000009", "row_key": "6290000000000000009", "parent_id": ROOT, "root_id": ROOT}
    child = root._replace(**ids, text="说得好", like_count=2, reply_count=0)
    body = page(item(), repCommList={ROOT: [reply]})
    assert adapters.parse("tencent_news", body, URL, None).comments == [root, child]


@pytest.mark.parametrize("empty", [[], {}, None])
def test_no_replies(empty: object) -> None:
    """RepCommList is an empty list or object, or null, where nobody replied."""
    assert len(tencent_news.parse(page(item(), repCommList=empty), URL).comments) == 1


def test_generation_2_becomes_exact_records() -> None:
    """The first of each branch is the root of the others; likes and times are text."""
    reply = new(reply_id="7000000000000000002", content="砖：演完了", pub_time="1700000060", agree_count="")
    own: Any = {"thread_id": "20261118A0000001", "comment_id": "7000000000000000001", "row_key": "7000000000000000001"}
    created_at = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    root = Comment(**own, text="坐等砖的续集", like_count=3, created_at=created_at, user="surrogate-b")
    ids = {"comment_id": "7000000000000000002", "parent_id": root.comment_id, "root_id": root.comment_id}
    created_at = datetime(2023, 11, 14, 22, 14, 20, tzinfo=UTC)
    child = root._replace(**ids, row_key=ids["comment_id"], text="砖：演完了", like_count=None, created_at=created_at)
    assert adapters.parse("tencent_news", second([new(), reply]), SECOND, None).comments == [root, child]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"reply_content": "甲", "content": "甲"}, "甲"),
        ({"reply_content": "乙", "content": None}, "乙"),
        ({"reply_content": None, "content": "丙"}, "丙"),
    ],
)
def test_generation_2_has_two_names_for_the_text(fields: dict[str, Any], text: str) -> None:
    """Public crawlers disagree on the field's name, so both are read."""
    assert tencent_news.parse(second([new(**fields)]), SECOND).comments[0].text == text


def test_an_article() -> None:
    """An article is filed under its comment id; without reply_id a commentid is the id, `hot` may be null."""
    body = {"comment_id": "1900000001", "title": "门禁", "content": "<p>一</p><p>二</p>", "catalog1": "society"}
    wanted = Article(thread_id="1900000001", title="门禁", text="一\n二", category="society")
    assert tencent_news.parse(body, "").articles == [wanted]
    found = tencent_news.parse(second([new(reply_id=None)], hot=[[new()]]), SECOND).comments
    assert [(c.comment_id, c.is_hot) for c in found] == [("7000000000000000001", True), ("70", False)]
    assert len(tencent_news.parse(second([new()], hot=None), SECOND).comments) == 1


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"errCode": 0}, {"errCode": 0, "data": []}, {"ret": 0}, page("text"), second(new=None)),
        *(page(**odd) for odd in ({"oriCommList": None}, {"targetid": None}, {"targetid": 1.9e9})),
        page(repCommList={ROOT: None}),
        *(page(item(**odd)) for odd in ({"id": 6290000000000000001}, {"id": 6.29e18}, {"parent": 6.29e18})),
        *(page(item(**odd)) for odd in ({"content": None}, {"up": "很多"}, {"time": "99999999999999999999"})),
        *(second([new(**odd)]) for odd in ({"content": None}, {"content": 7}, {"reply_id": 7e18})),
        second([new(reply_id=None, commentid=None)]),
    ],
)
def test_drift_is_never_an_empty_list(body: dict[str, Any]) -> None:
    """A field gone or of another type raises; ids are text and floats have lost digits."""
    with pytest.raises(SchemaDrift):
        adapters.parse("tencent_news", body, SECOND, None)


@pytest.mark.parametrize(
    ("body", "following"),
    [
        (page(item()), URL.replace("cursor=0", "cursor=6290000000000000002")), (page(item(), hasnext=False), None),
        (page(item(), last=""), None), (page(item(), last=None), None), (page(), None), (second([new()]), None),
    ],
)  # fmt: skip
def test_cursors(body: dict[str, Any], following: str | None) -> None:
    """`last` is the opaque cursor; without it, without comments or with hasnext false the list has ended."""
    assert tencent_news.find_next_url(body, URL) == following
