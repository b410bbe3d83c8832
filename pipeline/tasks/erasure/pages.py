"""Erasing from raw pages: a page's JSON without the records of what is erased."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import polars as pl

from pipeline.collect import importers
from pipeline.collect.clean import normalised
from pipeline.collect.sites import adapters
from pipeline.errors import UndertoneError
from pipeline.tasks.erasure.rules import Gone, quotes

_OWN = ("id", "idstr", "id_str", "commentId", "beRepliedCommentId", "rpid", "rpid_str", "commentid")
_TENCENT = (*_OWN, "reply_id")  # of other sites this is whom a comment answers
_AUTHOR = ("user", "member", "author", "owner", "mid", "userid")
_SAID = ("text", "content", "message", "reply_content", "reply_original_text", "raw_text", "longTextContent")
_LEAST = 20  # bytes of what an erased record said, to be looked for in others


def is_meant(gone: Gone) -> Callable[[Sequence[str]], list[bool]]:
    """Tells of texts, such as JSON, whether they have something erased in them."""

    def meant(texts: Sequence[str]) -> list[bool]:
        frame = pl.DataFrame({"text": list(texts)}, schema={"text": pl.String})
        return frame.select(quotes(gone, "text") | has_mark(gone, "text")).to_series().to_list()

    return meant


def has_mark(gone: Gone, column: str) -> pl.Expr:
    met = pl.col(column).str.contains_any(list(gone.marks)) if gone.marks else pl.lit(value=False)
    return met.fill_null(value=False)


def cut(body: Any, source: str, gone: Gone) -> Any:
    """A page's JSON without the records of erased comments and users; None where the page itself is one.

    What an erased record said goes from others' records too: sites quote what a reply answers.
    """
    comments = set(gone.commented.filter(source=source)["comment_id"])
    users = {*gone.user_ids, *gone.raw_ids}
    own = _TENCENT if source == "tencent_news" else _OWN
    said: set[str] = set()

    def is_record(node: dict[str, Any]) -> bool:
        return any(str(node.get(name)) in comments for name in own) or any(_is_by(node.get(n), users) for n in _AUTHOR)

    def is_person(node: dict[str, Any]) -> bool:
        return any(str(node.get(name)) in users for name in ("id", "userId", "mid"))

    def without(node: Any) -> Any:
        if isinstance(node, list):
            return [without(item) for item in node if not (isinstance(item, dict) and is_gone(item))]
        if isinstance(node, dict):
            return {k: None if isinstance(v, dict) and is_gone(v) else without(v) for k, v in node.items()}
        return "" if isinstance(node, str) and node in users else node

    def is_gone(node: dict[str, Any]) -> bool:
        if is_record(node):
            said.update(_said(node))
            return True
        return is_person(node)

    if isinstance(body, dict) and is_gone(body):
        return None
    left = without(body)
    return _unsaid(left, said, gone)


def _is_by(value: Any, users: set[str]) -> bool:
    if isinstance(value, dict):
        inner = value.get("member") if isinstance(value.get("member"), dict) else value
        return any(str(inner.get(name)) in users for name in ("id", "userId", "mid")) if inner else False
    return value is not None and str(value) in users


def _said(node: Any) -> Iterator[str]:
    """What a record itself says, not what is answered to it."""
    for name, value in node.items():
        if isinstance(value, str) and name in _SAID and len(value.encode()) >= _LEAST:
            yield value
        if isinstance(value, dict):
            yield from _said(value)


def _unsaid(node: Any, said: set[str], gone: Gone) -> Any:
    strings: list[str] = []
    _strings(node, strings)
    if not strings:
        return node
    texts = pl.Series("text", strings).unique()
    frame = texts.to_frame().with_columns(clean=normalised(texts))
    is_whole = pl.col("clean").is_in(gone.texts.implode()).fill_null(value=False)
    hits = has_mark(gone, "text") | has_mark(gone, "clean")
    if said:
        hits |= pl.col("text").str.contains_any(sorted(said))
    out = set(frame.filter(hits.fill_null(value=False))["text"])
    whole = set(frame.filter(is_whole)["text"])
    return _blanked(node, out, whole) if out or whole else node


def _strings(node: Any, into: list[str]) -> None:
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        if isinstance(value, str):
            into.append(value)
        else:
            _strings(value, into)


def _blanked(node: Any, out: set[str], whole: set[str], name: str = "") -> Any:
    """Without strings that are `out`, nor those that are `whole` where a text stands: `ok` may be a state elsewhere."""
    if isinstance(node, list):
        return [_blanked(item, out, whole, name) for item in node]
    if isinstance(node, dict):
        return {name: _blanked(value, out, whole, name) for name, value in node.items()}
    return "" if isinstance(node, str) and (node in out or (name in _SAID and node in whole)) else node


def cut_text(body: str, source: str, url: str, gone: Gone) -> str | None:
    """A page as stored, cut; None where nothing of it can be read any more, or something erased is left in it."""
    before = json.loads(body)
    after = cut(before, source, gone)
    if after == before:
        return body
    text = json.dumps(after, ensure_ascii=False, sort_keys=True)
    if after is None or any(is_meant(gone)([text])):
        return None
    if source in adapters.ADAPTERS:
        try:
            adapters.parse(source, after, url, None)
        except (UndertoneError, KeyError, TypeError, AttributeError):
            return None
    return text


def page_id(url: str, body: str) -> str:
    """The id of a page as it is now."""
    return importers.page_id({"url": url, "body": body})


def own_articles(pages: pl.DataFrame, gone: Gone) -> pl.DataFrame:
    """Articles that erased users wrote, as the pages tell: source, thread_id.

    Args:
        pages: source, url, body.
        gone: with user_ids.
    """
    found = []
    for source, url, body in pages.select("source", "url", "body").iter_rows():
        with suppress(UndertoneError, KeyError, TypeError, AttributeError, ValueError):
            before = json.loads(body)
            articles = {article.thread_id for article in adapters.parse(source, before, url, None).articles}
            if articles and not _articles_left(cut(before, source, gone), source, url):
                found += [(source, thread) for thread in articles]
    return pl.DataFrame(found, schema={"source": pl.String, "thread_id": pl.String}, orient="row").unique()


def _articles_left(body: Any, source: str, url: str) -> bool:
    try:
        return body is not None and bool(adapters.parse(source, body, url, None).articles)
    except (UndertoneError, KeyError, TypeError, AttributeError):
        return False
