"""Lines of the files that people give, numbered, and the JSON objects in them; what cannot be read is named.

How large a file may be is limited, since a small one can unpack into what takes a machine down.
"""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import BadInput

UTF8 = "utf-8-sig"  # with or without the mark that Excel writes first
DEEPEST = 100  # lists and objects inside each other; the sites' pages have a dozen

_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_NO_FILES = {"utf-7", "unicode-escape", "raw-unicode-escape", "punycode", "idna", "undefined"}  # can give half an emoji


class Limits(NamedTuple):
    """How much is read at once. `undertone import` and the DAG take theirs from the environment."""

    whole: int = 1 << 30  # bytes of a file that is read as one (json, xlsx), unpacked (UNDERTONE_IMPORT_BYTES)
    line: int = 1 << 24  # characters of a line or a cell (UNDERTONE_IMPORT_CHARACTERS)


LIMITS = Limits()


def lines(path: Path, encoding: str = UTF8, limits: Limits = LIMITS) -> Iterator[tuple[int, str]]:
    """Numbered lines with their ends, a line feed, a carriage return or both: U+2028 inside a comment ends none.

    Raises:
        BadInput: there is no such file or encoding, the file cannot be read, a byte cannot be decoded, or a line is
            longer than the limit.
    """
    yield from _read(path, encoding, limits.line)


def whole(path: Path, encoding: str = UTF8, limits: Limits = LIMITS) -> str:
    """The text of a file that only makes sense as one; errors as of `lines`, and a file larger than the limit."""
    if path.is_file():
        small_enough(path, path.stat().st_size, limits)
    return "".join(line for _, line in _read(path, encoding, limits.whole))


def small_enough(path: Path, size: int, limits: Limits, what: str = "") -> None:
    """BadInput for a file of which more than the limit would be in memory at once."""
    if size > limits.whole:
        raise BadInput(
            f"{path}: {what}{size:,} bytes, more than the {limits.whole:,} that are read at once; cut the file, or set "
            f"UNDERTONE_IMPORT_BYTES={size} for `undertone import`"
        )


def _read(path: Path, encoding: str, longest: int) -> Iterator[tuple[int, str]]:
    unknown = f"{path}: there is no encoding {encoding!r}; say utf-8, gb18030, …"
    try:
        if codecs.lookup(encoding).name in _NO_FILES:
            raise BadInput(unknown)
    except (LookupError, ValueError) as why:
        raise BadInput(unknown) from why
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file")
    number = 0
    try:
        with path.open(encoding=encoding, newline="") as file:
            while line := file.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    raise BadInput(
                        f"{path}, line {number}: longer than {longest:,} characters; is it one row a line? "
                        "`undertone import` takes longer ones with UNDERTONE_IMPORT_CHARACTERS"
                    )
                yield number, line
    except OSError as why:
        raise BadInput(f"{path}: cannot be read: {why.strerror}") from why
    except LookupError as why:  # a codec that is not for text, such as hex
        raise BadInput(unknown) from why
    except UnicodeDecodeError as why:
        name = "UTF-8" if encoding == UTF8 else encoding
        raise BadInput(
            f"{path}, line {_undecodable(path, encoding)}: byte {why.object[why.start]:#04x} is not {name}; save the "
            f"file as UTF-8 (`undertone import` also takes --encoding gb18030, …)"
        ) from why
    except UnicodeError as why:  # such as UTF-16 without its mark
        raise BadInput(f"{path}: is not {encoding}: {why}") from why


def _undecodable(path: Path, encoding: str) -> int:
    """The line with the first byte that cannot be decoded: the file was decoded a block at a time, not a line."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                decoder.decode(line)
            except UnicodeError:
                return number
    return number  # cut off inside a letter


def json_lines(path: Path, encoding: str = UTF8, limits: Limits = LIMITS) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbers and objects of the lines of a JSON Lines file; empty lines are passed over."""
    for number, line in lines(path, encoding, limits):
        if line.strip():
            yield number, json_object(line.rstrip("\r\n"), path, number)


def json_object(text: str, path: Path, line: int = 1) -> dict[str, Any]:
    """The JSON object in a text that begins at a line of a file."""
    value = json_value(text, path, line)
    if not isinstance(value, dict):
        raise BadInput(f"{path}, line {line}: expected a JSON object, found {text.strip():.60}")
    return value


def json_value(text: str, path: Path, line: int = 1) -> Any:
    """The JSON value of a text that begins at a line of a file; what is wrong with it is BadInput."""
    try:
        return parsed(text)
    except json.JSONDecodeError as why:
        where = f"{path}, line {line + why.lineno - 1}"
        raise BadInput(f"{where}: broken JSON at character {why.colno}: {why.msg}") from why
    except ValueError as why:
        raise BadInput(f"{path}, line {line}: {why}") from why


def parsed(text: str) -> Any:
    """The JSON value; half an emoji (a lone surrogate, where a crawler cut a text) becomes U+FFFD.

    Raises:
        ValueError: broken JSON, a number of too many digits, a field that an object has twice, or lists and objects
            that are nested deeper than `DEEPEST`.
    """
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except RecursionError as why:
        raise ValueError("JSON nested too deeply") from why
    if text.count("[") + text.count("{") > DEEPEST:
        _refuse_depth(value)
    if _HALF_PAIR.search(text):
        plain = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        value = json.loads(plain)
    return value


def _once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(fields)
    if len(found) < len(fields):  # Python would keep the last and lose the other
        names = [name for name, _ in fields]
        raise ValueError(f"field {next(n for n in names if names.count(n) > 1)!r:.60} is there twice in one object")
    return found


def _refuse_depth(value: Any) -> None:
    """What goes down into a value calls itself, which Python stops at some depth."""
    level = [value]
    for _ in range(DEEPEST + 1):
        held = [node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list)]
        if not (level := [child for children in held for child in children if isinstance(child, dict | list)]):
            return
    raise ValueError(f"JSON nested deeper than {DEEPEST} lists and objects")
