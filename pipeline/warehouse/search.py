"""Where words still are: a search of the lake, the catalog, the databases and every folder, packed files decoded.

Parquet, Avro, zip (and so xlsx), gzip and SQLite are opened; every file is read byte by byte besides. Words are looked
for as they are and as JSON, HTML, csv and XML write them.
"""

import gzip
import html
import io
import json
import sqlite3
import zipfile
import zlib
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from pyarrow import fs
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO

from pipeline import settings
from pipeline.warehouse.upkeep import _opened, _path

_BLOCK = 4 << 20  # bytes read at once
_ROWS = 10_000
_DEEP = 3  # archives in archives
_PLAIN = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson")  # which people may bring in another encoding


class Place(NamedTuple):
    """Where something was found: the table, folder or database, and the file or SQL table in it."""

    store: str
    path: str


def spellings(text: str) -> set[str]:
    """A text as it is and as files write it: JSON, JSON in JSON, HTML, XML, csv, and without its blanks."""
    found = {text, text.replace('"', '""'), "".join(text.split())}
    found |= {html.escape(text), html.escape(text, quote=False), html.escape(text).replace("&#x27;", "&#39;")}
    for is_ascii in (True, False):
        once = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        found |= {once, json.dumps(once, ensure_ascii=is_ascii)[1:-1]}
    return found


def search(words: Collection[str], stores: Container[str] | None = None) -> list[Place]:
    """Every file of the installation, and every table of its databases, that holds one of the words.

    Args:
        words: to look for, in each spelling that matters (`spellings`).
        stores: where to look; everywhere by default, but for the linguistic resources, which are nobody's words.
    """
    wanted = sorted(words)
    if not wanted:
        return []
    found = [
        Place(store, path)
        for store, system, path in _files()
        if (stores is None or store in stores) and _holds(system, path, wanted)
    ]
    for store, uri in addresses().items():  # a SQLite file is found among the files
        if (stores is None or store in stores) and sa.make_url(uri).get_backend_name() != "sqlite":
            found += [Place(store, table) for table in _tables_with(uri, wanted)]
    return found


def folders() -> dict[str, str]:
    """Where what the pipeline keeps lies, by name; a folder inside another is told of under the inner one's name."""
    return {
        "warehouse": settings.warehouse(), "inbox": str(settings.inbox()), "models": str(settings.models()),
        "reports": str(settings.reports()), "labelling": str(settings.labelling()),
        "releases": str(settings.releases()), "scratch": str(settings.scratch("")),
        "home": str(settings.home()),
    }  # fmt: skip


def addresses() -> dict[str, str]:
    """SQLAlchemy addresses of the databases, by name."""
    return {"catalog": settings.catalog_uri(), "spool": settings.spool_uri(), "ledger": settings.llm_ledger()}


def _store_of(path: str, sqlite: Mapping[str | None, str], roots: Mapping[str, str]) -> str:
    """What a file belongs to: a table, `scratch`, a database, or the innermost of `folders`."""
    for end in ("", "-wal", "-shm", "-journal"):
        if (name := sqlite.get(path.removesuffix(end))) is not None:
            return name
    inside = {name: root for name, root in roots.items() if path.startswith(root)}
    name = max(inside, key=lambda name: len(inside[name]), default="elsewhere")
    if name != "warehouse":
        return name
    parts = path.removeprefix(inside[name]).split("/")
    return "scratch" if parts[0] == "_scratch" else parts[1] if len(parts) > 2 else name


def _files() -> Iterator[tuple[str, fs.FileSystem, str]]:
    """Store, file system and path of every file of the installation."""
    seen: set[str] = set()
    known = folders()
    urls = {name: sa.make_url(uri) for name, uri in addresses().items()}
    sqlite = {url.database: name for name, url in urls.items() if url.get_backend_name() == "sqlite"}
    roots = {name: f"{_path(root).rstrip('/')}/" for name, root in known.items()}
    resources = f"{settings.resources()}/"
    for root in [*known.values(), *(f"{path}{end}" for path in sqlite if path for end in ("", "-wal"))]:
        system, at = _opened(root)
        about = system.get_file_info(at)
        is_folder = about.type is fs.FileType.Directory
        for info in system.get_file_info(fs.FileSelector(at, recursive=True)) if is_folder else [about]:
            if info.type is fs.FileType.File and info.path not in seen and not info.path.startswith(resources):
                seen.add(info.path)
                yield _store_of(info.path, sqlite, roots), system, info.path


def _holds(system: fs.FileSystem, path: str, words: Collection[str]) -> bool:
    """Whether a file holds one of the words, in what it is packed of or in its bytes; one that is gone holds none."""
    wanted = list(words)
    try:
        with system.open_input_file(path) as file:
            if any(has(texts, wanted) for texts in _unpacked(file, path)):
                return True
        with system.open_input_stream(path) as stream:
            return any(has(texts, wanted) for texts in _raw(stream, max(map(len, wanted)), path.endswith(_PLAIN)))
    except FileNotFoundError:
        return False


def has(texts: pl.Series, words: Collection[str]) -> bool:
    """Whether one of the texts holds one of the words."""
    return bool(texts.drop_nulls().str.contains_any(list(words)).any())


def _raw(stream: Any, longest: int, is_plain: bool) -> Iterator[pl.Series]:
    before = b""
    while block := bytes(stream.read(_BLOCK)):
        yield pl.Series([(before + block).decode("utf-8", errors="replace")])
        if is_plain:
            yield pl.Series([(before + block).decode("gb18030", errors="replace")])
        before = block[-4 * longest :]


def _unpacked(file: Any, path: str, depth: int = 0) -> Iterator[pl.Series]:
    """The texts in a packed file; what is damaged or of another kind is left to the search of its bytes."""
    start = bytes(file.read(16))
    file.seek(0)
    with suppress(pa.ArrowException, zipfile.BadZipFile, OSError, EOFError, zlib.error, sqlite3.Error, ValueError):
        if start.startswith(b"PAR1"):
            for batch in pq.ParquetFile(file).iter_batches(_ROWS):
                yield from _columns(pl.DataFrame(pl.from_arrow(batch)))
        elif start.startswith(b"Obj\x01") and not depth:
            source: AvroFile[Any] = AvroFile(PyArrowFileIO().new_input(f"file://{path}"))
            with source as records:
                yield pl.Series([repr(record) for record in records], dtype=pl.String)
        elif start.startswith(b"PK\x03\x04") and depth < _DEEP:
            with zipfile.ZipFile(file) as archive:
                for member in archive.namelist():
                    with archive.open(member) as inner:
                        yield from _member(inner, depth)
        elif start.startswith(b"\x1f\x8b") and depth < _DEEP:
            with gzip.open(file) as inner:
                yield from _member(inner, depth)  # type: ignore[arg-type]
        elif start.startswith(b"SQLite format 3") and not depth:
            yield from _sqlite(path)


def _member(inner: IO[bytes], depth: int) -> Iterator[pl.Series]:
    content = inner.read()
    yield from _unpacked(io.BytesIO(content), "", depth + 1)
    yield pl.Series([content.decode("utf-8", errors="replace")])


def _columns(frame: pl.DataFrame) -> Iterator[pl.Series]:
    for column in frame:
        while isinstance(column.dtype, pl.Struct):
            yield from _columns(column.struct.unnest())
            break
        if column.dtype == pl.List(pl.String):  # words of a text are the text
            yield column.list.join(" ")
            yield column.list.join("")
        while column.dtype.is_nested() and not isinstance(column.dtype, pl.Struct):
            column = column.explode()  # noqa: PLW2901
        if column.dtype == pl.Binary:
            yield pl.Series([value.decode("utf-8", errors="replace") for value in column.drop_nulls()], dtype=pl.String)
        elif column.dtype == pl.String:
            yield column


def _sqlite(path: str) -> Iterator[pl.Series]:
    """Rows of all tables: in the bytes of the file a long text is in pieces."""
    with closing(sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)) as con:
        names = [name for (name,) in con.execute("select name from sqlite_master where type = 'table'")]
        for name in names:
            rows = con.execute('select * from "' + name.replace('"', '""') + '"')  # noqa: S608
            yield from _of_rows(rows)


def _of_rows(rows: Iterable[Any]) -> Iterator[pl.Series]:
    texts: list[str] = []
    for row in rows:
        texts += [value for value in row if isinstance(value, str)]
        texts += [value.decode("utf-8", errors="replace") for value in row if isinstance(value, bytes)]
        if len(texts) > _ROWS:
            yield pl.Series(texts, dtype=pl.String)
            texts = []
    yield pl.Series(texts, dtype=pl.String)


def _tables_with(uri: str, words: Collection[str]) -> list[str]:
    engine = sa.create_engine(uri)
    known = sa.MetaData()
    known.reflect(engine)
    with closing(engine.connect().execution_options(stream_results=True)) as con:
        found = [
            table.name
            for table in known.sorted_tables
            if any(has(texts, words) for texts in _of_rows(con.execute(sa.select(table))))
        ]
    engine.dispose()
    return found
