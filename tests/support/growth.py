"""How the time of a reader grows with its text."""

import gc
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.fuzz.run import within

SIZES = (3_000, 30_000, 300_000)  # characters
MOST = 30  # times the CPU seconds for ten times the text; the square takes a hundred times
LEAST = 0.02  # seconds: what takes less is not compared
HANG = 60.0  # CPU seconds
TRIES = 3


def repeated(part: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """A text of a length: parts between what stands before and after."""
    return lambda size: before + part * (size // len(part)) + after


def check_growth(read: Callable[[str], object], text: Callable[[int], str]) -> None:
    """Fail where ten times the text takes far more than ten times as long, however often both are measured."""
    for small, large in pairwise(map(text, SIZES)):
        for _ in range(TRIES):  # a busy machine is slow, not wrong
            before, seconds = _measure(read, small), _measure(read, large)
            if seconds <= MOST * max(before, LEAST):
                break
        else:
            pytest.fail(f"{large[:40]!r}…: {seconds:.2f} s for {len(large):,} characters, {before:.2f} s for a tenth")


def _measure(read: Callable[[str], object], value: str) -> float:
    """Return the CPU seconds that reading a text takes."""
    gc.disable()  # a collection walks every object of the test process, and comes more often the more objects are made
    try:
        with within(HANG):
            started_at = time.process_time()
            read(value)
            return time.process_time() - started_at
    finally:
        gc.enable()
