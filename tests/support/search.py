"""Looking for secrets in all that an installation leaves behind: files, what is packed inside them, and databases.

    places = find({"llm": "s3cr3t…"}, [home, airflow_home], ["postgresql+psycopg2://…", "sqlite:////…/airflow.db"])

A place names the secret, the form it was found in and where, and never the secret. Parquet is looked into as decoded
values and as its metadata, Avro (Iceberg's manifests) record by record, zip and gzip unpacked.
"""

import base64
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow.parquet as pq
import sqlalchemy as sa
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO

LEAST = 12  # characters of a secret, and so of its forms: shorter ones stand somewhere by chance


class Place(NamedTuple):
    """Where which secret was found, and how it was written there."""

    secret: str
    form: str
    location: str


def list_forms(secret: str) -> dict[str, bytes]:
    """How a secret may be written, by name; of base64 for each of the three places that a byte may have."""
    if len(secret) < LEAST:
        raise ValueError(f"a canary should have at least {LEAST} characters")
    raw = secret.encode()
    forms = {
        "plain": raw, "JSON": json.dumps(secret)[1:-1].encode(), "percent-encoded": quote(secret, safe="").encode(),
        "percent-encoded path": quote(secret).encode(), "hexadecimal": raw.hex().encode(),
        "HEXADECIMAL": raw.hex().upper().encode(), "reversed": raw[::-1], "UTF-16": secret.encode("utf-16-le"),
    }  # fmt: skip
    for before in range(3):
        first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        for name, encode in (("base64", base64.b64encode), ("URL-safe base64", base64.urlsafe_b64encode)):
            forms[f"{name} {before}"] = encode(bytes(before) + raw)[first:last]
    return forms


def find(
    needles: Mapping[str, str],
    folders: Iterable[Path],
    databases: Iterable[str] = (),
    texts: Mapping[str, str] | None = None,
) -> list[Place]:
    """All places where a secret (`needles`, by name) stands, in the order they were found, each once.

    Folders are searched with all below them; of databases (SQLAlchemy addresses) every column of every table of every
    schema; `texts` were caught elsewhere, such as output, by name.
    """
    forms = [(name, form, text) for name, secret in needles.items() for form, text in list_forms(secret).items()]
    places: dict[Place, None] = {}
    for location, data in _read_all(folders, databases, texts or {}):
        places |= {Place(name, form, location): None for name, form, text in forms if text in data}
    return list(places)


Content = Iterator[tuple[str, bytes]]


def _read_all(folders: Iterable[Path], databases: Iterable[str], texts: Mapping[str, str]) -> Content:
    for name, text in texts.items():
        yield name, text.encode("utf-8", "surrogatepass")
    for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
        yield f"name of {path}", path.name.encode("utf-8", "surrogateescape")
        if path.is_file() and not path.is_symlink():
            yield from _unpack(str(path), path.read_bytes())
    for number, address in enumerate(databases):
        yield from _read_rows(f"database {number}", address)


def _unpack(location: str, data: bytes) -> Content:
    """A file's bytes, and what they hold once they are decoded."""
    yield location, data
    if data[:4] == b"PAR1":
        yield from _read_parquet(location, data)
    elif data[:4] == b"Obj\x01":
        file: AvroFile[Any] = AvroFile(PyArrowFileIO().new_input(location))
        with file as records:
            for record in records:
                yield f"{location}, a record", repr(record).encode("utf-8", "replace")
    elif data[:2] == b"\x1f\x8b":
        yield from _unpack(f"{location}, unpacked", gzip.decompress(data))
    elif data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield from _unpack(f"{location}, {name}", archive.read(name))


def _read_parquet(location: str, data: bytes) -> Content:
    file = pq.ParquetFile(io.BytesIO(data))
    metadata = f"{file.metadata.metadata} {file.schema_arrow} {file.metadata.to_dict()}"
    yield f"{location}, metadata", metadata.encode()
    for batch in file.iter_batches():
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            yield f"{location}, column {name}", "\n".join(map(str, column.to_pylist())).encode("utf-8", "replace")


def _read_rows(location: str, address: str) -> Content:
    engine = sa.create_engine(address)
    with closing(engine.connect().execution_options(stream_results=True)) as connection:
        database = sa.inspect(connection)
        for schema in {*database.get_schema_names()} - {"information_schema", "pg_catalog"}:
            for name in [*database.get_table_names(schema), *database.get_view_names(schema)]:
                table = sa.table(name, schema=schema)
                for row in connection.execute(sa.select(sa.text("*")).select_from(table)):
                    for column, value in row._mapping.items():
                        yield from _read_cell(f"{location}, {name}.{column}", value)
    engine.dispose()


def _read_cell(location: str, value: Any) -> Content:
    is_binary = isinstance(value, bytes | memoryview)
    data = bytes(value) if is_binary else str(value).encode("utf-8", "replace")
    yield location, data
    if data[:1] == b"\x78":  # zlib, as serialised DAGs may be packed
        with suppress(zlib.error):
            yield f"{location}, unpacked", zlib.decompress(data)
