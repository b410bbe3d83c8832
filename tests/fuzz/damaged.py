"""Files of each format with bytes flipped, cut, doubled, swapped or spliced with those of another file."""

import csv
import io
import json
import random
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.collect import importers
from pipeline.errors import BadInput

SUFFIXES = {".csv": 20_000, ".tsv": 8_000, ".txt": 4_000, ".jsonl": 20_000, ".json": 10_000, ".parquet": 15_000,
            ".xlsx": 10_000, ".db": 15_000}  # fmt: skip
"""Formats with their share of a million inputs."""

ROWS: list[dict[str, Any]] = [
    {"text": f'第{n}条, "comment"\nof two lines' if n % 3 == 0 else f"nice hat {n}", "comment_id": f"c{n}", "thread_id": f"t{n % 2}",
     "like_count": n, "created_at": 1763524800 + n, "user": f"u{n}", "parent_id": f"c{n - 1}" if n % 2 else None}
    for n in range(12)
]  # fmt: skip


@cache
def seeds(suffix: str) -> list[bytes]:
    """Valid files of a format: a long and a short one, and where a format has variants, these."""
    return [data for rows in (ROWS, ROWS[:2]) for data in _files(suffix, rows)]


def _files(suffix: str, rows: list[dict[str, Any]]) -> list[bytes]:
    if suffix in (".csv", ".tsv"):
        return [
            _table(rows, "\t" if suffix == ".tsv" else ",", quoting) for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        ]
    if suffix == ".txt":
        return ["\n".join(row["text"] for row in rows).encode()]
    if suffix == ".jsonl":
        return ["\n".join(json.dumps(row, ensure_ascii=ascii_) for row in rows).encode() for ascii_ in (False, True)]
    if suffix == ".json":
        return [json.dumps(rows, indent=indent).encode() for indent in (None, 1)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"seed{suffix}"
        return [_binary(suffix, rows, path, variant) for variant in range(2)]


def _table(rows: list[dict[str, Any]], separator: str, quoting: Any) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, [*rows[0]], delimiter=separator, quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def _binary(suffix: str, rows: list[dict[str, Any]], path: Path, variant: int) -> bytes:
    import polars as pl

    frame = pl.DataFrame(rows)
    path.unlink(missing_ok=True)
    if suffix == ".parquet":
        if variant:
            frame = frame.with_columns(pl.col("text").cast(pl.Categorical), more=pl.lit([["a"], []]))
        frame.write_parquet(path, compression="uncompressed" if variant else "zstd")
    elif suffix == ".xlsx":
        frame.write_excel(path, worksheet="b" if variant else "a")
    else:
        with closing(sqlite3.connect(path)) as con:
            con.execute("pragma page_size = 512")
            names = ", ".join(rows[0])
            con.execute(f"create table t ({names}{', primary key (comment_id)) without rowid' if variant else ')'}")
            con.executemany(
                f"insert into t values ({', '.join('?' * len(rows[0]))})", [[*row.values()] for row in rows]
            )
            con.commit()
    return path.read_bytes()


def damage(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """The bytes of a file with one to four things done to them."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        start, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
        if rng.random() < 0.7:
            end = min(end, start + rng.choice([1, 2, 4, 16, 100]))
        part = data[start:end]
        kind = rng.randrange(7)
        if kind == 0 and part:  # one bit
            data = data[:start] + bytes([data[start] ^ 1 << rng.randrange(8)]) + data[start + 1 :]
        elif kind == 1:  # other bytes
            data = data[:start] + rng.randbytes(len(part)) + data[end:]
        elif kind == 2:  # cut out, or off
            data = data[:start] + (data[end:] if rng.random() < 0.7 else b"")
        elif kind == 3:  # doubled, or many times
            data = data[:end] + part[:1_000] * rng.choice([1, 1, 3, 50]) + data[end:]
        elif kind == 4:  # swapped with what follows
            width = len(part)
            data = data[:start] + data[end : end + width] + part + data[end + width :]
        elif kind == 5:  # spliced with another file
            cut = rng.randrange(len(other) + 1)
            data = data[:start] + other[cut : cut + max(1, len(part))] + data[end:]
        else:
            number = rng.choice(
                [b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\x80", b'"', b"\n", b"\r", b"\0"]
            )
            data = data[:start] + number + data[start + len(number) :]
    return data


def _damage_part(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A workbook with damage to one of its parts: the archive stays sound, so that the reader gets further."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as book, zipfile.ZipFile(out, "w") as changed:
        chosen = rng.choice([name for name in book.namelist() if name.startswith("xl/")])
        for name in book.namelist():
            part = book.read(name)
            changed.writestr(name, damage(rng, part, other) if name == chosen else part)
    return out.getvalue()


def target(suffix: str, check: Callable[[Any, str], object], rng: random.Random, folder: Path) -> None:
    """What reads a damaged file of a format: rows, or BadInput that names the file."""
    path, every = folder / f"damaged{suffix}", seeds(suffix)
    is_inside = suffix == ".xlsx" and rng.random() < 0.7
    path.write_bytes((_damage_part if is_inside else damage)(rng, rng.choice(every), rng.choice(every)))
    try:
        for batch in importers.read(path, None, {}, b"0123456789abcdef"):
            check(batch.page, batch.source)
    except BadInput as error:
        if path.name not in str(error):
            raise AssertionError(f"the error does not name the file: {error}") from error
        raise
