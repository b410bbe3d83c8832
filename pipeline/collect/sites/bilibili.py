"""Bilibili: video details and four generations of comment lists. Parse only: its robots.txt disallows all.

A list by heat (`mode=3`) is the hot list; replies shown below its comments are not hot (CSD-05).
"""

import re
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pipeline.collect.sites.record import Article, Comment, Page, count, need, parse_id, parse_time, refuse, set_query

ADAPTER = "bilibili/2"
START = None
_REPLY_PREFIX = re.compile(r"^回复 (?:@[^:：]{1,40}|\[MENTION\]) ?[:：] ?")
_REFUSALS = {-101: "log-in wanted", -352: "risk control", -403: "no access", -412: "blocked", -799: "too often"}
_CLOSED = 12002  # the comment section is closed
_HIDDEN = 17


def parse(body: dict[str, Any], url: str, fetched_at: datetime | None = None) -> Page:  # noqa: ARG001
    """One page to records; a closed section is a page without comments."""
    code = need(body, "code", int, "bilibili")
    if code == _CLOSED:
        return Page(skipped=[("comments_closed", urlsplit(url).query)])
    if code != 0:
        raise refuse("bilibili", code, _REFUSALS.get(code, str(body.get("message"))))
    data = need(body, "data", dict, "bilibili")
    if "title" in data and "aid" in data:
        return Page(articles=[Article(str(data["aid"]), data["title"], str(data.get("desc") or ""))])
    if data.get("replies", "") is not None:
        need(data, "replies", list, "bilibili")
    page = Page()
    pinned = filter(None, [(data.get("upper") or {}).get("top"), data.get("root")])
    for reply in [*(data.get("top_replies") or []), *pinned, *(data.get("hots") or [])]:
        _add(page, reply, hot=True)
    is_by_heat = parse_qs(urlsplit(url).query).get("mode") == ["3"]
    for reply in data["replies"] or []:  # null when closed or empty
        _add(page, reply, hot=is_by_heat)
    return page


def find_next_url(body: dict[str, Any], url: str) -> str | None:
    """Address of the next page, None at the end."""
    data = body.get("data") or {}
    if cursor := data.get("cursor"):
        offset = (cursor.get("pagination_reply") or {}).get("next_offset")
        if cursor.get("is_end") or not (offset or cursor.get("next")):
            return None
        return set_query(url, next=str(cursor.get("next") or offset))
    if listing := data.get("page"):
        number = int(listing.get("num", 1))
        if not data.get("replies") or number * int(listing.get("size", 20)) >= int(listing.get("count", 0)):
            return None
        return set_query(url, pn=str(number + 1))
    return None


def _add(page: Page, reply: dict[str, Any], *, hot: bool) -> None:
    comment_id = str(reply.get("rpid_str") or need(reply, "rpid", int, "bilibili"))
    if reply.get("state") == _HIDDEN or reply.get("invisible"):
        page.skipped.append(("hidden_by_site", comment_id))
    else:
        content = need(reply, "content", dict, "bilibili")
        comment = Comment(
            thread_id=str(need(reply, "oid", (int, str), "bilibili")),
            comment_id=comment_id,
            parent_id=parse_id(reply.get("parent_str") or reply.get("parent")),
            root_id=parse_id(reply.get("root_str") or reply.get("root")),
            text=_REPLY_PREFIX.sub("", need(content, "message", str, "bilibili")),
            like_count=count(reply.get("like")),
            reply_count=count(reply.get("rcount")),
            created_at=parse_time(reply.get("ctime")),
            user=parse_id(reply.get("mid")),
            is_hot=hot,
        )
        page.comments.append(comment)
    for child in reply.get("replies") or []:
        _add(page, child, hot=False)
