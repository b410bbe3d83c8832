"""Erasing from what lies beside the tables: databases, and files people gave or took away.

A file of records loses the records that are meant; one that cannot be cut goes.
"""

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
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl
import sqlalchemy as sa

from pipeline import settings
from pipeline.collect.clean import normalised
from pipeline.errors import Retry
from pipeline.io.atomic import replace_file
from pipeline.io.lines import parse_json
from pipeline.llm.ledger import answers
from pipeline.tasks.erasure.pages import build_matcher, cut_page, has_mark, remove_records
from pipeline.tasks.erasure.rules import Targets, is_short

_TEXT_FIELD = re.compile(
    "text|content|message|comment|title|summary|document|desc|评论|内容|正文|标题|摘要", re.IGNORECASE
)
_NUMBER_FIELD = re.compile("id$|count|num|like|time|date|type|code|label", re.IGNORECASE)  # of a text, not one itself
_PERSON_FIELD = re.compile("user|author|creator|owner|member|uid|mid|用户|作者", re.IGNORECASE)


# --- databases


def erase_from_ledger(gone: Targets) -> int:
    """Take answers out of the ledger of language models; how many rows."""
    uri = settings.llm_ledger()
    if not _has_database(uri):
        return 0
    count = answers.forget(answers.opened(uri), set(gone.completions), build_matcher(gone))
    _vacuum(uri)
    return count


def erase_from_spool(gone: Targets) -> int:
    """Cut fetched pages in the spool; how many."""
    uri = settings.spool_uri()
    if not _has_database(uri):
        return 0
    engine = sa.create_engine(uri)
    count = 0
    try:
        known = sa.MetaData()
        known.reflect(engine)
        if (pages := known.tables.get("pages")) is None:
            return 0
        with engine.connect() as con:
            rows = con.execution_options(yield_per=100).execute(sa.select(pages))
            cut_ = [(row, text) for row in rows if (text := cut_page(row.body, row.source, row.url, gone)) != row.body]
        with engine.begin() as con:
            for row, text in cut_:  # a page that was fetched anew meanwhile is another: the next pass looks at it
                here = [pages.c[name] == getattr(row, name) for name in ("source", "day", "chain", "seq", "body")]
                change = sa.delete(pages) if text is None else sa.update(pages).values(body=text)
                count += con.execute(change.where(*here)).rowcount
    except sa.exc.OperationalError as why:
        raise Retry(f"the spool does not answer ({type(why).__name__}); see UNDERTONE_SPOOL") from None
    finally:
        engine.dispose()
    _vacuum(uri)
    return count


def _has_database(uri: str) -> bool:
    url = sa.make_url(uri)
    return url.get_backend_name() != "sqlite" or bool(url.database and Path(url.database).is_file())


def _vacuum(uri: str) -> None:
    """Write a SQLite file anew without what was deleted; PostgreSQL does so by itself in its time."""
    url = sa.make_url(uri)
    if url.get_backend_name() != "sqlite" or not url.database:
        return
    try:
        with closing(sqlite3.connect(url.database, isolation_level=None, timeout=60)) as con:
            con.execute("vacuum")
            con.execute("pragma wal_checkpoint(truncate)")
    except sqlite3.OperationalError as why:
        raise Retry(f"{Path(url.database).name} is in use; what was deleted is still in its pages: {why}") from why


# --- files

_DAMAGED = (  # RuntimeError: zipfile's, of what is encrypted or packed in a way it does not know
    ValueError, LookupError, RuntimeError, EOFError, zlib.error, csv.Error, zipfile.BadZipFile,
    pl.exceptions.PolarsError,
)  # fmt: skip


def clean_file(path: Path, gone: Targets, *, is_met: bool = True) -> int:
    """Take out of a file the records that hold something erased; how many.

    A file that cannot be cut goes, which counts as one, if it is known to hold something (`is_met`).
    """
    makers = {
        ".csv": _clean_csv, ".tsv": _clean_csv, ".jsonl": _clean_lines, ".ndjson": _clean_lines, ".txt": _clean_lines,
        ".log": _clean_lines, ".json": _clean_json, ".xlsx": _clean_xlsx, ".parquet": _clean_parquet,
    }  # fmt: skip
    content, count = None, 1
    with suppress(*_DAMAGED):
        if maker := makers.get(path.suffix.lower()):
            try:
                content, count = maker(path, gone)
            except FileNotFoundError:
                return 0
    if (content is None or not count) and not is_met:
        return 0
    if content is None or not count:  # it may stand where no record is, such as beside the cells of a sheet
        path.unlink(missing_ok=True)
        return max(count, 1)
    with replace_file(path) as draft:
        draft.write_bytes(content)
    return count


def _decode(path: Path) -> tuple[str, str]:
    """A text file and its encoding."""
    content = path.read_bytes()
    for encoding in ("utf-8-sig" if content.startswith(b"\xef\xbb\xbf") else "utf-8", "gb18030"):
        with suppress(UnicodeDecodeError):
            return content.decode(encoding), encoding
    raise ValueError("neither UTF-8 nor GB 18030")


def _find_records(cells: Sequence[tuple[int, str, str]], gone: Targets) -> set[int]:
    """Numbers of the records of which a cell holds something erased.

    A short text and an id as the site has it are met only where the field's name tells that such stand there: `1` may
    be a person's whole comment, and is a number of likes, or a label, in records of others.

    Args:
        cells: number of the record, name of the field, what it holds.
        gone: what is erased.
    """
    names: dict[str, int] = {}  # a long name is held once, however many cells have it
    numbered = [(row, names.setdefault(name, len(names)), cell) for row, name, cell in cells]
    schema = {"row": pl.Int64, "name": pl.Int64, "cell": pl.String}
    frame = pl.DataFrame(numbered, schema=schema, orient="row").drop_nulls()
    if not frame.height:
        return set()
    frame = frame.with_columns(clean=normalised(frame["cell"]))
    long = gone.texts.filter(~is_short(gone.texts))
    of_people = [number for name, number in names.items() if _PERSON_FIELD.search(name)]
    of_texts = [
        number
        for name, number in names.items()
        if _TEXT_FIELD.search(last := name.rpartition(".")[2]) and not _NUMBER_FIELD.search(last)
    ]
    met = has_mark(gone, "cell") | has_mark(gone, "clean")
    met |= pl.col("name").is_in(of_people) & pl.col("cell").is_in(list(gone.raw_ids))
    for column in ("cell", "clean"):
        is_text = pl.col("name").is_in(of_texts) & pl.col(column).is_in(gone.texts.implode())
        met |= (is_text | pl.col(column).is_in(long.implode())).fill_null(value=False)
    return set(frame.filter(met)["row"])


def _clean_csv(path: Path, gone: Targets) -> tuple[bytes | None, int]:
    text, encoding = _decode(path)
    csv.field_size_limit(1 << 26)
    dialect = "excel-tab" if path.suffix.lower() == ".tsv" else "excel"
    rows = list(csv.reader(io.StringIO(text, newline=""), dialect))
    names = rows[0] if rows else []
    hits = _find_records([
        (n, name if n else "", cell)
        for n, row in enumerate(rows) for name, cell in zip_longest(names[: len(row)], row, fillvalue="")
    ], gone)  # fmt: skip
    if 0 in hits:
        return None, len(rows)
    out = io.StringIO(newline="")
    writer = csv.writer(out, dialect, lineterminator="\r\n" if "\r\n" in text else "\n")
    writer.writerows(row for number, row in enumerate(rows) if number not in hits)
    return out.getvalue().encode(encoding), len(hits)


def _clean_parquet(path: Path, gone: Targets) -> tuple[bytes | None, int]:
    frame = pl.read_parquet(path)
    hits = _find_records(
        [(n, *leaf) for n, row in enumerate(frame.iter_rows(named=True)) for leaf in _list_leaves(row)], gone
    )
    made = io.BytesIO()
    frame.filter(~pl.int_range(pl.len()).is_in(sorted(hits))).write_parquet(made)
    return made.getvalue(), len(hits)


def _clean_lines(path: Path, gone: Targets) -> tuple[bytes | None, int]:
    text, encoding = _decode(path)
    lines = list(io.StringIO(text, newline=""))  # as the importer cuts: U+2028 inside a comment ends no line
    cells: list[tuple[int, str, str]] = []
    changed = 0
    for number, line in enumerate(lines):
        try:
            value = parse_json(line) if path.suffix.lower() not in (".txt",) else line
        except ValueError:
            value = line
        if isinstance(value, dict) and isinstance(value.get("body"), dict):  # a raw page: its other records stay
            body = remove_records(value["body"], str(value.get("source") or path.parent.parent.name), gone)
            if body is not None and body != value["body"]:
                value = {**value, "body": body}
                lines[number] = f"{json.dumps(value, ensure_ascii=False)}\n"
                changed += 1
        cells += [(number, *leaf) for leaf in _list_leaves(value, "text" if path.suffix.lower() == ".txt" else "")]
    hits = _find_records(cells, gone)
    kept = [line for number, line in enumerate(lines) if number not in hits]
    return "".join(kept).encode(encoding), len(hits) + changed


def _list_leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Names and values of JSON, in no order; a name within another has that before it."""
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


def _clean_json(path: Path, gone: Targets) -> tuple[bytes | None, int]:
    text, encoding = _decode(path)
    value = parse_json(text)
    if not _find_records([(0, *leaf) for leaf in _list_leaves(value)], gone):
        return text.encode(encoding), 0
    inside = value.items() if isinstance(value, dict) else []
    name, rows = next(((name, one) for name, one in [("", value), *inside] if isinstance(one, list)), ("", None))
    if rows is None:
        return None, 1
    hits = _find_records([(number, *leaf) for number, row in enumerate(rows) for leaf in _list_leaves(row, name)], gone)
    rows[:] = [row for number, row in enumerate(rows) if number not in hits]
    if _find_records([(0, *leaf) for leaf in _list_leaves(value)], gone):
        return None, len(hits) + 1
    return json.dumps(value, ensure_ascii=False).encode(encoding), len(hits)


def _compile_element(name: str) -> re.Pattern[str]:
    """Elements of XML that hold none of their own name: attributes, then content, which an empty one `<c/>` has not.

    Nothing is read twice, also where an end tag is missing.
    """
    content = rf"[^<]*+(?:<(?!/?{name}[\s/>])[^<]*+)*+"
    return re.compile(rf"<{name}(?=[\s/>])([^<>]*+)>(?:(?<=/>)|({content})</{name}\s*+>)")


_ROW, _CELL, _SHARED, _TEXT, _VALUE = map(_compile_element, ("row", "c", "si", "t", "v"))


def _clean_xlsx(path: Path, gone: Targets) -> tuple[bytes | None, int]:
    """A sheet without the rows: xlsx is XML in a zip, where texts may lie apart from their cells."""
    with zipfile.ZipFile(path) as archive:
        parts = {info: archive.read(info) for info in archive.infolist()}
    count = 0
    by_name = {info.filename: info for info in parts}
    shared: list[str] = []
    if info := by_name.get("xl/sharedStrings.xml"):
        shared = [item[0] for item in _SHARED.finditer(parts[info].decode())]
    said = [_read_text(one) for one in shared]
    sheets = [info for name, info in by_name.items() if re.fullmatch(r"xl/worksheets/[^/]+\.xml", name)]
    for info in sheets:
        xml = parts[info].decode()
        rows = [row[0] for row in _ROW.finditer(xml)]
        names = dict(_read_cells(rows[0], said)) if rows else {}
        hits = _find_records(
            [
                (n, names.get(at, "") if n else "", cell)
                for n, row in enumerate(rows)
                for at, cell in _read_cells(row, said)
            ],
            gone,
        )
        count += len(hits)
        kept = [row for number, row in enumerate(rows) if number not in hits]
        numbered = iter([_renumber(row, number) for number, row in enumerate(kept, 1)] if hits else kept)
        left = iter(n not in hits for n in range(len(rows)))
        parts[info] = _ROW.sub(lambda _, left=left, rows=numbered: next(rows) if next(left) else "", xml).encode()  # type: ignore[misc]
    if shared and count:
        rows = [row[0] for info in sheets for row in _ROW.finditer(parts[info].decode())]
        used = {text for row in rows for _, text in _read_cells(row, said)}
        out = {n for n, text in enumerate(said) if text not in used}
        texts = iter("<si><t></t></si>" if n in out else one for n, one in enumerate(shared))
        info = by_name["xl/sharedStrings.xml"]
        parts[info] = _SHARED.sub(lambda _: next(texts), parts[info].decode()).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, content in parts.items():
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return made.getvalue(), count


def _read_text(xml: str) -> str:
    return html.unescape("".join(text[2] or "" for text in _TEXT.finditer(xml)))


def _read_cells(row: str, shared: list[str]) -> Iterator[tuple[str, str]]:
    """Letter of the column, and what stands there."""
    for cell in _CELL.finditer(row):
        attributes, content = cell[1], cell[2] or ""
        value = _VALUE.search(content)
        number = value[2] or "" if value else ""
        column = re.search(r'\br="([A-Z]+)', attributes)
        is_shared = 't="s"' in attributes and number
        plain = _read_text(content) or html.unescape(number)
        yield column[1] if column else "", shared[int(number)] if is_shared else plain


def _renumber(row: str, number: int) -> str:
    row = re.sub(r'\A(<row\b[^<>]*?\br=")\d+', rf"\g<1>{number}", row)
    return re.sub(r'(<c\b[^<>]*?\br="[A-Z]++)\d+', rf"\g<1>{number}", row)


def remove_folder(path: Path) -> None:
    """Remove a folder so that no reader sees half of it; of a link also the folder that it leads to."""
    aside = path.with_name(f".gone-{secrets.token_hex(4)}")
    with suppress(FileNotFoundError):
        path.rename(aside)
    shutil.rmtree(aside.resolve(), ignore_errors=True)
    if aside.is_symlink():
        aside.unlink()
