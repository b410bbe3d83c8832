"""NetEase Cloud Music: song details and the comments of a song.

Hot and top comments come with offset 0 alone. No lyrics are kept: the context is name and artists (CSD-06).
"""

import re
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pipeline.collect.sites.record import Article, Comment, Page, count, need, parse_id, parse_time, refuse, set_query
from pipeline.errors import SchemaDrift

ADAPTER = "netease/1"
START = "https://music.163.com/api/v1/resource/comments/R_SO_4_{thread}?limit=20&offset=0"
ARTICLE = "https://music.163.com/api/song/detail?ids=[{thread}]"
_LAST_OFFSET = 5000  # beyond it the site pages by time
_REFUSALS = {-460: "too many requests", -462: "a log-in or a check is wanted", 301: "log-in wanted", 405: "too often"}


def parse(body: dict[str, Any], url: str, fetched_at: datetime | None = None) -> Page:  # noqa: ARG001
    """One page to records."""
    code = need(body, "code", int, "netease")
    if code in _REFUSALS:
        raise refuse("netease", code, _REFUSALS[code])
    page = Page()
    if "songs" in body:
        for item in body["songs"]:
            artists = "、".join(artist["name"] for artist in item.get("artists") or item.get("ar") or [])
            thread_id, name = str(need(item, "id", int, "netease")), need(item, "name", str, "netease")
            text = str(item.get("description") or f"{name} — {artists}")
            page.articles.append(Article(thread_id, name, text, "music"))
        return page
    if not (song := re.search(r"R_SO_4_(\d+)", url)):
        raise SchemaDrift(f"netease: the address {urlsplit(url).path} names no song (R_SO_4_…)")
    for key, hot in (("topComments", True), ("hotComments", True), ("comments", False)):
        for item in need(body, key, list, "netease") if key == "comments" else body.get(key) or []:
            if item.get("status") == -5:
                page.skipped.append(("deleted_by_site", str(item.get("commentId"))))
            else:
                page.comments.append(_comment(item, song[1], hot))
    return page


def find_next_url(body: dict[str, Any], url: str) -> str | None:
    """Address of the next page, None at the end."""
    comments = body.get("comments") or []
    if not body.get("more") or not comments:
        return None
    query = parse_qs(urlsplit(url).query)
    offset = int(query.get("offset", ["0"])[0]) + int(query.get("limit", ["20"])[0])
    if "beforeTime" in query or offset > _LAST_OFFSET:
        return set_query(url, offset="0", beforeTime=str(comments[-1]["time"]))
    return set_query(url, offset=str(offset))


def _comment(item: dict[str, Any], song: str, hot: bool) -> Comment:
    answered: dict[str, Any] = next(iter(item.get("beReplied") or []), {})
    parent = parse_id(item.get("parentCommentId")) or parse_id(answered.get("beRepliedCommentId"))
    return Comment(
        thread_id=song,
        comment_id=str(need(item, "commentId", int, "netease")),
        parent_id=parent,
        root_id=parent,
        context=answered.get("content"),
        text=need(item, "content", str, "netease"),
        like_count=count(item.get("likedCount")),
        created_at=parse_time(item.get("time"), 1000),
        user=parse_id((item.get("user") or {}).get("userId")),
        is_hot=hot,
    )
