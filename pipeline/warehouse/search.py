"""Search the lake, the catalog, the databases and every folder for words: every file as bytes, packed ones opened."""

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
from pipeline.warehouse.files import get_path, open_store

_BLOCK = 4 << 20  # bytes read at once
_ROWS = 10_000
_DEEP = 3  # archives in archives
_UNPACKED = 4 << 30  # bytes an archive may unpack into: 4 MB can make that much
_HELD = 256 << 20  # bytes of a packed file in an archive, which is read as a whole
_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"
_BY_NAME = (".bz2", ".zst", ".lz4")  # which pyarrow unpacks
_NEVER = (b"7z\xbc\xaf", b"Rar!", b"\xfd7zXZ")  # archives that nothing here unpacks
_BROKEN = (pa.ArrowException, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, struct.error, sqlite3.Error)
_DAMAGED = (*_BROKEN, ValueError, RuntimeError)  # the last from zipfile, for encrypted files and unknown packing
_PLAIN = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson")  # people may write these in another encoding


class Place(NamedTuple):
    """Where a word was found: the table, folder or database, and the file or SQL table in it."""

    store: str
    path: str


def list_spellings(text: str) -> set[str]:
    """A text as it is and as files write it: JSON, JSON in JSON, HTML, XML, csv, and without its blanks."""
    variants = {text, text.replace('"', '""'), "".join(text.split())}
    variants |= {html.escape(text), html.escape(text, quote=False), html.escape(text).replace("&#x27;", "&#39;")}
    for is_ascii in (True, False):
        string = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        variants |= {string, json.dumps(string, ensure_ascii=is_ascii)[1:-1]}
    return variants


def search(words: Collection[str], stores: Container[str] | None = None, closed: set[str] | None = None) -> list[Place]:
    """Search every file of the installation, and every table of its databases, for one of the words.

    The words are given in each spelling that matters (`list_spellings`). All stores are searched by default, but for
    the linguistic resources, which are nobody's words. `closed` gets the paths of files that a person must check:
    encrypted, damaged, packed in an unknown way, or a few bytes that unpack into very many.
    """
    patterns = sorted(words)
    if not patterns:
        return []
    places = []
    for store, system, path in _list_files():
        if stores is None or store in stores:
            file = _File(system, path, max(map(len, patterns)))
            if file.has_word(patterns):
                places.append(Place(store, path))
            elif closed is not None and file.is_closed:
                closed.add(path)
    for store, uri in list_addresses().items():  # a SQLite file is found among the files
        if (stores is None or store in stores) and sa.make_url(uri).get_backend_name() != "sqlite":
            places += [Place(store, table) for table in _find_tables(uri, patterns)]
    return places


def list_folders() -> dict[str, str]:
    """The folders of the installation by name; a folder inside another has a name of its own."""
    names = ("warehouse", "inbox", "models", "reports", "labelling", "releases", "home")
    return {name: str(getattr(settings, name)()) for name in names} | {"scratch": str(settings.scratch(""))}


def list_addresses() -> dict[str, str]:
    """SQLAlchemy addresses of the databases, by name."""
    return {"catalog": settings.catalog_uri(), "spool": settings.spool_uri(), "ledger": settings.llm_ledger()}


def _list_files() -> Iterator[tuple[str, fs.FileSystem, str]]:
    paths: set[str] = set()
    urls = {name: sa.make_url(uri) for name, uri in list_addresses().items()}
    sqlite = {url.database: name for name, url in urls.items() if url.get_backend_name() == "sqlite"}
    roots = {name: f"{get_path(root).rstrip('/')}/" for name, root in list_folders().items()}
    resources = f"{settings.resources()}/"
    for location in [*list_folders().values(), *(f"{path}{end}" for path in sqlite if path for end in ("", "-wal"))]:
        system, root = open_store(location)
        info = system.get_file_info(root)
        is_folder = info.type is fs.FileType.Directory
        for file in system.get_file_info(fs.FileSelector(root, recursive=True)) if is_folder else [info]:
            if file.type is fs.FileType.File and file.path not in paths and not file.path.startswith(resources):
                paths.add(file.path)
                yield _store_of(file.path, sqlite, roots), system, file.path


def _store_of(path: str, sqlite: Mapping[str | None, str], roots: Mapping[str, str]) -> str:
    for end in ("", "-wal", "-shm", "-journal"):
        if (name := sqlite.get(path.removesuffix(end))) is not None:
            return name
    inside = [name for name, root in roots.items() if path.startswith(root)]
    name = max(inside, key=lambda name: len(roots[name]), default="elsewhere")
    if name != "warehouse":
        return name
    parts = path.removeprefix(roots[name]).split("/")
    return "scratch" if parts[0] == "_scratch" else parts[1] if len(parts) > 2 else name


class _File:
    def __init__(self, system: fs.FileSystem, path: str, longest: int) -> None:
        self.system, self.path, self.longest = system, path, longest
        self.is_local = isinstance(system, fs.LocalFileSystem)
        self.is_closed = False  # something in it cannot be read

    def has_word(self, words: list[str]) -> bool:
        """Test if the file has one of the words; one that is gone has none."""
        try:
            with self.system.open_input_file(self.path) as file:
                if any(_has_word(texts, words) for texts in self._unpack(file)):
                    return True
            with self.system.open_input_stream(self.path, compression=None) as stream:
                return any(_has_word(texts, words) for texts in self._read_blocks(stream, self.path))
        except OSError:  # a store has other words for an object that went while it was read
            if self.system.get_file_info(self.path).type is fs.FileType.NotFound:
                return False
            raise

    def _read_blocks(self, stream: Any, name: str, block: bytes = b"") -> Iterator[pl.Series]:
        before = b""
        while block := block or bytes(stream.read(_BLOCK)):
            for encoding in ("utf-8", "gb18030") if name.endswith(_PLAIN) else ("utf-8",):
                yield pl.Series([(before + block).decode(encoding, errors="replace")])
            before, block = (before + block)[-4 * self.longest :], b""

    def _unpack(self, file: Any, depth: int = 0) -> Iterator[pl.Series]:
        """Read the texts in a packed file; of what is damaged or of another kind only the bytes are searched."""
        start = bytes(file.read(16))
        file.seek(0)
        with self._note_damage(is_local=self.is_local or depth > 0):
            if start.startswith(b"PAR1"):
                for batch in pq.ParquetFile(file).iter_batches(_ROWS):
                    yield from _read_columns(pl.DataFrame(pl.from_arrow(batch)))
            elif start.startswith((_ZIP, _GZIP)):
                texts = self._read_members(file, start.startswith(_ZIP), depth)
                yield from texts if depth else _limit(texts)
            elif start.startswith(_NEVER):
                self.is_closed = True
            elif depth == 0:
                yield from self._read_file(start)

    def _read_file(self, start: bytes) -> Iterator[pl.Series]:
        if start.startswith(b"Obj\x01"):
            source: AvroFile[Any] = AvroFile(PyArrowFile(self.path, self.path, self.system))
            with source as records:
                yield pl.Series([repr(record) for record in records], dtype=pl.String)
        elif start.startswith(b"SQLite format 3") and self.is_local:
            with closing(sqlite3.connect(f"{Path(self.path).resolve().as_uri()}?mode=ro", uri=True)) as con:
                names = [name for (name,) in con.execute("select name from sqlite_master where type = 'table'")]
                for name in names:  # row by row: in the bytes of the file a long text is in pieces
                    yield from _read_rows(con.execute('select * from "' + name.replace('"', '""') + '"'))  # noqa: S608
        elif self.path.endswith(_BY_NAME):
            with self.system.open_input_stream(self.path) as stream:
                yield from _limit(self._read_blocks(stream, self.path.rpartition(".")[0]))

    @contextmanager
    def _note_damage(self, *, is_local: bool = True) -> Iterator[None]:
        """Note what cannot be read, and go on; a store's own fault, such as a line that was cut, says nothing of it."""
        faults = (*_DAMAGED, OSError) if is_local else _DAMAGED
        try:
            yield
        except faults:
            self.is_closed = True

    def _read_members(self, file: Any, is_zip: bool, depth: int) -> Iterator[pl.Series]:
        if depth == _DEEP:
            raise ValueError("archives in archives in archives")
        if not is_zip:
            with gzip.open(file) as inner:
                yield from self._read_member(inner, self.path.removesuffix(".gz"), depth)  # type: ignore[arg-type]
            return
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                with self._note_damage(), archive.open(info) as inner:
                    yield from self._read_member(inner, info.filename, depth)

    def _read_member(self, inner: IO[bytes], name: str, depth: int) -> Iterator[pl.Series]:
        block = inner.read(_BLOCK)
        if block.startswith((b"PAR1", _ZIP, _GZIP)):
            block += inner.read(_HELD)
            if len(block) > _HELD:
                raise ValueError("too large to be held")
            yield from self._unpack(io.BytesIO(block), depth + 1)
        yield from self._read_blocks(inner, name, block)


def _has_word(texts: pl.Series, words: list[str]) -> bool:
    return bool(texts.drop_nulls().str.contains_any(words).any())


def _limit(texts: Iterator[pl.Series]) -> Iterator[pl.Series]:
    remaining = _UNPACKED
    for part in texts:
        remaining -= int(part.str.len_bytes().sum())
        if remaining < 0:
            raise ValueError("unpacks into too much")
        yield part


def _read_columns(frame: pl.DataFrame) -> Iterator[pl.Series]:
    for column in frame:
        if column.dtype == pl.List(pl.String):  # words of a text are the text
            yield column.list.join(" ")
            yield column.list.join("")
        while column.dtype.is_nested() and not isinstance(column.dtype, pl.Struct):
            column = column.explode()  # noqa: PLW2901
        if isinstance(column.dtype, pl.Struct):
            yield from _read_columns(column.struct.unnest())
        elif column.dtype == pl.Binary:
            yield _decode(column.drop_nulls())
        elif column.dtype == pl.String:
            yield column


def _decode(values: Iterable[Any]) -> pl.Series:
    texts = [value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value for value in values]
    return pl.Series([text for text in texts if isinstance(text, str)], dtype=pl.String)


def _read_rows(rows: Iterable[Any]) -> Iterator[pl.Series]:
    values: list[Any] = []
    for row in rows:
        values += row
        if len(values) > _ROWS:
            yield _decode(values)
            values = []
    yield _decode(values)


def _find_tables(uri: str, words: list[str]) -> list[str]:
    engine = sa.create_engine(uri)
    metadata = sa.MetaData()
    metadata.reflect(engine)
    with closing(engine.connect().execution_options(stream_results=True)) as con:
        rows = ((table.name, _read_rows(con.execute(sa.select(table)))) for table in metadata.sorted_tables)
        tables = [name for name, texts in rows if any(_has_word(part, words) for part in texts)]
    engine.dispose()
    return tables
