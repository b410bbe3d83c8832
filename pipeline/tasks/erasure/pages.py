"""Erase from raw pages: remove the records of what is erased from a page's JSON."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import polars as pl

from pipeline.collect.clean import normalise
from pipeline.collect.sites import adapters
from pipeline.errors import UndertoneError
from pipeline.tasks.erasure.rules import LEAST_BYTES, Targets, create_keys, has_mark, has_quote

_ID_FIELDS = ("id", "idstr", "id_str", "commentId", "beRepliedCommentId", "rpid", "rpid_str", "commentid")
_TENCENT_ID_FIELDS = (*_ID_FIELDS, "reply_id")  # on other sites this is the comment that a comment answers
_AUTHOR_FIELDS = ("user", "member", "author", "owner", "mid", "userid")
_PERSON_ID_FIELDS = ("id", "userId", "mid")
_TEXT_FIELDS = ("text", "content", "message", "reply_content", "reply_original_text", "raw_text", "longTextContent")
_PARSE_ERRORS = (UndertoneError, KeyError, TypeError, AttributeError)


def build_matcher(targets: Targets) -> Callable[[Sequence[str]], list[bool]]:
    """Build the function that tests which texts, such as JSON, contain something erased."""

    def match(texts: Sequence[str]) -> list[bool]:
        frame = pl.DataFrame({"text": list(texts)}, schema={"text": pl.String})
        return frame.select(has_quote(targets, "text") | has_mark(targets, "text")).to_series().to_list()

    return match


def remove_records(body: Any, source: str, targets: Targets) -> Any:
    """Remove the records of erased comments and users from a page's JSON; return None if the page itself is one.

    The texts of an erased record are removed from other records too: sites quote the comment that a reply answers.
    """
    comments = set(targets.comment_keys.filter(source=source)["comment_id"])
    users = {*targets.user_ids, *targets.raw_ids}
    id_fields = _TENCENT_ID_FIELDS if source == "tencent_news" else _ID_FIELDS
    texts: set[str] = set()

    def is_erased(node: Any) -> bool:
        if not isinstance(node, dict):
            return False
        has_id = any(str(node.get(name)) in comments for name in id_fields)
        if has_id or any(_is_user(node.get(name), users) for name in _AUTHOR_FIELDS):
            texts.update(_list_texts(node))
            return True
        return _has_user_id(node, users)

    def clean_node(node: Any) -> Any:
        if isinstance(node, list):
            return [clean_node(item) for item in node if not is_erased(item)]
        if isinstance(node, dict):
            return {name: None if is_erased(value) else clean_node(value) for name, value in node.items()}
        return "" if isinstance(node, str) and node in users else node

    if is_erased(body):
        return None
    cleaned_body = clean_node(body)  # it fills `texts`
    return _blank_quotes(cleaned_body, texts, targets)


def _is_user(value: Any, users: set[str]) -> bool:
    if isinstance(value, dict):
        return _has_user_id(value["member"] if isinstance(value.get("member"), dict) else value, users)
    return value is not None and str(value) in users


def _has_user_id(node: dict[str, Any], users: set[str]) -> bool:
    return any(str(node.get(name)) in users for name in _PERSON_ID_FIELDS)


def _list_texts(node: Any) -> Iterator[str]:
    """List the long texts of a record itself, not those of its answers."""
    for name, value in node.items():
        if isinstance(value, str) and name in _TEXT_FIELDS and len(value.encode()) >= LEAST_BYTES:
            yield value
        if isinstance(value, dict):
            yield from _list_texts(value)


def _blank_quotes(node: Any, quotes: set[str], targets: Targets) -> Any:
    """Empty the strings that contain a quote, a mark or an erased text."""
    strings = list(_list_strings(node))
    if not strings:
        return node
    texts = pl.Series("text", strings).unique()
    frame = texts.to_frame().with_columns(clean=normalise(texts))
    is_target = pl.col("clean").is_in(targets.texts.implode()).fill_null(value=False)
    is_hit = has_mark(targets, "text") | has_mark(targets, "clean")
    if quotes:
        is_hit |= pl.col("text").str.contains_any(sorted(quotes))
    hits = set(frame.filter(is_hit.fill_null(value=False))["text"])
    whole_texts = set(frame.filter(is_target)["text"])
    return _blank_strings(node, hits, whole_texts) if hits or whole_texts else node


def _list_strings(node: Any) -> Iterator[str]:
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        if isinstance(value, str):
            yield value
        else:
            yield from _list_strings(value)


def _blank_strings(node: Any, hits: set[str], whole_texts: set[str], name: str = "") -> Any:
    """Empty the strings in `hits`, and those in `whole_texts` in a field of texts: `ok` may be a state elsewhere."""
    if isinstance(node, list):
        return [_blank_strings(item, hits, whole_texts, name) for item in node]
    if isinstance(node, dict):
        return {name: _blank_strings(value, hits, whole_texts, name) for name, value in node.items()}
    is_blanked = isinstance(node, str) and (node in hits or (name in _TEXT_FIELDS and node in whole_texts))
    return "" if is_blanked else node


def clean_page(body: str, source: str, url: str, targets: Targets) -> str | None:
    """Clean the stored JSON of a page; return None if it cannot be read any more or still has something erased."""
    before = json.loads(body)
    after = remove_records(before, source, targets)
    if after == before:
        return body
    text = json.dumps(after, ensure_ascii=False, sort_keys=True)
    if after is None or any(build_matcher(targets)([text])):
        return None
    if source in adapters.ADAPTERS:
        try:
            adapters.parse(source, after, url, None)
        except _PARSE_ERRORS:
            return None
    return text


def find_articles(pages: pl.DataFrame, targets: Targets) -> pl.DataFrame:
    """Find the articles (source, thread_id) of erased users by the authors in raw pages (source, url, body)."""
    rows = []
    for source, url, body in pages.select("source", "url", "body").iter_rows():
        with suppress(*_PARSE_ERRORS, ValueError):
            before = json.loads(body)
            articles = {article.thread_id for article in adapters.parse(source, before, url, None).articles}
            if articles and not _has_articles(remove_records(before, source, targets), source, url):
                rows += [(source, thread) for thread in articles]
    return pl.DataFrame(rows, schema=create_keys("source", "thread_id").schema, orient="row").unique()


def _has_articles(body: Any, source: str, url: str) -> bool:
    try:
        return body is not None and bool(adapters.parse(source, body, url, None).articles)
    except _PARSE_ERRORS:
        return False
