"""Erase from databases and files beside the tables: records from a file of records, any other file as a whole."""

import codecs
import csv
import html
import io
import json
import re
import secrets
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import polars as pl
import sqlalchemy as sa

from pipeline import settings
from pipeline.collect import columns
from pipeline.collect.clean import normalise
from pipeline.collect.sites.markup import extract_exported
from pipeline.errors import BadInput, Retry
from pipeline.io.atomic import replace_file
from pipeline.io.formats.databases import ENDINGS, escape_name, list_tables
from pipeline.io.lines import parse_json
from pipeline.io.spreadsheets import unescape_formula
from pipeline.llm.ledger import answers
from pipeline.tasks.erasure.pages import build_matcher, clean_page, remove_records
from pipeline.tasks.erasure.rules import Targets, has_mark, is_short

_TEXT_FIELD = re.compile("(?i)text|content|message|comment|title|summary|document|desc|评论|内容|正文|标题|摘要")
_OTHER_FIELD = re.compile("(?i)id$|count|num|like|time|date|type|code|label")  # a fact about a text
_MOST_LISTS = 1_000  # of comments in a record; of more the record goes as a whole
_COMMENTS_FIELD = re.compile("(?i)comment|repl|评论|回复")
_PERSON_FIELD = re.compile("(?i)user|author|creator|owner|member|uid|mid|用户|作者")


# --- databases


def erase_from_ledger(targets: Targets) -> int:
    """Erase answers from the ledger of language models; return the row count."""
    uri = settings.llm_ledger()
    if not _has_database(uri):
        return 0
    count = answers.forget(answers.open_ledger(uri), set(targets.completion_ids), build_matcher(targets))
    _vacuum(uri)
    return count


def erase_from_spool(targets: Targets) -> int:
    """Clean the fetched pages in the spool; return the count of changed pages."""
    uri = settings.spool_uri()
    if not _has_database(uri):
        return 0
    engine = sa.create_engine(uri)
    count = 0
    try:
        metadata = sa.MetaData()
        metadata.reflect(engine)
        if (pages := metadata.tables.get("pages")) is None:
            return 0
        with engine.connect() as connection:
            rows = connection.execution_options(yield_per=100).execute(sa.select(pages))
            bodies = ((row, clean_page(row.body, row.source, row.url, targets)) for row in rows)
            changes = [(row, body) for row, body in bodies if body != row.body]
        with engine.begin() as connection:
            for row, body in changes:  # the next pass checks a page that was fetched again meanwhile
                key = [pages.c[name] == getattr(row, name) for name in ("source", "day", "chain", "seq", "body")]
                statement = sa.delete(pages) if body is None else sa.update(pages).values(body=body)
                count += connection.execute(statement.where(*key)).rowcount
    except sa.exc.OperationalError as error:
        raise Retry(f"the spool does not answer ({type(error).__name__}); see UNDERTONE_SPOOL") from None
    finally:
        engine.dispose()
    _vacuum(uri)
    return count


def _has_database(uri: str) -> bool:
    url = sa.make_url(uri)
    return url.get_backend_name() != "sqlite" or bool(url.database and Path(url.database).is_file())


def _vacuum(uri: str) -> None:
    """Rewrite a SQLite file without deleted content; PostgreSQL does it by itself later."""
    url = sa.make_url(uri)
    if url.get_backend_name() != "sqlite" or not url.database:
        return
    try:
        with closing(sqlite3.connect(url.database, isolation_level=None, timeout=60)) as connection:
            connection.execute("vacuum")
            connection.execute("pragma wal_checkpoint(truncate)")
    except sqlite3.OperationalError as error:
        raise Retry(f"{Path(url.database).name} is in use; deleted rows are still in its pages: {error}") from error


# --- files

_BROKEN = (zlib.error, csv.Error, zipfile.BadZipFile, sqlite3.Error, BadInput, pl.exceptions.PolarsError)
_DAMAGED = (*_BROKEN, ValueError, LookupError, EOFError, RuntimeError)  # the last: encrypted files of zipfile


def clean_file(path: Path, targets: Targets, *, is_hit: bool = True, is_dry: bool = False) -> int:
    """Remove the erased records from a file, or the file if it `is_hit` and no record has it; return their count.

    If it `is_dry`, they are only counted.
    """
    content, count = None, 1
    try:
        if cleaner := _CLEANERS.get(path.suffix.lower()):
            content, count = cleaner(path, targets)
    except FileNotFoundError:
        return 0
    except _DAMAGED:
        pass  # no record can be removed from it
    content = content if count else None
    if content is None and not is_hit:
        return 0
    if is_dry:
        return max(count, 1)
    if content is None:
        path.unlink(missing_ok=True)  # the hit may be outside all records, such as beside the cells of a sheet
    else:
        with replace_file(path) as draft:
            draft.write_bytes(content)
    return max(count, 1)


def _decode(path: Path) -> tuple[str, str]:
    content = path.read_bytes()
    marks = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    for encoding in (next((marks[mark] for mark in marks if content.startswith(mark)), "utf-8"), "gb18030"):
        with suppress(UnicodeDecodeError):
            return content.decode(encoding), encoding
    raise ValueError("neither UTF-8, UTF-16 nor GB 18030")


def _find_records(cells: Sequence[tuple[int, str, str]], targets: Targets) -> set[int]:
    # a short text or an id of the site counts only in a field of texts or people: elsewhere `1` is a number of likes
    numbers: dict[str, int] = {}  # a long name is stored once, however many cells have it
    rows = [(record, numbers.setdefault(name, len(numbers)), cell) for record, name, cell in cells]
    schema = {"record": pl.Int64, "name": pl.Int64, "cell": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row").drop_nulls()
    if not frame.height:
        return set()
    texts = pl.Series([*map(extract_exported, map(unescape_formula, frame["cell"]))], dtype=pl.String)
    frame = frame.with_columns(clean=normalise(texts))
    long_texts = targets.texts.filter(~is_short(targets.texts))
    person_fields = [number for name, number in numbers.items() if _PERSON_FIELD.search(name)]
    ends = {number: name.rpartition(".")[2] for name, number in numbers.items()}
    text_fields = [n for n, end in ends.items() if _TEXT_FIELD.search(end) and not _OTHER_FIELD.search(end)]
    is_hit = pl.col("name").is_in(person_fields) & pl.col("cell").is_in(list(targets.raw_ids))
    for column in ("cell", "clean"):
        is_text = pl.col("name").is_in(text_fields) & pl.col(column).is_in(targets.texts.implode())
        is_long_text = pl.col(column).is_in(long_texts.implode())
        is_hit |= has_mark(targets, column) | (is_text | is_long_text).fill_null(value=False)
    return {*frame.filter(is_hit)["record"], *_find_comments(frame, numbers, targets)}


def _find_comments(frame: pl.DataFrame, numbers: dict[str, int], targets: Targets) -> pl.Series:
    """Find the records that have thread and id of an erased comment: its text may be one that others wrote too."""
    names = {name.removeprefix("."): number for name, number in numbers.items()}
    export = columns.find_export(names)
    mapping = export[1] if export else {name: name for name in ("thread_id", "comment_id")}
    rows = frame.select("record").unique()
    for field in ("thread_id", "comment_id"):
        cells = frame.filter(pl.col("name") == names.get(mapping.get(field, ""), -1))
        rows = rows.join(cells.select("record", pl.col("cell").alias(field)), on="record")
    return rows.join(targets.comment_keys, on=["thread_id", "comment_id"], how="semi")["record"]


def _find_rows(rows: Sequence[Sequence[tuple[object, str]]], targets: Targets) -> set[int]:
    names = dict(rows[0]) if rows else {}
    cells = [(n, names.get(column, "") if n else "", cell) for n, row in enumerate(rows) for column, cell in row]
    return _find_records(cells, targets)


def _find_values(values: Iterable[Any], targets: Targets, name: str = "") -> set[int]:
    return _find_records([(n, *leaf) for n, value in enumerate(values) for leaf in _list_leaves(value, name)], targets)


def _clean_csv(path: Path, targets: Targets) -> tuple[bytes | None, int]:
    text, encoding = _decode(path)
    csv.field_size_limit(1 << 26)
    dialect = "excel-tab" if path.suffix.lower() == ".tsv" else "excel"
    rows = list(csv.reader(io.StringIO(text, newline=""), dialect))
    hits = _find_rows([list(enumerate(row)) for row in rows], targets)
    if 0 in hits:
        return None, len(rows)
    out = io.StringIO(newline="")
    writer = csv.writer(out, dialect, lineterminator="\r\n" if "\r\n" in text else "\n")
    writer.writerows(row for number, row in enumerate(rows) if number not in hits)
    return out.getvalue().encode(encoding), len(hits)


def _clean_parquet(path: Path, targets: Targets) -> tuple[bytes | None, int]:
    frame = pl.read_parquet(path)
    hits = _find_values(frame.iter_rows(named=True), targets)
    out = io.BytesIO()
    frame.filter(~pl.int_range(pl.len()).is_in(sorted(hits))).write_parquet(out)
    return out.getvalue(), len(hits)


def _clean_lines(path: Path, targets: Targets) -> tuple[bytes | None, int]:
    text, encoding = _decode(path)
    lines = list(io.StringIO(text, newline=""))  # split as by the importer: U+2028 inside a comment ends no line
    is_plain = path.suffix.lower() == ".txt"
    values: list[Any] = []
    changed_count = 0
    for number, line in enumerate(lines):
        value: Any = line
        with suppress(ValueError):
            value = line if is_plain else parse_json(line)
        if isinstance(value, dict) and isinstance(value.get("body"), dict):  # a raw page: its other records stay
            body = remove_records(value["body"], str(value.get("source") or path.parent.parent.name), targets)
            if body is not None and body != value["body"]:
                value = {**value, "body": body}
                lines[number] = f"{json.dumps(value, ensure_ascii=False)}\n"
                changed_count += 1
        values.append(value)
    hits = _find_values(values, targets, "text" if is_plain else "")
    for number in [*hits]:
        count = _cut_comments(values[number], targets)
        if count and not _find_values([values[number]], targets):
            lines[number] = f"{json.dumps(values[number], ensure_ascii=False)}\n"
            changed_count += count
            hits.remove(number)
    remaining = [line for number, line in enumerate(lines) if number not in hits]
    return "".join(remaining).encode(encoding), len(hits) + changed_count


def _list_leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """List the names and values of JSON in any order; an inner name has the path to it as a prefix."""
    pending = [(name, value)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            yield from (("", str(inner_name)) for inner_name in value)
            pending += [(f"{name}.{inner_name}", inner) for inner_name, inner in value.items()]
        elif isinstance(value, list):
            pending += [(name, inner) for inner in value]
        elif value is not None and not isinstance(value, bool):
            yield name, str(value).strip()


def _cut_comments(record: Any, targets: Targets) -> int:
    """Cut erased comments out of the lists of comments in a record, of which others may stay; return their count."""
    lists: list[tuple[str, list[Any]]] = []
    pending = [("", record)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending += [(str(inner_name), inner) for inner_name, inner in value.items()]
        elif isinstance(value, list):
            lists += [(name, value)] if _COMMENTS_FIELD.search(name) else []
            pending += [(name, inner) for inner in value]
    count = 0
    for name, comments in reversed(lists[:_MOST_LISTS]):  # answers before the comments that hold them
        hits = _find_values(comments, targets, name)
        comments[:] = [comment for number, comment in enumerate(comments) if number not in hits]
        count += len(hits)
    return count


def _clean_json(path: Path, targets: Targets) -> tuple[bytes | None, int]:
    text, encoding = _decode(path)
    value = parse_json(text)
    if not _find_values([value], targets):
        return text.encode(encoding), 0
    count = _cut_comments(value, targets)
    members = {"": value, **(value if isinstance(value, dict) else {})}
    name, rows = next(((name, member) for name, member in members.items() if isinstance(member, list)), ("", None))
    if rows is not None:
        hits = _find_values(rows, targets, name)
        rows[:] = [row for number, row in enumerate(rows) if number not in hits]
        count += len(hits)
    if _find_values([value], targets):
        return None, count + 1
    return json.dumps(value, ensure_ascii=False).encode(encoding), count


def _compile_element(name: str) -> re.Pattern[str]:
    """Compile a pattern of XML elements that contain none of their own name; no character is read twice."""
    content = rf"[^<]*+(?:<(?!/?{name}[\s/>])[^<]*+)*+"
    return re.compile(rf"<{name}(?=[\s/>])([^<>]*+)>(?:(?<=/>)|({content})</{name}\s*+>)")


_ROW, _CELL, _SHARED, _TEXT, _VALUE = map(_compile_element, ("row", "c", "si", "t", "v"))


def _clean_xlsx(path: Path, targets: Targets) -> tuple[bytes | None, int]:
    """Remove rows from the sheets of a workbook: XML in a zip, where texts may be stored apart from their cells."""
    with zipfile.ZipFile(path) as archive:
        parts = {info: archive.read(info) for info in archive.infolist()}
    shared = next((info for info in parts if info.filename == "xl/sharedStrings.xml"), None)
    shared_items = [item[0] for item in _SHARED.finditer(parts[shared].decode())] if shared else []
    shared_texts = [_read_text(item) for item in shared_items]
    sheets = [info for info in parts if re.fullmatch(r"xl/worksheets/[^/]+\.xml", info.filename)]
    count = 0
    for info in sheets:
        xml, row_count = _clean_sheet(parts[info].decode(), shared_texts, targets)
        parts[info] = xml.encode()
        count += row_count
    if shared and count:
        rows = [row[0] for info in sheets for row in _ROW.finditer(parts[info].decode())]
        used_texts = {text for row in rows for _, text in _read_cells(row, shared_texts)}
        pairs = zip(shared_items, shared_texts, strict=True)
        items = [item if text in used_texts else "<si><t></t></si>" for item, text in pairs]
        parts[shared] = _replace_all(_SHARED, items, parts[shared].decode()).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, content in parts.items():
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return out.getvalue(), count


def _replace_all(pattern: re.Pattern[str], texts: Iterable[str], xml: str) -> str:
    replacements = iter(texts)
    return pattern.sub(lambda _: next(replacements), xml)


def _clean_sheet(xml: str, shared_texts: list[str], targets: Targets) -> tuple[str, int]:
    rows = [row[0] for row in _ROW.finditer(xml)]
    hits = _find_rows([list(_read_cells(row, shared_texts)) for row in rows], targets)
    if not hits:
        return xml, 0
    new_rows, count = [], 0
    for number, row in enumerate(rows):
        count += number not in hits
        row = re.sub(r'\A(<row\b[^<>]*?\br=")\d+', rf"\g<1>{count}", row)  # noqa: PLW2901
        new_rows.append("" if number in hits else re.sub(r'(<c\b[^<>]*?\br="[A-Z]++)\d+', rf"\g<1>{count}", row))
    return _replace_all(_ROW, new_rows, xml), len(hits)


def _read_text(xml: str) -> str:
    return html.unescape("".join(text[2] or "" for text in _TEXT.finditer(xml)))


def _read_cells(row: str, shared_texts: list[str]) -> Iterator[tuple[str, str]]:
    for cell in _CELL.finditer(row):
        attributes, content = cell[1], cell[2] or ""
        value = _VALUE.search(content)
        number = value[2] or "" if value else ""
        column = re.search(r'\br="([A-Z]+)', attributes)
        is_shared = 't="s"' in attributes and number
        text = _read_text(content) or html.unescape(number)
        yield column[1] if column else "", shared_texts[int(number)] if is_shared else text


def _clean_database(path: Path, targets: Targets) -> tuple[bytes | None, int]:
    """Remove rows from the tables of a SQLite file, in memory. It is a stranger's, so its triggers do not run."""
    count = 0
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)) as file:
            file.execute("pragma journal_mode = delete")  # what a crawler left in the log beside it is in it then
            file.backup(copy)
        triggers = copy.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
        for name, _ in triggers:
            copy.execute(f"drop trigger {escape_name(name)}")
        for table, fields in list_tables(path).items():
            keys = _list_keys(copy, table)
            names = ", ".join(map(escape_name, [*keys, *fields]))
            rows = copy.execute(f"select {names} from {escape_name(table)}").fetchall()  # noqa: S608
            hits = _find_values((dict(zip(fields, row[len(keys) :], strict=True)) for row in rows), targets)
            condition = " and ".join(f"{escape_name(key)} is ?" for key in keys)
            row_keys = [rows[number][: len(keys)] for number in hits]
            copy.executemany(f"delete from {escape_name(table)} where {condition}", row_keys)  # noqa: S608
            count += len(hits)
        for _, statement in triggers:
            copy.execute(statement)
        copy.execute("vacuum")
        return copy.serialize(), count


def _list_keys(database: sqlite3.Connection, table: str) -> list[str]:
    """List the columns that identify a row: the row number, or the primary key of a table without row numbers."""
    columns = database.execute("select lower(name), pk from pragma_table_xinfo(?)", [table]).fetchall()
    tables = database.execute("select wr from pragma_table_list where schema = 'main' and name = ?", [table])
    if tables.fetchone() == (1,):
        return [name for name, place in columns if place]
    names = [name for name, _ in columns]  # a column with the name of the row number hides it
    return [alias for alias in ("_rowid_", "rowid", "oid") if alias not in names][:1] or names


_CLEANERS = {
    **dict.fromkeys((".csv", ".tsv"), _clean_csv),
    **dict.fromkeys((".jsonl", ".ndjson", ".txt", ".log"), _clean_lines),
    ".json": _clean_json,
    ".xlsx": _clean_xlsx,
    ".parquet": _clean_parquet,
    **dict.fromkeys(ENDINGS, _clean_database),
}


def remove_folder(path: Path) -> None:
    """Remove a folder so that no reader sees a part of it; if it is a link, also its target."""
    draft = path.with_name(f".gone-{secrets.token_hex(4)}")
    with suppress(FileNotFoundError):
        path.rename(draft)
    shutil.rmtree(draft.resolve(), ignore_errors=True)
    if draft.is_symlink():
        draft.unlink()
