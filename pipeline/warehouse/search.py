"""Where words still are: a search of the lake, the catalog, the databases and every folder, packed files decoded.

Parquet, Avro, zip (and so xlsx), gzip, bz2, zst, lz4 and SQLite are opened; every file is read byte by byte besides.
Words are looked for as they are and as JSON, HTML, csv and XML write them.
"""

import gzip
import html
import io
import json
import lzma
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from pyarrow import fs
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFile

from pipeline import settings
from pipeline.warehouse.files import open_store, path_of

_BLOCK = 4 << 20  # bytes read at once
_ROWS = 10_000
_DEEP = 3  # archives in archives
_UNPACKED = 4 << 30  # bytes an archive may unpack into: 4 MB can make that much
_HELD = 256 << 20  # bytes of a packed file in an archive, which is read as a whole
_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"
_BY_NAME = (".bz2", ".zst", ".lz4")  # which pyarrow unpacks
_NEVER = (b"7z\xbc\xaf", b"Rar!", b"\xfd7zXZ")  # archives that nothing here unpacks
_DAMAGED = (  # RuntimeError: zipfile's, of what is encrypted or packed in a way it does not know
    pa.ArrowException, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, struct.error, sqlite3.Error,
    ValueError, RuntimeError,
)  # fmt: skip
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


def search(
    words: Collection[str], stores: Container[str] | None = None, closed: set[str] | None = None
) -> list[Place]:  # fmt: skip
    """Every file of the installation, and every table of its databases, that holds one of the words.

    Args:
        words: to look for, in each spelling that matters (`spellings`).
        stores: where to look; everywhere by default, but for the linguistic resources, which are nobody's words.
        closed: gets the paths of files that cannot be looked into, and why: encrypted, damaged, packed in an unknown
            way, or a few bytes that unpack into very many. They may hold what they like; a person must look.
    """
    wanted = sorted(words)
    if not wanted:
        return []
    found = [
        Place(store, path)
        for store, system, path in _files()
        if (stores is None or store in stores) and _holds(system, path, wanted, closed)
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
    roots = {name: f"{path_of(root).rstrip('/')}/" for name, root in known.items()}
    resources = f"{settings.resources()}/"
    for root in [*known.values(), *(f"{path}{end}" for path in sqlite if path for end in ("", "-wal"))]:
        system, at = open_store(root)
        about = system.get_file_info(at)
        is_folder = about.type is fs.FileType.Directory
        for info in system.get_file_info(fs.FileSelector(at, recursive=True)) if is_folder else [about]:
            if info.type is fs.FileType.File and info.path not in seen and not info.path.startswith(resources):
                seen.add(info.path)
                yield _store_of(info.path, sqlite, roots), system, info.path


def _holds(system: fs.FileSystem, path: str, words: Collection[str], closed: set[str] | None) -> bool:
    """Whether a file holds one of the words, in what it is packed of or in its bytes; one that is gone holds none."""
    wanted, longest = list(words), max(map(len, words))
    shut: set[str] = set()
    try:
        with system.open_input_file(path) as file:
            if any(has(texts, wanted) for texts in _unpacked(file, path, system, longest, shut)):
                return True
        with system.open_input_stream(path, compression=None) as stream:
            if any(has(texts, wanted) for texts in _raw(stream, longest, path.endswith(_PLAIN))):
                return True
    except OSError:  # a store has other words for an object that went while it was read
        if system.get_file_info(path).type is fs.FileType.NotFound:
            return False
        raise
    if closed is not None:
        closed |= shut
    return False


def has(texts: pl.Series, words: Collection[str]) -> bool:
    """Whether one of the texts holds one of the words."""
    return bool(texts.drop_nulls().str.contains_any(list(words)).any())


def _raw(stream: Any, longest: int, is_plain: bool, block: bytes = b"") -> Iterator[pl.Series]:
    before = b""
    while block := block or bytes(stream.read(_BLOCK)):
        yield pl.Series([(before + block).decode("utf-8", errors="replace")])
        if is_plain:
            yield pl.Series([(before + block).decode("gb18030", errors="replace")])
        before, block = (before + block)[-4 * longest :], b""


def _unpacked(
    file: Any, path: str, system: fs.FileSystem | None, longest: int, closed: set[str], depth: int = 0
) -> Iterator[pl.Series]:
    """The texts in a packed file; of what is damaged or of another kind only the bytes are searched.

    Args:
        file: opened.
        path: of the file.
        system: where that is; None of what lies in an archive.
        longest: characters of a word that is looked for.
        closed: gets the path if something in it cannot be read.
        depth: of archives.
    """
    start = bytes(file.read(16))
    file.seek(0)
    is_local = system is None or isinstance(system, fs.LocalFileSystem)
    with _noted(path, closed, is_local):
        if start.startswith(b"PAR1"):
            for batch in pq.ParquetFile(file).iter_batches(_ROWS):
                yield from _columns(pl.DataFrame(pl.from_arrow(batch)))
        elif start.startswith(b"Obj\x01") and system:
            source: AvroFile[Any] = AvroFile(PyArrowFile(path, path, system))
            with source as records:
                yield pl.Series([repr(record) for record in records], dtype=pl.String)
        elif start.startswith((_ZIP, _GZIP)):
            texts = _archive(file, start.startswith(_ZIP), path, longest, closed, depth)
            yield from texts if depth else _capped(texts)
        elif start.startswith(b"SQLite format 3") and system and is_local:
            yield from _sqlite(path)
        elif start.startswith(_NEVER):
            closed.add(path)
        elif path.endswith(_BY_NAME) and system:
            with system.open_input_stream(path) as stream:
                yield from _capped(_raw(stream, longest, path.rpartition(".")[0].endswith(_PLAIN)))


@contextmanager
def _noted(path: str, closed: set[str], is_local: bool = True) -> Iterator[None]:
    """Note what cannot be read, and go on; of a store's own fault, such as a line that was cut, nothing is known."""
    faults = (*_DAMAGED, OSError) if is_local else _DAMAGED
    try:
        yield
    except faults:
        closed.add(path)


def _archive(
    file: Any, is_zip: bool, path: str, longest: int, closed: set[str], depth: int
) -> Iterator[pl.Series]:  # fmt: skip
    if depth == _DEEP:
        raise ValueError("archives in archives in archives")
    if not is_zip:
        with gzip.open(file) as inner:
            yield from _member(inner, path.removesuffix(".gz"), path, longest, closed, depth)  # type: ignore[arg-type]
        return
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            with _noted(path, closed), archive.open(info) as inner:
                yield from _member(inner, info.filename, path, longest, closed, depth)


def _member(
    inner: IO[bytes], name: str, path: str, longest: int, closed: set[str], depth: int
) -> Iterator[pl.Series]:  # fmt: skip
    block = inner.read(_BLOCK)
    if block.startswith((b"PAR1", _ZIP, _GZIP)):
        block += inner.read(_HELD)
        if len(block) > _HELD:
            raise ValueError("too large to be held")
        yield from _unpacked(io.BytesIO(block), path, None, longest, closed, depth + 1)
    yield from _raw(inner, longest, name.endswith(_PLAIN), block)


def _capped(texts: Iterator[pl.Series]) -> Iterator[pl.Series]:
    left = _UNPACKED
    for each in texts:
        if (left := left - int(each.str.len_bytes().sum())) < 0:
            raise ValueError("unpacks into too much")
        yield each


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
