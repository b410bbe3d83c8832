"""Rows of a file as dictionaries, in chunks, whatever its format; memory does not grow with the file.

csv, tsv, txt, jsonl, json (a list), parquet, xlsx and SQLite. What cannot be read is BadInput with file and line.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import BadInput
from pipeline.explanations import is_undecodable
from pipeline.io.formats import databases, parquet, separated, sheets
from pipeline.io.formats.chunk import CHUNK, BadRow, Chunk, Row, Source, chunk_rows
from pipeline.io.lines import UTF8, parse_flat, parse_object, read_json_items, read_lines
from pipeline.io.spreadsheets import restore_texts
from pipeline.reasons import find_fault

__all__ = ["CHUNK", "ENDINGS", "Chunk", "Source", "number_rows", "read_chunks", "read_source"]


def read_chunks(path: Path, encoding: str = UTF8, size: int = CHUNK, **options: Any) -> Iterator[Chunk]:
    """The file's rows, at most `size` at a time, fewer where they are large; options are those of a `Source`."""
    yield from read_source(Source(path=path, encoding=encoding, size=size, **options))


def number_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a file with their numbers in it."""
    for chunk in read_chunks(path):
        yield from zip(chunk.numbers, chunk.rows, strict=True)


def read_source(source: Source) -> Iterator[Chunk]:
    """The rows of a source; where it says so, broken rows are dropped and stand beside the others."""
    path = source.path
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    if path.stat().st_size == 0:
        raise BadInput(f"{path}: the file is empty; expected rows")
    if (reader := _READERS.get(path.suffix.lower())) is None:
        kind = path.suffix or "a file without an ending"
        raise BadInput(f"{path}: cannot read {kind}; expected {', '.join(_READERS)}")
    chunks, is_empty = reader(source), True
    if reader in (separated.read, sheets.read):
        source_again = replace(source, skip_bad_rows=True, ignored=[], messages=[])
        chunks = restore_texts(path, lambda is_again: reader(source_again if is_again else source), lambda c: c.rows)
    for chunk in chunks:
        is_empty = False
        yield chunk
    if is_empty:
        raise BadInput(f"{path}: the file holds no rows")


def _chunked(read_rows: Callable[[Source], Iterator[Row | BadRow]]) -> Callable[[Source], Iterator[Chunk]]:
    return lambda source: chunk_rows(source, source.path.stem, read_rows(source))


def _read_text(source: Source) -> Iterator[Row]:
    for number, line in read_lines(source.path, source.encoding, source.limits):
        yield (number, {"text": line.rstrip("\r\n")}, 2 * len(line))


def _read_json_lines(source: Source) -> Iterator[Row | BadRow]:
    number = 0
    for line_number, line in read_lines(source.path, source.encoding, source.limits):
        if line.isspace():
            continue
        number += 1
        text = line.rstrip("\r\n")
        if (values := parse_flat(text)) is None:
            try:
                values = parse_object(text, source.path, line_number)
            except BadInput as why:
                yield source.drop("broken_json", number, str(why))
                continue
        yield number, values, 2 * len(line)


def _read_json_list(source: Source) -> Iterator[Row]:
    for number, (values, length) in enumerate(read_json_items(source.path, source.encoding, source.limits), 1):
        yield (number, values, 2 * length)


_READERS: dict[str, Callable[[Source], Iterator[Chunk]]] = {
    ".csv": separated.read, ".tsv": separated.read, ".txt": _chunked(_read_text),
    ".jsonl": _chunked(_read_json_lines), ".ndjson": _chunked(_read_json_lines), ".json": _chunked(_read_json_list),
    ".parquet": parquet.read, ".xlsx": sheets.read, **dict.fromkeys(databases.ENDINGS, databases.read),
}  # fmt: skip
ENDINGS = tuple(_READERS)


_NOTE = re.compile(r"(?i)(^|[_.-])(notes?|read_?me|licen[cs]e|copying|notice|authors|changelog|citation)([_.-]|$)")
_MOST_LISTED = 20


class Inputs(NamedTuple):
    """Files to read, and what is left out of their folders: a name and why."""

    files: list[Path]
    left_out: list[str]


def list_inputs(folder: Path, *, may_be_empty: bool = False) -> Inputs:
    """The data files of a folder; what lies in folders inside it is not looked at.

    A text file that is named as a note (NOTE.txt, README.txt, license.txt) is data only where nothing else is. A folder
    without data files is BadInput; one that is empty, or holds hidden files alone, may be allowed.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as why:
        raise BadInput(f"{folder}: cannot be read: {why.strerror}") from why
    if undecodable := next((path for path in entries if is_undecodable(path.name)), None):
        raise BadInput(f"{folder}: {undecodable.name!a}: this name is not UTF-8; rename the file or folder")
    reasons = {path: _find_reason(path) for path in entries}
    files = [path for path, reason in reasons.items() if not reason]
    notes = {path for path in files if path.suffix.lower() == ".txt" and _NOTE.search(path.stem)}
    if len(notes) < len(files):
        reasons |= dict.fromkeys(notes, "a note beside the data; import it by its own name if it is data")
        files = [path for path in files if path not in notes]
    left_out = [f"{path.name}: {reason}" for path, reason in reasons.items() if reason]
    has_misplaced = any(reason not in (None, "hidden") for reason in reasons.values())
    if not files and (has_misplaced or not may_be_empty):
        note = f"; left out {'; '.join(left_out[:_MOST_LISTED])}" if left_out else ""
        raise BadInput(f"{folder}: the folder holds no file to import; expected {', '.join(ENDINGS)}{note}")
    return Inputs(files, left_out)


def _find_reason(path: Path) -> str | None:
    faults = {
        "hidden": path.name.startswith("."),
        "a folder; import it by its own name": path.is_dir(),
        "a link to nothing": path.is_symlink() and not path.exists(),
        "no regular file": not path.is_file(),
        "no format that can be read": path.suffix.lower() not in ENDINGS,
    }
    return find_fault(**faults)
