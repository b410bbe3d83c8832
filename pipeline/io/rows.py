"""Rows of a file as dictionaries, in chunks, whatever its format; memory does not grow with the file.

csv, tsv, txt, jsonl, json (a list), parquet, xlsx and SQLite. What cannot be read is BadInput with file and line.
"""

from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import BadInput
from pipeline.io.formats import databases, objects, parquet, separated, sheets
from pipeline.io.formats.chunk import CHUNK, Chunk, Row, Source, chunk_rows
from pipeline.io.lines import LIMITS, UTF8, Limits, read_lines

__all__ = ["CHUNK", "ENDINGS", "Chunk", "Source", "read_chunks", "read_source"]


def read_chunks(path: Path, encoding: str = UTF8, size: int = CHUNK, limits: Limits = LIMITS) -> Iterator[Chunk]:
    """The file's rows, `size` at a time; the first row that is broken is BadInput.

    Args:
        path: the file.
        encoding: of a text file.
        size: most rows of a chunk; fewer where they are large.
        limits: how much of the file may be in memory at once.
    """
    yield from read_source(Source(path=path, encoding=encoding, size=size, limits=limits))


def read_source(source: Source) -> Iterator[Chunk]:
    """The rows of a source; where it says so, broken rows are dropped and stand beside the others."""
    path = source.path
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    if path.stat().st_size == 0:
        raise BadInput(f"{path}: the file is empty; expected rows")
    if (reader := _READERS.get(path.suffix.lower())) is None:
        raise BadInput(
            f"{path}: cannot read {path.suffix or 'a file without an ending'}; expected {', '.join(_READERS)}"
        )
    is_empty = True
    for chunk in reader(source):
        is_empty = False
        yield chunk
    if is_empty:
        raise BadInput(f"{path}: the file holds no rows")


def _read_text(source: Source) -> Iterator[Chunk]:
    rows = (
        Row(number, {"text": line.rstrip("\r\n")}, 2 * len(line))
        for number, line in read_lines(source.path, source.encoding, source.limits)
    )
    yield from chunk_rows(source, source.path.stem, rows)


_READERS = {
    ".csv": separated.read, ".tsv": separated.read, ".txt": _read_text, ".jsonl": objects.read_objects,
    ".ndjson": objects.read_objects, ".json": objects.read_list, ".parquet": parquet.read, ".xlsx": sheets.read,
    **dict.fromkeys(databases.ENDINGS, databases.read),
}  # fmt: skip
ENDINGS = tuple(_READERS)
