"""Tencent News: articles, the comment lists of its older service (generation 1) and of its newer one (generation 2).

Of generation 2 public crawlers disagree on the text's field name (`reply_content`, `content`): both are read.
"""

from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pipeline.collect.sites.markup import extract_text
from pipeline.collect.sites.record import Article, Comment, Page, count, need, parse_id, parse_time, refuse, set_query
from pipeline.errors import SchemaDrift

ADAPTER = "tencent_news/1"
START = "https://coral.qq.com/article/{thread}/comment/v2?oriorder=o&orinum=10&cursor=0"


def parse(body: dict[str, Any], url: str, fetched_at: datetime | None = None) -> Page:  # noqa: ARG001
    """One page to records."""
    if "comment_id" in body and "title" in body:
        thread_id = str(need(body, "comment_id", (int, str), "tencent_news"))
        title, text = need(body, "title", str, "tencent_news"), extract_text(str(body.get("content") or ""))
        return Page(articles=[Article(thread_id=thread_id, title=title, text=text, category=body.get("catalog1"))])
    if "errCode" not in body and "ret" not in body:
        raise SchemaDrift("tencent_news: neither errCode nor ret nor an article; the adapter needs an update")
    if (code := body.get("errCode", body.get("ret"))) != 0:
        raise refuse("tencent_news", code, str(body.get("info") or "no comments given"))
    if "errCode" in body:
        data = need(body, "data", dict, "tencent_news")
        thread = str(need(data, "targetid", (int, str), "tencent_news"))
        replies = data.get("repCommList") or {}  # [] when empty
        nested = [reply for branch in replies.values() for reply in branch] if isinstance(replies, dict) else []
        items = [*need(data, "oriCommList", list, "tencent_news"), *nested]
        return Page(comments=[_old(item, thread) for item in items])
    return _parse_second(need(body, "comments", dict, "tencent_news"), url)


def find_next_url(body: dict[str, Any], url: str) -> str | None:
    """Address of the next page, None at the end. Generation 2 is read page by page as given: its paging is unproven."""
    data = body.get("data") or {}
    last = data.get("last")
    if not data.get("oriCommList") or not last or data.get("hasnext") is False:
        return None
    return set_query(url, cursor=str(last))


def _old(item: dict[str, Any], thread: str) -> Comment:
    return Comment(
        thread_id=thread,
        comment_id=need(item, "id", str, "tencent_news"),
        parent_id=parse_id(item.get("parent")),
        root_id=parse_id(item.get("rootid")),
        text=extract_text(need(item, "content", str, "tencent_news")),
        like_count=count(item.get("up")),
        reply_count=count(item.get("orireplynum")),
        created_at=parse_time(item.get("time")),
        user=parse_id(item.get("userid")),
    )


def _parse_second(comments: dict[str, Any], url: str) -> Page:
    thread = next(iter(parse_qs(urlsplit(url).query).get("article_id", [])), None)
    if thread is None:
        raise SchemaDrift("tencent_news: the address names no article (article_id=…)")
    page = Page()
    for key, hot in (("hot", True), ("new", False)):
        for branch in need(comments, key, list, "tencent_news") if key == "new" else comments.get(key) or []:
            root: str | None = None
            for item in branch:
                page.comments.append(_new(item, thread, root, hot))
                root = root or page.comments[-1].comment_id
    return page


def _new(item: dict[str, Any], thread: str, root: str | None, hot: bool) -> Comment:
    text = item.get("reply_content") or item.get("content")
    if not isinstance(text, str):
        raise SchemaDrift("tencent_news: a comment has neither reply_content nor content")
    return Comment(
        thread_id=thread,
        comment_id=parse_id(item.get("reply_id")) or str(need(item, "commentid", str, "tencent_news")),
        parent_id=root,
        root_id=root,
        text=extract_text(text),
        like_count=count(item.get("agree_count")),
        created_at=parse_time(item.get("pub_time") or item.get("time")),
        user=parse_id(item.get("userid")),
        is_hot=hot,
    )
