"""Weibo: posts, hot comments, replies of a comment, and the older comment list, as its mobile pages answer them.

The comments of hotflow, the hot list, are hot; replies that it shows below them are not (CSD-05).
"""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pipeline.collect.sites.markup import extract_text
from pipeline.collect.sites.record import Article, Comment, Page, count, need, parse_id, refuse, set_query
from pipeline.errors import SchemaDrift

ADAPTER = "weibo/2"
START = "https://m.weibo.cn/comments/hotflow?id={thread}&mid={thread}&max_id_type=0"
ARTICLE = "https://m.weibo.cn/statuses/show?id={thread}"
_REPLY_PREFIX = re.compile(r"^回复\s*(?:@[^\s:：]{1,40}|\[MENTION\])\s*[:：]\s*")


def parse(body: dict[str, Any], url: str, fetched_at: datetime | None = None) -> Page:
    """One page to records. A refusal inside the page raises Refused, an unknown shape SchemaDrift."""
    if body.get("ok") in (0, -100) or body.get("login") is True:
        raise refuse("weibo", body.get("ok"), str(body.get("msg") or "log-in wanted, or nothing to show"))
    if "ok" not in body and "text" not in body:
        raise SchemaDrift("weibo: neither `ok` nor a post in the answer; the adapter needs an update")
    data = body.get("data", body)
    if isinstance(data, dict) and "text" in data and "user" in data:
        long = data.get("longTextContent") or (data.get("longText") or {}).get("longTextContent")
        thread_id = str(need(data, "id", (int, str), "weibo"))
        return Page(articles=[Article(thread_id=thread_id, title=None, text=extract_text(long or data["text"]))])
    address = urlsplit(url)
    query, is_hot = parse_qs(address.query), address.path.endswith("/comments/hotflow")
    thread = next(iter(query.get("id") or query.get("mid") or []), None)
    page = Page()
    for item in data if isinstance(data, list) else need(data, "data", list, "weibo"):
        post = thread or parse_id(item.get("thread_id"))
        if post is None:  # hotFlowChild names only the comment (cid); our fetcher keeps the post id in the address
            raise SchemaDrift(f"weibo: the address {address.path} names no post (id=…)")
        page.comments.append(_comment(item, post, None, fetched_at, is_hot=is_hot))
        replies = item.get("comments") or []  # a preview, or false
        page.comments += [_comment(reply, post, parse_id(item.get("id")), fetched_at) for reply in replies]
    return page


def find_next_url(body: dict[str, Any], url: str) -> str | None:
    """Address of the next page, None at the end. max_id_type comes from the answer: it flips to 1 after ~15 pages."""
    data = body.get("data")
    cursor = data if isinstance(data, dict) else body
    if not (max_id := cursor.get("max_id")):
        return None
    return set_query(url, max_id=str(max_id), max_id_type=str(cursor.get("max_id_type", 0)))


def _comment(
    item: dict[str, Any], thread: str, parent: str | None, fetched_at: datetime | None, *, is_hot: bool = False
) -> Comment:
    comment_id = str(need(item, "id", (int, str), "weibo"))
    root = parse_id(item.get("rootidstr") or item.get("rootid"))
    parent = parse_id(item.get("reply_id")) or parent or (root if root != comment_id else None)
    return Comment(
        thread_id=thread,
        comment_id=comment_id,
        parent_id=parent,
        root_id=root if parent else None,
        text=_REPLY_PREFIX.sub("", extract_text(need(item, "text", str, "weibo"))),
        like_count=count(item.get("like_count", item.get("like_counts"))),
        reply_count=count(item.get("total_number")),
        created_at=_time(item.get("created_at"), fetched_at),
        user=parse_id((item.get("user") or {}).get("id")),
        is_hot=is_hot,
    )


def _time(value: object, fetched_at: datetime | None) -> datetime | None:
    """`Thu Nov 06 10:30:00 +0800 2025`, or a time relative to the fetch (`刚刚`, `5分钟前`), or None."""
    text = str(value or "")
    with suppress(ValueError):
        return datetime.strptime(text, "%a %b %d %H:%M:%S %z %Y").astimezone(UTC)
    ago = re.match(r"^([0-9]{1,6})\s*(秒|分钟|小时)前$", "0秒前" if text == "刚刚" else text)
    if fetched_at is None or ago is None:
        return None
    unit = {"秒": "seconds", "分钟": "minutes", "小时": "hours"}[ago[2]]
    return fetched_at - timedelta(**{unit: int(ago[1])})
