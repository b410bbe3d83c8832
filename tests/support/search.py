"""Looking for secrets in all that an installation leaves behind: files, what is packed inside them, and databases.

    places = find({"llm": "s3cr3t…"}, [home, airflow_home], ["postgresql+psycopg2://…", "sqlite:////…/airflow.db"])

A place names the secret, the form it was found in and where, and never the secret. Parquet is looked into as decoded
values and as its metadata, Avro (Iceberg's manifests) block by block, zip and gzip unpacked.
"""

import base64
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import sqlalchemy as sa

LEAST = 12  # characters of a secret, and so of its forms: shorter ones stand somewhere by chance


class Place(NamedTuple):
    """Where which secret was found, and how it was written there."""

    secret: str
    form: str
    where: str


def forms(secret: str) -> dict[str, bytes]:
    """How a secret may be written, by name; of base64 for each of the three places that a byte may have."""
    if len(secret) < LEAST:
        raise ValueError(f"a canary should have at least {LEAST} characters")
    raw = secret.encode()
    found = {
        "plain": raw, "JSON": json.dumps(secret)[1:-1].encode(), "percent-encoded": quote(secret, safe="").encode(),
        "percent-encoded path": quote(secret).encode(), "hexadecimal": raw.hex().encode(),
        "HEXADECIMAL": raw.hex().upper().encode(),
        "reversed": raw[::-1], "UTF-16": secret.encode("utf-16-le"),
    }  # fmt: skip
    for before in range(3):
        first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        for name, encode in (("base64", base64.b64encode), ("URL-safe base64", base64.urlsafe_b64encode)):
            found[f"{name} {before}"] = encode(bytes(before) + raw)[first:last]
    return found


def find(
    needles: Mapping[str, str],
    folders: Iterable[Path],
    databases: Iterable[str] = (),
    texts: Mapping[str, str] | None = None,
) -> list[Place]:
    """All places where a secret stands.

    Args:
        needles: the secrets, by a name of which a place tells.
        folders: looked through with all below them.
        databases: SQLAlchemy addresses; every column of every table of every schema is read.
        texts: what was caught elsewhere, such as output, by name.

    Returns:
        Places in the order they were found, each once; none is what one hopes for.
    """
    wanted = [(name, form, told) for name, secret in needles.items() for form, told in forms(secret).items()]
    found: dict[Place, None] = {}
    for where, data in _everything(folders, databases, texts or {}):
        for name, form, told in wanted:
            if told in data:
                found[Place(name, form, where)] = None
    return list(found)


def _everything(
    folders: Iterable[Path], databases: Iterable[str], texts: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    for name, text in texts.items():
        yield name, text.encode("utf-8", "surrogatepass")
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            yield f"name of {path}", path.name.encode("utf-8", "surrogateescape")
            if path.is_file() and not path.is_symlink():
                yield from _unpacked(str(path), path.read_bytes())
    for number, address in enumerate(databases):
        yield from _rows(f"database {number}", address)


def _unpacked(where: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """A file's bytes, and what they hold once they are decoded."""
    yield where, data
    if data[:4] == b"PAR1":
        yield from _parquet(where, data)
    elif data[:4] == b"Obj\x01":
        for block in _avro(data):
            yield f"{where}, a block", block
    elif data[:2] == b"\x1f\x8b":
        yield from _unpacked(f"{where}, unpacked", gzip.decompress(data))
    elif data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield from _unpacked(f"{where}, {name}", archive.read(name))


def _parquet(where: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(data))
    yield f"{where}, metadata", f"{file.metadata.metadata} {file.schema_arrow} {file.metadata.to_dict()}".encode()
    for batch in file.iter_batches():
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            yield f"{where}, column {name}", "\n".join(map(str, column.to_pylist())).encode("utf-8", "replace")


def _avro(data: bytes) -> Iterator[bytes]:
    """The blocks of an Avro file: after the header's map and a mark, each a count, a size, and so many bytes."""
    at, end = 4, len(data)
    packed = b"deflate" in data[:10_000]
    while count := _long(data, at)[0]:
        at = _long(data, at)[1]
        for _ in range(2 * abs(count)):
            size, at = _long(data, at)
            at += size
    at = _long(data, at)[1] + 16
    while at < end:
        _, at = _long(data, at)
        size, at = _long(data, at)
        block = data[at : at + size]
        yield zlib.decompress(block, -15) if packed else block
        at += size + 16


def _long(data: bytes, at: int) -> tuple[int, int]:
    """A number of Avro, and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at


def _rows(where: str, address: str) -> Iterator[tuple[str, bytes]]:
    engine = sa.create_engine(address)
    try:
        with engine.connect() as con:
            looked = sa.inspect(con)
            for schema in looked.get_schema_names():
                if schema in ("information_schema", "pg_catalog"):
                    continue
                for name in [*looked.get_table_names(schema), *looked.get_view_names(schema)]:
                    table = sa.table(name, schema=schema)
                    for row in con.execution_options(stream_results=True).execute(
                        sa.select(sa.text("*")).select_from(table)
                    ):
                        for column, value in row._mapping.items():
                            if value is not None:
                                told = (
                                    bytes(value)
                                    if isinstance(value, bytes | memoryview)
                                    else str(value).encode("utf-8", "replace")
                                )
                                yield from _of_cell(f"{where}, {name}.{column}", told)
    finally:
        engine.dispose()


def _of_cell(where: str, told: bytes) -> Iterator[tuple[str, bytes]]:
    yield where, told
    if told[:1] == b"\x78":  # zlib, as serialised DAGs may be packed
        try:
            yield f"{where}, unpacked", zlib.decompress(told)
        except zlib.error:
            return
