"""Progress of long work: how much is done, how fast it goes, and how long the rest takes.

A log gets a line a minute; the command line shows a bar where standard error is a terminal (`show_with`).
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

log = logging.getLogger(__name__)

INTERVAL = 60.0  # seconds between lines
_SHORT = 2.0  # seconds; shorter work has no last line

T = TypeVar("T")

OnProgress = Callable[[int], None]  # called with the number of items that were done since the last call
Display = Callable[[str, int | None], AbstractContextManager[OnProgress]]


def track(name: str, total: int | None = None) -> AbstractContextManager[OnProgress]:
    """Report the progress of some work, such as `scoring`: its value is called with the size of each finished batch."""
    return _display(name, total)


def iterate(items: Iterable[T], name: str) -> Iterator[T]:
    """Yield the items, such as `epochs`, and report the progress after each."""
    with track(name, len(items) if isinstance(items, Sized) else None) as on_progress:
        for item in items:
            yield item
            on_progress(1)


def show_with(display: Display) -> None:
    """Show progress in this process by another display."""
    global _display  # noqa: PLW0603
    _display = display


@contextmanager
def show_lines(name: str, total: int | None, write: Callable[[str], object] = log.info) -> Iterator[OnProgress]:
    """Write a line a minute, and one at the end."""
    started_at = printed_at = time.monotonic()
    count = 0

    def advance(number: int) -> None:
        nonlocal count, printed_at
        count += number
        now = time.monotonic()
        if now - printed_at > INTERVAL:
            printed_at = now
            write(f"{name}: {describe(count, total, now - started_at)}")

    yield advance
    seconds = time.monotonic() - started_at
    if count and seconds > _SHORT:
        write(f"{name}: {count:,} done in {_format_time(seconds)}")


def describe(count: int, total: int | None, seconds: float) -> str:
    """Describe how much is done, the rate, and the time that the rest takes at that rate."""
    rate = count / seconds if seconds else 0.0
    per_time = f"{rate:,.1f} a second" if rate >= 0.1 or not count else f"{rate * 3600:,.1f} an hour"
    if not total:
        return f"{count:,}, {per_time}"
    rest = f", about {_format_time((total - count) / rate)} to go" if rate and count < total else ""
    return f"{count:,} of {total:,}, {per_time}{rest}"


def _format_time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.1f} s" if seconds < 10 else f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


_display: Display = show_lines
