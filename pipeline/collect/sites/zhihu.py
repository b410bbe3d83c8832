"""Zhihu: answers and their comments. Parse only: its robots.txt disallows all and its terms bar collection.

Comments listed by score, the site's hot list, are hot; replies shown below them are not (CSD-05).
"""

import re
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pipeline.collect.sites.markup import extract_text
from pipeline.collect.sites.record import Article, Comment, Page, count, need, parse_id, parse_time, refuse
from pipeline.errors import SchemaDrift

ADAPTER = "zhihu/2"
START = None
_THREAD = re.compile(r"/(?:answers|articles|zvideos)/(\d+)/")
_NO_COMMENTS = 404


def parse(body: dict[str, Any], url: str, fetched_at: datetime | None = None) -> Page:  # noqa: ARG001
    """One page to records."""
    if error := body.get("error"):
        if error.get("code") == _NO_COMMENTS:
            return Page(skipped=[("no_comments", urlsplit(url).path)])
        raise refuse("zhihu", error.get("code"), str(error.get("message")))
    if "question" in body and "content" in body:
        thread_id = str(need(body, "id", (int, str), "zhihu"))
        title = str(need(need(body, "question", dict, "zhihu"), "title", str, "zhihu"))
        text = extract_text(need(body, "content", str, "zhihu"))
        return Page(articles=[Article(thread_id=thread_id, title=title, text=text)])
    items = need(body, "data", list, "zhihu")
    if not (thread := _THREAD.search(url)):
        raise SchemaDrift(f"zhihu: the address {urlsplit(url).path} names no answer, article or video")
    page, is_hot = Page(), parse_qs(urlsplit(url).query).get("order_by") == ["score"]
    for item in items:
        _add(page, item, thread[1], is_hot=is_hot)
    return page


def find_next_url(body: dict[str, Any], url: str) -> str | None:
    """Address of the next page as the site gives it (its offsets are opaque), None at the end."""
    paging = body.get("paging") or {}
    following = paging.get("next")
    if paging.get("is_end", True) or not body.get("data") or not following or following == url:
        return None
    return str(following)


def _add(page: Page, item: dict[str, Any], thread: str, *, is_hot: bool) -> None:
    comment_id = need(item, "id", str, "zhihu")
    marks = {"is_delete": "deleted", "collapsed": "collapsed", "reviewing": "reviewing"}
    if state := next((state for mark, state in marks.items() if item.get(mark)), None):
        page.skipped.append((f"{state}_by_site", comment_id))
    else:
        author = item.get("author") or {}
        comment = Comment(
            thread_id=thread,
            comment_id=comment_id,
            parent_id=parse_id(item.get("reply_comment_id")),
            root_id=parse_id(item.get("reply_root_comment_id")),
            text=extract_text(need(item, "content", str, "zhihu")),
            like_count=count(item.get("like_count")),
            reply_count=count(item.get("child_comment_count")),
            created_at=parse_time(item.get("created_time")),
            user=parse_id(author.get("id") or (author.get("member") or {}).get("id")),
            is_hot=is_hot,
        )
        page.comments.append(comment)
    for child in item.get("child_comments") or []:
        _add(page, child, thread, is_hot=False)
