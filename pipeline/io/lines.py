"""Lines of the files that people give, numbered, and the JSON objects in them; what cannot be read is named.

How large a file may be is limited, since a small one can unpack into what takes a machine down.
"""

import codecs
import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from pipeline.errors import BadInput

UTF8 = "utf-8-sig"  # with or without the mark that Excel writes first
MAX_DEPTH = 100  # lists and objects inside each other; the sites' pages have a dozen
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPES = re.compile(  # of a JSON text: whole pairs and all others, and halves of a pair
    r"(?P<whole>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|\\[^u])"
    r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_SPACED_COLON = re.compile(r'"[ \t\r\n]+:')
_BLANKS = re.compile(r"[ \t\r\n]*")
_BLOCK = 1 << 16  # characters
_OBJECT_BYTES, _LIST_BYTES, _MOST_BYTES = 200, 64, 1 << 30  # of a JSON value in memory
_TOO_DEEP = "JSON nested too deeply"
_NO_FILES = {"utf-7", "unicode-escape", "raw-unicode-escape", "punycode", "idna", "undefined"}  # can give half an emoji


class Limits(NamedTuple):
    """How much is read at once. `undertone import` and the DAG take theirs from the environment."""

    whole: int = 1 << 30  # bytes of a file that is read as one, or of a workbook unpacked (UNDERTONE_IMPORT_BYTES)
    line: int = 1 << 24  # characters of a line or a cell (UNDERTONE_IMPORT_CHARACTERS)


LIMITS = Limits()


def read_lines(path: Path, encoding: str = UTF8, limits: Limits = LIMITS) -> Iterator[tuple[int, str]]:
    """Numbered lines with their ends, a line feed, a carriage return or both: U+2028 inside a comment ends none.

    BadInput names a file or an encoding that does not exist, what cannot be read or decoded, and a line over the limit.
    """
    number, longest = 0, limits.line
    with _open_text(path, encoding) as file:
        while line := file.readline(longest + 1):
            number += 1
            if len(line) > longest:
                advice = "`undertone import` takes longer ones with UNDERTONE_IMPORT_CHARACTERS"
                question = f"longer than {longest:,} characters; is it one row a line?"
                raise BadInput(f"{path}, line {number}: {question} {advice}")
            yield number, line


def read_records(
    path: Path, separator: str, *, is_quoted: bool = True, has_comments: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield where records of csv begin, and their fields; BadInput for broken ones, and another number than the first.

    Empty lines are passed over, and with `has_comments` lines of `#` before the first record.
    """
    line, width = 1, 0
    texts = ("\n" if has_comments and not width and text[0] == "#" else text for _, text in read_lines(path))
    reader = csv.reader(
        texts, delimiter=separator, quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE, strict=True
    )
    try:
        for fields in reader:
            if fields and width not in (0, len(fields)):
                raise BadInput(f"{path}, line {line}: expected {width} fields as in the first row, found {len(fields)}")
            if fields:
                width = len(fields)
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise BadInput(f"{path}, line {line}: {error}") from error


def read_text(path: Path, encoding: str = UTF8, limits: Limits = LIMITS) -> str:
    """The text of a file that only makes sense as one; errors as of `read_lines`, and a file larger than the limit."""
    if path.is_file():
        check_size(path, path.stat().st_size, limits)
    return "".join(line for _, line in read_lines(path, encoding, limits._replace(line=limits.whole)))


def check_size(path: Path, size: int, limits: Limits, prefix: str = "") -> None:
    """BadInput for a file of which more than the limit would be in memory at once."""
    if size > limits.whole:
        advice = f"cut the file, or set UNDERTONE_IMPORT_BYTES={size} for `undertone import`"
        limit = f"more than the {limits.whole:,} that are read at once"
        raise BadInput(f"{path}: {prefix}{size:,} bytes, {limit}; {advice}")


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[IO[str]]:
    try:
        if codecs.lookup(encoding).name in _NO_FILES:
            raise LookupError(encoding)
        if not path.is_file():
            raise BadInput(f"{path}: there is no such file")
        with path.open(encoding=encoding, newline="") as file:
            yield file
    except OSError as why:
        raise BadInput(f"{path}: cannot be read: {why.strerror}") from why
    except UnicodeDecodeError as why:
        place = f"{path}, line {_find_undecodable(path, encoding)}: byte {why.object[why.start]:#04x}"
        advice = "save the file as UTF-8 (`undertone import` also accepts --encoding gb18030, utf-16, cp1252, …)"
        raise BadInput(f"{place} is not {'UTF-8' if encoding == UTF8 else encoding}; {advice}") from why
    except UnicodeError as why:  # such as UTF-16 without its mark
        raise BadInput(f"{path}: is not {encoding}: {why}") from why
    except (LookupError, ValueError) as why:  # none of this name, or one that is not for text, such as hex
        raise BadInput(f"{path}: there is no encoding {encoding!r}; name one such as utf-8, utf-16 or gb18030") from why


def _find_undecodable(path: Path, encoding: str) -> int:
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                decoder.decode(line)
            except UnicodeError:
                return number
    return number  # cut off inside a letter


def read_json_lines(path: Path, expected: str = "") -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbers and objects of the lines of a JSON Lines file; empty lines are passed over.

    BadInput for a file without objects, where it is said what is `expected`.
    """
    is_empty = True
    for number, line in read_lines(path):
        if line.strip():
            is_empty = False
            yield number, parse_object(line.rstrip("\r\n"), path, number)
    if is_empty and expected:
        raise BadInput(f"{path}: the file holds no {expected}")


def read_json_items(path: Path, encoding: str = UTF8, limits: Limits = LIMITS) -> Iterator[tuple[dict[str, Any], int]]:
    """Objects of a file that holds one JSON list, each with its length in characters; one is in memory at a time."""
    yield from _Window(path, encoding, limits).items()


class _Window:
    def __init__(self, path: Path, encoding: str, limits: Limits) -> None:
        self.path, self.encoding, self.longest = path, encoding, limits.line
        self.text, self.position, self.line, self.character = "", 0, 1, 1

    def items(self) -> Iterator[tuple[dict[str, Any], int]]:
        with _open_text(self.path, self.encoding) as self.file:
            if self._skip_blanks() != "[":
                raise BadInput(f"{self.path}: expected a JSON list of objects; is it one object a line (.jsonl)?")
            self._move(1)
            following = self._skip_blanks()
            while following != "]":
                yield self._read_object()
                following = self._skip_blanks()
                if following == ",":
                    self._move(1)
                elif following != "]":
                    raise self._fault("expected ',' or ']'")
            self._move(1)
            if self._skip_blanks():
                raise self._fault("more after the end of the list")

    def _move(self, length: int) -> None:
        end = self.position + length
        if breaks := self.text.count("\n", self.position, end):
            self.line += breaks
            self.character = end - self.text.rindex("\n", self.position, end)
        else:
            self.character += length
        self.position = end

    def _skip_blanks(self) -> str:
        while True:
            match = _BLANKS.match(self.text, self.position)
            assert match is not None  # it matches the empty text
            self._move(len(match.group()))
            if self.position < len(self.text):
                return self.text[self.position]
            if not self._grow():
                return ""

    def _read_object(self) -> tuple[dict[str, Any], int]:
        if self._skip_blanks() != "{":
            raise BadInput(f"{self.path}: expected a JSON list of objects, but for line {self.line}")
        while True:
            try:
                value, end = _OBJECTS.raw_decode(self.text, self.position)
                break
            except json.JSONDecodeError as why:
                offset = why.pos - self.position
                # else it is cut off, at the latest in an escape or a literal, and may end in the next block
                is_wrong = why.pos < len(self.text) - 16 and not why.msg.startswith("Unterminated")
                if not is_wrong and len(self.text) - self.position > self.longest:
                    raise self._fault(f"an object longer than {self.longest:,} characters") from why
                if is_wrong or not self._grow():
                    self._move(offset)
                    raise self._fault(why.msg) from why
            except (ValueError, RecursionError) as why:
                reason = _TOO_DEEP if isinstance(why, RecursionError) else why
                raise BadInput(f"{self.path}, line {self.line}: {reason}") from why
        text = self.text[self.position : end]
        if text.count("[") + text.count("{") > MAX_DEPTH or _HALF_PAIR.search(text):
            del value
            value = parse_value(text, self.path, self.line)
        self._move(len(text))
        return value, len(text)

    def _fault(self, why: str) -> BadInput:
        place = f"{self.path}, line {self.line}: broken JSON at character {self.character}"
        return BadInput(f"{place}: {why}; is it one object a line (.jsonl)?")

    def _grow(self) -> bool:
        """Read as much again as there is, so that each character is parsed a few times; whether there was more."""
        rest = self.text[self.position :]
        more = self.file.read(max(_BLOCK, len(rest)))
        self.text, self.position = rest + more, 0
        return more != ""


def parse_object(text: str, path: Path, line: int = 1) -> dict[str, Any]:
    """The JSON object in a text that begins at a line of a file."""
    value = parse_value(text, path, line)
    if not isinstance(value, dict):
        raise BadInput(f"{path}, line {line}: expected a JSON object, found {text.strip():.60}")
    return value


def parse_value(text: str, path: Path, line: int = 1) -> Any:
    """The JSON value of a text that begins at a line of a file; what is wrong with it is BadInput."""
    try:
        return parse_json(text)
    except json.JSONDecodeError as why:
        place = f"{path}, line {line + why.lineno - 1}"
        raise BadInput(f"{place}: broken JSON at character {why.colno}: {why.msg}") from why
    except ValueError as why:
        raise BadInput(f"{path}, line {line}: {why}") from why


def parse_json(text: str) -> Any:
    """The JSON value; half an emoji (a lone surrogate, where a crawler cut a text) becomes U+FFFD.

    ValueError for broken JSON, a number of too many digits, a field that an object has twice, and lists and objects
    that are nested deeper than `MAX_DEPTH` or more than memory should hold.
    """
    if (values := parse_flat(text)) is not None:
        return values
    if _OBJECT_BYTES * text.count("{") + _LIST_BYTES * text.count("[") > _MOST_BYTES:
        raise ValueError("more lists and objects in one JSON value than fit in memory; write one object a line")
    if _HALF_PAIR.search(text):
        text = _ESCAPES.sub(lambda escape: escape.group() if escape["whole"] else r"\ufffd", text)
    try:
        value = _OBJECTS.decode(text)
    except RecursionError as why:
        raise ValueError(_TOO_DEEP) from why
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _refuse_depth(value)
    return value


def parse_flat(text: str) -> dict[str, Any] | None:
    """The JSON object, if it holds no other and no list, and its colons show that no field is there twice.

    None means that the text needs a second look.
    """
    if text[:1] != "{" or text.count("{") > 1 or "\\u" in text or (brackets := text.count("[")) > MAX_DEPTH:
        return None
    try:
        values, end = _SCAN(text, 0)
    except (StopIteration, ValueError, RecursionError):
        return None
    if end != len(text) or (brackets and list in map(type, values.values())):
        return None
    # each field has a colon behind its name; others stand in values
    count = len(values)
    is_whole = text.count(":") == count or (text.count('":') == count and not _SPACED_COLON.search(text))
    return values if is_whole else None


def _refuse_repeats(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(fields)
    if len(values) < len(fields):  # Python would keep the last and lose the other
        repeated, _ = Counter(name for name, _ in fields).most_common(1)[0]
        raise ValueError(f"field {repeated!r:.60} is there twice in one object")
    return values


_OBJECTS = json.JSONDecoder(object_pairs_hook=_refuse_repeats)
_DECODER: Any = json.JSONDecoder()
_SCAN = _DECODER.scan_once  # in C, without a call for each object


def _refuse_depth(value: Any) -> None:
    """What goes down into a value calls itself, which Python stops at some depth."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        children = chain.from_iterable(node.values() if isinstance(node, dict) else node for node in level)
        if not (level := [child for child in children if isinstance(child, dict | list)]):
            return
    raise ValueError(f"JSON nested deeper than {MAX_DEPTH} lists and objects")
