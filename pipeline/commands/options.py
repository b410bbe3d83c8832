"""What several commands take and do alike: the day, the encoding, trying a transaction again."""

import datetime as dt
from collections.abc import Callable
from typing import Annotated, TypeVar

import tenacity
import typer

from pipeline.errors import Retry

T = TypeVar("T")

Day = Annotated[str, typer.Option("--day", help="UTC day, YYYY-MM-DD.", show_default="today")]
Encoding = Annotated[str, typer.Option(help="Encoding of text files, such as gb18030.")]


def today() -> str:
    """Today in UTC."""
    return dt.datetime.now(dt.UTC).date().isoformat()


def again(work: Callable[[], T]) -> T:
    """Do a transaction, anew if another writer was faster."""
    wait = tenacity.wait_random_exponential(multiplier=0.2, max=5)
    for attempt in tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(Retry), stop=tenacity.stop_after_attempt(5), wait=wait, reraise=True
    ):
        with attempt:
            return work()
    raise AssertionError("tenacity ends by return or raise")
