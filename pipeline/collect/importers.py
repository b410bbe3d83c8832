"""Importing what people lawfully have: exports of crawlers, raw pages, any table with a column mapping.

A file comes out as batches of records; nothing is written here. One bad value stops the import with file, row, field
and what was expected, so that a person mends the file rather than finding a hole in a table later.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from pipeline.collect import columns
from pipeline.collect.privacy import anonymise
from pipeline.collect.sites.adapters import ADAPTERS, parse
from pipeline.collect.sites.markup import text_of
from pipeline.collect.sites.record import Article, Comment, Page
from pipeline.collect.values import IDS, CutIds, Row, count_value, list_value, text_value, time_value, time_zone
from pipeline.errors import BadInput, Refused, SchemaDrift
from pipeline.io.formats.databases import list_tables
from pipeline.io.lines import LIMITS, Limits
from pipeline.io.rows import Chunk, Source, read_source

_MARKUP = re.compile(r"<(?:span|img|a|br|p)\b[^<>]*>")
_PAGE_KEYS = {"url", "body"}
_PAGE_COLUMNS = {*_PAGE_KEYS, "source", "fetched_at"}
_SPARSE = (".jsonl", ".ndjson", ".json")  # where a row may leave a field out
_SPREADSHEETS = (".csv", ".tsv", ".xlsx")
_MESSAGES = 10  # about bad rows, of a file


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


@dataclass(slots=True)
class LeftOut:
    """What was left out of a file: parts that are no rows of comments, and messages about the first bad rows."""

    ignored: list[str] = field(default_factory=list)
    bad_rows: list[str] = field(default_factory=list)

    def add_bad_row(self, message: str) -> None:
        """Keep the message, unless there are many."""
        if len(self.bad_rows) < _MESSAGES:
            self.bad_rows.append(message)


def read(
    path: Path,
    source: str | None,
    mapping: Mapping[str, str],
    key: bytes | None,
    encoding: str = "utf-8-sig",
    size: int | None = None,
    label: str | None = None,
    limits: Limits = LIMITS,
    *,
    skip_bad_rows: bool = False,
    left_out: LeftOut | None = None,
) -> Iterator[Batch]:
    """The file's records, in batches.

    Args:
        path: csv, tsv, txt, jsonl, json, parquet, xlsx or SQLite.
        source: name to file the rows under; for raw pages, only this source's pages are read.
        mapping: our field -> their column; empty to recognise the file by its columns.
        key: key of the HMAC over user ids in raw pages; None drops them.
        encoding: of text files.
        size: most rows of a batch.
        label: what ids made from rows begin with; the file's name. Files imported together need different ones.
        limits: how much of the file may be in memory at once.
        skip_bad_rows: drop rows that cannot be read, with a reason, instead of stopping at the first.
        left_out: filled with what is not read.
    """
    left_out = left_out or LeftOut()
    file = Source(path=path, encoding=encoding, limits=limits, skip_bad_rows=skip_bad_rows, ignored=left_out.ignored)
    file.size = size or file.size
    yield from _File(file, source, dict(mapping), label or path.name, left_out).batches(key)


@dataclass(slots=True)
class _File:
    """A file on its way to batches: what its tables are taken for, and which mapped columns were seen in them."""

    file: Source
    source: str | None
    mapping: dict[str, str]
    label: str
    left_out: LeftOut
    chosen: dict[str, tuple[str | None, columns.Columns]] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)
    cut_ids: defaultdict[tuple[str, str], CutIds] = field(default_factory=lambda: defaultdict(CutIds))

    def batches(self, key: bytes | None) -> Iterator[Batch]:
        """Batches of each chunk."""
        # a crawler's database holds tables of its own besides: if any is an export we know, only such are read
        exports = [table for table, names in list_tables(self.file.path).items() if columns.preset(names)]
        self.file.choose = self._wanted
        for chunk in read_source(self.file):
            if exports and not self.mapping and chunk.table not in exports:
                self.file.ignore(f"the table {chunk.table!r:.60}, which is no export we know")
                continue
            for row in chunk.bad_rows:
                self.left_out.add_bad_row(row.message)
            if not self.mapping and chunk.rows and set(chunk.rows[0]) >= _PAGE_KEYS:
                yield from self._pages(chunk, key)
            else:
                yield self._table(chunk)
        for table, names in self.seen.items():
            columns.all_there(self.mapping, names, self._place(table))
        for ids in self.cut_ids.values():
            ids.check()

    def _place(self, table: str) -> str:
        return f"{self.file.path}, table {table!r}"

    def _row_key(self, table: str, number: int) -> str:
        return f"{self._key_prefix(table)}-{number}"

    def _key_prefix(self, table: str) -> str:
        return self.label if table == self.file.path.stem else f"{self.label}/{table}"

    def _source_name(self, preset: str | None) -> str:
        return self.source or preset or _slug(PurePath(self.label).stem)

    def _bad_rows(self, chunk: Chunk) -> list[tuple[str, str]]:
        """Reason and key of each row that the reader dropped."""
        return [(row.reason, self._row_key(chunk.table, row.number)) for row in chunk.bad_rows]

    def _drop(self, row_key: str, why: BadInput) -> tuple[str, str]:
        """Reason and key of a row with a value that cannot be read, where rows may be skipped."""
        if not self.file.skip_bad_rows:
            raise why
        self.left_out.add_bad_row(str(why))
        return "bad_value", row_key

    def _pages(self, chunk: Chunk, key: bytes | None) -> Iterator[Batch]:
        batches: dict[str, Batch] = {}
        bad_rows = self._bad_rows(chunk)
        for number, row in zip(chunk.numbers, chunk.rows, strict=True):
            source = row.get("source") or self.source
            if self.source not in (None, source):
                continue
            try:
                name, batch_body, fetched_at = _page(row, source, f"{self.file.path}, line {number}")
            except BadInput as why:
                bad_rows.append(self._drop(self._row_key(chunk.table, number), why))
                continue
            if name not in batches:
                batches[name] = Batch(name, ADAPTERS[name].ADAPTER, Page(), hashed=True)
            body = anonymise.redact(batch_body, name, key)
            add_page(batches[name], row["url"], fetched_at, body, f"{self.file.path}, line {number}")
        if bad_rows and not batches:
            batches[""] = Batch(self._source_name(None), "table/1", Page())
        for batch in batches.values():
            batch.page.skipped += bad_rows
            bad_rows = []
            yield batch

    def _table(self, chunk: Chunk) -> Batch:
        preset, mapping = self._columns(chunk.table, set(chunk.columns) or {name for row in chunk.rows for name in row})
        batch = Batch(self._source_name(preset), "table/1", Page(skipped=self._bad_rows(chunk)))
        is_spreadsheet = self.file.path.suffix.lower() in _SPREADSHEETS
        id_columns = {name: column for name, column in mapping.items() if name in IDS} if is_spreadsheet else {}
        prefix, file = self._key_prefix(chunk.table), str(self.file.path)
        for number, row in zip(chunk.numbers, chunk.rows, strict=True):
            row_key, place = f"{prefix}-{number}", f"{file}, row {number}"
            if id_columns:
                self._watch_ids(chunk.table, row, id_columns, place)
            try:
                article, comments = _records(row, mapping, row_key, place)
            except BadInput as why:
                batch.page.skipped.append(self._drop(row_key, why))
                continue
            batch.page.articles += article
            batch.page.comments += comments
        return batch

    def _columns(self, table: str, names: set[str]) -> tuple[str | None, columns.Columns]:
        """The source that a table with these columns stands for, and its mapping."""
        if not names:  # all rows of a chunk are broken
            return self.chosen.get(table, (None, {}))
        self.seen.setdefault(table, set()).update(names & set(self.mapping.values()))
        if table not in self.chosen:
            self.chosen[table] = columns.choose(self.mapping, names, self._place(table))
            if self.file.path.suffix.lower() not in _SPARSE:
                columns.all_there(self.mapping, names, self._place(table))
        return self.chosen[table]

    def _wanted(self, table: str, names: Sequence[str]) -> set[str]:
        """The columns of a table that are read."""
        if not self.mapping and set(names) >= _PAGE_KEYS:
            return _PAGE_COLUMNS
        _, mapping = self._columns(table, set(names))
        return set(mapping.values())

    def _watch_ids(self, table: str, row: Row, id_columns: columns.Columns, place: str) -> None:
        """Look at the ids of a row for what a spreadsheet makes of long ones."""
        for name, column in id_columns.items():
            if isinstance(value := row.get(column), str):
                self.cut_ids[table, name].add(value, f"{place}, field {column!r}")


def _page(row: Row, source: Any, place: str) -> tuple[str, dict[str, Any], datetime | None]:
    """A raw page's source, body and time."""
    if not isinstance(row.get("url"), str) or not isinstance(row.get("body"), dict) or source not in [*ADAPTERS]:
        raise BadInput(f"{place}: a raw page has source (one of {', '.join(ADAPTERS)}), url (text) and body (object)")
    return source, row["body"], time_value(row, {"fetched_at": "fetched_at"}, "fetched_at", place)


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


def _records(row: Row, mapping: columns.Columns, row_key: str, place: str) -> tuple[list[Article], list[Comment]]:
    """The article and comments of a row."""
    label = row_key.rpartition("-")[0]
    has_comments = "comments" in mapping
    own_thread = text_value(row, mapping, "thread_id", place)
    thread = own_thread or (row_key if has_comments else label)
    articles, comments = [], []
    if "article_text" in mapping or "article_title" in mapping:
        article = _article(row, mapping, thread, place)
        if not own_thread and not has_comments:  # rows with the same article are one thread
            content = hashlib.blake2b(f"{article.title}\n{article.text}".encode(), digest_size=8).hexdigest()
            article = replace(article, thread_id=(thread := f"{label}-{content}"))
        articles.append(article)
    if has_comments:
        column = mapping["comments"]
        fields = {**mapping, "text": mapping.get("text", "text")}
        for index, item in enumerate(list_value(row.get(column), f"{place}, field {column!r}"), 1):
            nested = item if isinstance(item, dict) else {fields["text"]: item}
            comments.append(
                _comment(nested, fields, thread, f"{row_key}.{index}", f"{place}, item {index} of {column!r}")
            )
    elif "text" in mapping:
        comments.append(_comment(row, mapping, thread, row_key, place))
    return articles, comments


def _article(row: Row, mapping: columns.Columns, thread: str, place: str) -> Article:
    return Article(
        thread_id=thread,
        title=text_value(row, mapping, "article_title", place),
        text=text_value(row, mapping, "article_text", place) or "",
        category=text_value(row, mapping, "category", place),
        summary=text_value(row, mapping, "summary", place),
    )


def _comment(row: Row, mapping: columns.Columns, thread: str, row_key: str, place: str) -> Comment:
    own = text_value(row, mapping, "comment_id", place) or row_key
    root = text_value(row, mapping, "root_id", place)
    root = None if root in (own, "0") else root
    parent = text_value(row, mapping, "parent_id", place) or root
    parent = None if parent in (own, "0") else parent
    text = text_value(row, mapping, "text", place) or ""
    return Comment(
        thread_id=thread,
        comment_id=own,
        text=text_of(text) if _MARKUP.search(text) else text,  # weibo-crawler leaves the HTML in
        parent_id=parent,
        root_id=root or parent,
        context=text_value(row, mapping, "context", place),
        like_count=count_value(row, mapping, "like_count", place),
        reply_count=count_value(row, mapping, "reply_count", place),
        created_at=time_value(row, mapping, "created_at", place, time_zone(mapping)),
        user=text_value(row, mapping, "user", place),
        row_key=row_key,
    )


def _slug(stem: str) -> str:
    """A file's name as a source name."""
    return re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")[:40].lstrip("0123456789_") or "table"
