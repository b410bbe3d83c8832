"""The five sites. An adapter is a module with `parse`, `find_next_url`, `ADAPTER` and `START`, all pure."""

from datetime import datetime
from types import ModuleType
from typing import Any

from pipeline.collect.sites import bilibili, netease, tencent_news, weibo, zhihu
from pipeline.collect.sites.record import Article, Comment, Page, refuse_odd
from pipeline.errors import SchemaDrift, check_name

ADAPTERS = {"weibo": weibo, "netease": netease, "bilibili": bilibili, "zhihu": zhihu, "tencent_news": tencent_news}


def get_adapter(source: str) -> ModuleType:
    """The adapter of a site."""
    return ADAPTERS[check_name("adapter for source", source, ADAPTERS)]


# What plain indexing raises when a site changes the type of something: as much drift as a missing field.
_ODD = (AttributeError, TypeError, KeyError, ValueError, IndexError, OverflowError, OSError, RecursionError)


def parse(source: str, body: dict[str, Any], url: str, fetched_at: datetime | None) -> Page:
    """Records of one redacted page; Refused for a refusal inside it, SchemaDrift for any other shape."""
    try:
        page: Page = get_adapter(source).parse(body, url, fetched_at)
        page.comments = [comment._replace(row_key=comment.comment_id) for comment in page.comments]
        records: list[Article | Comment] = [*page.articles, *page.comments]
        for record in records:
            refuse_odd(record, source)
    except _ODD as why:
        raise SchemaDrift(f"{source}: the page has another shape than its adapter knows ({why!r})") from why
    return page


def find_next_url(source: str, body: dict[str, Any], url: str) -> str | None:
    """Address of the page after this one, None at the end."""
    try:
        after: str | None = get_adapter(source).find_next_url(body, url)
    except _ODD as why:
        raise SchemaDrift(f"{source}: the cursor has another shape than its adapter knows ({why!r})") from why
    return after
