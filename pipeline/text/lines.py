"""Lines of the files that people give, numbered, and the JSON objects in them; what cannot be read is named."""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.errors import BadInput

UTF8 = "utf-8-sig"  # with or without the mark that Excel writes first

_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def lines(path: Path, encoding: str = UTF8) -> Iterator[tuple[int, str]]:
    """Numbered lines with their ends, a line feed, a carriage return or both: U+2028 inside a comment ends none.

    Raises:
        BadInput: there is no such file or encoding, the file cannot be read, or a byte cannot be decoded.
    """
    try:
        codecs.lookup(encoding)
    except LookupError as why:
        raise BadInput(f"{path}: there is no encoding {encoding!r}; say utf-8, gb18030, …") from why
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    try:
        with path.open(encoding=encoding, newline="") as file:
            yield from enumerate(file, 1)
    except OSError as why:
        raise BadInput(f"{path}: cannot be read: {why.strerror}") from why
    except UnicodeDecodeError as why:
        name = "UTF-8" if encoding == UTF8 else encoding
        raise BadInput(
            f"{path}, line {_undecodable(path, encoding)}: byte {why.object[why.start]:#04x} is not {name}; save the "
            f"file as UTF-8 (`undertone import` also takes --encoding gb18030, …)"
        ) from why


def _undecodable(path: Path, encoding: str) -> int:
    """The line with the first byte that cannot be decoded: the file was decoded a block at a time, not a line."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                decoder.decode(line)
            except UnicodeDecodeError:
                return number
    return number  # cut off inside a letter


def json_lines(path: Path, encoding: str = UTF8) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbers and objects of the lines of a JSON Lines file; empty lines are passed over."""
    for number, line in lines(path, encoding):
        if line.strip():
            yield number, json_object(line.rstrip("\r\n"), path, number)


def json_object(text: str, path: Path, line: int = 1) -> dict[str, Any]:
    """The JSON object in a text that begins at a line of a file."""
    value = json_value(text, path, line)
    if not isinstance(value, dict):
        raise BadInput(f"{path}, line {line}: expected a JSON object, found {text.strip():.60}")
    return value


def json_value(text: str, path: Path, line: int = 1) -> Any:
    """The JSON value; half an emoji (a lone surrogate, where a crawler cut a text) becomes U+FFFD."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as why:
        where = f"{path}, line {line + why.lineno - 1}"
        raise BadInput(f"{where}: broken JSON at character {why.colno}: {why.msg}") from why
    except RecursionError as why:
        raise BadInput(f"{path}, line {line}: JSON nested too deeply") from why
    if _HALF_PAIR.search(text):
        plain = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        value = json.loads(plain)
    return value
