"""Erase from tables: update the partitions of the rows that a rule is about, and records in the JSON of raw pages."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from operator import methodcaller
from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.collect.clean import normalise
from pipeline.collect.importers import hash_page
from pipeline.collect.sites import adapters
from pipeline.errors import UndertoneError
from pipeline.tables import ERASED, TABLES, empty
from pipeline.tasks.erasure.rules import LEAST_BYTES, RULES, Targets, create_keys, has_mark, has_quote, is_among
from pipeline.tasks.record.retry import retry

_ID_FIELDS = ("id", "idstr", "id_str", "commentId", "beRepliedCommentId", "rpid", "rpid_str", "commentid")
_TENCENT_ID_FIELDS = (*_ID_FIELDS, "reply_id")  # on other sites this is the comment that a comment answers
_AUTHOR_FIELDS = ("user", "member", "author", "owner", "mid", "userid")
_TEXT_FIELDS = ("text", "content", "message", "reply_content", "reply_original_text", "raw_text", "longTextContent")
Update = Callable[[pl.LazyFrame], pl.LazyFrame]
_PARSE_ERRORS = (UndertoneError, KeyError, TypeError, AttributeError)


def build_matcher(targets: Targets) -> Callable[[Sequence[str]], list[bool]]:
    """Build the function that tests which texts, such as JSON, contain something erased."""

    def match(texts: Sequence[str]) -> list[bool]:
        frame = pl.DataFrame({"text": list(texts)}, schema={"text": pl.String})
        return frame.select(has_quote(targets, "text") | has_mark(targets, "text")).to_series().to_list()

    return match


def remove_records(body: Any, source: str, targets: Targets) -> Any:
    """Remove erased records, and quotes of their texts, from a page's JSON; return None if the page itself is one."""
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
    return any(str(node.get(name)) in users for name in ("id", "userId", "mid"))


def _list_texts(node: Any) -> Iterator[str]:
    for name, value in node.items():
        if isinstance(value, str) and name in _TEXT_FIELDS and len(value.encode()) >= LEAST_BYTES:
            yield value
        if isinstance(value, dict):
            yield from _list_texts(value)


def _blank_quotes(node: Any, quotes: set[str], targets: Targets) -> Any:
    strings: dict[str, None] = {}
    _map_strings(node, lambda text, _: strings.setdefault(text))
    if not strings:
        return node
    texts = pl.Series("text", [*strings])
    frame = texts.to_frame().with_columns(clean=normalise(texts))
    is_target = pl.col("clean").is_in(targets.texts.implode()).fill_null(value=False)
    is_hit = has_mark(targets, "text") | has_mark(targets, "clean")
    if quotes:
        is_hit |= pl.col("text").str.contains_any(sorted(quotes))
    hits = set(frame.filter(is_hit.fill_null(value=False))["text"])
    whole_texts = set(frame.filter(is_target)["text"])

    def blank(text: str, name: str) -> str:  # a whole text in a field of texts alone: `ok` may be a state elsewhere
        return "" if text in hits or (name in _TEXT_FIELDS and text in whole_texts) else text

    return _map_strings(node, blank) if hits or whole_texts else node


def _map_strings(node: Any, change: Callable[[str, str], Any], name: str = "") -> Any:
    """Change the strings of a node, each with the name of its field."""
    if isinstance(node, list):
        return [_map_strings(item, change, name) for item in node]
    if isinstance(node, dict):
        return {name: _map_strings(value, change, name) for name, value in node.items()}
    return change(node, name) if isinstance(node, str) else node


def clean_page(body: str, source: str, url: str, targets: Targets) -> str | None:
    """Clean the stored JSON of a page; return None if it cannot be read any more or still has something erased."""
    before = json.loads(body)
    after = remove_records(before, source, targets)
    if after == before:
        return body
    text = json.dumps(after, ensure_ascii=False, sort_keys=True)
    if after is None or any(build_matcher(targets)([text])):
        return None
    try:
        if source in adapters.ADAPTERS:
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
            after = remove_records(before, source, targets) if articles else None
            with suppress(*_PARSE_ERRORS):
                if after is not None and adapters.parse(source, after, url, None).articles:
                    continue
            rows += [(source, thread) for thread in articles]
    return pl.DataFrame(rows, schema=create_keys("source", "thread_id").schema, orient="row").unique()


def select_rows(targets: Targets, name: str) -> tuple[pl.Expr | None, Update]:
    """Build the condition of the rows that a rule changes, and the function that updates all rows of a partition."""
    rule = RULES[name]
    if not rule.conditions:
        return None, lambda rows: rows
    is_erased = rule.is_erased(targets)
    if name == "raw_pages":
        return _update_pages(targets, is_erased)
    if name == "training_texts":
        return is_erased, partial(_count_erased, is_erased)
    is_changed, values = is_erased, {}
    for column, (condition, value) in (rule.updates(targets) if rule.updates else {}).items():
        is_other = condition & pl.col(column).ne_missing(value)
        values[column] = pl.when(is_other).then(value).otherwise(column)
        is_changed |= is_other
    return is_changed, lambda rows: rows.filter(~is_erased).with_columns(**values)


def _update_pages(targets: Targets, is_erased: pl.Expr) -> tuple[pl.Expr, Update]:
    patterns = sorted({*targets.marks, *targets.comment_keys["comment_id"]})
    if not patterns:
        return is_erased, lambda rows: rows.filter(~is_erased)
    is_candidate = pl.col("body").str.contains_any(patterns)
    cleaned = pl.struct("source", "url", body=pl.when(is_candidate).then("body")).map_elements(
        lambda page: page["body"] and clean_page(page["body"], page["source"], page["url"], targets),
        return_dtype=pl.String,
    )
    body = pl.when(is_candidate).then(cleaned).otherwise("body")
    new_id = pl.struct("url", "body").map_elements(hash_page, return_dtype=pl.String)

    def update(rows: pl.LazyFrame) -> pl.LazyFrame:
        pages = rows.filter(~is_erased).with_columns(_body=body).drop_nulls("_body")
        pages = pages.with_columns(_is_changed=pl.col("_body") != pl.col("body"), body="_body").drop("_body")
        pages = pages.with_columns(page_id=pl.when("_is_changed").then(new_id).otherwise("page_id"))
        return pages.drop("_is_changed").unique(["source", "day", "origin", "page_id"], maintain_order=True)

    return is_erased | body.ne_missing(pl.col("body")), update


def _count_erased(is_erased: pl.Expr, rows: pl.LazyFrame) -> pl.LazyFrame:
    hashes = pl.when(is_erased).then(pl.lit(ERASED)).otherwise("text_hash")
    counts = rows.with_columns(text_hash=hashes).group_by("kind", "model_id", "text_hash")
    sums = counts.agg(pl.col("row_count").sum(), pl.col("is_labelled").max())
    return sums.select(TABLES["training_texts"].schema.column_names())


def recount(targets: Targets, run_id: str) -> None:
    """Count the erased comments as dropped, so that the funnel adds up, now or after they are erased."""
    key = ["source", "day", "origin"]
    is_erased = is_among(targets.comments)
    erased_counts = warehouse.scan("comments").group_by(key).agg(erased=is_erased.sum(), kept=(~is_erased).sum())
    runs = warehouse.scan("runs").filter((pl.col("step") == "collect") & ~is_among(targets.origins))
    rows = runs.join(erased_counts.filter(pl.col("erased") > 0), on=key)
    for *values, read_count, kept_count in rows.select(*key, "read_count", "kept").collect().iter_rows():
        partition = warehouse.make_slice(**dict(zip(key, values, strict=True)))
        other_steps = warehouse.scan("dropped").filter(~pl.col("step").is_in(["pairs", ERASED]), **partition)
        other_count = int(other_steps.select(pl.len()).collect().item())
        erased_row = {**partition, "step": ERASED, "reason": ERASED, "row_key": ERASED}
        erased_rows = [erased_row] * max(0, read_count - kept_count - other_count)
        erased = pl.DataFrame(erased_rows, schema=empty("dropped").schema)
        dropped_count = other_count + erased.height
        retry(partial(warehouse.overwrite, "dropped", {**partition, "step": ERASED}, erased, run_id))
        counts = {"kept_count": kept_count, "dropped_count": dropped_count, "read_count": kept_count + dropped_count}
        update = methodcaller("with_columns", **{name: pl.lit(count, pl.Int64) for name, count in counts.items()})
        retry(partial(warehouse.replace, "runs", {**partition, "step": "collect"}, update, run_id))
