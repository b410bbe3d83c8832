"""Errors, named by what the one who runs the task does about them.

UndertoneError
├── BadInput        the input breaks its contract: fail at once, nothing was written, a person mends the input
│   └── SchemaDrift a source answered in a shape its adapter does not know: fail, the page is kept
├── Missing         a model, resource or optional package is not here: the message says how to get it
├── Refused         a source said no (robots.txt, 401, 403, 412, 418, 432, a log-in page): stop that source
└── Retry           a lost race or a passing fault: run the task again, it changed nothing
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class UndertoneError(Exception):
    """The root, so that a caller can tell our refusals from bugs."""

    exit_code = 1


class BadInput(UndertoneError):
    """The input breaks its contract; the message names file, row, field and what was expected."""

    exit_code = 2


class SchemaDrift(BadInput):
    """A source's page is not of the shape its adapter was written for."""


class Refused(UndertoneError):
    """A source does not want to be read; asking again is not polite."""

    exit_code = 3


class Missing(UndertoneError):
    """Something that can be installed or configured is absent."""

    exit_code = 4


class Retry(UndertoneError):
    """A fault that may pass; nothing was changed."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h


def check_name(kind: str, name: str, names: Iterable[str]) -> str:
    """Return a name; raise BadInput if it is none of the names that there are of a kind of thing."""
    if name not in (existing := list(names)):
        raise BadInput(f"no {kind} {name!r}; there are {', '.join(existing)}")
    return name


def format_quantity(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 row` and `2,000 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@contextmanager
def refuse_damage(place: object, remedy: str) -> Iterator[None]:
    """Make BadInput, with the place and the remedy, of whatever a library raises over damaged files.

    Errors of ours, of the system and of memory pass: they say what is wrong already.
    """
    try:
        yield
    except (UndertoneError, MemoryError):
        raise
    except Exception as why:
        if isinstance(why, OSError) and why.errno is not None:
            raise
        text = " ".join(str(why).split())
        raise BadInput(f"{place}: damaged or of another shape ({type(why).__name__}: {text:.200}); {remedy}") from why
