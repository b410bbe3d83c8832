"""Importing what people lawfully have: exports of crawlers, raw pages, any table with a column mapping.

A file comes out as batches of records; nothing is written here. One bad value stops the import with file, row, field
and what was expected, so that a person mends the file rather than finding a hole in a table later.
"""

import hashlib
import logging
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pipeline.collect import anonymise, columns
from pipeline.collect.adapters import ADAPTERS, parse
from pipeline.collect.markup import text_of
from pipeline.collect.record import Article, Comment, Page
from pipeline.collect.rows import CHUNK, Chunk, chunks, tables
from pipeline.errors import BadInput, Refused, SchemaDrift
from pipeline.text.lines import LIMITS, Limits, parsed

log = logging.getLogger(__name__)

_EPOCH_MILLISECONDS = 100_000_000_000  # seconds since 1970 reach it in the year 5138
_DATE = re.compile(r"^(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])$")
_WHOLE = re.compile(r"^-?\d{1,18}(?:\.0+)?$")
_IDS = ("comment_id", "thread_id", "parent_id", "root_id", "user")
_ROUNDED = re.compile(r"^\d(?:\.\d+)?[eE]\+\d+$")  # what a spreadsheet makes of a long id
_EXACT = 2**53  # the first integers that floats skip lie above
_MARKUP = re.compile(r"<(?:span|img|a|br|p)\b[^>]*>")
_PAGE_KEYS = {"url", "body"}
_SPARSE = (".jsonl", ".ndjson", ".json")  # where a row may leave a field out


@dataclass(slots=True)
class RawPage:
    """A page as stored: personal fields are out of `body`."""

    url: str
    fetched_at: datetime | None
    body: dict[str, Any]


@dataclass(slots=True)
class Batch:
    """Records of a part of a file. `hashed` tells that `user` already is a surrogate."""

    source: str
    adapter: str
    page: Page
    raw: list[RawPage] = field(default_factory=list)
    hashed: bool = False


def read(
    path: Path,
    source: str | None,
    mapping: Mapping[str, str],
    key: bytes | None,
    encoding: str = "utf-8-sig",
    size: int = CHUNK,
    label: str | None = None,
    limits: Limits = LIMITS,
) -> Iterator[Batch]:
    """The file's records, in batches.

    Args:
        path: csv, tsv, txt, jsonl, json, parquet, xlsx or SQLite.
        source: name to file the rows under; for raw pages, only this source's pages are read.
        mapping: our field -> their column; empty to recognise the file by its columns.
        key: key of the HMAC over user ids in raw pages; None drops them.
        encoding: of text files.
        size: rows a batch.
        label: what ids made from rows begin with; the file's name. Files imported together need different ones.
        limits: how much of the file may be in memory at once.
    """
    # a crawler's database holds tables of its own besides: if any is an export we know, only such are read
    known = [table for table, names in tables(path).items() if columns.preset(names)]
    chosen: dict[str, tuple[str | None, columns.Columns]] = {}
    seen: dict[str, set[str]] = {}
    for chunk in chunks(path, encoding, size, limits):
        if known and not mapping and chunk.table not in known:
            log.info("%s: table %r is no export we know; left out", path, chunk.table)
            continue
        if not mapping and set(chunk.rows[0]) >= _PAGE_KEYS:
            yield from _pages(path, chunk, source, key)
            continue
        where, names = f"{path}, table {chunk.table!r}", {name for row in chunk.rows for name in row}
        seen.setdefault(chunk.table, set()).update(names)
        if chunk.table not in chosen:
            chosen[chunk.table] = columns.choose(mapping, names, where)
            if path.suffix.lower() not in _SPARSE:
                columns.all_there(mapping, names, where)
        stem = label or path.name
        named = stem if chunk.table == path.stem else f"{stem}/{chunk.table}"
        yield _table(path, named, chunk, source, *chosen[chunk.table])
    for table, names in seen.items():
        columns.all_there(mapping, names, f"{path}, table {table!r}")


def _pages(path: Path, chunk: Chunk, wanted: str | None, key: bytes | None) -> Iterator[Batch]:
    batches: dict[str, Batch] = {}
    for number, row in enumerate(chunk.rows, chunk.first):
        where = f"{path}, line {number}"
        source = row.get("source") or wanted
        if wanted not in (None, source):
            continue
        if not isinstance(row.get("url"), str) or not isinstance(row.get("body"), dict) or source not in [*ADAPTERS]:
            raise BadInput(
                f"{where}: a raw page has source (one of {', '.join(ADAPTERS)}), url (text) and body (object)"
            )
        if source not in batches:
            batches[source] = Batch(source, ADAPTERS[source].ADAPTER, Page(), hashed=True)
        body = anonymise.redact(row["body"], source, key)
        add_page(batches[source], row["url"], _moment(row.get("fetched_at"), where, "fetched_at", UTC), body, where)
    yield from batches.values()


def add_page(batch: Batch, url: str, fetched_at: datetime | None, body: dict[str, Any], where: str) -> None:
    """Parse one redacted page and add its records to the batch; a page of refusal is a dropped row."""
    try:
        found = parse(batch.source, body, url, fetched_at)
    except Refused:
        batch.page.skipped.append(("refused_page", url))
        return
    except SchemaDrift as why:
        raise SchemaDrift(f"{where}: {why}") from why
    batch.raw.append(RawPage(url, fetched_at, body))
    batch.page.articles += found.articles
    batch.page.comments += found.comments
    batch.page.skipped += found.skipped


def page_id(page: Mapping[str, str]) -> str:
    """SHA-256 of a page's address and body."""
    return hashlib.sha256(f"{page['url']}\n{page['body']}".encode()).hexdigest()


def _table(
    path: Path, label: str, chunk: Chunk, source: str | None, preset: str | None, mapping: columns.Columns
) -> Batch:
    batch = Batch(source or preset or _slug(path.stem), "table/1", Page())
    zone = ZoneInfo(mapping["timezone"]) if "timezone" in mapping else UTC
    for number, row in enumerate(chunk.rows, chunk.first):
        where = f"{path}, row {number}"
        thread = _text(row, mapping, "thread_id", where) or (f"{label}-{number}" if "comments" in mapping else label)
        if "article_text" in mapping or "article_title" in mapping:
            batch.page.articles.append(_article(row, mapping, thread, where))
        if "comments" in mapping:
            for i, item in enumerate(_list(row.get(mapping["comments"]), where, mapping["comments"])):
                nested = item if isinstance(item, dict) else {mapping.get("text", "text"): item}
                fields = {**mapping, "text": mapping.get("text", "text")}
                batch.page.comments.append(_comment(nested, fields, thread, f"{label}-{number}.{i + 1}", where, zone))
        elif "text" in mapping:
            batch.page.comments.append(_comment(row, mapping, thread, f"{label}-{number}", where, zone))
    return batch


def _article(row: dict[str, Any], mapping: columns.Columns, thread: str, where: str) -> Article:
    return Article(
        thread_id=thread,
        title=_text(row, mapping, "article_title", where),
        text=_text(row, mapping, "article_text", where) or "",
        category=_text(row, mapping, "category", where),
        summary=_text(row, mapping, "summary", where),
    )


def _comment(row: dict[str, Any], mapping: columns.Columns, thread: str, key: str, where: str, zone: Any) -> Comment:
    own = _text(row, mapping, "comment_id", where) or key
    root = _text(row, mapping, "root_id", where)
    root = None if root in (own, "0") else root
    parent = _text(row, mapping, "parent_id", where) or root
    parent = None if parent in (own, "0") else parent
    text = _text(row, mapping, "text", where) or ""
    return Comment(
        thread_id=thread,
        comment_id=own,
        text=text_of(text) if _MARKUP.search(text) else text,  # weibo-crawler leaves the HTML in
        parent_id=parent,
        root_id=root or parent,
        context=_text(row, mapping, "context", where),
        like_count=_count(row, mapping, "like_count", where),
        reply_count=_count(row, mapping, "reply_count", where),
        created_at=_moment(row.get(mapping.get("created_at", "")), where, mapping.get("created_at", ""), zone),
        user=_text(row, mapping, "user", where),
        row_key=key,
    )


def _text(row: dict[str, Any], mapping: columns.Columns, name: str, where: str) -> str | None:
    value = row.get(mapping[name]) if name in mapping else None
    rounded = abs(value) > _EXACT if isinstance(value, float) else isinstance(value, str) and _ROUNDED.match(value)
    if name in _IDS and rounded:
        raise BadInput(
            f"{where}, field {mapping[name]!r}: expected an id as text, found {value!r}, which has lost digits"
        )
    if isinstance(value, float):  # as spreadsheets and pandas give ids; NaN is pandas for none
        value = None if math.isnan(value) else int(value) if value.is_integer() else value
    return None if value in (None, "") else str(value)


def _count(row: dict[str, Any], mapping: columns.Columns, name: str, where: str) -> int | None:
    value = _text(row, mapping, name, where)
    if value is None:
        return None
    if not _WHOLE.match(value):
        raise BadInput(f"{where}, field {mapping[name]!r}: expected a whole number, found {value[:60]!r}")
    return max(int(float(value)), 0)


def _moment(value: Any, where: str, column: str, zone: Any) -> datetime | None:
    if value in (None, ""):
        return None
    if isinstance(value, datetime):
        found = value
    elif _DATE.match(text := str(value)):  # 20261119: a date written without dashes, hardly 1970-08-23
        found = _written(text, where, column)
    elif _WHOLE.match(text):
        number = int(float(text))
        try:
            return datetime.fromtimestamp(number / 1000 if abs(number) >= _EPOCH_MILLISECONDS else number, UTC)
        except (ValueError, OverflowError, OSError) as why:
            raise BadInput(f"{where}, field {column!r}: {text[:60]!r} is no time between years 1 and 9999") from why
    else:
        found = _written(text, where, column)
    try:
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError as why:
        raise BadInput(f"{where}, field {column!r}: {str(value)[:60]!r} is no time between years 1 and 9999") from why


def _written(text: str, where: str, column: str) -> datetime:
    """ISO 8601, or Weibo's own way of writing times, which weibo-crawler leaves as it is."""
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %z %Y")
    except ValueError as why:
        raise BadInput(f"{where}, field {column!r}: expected a time (epoch or ISO 8601), found {text[:60]!r}") from why


def _list(value: Any, where: str, column: str) -> list[Any]:
    if isinstance(value, str):
        try:
            value = parsed(value)
        except ValueError as why:
            raise BadInput(f"{where}, field {column!r}: expected a JSON list: {why}") from why
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"{where}, field {column!r}: expected a list of comments, found {type(value).__name__}")
    return value


def _slug(stem: str) -> str:
    """A file's name as a source name."""
    return re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")[:40].lstrip("0123456789_") or "table"
