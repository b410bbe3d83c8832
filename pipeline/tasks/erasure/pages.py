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
from pipeline.tasks.erasure.rules import Targets, has_quote

_ID_FIELDS = ("id", "idstr", "id_str", "commentId", "beRepliedCommentId", "rpid", "rpid_str", "commentid")
_TENCENT_ID_FIELDS = (*_ID_FIELDS, "reply_id")  # of other sites this is whom a comment answers
_AUTHOR_FIELDS = ("user", "member", "author", "owner", "mid", "userid")
_TEXT_FIELDS = ("text", "content", "message", "reply_content", "reply_original_text", "raw_text", "longTextContent")
_LEAST_BYTES = 20  # bytes of what an erased record said, to be looked for in others


def build_matcher(gone: Targets) -> Callable[[Sequence[str]], list[bool]]:
    """Tells of texts, such as JSON, whether they have something erased in them."""

    def meant(texts: Sequence[str]) -> list[bool]:
        frame = pl.DataFrame({"text": list(texts)}, schema={"text": pl.String})
        return frame.select(has_quote(gone, "text") | has_mark(gone, "text")).to_series().to_list()

    return meant


def has_mark(gone: Targets, column: str) -> pl.Expr:
    met = pl.col(column).str.contains_any(list(gone.marks)) if gone.marks else pl.lit(value=False)
    return met.fill_null(value=False)


def remove_records(body: Any, source: str, gone: Targets) -> Any:
    """A page's JSON without the records of erased comments and users; None where the page itself is one.

    What an erased record said goes from others' records too: sites quote what a reply answers.
    """
    comments = set(gone.commented.filter(source=source)["comment_id"])
    users = {*gone.user_ids, *gone.raw_ids}
    own = _TENCENT_ID_FIELDS if source == "tencent_news" else _ID_FIELDS
    said: set[str] = set()

    def is_record(node: dict[str, Any]) -> bool:
        return any(str(node.get(name)) in comments for name in own) or any(
            _is_person(node.get(n), users) for n in _AUTHOR_FIELDS
        )

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
            said.update(_list_texts(node))
            return True
        return is_person(node)

    if isinstance(body, dict) and is_gone(body):
        return None
    left = without(body)
    return _blank_quotes(left, said, gone)


def _is_person(value: Any, users: set[str]) -> bool:
    if isinstance(value, dict):
        inner = value.get("member") if isinstance(value.get("member"), dict) else value
        return any(str(inner.get(name)) in users for name in ("id", "userId", "mid")) if inner else False
    return value is not None and str(value) in users


def _list_texts(node: Any) -> Iterator[str]:
    """What a record itself says, not what is answered to it."""
    for name, value in node.items():
        if isinstance(value, str) and name in _TEXT_FIELDS and len(value.encode()) >= _LEAST_BYTES:
            yield value
        if isinstance(value, dict):
            yield from _list_texts(value)


def _blank_quotes(node: Any, said: set[str], gone: Targets) -> Any:
    strings: list[str] = []
    _collect_strings(node, strings)
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
    return _blank_strings(node, out, whole) if out or whole else node


def _collect_strings(node: Any, into: list[str]) -> None:
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        if isinstance(value, str):
            into.append(value)
        else:
            _collect_strings(value, into)


def _blank_strings(node: Any, out: set[str], whole: set[str], name: str = "") -> Any:
    """Without strings that are `out`, nor those that are `whole` where a text stands: `ok` may be a state elsewhere."""
    if isinstance(node, list):
        return [_blank_strings(item, out, whole, name) for item in node]
    if isinstance(node, dict):
        return {name: _blank_strings(value, out, whole, name) for name, value in node.items()}
    return "" if isinstance(node, str) and (node in out or (name in _TEXT_FIELDS and node in whole)) else node


def cut_page(body: str, source: str, url: str, gone: Targets) -> str | None:
    """A page as stored, cut; None where nothing of it can be read any more, or something erased is left in it."""
    before = json.loads(body)
    after = remove_records(before, source, gone)
    if after == before:
        return body
    text = json.dumps(after, ensure_ascii=False, sort_keys=True)
    if after is None or any(build_matcher(gone)([text])):
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


def find_articles(pages: pl.DataFrame, gone: Targets) -> pl.DataFrame:
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
            if articles and not _has_articles(remove_records(before, source, gone), source, url):
                found += [(source, thread) for thread in articles]
    return pl.DataFrame(found, schema={"source": pl.String, "thread_id": pl.String}, orient="row").unique()


def _has_articles(body: Any, source: str, url: str) -> bool:
    try:
        return body is not None and bool(adapters.parse(source, body, url, None).articles)
    except (UndertoneError, KeyError, TypeError, AttributeError):
        return False
