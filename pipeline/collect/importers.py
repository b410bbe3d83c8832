"""Importing what people lawfully have: exports of crawlers, raw pages, any table with a column mapping.

A file is batches of records; nothing is written here. One bad value stops the import with file, row and field.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from pipeline.collect import columns
from pipeline.collect.privacy import anonymise
from pipeline.collect.sites.adapters import ADAPTERS, parse
from pipeline.collect.sites.markup import extract_exported
from pipeline.collect.sites.record import Article, Comment, Page
from pipeline.collect.values import IDS, CutIds, Row, list_value, read_column, read_text, time_value
from pipeline.errors import BadInput, Refused, SchemaDrift
from pipeline.io.formats import databases
from pipeline.io.lines import UTF8
from pipeline.io.rows import Chunk, Source, read_source
from pipeline.left_out import record_columns, record_note

_PAGE_KEYS = {"url", "body"}
_PAGE_COLUMNS = {*_PAGE_KEYS, "source", "fetched_at"}
_NOT_COLUMNS = {"comments", "article_text", "article_title"}  # with one of them a row is more than a comment
_SPARSE = (".jsonl", ".ndjson", ".json")  # where a row may leave a field out
_OF_TABLES = (".xlsx", *databases.ENDINGS)  # where a table without texts may stand beside others
_Skipped = list[tuple[str, str]]  # reason, row key


@dataclass(slots=True)
class Batch:
    """Records of a part of a file; `hashed` where `user` already is a surrogate."""

    source: str
    adapter: str
    page: Page
    raw: list[tuple[str, datetime | None, dict[str, Any]]] = field(default_factory=list)  # address, time, redacted body
    hashed: bool = False


@dataclass(slots=True)
class LeftOut:
    """What was left out of a file: parts that are no rows of comments, and messages about the first bad rows."""

    ignored: list[str] = field(default_factory=list)
    bad_rows: list[str] = field(default_factory=list)


def read(
    path: Path,
    source: str | None,
    mapping: Mapping[str, str],
    key: bytes | None,
    encoding: str = UTF8,
    *,
    label: str | None = None,
    left_out: LeftOut | None = None,
    **options: Any,
) -> Iterator[Batch]:
    """The file's records, in batches; options are `size`, `limits` and `skip_bad_rows` of a `Source`.

    Without `mapping` the file is recognised by its columns. Rows are filed under `source`; of raw pages only its pages
    are read, and `key` is that of the HMAC over their user ids, which None drops. Ids made from rows begin with
    `label`, by default the file's name; files imported together need different ones.
    """
    left_out = left_out or LeftOut()
    file = Source(path=path, encoding=encoding, ignored=left_out.ignored, messages=left_out.bad_rows, **options)
    yield from _File(file, source, dict(mapping), label or path.name).read_batches(key)


@dataclass(slots=True)
class _File:
    file: Source
    source: str | None
    mapping: dict[str, str]
    label: str
    choices: dict[str, tuple[str | None, columns.Columns]] = field(default_factory=dict)
    present: dict[str, set[str]] = field(default_factory=dict)
    textless: dict[str, BadInput] = field(default_factory=dict)  # tables without texts, and why
    unread: set[str] = field(default_factory=set)  # fields of nested comments that nothing reads
    own_answers: int = 0
    cut_ids: defaultdict[tuple[str, str], CutIds] = field(default_factory=lambda: defaultdict(CutIds))

    def read_batches(self, key: bytes | None) -> Iterator[Batch]:
        # a crawler's database holds tables of its own besides: if any is an export we know, only such are read
        exports = [
            table for table, names in databases.list_tables(self.file.path).items() if columns.find_export(names)
        ]
        self.file.choose = self._list_columns
        for chunk in read_source(self.file):
            if exports and not self.mapping and chunk.table not in exports:
                self.file.ignore(f"the table {chunk.table!r:.60}, which is no export we know")
                continue
            prefix = self.label if chunk.table == self.file.path.stem else f"{self.label}/{chunk.table}"
            bad_rows = [(row.reason, f"{prefix}-{row.number}") for row in chunk.bad_rows]
            if not self.mapping and chunk.rows and set(chunk.rows[0]) >= _PAGE_KEYS:
                yield from self._read_pages(chunk, prefix, bad_rows, key)
            elif choice := self._choose_of_chunk(chunk):
                yield self._read_table(chunk, *choice, prefix, bad_rows)
        if self.textless and not self.choices:
            raise next(iter(self.textless.values()))
        for table in self.textless:
            self.file.ignore(f"the table {table!r:.60}, which has no column of texts")
        for table, names in self.present.items():
            self._check_present(table, names)
        record_columns(f"{self.file.path.name}, comments of an article", sorted(self.unread))
        if self.own_answers:
            note = "comments that name themselves as parent_id, which is not read"
            record_note(f"{self.file.path.name}: {note}", self.own_answers)
        for ids in self.cut_ids.values():
            ids.check()

    def _choose_of_chunk(self, chunk: Chunk) -> tuple[str | None, columns.Columns] | None:
        """Choose as `_choose_mapping`; None for a table without texts, which stands beside others."""
        names = set(chunk.columns) or set().union(*chunk.rows)
        try:
            return self._choose_mapping(chunk.table, names)
        except BadInput as why:
            has_texts = any(self.mapping.get(field, field) in names for field in ("text", "article_text"))
            if has_texts or self.file.path.suffix.lower() not in _OF_TABLES:
                raise
            self.textless.setdefault(chunk.table, why)
            self.present.pop(chunk.table)
            self.choices.pop(chunk.table, None)
        return None

    def _check_present(self, table: str, names: set[str]) -> None:
        if self.mapping:
            columns.check_present(self.choices[table][1], names, self._place(table))

    def _place(self, table: str) -> str:
        return f"{self.file.path}, table {table!r}"

    def _start_batch(self, export: str | None, bad_rows: _Skipped) -> Batch:
        slug = re.sub(r"[^a-z0-9]+", "_", PurePath(self.label).stem.lower()).strip("_")[:40].lstrip("0123456789_")
        return Batch(self.source or export or slug or "table", "table/1", Page(skipped=bad_rows))

    def _read_pages(self, chunk: Chunk, prefix: str, bad_rows: _Skipped, key: bytes | None) -> Iterator[Batch]:
        batches: dict[str, Batch] = {}
        other_count = 0
        for number, row in zip(chunk.numbers, chunk.rows, strict=True):
            source, place = row.get("source") or self.source, f"{self.file.path}, row {number}"
            if self.source not in (None, source):
                other_count += 1
                continue
            try:
                is_page = isinstance(row.get("url"), str) and isinstance(row.get("body"), dict)
                if not is_page or source not in [*ADAPTERS]:
                    expected = f"source (one of {', '.join(ADAPTERS)}), url (text) and body (object)"
                    raise BadInput(f"{place}: a raw page has {expected}")
                fetched_at = time_value(row, {"fetched_at": "fetched_at"}, "fetched_at", place)
            except BadInput as why:
                bad_rows.append((self.file.drop("bad_value", number, str(why)).reason, f"{prefix}-{number}"))
                continue
            if source not in batches:
                batches[source] = Batch(source, ADAPTERS[source].ADAPTER, Page(), hashed=True)
            add_page(batches[source], row["url"], fetched_at, anonymise.redact(row["body"], source, key), place)
        if other_count:
            record_note(f"{self.file.path.name}: pages of other sources than {self.source}", other_count)
        if not batches and bad_rows:
            yield self._start_batch(None, bad_rows)
        for batch in batches.values():
            batch.page.skipped += bad_rows
            bad_rows = []
            yield batch

    def _read_table(
        self, chunk: Chunk, export: str | None, mapping: columns.Columns, prefix: str, bad_rows: _Skipped
    ) -> Batch:
        batch = self._start_batch(export, bad_rows)
        is_spreadsheet = self.file.path.suffix.lower() in (".csv", ".tsv", ".xlsx")
        id_columns = {name: column for name, column in mapping.items() if name in IDS} if is_spreadsheet else {}
        for name, column in id_columns.items():
            for number, row in zip(chunk.numbers, chunk.rows, strict=True):
                if isinstance(value := row.get(column), str):
                    self.cut_ids[chunk.table, name].add(value, f"{self.file.path}, row {number}, field {column!r}")
        if chunk.rows and "text" in mapping and _NOT_COLUMNS.isdisjoint(mapping):
            with suppress(BadInput):  # of a row that the loop below names
                keys = [f"{prefix}-{number}" for number in chunk.numbers]
                batch.page.comments += self._read_comments(chunk.rows, keys, mapping, prefix, "")
                return batch
        for number, row in zip(chunk.numbers, chunk.rows, strict=True):
            row_key, place = f"{prefix}-{number}", f"{self.file.path}, row {number}"
            try:
                article, comments = self._build_records(row, mapping, row_key, place)
            except BadInput as why:
                batch.page.skipped.append((self.file.drop("bad_value", number, str(why)).reason, row_key))
                continue
            batch.page.articles += article
            batch.page.comments += comments
        return batch

    def _build_records(
        self, row: Row, mapping: columns.Columns, row_key: str, place: str
    ) -> tuple[list[Article], list[Comment]]:
        label = row_key.rpartition("-")[0]
        has_comments = "comments" in mapping
        thread_id = read_text(row, mapping, "thread_id", place)
        thread = thread_id or (row_key if has_comments else label)
        articles, comments = list[Article](), list[Comment]()
        if "article_text" in mapping or "article_title" in mapping:
            names = ("article_title", "article_text", "category", "summary")
            title, text, category, summary = (read_text(row, mapping, name, place) for name in names)
            article = Article(thread_id=thread, title=title, text=text or "", category=category, summary=summary)
            if not thread_id and not has_comments:  # rows with the same article are one thread
                content = hashlib.blake2b(f"{article.title}\n{article.text}".encode(), digest_size=8).hexdigest()
                article = article._replace(thread_id=(thread := f"{label}-{content}"))
            articles.append(article)
        if has_comments:
            column = mapping["comments"]
            nested_mapping = {"text": "text", **mapping}
            nested_mapping.pop("thread_id", None)
            items = list_value(row.get(column), f"{place}, field {column!r}")
            rows = [item if isinstance(item, dict) else {nested_mapping["text"]: item} for item in items]
            self.unread.update(set().union(*rows) - {*mapping.values(), *nested_mapping.values()})
            keys = [f"{row_key}.{index}" for index in range(1, len(rows) + 1)]
            with suppress(BadInput):  # of an item that is named below
                return articles, self._read_comments(rows, keys, nested_mapping, thread, "")
            for index, (item, key) in enumerate(zip(rows, keys, strict=True), 1):
                item_place = f"{place}, item {index} of {column!r}"
                comments += self._read_comments([item], [key], nested_mapping, thread, item_place)
        elif "text" in mapping:
            comments += self._read_comments([row], [row_key], mapping, thread, place)
        return articles, comments

    def _read_comments(
        self, rows: Sequence[Row], keys: list[str], mapping: columns.Columns, thread: str, place: str
    ) -> list[Comment]:
        values = {name: read_column(rows, mapping, name, place) for name in Comment._fields}
        values |= {"row_key": keys, "is_hot": [False] * len(keys)}
        values["thread_id"] = [value or thread for value in values["thread_id"]]
        values["comment_id"] = [value or key for value, key in zip(values["comment_id"], keys, strict=True)]
        values["text"] = [extract_exported(text or "") for text in values["text"]]
        if "parent_id" in mapping or "root_id" in mapping:
            for index, comment_id in enumerate(values["comment_id"]):
                root, parent = values["root_id"][index], values["parent_id"][index]
                root = None if root in (comment_id, "0") else root
                self.own_answers += parent == comment_id
                parent = root if parent in (comment_id, "0", None) else parent
                values["root_id"][index], values["parent_id"][index] = root or parent, parent
        return list(map(Comment._make, zip(*values.values(), strict=True)))

    def _choose_mapping(self, table: str, names: set[str]) -> tuple[str | None, columns.Columns]:
        if not names:  # all rows of a chunk are broken
            return self.choices.get(table, (None, {}))
        present = self.present.setdefault(table, set())
        present.update(names & {*columns.FIELDS, *self.mapping.values()}, () if present else names)
        choice = columns.choose(self.mapping, present, self._place(table))
        if table not in self.choices:
            self.choices[table] = choice
            if unread := names - {"", *columns.list_row_columns(choice[1])}:
                place = self.file.path.name if table == self.file.path.stem else self._place(table)
                record_columns(place, sorted(unread))
            if self.file.path.suffix.lower() not in _SPARSE:
                self._check_present(table, names)
        elif choice[0] is None:  # of our names a row further on may have one that no row had before
            self.choices[table] = choice
        return self.choices[table]

    def _list_columns(self, table: str, names: Sequence[str]) -> set[str]:
        if not self.mapping and set(names) >= _PAGE_KEYS:
            return _PAGE_COLUMNS
        _, mapping = self._choose_mapping(table, set(names))
        return set(mapping.values())


def add_page(batch: Batch, url: str, fetched_at: datetime | None, body: dict[str, Any], place: str) -> None:
    """Parse one redacted page and add its records to the batch; a page of refusal is a dropped row."""
    try:
        page = parse(batch.source, body, url, fetched_at)
    except Refused:
        batch.page.skipped.append(("refused_page", url))
        return
    except SchemaDrift as why:
        raise SchemaDrift(f"{place}: {why}") from why
    batch.raw.append((url, fetched_at, body))
    batch.page.articles += page.articles
    batch.page.comments += page.comments
    batch.page.skipped += page.skipped


def hash_page(page: Mapping[str, str]) -> str:
    """SHA-256 of a page's address and body."""
    return hashlib.sha256(f"{page['url']}\n{page['body']}".encode()).hexdigest()
